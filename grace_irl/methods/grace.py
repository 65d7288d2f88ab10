"""GRACE: evolution on the discriminator's fitness, offline (section 4, phase 2, and table 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from grace_irl.config import Config
from grace_irl.methods.method import Method
from grace_irl.methods.separated import SeparationAccount

if TYPE_CHECKING:
    from grace_irl.demos.labels import Problem
    from grace_irl.evaluate.evaluation import Evaluator
    from grace_irl.propose.material import Workbench
    from grace_irl.propose.rendering import Operator
    from grace_irl.search.protocol import Search


def evolution(config: Config) -> Search:
    """GRACE's evolution under these settings, and what reshapes its best program if that is wanted."""
    from grace_irl.search.evolution import Evolution, EvolutionSettings
    from grace_irl.search.reshaping import Reshaping

    search = config.search
    settings = EvolutionSettings(
        population=search.population,
        elite=min(search.elite, search.population // 2),  # if all were safe, nothing better could enter
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
    """The discriminator's fitness (equation 4.1).

    Raises:
        InputError: log pi cannot be found in these data.
    """
    from grace_irl.evaluate.log_pi import log_pi

    pi = log_pi(problem, config.fitness.log_pi)

    def opened(bench: Workbench) -> Evaluator:
        from grace_irl.evaluate.evaluator import DiscriminatorEvaluator

        return DiscriminatorEvaluator(
            bench.problem,
            bench.sandbox,
            log_pi=pi,
            calibrated=config.fitness.calibrate,
            cache=bench.rewards,
            limits=bench.limits,
        )

    return opened


def operators() -> Mapping[str, Operator]:
    """Initialise, mutate, reshape."""
    from grace_irl.methods.grace_operators import OPERATORS

    return OPERATORS


METHOD = Method(
    name="grace",
    summary="evolution on the discriminator's fitness, offline",
    search=evolution,
    evaluator=discriminator,
    account=SeparationAccount(),
    operators=operators,
    reads=("search.", "fitness.", "expand.", "stop.target_accuracy", "data."),
    width=lambda config: config.search.population,
)
