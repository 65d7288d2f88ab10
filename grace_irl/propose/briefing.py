"""The part that every prompt of a run has in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from string import ascii_uppercase

from grace_irl.demos.labels import Labelled, Problem
from grace_irl.demos.trajectory import LabelRule
from grace_irl.propose.protocol import AnswerFormat
from grace_irl.propose.templates import render
from grace_irl.propose.tokens import cut, estimate
from grace_irl.propose.views import View, view_of
from grace_irl.propose.views.vector import HELPER


def neutral_names(tasks: Iterable[str]) -> dict[str, str]:
    """A letter for each task, in order of first appearance: A, B, …, Z, AA, AB, …"""
    return {task: _letters(number) for number, task in enumerate(dict.fromkeys(tasks))}


def renamed(items: Sequence[Labelled], names: Mapping[str, str]) -> tuple[Labelled, ...]:
    """The items under other names of their tasks; the trajectories are the same objects."""
    return tuple(replace(item, demonstration=replace(item.demonstration, task=names[item.task])) for item in items)


def _letters(number: int) -> str:
    """The number as a spreadsheet names its columns."""
    text = ""
    number += 1
    while number:
        number, place = divmod(number - 1, len(ascii_uppercase))
        text = ascii_uppercase[place] + text
    return text


HELPER_FROM = 8_000
"""Tokens of a whole prompt from which the helper is offered."""

TERSE_BELOW = 0.5
"""Scale below which prompts do without advice, debug functions and the list of instructions."""

SECTIONS = {
    "legend": (1_500, 1 / 8),  # how states are written, codes, statistics
    "instructions": (500, 1 / 20),  # the list of instructions
    "words": (500, 1 / 20),  # what their words go with
    "context": (3_000, 1 / 8),  # text of the user's own
    "source": (6_000, 1 / 4),  # of a parent
    "debug": (1_000, 1 / 20),  # the text of debug(expert_states, negative_states)
    "traceback": (800, 1 / 20),  # of a repair
}
"""Most tokens of a section, and the largest share of a whole prompt, so that a small total shrinks every part."""


@dataclass(frozen=True)
class PromptBudget:
    """Longest prompts and parts of them, in tokens as `tokens.estimate` counts them.

    Attributes:
        total: of a whole prompt, system part included: the model's context less its answer.
        scale: of what a prompt would have otherwise, above 0 and at most 1; 0.25 asks for prompts of a quarter of the
            tokens. Below 1 trajectories are thinned first and left out then; what never varies stays whole.
        trajectories: of all trajectories in a prompt.
        negative: of one negative trajectory, if expert trajectories hold negative states, too (rules "last" and
            "goal"): random walks are long and say little.
        negative_heavy: the same of kinds whose states are heavy: a screen takes as much as several grids.
        dense: of one trajectory if every expert state is positive (rule "all"): the statistics say more.
        experts, negatives: trajectories of either role in a prompt, at most; at least one for every task.
        failures: wrong trajectories in a prompt, at most.
    """

    total: int = 24_000
    scale: float = 1.0
    trajectories: int = 10_000
    negative: int = 120
    negative_heavy: int = 500
    dense: int = 800
    experts: int = 8
    negatives: int = 8
    failures: int = 4

    def of(self, section: str) -> int:
        """Tokens of a section."""
        most, share = SECTIONS[section]
        return int(min(most, self.total * share))

    def room(self, fixed: int, wanted: int, spared: int = 0) -> int:
        """Tokens for trajectories; may be negative.

        Args:
            fixed: tokens of everything else.
            wanted: what the trajectories would take whole.
            spared: by how much everything else is shorter than at scale 1.
        """
        wanted = min(wanted, self.trajectories)
        return min(wanted, self.total - fixed, round(self.scale * (fixed + spared + wanted)) - fixed)


@dataclass(frozen=True, eq=False)
class Briefing:
    """The part that is the same in every prompt of a run, made once by `brief`.

    Attributes:
        items: the training data, its tasks under neutral names. Held-out data is not in here, so that it cannot enter
            a prompt.
        names: the neutral name of each task.
        rule: which states are positive.
        view: how states are written.
        system: the system part of every operator that asks for a program.
        clean_system: the system part of `clean`.
        preamble: the beginning of every user part.
        answer_format: "code" or "json".
        budget: how long prompts may be.
        images: pictures of states go with prompts that show trajectories.
        spared: tokens by which system part and preamble are shorter than at scale 1.
    """

    items: tuple[Labelled, ...]
    names: Mapping[str, str]
    rule: LabelRule
    view: View
    system: str
    clean_system: str
    preamble: str
    answer_format: AnswerFormat = "code"
    budget: PromptBudget = field(default_factory=PromptBudget)
    images: bool = False
    spared: int = 0

    @property
    def tasks(self) -> tuple[str, ...]:
        """Neutral names, in order of first appearance."""
        return tuple(dict.fromkeys(item.task for item in self.items))

    @property
    def instructed(self) -> bool:
        """Whether any trajectory carries an instruction."""
        return any(item.trajectory.extra_info for item in self.items)


def brief(
    problem: Problem,
    *,
    answer_format: AnswerFormat = "code",
    context: str = "",
    budget: PromptBudget | None = None,
    images: bool = False,
) -> Briefing:
    """Looks through the training data of a problem once, for all prompts of a run.

    Args:
        problem: only `problem.train` is read, and the names of tasks.
        answer_format: how programs are to be answered.
        context: what the user knows and the data do not say (`--context FILE`); "" for none.
        budget: None: the default.
        images: pictures of states go with prompts that show trajectories.

    Raises:
        InputError: no training data, or a state kind that no view knows.
    """
    budget = budget or PromptBudget()
    names = neutral_names(item.task for item in (*problem.train, *problem.held_out))
    items = renamed(problem.train, names)
    view = view_of(items, problem.metadata)
    instructions = [item.trajectory.extra_info for item in items if item.trajectory.extra_info]

    def system(terse: bool) -> str:
        return render(
            "system",
            view=view,
            answer_format=answer_format,
            rule=problem.rule,
            negatives=any(item.demonstration.role == "negative" for item in problem),
            terse=terse,
            instructions=bool(instructions),
            action=_action(problem, items),
        )

    def preamble(terse: bool) -> str:
        return render(
            "preamble",
            legend=view.legend(budget.of("legend")),
            instructions="" if terse else _distinct(instructions, budget.of("instructions")),
            words=view.words(budget.of("words")),
            helper=HELPER if view.helps and budget.total >= HELPER_FROM else "",
            context=cut(context.strip(), budget.of("context")),
        )

    terse = budget.scale < TERSE_BELOW
    spared = (estimate(part(False)) - estimate(part(terse)) for part in (system, preamble))
    return Briefing(
        items=items,
        names=names,
        rule=problem.rule,
        view=view,
        system=system(terse),
        clean_system=render("clean_system", about=view.about, answer_format=answer_format),
        preamble=preamble(terse),
        answer_format=answer_format,
        budget=budget,
        images=images,
        spared=sum(spared),
    )


def _action(problem: Problem, items: Sequence[Labelled]) -> str:
    """Description of an action, if a program may read them; else "".

    Kinds whose actions say nothing that two states in a row do not say go without (`StateKind.prompts_actions`).
    """
    if not items:
        return ""
    actions, explained = items[0].trajectory.actions, problem.metadata.state_kind.prompts_actions
    if not explained or actions is None or any(item.trajectory.actions is None for item in items):
        return ""
    return f"a numpy array of float64 with shape {actions.shape[1:]}" if actions.ndim > 1 else "a float"


def _distinct(instructions: Sequence[str], tokens: int) -> str:
    """The different instructions, most frequent first, each with its count if that is more than one."""
    lines: list[str] = []
    counted = sorted(Counter(instructions).items(), key=lambda entry: (-entry[1], entry[0]))
    for text, count in counted:
        line = f"{text!r}" + (f" x {count}" if count > 1 else "")
        tokens -= estimate(line) + 1
        if tokens < 0 and lines:
            lines.append(f"and {len(counted) - len(lines)} more")
            break
        lines.append(line)
    return "\n".join(lines)
