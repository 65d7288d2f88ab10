"""Warnings about cues: properties other than behaviour by which a reward tells experts from negatives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grace_irl.audit.shuffling import balanced, explains, shuffled
from grace_irl.audit.subject import ProgramFailedError, Subject
from grace_irl.audit.suspects import suspects
from grace_irl.audit.warning import RewardWarning
from grace_irl.demos.labels import Labelled, Problem

MOST_STATES = 10_000
"""Maximum number of states that are shuffled. Episodes beyond the maximum are left out."""
ORDERS = 4
"""Number of random orders of the states. In each, a cue keeps its place and the rest is shuffled. The cue explains the
reward only if the reward still tells experts from negatives in all orders."""
NAMED = 8
"""Maximum number of features that a warning names."""


def of_cues(subject: Subject) -> Iterator[RewardWarning]:
    """A warning about the first cue that explains the reward, if any."""
    items = _sample(subject.problem)
    real = balanced([subject.values(item) for item in items], items, subject.threshold)
    found = suspects(items, subject.problem.metadata.fields)
    # If the sides are recorded at different hours, a time of day hardly changes within an episode in comparison with
    # the hours between the sides. So a time of day is also among the fixed fields. Clocks are tested first, so that the
    # warning calls it a clock.
    asked = (("time", ()), ("clock", found.clocks), ("constants", found.constants), ("constant-field", found.fixed))
    status = ((len(asked), "status", ()),) if _has_status(items) else ()
    for seed, code, kept in (*((seed, *each) for seed, each in enumerate(asked)), *status):
        if code not in ("time", "status") and not kept:
            continue
        try:
            # In a small set, a cue may seem to explain the reward in one order by chance. So `ORDERS` are tested.
            seeds = range(seed, seed + len(asked) * ORDERS, len(asked))
            orders = (shuffled(items, each, kept, status=code == "status") for each in seeds)
            found_in_all = all(
                explains(real, balanced(subject.run(order), items, subject.threshold)) for order in orders
            )
        except ProgramFailedError:
            continue
        if found_in_all:
            names = [found.names[number] for number in kept]
            yield _warning(code, ", ".join(names[:NAMED]) + (", …" if len(names) > NAMED else ""))
            return


def _warning(code: str, named: str) -> RewardWarning:
    said = {
        "time": (
            "by the step, the length or the instruction of an episode, and not by what the states show",
            "bring negative episodes of the same lengths and with the same instructions",
        ),
        "clock": (
            f"by the clock in {named}, and not by the rest of the states",
            "leave the clock out of the states, or bring negative episodes of the same lengths",
        ),
        "status": (
            "by the status bar of the screens (clock, battery, signals), and not by the rest of the states",
            "record both sides at the same hours on the same devices, or leave the nodes of the status bar out",
        ),
        "constants": (
            f"by {named}: nearly constant everywhere, or one constant in all experts and another one in all negatives",
            "collect both sides in the same simulator with the same settings, or leave these numbers out",
        ),
        "constant-field": (
            f"by {named}, which hardly changes within an episode",
            "bring negative episodes with the same values, such as the same goals, or leave these numbers out",
        ),
    }
    found, advice = said[code]
    code = "time" if code in ("clock", "status") else code
    return RewardWarning(code, f"the reward tells experts from negatives {found}", advice)


def _has_status(items: Sequence[Labelled]) -> bool:
    firsts = (item.trajectory for item in items)
    return any(each.state_kind.with_status_of(each.states[:1], each.states[:1]) is not None for each in firsts)


def _sample(problem: Problem) -> list[Labelled]:
    """Training episodes, alternately one with positive states and one without.

    An episode is left out if it brings the number of states above `MOST_STATES`. The first episode of each side always
    stays.
    """
    sides = [[item for item in problem.train if item.positive.any() == positive] for positive in (True, False)]
    chosen: list[Labelled] = []
    states = 0
    for place in range(max(map(len, sides))):
        for side in sides:
            if place < len(side) and (place == 0 or states + len(side[place].positive) <= MOST_STATES):
                chosen.append(side[place])
                states += len(side[place].positive)
    return chosen
