"""The early program of a long search for readings."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pytest

from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import Demonstrations, Metadata
from grace_irl.propose.protocol import Proposal
from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.fit import start
from grace_irl.runs.run import Run
from grace_irl.search.protocol import Request
from grace_irl.synthesis import Synthesiser
from grace_irl.synthesis.grid import sketcher as sketchers
from grace_irl.synthesis.grid.scene import Perception
from grace_irl.synthesis.grid.search import PerceivedStates, PlanSearch, search, view
from grace_irl.synthesis.grid.sketcher import EARLY, GridSketcher
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.synthesis.grid.test_decide import BUSY
from tests.synthesis.grid.test_search import two_steps
from tests.synthesis.worlds import go_to_set, labelled, problem


@pytest.fixture(scope="module")
def steps() -> Sequence[Labelled]:
    """ "Go to A, then to B": plans with a separator are tried after whole instructions."""
    return labelled(two_steps(0, 8, "then"))


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every search is long."""
    monkeypatch.setattr(sketchers, "EARLY_STEPS", 1)


def test_an_early_answer_does_not_change_the_search(steps: Sequence[Labelled]) -> None:
    seen = view(steps)
    plain, hurried = search(seen, 0), PlanSearch(view(steps), 0)
    early = hurried.early(1)
    assert early is not None
    assert early.lexicon.plan.separators == ()
    assert early.cost > plain[0].cost
    assert [(one.lexicon.plan, one.posterior) for one in hurried.finish()] == [
        (one.lexicon.plan, one.posterior) for one in plain
    ]
    assert plain[0].lexicon.plan.separators


def test_a_short_search_has_no_early_answer(steps: Sequence[Labelled]) -> None:
    quick = PlanSearch(view(steps), 0)
    assert quick.early(10**9) is None
    assert quick.finish()
    assert next(iter(GridSketcher(labelled(go_to_set(0, 6, 6)), 0).initial())).startswith("[0,")


@pytest.mark.usefixtures("hasty")
def test_the_early_program_comes_first_and_ranks_last(steps: Sequence[Labelled]) -> None:
    sketcher = GridSketcher(steps, 0)
    sketches = sketcher.initial()
    first = next(sketches)
    assert first.startswith(f"[{EARLY},")
    early = sketcher.prior(first)
    assert "_found" not in vars(sketcher)  # it did not wait for the search
    rest = list(sketches)
    assert "_found" in vars(sketcher)
    assert early < min(map(sketcher.prior, rest[:3]))  # the best plan in three styles
    assert sketcher.prior(rest[0]) == 0.0
    assert sketcher.source(first) != sketcher.source(rest[0])
    child = sketcher.mutate(first, 3)
    assert sketcher.source(child)
    assert sketcher.prior(child) <= 0.0


@pytest.mark.usefixtures("hasty")
def test_the_early_program_may_be_the_best() -> None:
    """Then it is proposed once, and still ranks first."""
    items = go_to_set(0, 6, 6)
    sketcher = GridSketcher(labelled(items), 0)
    first, *rest = sketcher.initial()
    sources = [sketcher.source(sketch) for sketch in rest]
    assert sketcher.source(first) == sources[0]
    assert sketcher.prior(first) == max(map(sketcher.prior, [first, *rest])) < 0.0
    synthesiser = Synthesiser(problem(items), 0)
    proposed = [initial(synthesiser, index) for index in range(8)]
    assert proposed[0].prior == max(each.prior for each in proposed if each.source)
    assert len({each.source for each in proposed}) == len(proposed)


@pytest.mark.usefixtures("hasty")
def test_answers_of_a_long_search_do_not_depend_on_their_order() -> None:
    items = problem(go_to_set(0, 6, 6))
    one, other = Synthesiser(items, 3), Synthesiser(items, 3)
    asked = [initial(one, index) for index in range(4)]
    again = [initial(other, index) for index in (3, 1, 0, 2)]
    assert [each.source for each in asked] == [again[place].source for place in (2, 1, 3, 0)]
    assert [each.prior for each in asked] == [again[place].prior for place in (2, 1, 3, 0)]


@pytest.mark.usefixtures("hasty")
def test_a_resumed_run_that_asks_for_a_variation_first_has_the_same_programs(steps: Sequence[Labelled]) -> None:
    one, other = GridSketcher(steps, 0), GridSketcher(steps, 0)
    sketches = list(one.initial())
    assert other.mutate(sketches[1], 5) == one.mutate(sketches[1], 5)
    assert list(other.initial()) == sketches
    assert list(map(other.prior, sketches)) == list(map(one.prior, sketches))


@pytest.mark.usefixtures("hasty")
def test_the_early_program_is_no_worse_than_a_single_condition() -> None:
    """ "The key is faced" costs less, but "it changes" fits the labels better."""
    sketcher = GridSketcher.__new__(GridSketcher)
    sketcher._view = PerceivedStates(Perception(None, ()), (), BUSY)
    sketcher._search = PlanSearch(sketcher._view, 0)
    first, second = islice(sketcher.initial(), 2)
    assert first.startswith(f"[{EARLY},")
    assert "has just changed" in sketcher.reasoning(first)
    assert sketcher.source(first) == sketcher.source(second)


def initial(synthesiser: Synthesiser, index: int) -> Proposal:
    return asyncio.run(synthesiser.propose(Request(index, "initialise", seed=100 + index), ()))


@pytest.mark.usefixtures("hasty")
def test_the_early_program_is_replayed_and_started_from(tmp_path: Path) -> None:
    """A replay has the same programs and the same winner; a run that starts from the first keeps its winner."""
    demonstrations = Demonstrations(Metadata("grid"), tuple(two_steps(0, 8, "then")))
    flags = {"search.population": 4, "search.elite": 2, "search.generations": 1, "data.held_out": 0.0}

    def run(name: str, **more: object) -> Run:
        parts = Parts(demonstrations, sandbox=InProcessSandbox())
        return start(resolve(flags={**flags, "data.label": "last", **more}), tmp_path / name, parts)

    first = run("first")
    programs = list(first.candidates.index)
    assert first.candidates.source.iloc[0] != first.best.source  # the early program
    again = run("again", **{"proposer.name": "replay", "proposer.recording": str(tmp_path / "first")})
    assert list(again.candidates.index) == programs
    assert again.best.source == first.best.source
    later = run("later", **{"proposer.start_from": (str(tmp_path / "first"),), "seed": 1})
    assert later.best.source == first.best.source
