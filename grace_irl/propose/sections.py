"""A prompt section with several trajectories, within a token limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from grace_irl.propose.tokens import estimate
from grace_irl.propose.views.trajectory import Shown, head, least, write
from grace_irl.propose.views.view import View

_LEFT_OUT = 12  # tokens of the line that gives the number of omitted trajectories
_TITLE = 6  # tokens of "### Negative 12: " and the line break


@dataclass(frozen=True)
class PromptSection:
    """A section of a prompt.

    Attributes:
        text: the lines of the section.
        titles: the trajectories in the section by their titles, in order.
        numbers: the last number in titles, by role ("Expert", "Negative", "Trajectory").
    """

    text: str
    titles: Mapping[str, Shown]
    numbers: Mapping[str, int]


def wanted(view: View, shown: Sequence[Shown]) -> int:
    """Tokens of the trajectories without omissions."""
    return _tasks(shown) + sum(_head(each) + estimate(write(view, each)) for each in shown)


def needed(view: View, shown: Sequence[Shown]) -> int:
    """Tokens of the first trajectory in its shortest form, the minimum of a useful section."""
    return _tasks(shown) + _LEFT_OUT + _head(shown[0]) + least(view, shown[0]) if shown else 0


def section(view: View, shown: Sequence[Shown], tokens: int, numbers: Mapping[str, int] | None = None) -> PromptSection:
    """Write trajectories under headings by task and role, in about `tokens` tokens.

    If not everything fits, goal states are written only once. Then the trajectories in their shortest form are
    added in the given order, until one does not fit; the first is always added. The remaining tokens are divided evenly
    among them. A last line gives the number of omitted trajectories.

    Args:
        view: the notation of states.
        shown: trajectories, most important first.
        tokens: limit of the section.
        numbers: `PromptSection.numbers` of the previous section; with them, no two trajectories of a prompt have the
            same title.
    """
    if wanted(view, shown) > tokens:  # omit repetitions first
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
    """Divide tokens evenly among trajectories, so that share n lies between `shortest[n]` and `whole[n]`.

    If the sum of `shortest` exceeds `tokens`, the shares are `shortest`.
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
    """Tokens of the task headings; 0 if there is only one task."""
    names = {each.item.task for each in shown}
    return sum(estimate(f"## Task {name}\n") for name in names) if len(names) > 1 else 0


def _head(shown: Shown) -> int:
    return _TITLE + estimate(head(shown))
