"""The part that all prompts of a run share (`Briefing`), and the token limits of prompts (`PromptBudget`).

A prompt has a system part and a user part. The user part begins with the preamble, which explains the data.
"""

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
    """Map task names to neutral names, in order of first appearance: A, B, …, Z, AA, AB, …

    Prompts use neutral names, because a model may know a benchmark by the names of its tasks.
    """
    return {task: _letters(number) for number, task in enumerate(dict.fromkeys(tasks))}


def renamed(items: Sequence[Labelled], names: Mapping[str, str]) -> tuple[Labelled, ...]:
    """Copies of labelled trajectories with new task names. `names` maps old names to new ones."""
    return tuple(replace(item, demonstration=replace(item.demonstration, task=names[item.task])) for item in items)


def _letters(number: int) -> str:
    """A number in the notation of spreadsheet columns: 0 is A, 26 is AA."""
    text = ""
    number += 1
    while number:
        number, place = divmod(number - 1, len(ascii_uppercase))
        text = ascii_uppercase[place] + text
    return text


HELPER_FROM = 8_000
"""Minimum `PromptBudget.total` for which prompts contain `vector.HELPER`, a function that compares sets of vectors."""

TERSE_BELOW = 0.5
"""If `PromptBudget.scale` is below this number, prompts omit advice, the text on debug functions, and the list of
instructions."""

SECTIONS = {
    "legend": (1_500, 1 / 8),  # notation of states, and statistics of the data
    "instructions": (500, 1 / 20),  # list of the distinct instructions
    "words": (500, 1 / 20),  # words of instructions, each with the elements of states that occur together with the word
    "context": (3_000, 1 / 8),  # the user's own text
    "source": (6_000, 1 / 4),  # source of a parent program
    "tried": (600, 1 / 20),  # versions that earlier generations made of a parent program
    "debug": (1_000, 1 / 20),  # output of debug(expert_states, negative_states)
    "traceback": (800, 1 / 20),  # error message and traceback in a repair prompt
}
"""Two limits of each section: a number of tokens, and a share of `PromptBudget.total`. The smaller limit applies."""


@dataclass(frozen=True)
class PromptBudget:
    """Limits of prompts and of their parts. Numbers of tokens are estimated by `tokens.estimate`.

    Some limits depend on the label rule. Under rule "all", all states of an expert are positive; under "last", only the
    last state; under "goal", only marked states.

    Attributes:
        total: maximum tokens of a whole prompt, with its system part. Prompt and answer must fit into the model's
            context together.
        scale: length relative to the normal prompt, in (0, 1]. With 0.25 a prompt takes a quarter of the tokens. A
            shorter prompt omits states of trajectories first, then whole trajectories.
        trajectories: maximum tokens of all trajectories of a prompt together.
        negative: maximum tokens of one negative trajectory under the label rules "last" and "goal". Negative
            trajectories are often random walks, which are long and say little.
        negative_events: the limit that replaces `negative` if the view (the object that writes states as text) knows an
            actor. The actor is the one thing that moves in nearly every step. Negative trajectories then show mainly
            the steps in which something besides the actor changes.
        negative_heavy: the limit that replaces `negative` for large states, such as screens. One screen takes as many
            tokens as several grids.
        dense: maximum tokens of one trajectory under the label rule "all". Under this rule, statistics of the states
            say more than single trajectories.
        experts: maximum number of expert trajectories, or the number of tasks if that is larger.
        negatives: maximum number of negative trajectories, or the number of tasks if that is larger.
        failures: maximum number of trajectories with states that the parent program misclassifies.
    """

    total: int = 24_000
    scale: float = 1.0
    trajectories: int = 10_000
    negative: int = 120
    negative_events: int = 800
    negative_heavy: int = 500
    dense: int = 800
    experts: int = 8
    negatives: int = 8
    failures: int = 4

    def of(self, section: str) -> int:
        """Maximum tokens of a section."""
        most, share = SECTIONS[section]
        return int(min(most, self.total * share))

    def room(self, fixed: int, wanted: int, spared: int = 0) -> int:
        """Maximum tokens of the trajectories in a prompt; below 0 if the other parts are too long.

        Args:
            fixed: tokens of the other parts.
            wanted: tokens of all trajectories without omissions.
            spared: tokens that the other parts save in comparison with a prompt at scale 1.
        """
        wanted = min(wanted, self.trajectories)
        return min(wanted, self.total - fixed, round(self.scale * (fixed + spared + wanted)) - fixed)


@dataclass(frozen=True, eq=False)
class Briefing:
    """The part that the prompts of a run share. `brief` makes it, and makes it again if prompts must become shorter.

    Attributes:
        items: the training data, with neutral names of tasks. Validation and held-out data are absent, so they cannot
            enter a prompt.
        names: neutral name, such as "A", by task name.
        rule: the label rule, which decides which states are positive.
        view: the object that writes states as text.
        system: the system part of prompts that request a program.
        clean_system: the system part of prompts that ask for goal states, the states in which the task is done.
        preamble: the beginning of every user part.
        answer_format: the format of the model's answers, "code" or "json".
        budget: limits of prompts.
        images: whether prompts with trajectories include pictures of states.
        spared: tokens that the system part and the preamble save in comparison with their form at scale 1.
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
        """Neutral names of the tasks, in order of first appearance."""
        return tuple(dict.fromkeys(item.task for item in self.items))

    @property
    def instructed(self) -> bool:
        """Whether any trajectory has an instruction."""
        return any(item.trajectory.extra_info for item in self.items)


def brief(
    problem: Problem,
    *,
    answer_format: AnswerFormat = "code",
    context: str = "",
    budget: PromptBudget | None = None,
    images: bool = False,
) -> Briefing:
    """Make the common part of all prompts of a run from the training data of a problem.

    Args:
        problem: the labelled demonstrations. Of held-out and validation demonstrations, only task names and roles are
            read.
        answer_format: the requested format of programs.
        context: the user's own knowledge, which the data do not show (`--context FILE`); "" for none.
        budget: limits of prompts; None for the default.
        images: whether prompts with trajectories include pictures of states.

    Raises:
        InputError: there is no view for the problem's kind of states.
    """
    budget = budget or PromptBudget()
    # Questions about goal states cover all splits. Training tasks come first, as in the report.
    names = neutral_names(item.task for item in sorted(problem, key=lambda item: item.demonstration.side != "train"))
    items = renamed(problem.train, names)
    view = view_of(items, problem.metadata)
    instructions = [item.trajectory.extra_info for item in items if item.trajectory.extra_info]
    experts = [item for item in items if item.demonstration.role == "expert"]

    def system(terse: bool) -> str:
        return render(
            "system",
            view=view,
            answer_format=answer_format,
            rule=problem.rule,
            negatives=any(item.demonstration.role == "negative" for item in problem),
            terse=terse,
            instructions=bool(instructions),
            experts=len(experts),
            first=sum(bool(item.positive[0]) for item in experts),
            action=_action(problem, items),
        )

    def preamble(terse: bool) -> str:
        return render(
            "preamble",
            legend=view.legend(budget.of("legend")),
            instructions="" if terse else distinct(instructions, budget.of("instructions")),
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
    """The description of an action if programs may read actions; else "".

    Some kinds of states need no actions, because two consecutive states show the action (`StateKind.prompts_actions`).
    """
    if not items:
        return ""
    actions, explained = items[0].trajectory.actions, problem.metadata.state_kind.prompts_actions
    if not explained or actions is None or any(item.trajectory.actions is None for item in items):
        return ""
    return f"a numpy array of float64 with shape {actions.shape[1:]}" if actions.ndim > 1 else "a float"


def distinct(instructions: Sequence[str], tokens: int) -> str:
    """List the distinct instructions, most frequent first, in about `tokens` tokens.

    The line of an instruction that occurs three times ends with "x 3".
    """
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
