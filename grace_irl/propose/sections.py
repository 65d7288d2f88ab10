"""Writer of a prompt section: several trajectories with titles such as "Expert 2", within a token limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grace_irl.propose.tokens import estimate
from grace_irl.propose.views.trajectory import Shown, head, least, telling, write
from grace_irl.propose.views.view import View

_LEFT_OUT = 12  # tokens of the line that gives the number of omitted trajectories
_TITLE = 6  # tokens of a title such as "Negative 12: " and of the line break


@dataclass(frozen=True)
class PromptSection:
    """A section of a prompt.

    Attributes:
        text: the lines of the section.
        titles: the trajectories of the section by title, in order.
        numbers: highest number in the titles so far, by role ("Expert", "Negative", "Trajectory").
    """

    text: str
    titles: Mapping[str, Shown]
    numbers: Mapping[str, int]


def wanted(view: View, shown: Sequence[Shown]) -> int:
    """Tokens of a section with these trajectories, without omissions."""
    return _tasks(shown) + sum(_head(each) + estimate(write(view, each)) for each in shown)


def needed(view: View, shown: Sequence[Shown]) -> int:
    """Tokens of the shortest section: only the first trajectory, in its shortest form. 0 without trajectories."""
    return _tasks(shown) + _LEFT_OUT + _head(shown[0]) + least(view, shown[0]) if shown else 0


def section(view: View, shown: Sequence[Shown], tokens: int, numbers: Mapping[str, int] | None = None) -> PromptSection:
    """Write trajectories in about `tokens` tokens, grouped by task, in each task experts first.

    If not everything fits, trajectories are added in the given order until one does not fit. The length of a
    trajectory is measured without its least important steps (see `telling`). The first trajectory is always added, in
    its shortest form if necessary. The remaining tokens are divided evenly among the added trajectories. A last line
    gives the number of omitted trajectories.

    Args:
        view: the object that writes states as text.
        shown: trajectories, most important first.
        tokens: limit of the section.
        numbers: `PromptSection.numbers` of the previous section of the prompt. Titles continue these numbers.
    """
    kept: list[Shown] = []
    shortest: list[int] = []
    costs = [_head(each) + telling(view, each) for each in shown]
    tokens -= _tasks(shown) + (_LEFT_OUT if sum(costs) + _tasks(shown) > tokens else 0)
    for each, cost in zip(shown, costs, strict=True):
        if kept and sum(shortest) + cost > tokens:
            break
        kept.append(each)
        shortest.append(cost if len(kept) > 1 else min(cost, max(tokens, _head(each) + least(view, each))))
    whole = [max(_head(each) + estimate(write(view, each)), low) for each, low in zip(kept, shortest, strict=True)]
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
    """Divide tokens evenly among trajectories. Trajectory n gets at least `shortest[n]` and at most `whole[n]`.

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
    """Tokens of all task headings; 0 if there is only one task, which has no heading."""
    names = {each.item.task for each in shown}
    return sum(estimate(f"## Task {name}\n") for name in names) if len(names) > 1 else 0


def _head(shown: Shown) -> int:
    return _TITLE + estimate(head(shown))
