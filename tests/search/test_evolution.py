"""GRACE's evolution as a pure state machine."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.evaluate.separation import Metrics, Separation
from grace_irl.methods.registry import METHODS
from grace_irl.programs.program import Program
from grace_irl.runs.config import resolve
from grace_irl.search.evolution import ATTEMPTS, Evolution, EvolutionSettings
from grace_irl.search.protocol import Fate, Request, Result, Wait
from grace_irl.search.ranks import Scored, merit, ranked, rivals, winner, winners

SMALL = EvolutionSettings(population=4, elite=1, generations=3)


def metrics(fitness: float, accuracy: float = 0.5, separated: bool = False) -> Metrics:
    return Metrics(fitness, accuracy, accuracy, separated, 10, 10)


def evaluation(
    fitness: float, *, held: float | None = None, separated: bool = False, held_fitness: float = -1.0
) -> Evaluation:
    held_out = None if held is None else metrics(held_fitness, held)
    return Separation(metrics(fitness, 1.0 if separated else 0.8, separated), held_out).evaluation()


def scored(name: str, fitness: float, size: int = 10, index: int = 0, prior: float = 0.0, **more: object) -> Scored:
    """Of ten positive states: a prior of -1 nat weighs as much as 0.1 of fitness."""
    return Scored(Program(name, name, size, prior=prior), evaluation(fitness, **more), index)  # type: ignore[arg-type]


def answer(request: Request, fitness: float, name: str = "", size: int = 10) -> Result:
    program = Program(name or f"p{request.index}", "", size, request.operator, request.parents)
    return Result(request, program, evaluation(fitness))


def drive(
    search: Evolution, reply: Callable[[Request], Result], lag: int = 1
) -> tuple[list[Request], list[Fate], list[tuple[str, ...]]]:
    """Asks ahead as it may, tells in order; returns requests, fates and each generation's population."""
    requests: list[Request] = []
    fates: list[Fate] = []
    populations: list[tuple[str, ...]] = []
    flying: list[Request] = []
    while True:
        while len(flying) < lag:
            asked = search.ask()
            if not isinstance(asked, Request):
                break
            requests.append(asked)
            flying.append(asked)
        if not flying:
            return requests, fates, populations
        before = search.generation
        fates += search.tell(reply(flying.pop(0)))
        if search.generation > before:
            populations.append(search.population)


def random_fitness(request: Request) -> Result:
    return answer(request, float(np.random.default_rng(request.seed).uniform(-1.4, 0)))


def test_the_first_generation_initialises_and_the_others_mutate() -> None:
    requests, _, populations = drive(Evolution(SMALL, 0), random_fitness)
    assert [r.index for r in requests] == list(range(4 + 3 * 4))
    assert {r.operator for r in requests[:4]} == {"initialise"}
    assert {r.operator for r in requests[4:]} == {"mutate"}
    assert all(r.parents[0] in populations[(r.index - 4) // 4] for r in requests[4:])
    assert len(populations) == 4


@given(st.integers(0, 50), st.integers(1, 9))
def test_the_lag_changes_nothing(seed: int, lag: int) -> None:
    assert drive(Evolution(SMALL, seed), random_fitness, lag) == drive(Evolution(SMALL, seed), random_fitness, 1)


@given(st.integers(0, 20), st.integers(1, 12), st.integers(1, 9))
def test_samples_ask_the_same_in_a_row(seed: int, samples: int, lag: int) -> None:
    settings = EvolutionSettings(population=8, elite=1, generations=2, samples=samples)
    requests, _, _ = drive(Evolution(settings, seed), random_fitness, lag)
    assert [r.index for r in requests] == list(range(24))
    sizes = []
    for request in requests:
        if request.sample == 0:
            sizes.append(request.samples)
            first = request
        assert request == replace(first, index=first.index + request.sample, sample=request.sample)
    most = min(samples, 8)
    assert sizes == [n for _ in range(3) for n in [most] * (8 // most) + [8 % most] * bool(8 % most)]


@given(st.integers(0, 20), st.integers(1, 9))
def test_steady_state_waits_for_the_first_population_alone(seed: int, lag: int) -> None:
    settings = EvolutionSettings(population=4, elite=1, generations=3, steady=True)
    search = Evolution(settings, seed)
    requests: list[Request] = []
    told: dict[str, float] = {}
    while len(told) < 16:
        while len(requests) < len(told) + lag:
            asked = search.ask()
            if not isinstance(asked, Request):
                waits = len(requests) == 4 and len(told) < 4
                assert isinstance(asked, Wait) if waits else asked is None
                break
            requests.append(asked)
        result = random_fitness(requests[len(told)])
        assert result.program is not None
        assert result.evaluation is not None
        search.tell(result)
        told[result.program.id] = result.evaluation.score
        # Every result counts at once, and what is asked next sees it.
        assert search.population == tuple(sorted(told, key=lambda name: -told[name])[:4])
        assert search.generation == len(told) // 4
    assert search.ask() is None
    assert [request.operator for request in requests] == ["initialise"] * 4 + ["mutate"] * 12


def untold(request: Request) -> Result:
    return Result(request, failure="untold: it cannot be told from the states: two are equal")


@pytest.mark.parametrize("steady", [False, True])
def test_a_parent_of_which_nothing_more_can_be_told_is_not_mutated_again(steady: bool) -> None:
    """All versions of the two best are given up; the other programs go on."""
    settings = EvolutionSettings(population=4, elite=1, generations=6, steady=steady, parent_temperature=0.1)
    given_up: dict[str, int] = {}  # index of the first such answer

    def reply(request: Request) -> Result:
        if request.parents and request.parents[0] in ("p0", "p1"):
            given_up.setdefault(request.parents[0], request.index)
            return untold(request)
        return answer(request, -0.1 * (request.index + 1))

    requests, _, _ = drive(Evolution(settings, 0), reply)
    assert set(given_up) == {"p0", "p1"}
    for parent, first in given_up.items():
        after = [r.index for r in requests if r.parents == (parent,) and r.index > first]
        assert all(index // 4 == first // 4 and not steady for index in after)  # of the same generation alone
    assert {r.operator for r in requests[4:]} == {"mutate"}


def test_new_programs_follow_if_nothing_can_be_told_of_any() -> None:
    settings = EvolutionSettings(population=2, elite=1, generations=3)
    requests, _, _ = drive(Evolution(settings, 0), lambda r: untold(r) if r.parents else answer(r, -1.0 - r.index))
    by_generation = [{r.operator for r in requests[n : n + 2]} for n in range(0, len(requests), 2)]
    assert by_generation[:2] == [{"initialise"}, {"mutate"}]
    assert {"initialise"} in by_generation[2:]
    assert all(r.index < 8 for r in requests)


@given(st.integers(0, 20), st.integers(1, 9))
def test_the_lag_changes_nothing_if_lines_end(seed: int, lag: int) -> None:
    def reply(request: Request) -> Result:
        ends = request.parents and np.random.default_rng(request.seed).random() < 0.4
        return untold(request) if ends else random_fitness(request)

    assert drive(Evolution(SMALL, seed), reply, lag) == drive(Evolution(SMALL, seed), reply, 1)


def test_it_waits_for_its_generation() -> None:
    search = Evolution(SMALL, 0)
    asked = [search.ask() for _ in range(4)]
    assert isinstance(search.ask(), Wait)
    for request in asked:
        assert isinstance(request, Request)
        search.tell(random_fitness(request))
    assert isinstance(search.ask(), Request)


@given(st.integers(0, 30))
def test_the_population_is_the_best_of_all_told(seed: int) -> None:
    told: dict[str, float] = {}

    def reply(request: Request) -> Result:
        result = random_fitness(request)
        assert result.program is not None
        assert result.evaluation is not None
        told[result.program.id] = result.evaluation.score
        return result

    _, _, populations = drive(Evolution(SMALL, seed), reply)
    assert populations[-1] == tuple(sorted(told, key=lambda name: -told[name])[:4])


@pytest.mark.parametrize("temperature", [1.0, 0.3, 3.0])
def test_parents_are_drawn_by_softmax(temperature: float) -> None:
    settings = EvolutionSettings(population=2, elite=1, generations=1000, parent_temperature=temperature)
    fitness = {0: 0.0, 1: -1.0}
    requests, _, _ = drive(Evolution(settings, 0), lambda r: answer(r, fitness.get(r.index, -9.0)))
    counts = Counter(r.parents[0] for r in requests[2:])
    share = counts["p0"] / counts.total()
    expected = 1 / (1 + math.exp(-1 / temperature))
    assert share == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / counts.total()))


@pytest.mark.parametrize("temperature", [1e-3, 5e-324])
def test_near_zero_the_best_program_alone_is_mutated(temperature: float) -> None:
    settings = EvolutionSettings(population=4, elite=1, generations=20, parent_temperature=temperature)
    requests, _, _ = drive(Evolution(settings, 0), lambda r: answer(r, -float(r.index != 2)))
    assert {r.parents[0] for r in requests[4:]} == {"p2"}


def test_chances_of_the_prompt_follow_table_6() -> None:
    requests, _, _ = drive(Evolution(EvolutionSettings(population=10, generations=200), 0), random_fitness)
    drawn = [dict(r.context) for r in requests if r.context]
    for name, chance in (("include_expert", 0.25), ("incorrect_only", 0.5), ("expert_only", 0.75)):
        assert np.mean([d[name] for d in drawn]) == pytest.approx(chance, abs=0.05)


def test_every_candidate_has_a_fate_with_a_reason() -> None:
    def reply(request: Request) -> Result:
        if request.index == 5:
            return answer(request, -1.0, name="p0")
        if request.index == 6:
            return Result(request, Program("bad", "", 3), Evaluation("timeout", "10 s used up"))
        if request.index == 7:
            stopped = Evaluation("ok", "stopped after 10 of 20 states", bound=-9.0)
            return Result(request, Program("slow", "", 3), stopped)
        return answer(request, -1.0 + 0.01 * request.index)

    _, fates, _ = drive(Evolution(EvolutionSettings(population=4, elite=1, generations=1), 0), reply)
    first = {fate.program_id: fate for fate in fates}
    assert first["bad"].verdict == "invalid"
    assert "10 s used up" in first["bad"].reason
    assert first["slow"].verdict == "dropped"
    assert [f.verdict for f in fates if f.program_id == "p0"] == ["kept", "duplicate", "dropped"]
    assert [f.verdict for f in fates if f.program_id == "p4"] == ["kept"]
    assert all(fate.reason for fate in fates)


def test_a_failed_first_generation_is_filled_up() -> None:
    def reply(request: Request) -> Result:
        return Result(request, failure="no answer") if request.index < 3 else random_fitness(request)

    requests, _, populations = drive(Evolution(SMALL, 0), reply)
    assert len(populations[0]) == 4
    assert [r.operator for r in requests[:7]] == ["initialise"] * 7
    assert requests[7].operator == "mutate"


@pytest.mark.parametrize("exhausted", [False, True])
def test_a_proposer_that_never_answers_ends(exhausted: bool) -> None:
    requests, fates, populations = drive(
        Evolution(SMALL, 0), lambda r: Result(r, failure="exhausted of thinking", exhausted=exhausted)
    )
    first = 4 if exhausted else ATTEMPTS * 4
    assert len(requests) == first + 3 * 4
    assert fates == []
    assert populations == [()] * 4


def test_elites_survive_a_flood_of_equals() -> None:
    def reply(request: Request) -> Result:
        return answer(request, -0.5, size=50 if request.index < 4 else 1)

    _, _, populations = drive(Evolution(SMALL, 0), reply)
    assert populations[0][0] == "p0"
    assert "p0" in populations[1]
    assert "p1" not in populations[1]


def test_floors_follow_the_population() -> None:
    search = Evolution(SMALL, 0)
    assert (search.bar.floor, search.bar.elite) == (-math.inf, -math.inf)
    for number in range(4):
        request = search.ask()
        assert isinstance(request, Request)
        search.tell(answer(request, -0.1 * number))
    assert (search.bar.floor, search.bar.elite) == (pytest.approx(-0.3), pytest.approx(0.0))


def test_finish_decides_a_broken_off_generation() -> None:
    search = Evolution(SMALL, 0)
    request = search.ask()
    assert isinstance(request, Request)
    search.tell(answer(request, -0.4))
    assert search.population == ()
    assert [fate.verdict for fate in search.finish()] == ["kept"]
    assert search.population == ("p0",)


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        ([scored("a", -0.2), scored("b", -0.1)], "b"),
        ([scored("a", -0.1, size=20), scored("b", -0.1 - 1e-10, size=10)], "b"),
        ([scored("a", -0.1, size=20), scored("b", -0.1 - 1e-8, size=10)], "a"),
        ([scored("a", -0.1, index=3), scored("b", -0.1, index=2)], "b"),
        ([scored("a", -0.1, size=5, held=0.9), scored("b", -0.1, size=9, held=1.0)], "a"),
        ([scored("a", -0.1, held=1.0, held_fitness=-2), scored("b", -0.1, size=99, held=1.0)], "a"),
        ([scored("a", -0.1, held=1.0), scored("b", -0.2, held=1.0, held_fitness=0.0)], "a"),
        ([scored("a", -1e-12, separated=True), scored("b", -1e-3, separated=True, size=9)], "b"),
        ([scored("a", -1e-12, separated=True, held=0.9), scored("b", -1e-3, separated=True, held=1.0)], "a"),
        ([scored("a", -0.2), scored("b", -0.1, prior=-0.9)], "b"),
        ([scored("a", -0.2), scored("b", -0.1, prior=-1.1)], "a"),
        ([scored("a", -0.2, held=0.9), scored("b", -0.1, prior=-1.0, held=1.0)], "a"),
        ([scored("a", -0.2, size=99), scored("b", -0.1, prior=-1.0, size=1)], "a"),
        ([scored("a", -0.1, prior=+9.0, size=9), scored("b", -0.1, size=1)], "a"),
        ([scored("a", -0.2, prior=+9.0), scored("b", -0.1)], "b"),
        ([scored("a", -0.05), scored("b", -1e-12, separated=True, prior=-1.4)], "b"),  # 0.9 nats behind
        ([scored("a", -0.05), scored("b", -1e-12, separated=True, prior=-1.6)], "a"),  # 1.1 nats behind
        ([scored("a", -0.05), scored("b", -1e-12, prior=-1.4)], "a"),
    ],
)
def test_the_winner_among_equals(candidates: list[Scored], expected: str) -> None:
    found = winner(candidates)
    assert found is not None
    assert found.program.id == expected
    again = winner(reversed(candidates))
    assert again is not None
    assert again.program.id == expected


def test_chance_does_not_crowd_the_likely_program_out() -> None:
    """Improbable programs that fit a little better than the likely one fill no place above it."""

    def reply(request: Request) -> Result:
        likely = request.index == 0
        program = Program(f"p{request.index}", "", 10, prior=0.0 if likely else -3.0)
        return Result(request, program, evaluation(-0.3 if likely else -0.1 - 0.001 * request.index))

    _, fates, populations = drive(Evolution(SMALL, 0), reply)
    assert [population[0] for population in populations] == ["p0"] * 4
    outside = next(fate for fate in fates if fate.program_id == "p5")
    assert "fitness -0.105, prior -3 nats" in outside.reason


def test_floors_are_merits() -> None:
    search = Evolution(SMALL, 0)
    for number in range(4):
        request = search.ask()
        assert isinstance(request, Request)
        program = Program(f"p{number}", "", 10, prior=-2.0 * number)
        search.tell(Result(request, program, evaluation(-0.1)))
    assert (search.bar.floor, search.bar.elite) == (pytest.approx(-0.7), pytest.approx(-0.1))


def test_a_prior_counts_beside_a_fitness_only() -> None:
    """A score of trained policies is no log-likelihood of labels."""
    better = Scored(Program("a", "a", 10, prior=-9.0), Evaluation("ok", score=0.9), 0)
    worse = Scored(Program("b", "b", 10), Evaluation("ok", score=0.1), 1)
    assert [each.program.id for each in winners([worse, better])] == ["a", "b"]
    assert merit(better) == 0.9


def test_no_winner_without_candidates() -> None:
    assert winner([]) is None
    assert ranked([]) == []


@pytest.mark.parametrize("population", [1, 2, 4, 20])
def test_whatever_its_size_a_population_takes_in_what_is_better(population: int) -> None:
    flags = {"search.population": population, "search.generations": 1, "stop.target_accuracy": None}
    search = METHODS["grace"].search(resolve(flags=flags))
    assert isinstance(search, Evolution)

    def reply(request: Request) -> Result:
        return answer(request, -1.0 if request.operator == "initialise" else -0.1)

    _, _, populations = drive(search, reply)
    assert f"p{population}" in populations[-1]


def test_what_is_better_than_an_elite_and_has_no_place_is_told_so() -> None:
    def reply(request: Request) -> Result:
        return answer(request, -1.0 if request.operator == "initialise" else -0.1)

    _, fates, _ = drive(Evolution(EvolutionSettings(population=2, elite=2, generations=1), 0), reply)
    dropped = [fate.reason for fate in fates if fate.verdict == "dropped"]
    assert dropped
    assert all("above the last kept, which is an elite" in reason for reason in dropped)


def test_rivals_are_those_that_only_size_tells_apart() -> None:
    order = winners(
        [
            scored("small", -1e-12, size=5, separated=True),
            scored("large", -1e-12, size=50, separated=True),
            scored("rare", -1e-12, size=1, separated=True, prior=-3.0),
            scored("worse", -0.3, size=1),
        ]
    )
    assert [each.program.id for each in rivals(order)] == ["small", "large"]
    alone = [scored("a", -0.1), scored("b", -0.2)]
    assert [each.program.id for each in rivals(alone)] == ["a"]
