"""Writer of trajectories as text for prompts, within a token limit.

The text begins with the first state. Later states are written as changes since an earlier state, or in full. In some
kinds of states, the view finds an actor, the one thing that moves in nearly every step (`View.events`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled
from grace_irl.propose.tokens import estimate
from grace_irl.propose.views.view import View

MAX_DEBUG = 300
"""Maximum characters of one state's debug text."""

_QUICK = 60  # a change with fewer characters is written without a comparison with older states
_LINE = "\n  "  # beginning of a further line of a state
_SHORT = 100  # a trajectory of at most this number of steps is first tried without gaps
_LEAST = 3  # number of steps in the shortest form of a trajectory


@dataclass(frozen=True, eq=False)
class Shown:
    """A trajectory for a prompt, with options for its text.

    Attributes:
        item: the trajectory and its labels.
        rewards: rewards `(T+1,)` of a program, or None.
        debug: texts of the program's debug_fn by step.
        wrong: steps whose states the program misclassifies.
        focus: steps that stay when other steps are left out. Most often, the steps in focus are also in `wrong`.
        only_focus: whether to write only the first step, the steps in focus, and the step before each step in focus.
        marks: whether to mark positive states.
        limit: maximum tokens, or None. The shortest form of a trajectory may exceed this limit.
    """

    item: Labelled
    rewards: NDArray[np.float64] | None = None
    debug: Mapping[int, str] = field(default_factory=dict)
    wrong: Collection[int] = ()
    focus: Collection[int] = ()
    only_focus: bool = False
    marks: bool = True
    limit: int | None = None


def head(shown: Shown) -> str:
    """Write the line above a trajectory: its instruction, its length, and which of its states are positive."""
    item = shown.item
    parts = [f"{len(item.positive)} states"]
    if shown.marks:
        parts.append(_positives(item.positive))
    if item.trajectory.extra_info:
        parts.insert(0, f"extra_info {item.trajectory.extra_info!r}")
    return "; ".join(parts)


def _positives(positive: NDArray[np.bool_]) -> str:
    if positive.all():
        return "every state positive"
    if not positive.any():
        return "no state positive"
    return "positive: the last state" if positive[:-1].sum() == 0 else "positive: those marked GOAL"


def write(view: View, shown: Shown, tokens: int | None = None) -> str:
    """Write a trajectory in at most `tokens` tokens (estimated). The shortest form of the trajectory may need more.

    If the trajectory is too long, the least important steps (see `_order`) are left out. A line gives the number of
    steps in each gap. If even the shortest form is too long, a view that writes less about each state is used
    (`View.coarser`).

    Args:
        view: the view, which writes single states.
        shown: the trajectory.
        tokens: maximum tokens; None for no maximum besides `Shown.limit`. The smaller of the two limits applies.
    """
    events = view.events(shown.item.trajectory.states)
    order = _order(shown, events)
    limits = [limit for limit in (tokens, shown.limit) if limit is not None]
    if not limits:
        return _lines(view, shown, order, events)
    view = _fine(view, shown, order, min(limits), events)
    # Each gap takes a line, and consecutive steps without a change share a line. So the text of a trajectory with few
    # changes may be shorter without gaps.
    if len(order) <= _SHORT and estimate(whole := _lines(view, shown, order, events)) <= min(limits):
        return whole
    # Search for the largest number of steps that fits, from below, since a random walk may have thousands of steps.
    low, high = min(_LEAST, len(order)), min(2 * _LEAST, len(order))
    best = _lines(view, shown, order[:low], events)
    while low < len(order):
        text = _lines(view, shown, order[:high], events)
        if estimate(text) <= min(limits):
            low, best, high = high, text, min(2 * high, len(order))
        else:
            break
    while low + 1 < high:
        middle = (low + high) // 2
        text = _lines(view, shown, order[:middle], events)
        if estimate(text) <= min(limits):
            low, best = middle, text
        else:
            high = middle
    return best


def least(view: View, shown: Shown) -> int:
    """Tokens of the shortest form of a trajectory. Most often, this form has the first, the last and one other step."""
    events = view.events(shown.item.trajectory.states)
    order = _order(shown, events)
    return _shortest(_fine(view, shown, order, 0, events), shown, order, events)


def telling(view: View, shown: Shown) -> int:
    """Tokens of a trajectory without its pure moves, the steps in which only the actor changes.

    The result is at most `Shown.limit`, but at least the tokens of the shortest form. If the view knows no actor, the
    result is the tokens of the shortest form.
    """
    shortest = least(view, shown)
    events = view.events(shown.item.trajectory.states)
    if events is None:
        return shortest
    order = _order(shown, events)
    count = len({*foremost(shown), *([] if shown.only_focus and shown.focus else events)})
    whole = estimate(_lines(view, shown, order[:count], events))
    return max(shortest, whole if shown.limit is None else min(whole, shown.limit))


def _shortest(view: View, shown: Shown, order: Sequence[int], events: Set[int] | None) -> int:
    # Each gap takes a line, so the text of few or short states may be shorter without gaps. Screens are long, so gaps
    # shorten every text of more than a few screens. `recalls` is above 1 only in views of screens.
    whole = len(order) if view.recalls == 1 or len(order) <= 2 * _LEAST else _LEAST
    return min(estimate(_lines(view, shown, order[:count], events)) for count in {_LEAST, whole})


def _fine(view: View, shown: Shown, order: Sequence[int], tokens: int, events: Set[int] | None) -> View:
    """Find the finest view in which the shortest form of a trajectory fits into `tokens`, else the coarsest view."""
    while view.coarser is not None and _shortest(view, shown, order, events) > tokens:
        view = view.coarser
    return view


def _order(shown: Shown, events: Set[int] | None) -> list[int]:
    """Order the steps by importance.

    The steps of `foremost` come first, then the steps in which something besides the actor changes (`events`), then the
    remaining steps in the order of `halves`. If the events of a negative trajectory are known, the remaining steps are
    left out. With `Shown.only_focus` and a focus, the result has only the steps of `foremost`.
    """
    first = foremost(shown)
    if shown.only_focus and shown.focus:
        return first
    count = len(shown.item.positive)
    if events is None:
        return list(dict.fromkeys((*first, *halves(count))))
    listed = sorted(events)
    told = [listed[place] for place in halves(len(listed))]
    moves = [] if shown.item.demonstration.role == "negative" else halves(count)
    return list(dict.fromkeys((*first, *told, *moves)))


def foremost(shown: Shown) -> list[int]:
    """Find the most important steps of a trajectory. Prompts show debug texts at these steps only.

    - With `Shown.only_focus` and a focus: the first step, and the steps in `Shown.focus` with the step before each.
    - Otherwise: the first and the last step, and the steps in focus with the steps before and after each. If at most
      three states are positive, also the steps of these states with the step before each.
    """
    last = len(shown.item.positive) - 1
    goals = np.flatnonzero(shown.item.positive).tolist() if shown.item.positive.sum() <= 3 else []
    focus = sorted(shown.focus)
    near = [step - 1 for step in (*focus, *goals) if step > 0]
    after = [step + 1 for step in focus if step < last]
    if shown.only_focus and focus:
        return list(dict.fromkeys((0, *focus, *(step - 1 for step in focus if step > 0))))
    return list(dict.fromkeys((0, last, *goals, *focus, *near, *after)))


def halves(count: int) -> list[int]:
    """Order the numbers 0 … count-1 so that the first k of them, for any k, are spread evenly."""
    return sorted(range(count), key=lambda n: (int(f"{n:b}"[::-1].ljust(count.bit_length(), "0"), 2), n))


def _lines(view: View, shown: Shown, steps: Sequence[int], events: Set[int] | None) -> str:
    states, positive = shown.item.trajectory.states, shown.item.positive
    marked = shown.marks and positive.any() and not positive.all()
    lines: list[str] = []
    before = -1  # the last step that was handled
    seen: list[int] = []  # steps that are written so far
    same: list[int] = []  # consecutive steps with equal notes (mark and reward), whose states equal the state before
    alike = ""  # the note of the steps in `same`
    said = ""  # the last debug text

    def close(stop: int) -> None:
        if same:
            lines.append(f"{same[0] + 1}{f'..{same[-1] + 1}' if len(same) > 1 else ''}: {alike}no change")
            same.clear()
        if stop > before + 1:
            lines.append(_gap(shown, range(before + 1, stop), events))

    for step in sorted(steps):
        goal = "GOAL " if marked and positive[step] else ""
        note = goal + _reward(shown, step)
        text = view.state(states[step]) if before < 0 else _change(view, states, seen[-view.recalls :], step)
        reached = bool(goal and before >= 0 and not (positive[step - 1] and step - 1 == before))
        seen.append(step)
        debug = " ".join(shown.debug.get(step, "").split())
        if step > before + 1 or alike != note:
            close(step)
        if text == "no change" and not reached and debug in ("", said):
            same.append(step)
            before, alike = step, note
            continue
        close(before + 1)
        if reached and (full := view.state(states[step])) not in text:
            lines_apart = "\n" in text or "\n" in full
            text += f"{_LINE if lines_apart else '; '}in full: {full}"
        lines.append(f"{step + 1}: {note}{text}")
        if debug:
            text = f"{debug[:MAX_DEBUG]}{'…' if len(debug) > MAX_DEBUG else ''}"
            lines.append(f"  debug: {'the same' if debug == said else text}")
            said = debug
        before = step
    close(len(states))
    return "\n".join(lines)


def _gap(shown: Shown, steps: range, events: Set[int] | None) -> str:
    """Write the line that replaces omitted steps: how many, whether only the actor changes, how many are in `wrong`."""
    moves = events is not None and events.isdisjoint(steps)
    wrong = sum(step in shown.wrong for step in steps)
    word = ("move " if len(steps) == 1 else "moves ") if moves else ""
    return f"… {len(steps)} {word}left out{f', {wrong} of them WRONG' if wrong else ''}"


def _change(view: View, states: NDArray[Any], bases: Sequence[int], step: int) -> str:
    """Write how a state differs from the last written state, or from an earlier one if that takes half as many tokens.

    Args:
        view: the view.
        states: all states of the trajectory.
        bases: steps of written states to which the text may refer, in ascending order.
        step: step of the state.
    """
    apart = step > bases[-1] + 1
    text = view.change(states[bases[-1]], states[step], apart=apart)
    if apart and text == "no change":
        return f"as {bases[-1] + 1}"
    for base in reversed(bases[:-1]):
        if text == "no change" or len(text) < _QUICK:
            break
        other = view.change(states[base], states[step], apart=True)
        if other == "no change":
            return f"as {base + 1}"
        if 2 * estimate(other) < estimate(text):
            text = f"since {base + 1}: {other}"
    return text


def _reward(shown: Shown, step: int) -> str:
    if shown.rewards is None:
        return ""
    value = shown.rewards[step]
    wrong = " WRONG" if step in shown.wrong else ""
    return f"{{reward {'none' if np.isnan(value) else f'{value:.4g}'}{wrong}}} "
