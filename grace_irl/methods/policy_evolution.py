"""The method `policy-evolution`: GRACE's evolution of programs, but with trained policies as judges.

The score of a program is the score of policies that are trained on the program's rewards. Use this method to compare
GRACE's search with other searches under the same evaluator and proposer.
"""

from __future__ import annotations

from typing import ClassVar

from grace_irl.config import Config
from grace_irl.methods import trained
from grace_irl.methods.method import Course, Phase
from grace_irl.search.protocol import Search
from grace_irl.settings import Section, setting


class PolicyEvolutionConfig(Section):
    """Settings of the evolution. Trainings are expensive, so populations are smaller than GRACE's."""

    panel: ClassVar[str] = "Search"

    population: int = setting(8, "Programs kept.", flag="population", unit="programs", ge=1)
    elite: int = setting(2, "Best programs that always survive.", flag="elite", unit="programs", ge=0)
    generations: int = setting(9, "Rounds of mutation after the first population.", flag="generations", ge=0)
    parent_temperature: float = setting(
        1.0,
        "T of exp(score / T), by which parents are drawn, in units of the score.",
        flag="parent-temperature",
        gt=0,
        allow_inf_nan=False,
    )


def evolution(config: Config) -> Search:
    """Create the search from the settings of a run."""
    from grace_irl.search.evolution import Evolution, EvolutionSettings

    own = config.own(PolicyEvolutionConfig)
    settings = EvolutionSettings(
        population=own.population,
        elite=min(own.elite, own.population // 2),
        generations=own.generations,
        parent_temperature=own.parent_temperature,
    )
    found: Search = Evolution(settings, config.seed)
    return found


def course(config: Config) -> Course:
    """The forecast of a run's requests."""
    from grace_irl.search.evolution import ATTEMPTS

    own = config.own(PolicyEvolutionConfig)
    first = Phase("initialise", own.population, 1)
    retries = Phase("initialise", (ATTEMPTS - 1) * own.population, 1)  # for first programs that fail
    rounds = Phase("mutate", own.generations * own.population, 1)
    return Course((first, rounds), (first, retries, rounds), "all generations", "all generations", own.generations + 1)


METHOD = trained.policy_method(
    "policy-evolution",
    "GRACE's evolution",
    evolution,
    ("policy_evolution", PolicyEvolutionConfig),
    width=lambda config: config.own(PolicyEvolutionConfig).population,
    course=course,
)
