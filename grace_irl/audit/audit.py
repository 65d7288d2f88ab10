"""The audit of a reward: where it may be wrong, as warnings with advice.

The audit looks at the demonstrations, at the reward's figures and at its source. It also runs the program on changed
copies of the demonstrations: with other instructions (`grace_irl.audit.contrast`) and with shuffled states
(`grace_irl.audit.shuffling`). Faults that the data show by themselves are in `grace_irl.audit.sides`. True rewards of
the environment have no part in it.
"""

from __future__ import annotations

from grace_irl.audit import cues, data, instructions, quality, sides
from grace_irl.audit.subject import Subject
from grace_irl.audit.warning import Audit


def audit(subject: Subject) -> Audit:
    """Examine a reward."""
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
