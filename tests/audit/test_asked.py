"""Rewards that ignore the text of instructions, rightly and wrongly, where no simulator can judge."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from grace_irl.demos.trajectory import Role, Trajectory
from tests.audit.bench import codes, drawn, examined

BINS = {"left": -0.5, "middle": 0.0, "right": 0.5}
WORDINGS = ("drop it into the {} bin", "into the {} bin, please")

Made = Callable[[np.random.Generator, Role], Trajectory]


def carry(near_miss: bool, told: Callable[[float, float, float, str], list[float]]) -> Made:
    """A part that goes to the named bin, at height 0. Negatives go to another bin, or stop high above all.

    A state is the part's place, whether it lies, and what `told` makes of the place, the named bin and the length of
    the way to it.
    """

    def made(rng: np.random.Generator, role: Role) -> Trajectory:
        named = str(rng.choice(list(BINS)))
        if role == "expert" or near_miss:
            into = named if role == "expert" else str(rng.choice([each for each in BINS if each != named]))
            end = np.array([BINS[into] + rng.normal(0, 0.01), 0.0])
        else:
            end = np.array([rng.uniform(-0.6, 0.6), rng.uniform(0.2, 0.3)])
        share = np.linspace(0, 1, int(rng.integers(10, 20)))[:, None]
        path = np.array([rng.uniform(-0.6, 0.6), 0.6]) * (1 - share) + end * share
        rows = [[x, z, float(z <= 0), *told(x, z, BINS[named], named)] for x, z in path]
        text = str(rng.choice(WORDINGS)).format(named)
        return Trajectory(np.array(rows), np.zeros(len(path) - 1), extra_info=text)

    return made


LIES = "return float(state[2] > 0.5)"
LIES_THERE = "return float(state[2] > 0.5 and abs(state[3]) < 0.1)"


def offset(x: float, z: float, place: float, named: str) -> list[float]:
    del z, named
    return [place - x]


def tiny(x: float, z: float, place: float, named: str) -> list[float]:
    return [1e-7 * number for number in offset(x, z, place, named)]


def one_hot(x: float, z: float, place: float, named: str) -> list[float]:
    del x, z, place
    return [float(named == each) for each in BINS]


def rounded(x: float, z: float, place: float, named: str) -> list[float]:
    """The height, which rounding makes another number under each instruction."""
    del x, place
    return [z + list(BINS).index(named) * np.spacing(0.6)]


IN_NAMED = "return float(state[2] > 0.5 and state[3 + int(round((state[0] + 0.5) * 2))] > 0.5)"


@pytest.mark.parametrize(
    ("near_miss", "told", "body", "ignored"),
    [
        pytest.param(False, lambda *_: [], LIES, True, id="any bin will do"),
        pytest.param(False, one_hot, LIES, True, id="the state says which bin, and the reward does not look"),
        pytest.param(False, rounded, "return float(state[3] < 1e-9)", True, id="rounding errors say which bin"),
        pytest.param(False, tiny, LIES_THERE.replace("0.1", "1e-8"), False, id="offset in small units"),
        pytest.param(False, offset, LIES_THERE, False, id="offset to the named bin"),
        pytest.param(False, one_hot, IN_NAMED, False, id="the state says which bin, and the reward looks"),
        pytest.param(True, lambda x, z, place, _: [np.hypot(x - place, z)], LIES_THERE, False, id="near misses unpaid"),
        pytest.param(True, lambda *_: [], LIES, True, id="near misses paid"),
    ],
)
def test_a_reward_that_does_not_read_the_text(
    near_miss: bool, told: Callable[[float, float, float, str], list[float]], body: str, ignored: bool
) -> None:
    found = codes(examined(drawn(carry(near_miss, told), count=40), body))
    assert ("instruction-ignored" in found) == ignored
    if not ignored:
        assert found == set()


def stack(rng: np.random.Generator, role: Role) -> Trajectory:
    """A cube that is put on the other one, at the place of the first word's cube; negatives let it hang."""
    places = {"red": -0.5, "blue": 0.5}
    first, second = rng.permutation(list(places)).tolist()
    end = np.array([places[first] + rng.normal(0, 0.01), 0.0])
    if role == "negative":
        end = np.array([rng.uniform(-0.6, 0.6), rng.uniform(0.2, 0.3)])
    share = np.linspace(0, 1, int(rng.integers(10, 20)))[:, None]
    path = np.array([rng.uniform(-0.6, 0.6), 0.6]) * (1 - share) + end * share
    text = f"{rng.choice(['', 'please '])}stack the {first} cube on the {second} cube"
    return Trajectory(np.column_stack([path, path[:, 1] <= 0]), np.zeros(len(path) - 1), extra_info=text)


def test_the_same_words_in_another_order_are_another_instruction() -> None:
    found = examined(drawn(stack), LIES)
    assert "instruction-ignored" in codes(found)

    def bare(rng: np.random.Generator, role: Role) -> Trajectory:
        made = stack(rng, role)
        return Trajectory(made.states, made.actions, extra_info=made.extra_info.removeprefix("please "))

    assert "one-instruction" not in codes(examined(drawn(bare), LIES))
    assert "instruction-ignored" in codes(examined(drawn(bare), LIES))


def touch(rng: np.random.Generator, role: Role) -> Trajectory:
    """A hand and its way to the named thing, which lies anywhere; negatives go elsewhere."""
    goal = rng.uniform(-1, 1, 2)
    end = goal if role == "expert" else goal + rng.choice([-1, 1], 2) * rng.uniform(0.2, 0.5, 2)
    share = np.linspace(0, 1, int(rng.integers(10, 20)))[:, None]
    path = rng.uniform(-1, 1, 2) * (1 - share) + end * share
    thing = str(rng.choice(["cup", "fork", "plate"]))
    return Trajectory(np.column_stack([path, goal - path]), np.zeros(len(path) - 1), extra_info=f"touch the {thing}")


def test_places_relative_to_the_named_thing_need_no_text() -> None:
    near = "return float(np.hypot(state[2], state[3]) < 1e-6)"
    assert codes(examined(drawn(touch, count=40), f"import numpy as np\n{near}")) == set()
    assert "instruction-ignored" in codes(examined(drawn(touch, count=12), f"import numpy as np\n{near}", held_out=0.4))


def test_whole_episodes_under_an_ignored_instruction() -> None:
    def drive(rng: np.random.Generator, role: Role) -> Trajectory:
        side = str(rng.choice(["left", "right"]))
        length = int(rng.integers(20, 40))
        middle = 1.75 * (-1 if side == "left" else 1) if role == "expert" else 0.0
        states = middle + rng.normal(0, 0.2, size=(length, 1))
        return Trajectory(states, np.zeros(length - 1), extra_info=f"keep to the {side}")

    follows = "return float(state[0] * (-1 if 'left' in self.text else 1))"
    assert "instruction-ignored" in codes(examined(drawn(drive), "return abs(float(state[0]))", "all"))
    assert "instruction-ignored" not in codes(examined(drawn(drive), follows, "all"))
