"""The audit of a reward: warnings about its possible faults, with advice.

The audit reads the demonstrations, the metrics of the reward and the source of the program. The audit also runs the
program on changed copies of the demonstrations: with other instructions (`grace_irl.audit.contrast`) and with shuffled
states (`grace_irl.audit.shuffling`). `grace_irl.audit.sides` and `grace_irl.audit.nearness` find faults that the data
show without a reward. The audit does not use the true rewards of the environment.
"""

from __future__ import annotations

from grace_irl.audit import cues, data, instructions, nearness, quality, sides
from grace_irl.audit.subject import Subject
from grace_irl.audit.warning import Audit


def audit(subject: Subject) -> Audit:
    """Examine a reward.

    A warning of `sides` or `nearness` is left out if a warning about cues or instructions has the same code.
    """
    found, of_instructions = instructions.examine(subject)
    used = list(cues.of_cues(subject))
    said = {each.code for each in (*used, *of_instructions)}
    of_sides, of_nearness = (
        [each for each in of(subject.problem) if each.code not in said] for of in (sides.of_sides, nearness.of_nearness)
    )
    warnings = (
        *quality.of_figures(subject),
        *used,
        *of_sides,
        *of_instructions,
        *of_nearness,
        *quality.of_source(subject),
        *data.of_data(subject),
    )
    return Audit(warnings, found)
