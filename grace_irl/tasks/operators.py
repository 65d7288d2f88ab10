"""Prompts of methods in which trained policies judge programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, get_args

from grace_irl.demos.trajectory import Role
from grace_irl.propose.briefing import TERSE_BELOW, Briefing, distinct
from grace_irl.propose.material import Material, ParentMaterial
from grace_irl.propose.protocol import Prompt
from grace_irl.propose.rendering import Operator, require_room
from grace_irl.propose.templates import environment
from grace_irl.propose.tokens import cut, estimate
from grace_irl.propose.views.registry import view_of
from grace_irl.rl.curve import course
from grace_irl.tasks.facts import TaskFacts
from grace_irl.tasks.task import Task

SOURCE = 2_500
"""Number of tokens to which each of several programs is cut, if they do not fit into a prompt whole."""
SPARE = 20
"""Number of tokens for the line that `cut` adds below a cut text."""
SHORTEST = 200
"""Minimum number of tokens to which a program alone is cut, if the prompt does not fit otherwise."""
COMPONENTS = 12
"""Maximum number of reward components that a prompt shows for a program."""

PLAN = (
    "Think of what a policy needs to be told step by step to do this task, as a list of single reward components. Then "
    "choose ONE component that none of the programs above, if there are any, has, and write a program whose reward is "
    "this component alone, in a size of about 1. Your paragraph specifies the component in words."
)
ASKED: Mapping[str, str] = {
    "initialise": "Design a reward for this task.",
    "plan": PLAN,
    "reflect": "The reward above is the best one of its round. Say what the course of its components and of the score "
    "shows, and write a better reward.",
    "mutate": "Change one thing in the reward above that holds the score back, and write the new reward.",
    "structure": "Change the structure of the reward above: add a component, drop one, or give one another form. Keep "
    "the rest as it is.",
    "weights": "Keep the components of the reward above and their forms. Change only their weights, scales and "
    "temperatures.",
    "crossover": "Write one self-contained reward that combines the components of the rewards above which serve the "
    "task best, with a docstring that says what it pays for.",
    "path": "The rewards above follow from each other, the first one last. Say which of these changes raised the score "
    "and which lowered it, and take the next step in the direction that helped.",
    "different": "Design a reward of another kind than all those above: other components, other forms.",
}
"""Text of the request at the end of a prompt for a program, by name of the operator."""
ALIGN = (
    "Describe in at most three sentences what the reward above does: its components, what they are computed from, and "
    "how they are weighted. Describe the program, not the design idea. Answer with these sentences alone, and write no "
    "program."
)
REPAIR = (
    "The reward above cannot be used. Find the cause and write the whole program anew without the fault. Keep its idea "
    "and its components, and do not hide the fault behind a bare except."
)
VERIFY = (
    "Imagine step by step how an expert does this task. Then judge how likely a policy that is trained on the reward "
    "above behaves like this expert: from -1 (not at all) to 1 (surely). Answer with a few sentences, and the number "
    "in square brackets at the end, such as [0.3]. Write no program."
)


@dataclass(frozen=True)
class _Told:
    """A program in a prompt.

    Attributes:
        title: heading of the program.
        idea: the design idea; "" if it is unknown.
        source: text of the program.
        results: the result of `outcome`, or "".
    """

    title: str
    idea: str
    source: str
    results: str


@dataclass(frozen=True, eq=False)
class _Author:
    """Common content of all prompts of a run.

    Attributes:
        task: the task.
        facts: facts about the task's environment.
        steps: environment steps of a training, in whole rollouts.
        context: the user's own text; "" for none.
    """

    task: Task
    facts: TaskFacts
    steps: int
    context: str


def operators(task: Task, facts: TaskFacts, steps: int = 0, context: str = "") -> dict[str, Operator]:
    """The operators by name. Each operator writes one kind of prompt.

    Args:
        task: the task.
        facts: facts about its environment.
        steps: environment steps of a training; 0 for the task's own number.
        context: the user's own text, for every prompt; "" for none.
    """
    rollout = task.settings.rollout
    author = _Author(task, facts, -(-(steps or task.steps) // rollout) * rollout, context)
    writes: dict[str, Callable[[Briefing, Material], Prompt]] = {
        name: partial(_design, author, asked) for name, asked in ASKED.items()
    }
    writes |= {
        "path": partial(_path, author),
        "align": partial(_opinion, author, ALIGN),
        "verify": partial(_opinion, author, VERIFY),
        "repair": partial(_repair, author),
    }
    return {name: Operator(write) for name, write in writes.items()}


def _design(author: _Author, asked: str, briefing: Briefing, material: Material) -> Prompt:
    """Write a prompt that requests a program. The prompt shows all parents and ancestors, with results."""
    known = [*material.parents, *material.ancestors]
    titles = ["The reward"] if len(known) == 1 else [f"Reward {number}" for number in range(1, len(known) + 1)]
    told = [_told(title, each, results=True) for title, each in zip(titles, known, strict=True)]
    return _prompt(author, asked, briefing, told)


def _path(author: _Author, briefing: Briefing, material: Material) -> Prompt:
    """Write the prompt of "path". For a program without ancestors, write the prompt of "structure" instead."""
    return _design(author, ASKED["path" if material.ancestors else "structure"], briefing, material)


def _opinion(author: _Author, asked: str, briefing: Briefing, material: Material) -> Prompt:
    """Write a prompt with the first parent and the question `asked`. The prompt shows no results."""
    told = [_told("The reward", each, results=False) for each in material.parents[:1]]
    return _prompt(author, asked, briefing, told, writes=False)


def _repair(author: _Author, briefing: Briefing, material: Material) -> Prompt:
    """Write the prompt of a repair: `Material.source`, with the error and the traceback in `Material.evaluation`."""
    if material.evaluation is None:
        raise ValueError("a repair needs the program's error; found no evaluation")
    failed = ParentMaterial(material.source, material.evaluation)
    traceback = cut(material.evaluation.traceback.strip(), briefing.budget.of("traceback"))
    told = _told("The reward", failed, results=True)
    told = replace(told, results="\n".join(part for part in (told.results, traceback) if part))
    return _prompt(author, REPAIR, briefing, [told])


def _scored(task: Task) -> str:
    """The score in words. Prompts name no file and no module: these may tell a folder or the environment."""
    if task.scored:
        return task.scored
    _, reported, key = task.score.partition("info:")
    return f"the number {key!r} that the environment reports" if reported else "a number that the task's code computes"


def _prompt(
    author: _Author,
    asked: str,
    briefing: Briefing,
    told: Sequence[_Told],
    *,
    writes: bool = True,
) -> Prompt:
    """Write a prompt. `writes` says whether the answer is a program.

    The prompt shows all programs whole if they fit into the budget's total. Otherwise, it shows as many of them as fit
    with at most `SOURCE` tokens each, and a program alone as far as it fits.

    Raises:
        InputError: the prompt does not fit into the budget's total.
    """
    templates, task, budget = environment("grace_irl.tasks"), author.task, briefing.budget
    demonstrations = _demonstrations(author, briefing)
    system = templates.get_template("system.j2").render(
        text=task.text,
        scored=_scored(task),
        shows_score=task.shows_score,
        steps=author.steps,
        transitions=task.sees == "transition",
        about=author.facts.states,
        limit=author.facts.episodes,
        answer_format=briefing.answer_format if writes else "",
    )
    design = templates.get_template("design.j2")

    def user(programs: Sequence[_Told]) -> str:
        return design.render(
            random=author.facts.random,
            demonstrations=demonstrations,
            context=cut(author.context.strip(), budget.of("context")),
            programs=programs,
            results=asked != REPAIR and any(each.results for each in programs),
            asked=asked,
        ).strip()

    def excess(programs: Sequence[_Told]) -> int:
        return estimate(system) + estimate(user(programs)) - budget.total

    kept = list(told)
    if excess(kept) > 0:
        kept = [replace(each, source=cut(each.source, SOURCE)) for each in told]
        while len(kept) > 1 and excess(kept) > 0:
            kept.pop()  # the last program is the most distant from the first parent
        if len(kept) == 1:
            (first,), over = told[:1], excess(told[:1])
            left = estimate(first.source) if over <= 0 else estimate(first.source) - over - SPARE
            kept = [replace(first, source=cut(first.source, left))] if left >= SHORTEST else kept
    require_room(f"a prompt of task {task.name}", excess(kept) + budget.total, budget)
    return Prompt(system.strip(), user(kept))


@lru_cache(maxsize=1)
def _demonstrations(author: _Author, briefing: Briefing) -> str:
    """The number and lengths of demonstrations, statistics of their states, and their instructions; "" for none.

    Names of the task's numbers stand in the statistics. Short prompts (`--prompt-scale`) leave instructions out.
    """
    lines, budget = [], briefing.budget
    for role in get_args(Role):
        steps = sorted(item.trajectory.num_steps for item in briefing.items if item.demonstration.role == role)
        if steps:
            length = f"{steps[0]} to {steps[-1]}" if steps[0] < steps[-1] else f"{steps[0]}"
            unit = "steps" if steps[-1] != 1 else "step"
            lines.append(f"{len(steps)} {role} episode{'s' if steps[1:] else ''} of {length} {unit}.")
    if not lines:
        return ""
    view = view_of(briefing.items, author.task.metadata) if author.task.fields else briefing.view
    lines.append(view.figures(budget.of("legend")))
    instructions = [item.trajectory.extra_info for item in briefing.items if item.trajectory.extra_info]
    if instructions and budget.scale >= TERSE_BELOW:
        lines.append(f"Their instructions:\n{distinct(instructions, budget.of('instructions'))}")
    return "\n".join(filter(None, lines))


def _told(title: str, program: ParentMaterial, *, results: bool) -> _Told:
    return _Told(
        title,
        " ".join(program.notes.get("align", "").split()),
        program.source.strip(),
        outcome(program) if results else "",
    )


def outcome(program: ParentMaterial) -> str:
    """A text about the results of a program.

    The text gives the score of the program, and the courses of score, episode length and components along a training.
    For an invalid program, the text gives the error.
    """
    evaluation = program.evaluation
    if not evaluation.valid:
        return f"It could not be used: {evaluation.status}: {evaluation.message}"
    metrics: Mapping[str, float] = evaluation.metrics
    lines = [f"Score {evaluation.score:.4g}" + (f" ({evaluation.message})" if evaluation.message else "")]
    runs: Sequence[Mapping[str, Any]] = evaluation.evidence.get("policy", {}).get("runs", [])
    if runs:
        curve = [point["score"] for point in runs[0]["curve"]]
        lines.append(f"score along training: {_course(curve)}")
        lines.append(f"episode length along training: {_course([point['length'] for point in runs[0]['curve']])}")
        paid = [point.get("paid") for point in runs[0]["curve"]]
        if any(each is not None for each in paid):
            lines.append(f"reward of an episode along training: {_course(paid)}")
    if "success" in metrics:
        lines.append(f"success: {metrics['success']:.3g}")
    components: Mapping[str, Mapping[str, Any]] = evaluation.evidence.get("components", {})
    if components:
        lines.append("components, each the mean per step since the evaluation before:")
    for name, each in list(components.items())[:COMPONENTS]:
        lines.append(f"{name}: {_row(each)}")
    if len(components) > COMPONENTS:
        lines.append(f"and {len(components) - COMPONENTS} more components")
    return "\n".join(lines)


def _course(values: Sequence[float | None]) -> str:
    return _row(course(values))


def _row(found: Mapping[str, Any]) -> str:
    """A course (`policy_evaluator.course`) as text."""
    values = " ".join("-" if value is None else f"{value:.3g}" for value in found["values"])
    return f"{values}; max {found['max']:.3g}, mean {found['mean']:.3g}, min {found['min']:.3g}"
