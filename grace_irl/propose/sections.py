"""Several trajectories in one section of a prompt, within a number of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from grace_irl.propose.tokens import estimate
from grace_irl.propose.views.trajectory import Shown, head, least, write
from grace_irl.propose.views.view import View

_LEFT_OUT = 12  # tokens of the line that counts what is left out
_TITLE = 6  # tokens of "### Negative 12: " and the line's end


@dataclass(frozen=True)
class PromptSection:
    """A section of a prompt.

    Attributes:
        text: its lines.
        titles: the trajectories that are in it, by what they are called there, in that order.
        numbers: by role ("Expert", "Negative", "Trajectory") the number of its last trajectory.
    """

    text: str
    titles: Mapping[str, Shown]
    numbers: Mapping[str, int]


def wanted(view: View, shown: Sequence[Shown]) -> int:
    """Tokens that the trajectories take whole."""
    return _tasks(shown) + sum(_head(each) + estimate(write(view, each)) for each in shown)


def needed(view: View, shown: Sequence[Shown]) -> int:
    """Tokens of the first trajectory in its shortest form: without them a section says nothing."""
    return _tasks(shown) + _LEFT_OUT + _head(shown[0]) + least(view, shown[0]) if shown else 0


def section(view: View, shown: Sequence[Shown], tokens: int, numbers: Mapping[str, int] | None = None) -> PromptSection:
    """Trajectories under headings, by task and role, in about `tokens` tokens.

    If not everything fits, goal states are no longer written twice. Then as many trajectories as fit in
    their shortest form are taken, in the order given, but always the first; the tokens that are left go to all
    of them alike. What is left out is counted.

    Args:
        view: of the states.
        shown: by importance.
        tokens: for all of it.
        numbers: of the section before, so that no two trajectories of a prompt have one title.
    """
    if wanted(view, shown) > tokens:  # what stands there twice goes first
        shown = [replace(each, restate=False) for each in shown]
    kept: list[Shown] = []
    shortest: list[int] = []
    costs = [_head(each) + least(view, each) for each in shown]
    tokens -= _tasks(shown) + (_LEFT_OUT if sum(costs) + _tasks(shown) > tokens else 0)
    for each, cost in zip(shown, costs, strict=True):
        if kept and sum(shortest) + cost > tokens:
            break
        kept.append(each)
        shortest.append(cost)
    whole = [_head(each) + estimate(write(view, each)) for each in kept]
    shares = share(whole, shortest, tokens)
    lines: list[str] = []
    tasks = list(dict.fromkeys(each.item.task for each in shown))
    order = sorted(range(len(kept)), key=lambda n: (tasks.index(kept[n].item.task), _role(kept[n]) != "Expert"))
    counted = dict(numbers or {})
    titles: dict[str, Shown] = {}
    task = ""
    for n in order:
        each, role = kept[n], _role(kept[n])
        if len(tasks) > 1 and each.item.task != task:
            task = each.item.task
            lines.append(f"## Task {task}")
        counted[role] = counted.get(role, 0) + 1
        titles[title := f"{role} {counted[role]}"] = each
        lines.append(f"{title}: {head(each)}")
        lines.append(write(view, each, shares[n] - _head(each)))
    if len(kept) < len(shown):
        lines.append(f"[{len(shown) - len(kept)} more trajectories left out]")
    return PromptSection("\n".join(lines), titles, counted)


def share(whole: Sequence[int], shortest: Sequence[int], tokens: int) -> list[int]:
    """Splits tokens: nobody gets more than it wants (`whole`) or less than its `shortest`, the rest alike.

    If even the shortest forms exceed `tokens`, those are the shares.
    """
    shares = list(shortest)
    left = tokens - sum(shares)
    while left > 0:
        open_ = [n for n in range(len(whole)) if shares[n] < whole[n]]
        if not open_:
            break
        each = max(left // len(open_), 1)
        for n in open_:
            more = min(each, whole[n] - shares[n], left)
            shares[n] += more
            left -= more
    return shares


def _role(shown: Shown) -> str:
    if not shown.marks:
        return "Trajectory"
    return "Expert" if shown.item.demonstration.role == "expert" else "Negative"


def _tasks(shown: Sequence[Shown]) -> int:
    """Tokens of the headings of tasks, if there are several."""
    names = {each.item.task for each in shown}
    return sum(estimate(f"## Task {name}\n") for name in names) if len(names) > 1 else 0


def _head(shown: Shown) -> int:
    return _TITLE + estimate(head(shown))
