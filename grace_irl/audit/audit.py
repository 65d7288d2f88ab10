"""The audit of a reward: warnings that say where the reward may be wrong, with advice.

The audit reads the demonstrations, the metrics of the reward and the source of the program. The audit also runs the
program on changed copies of the demonstrations: with other instructions (`grace_irl.audit.contrast`) and with shuffled
states (`grace_irl.audit.shuffling`). `grace_irl.audit.sides` finds faults that the data show without a reward. The
audit does not use the true rewards of the environment.
"""

from __future__ import annotations

from grace_irl.audit import cues, data, instructions, quality, sides
from grace_irl.audit.subject import Subject
from grace_irl.audit.warning import Audit


def audit(subject: Subject) -> Audit:
    """Examine a reward. A warning of `sides` is left out if `cues` has one with the same code."""
    found, of_instructions = instructions.examine(subject)
    used = list(cues.of_cues(subject))
    warnings = (
        *quality.of_figures(subject),
        *used,
        *(each for each in sides.of_sides(subject.problem) if each.code not in {one.code for one in used}),
        *of_instructions,
        *quality.of_source(subject),
        *data.of_data(subject),
    )
    return Audit(warnings, found)
