"""The presets: a method is a named choice of search, operators and evaluator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from grace_irl.errors import InputError
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.methods.account import Account
from grace_irl.methods.method import Panel
from grace_irl.methods.separated import SeparationAccount
from grace_irl.runs.config import Config
from grace_irl.search.evolution import Evolution, EvolutionSettings
from grace_irl.search.protocol import Search
from grace_irl.search.reshaping import Reshaping
from grace_irl.settings import Section


def _no_panels(best: Evaluation | None, others: Sequence[Evaluation]) -> Sequence[Panel]:  # noqa: ARG001
    return ()


@dataclass(frozen=True)
class Method:
    """A preset.

    Attributes:
        name: as in `--method`.
        summary: one line for help.
        make_search: from the resolved configuration to a search.
        account: how its evaluations read.
        sections: its own settings by the name of their section (`grace_irl.settings`).
    """

    name: str
    summary: str
    make_search: Callable[[Config], Search]
    account: Account
    panels: Callable[[Evaluation | None, Sequence[Evaluation]], Sequence[Panel]] = _no_panels
    sections: Mapping[str, type[Section]] = field(default_factory=dict)


def _evolution(config: Config) -> Search:
    search = config.search
    settings = EvolutionSettings(
        population=search.population,
        elite=min(search.elite, search.population // 2),  # where all are safe, nothing better would ever enter
        generations=search.generations,
        include_expert=search.include_expert,
        incorrect_only=search.incorrect_only,
        expert_only=search.expert_only,
        parent_temperature=search.parent_temperature,
        samples=search.samples or 1,
        steady=search.steady,
    )
    evolution = Evolution(settings, config.seed)
    return Reshaping(evolution, search.reshape, settings.samples, config.seed) if search.reshape else evolution


METHODS = {
    method.name: method
    for method in (
        Method("grace", "evolution on the discriminator's fitness, offline", _evolution, SeparationAccount()),
    )
}


def method(name: str) -> Method:
    """The preset of this name.

    Raises:
        InputError: for a name that is not a preset.
    """
    if name not in METHODS:
        raise InputError(f"method {name!r} is unknown; expected one of {', '.join(METHODS)}")
    return METHODS[name]
