"""Wrong arguments in Python: each gets one line that says what was expected."""

import numpy as np
import pandas
import pytest

import grace_irl
from grace_irl.errors import InputError
from grace_irl.propose.protocol import Proposal

from .robot import one_line, write_states, write_wide


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


@pytest.mark.parametrize("name", ["out", "config", "replay"])
def test_a_resume_with_what_a_new_run_takes(name):
    """Go on with a run, and name another folder, other settings or another run beside it."""
    with pytest.raises(InputError) as error:
        grace_irl.fit(resume="runs/a", **{name: "other"})
    assert one_line(error.value).startswith(f"resume= with {name}=; expected")


@pytest.mark.parametrize(
    ("name", "expected"), [("label", "all, last, goal"), ("calibration", "file, fitted, none"), ("log_pi", "constant")]
)
def test_a_score_with_a_choice_that_is_none(recovered, experts, negatives, name, expected):
    """Mistype a choice of `score`."""
    with pytest.raises(InputError) as error:
        grace_irl.score(recovered.reward_path, experts=experts, negatives=negatives, **{name: "foo"})
    assert "foo" in one_line(error.value)
    assert expected in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"executor": "moon"}, "executor='moon'; expected"),
        ({"executor": "folder"}, "executor='folder' without jobs=; expected jobs=DIR"),
        ({"sets": "search.populatio=3"}, "search.populatio"),
        ({"sets": ["x"]}, "sets='x': no '='"),
        ({"sample": "1M"}, "sample=1M with"),
        ({"kind": "foo"}, "states of kind 'foo'; expected one of vector"),
        ({"kind": "grid"}, "kind='grid'"),
    ],
)
def test_messages_name_arguments(experts, negatives, arguments, said):
    """Mistype an argument of `fit`."""
    with pytest.raises(InputError) as error:
        grace_irl.fit(experts=experts, negatives=negatives, **arguments)
    assert said in one_line(error.value)
    assert "--" not in str(error.value)


def test_one_setting_as_a_text(experts, negatives):
    """Pass `sets` one text in place of a list."""
    run = grace_irl.fit(experts=experts, negatives=negatives, out="run", sets="stop.max_calls=20")
    assert run.calls == 20


class Later:
    """A proposer that answers with what it gets."""

    def __init__(self, answer):
        self.answer = answer

    async def propose(self, request, parents):
        return self.answer


class Now:
    """A proposer that is no coroutine."""

    def propose(self, request, parents):
        return Proposal("")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"proposer": object()}, "proposer: object without a method propose; expected"),
        ({"proposer": Now}, "proposer: the class Now; expected an object: Now"),
        ({"listener": 3}, "listener: 3; expected a function"),
        ({"note": "loud"}, "note: 'loud'; expected a function"),
        ({"state_columns": 5}, "'data.state_columns' is 5"),
        ({"state_columns": "x"}, "columns are chosen"),
        ({"kind": 5}, "'data.kind' is 5"),
    ],
)
def test_what_no_run_can_begin_with(here, experts, negatives, arguments, said):
    """Pass an object of the wrong sort."""
    with pytest.raises(InputError) as error:
        grace_irl.fit(experts=experts, negatives=negatives, out="run", **arguments)
    assert said in one_line(error.value)
    assert not (here / "run").exists()


@pytest.mark.parametrize(
    ("proposer", "said"),
    [
        (Now(), "Now.propose is not asynchronous; expected: async def"),
        (Later(None), "Later.propose returned None; expected a Proposal"),
        (Later("class Reward: ..."), "Later.propose returned 'class Reward: ...'; expected a Proposal"),
    ],
)
def test_a_proposer_without_proposals(experts, negatives, proposer, said):
    """Write a proposer that does not do what `Proposer` says."""
    with pytest.raises(InputError) as error:
        grace_irl.fit(experts=experts, negatives=negatives, out="run", proposer=proposer)
    assert said in one_line(error.value)


def test_no_rewards_of_nothing(recovered):
    """Ask for the rewards of an empty list."""
    assert grace_irl.load_reward(recovered.reward_path).rewards([]) == []


def test_a_column_that_comes_twice(experts, negatives):
    """Pass a data frame that joined two columns of one name."""
    frame = pandas.DataFrame(np.column_stack([np.repeat([0, 1], 10), np.concatenate(experts[:2])]))
    frame.columns = ["episode", "x", "y", "x"]
    with pytest.raises(InputError) as error:
        grace_irl.fit(experts=frame, negatives=negatives)
    assert "experts: column 'x' twice; expected each name once" in one_line(error.value)


def test_none_in_place_of_files_is_nothing(here, recovered, experts):
    """Leave optional arguments at None in a script whose data are files."""
    expert = write_states(here / "expert.parquet", experts)
    for none in ("demos", "negatives"):
        with pytest.raises(InputError, match="negative"):
            grace_irl.fit(experts=str(expert), out="run", **{none: None})
    folder = recovered.folder.parent
    found = grace_irl.score(
        recovered.reward_path, None, experts=folder / "expert.parquet", negatives=folder / "negative.parquet"
    )
    assert found == grace_irl.score(recovered.reward_path, [folder / "expert.parquet", folder / "negative.parquet"])
