"""Wrong arguments in Python: each gets one line that says what was expected."""

import numpy as np
import pytest

import grace_irl
from grace_irl.errors import InputError

from .robot import one_line, write_wide


def test_the_text_of_a_table(here, experts):
    """Pass the text of a CSV file in place of its path."""
    text = write_wide(here / "expert.csv", experts).read_text()
    with pytest.raises(InputError) as error:
        grace_irl.fit(text)
    assert "expected" in one_line(error.value)
    assert "DataFrame" in str(error.value) or "array" in str(error.value)


def test_rewards_of_a_text(recovered):
    """Ask for the rewards of a text that names nothing."""
    reward = grace_irl.load_reward(recovered.reward_path)
    with pytest.raises(InputError) as error:
        reward.rewards("hello")
    assert "hello" in one_line(error.value)


def test_experts_alone(experts):
    """Forget the negatives, where every state of an expert counts as positive."""
    with pytest.raises(InputError) as error:
        grace_irl.fit(experts=experts, label="all", out="run")
    assert "negatives=" in one_line(error.value)  # as Python says it, not --negatives


def test_negatives_of_another_width(experts, negatives):
    """Pass negatives that lack a column."""
    with pytest.raises(InputError) as error:
        grace_irl.fit(experts=experts, negatives=[each[:, :2] for each in negatives], out="run")
    message = one_line(error.value)
    assert "negatives" in message
    assert "3" in message
    assert "2" in message


def test_a_number_that_is_none(experts, negatives):
    """Pass an expert episode with a NaN, as broken sensors leave them."""
    experts[4][7, 1] = np.nan
    with pytest.raises(InputError) as error:
        grace_irl.fit(experts=experts, negatives=negatives, out="run")
    message = one_line(error.value).lower()
    assert "nan" in message.replace("finite", "nan")
    assert "4" in message  # the episode
    assert "7" in message  # the step


def test_an_empty_list(negatives):
    """Pass a list of experts that a filter left empty."""
    with pytest.raises(InputError) as error:
        grace_irl.fit(experts=[], negatives=negatives, out="run")
    message = one_line(error.value)
    assert "experts" in message
    assert "empty" in message or "no episode" in message or "no trajector" in message
