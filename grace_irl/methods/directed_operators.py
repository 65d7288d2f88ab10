"""Operators for searches other than GRACE's, in runs without `--task`. Each operator writes one kind of prompt.

Most of these prompts are GRACE's prompts (`grace_operators`) with two additions: a direction, such as "change the
structure", and the texts of more programs. For runs with `--task`, `grace_irl.tasks.operators` has operators with the
same names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from grace_irl.methods.grace_operators import initialise, mutate, mutation, scores
from grace_irl.propose.briefing import Briefing
from grace_irl.propose.material import Material, ParentMaterial
from grace_irl.propose.protocol import Prompt
from grace_irl.propose.rendering import Operator, compose
from grace_irl.propose.tokens import cut

NEW: Mapping[str, str] = {
    "plan": "Think of all single conditions that may tell positive from negative states. Choose ONE that none of the "
    "programs above has, and write a program that tests this condition alone.",
    "different": "Write a program of another kind than those above: it reads other things, in another way.",
}
"""Directions in prompts that request a new program, by name of the operator."""
CHANGED: Mapping[str, str] = {
    "reflect": "Say first what the wrong states show about the program.",
    "structure": "Change the structure of the program: add a condition or a term, drop one, or give one another form. "
    "Keep the rest as it is.",
    "weights": "Keep the conditions and terms of the program. Change only its numbers: weights, limits and codes.",
    "crossover": "Combine the parts of the programs which tell positive from negative states best.",
    "path": "The other programs came before this one, the nearest first. Say which of the changes helped, and take the "
    "next step in that direction.",
}
"""Directions in prompts that request a change of a program, by name of the operator."""
ALIGN = (
    "Describe in at most three sentences what the program above does: what it reads, and when it pays. Describe the "
    "program, not the design idea. Answer with these sentences alone, and write no program."
)
VERIFY = (
    "Imagine step by step how an expert does this task. Then judge how likely the program above pays for what the "
    "expert reaches, and for nothing else: from -1 (not at all) to 1 (surely). Answer with a few sentences, and the "
    "number in square brackets at the end, such as [0.3]. Write no program."
)


def opinion(asked: str, briefing: Briefing, material: Material) -> Prompt:
    """Write a prompt with the source of the first parent and the question `asked`. The prompt shows no scores."""
    return compose(
        briefing, "opinion", {}, source=cut(material.source.strip(), briefing.budget.of("source")), asked=asked
    )


def _new(asked: str, briefing: Briefing, material: Material) -> Prompt:
    unpaid = replace(material, rewards={})  # beside the states, the rewards of a program would look like data
    return initialise(briefing, unpaid, asked, _others(briefing, (*material.parents, *material.ancestors)))


def _changed(asked: str, briefing: Briefing, material: Material) -> Prompt:
    described = _described(material.parents[0]) if material.parents else ""
    asked = f"{asked} The program in words: {described}" if described else asked
    return mutate(briefing, material, asked, _others(briefing, (*material.parents[1:], *material.ancestors)))


def _path(briefing: Briefing, material: Material) -> Prompt:
    """Write the prompt of "path". For a program without ancestors, write the prompt of "structure" instead."""
    return _changed(CHANGED["path" if material.ancestors else "structure"], briefing, material)


def _others(briefing: Briefing, programs: tuple[ParentMaterial, ...]) -> list[tuple[str, str]]:
    """Pairs of texts about programs: the source, and the description with the scores."""
    most = briefing.budget.of("source") // max(len(programs), 1)
    return [
        (
            cut(each.source.strip(), most),
            f"{_described(each)}\n{scores(each.evaluation, briefing.names)}".strip(),
        )
        for each in programs
    ]


def _described(program: ParentMaterial) -> str:
    """The model's answer to the operator "align": a description of a program, in one line; "" if there is none."""
    return " ".join(program.notes.get("align", "").split())


OPERATORS: Mapping[str, Operator] = {
    "initialise": Operator(initialise),
    "mutate": Operator(mutate, debugged=mutation),
    **{name: Operator(partial(_new, asked)) for name, asked in NEW.items()},
    **{name: Operator(partial(_changed, asked), debugged=mutation) for name, asked in CHANGED.items()},
    "path": Operator(_path, debugged=mutation),
    "align": Operator(partial(opinion, ALIGN)),
    "verify": Operator(partial(opinion, VERIFY)),
}
"""The operators by name (`Request.operator`)."""
