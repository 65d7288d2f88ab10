"""Episodes that run side by side are rewarded as if each ran alone."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.sandbox.candidate import Candidate, NotANumberError
from grace_irl.sandbox.slots import Slots

PROGRAMS = {
    "counts and leaks": """
import random
import numpy as np
SEEN = []

class Reward:
    shared = []

    def __init__(self, extra_info=None):
        self.text = extra_info

    def reward_fn(self, state):
        SEEN.append(float(state[0]))
        self.shared.append(1)
        state[0] = 99
        return len(SEEN) + 10 * len(self.shared) + len(self.text) + sum(SEEN)
""",
    "draws": """
import random
import numpy as np

class Reward:
    def __init__(self, extra_info=None):
        self.first = random.random()

    def reward_fn(self, state):
        return self.first + random.random() + np.random.normal() + float(state[0])

    def terms_fn(self, state):
        return {"drawn": np.random.uniform()}
""",
    "transitions": """
class Reward:
    def __init__(self):
        self.n = 0

    def reward_fn(self, state, action, next_state):
        self.n += 1
        return 100 * self.n + 10 * float(next_state[0] - state[0]) + action
""",
}


def slots(name: str) -> Slots:
    source = PROGRAMS[name]
    candidate = Candidate(source, takes_action=name == "transitions", name="a_name_of_its_own")
    return Slots(candidate)


@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=40)
@given(
    moves=st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.integers(-9, 9)), max_size=40), terms=st.booleans()
)
def test_side_by_side_is_as_alone(name: str, moves: list[tuple[int, bool, int]], terms: bool) -> None:
    """Each move is a slot, whether an episode begins there, and a number that makes its state and action."""
    together, alone = slots(name), {}
    for slot, begins, number in moves:
        state = np.array([number, 1.0])
        if begins or slot not in alone:
            together.begin(slot, state, "x" * abs(number))
            alone[slot] = slots(name)
            alone[slot].begin(0, state, "x" * abs(number))
            continue
        action = np.array([number])
        found = together.turn([slot], action, state[None], terms=terms)
        assert found == alone[slot].turn([0], action, state[None], terms=terms)


def test_the_generators_of_the_process_are_left_alone() -> None:
    drawing = slots("draws")
    random.seed(1)
    np.random.seed(1)
    expected = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[union-attr]
    drawing.begin(0, np.zeros(2), "")
    drawing.turn([0], None, np.zeros((1, 2)), terms=True)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == expected  # type: ignore[union-attr]


def test_an_episode_must_begin_before_it_goes_on() -> None:
    with pytest.raises(KeyError):
        slots("transitions").turn([3], np.zeros(1), np.zeros((1, 2)), terms=False)


def test_components_are_numbers_by_name() -> None:
    def terms(returned: str) -> dict[str, float]:
        source = f"class Reward:\n    def reward_fn(self, s): return 0\n    def terms_fn(self, s): return {returned}\n"
        made = Slots(Candidate(source, takes_action=False, name="a_name_of_its_own"))
        made.begin(0, np.zeros(1), "")
        return made.turn([0], None, np.zeros((1, 1)), terms=True)[1][0]

    assert terms("{'a': 1, 2: True}") == {"a": 1.0, "2": 1.0}
    assert len(terms("{i: i for i in range(1000)}")) == 64
    assert len(next(iter(terms("{'a' * 1000: 1}")))) == 64
    for wrong in ("[1]", "{'a': 'b'}", "None"):
        with pytest.raises(NotANumberError):
            terms(wrong)


@pytest.mark.parametrize(
    ("line", "draws"),
    [
        ('"""In units of what random actions do, or a NormalDist."""', False),
        ("# random", False),
        ('NAMES = {"random walk": 1}', False),
        ("import random", True),
        ("from statistics import NormalDist", True),
        ("import numpy.random as drawn", True),
        ("import numpy as np\nDRAWN = np.random.random()", True),
        ('import numpy as np\nDRAWN = getattr(np, "random")', True),
        ('NAMES = ("mean", "random")', True),
        ("def deep():\n    def deeper():\n        return lambda np: np.random.normal()", True),
    ],
)
def test_generators_are_kept_apart_only_for_programs_whose_code_names_one(line: str, draws: bool) -> None:
    source = f"{line}\n\nclass Reward:\n    def reward_fn(self, state):\n        return 0.0\n"
    assert Candidate(source, takes_action=False).uses_random is draws


@pytest.mark.parametrize(
    ("parameters", "found"),
    [("state", 3.0), ("state, action, next_state", 6.0), ("*states", 3.0), ("state, action=0, next_state=0", 6.0)],
)
def test_components_get_as_many_arguments_as_they_take(parameters: str, found: float) -> None:
    body = "sum(states)" if parameters == "*states" else "+".join(p.split("=")[0] for p in parameters.split(", "))
    source = f"""
class Reward:
    def reward_fn(self, state, action, next_state):
        return 0.0

    def terms_fn(self, {parameters}):
        return {{"sum": {body}}}
"""
    candidate = Candidate(source, takes_action=True)
    assert candidate.start("").terms(1.0, 2.0, 3.0) == {"sum": found}
    decorated = source.replace("    def terms_fn", "    @functools.wraps(reward)\n    def terms_fn")
    decorated = "import functools\n\n\ndef reward(self, state):\n    pass\n" + decorated
    if parameters == "state":
        assert Candidate(decorated, takes_action=True).start("").terms(1.0, 2.0, 3.0) == {"sum": 3.0}
