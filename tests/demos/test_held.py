"""Trajectories and demonstrations in memory come back as they are, in every argument and beside other data."""

from typing import Any

import numpy as np
import pytest

from grace_irl.demos.given import in_memory
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.errors import InputError
from grace_irl.states.texts import pack
from tests.demos.conftest import screen
from tests.demos.equality import assert_same, assert_same_demonstration

METADATA = Metadata("vector", ("height", "speed"), "Walk-v0", "vector", "last")


def walk(number: int = 0, **parts: Any) -> Trajectory:
    states = np.arange(8.0).reshape(4, 2) + 10 * number
    ends = {"log_probs": np.full(3, -0.5), "rewards": np.ones(3), "actions": np.arange(3), "terminated": True}
    return Trajectory(states, extra_info="go", **ends, **parts)


def held() -> Demonstrations:
    items = [Demonstration(walk(0), "expert", split="train"), Demonstration(walk(1), "expert", "turn", goals=(3,))]
    return Demonstrations(METADATA, (*items, Demonstration(walk(2), "negative", split="held_out")))


def read(demos: Any = (), experts: Any = None, negatives: Any = (), **more: Any) -> Demonstrations:
    found = in_memory(demos, experts, negatives, **more)
    assert found is not None
    return found


def test_a_set_keeps_its_metadata_and_trajectories_in_every_argument() -> None:
    whole = held()
    assert read(whole) is whole
    experts, negatives = whole.select(role="expert"), whole.select(role="negative")
    assert_same(read(experts=experts, negatives=negatives), whole)
    assert_same(read(experts, None, negatives), whole)
    beside = read(whole, negatives=[np.zeros((4, 2))])
    assert beside.metadata == METADATA
    assert len(beside) == 4
    assert_same(beside.select(role="expert"), experts)


def test_items_of_a_list_keep_all_but_the_metadata_of_a_set() -> None:
    whole = held()
    for given in (list(whole), np.array([*whole, None], object)[:-1]):
        found = read(given)
        assert found.metadata == Metadata("vector")
        for one, other in zip(found, whole, strict=True):
            assert_same_demonstration(one, other)


def test_the_callers_arrays_stay_writable() -> None:
    trajectory = walk()
    read(experts=[trajectory])
    trajectory.states[0] = 5


def test_a_stated_kind_stays_and_others_are_chosen_by_all_values() -> None:
    random = np.random.default_rng(0)
    codes, bright = (random.integers(0, top, (3, 8, 8, 3), np.uint8) for top in (9, 256))
    image = Metadata("image", environment="Eyes-v0")
    assert Trajectory(codes).kind == "grid"
    assert read([Demonstration(Trajectory(codes, kind="image"), "expert")]).metadata.kind == "image"
    assert read(experts=Demonstrations(image, (Demonstration(Trajectory(codes), "expert"),))).metadata == image
    assert read(experts=[Trajectory(codes), Trajectory(bright)]).metadata.kind == "image"
    assert read(experts=[Trajectory(codes)], kind="image").metadata.kind == "image"


def test_screens_keep_what_belongs_to_their_actions() -> None:
    texts = {"action_texts": ('{"action_type": "wait"}',), "step_instructions": ("wait",), "screenshots": (None, None)}
    (found,) = read(experts=[Trajectory(pack([screen("a"), screen("b")]), **texts)])
    assert {name: getattr(found.trajectory, name) for name in texts} == texts


def test_components_in_another_order_are_put_in_the_order_of_the_first_set() -> None:
    turned = Demonstrations(Metadata("vector", METADATA.fields[::-1]), (Demonstration(walk(2), "negative"),))
    found = read(experts=held().select(role="expert"), negatives=turned)
    np.testing.assert_array_equal(found[2].trajectory.states, walk(2).states[:, ::-1])


BAD: dict[str, tuple[Any, dict[str, Any], str]] = {
    "nothing": (held().select(task="fly"), {}, "experts: no episodes; expected at least one"),
    "two kinds": ([walk(), Trajectory(np.zeros((2, 3, 3, 3), int))], {}, "expected one kind"),
    "another kind": (held(), {"kind": "grid"}, "--kind grid: experts holds vectors; expected --kind vector"),
    "an object beside": ([walk(), 5], {}, "episode 0: Trajectory"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_set_is_refused_in_one_line(name: str) -> None:
    value, more, said = BAD[name]
    with pytest.raises(InputError, match=said) as error:
        read(experts=value, **more)
    assert "\n" not in str(error.value)
