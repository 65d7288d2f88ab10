"""GRACE's operators: functions that write the prompts "initialise", "mutate" and "reshape" (docs/prompts.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import get_args

import numpy as np

from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import Role
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.evaluate.evaluation import shown as fitness_shown
from grace_irl.evaluate.separation import Metrics, Separation
from grace_irl.propose.briefing import Briefing
from grace_irl.propose.material import Material, drawn, of_experts
from grace_irl.propose.protocol import Prompt
from grace_irl.propose.rendering import Operator, compose, of_role, shown_item
from grace_irl.propose.tokens import cut
from grace_irl.propose.views.trajectory import Shown
from grace_irl.propose.views.words import words_of

EXPERTS_PER_NEGATIVE = 2
"""Number of expert trajectories per negative one, in a prompt without room for all trajectories.

Expert trajectories are more informative. They can also hold negative states, but negative trajectories hold no
positive ones."""


MAX_TASKS_SCORED = 12
"""Maximum number of tasks whose scores a prompt lists."""


FOCUS = 5
"""Number of misclassified states that a prompt shows before most others of a trajectory if it cannot show all."""


def initialise(
    briefing: Briefing, material: Material, asked: str = "", others: Sequence[tuple[str, str]] = ()
) -> Prompt:
    """Write the prompt that requests a new program. It shows random expert and negative trajectories.

    Args:
        briefing: data of the run, for all prompts.
        material: input of this prompt. The operator reads only its `seed`.
        asked: a direction for the new program; "" for none.
        others: texts and scores of other programs.
    """
    items = _subset(briefing, np.random.default_rng(material.seed))
    shown = [shown_item(briefing, item, material) for item in items]
    return compose(briefing, "initialise", {"trajectories": shown}, asked=asked, others=others)


def mutate(briefing: Briefing, material: Material, asked: str = "", others: Sequence[tuple[str, str]] = ()) -> Prompt:
    """Write the prompt that requests a better version of a program. It shows trajectories with misclassified states.

    Args:
        briefing: data of the run, for all prompts.
        material: input of this prompt. The operator reads its attributes `seed`, `source`, `evaluation`, `rewards`,
            `wrong`, `debug`, `overall`, `expert_only`, `incorrect_only` and `include_expert`.
        asked: a direction for the new version; "" for none.
        others: texts and scores of other programs.
    """
    return compose(
        briefing,
        "mutate",
        mutation(briefing, material),
        source=cut(material.source.strip(), briefing.budget.of("source")),
        scores=scores(material.evaluation, briefing.names),
        debugged=any(material.debug.values()),
        overall=cut(material.overall.strip(), briefing.budget.of("debug")),
        asked=asked,
        others=others,
    )


def mutation(briefing: Briefing, material: Material) -> dict[str, list[Shown]]:
    """The trajectories that `mutate` shows, by section of the prompt: "failures" and "examples".

    A failure is a trajectory with wrong states, which the program misclassifies. Wrong states are marked. If a failure
    is too long to show in full, `FOCUS` of its wrong states, drawn at random, take precedence over most other states.
    Without failures, the examples are one trajectory of each role.

    Three options of the material are our reading of GRACE's table 6:

    - `expert_only`: draw only wrong states that are positive, if there are any.
    - `incorrect_only`: show only the drawn wrong states, each with its predecessor.
    - `include_expert`: add an expert trajectory as an example.

    The choice depends on `seed`. It does not depend on `debug`, because debug texts are collected after the choice, for
    the chosen trajectories only.
    """
    rng = np.random.default_rng(material.seed)
    wrong = of_experts(briefing.items, material.wrong) if material.expert_only else material.wrong
    failures = []
    for place in drawn(briefing.items, wrong, briefing.budget.failures, rng):
        focus = np.sort(rng.permutation(wrong[place])[:FOCUS])
        told = replace(_told(briefing, place, material), focus=tuple(focus.tolist()), limit=None)
        failures.append(replace(told, only_focus=material.incorrect_only))
    seen = {each.item.trajectory.digest for each in failures}
    examples = []
    for role in get_args(Role):
        if failures and not (role == "expert" and material.include_expert):
            continue
        others = [
            place
            for place, item in enumerate(briefing.items)
            if item.demonstration.role == role and item.trajectory.digest not in seen
        ]
        if others:
            examples.append(_told(briefing, others[int(rng.integers(len(others)))], material))
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
    """Write the prompt that requests a version of a program whose reward rises more steadily along expert trajectories.

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
    "mutate": Operator(mutate, debugged=mutation),
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


def _metrics(metrics: Metrics) -> str:
    apart = "every positive state above every negative one" if metrics.separated else "positive and negative overlap"
    return (
        f"accuracy {metrics.accuracy:.3f}, AUC {metrics.auc:.3f}, fitness {fitness_shown(metrics.fitness)} "
        f"(at best 0); {apart}; {metrics.experts} positive, {metrics.negatives} negative states"
    )


def _subset(briefing: Briefing, rng: np.random.Generator) -> list[Labelled]:
    """Draw a random subset of trajectories, in an order of which every beginning is balanced.

    A prompt without room for all of them omits the last ones. For this reason, tasks alternate,
    `EXPERTS_PER_NEGATIVE` expert trajectories come before each negative one, and the first experts have as many
    different words in their instructions as possible (`_of_many_words`).
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
    """Choose `count` trajectories so that the words of their instructions appear early, the commonest words first.

    Each next trajectory is the one whose new words are in the largest number of instructions in all; among equal ones,
    it is the first. So a few trajectories show every verb and every connective, which many instructions share, before
    rare names. After every word has appeared, the remaining trajectories are chosen alike.
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
