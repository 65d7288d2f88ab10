"""Drafts of readings: each operator keeps what it shall keep, and no label is read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import Demonstration, Role, Trajectory
from grace_irl.errors import InputError
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.programs.check import read
from grace_irl.programs.program import Program
from grace_irl.propose.protocol import Parent
from grace_irl.search.protocol import Request
from grace_irl.synthesis.grid.drafter import DraftReading, GridDrafter
from grace_irl.synthesis.grid.meaning import Plan
from tests.synthesis.worlds import COLOURS, KINDS, labelled, random_play, text

SEEDS = range(30)


@pytest.fixture(scope="module")
def items() -> Sequence[Labelled]:
    """Episodes in which many events happen, under instructions of two phrases."""
    rng = np.random.default_rng(0)
    found = []
    for number in range(12):
        said = " dol ".join(text(str(rng.choice(list(COLOURS))), str(rng.choice(list(KINDS)))) for _ in range(2))
        role: Role = "expert" if number % 2 else "negative"
        found.append(Demonstration(Trajectory(random_play(rng, 60).stack(), extra_info=said), role))
    return labelled(found)


@pytest.fixture(scope="module")
def drafter(items: Sequence[Labelled]) -> GridDrafter:
    return GridDrafter(items)


def parent(drafter: GridDrafter, draft: DraftReading) -> Parent:
    return Parent(Program(drafter.source(draft), draft.text(), 0), Evaluation("ok"), sketch=draft.text())


def answered(drafter: GridDrafter, operator: str, seed: int, *shown: DraftReading, parents: int = 1) -> DraftReading:
    request = Request(seed, operator, tuple(map(str, range(parents if shown else 0))), seed)
    found = asyncio.run(drafter.propose(request, [parent(drafter, each) for each in shown]))
    assert not found.failure
    assert not read(found.source).problems
    assert found.reasoning
    return DraftReading.of(found.sketch)


def drawn(drafter: GridDrafter, count: int) -> list[DraftReading]:
    return [answered(drafter, "initialise", seed) for seed in range(count)]


def test_a_draft_is_its_text(drafter: GridDrafter) -> None:
    for draft in drawn(drafter, 10):
        assert DraftReading.of(draft.text()) == replace(draft, words=dict(sorted(draft.words.items())))


def test_a_draft_keeps_the_order_of_its_constants() -> None:
    constants = {"event": 1} | {f"channel {number}": number for number in range(3)} | {"half": 2}
    for given in (constants, dict(reversed(constants.items()))):
        draft = DraftReading(Plan(), given, {})  # type: ignore[arg-type]
        assert list(DraftReading.of(draft.text()).constants) == ["event", *sorted({*constants} - {"event"})]


@pytest.mark.parametrize("sketch", ["", "[]", "7", '[[["then", "no"]], {"event": 1}, {}]', "[[], {}, {}]", "[" * 9999])
def test_another_text_is_refused(sketch: str) -> None:
    with pytest.raises(InputError, match="no draft"):
        DraftReading.of(sketch)


def test_drafts_differ_and_equal_requests_have_equal_answers(drafter: GridDrafter) -> None:
    found = drawn(drafter, 30)
    assert found == drawn(drafter, 30)
    assert len({each.text() for each in found}) > 25
    assert len({each.constants["event"] for each in found}) > 1
    assert any(each.words for each in found)


def test_labels_are_not_read(items: Sequence[Labelled], drafter: GridDrafter) -> None:
    rng = np.random.default_rng(0)
    shuffled = [replace(item, positive=rng.permutation(item.positive)) for item in items]
    none = [replace(item, positive=np.zeros_like(item.positive)) for item in items]
    for other in (shuffled, none):
        assert drawn(GridDrafter(other), 30) == drawn(drafter, 30)
    features = {each.feature for draft in drawn(drafter, 30) for each in draft.words.values()}
    assert {"half", "shared 0", "shared 1"} <= features  # although no label says that they matter


def test_a_plan_has_no_words(drafter: GridDrafter) -> None:
    assert not any(answered(drafter, "plan", seed).words for seed in SEEDS)


def test_structure_keeps_the_words(drafter: GridDrafter) -> None:
    for seed, draft in zip(SEEDS, drawn(drafter, 30), strict=True):
        found = answered(drafter, "structure", seed, draft)
        split = dict(found.plan.separators)
        assert found.words == {word: each for word, each in draft.words.items() if word not in split}
        assert found != draft


def test_weights_keep_all_features(drafter: GridDrafter) -> None:
    for seed, draft in zip(SEEDS, drawn(drafter, 30), strict=True):
        found = answered(drafter, "weights", seed, draft)
        assert found.plan == draft.plan
        assert found.constants.keys() == draft.constants.keys()
        assert {w: f.feature for w, f in found.words.items()} == {w: f.feature for w, f in draft.words.items()}


def test_crossover_has_parts_of_its_parents_only(drafter: GridDrafter) -> None:
    drafts = drawn(drafter, 31)
    for seed, one, other in zip(SEEDS, drafts, drafts[1:], strict=False):
        found = answered(drafter, "crossover", seed, one, other, drafts[0], parents=2)
        assert found.plan in (one.plan, other.plan)
        assert set(found.constants.items()) <= {*one.constants.items(), *other.constants.items()}
        assert {(w, f) for w, f in found.words.items()} <= {*one.words.items(), *other.words.items()}


def test_path_keeps_what_all_programs_share(drafter: GridDrafter) -> None:
    for seed, draft in zip(SEEDS, drawn(drafter, 30), strict=True):
        above = answered(drafter, "mutate", seed, draft)
        found = answered(drafter, "path", seed + 100, above, draft)
        assert {w: f for w, f in above.words.items() if draft.words.get(w) == f}.items() <= found.words.items()
        shared = {f: v for f, v in above.constants.items() if draft.constants.get(f) == v}
        assert shared.items() <= found.constants.items()


def test_a_different_draft_shares_neither_event_nor_meaning(drafter: GridDrafter) -> None:
    drafts = drawn(drafter, 31)
    for seed, one, other in zip(SEEDS, drafts, drafts[1:], strict=False):
        found = answered(drafter, "different", seed, one, other)
        assert not {*found.words.items()} & {*one.words.items(), *other.words.items()}
        if one.constants["event"] == other.constants["event"]:
            assert found.constants["event"] != one.constants["event"]
