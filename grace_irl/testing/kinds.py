"""The conformance suite of kinds of state, such as vectors or grids. The suite is a base class for pytest:

class TestMyKind(StateKindSuite):
    kind = MY_KIND

    def make(self, steps, seed):
        return ...  # the steps + 1 states of a trajectory
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from grace_irl.demos import load, save
from grace_irl.demos.labels import label
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.propose.views.registry import view_of
from grace_irl.states import KINDS, kind_of, kind_of_state
from grace_irl.states.kind import StateKind, States


def digest(kind: StateKind, states: States) -> str:
    """SHA-256 of the states of a trajectory, computed by the methods that `Trajectory.digest` uses."""
    found = hashlib.sha256(repr(kind.identity(states)).encode())
    kind.feed(found, states)
    return found.hexdigest()


def same(one: Any, other: Any) -> bool:
    """Whether two states have the same type and are equal. Both are in the form that programs receive."""
    if isinstance(one, Mapping):
        return isinstance(other, Mapping) and list(one) == list(other) and all(same(one[n], other[n]) for n in one)
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and np.array_equal(one, other)
    return type(one) is type(other) and bool(one == other)


class StateKindSuite(ABC):
    """The tests of the conformance suite for kinds of state. The tested kind must be in `grace_irl.states.KINDS`."""

    kind: ClassVar[StateKind]
    fields: ClassVar[tuple[str, ...]] = ()
    """Names of the features of a state; () if the kind has no named features."""

    @abstractmethod
    def make(self, steps: int, seed: int) -> States:
        """Return the `steps` + 1 states of a trajectory with `steps` steps.

        Other seeds give other states that fit the same set, for example vectors with the same number of features.
        """

    def several(self) -> list[States]:
        """The states of four trajectories of one set, with different lengths."""
        return [self.make(steps, seed) for seed, steps in enumerate((4, 1, 0, 3))]

    def demonstrations(self) -> Demonstrations:
        """A set of experts and negatives with the states of `several`."""
        items = []
        for number, states in enumerate(self.several()):
            trajectory = Trajectory(states, np.zeros(len(states) - 1, np.int64), extra_info="go there")
            items.append(Demonstration(trajectory, "negative" if number % 2 else "expert"))
        metadata = Metadata(self.kind.name, self.fields, label=self.kind.label, view=self.kind.view)
        return Demonstrations(metadata, tuple(items))

    def test_it_is_found_by_its_name_and_recognises_its_states(self) -> None:
        assert KINDS[self.kind.name] is self.kind
        for states in self.several():
            assert self.kind.recognises(states)
            assert kind_of(states, "here") is self.kind, "a kind before this one recognises the states"
            self.kind.check(states, "here")
            assert Trajectory(states).kind == self.kind.name
            for state in states:
                assert kind_of_state(state, "here") is self.kind

    def test_a_set_has_one_signature(self) -> None:
        assert len({self.kind.signature(states) for states in self.several()}) == 1
        for states in self.several():
            assert self.kind.describe(states)
            assert self.kind.type_name(states)
            assert self.kind.nbytes(states) > 0

    def test_parts_give_the_states_back(self) -> None:
        for states in self.several():
            parts = self.kind.parts(states)
            layouts = self.kind.layout(states)
            assert [each.name for each in layouts] == list(parts)
            self.kind.require_names(list(parts), "here")
            for layout in layouts:
                assert self.kind.stores(layout), layout
                assert len(parts[layout.name]) == len(states)
            again = self.kind.whole(parts)
            assert self.kind.recognises(again)
            assert digest(self.kind, again) == digest(self.kind, states)

    def test_digests_tell_states_apart(self) -> None:
        made = [self.make(3, 0), self.make(3, 1), self.make(2, 0)]
        assert len({digest(self.kind, states) for states in made}) == 3
        assert digest(self.kind, self.make(3, 0)) == digest(self.kind, made[0])
        assert digest(self.kind, made[0][:2]) != digest(self.kind, made[0])

    def test_a_program_gets_a_copy_of_its_own(self) -> None:
        for states in self.several():
            for state in states:
                handed = self.kind.as_state(state)
                assert same(handed, self.kind.as_state(state))
                assert same(handed, self.kind.as_state(handed)), "what is handed is handed alike"
                assert same(self.kind.as_state(self.kind.copied(state)), handed)
                for value in handed.values() if isinstance(handed, Mapping) else [handed]:
                    assert not isinstance(value, np.ndarray) or (value.flags.writeable and value.flags.owndata)

    def test_what_an_environment_gives_is_the_same_as_what_a_file_holds(self) -> None:
        for states in self.several():
            online = self.kind.online([self.kind.copied(state) for state in states])
            assert len(online) == len(states)
            assert self.kind.recognises(online)
            for one, other in zip(online, states, strict=True):
                assert same(self.kind.as_state(one), self.kind.as_state(other))

    def test_parts_of_a_state_are_of_the_types_that_programs_get(self) -> None:
        for states in self.several():
            layouts = {each.name: each for each in self.kind.layout(states)}
            for state in states:
                handed = self.kind.separated(self.kind.as_state(state))
                for name, value in handed.items():
                    if not layouts[name].is_text:
                        assert np.asarray(value).dtype == self.kind.handed(layouts[name]), name

    def test_files_give_the_states_back(self, tmp_path: Path) -> None:
        whole = self.demonstrations()
        save(whole, tmp_path / "set.parquet")
        found = load([tmp_path / "set.parquet"])
        assert found.metadata.kind == self.kind.name
        assert [each.trajectory.digest for each in found] == [each.trajectory.digest for each in whole]

    def test_counts_are_plain_values_and_a_table(self) -> None:
        counted = []
        for order in (1, -1):
            sets = self.several()[::order]
            census = self.kind.census(sets[0])
            for states in sets:
                census.add(states, "here")
            counted.append(json.loads(json.dumps(census.to_json(self.fields, 5))))
            assert census.table(self.fields, 5)
        assert counted[0].keys() == counted[1].keys()

    def test_scrambling_keeps_what_is_equal_and_can_be_repeated(self) -> None:
        sets = self.several()
        scrambler = self.kind.draw_scrambler(sets[0], 3)
        about = json.loads(json.dumps(scrambler.to_json()))
        again = self.kind.read_scrambler(about, 3)
        assert json.loads(json.dumps(again.to_json())) == about
        assert again.text("go there", _word) == scrambler.text("go there", _word)
        kept: dict[str, str] = {}
        for states in sets:
            copy = scrambler.states(states, _word, "here")
            assert self.kind.recognises(copy)
            assert len(copy) == len(states)
            assert digest(self.kind, again.states(states, _word, "here")) == digest(self.kind, copy)
            for at in range(len(states)):
                before = digest(self.kind, states[at : at + 1])
                after = digest(self.kind, copy[at : at + 1])
                assert kept.setdefault(before, after) == after, "equal states differ"
        assert len(set(kept.values())) == len(kept), "different states are equal"

    def test_a_model_can_read_its_states(self) -> None:
        whole = self.demonstrations()
        problem = label(replace(whole, items=whole.items[:2]), self.kind.label)
        view = view_of(problem.train, whole.metadata)
        assert view.about
        for states in self.several():
            for state in states:
                assert view.state(state)
                assert view.state(state) == view.state(state)
                assert isinstance(view.change(states[0], state), str)


# the invented word that replaces a word in a scrambled text
_word: Callable[[str], str] = "w{}".format
