"""Operators, which write prompts from templates (docs/prompts.md).

All operators here call `compose` to write a prompt. Every search method has operators `repair` and `clean`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from jinja2 import Template

from grace_irl.demos.labels import Labelled
from grace_irl.errors import InputError
from grace_irl.propose.briefing import Briefing, PromptBudget, renamed
from grace_irl.propose.material import Material
from grace_irl.propose.pictures import most_of_captions, pictures
from grace_irl.propose.protocol import Prompt
from grace_irl.propose.sections import needed, section, wanted
from grace_irl.propose.templates import render
from grace_irl.propose.tokens import cut, estimate
from grace_irl.propose.views.trajectory import Shown


def repair(briefing: Briefing, material: Material) -> Prompt:
    """Write the prompt that requests a repair of `Material.source`, with the error in `Material.evaluation`."""
    evaluation = material.evaluation
    parts: list[str] = []
    if evaluation is not None and not evaluation.valid:
        parts = [f"{evaluation.status}: {evaluation.message}", evaluation.traceback.strip()]
    return compose(
        briefing,
        "repair",
        {},
        source=cut(material.source.strip(), briefing.budget.of("source")),
        fault=cut("\n".join(part for part in parts if part), briefing.budget.of("traceback")) or "It does not run.",
    )


def clean(briefing: Briefing, material: Material) -> Prompt:
    """Write the prompt that requests goal states of expert trajectories (docs/runs.md, "Goal states").

    The input is `Material.trajectories`. The parser of the answer is `goals.parse_goals`.
    """
    shown = [Shown(item, marks=False) for item in renamed(material.trajectories, briefing.names)]
    return compose(briefing, "clean", {"trajectories": shown}, instructions=briefing.instructed)


@dataclass(frozen=True)
class Operator:
    """A function that writes one kind of prompt. All random choices depend on `Material.seed` alone.

    Attributes:
        write: function that writes the prompt from a briefing (the part that all prompts share) and material.
        debugged: function that returns the trajectories for which the prompt shows debug output (`Material.debug`), by
            section. None if the prompt shows no debug output.
    """

    write: Callable[[Briefing, Material], Prompt]
    debugged: Callable[[Briefing, Material], Mapping[str, Sequence[Shown]]] | None = None

    def __call__(self, briefing: Briefing, material: Material) -> Prompt:
        """Write the prompt."""
        return self.write(briefing, material)


def compose(
    briefing: Briefing, template: str | Template, shown: Mapping[str, Sequence[Shown]], **values: object
) -> Prompt:
    """Write a prompt from a template.

    The sections with trajectories share the tokens that the other parts leave. If the shortest forms of these sections
    do not fit, the last sections are left out. The first section always stays. With `Briefing.images`, pictures follow
    the text.

    Args:
        briefing: the common part of all prompts.
        template: name of a template under `prompts/`, or a template from `templates.from_text`.
        shown: the trajectories of each section. The keys are the template variables for the texts of the sections.
        **values: values of the template's other variables.

    Raises:
        InputError: the prompt does not fit into the budget's total.
    """
    name = template if isinstance(template, str) else template.name or "own"
    system = briefing.clean_system if name == "clean" else briefing.system
    view, budget = briefing.view, briefing.budget

    def user(sections: Mapping[str, str]) -> str:
        return render(template, preamble=briefing.preamble, **values, **sections)

    def fixed_in(kept: Mapping[str, Sequence[Shown]]) -> int:
        # Headings count, too. The template writes no heading above an empty section, so each section with trajectories
        # gets the text "-".
        tokens = estimate(system) + estimate(user({key: "-" if each else "" for key, each in kept.items()}))
        listed = [shown for each in kept.values() for shown in each]
        return tokens + (most_of_captions(listed) if briefing.images and listed else 0)

    whole = {key: wanted(view, each) for key, each in shown.items()}
    shortest = {key: min(needed(view, each), whole[key]) for key, each in shown.items()}
    filled = [key for key, each in shown.items() if each]
    while (fixed := fixed_in(shown)) + sum(shortest.values()) > budget.total and len(filled) > 1:
        last = filled.pop()
        shown, whole, shortest = {**shown, last: ()}, {**whole, last: 0}, {**shortest, last: 0}
    room = budget.room(fixed, sum(whole.values()), briefing.spared)
    least = sum(shortest.values())
    require_room(f"a prompt ({name})", fixed + least, budget)
    # Each section gets the tokens of its shortest form. The rest is divided in proportion to the tokens that each
    # full form needs beyond the shortest form.
    lacking = {key: whole[key] - shortest[key] for key in shown}
    rest = max(room - least, 0)
    sections: dict[str, str] = {}
    titles: dict[str, Shown] = {}
    numbers: Mapping[str, int] = {}
    for key, each in shown.items():
        sections[key] = ""
        if each:
            tokens = shortest[key] + rest * lacking[key] // max(sum(lacking.values()), 1)
            written = section(view, each, tokens, numbers)
            sections[key], numbers = written.text, written.numbers
            titles.update(written.titles)
    text = user(sections)
    if not briefing.images or not titles:
        return Prompt(system, text)
    drawn_states = pictures(titles)
    return Prompt(system, f"{text.rstrip()}\n\n{drawn_states.text}\n", drawn_states.files)


def require_room(named: str, tokens: int, budget: PromptBudget) -> None:
    """Refuse a prompt that is longer than the budget's total even in its shortest form.

    Args:
        named: the prompt, for the message.
        tokens: estimate of its tokens.
        budget: the limits of prompts.

    Raises:
        InputError: the prompt is too long.
    """
    if tokens > budget.total:
        raise InputError(
            f"{named} needs about {tokens} tokens; expected at most {budget.total}: allow more (--prompt-tokens), use "
            "a model with a longer context, or shorten --context"
        )


def of_role(briefing: Briefing, role: str) -> list[Labelled]:
    return [item for item in briefing.items if item.demonstration.role == role]


def shown_item(briefing: Briefing, item: Labelled, material: Material) -> Shown:
    """Prepare a training trajectory for a prompt, with the rewards of the first parent if there is one."""
    budget, negative = briefing.budget, item.demonstration.role == "negative"
    sparse = budget.negative_heavy if item.trajectory.state_kind.heavy else budget.negative
    if negative and briefing.view.events(item.trajectory.states) is not None:
        sparse = budget.negative_events
    limit = budget.dense if briefing.rule == "all" else sparse if negative else None
    return Shown(item, rewards=material.rewards.get(item.trajectory.digest), limit=limit)


COMMON: Mapping[str, Operator] = {"repair": Operator(repair), "clean": Operator(clean)}
"""The operators that every search method has, by operator name. A method may have a "repair" of its own."""
