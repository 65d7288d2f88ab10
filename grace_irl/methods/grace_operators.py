"""GRACE's operators: functions that write the prompts "initialise", "mutate" and "reshape" (docs/prompts.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import get_args

import numpy as np

from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import Role
from grace_irl.evaluate.evaluation import EQUAL, Evaluation
from grace_irl.evaluate.evaluation import shown as fitness_shown
from grace_irl.evaluate.separation import Metrics, Separation
from grace_irl.propose.briefing import Briefing
from grace_irl.propose.material import Material, drawn, of_experts
from grace_irl.propose.protocol import Attempt, Prompt
from grace_irl.propose.rendering import Operator, compose, of_role, shown_item
from grace_irl.propose.tokens import cut, estimate
from grace_irl.propose.views.trajectory import Shown
from grace_irl.propose.views.words import words_of

EXPERTS_PER_NEGATIVE = 2
"""Number of expert trajectories per negative trajectory, in a prompt that cannot hold all trajectories.

Expert trajectories are more informative, because they can hold both positive and negative states."""


MAX_REASONING = 240
"""Maximum number of characters that a prompt quotes from the model's reasoning about one version of a program."""


MAX_TASKS_SCORED = 12
"""Maximum number of tasks whose scores a prompt lists."""


EXPERTS = 2
"""Minimum number of whole expert trajectories in a prompt of `mutate`, unless the data has fewer."""


FOCUS = 5
"""Maximum number of misclassified states of a trajectory that must stay when a prompt shortens the trajectory."""


def initialise(
    briefing: Briefing, material: Material, asked: str = "", others: Sequence[tuple[str, str]] = ()
) -> Prompt:
    """Write a prompt that requests a new program. The prompt shows random expert and negative trajectories.

    Args:
        briefing: data of the run, for all prompts.
        material: input of this prompt. Only `material.seed` and `material.rewards` are read.
        asked: a direction for the new program; "" for none.
        others: other programs, each as its source and a text about the program, such as its scores.
    """
    items = _subset(briefing, np.random.default_rng(material.seed))
    shown = [shown_item(briefing, item, material) for item in items]
    return compose(briefing, "initialise", {"trajectories": shown}, asked=asked, others=others)


def mutate(
    briefing: Briefing,
    material: Material,
    asked: str = "",
    others: Sequence[tuple[str, str]] = (),
    *,
    may_end: bool = False,
) -> Prompt:
    """Write a prompt that requests a better version of a program.

    The prompt shows trajectories with states that the program misclassifies.

    Args:
        briefing: data of the run, for all prompts.
        material: input of this prompt. The operator reads its attributes `seed`, `source`, `evaluation`, `rewards`,
            `wrong`, `debug`, `overall`, `tried`, `expert_only`, `incorrect_only` and `include_expert`.
        asked: a direction for the new version; "" for none.
        others: other programs, each as its source and a text about the program, such as its scores.
        may_end: whether the prompt permits the answer that the states lack the information for a better version
            (`Result.untold`). The search must heed this answer. With label rule "all", no prompt permits this answer,
            because positive and negative states may overlap.
    """
    return compose(
        briefing,
        "mutate",
        mutation(briefing, material),
        source=cut(material.source.strip(), briefing.budget.of("source")),
        mistaken=mistaken(briefing.items, material),
        scores=scores(material.evaluation, briefing.names),
        tried=tried(material.tried, material.evaluation, briefing.budget.of("tried")),
        may_end=may_end and briefing.rule != "all",
        answer_format=briefing.answer_format,
        debugged=any(material.debug.values()),
        overall=cut(material.overall.strip(), briefing.budget.of("debug")),
        asked=asked,
        others=others,
    )


def mutation(briefing: Briefing, material: Material) -> dict[str, list[Shown]]:
    """The trajectories that `mutate` shows, by section of the prompt: "failures" and "examples".

    Wrong states are states that the program misclassifies. A failure is a trajectory with wrong states. The prompt
    marks the wrong states. If a failure is too long for the prompt, up to `FOCUS` randomly drawn wrong states stay when
    other states are left out.

    Expert trajectories are added as examples, until the prompt shows at least `EXPERTS` expert trajectories in full.
    The choice prefers trajectories of the failures' tasks, then trajectories without wrong states. If there are no
    failures, one negative trajectory is also an example.

    Three options of the material interpret GRACE's table 6:

    - `expert_only`: draw only wrong states that are positive, if there are any.
    - `incorrect_only`: of each failure, show only the first state, the drawn wrong states, and the state before each
      drawn state.
    - `include_expert`: add one more expert trajectory as an example.

    The choice of trajectories depends on `Material.seed`, but not on `Material.debug`: the debug texts. The program's
    `debug_fn` writes them later, for the chosen trajectories only.
    """
    rng = np.random.default_rng(material.seed)
    wrong = of_experts(briefing.items, material.wrong) if material.expert_only else material.wrong
    failures = []
    for place in drawn(briefing.items, wrong, briefing.budget.failures, rng):
        focus = np.sort(rng.permutation(wrong[place])[:FOCUS])
        told = replace(_told(briefing, place, material), focus=tuple(focus.tolist()), limit=None)
        failures.append(replace(told, only_focus=material.incorrect_only))
    seen = {each.item.trajectory.digest for each in failures}
    tasks = {each.item.task for each in failures}
    whole = sum(each.item.demonstration.role == "expert" and not each.only_focus for each in failures)
    counts = {"expert": max(EXPERTS - whole, 0) + material.include_expert, "negative": not failures}
    examples = []
    for role in get_args(Role):
        others = [
            place
            for place, item in enumerate(briefing.items)
            if item.demonstration.role == role and item.trajectory.digest not in seen
        ]
        shuffled = [others[int(n)] for n in rng.permutation(len(others))]
        shuffled.sort(key=lambda place: (briefing.items[place].task not in tasks, place in material.wrong))
        examples += [_told(briefing, place, material) for place in shuffled[: counts[role]]]
    return {"failures": failures, "examples": examples}


def _told(briefing: Briefing, place: int, material: Material) -> Shown:
    """A trajectory with the parent program's rewards, debug texts and wrong states.

    Args:
        briefing: data of the run, for all prompts.
        place: index of the trajectory in `briefing.items`.
        material: input of this prompt.
    """
    item = briefing.items[place]
    digest = item.trajectory.digest
    debug = {step: text for (name, step), text in material.debug.items() if name == digest}
    wrong = frozenset(material.wrong.get(place, np.array([], dtype=np.int64)).tolist())
    return replace(shown_item(briefing, item, material), debug=debug, wrong=wrong)


def reshape(briefing: Briefing, material: Material) -> Prompt:
    """Write a prompt that requests a steadier version of a program.

    Along expert trajectories, the reward of this version should rise more steadily than the reward of the program.

    The operator reads `seed`, `source`, `evaluation` and `rewards` of the material.
    """
    rng = np.random.default_rng(material.seed)
    experts = [item for item in of_role(briefing, "expert") if item.trajectory.digest in material.rewards]
    experts = experts or of_role(briefing, "expert")
    places = rng.permutation(len(experts))[: max(briefing.budget.failures, len(briefing.tasks))]
    evaluation = material.evaluation
    tau = evaluation.metrics.get("monotonicity") if evaluation else None
    rising = (
        ""
        if tau is None
        else (
            f"\nMonotonicity (Kendall's tau of reward against time along expert trajectories, mean; "
            f"1 rises at every step, 0 is flat): {tau:.2f}"
        )
    )
    return compose(
        briefing,
        "reshape",
        {"trajectories": [shown_item(briefing, experts[int(n)], material) for n in sorted(places)]},
        source=cut(material.source.strip(), briefing.budget.of("source")),
        scores=scores(evaluation, briefing.names) + rising,
        rule=briefing.rule,
    )


OPERATORS: Mapping[str, Operator] = {
    "initialise": Operator(initialise),
    "mutate": Operator(partial(mutate, may_end=True), debugged=mutation),
    "reshape": Operator(reshape),
}
"""The operators by name (`Request.operator`)."""


def scores(evaluation: Evaluation | None, names: Mapping[str, str]) -> str:
    """Write the scores of a program on training data: first over all tasks, then per task, the worst task first.

    Args:
        evaluation: evaluation of the program.
        names: neutral names of the tasks in prompts, by task.
    """
    found = Separation.of(evaluation)
    if found is None:
        return "not known"
    lines = [_metrics(found.train)]
    if len(found.tasks) > 1:
        ranked = sorted(found.tasks.items(), key=lambda entry: (entry[1][0].fitness, entry[0]))
        lines += [f"task {names.get(name, '?')}: {_metrics(pair[0])}" for name, pair in ranked[:MAX_TASKS_SCORED]]
        if len(ranked) > MAX_TASKS_SCORED:
            lines.append(f"and {len(ranked) - MAX_TASKS_SCORED} better tasks")
    return "\n".join(lines)


def mistaken(items: Sequence[Labelled], material: Material) -> str:
    """A sentence with the numbers of misclassified training states; "" if no rewards are known."""
    known = [(place, item) for place, item in enumerate(items) if item.trajectory.digest in material.rewards]
    parts = []
    for positive, name in ((True, "positive"), (False, "negative")):
        count = sum(int((item.positive == positive).sum()) for _, item in known)
        wrong = sum(
            int((item.positive[material.wrong[n]] == positive).sum()) for n, item in known if n in material.wrong
        )
        if count:
            parts.append(f"{wrong} of {count} {name} states")
    return f"At its best threshold it is wrong on {' and on '.join(parts)}." if parts else ""


def tried(attempts: Sequence[Attempt], evaluation: Evaluation | None, tokens: int) -> str:
    """List the versions that earlier generations made of a program, oldest first.

    If the list is too long, the oldest versions are left out.

    Args:
        attempts: the versions, oldest first.
        evaluation: evaluation of the program, with which the versions are compared.
        tokens: maximum length of the list, in estimated tokens.
    """
    lines: list[str] = []
    for attempt in reversed(attempts):
        words = " ".join(attempt.reasoning.split())
        said = f"{words[:MAX_REASONING]}{'…' if len(words) > MAX_REASONING else ''}" or "(nothing)"
        line = f"- {_outcome(attempt.evaluation, evaluation)}: {said}"
        tokens -= estimate(line) + 1
        if tokens < 0:
            break
        lines.append(line)
    left = len(attempts) - len(lines)
    return "\n".join([*([f"[{left} more left out]"] if left and lines else []), *reversed(lines)])


def _outcome(evaluation: Evaluation, parent: Evaluation | None) -> str:
    """The result of a version in a few words: whether the version runs, and whether it is fitter than `parent`."""
    if not evaluation.valid:
        return f"does not run ({evaluation.status})"
    if parent is None or not evaluation.complete:
        return "worse" if parent is not None else "not known"
    more = evaluation.score - parent.score
    word = "no better" if abs(more) <= EQUAL else "better" if more > 0 else "worse"
    return f"{word}, fitness {fitness_shown(evaluation.score)}"


def _metrics(metrics: Metrics) -> str:
    apart = "every positive state above every negative one" if metrics.separated else "positive and negative overlap"
    return (
        f"accuracy {metrics.accuracy:.3f}, AUC {metrics.auc:.3f}, fitness {fitness_shown(metrics.fitness)} "
        f"(at best 0); {apart}; {metrics.experts} positive, {metrics.negatives} negative states"
    )


def _subset(briefing: Briefing, rng: np.random.Generator) -> list[Labelled]:
    """Draw a random subset of trajectories, in an order in which every prefix is balanced.

    The order matters, because a prompt that cannot hold all trajectories omits the last ones. Tasks alternate. Before
    each negative trajectory there are `EXPERTS_PER_NEGATIVE` expert trajectories. The instructions of the first expert
    trajectories have many different words (`_of_many_words`).
    """
    budget, tasks = briefing.budget, briefing.tasks
    queues: list[list[Labelled]] = []
    for role, count in (("expert", budget.experts), ("negative", budget.negatives)):
        items = of_role(briefing, role)
        shuffled = [items[int(n)] for n in rng.permutation(len(items))]
        by_task = [[item for item in shuffled if item.task == task] for task in tasks]
        if role == "expert":
            by_task = [_of_many_words(each, count) for each in by_task]
        in_turn = [item for row in zip_longest(*by_task) for item in row if item is not None]
        queues.append(in_turn[: max(count, len(tasks))])
    experts, negatives = queues
    merged: list[Labelled] = []
    while experts or negatives:
        merged += [*experts[:EXPERTS_PER_NEGATIVE], *negatives[:1]]
        experts, negatives = experts[EXPERTS_PER_NEGATIVE:], negatives[1:]
    return merged


def _of_many_words(items: Sequence[Labelled], count: int) -> list[Labelled]:
    """Choose at most `count` trajectories, so that few trajectories show most words of the instructions.

    A word is new if no chosen trajectory has it. Each step chooses the trajectory whose new words have the largest
    total count over all instructions; in a tie, the first such trajectory. So verbs and connectives appear before rare
    names. After all words have appeared, all words count as new again.
    """
    words = [words_of(item.trajectory.extra_info) for item in items]
    common = Counter(word for each in words for word in each)
    left, order, seen = list(range(len(items))), list[int](), set[str]()
    while left and len(order) < count:
        gains = [sum(common[word] for word in words[place] - seen) for place in left]
        if seen and not any(gains):
            seen = set()
            continue
        chosen = left.pop(gains.index(max(gains)))
        order.append(chosen)
        seen |= words[chosen]
    return [items[place] for place in order]
