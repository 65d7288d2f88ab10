"""The proposer as a whole: what its answers depend on, what it may look at, and data that gives little."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from grace_irl.demos.labels import Labelled, Problem, label
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.evaluate.metrics import ranking
from grace_irl.programs.check import read
from grace_irl.programs.program import Program
from grace_irl.propose.protocol import Parent, Proposal
from grace_irl.search.protocol import Request
from grace_irl.synthesis import Synthesiser
from tests.fakes.data import vector_set
from tests.synthesis.worlds import World, go_to_set, problem, rewards_of_all, thing


def initial(synthesiser: Synthesiser, index: int) -> Proposal:
    return asyncio.run(synthesiser.propose(Request(index, "initialise", seed=100 + index), ()))


def mutated(synthesiser: Synthesiser, parent: Proposal, seed: int, index: int = 50) -> Proposal:
    request = Request(index, "mutate", ("0" * 16,), seed)
    program = Program("0" * 16, parent.source, 100)
    return asyncio.run(synthesiser.propose(request, [Parent(program, Evaluation("ok"), parent.sketch)]))


def told(proposal: Proposal) -> Proposal:
    """Without the time it took."""
    return replace(proposal, seconds=0.0)


@cache
def grids() -> Problem:
    return problem(go_to_set(0, 6, 6))


@cache
def vectors() -> Problem:
    return label(vector_set(4, 4), "all")


@pytest.mark.parametrize("data", [grids, vectors], ids=["grid", "vector"])
def test_answers_depend_on_nothing_but_what_is_asked(data: Any) -> None:
    """Two instances agree, whatever they were asked before and in which order."""
    one, other = Synthesiser(data(), 3), Synthesiser(data(), 3)
    first = [told(initial(one, index)) for index in range(5)]
    again = [told(initial(other, index)) for index in (4, 2, 0, 3, 1)]
    assert [again[i] for i in (2, 4, 1, 3, 0)] == first
    children = [told(mutated(one, first[0], seed)) for seed in (7, 8, 9)]
    assert [told(mutated(other, first[0], seed)) for seed in (9, 8, 7)] == children[::-1]
    assert told(mutated(one, first[0], 7, index=99)) == children[0]


@pytest.mark.parametrize("data", [grids, vectors], ids=["grid", "vector"])
def test_answers_are_programs_with_a_story(data: Any) -> None:
    synthesiser = Synthesiser(data(), 0)
    proposals = [initial(synthesiser, index) for index in range(4)]
    for proposal in [*proposals, *(mutated(synthesiser, proposals[0], seed) for seed in range(4))]:
        assert proposal.failure == ""
        assert read(proposal.source).problems == ()
        assert proposal.reasoning.endswith(".")
        assert (proposal.prompt, proposal.raw, proposal.tokens_in, proposal.tokens_out) == ("", "", 0, 0)
        assert proposal.seconds > 0


def test_initial_answers_differ_and_the_best_comes_first() -> None:
    synthesiser = Synthesiser(grids(), 0)
    proposals = [initial(synthesiser, index) for index in range(8)]
    own = list(dict.fromkeys(proposal.sketch for proposal in proposals))
    assert proposals[0].prior == 0.0
    assert all(proposal.prior <= 0.0 for proposal in proposals)
    assert len(own) >= 4
    assert all(mutated(synthesiser, proposals[0], seed).prior <= 0.0 for seed in range(10))


def test_first_answers_differ_until_there_is_nothing_new() -> None:
    """The readings of this data are few: no program is proposed twice, and the end is said."""
    synthesiser = Synthesiser(grids(), 0)
    proposals = [initial(synthesiser, index) for index in range(60)]
    given = [proposal for proposal in proposals if not proposal.failure]
    assert proposals[: len(given)] == given
    assert 4 <= len(given) < 60
    assert len({proposal.source for proposal in given}) == len(given)
    assert all(read(proposal.source).problems == () for proposal in given)
    assert all(proposal.exhausted for proposal in proposals[len(given) :])
    assert {told(initial(Synthesiser(grids(), 0), index)) for index in (len(given) - 1, 59)} == {
        told(given[-1]),
        told(proposals[-1]),
    }


def test_data_that_leaves_much_open_has_many_first_answers() -> None:
    synthesiser = Synthesiser(vectors(), 0)
    assert len({initial(synthesiser, index).source for index in range(20)} - {""}) == 20


@pytest.mark.parametrize("data", [grids, vectors], ids=["grid", "vector"])
def test_a_variation_is_not_its_parent(data: Any) -> None:
    synthesiser = Synthesiser(data(), 0)
    parent = initial(synthesiser, 1)
    children = [mutated(synthesiser, parent, seed) for seed in range(12)]
    assert not {child.source for child in children} & {parent.source}


def test_a_parent_without_a_sketch_is_passed_over() -> None:
    """Programs by other authors may be among the parents; of none but such, what the data says itself is varied."""
    synthesiser = Synthesiser(vectors(), 0)
    own = initial(synthesiser, 0)
    request = Request(50, "mutate", ("0" * 16, "1" * 16), 5)
    parents = [
        Parent(Program(str(i) * 16, "", 1), Evaluation("ok"), sketch) for i, sketch in enumerate(["", own.sketch])
    ]
    answer = asyncio.run(synthesiser.propose(request, parents))
    assert answer.sketch == mutated(synthesiser, own, 5).sketch
    strangers = [asyncio.run(synthesiser.propose(replace(request, seed=seed), parents[:1])) for seed in range(6)]
    assert len({answer.source for answer in strangers} - {""}) > 1


class _Poison:
    """Stands in for a trajectory that nobody may look at."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"looked at .{name} of a held-out trajectory")


@pytest.mark.parametrize("data", [grids, vectors], ids=["grid", "vector"])
def test_only_training_trajectories_are_looked_at(data: Any) -> None:
    held_out = replace(data().items[0].demonstration, split="held_out")
    object.__setattr__(held_out, "trajectory", _Poison())
    poisoned = Labelled(held_out, _Poison())  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="looked at"):
        _ = held_out.trajectory.states
    clean = data()
    mixed = replace(clean, items=(poisoned, *clean.items, poisoned))
    for index in (0, 1, 9):
        assert told(initial(Synthesiser(mixed, 0), index)) == told(initial(Synthesiser(clean, 0), index))


def test_the_seed_is_heard() -> None:
    """What is random in an answer follows the request's seed."""
    synthesiser = Synthesiser(vectors(), 0)
    parent = initial(synthesiser, 0)
    assert len({mutated(synthesiser, parent, seed).sketch for seed in range(8)}) > 1


def accuracy(source: str, of: Problem) -> float:
    """Balanced accuracy of the best threshold on the rewards."""
    items = of.items
    values = rewards_of_all(source, [i.trajectory.states for i in items], [i.trajectory.extra_info for i in items])
    return ranking(np.concatenate(values), np.concatenate([item.positive for item in items])).accuracy


def test_the_best_answer_tells_goals_apart_on_new_worlds() -> None:
    best = initial(Synthesiser(problem(go_to_set(0, 8, 8)), 0), 0)
    assert accuracy(best.source, problem(go_to_set(1, 20, 20))) == 1.0


def crowded(seed: int, role: str) -> Demonstration:
    """Experts stay where balls are many; nothing is said and nothing is a goal."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(4, 7)) if role == "expert" else int(rng.integers(0, 3))
    things = {(3, 1 + i): thing("red", "ball") for i in range(count)}
    world = World((5, 9), (1, 1), 40, things)
    world.act(*rng.choice(["forward", "left", "right"], size=8, p=(0.6, 0.2, 0.2)).tolist(), "forward")
    return Demonstration(Trajectory(world.stack()), role)  # type: ignore[arg-type]


def test_grids_on_which_every_expert_state_counts() -> None:
    train = [crowded(seed, role) for role in ("expert", "negative") for seed in range(8)]
    test = [crowded(100 + seed, role) for role in ("expert", "negative") for seed in range(8)]
    synthesiser = Synthesiser(problem(train, "all"), 0)
    best = initial(synthesiser, 0)
    assert "cells with channel 0 = 14" in best.source
    assert max(map(len, best.source.splitlines())) <= 100
    assert accuracy(best.source, problem(test, "all")) == 1.0
    assert read(mutated(synthesiser, best, 1).source).problems == ()


def test_grids_on_which_nothing_happens_at_the_goal_are_told_apart_by_how_they_look() -> None:
    """A light goes on one state before the last, and burns on."""
    items = []
    for number in range(6):
        states = np.zeros((4, 4, 4, 3), dtype=np.int64)
        states[2:, 0, 0, 0] = 5 if number < 3 else 0
        items.append(Demonstration(Trajectory(states), "expert" if number < 3 else "negative"))
    best = initial(Synthesiser(problem(items), 0), 0)
    assert best.failure == ""
    assert "cells with channel 0 = 5" in best.source
    assert "def terms_fn" in best.source


def vector_problem(experts: Sequence[Any], others: Sequence[Any], fields: tuple[str, ...] = ()) -> Problem:
    items = [Demonstration(Trajectory(np.array(states, dtype=float)), "expert") for states in experts]
    items += [Demonstration(Trajectory(np.array(states, dtype=float)), "negative") for states in others]
    return label(Demonstrations(Metadata("vector", fields), tuple(items)), "all")


RNG = np.random.default_rng(0)
NOISE = RNG.normal(size=(30, 1))


@pytest.mark.parametrize(
    ("experts", "others", "best"),
    [
        ([[[1.0, 0.1]]], [[[0.0, 0.1], [0.5, 0.1], [-1.0, 0.1]]], 1.0),  # a single expert state, a constant field
        ([[[1.0]], [[1.0]]], [[[0.0]] * 5], 1.0),  # experts that are all alike
        ([np.hstack([NOISE + 3] * 3)], [np.hstack([NOISE] * 3)], 0.9),  # one number three times
        ([np.hstack([NOISE + 9, NOISE * 1e9])], [np.hstack([NOISE, NOISE * 1e9])], 1.0),  # units far apart
    ],
    ids=["single state", "all alike", "duplicates", "units"],
)
def test_meagre_vectors(experts: Any, others: Any, best: float) -> None:
    problem = vector_problem(experts, others)
    synthesiser = Synthesiser(problem, 0)
    proposals = [initial(synthesiser, index) for index in range(15)]
    proposals += [mutated(synthesiser, proposals[0], seed) for seed in range(10)]
    proposals = [proposal for proposal in proposals if not proposal.exhausted]
    assert all(read(proposal.source).problems == () for proposal in proposals)
    assert accuracy(proposals[0].source, problem) >= best
    assert all(0.0 <= accuracy(proposal.source, problem) <= 1.0 for proposal in proposals)


def test_vectors_that_never_change_are_a_failure_with_a_reason() -> None:
    synthesiser = Synthesiser(vector_problem([[[0.1, 2.0]] * 4], [[[0.1, 2.0]] * 4]), 0)
    answer = initial(synthesiser, 0)
    assert (answer.source, answer.failure) == ("", "nothing distinguishes the expert states from the others")
    assert initial(synthesiser, 7).failure == answer.failure
    assert answer.exhausted
    assert answer.seconds > 0.0


def test_names_of_fields_are_used() -> None:
    problem = vector_problem([[[1.0, 0.3]] * 3 + [[1.1, 0.1]]], [[[0.0, 0.2]] * 4], ("height of torso", "speed"))
    assert '"height of torso"' in initial(Synthesiser(problem, 0), 0).source


def test_sketches_are_short_json() -> None:
    """They are kept in the store with every program."""
    for data in (grids(), vectors()):
        sketch = initial(Synthesiser(data, 0), 0).sketch
        assert json.loads(sketch)
        assert len(sketch) < 1000
