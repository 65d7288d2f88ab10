"""Methods with two forms. In a run with `--task`, trained policies judge programs; otherwise, demonstrations do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from grace_irl.config import Config, StopConfig
from grace_irl.methods import trained
from grace_irl.methods.grace import FitnessConfig, discriminator
from grace_irl.methods.method import Course, Method, Panel, repairs_of
from grace_irl.methods.separated import SeparationAccount
from grace_irl.settings import Section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_irl.propose.protocol import Following
    from grace_irl.propose.rendering import Operator
    from grace_irl.search.protocol import Search
    from grace_irl.search.ranks import Scored


def operators(config: Config) -> Mapping[str, Operator]:  # noqa: ARG001
    """The operators for runs without a task."""
    from grace_irl.methods.directed_operators import OPERATORS

    return OPERATORS


def two_forms(
    name: str,
    summary: str,
    search: Callable[[Config], Search],
    section: tuple[str, type[Section]],
    width: Callable[[Config], int],
    course: Callable[[Config], Course],
    *,
    following: Callable[[Config], Following] = repairs_of,
    more: Callable[[Scored | None, Sequence[Scored], Config], Sequence[Panel]] = lambda best, others, config: (),  # noqa: ARG005
    stop: type[StopConfig] = StopConfig,
    reads: tuple[str, ...] = (),
    waits: Callable[[Config], bool] = lambda _: True,
) -> Method:
    """Make a method with two forms from one search.

    Args:
        name, summary, search, width, course, following, waits: as for `Method`.
        section: name and class of the search's settings.
        more: function that returns panels of the report about the search. Its arguments are those of `Method.panels`.
        stop: class of the stop rules.
        reads: optional settings that both forms read (`Method.reads`).
    """
    sections: dict[str, type[Section]] = {
        section[0]: section[1],
        "fitness": FitnessConfig,
        "policy": trained.PolicyConfig,
        **({} if stop is StopConfig else {"stop": stop}),
    }
    by_policies = trained.policy_method(name, summary, search, section, width, course, following=following, more=more)
    told = f"{summary}, on the discriminator's fitness, or with --task by trained policies"
    return Method(
        name=name,
        summary=told,
        search=search,
        evaluator=discriminator,
        account=SeparationAccount(),
        operators=operators,
        following=following,
        panels=more,
        sections=sections,
        reads=("stop.target_accuracy", "data.", *reads),
        width=width,
        waits=waits,
        course=course,
        with_task=replace(by_policies, summary=told, sections=sections, reads=reads, waits=waits),
    )
