"""Reshaping as a pure state machine around another."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.evaluate.separation import Metrics, Separation
from grace_irl.programs.program import Program
from grace_irl.search.evolution import Evolution, EvolutionSettings
from grace_irl.search.protocol import Fate, Request, Result, Wait
from grace_irl.search.reshaping import Reshaping, compared

SMALL = EvolutionSettings(population=3, elite=1, generations=1)
Reply = Callable[[Request], Result]


def judged(
    tau: float | None, accuracy: float = 1.0, held: float | None = 1.0, fitness: float = -0.1, apart: bool = True
) -> Evaluation:
    def metrics(value: float) -> Metrics:
        return Metrics(fitness, value, value, apart and value == 1.0, 5, 5)

    held_out = None if held is None else metrics(held)
    return Separation(metrics(accuracy), held_out, monotonicity=tau).evaluation()


def searched(request: Request, tau: float | None = 0.2) -> Result:
    """Of the search itself: later is fitter."""
    program = Program(f"s{request.index}", "", 10, request.operator, request.parents)
    return Result(request, program, judged(tau, fitness=-1.0 + 0.01 * request.index))


def reply(*versions: Evaluation | str) -> Reply:
    """Answers requests to reshape one after the other, by an evaluation or a failure."""
    left = list(versions)

    def answer(request: Request) -> Result:
        if request.operator != "reshape":
            return searched(request)
        found = left.pop(0)
        if isinstance(found, str):
            return Result(request, failure=found)
        return Result(request, Program(f"r{request.index}", "", 10, "reshape", request.parents), found)

    return answer


def drive(
    search: Reshaping, answer: Reply, lag: int = 1, conclude_after: int | None = None
) -> tuple[list[Request], list[Fate]]:
    requests: list[Request] = []
    fates: list[Fate] = []
    flying: list[Request] = []
    told = 0
    while True:
        while len(flying) < lag:
            asked = search.ask()
            if not isinstance(asked, Request):
                break
            requests.append(asked)
            flying.append(asked)
        if not flying:
            assert asked is None
            return requests, [*fates, *search.finish()]
        fates += search.tell(answer(flying.pop(0)))
        told += 1
        if told == conclude_after:
            assert search.conclude()


@pytest.mark.parametrize("lag", [1, 2, 50])
def test_the_best_program_is_reshaped_after_the_search(lag: int) -> None:
    search = Reshaping(Evolution(SMALL, 0), 4, 2, 0)
    requests, _ = drive(search, reply(judged(0.1), judged(0.4), judged(0.9), judged(0.6)), lag)
    assert [r.operator for r in requests] == ["initialise"] * 3 + ["mutate"] * 3 + ["reshape"] * 4
    assert [r.index for r in requests] == list(range(10))
    assert {r.parents for r in requests[6:]} == {("s5",)}
    assert [(r.sample, r.samples) for r in requests[6:]] == [(0, 2), (1, 2), (0, 2), (1, 2)]
    assert requests[6].seed == requests[7].seed != requests[8].seed
    assert search.heirs == ("r8", "r9", "r7")  # most monotone first
    assert search.best[:3] == search.heirs
    assert "s5" in search.best


def test_fates_say_what_became_of_the_scores() -> None:
    search = Reshaping(Evolution(SMALL, 0), 5, 5, 0)
    versions = (judged(0.7), judged(0.1), judged(0.9, accuracy=0.8), "no answer", judged(None))
    _, fates = drive(search, reply(*versions))
    said = {fate.program_id: (fate.verdict, fate.reason) for fate in fates if fate.program_id.startswith("r")}
    assert said == {
        "r6": (
            "kept",
            "reshaped: monotonicity 0.2 -> 0.7, accuracy 1 stays",
        ),
        "r7": ("dropped", "reshaped: monotonicity 0.2 -> 0.1: not higher"),
        "r8": ("dropped", "reshaped: accuracy 1 -> 0.8: lower; train states are no longer separated"),
        "r10": ("dropped", "reshaped: monotonicity 0.2 -> none: not higher"),
    }


@pytest.mark.parametrize(
    ("new", "kept"),
    [
        (judged(0.21), True),
        (judged(0.2), False),
        (judged(0.2 + 1e-12), False),
        (judged(0.9, accuracy=0.999), False),
        (judged(0.9, held=0.9), True),  # held-out data choose nothing
        (judged(0.9, held=None), True),
        (judged(0.9, apart=False), False),
        (judged(0.9, fitness=-5.0), True),
    ],
)
def test_what_is_kept(new: Evaluation, kept: bool) -> None:
    problem, words = compared(judged(0.2), new)
    assert (problem == "") == kept
    assert words.startswith("monotonicity 0.2")


def test_programs_that_fail_or_were_tried_before() -> None:
    def answer(request: Request) -> Result:
        if request.operator != "reshape":
            return searched(request)
        if request.index == 6:
            return Result(request, Program("s2", "", 10), judged(0.9))
        return Result(request, Program("bad", "", 3), Evaluation("timeout", "10 s used up"))

    search = Reshaping(Evolution(SMALL, 0), 2, 1, 0)
    _, fates = drive(search, answer)
    assert [(f.program_id, f.verdict) for f in fates[-2:]] == [("s2", "duplicate"), ("bad", "invalid")]
    assert search.heirs == ()


@pytest.mark.parametrize("steady", [False, True])
@pytest.mark.parametrize("lag", [1, 3])
def test_a_stop_rule_ends_the_search_and_not_the_reshaping(steady: bool, lag: int) -> None:
    settings = EvolutionSettings(population=3, elite=1, generations=9, steady=steady)
    search = Reshaping(Evolution(settings, 0), 2, 1, 0)
    requests, _ = drive(search, reply(judged(0.5), judged(0.6)), lag, conclude_after=6)
    own = [r for r in requests if r.operator != "reshape"]
    assert len(own) == (6 + lag - 1 if steady else 6)  # what was asked for by then is still told
    assert [r.operator for r in requests[-2:]] == ["reshape"] * 2
    assert requests[-1].parents == (f"s{len(own) - 1}",)
    assert search.heirs == (f"r{len(own) + 1}", f"r{len(own)}")


def test_it_waits_for_what_is_in_flight() -> None:
    search = Reshaping(Evolution(EvolutionSettings(population=2, elite=1, generations=5, steady=True), 0), 1, 1, 0)
    first, second = search.ask(), search.ask()
    assert isinstance(first, Request)
    assert isinstance(second, Request)
    search.tell(searched(first))
    assert search.conclude()
    assert isinstance(search.ask(), Wait)
    search.tell(searched(second))
    asked = search.ask()
    assert isinstance(asked, Request)
    assert (asked.operator, asked.index) == ("reshape", 2)
    assert (search.bar.floor, search.bar.elite) == (float("-inf"), float("-inf"))
    assert search.ask() is None


@pytest.mark.parametrize("tau", [1.0, None])
def test_nothing_to_gain_nothing_asked(tau: float | None) -> None:
    search = Reshaping(Evolution(SMALL, 0), 3, 1, 0)
    requests, _ = drive(search, lambda request: searched(request, tau))
    assert {r.operator for r in requests} == {"initialise", "mutate"}


def test_without_a_program_nothing_is_asked() -> None:
    search = Reshaping(Evolution(SMALL, 0), 3, 1, 0)
    requests, fates = drive(search, lambda request: Result(request, failure="no answer"))
    assert {r.operator for r in requests} == {"initialise"}
    assert fates == []


def test_a_run_that_ends_before_its_search_decides_what_was_told() -> None:
    search = Reshaping(Evolution(SMALL, 0), 3, 1, 0)
    request = search.ask()
    assert isinstance(request, Request)
    search.tell(searched(request))
    assert [fate.verdict for fate in search.finish()] == ["kept"]
    assert search.best == ("s0",)


@given(
    st.lists(
        st.tuples(st.sampled_from([0.1, 0.2, 0.5, 0.9]), st.sampled_from([0.9, 1.0]), st.sampled_from([0.8, 1.0])),
        min_size=1,
        max_size=6,
    ),
    st.integers(1, 4),
)
def test_no_heir_is_worse_than_what_it_came_from(found: list[tuple[float, float, float]], lag: int) -> None:
    search = Reshaping(Evolution(SMALL, 0), len(found), 1, 0)
    versions = {f"r{6 + n}": judged(*values) for n, values in enumerate(found)}
    drive(search, reply(*versions.values()), lag)
    good = {name for name, (tau, train, held) in zip(versions, found, strict=True) if tau > 0.2 and train == 1}
    assert set(search.heirs) == good
    taus = [versions[name].metrics["monotonicity"] for name in search.heirs]
    assert taus == sorted(taus, reverse=True)
