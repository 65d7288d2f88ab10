"""The method `grace`: evolution of programs by the fitness of a discriminator (docs/fitness.md).

The method is offline: it trains no policy. The source is the GRACE paper, phase 2 of section 4, and table 6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from grace_irl.config import Config, PlateauConfig, SearchConfig
from grace_irl.methods.method import Course, Method, Phase
from grace_irl.methods.separated import SeparationAccount
from grace_irl.settings import Section, setting

if TYPE_CHECKING:
    from grace_irl.demos.labels import Problem
    from grace_irl.evaluate.evaluation import Evaluator
    from grace_irl.propose.material import Workbench
    from grace_irl.propose.rendering import Operator
    from grace_irl.search.protocol import Search


class EvolutionConfig(SearchConfig):
    """The search; the defaults are those of GRACE's table 6."""

    population: int = setting(20, "Programs kept.", unit="programs", ge=1)
    elite: int = setting(
        4, "Best programs that always survive.", unit="programs", ge=0, details="At most half of them do."
    )
    generations: int = setting(100, "Rounds of mutation after the first population, at most.", ge=0)
    include_expert: float = setting(
        0.25, "Chance that a mutation prompt shows one more expert trajectory.", needs="prompts", ge=0, le=1
    )
    incorrect_only: float = setting(
        0.5, "Chance that a mutation prompt shows incorrect states only.", needs="prompts", ge=0, le=1
    )
    expert_only: float = setting(
        0.75, "Chance that a mutation prompt shows expert states only.", needs="prompts", ge=0, le=1
    )
    parent_temperature: float = setting(
        1.0,
        "T of exp(fitness / T), by which parents are drawn.",
        gt=0,
        allow_inf_nan=False,
        details="1 is the paper's; near 0 only the best program is mutated.",
    )
    steady: bool = setting(
        False, "Take results into the population one by one, not by generations: keeps a server busy."
    )
    reshape: int = setting(
        0,
        "After the search, ask for this many versions of the best program that rise more steadily along experts.",
        unit="programs",
        ge=0,
        details="A version is kept only if accuracy does not fall.",
    )


class FitnessConfig(Section):
    """The discriminator (docs/fitness.md)."""

    panel: ClassVar[str] = "Search"
    needs: ClassVar[str] = "no task"
    short: ClassVar[bool] = True

    log_pi: Literal["constant", "uniform", "recorded", "cloned"] = setting(
        "constant", "pi in the discriminator: constant, uniform, recorded or cloned."
    )
    calibrate: bool = setting(True, "Fit a scale and an offset to the reward; without, it counts as it is.")


def evolution(config: Config) -> Search:
    """The evolutionary search. If `search.reshape` is positive, reshaping of the best program follows."""
    from grace_irl.search.evolution import Evolution, EvolutionSettings
    from grace_irl.search.reshaping import Reshaping

    search = config.own(EvolutionConfig)
    settings = EvolutionSettings(
        population=search.population,
        elite=min(search.elite, search.population // 2),  # if all were elites, no better program could enter
        generations=search.generations,
        include_expert=search.include_expert,
        incorrect_only=search.incorrect_only,
        expert_only=search.expert_only,
        parent_temperature=search.parent_temperature,
        samples=search.samples or 1,
        steady=search.steady,
    )
    found = Evolution(settings, config.seed)
    return Reshaping(found, search.reshape, settings.samples, config.seed) if search.reshape else found


def discriminator(problem: Problem, config: Config) -> Callable[[Workbench], Evaluator]:
    """Return a function that creates the evaluator of a run.

    The returned function takes the run's `Workbench`: data, sandbox and a cache of rewards. The evaluator scores
    programs by the discriminator's fitness (GRACE, eq. 4.1).

    Raises:
        InputError: the data lacks what `fitness.log_pi` needs, for example actions.
    """
    from grace_irl.evaluate.log_pi import log_pi

    settings = config.own(FitnessConfig)
    pi = log_pi(problem, settings.log_pi)

    def opened(bench: Workbench) -> Evaluator:
        from grace_irl.evaluate.evaluator import DiscriminatorEvaluator

        return DiscriminatorEvaluator(
            bench.problem,
            bench.sandbox,
            log_pi=pi,
            calibrated=settings.calibrate,
            cache=bench.rewards,
            limits=bench.limits,
        )

    return opened


def operators(config: Config) -> Mapping[str, Operator]:  # noqa: ARG001
    """The operators "initialise", "mutate" and "reshape", by name."""
    from grace_irl.methods.grace_operators import OPERATORS

    return OPERATORS


def course(config: Config) -> Course:
    """The forecast of a run's requests: the first population, rounds of mutation, and reshaping."""
    from grace_irl.search.evolution import ATTEMPTS

    search, plateau = config.own(EvolutionConfig), config.stop.plateau
    size, rounds = search.population, search.generations
    usual = rounds if plateau is None else min(rounds, plateau)
    reshaping = [Phase("reshape", search.reshape, search.reshape)] if search.reshape else []
    # An answer without a valid program causes another request for the first population, perhaps in a call of its own.
    retries = 0 if search.steady else (ATTEMPTS - 1) * size
    first = Phase("initialise", size, size)
    end = (
        f"ends after {usual} generations without improvement (plateau)"
        if usual < rounds
        else f"goes through all {rounds} generations"
    )
    return Course(
        typical=(first, Phase("mutate", usual * size, size), *reshaping),
        most=(first, Phase("initialise", retries, 1), Phase("mutate", rounds * size, size), *reshaping),
        typically=f"the first population of {size}, then a search that {end}",
        at_most=f"all {rounds} generations",
        generations=rounds + 1,
    )


METHOD = Method(
    name="grace",
    summary="evolution on the discriminator's fitness, offline",
    search=evolution,
    evaluator=discriminator,
    account=SeparationAccount(),
    operators=operators,
    sections={"search": EvolutionConfig, "stop": PlateauConfig, "fitness": FitnessConfig},
    reads=("expand.", "search.samples", "stop.target_accuracy", "data."),
    width=lambda config: config.own(EvolutionConfig).population,
    course=course,
)
