"""Tables for prompts about screens, counted over training data.

A screen is positive if its label says that the task is done. The first table lists nodes of positive screens that share
words with the instruction. The second table lists nodes that are more common on positive screens than on others. An
outline is a screen as text for prompts. An item is one line of an outline, for one node (`outline.Item`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from grace_irl.demos.labels import Labelled
from grace_irl.propose.tokens import estimate
from grace_irl.propose.views.outline import ANY_TEXT, Item, ScreenOutline, named, quoted
from grace_irl.propose.views.words import going_with, words_of

MAX_TRAJECTORIES = 200
"""Maximum number of trajectories that `reached` returns. `sharing` compares their instructions and screens in pairs, so
the cost grows with the square of this number."""

MOST_PLACES = 8  # maximum number of places (see `Sharing`) that `sharing` returns
LEAST_GAP = 0.25
"""Minimum of `Sharing.own` / n - `Sharing.other` for a place that `sharing` returns, with n trajectories in total."""
EXAMPLE = 60  # maximum characters of each text in an example of `words_table`


@dataclass(frozen=True)
class Reached:
    """The first positive screen of a trajectory, and the words of the trajectory's instruction.

    Attributes:
        instruction: the trajectory's instruction.
        words: words and numbers of the instruction, without single letters. If instructions differ, the words that all
            of them have are left out.
        items: items of the positive screen that are not on the trajectory's first screen. If the first screen is itself
            positive, all its items.
    """

    instruction: str
    words: frozenset[str]
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Sharing:
    """A place that often shares words or numbers with the instruction. A place is the text or description of a node.

    Attributes:
        place: the node's line without texts and states, with the word "text" or "desc" at its end.
        package: package of the node.
        own: number of trajectories whose own instruction shares a word with the place.
        other: probability, 0 to 1, that the place on one trajectory's screen shares a word with another trajectory's
            instruction.
        example: a text of the place, the shared words, and the instruction that shares them.
        name: `Item.name` of the node.
    """

    place: str
    package: str
    own: int
    other: float
    example: tuple[str, tuple[str, ...], str]
    name: str


def reached(items: Sequence[Labelled], outline: Callable[[bytes], ScreenOutline]) -> list[Reached]:
    """Find the first positive screen of each trajectory with an instruction.

    If there are more than `MAX_TRAJECTORIES` such trajectories, an evenly spaced sample of them is used.
    """
    having = [item for item in items if item.positive.any() and item.trajectory.extra_info]
    having = having[:: max(1, -(-len(having) // MAX_TRAJECTORIES))]
    texts = [frozenset(map(_plain, words_of(item.trajectory.extra_info))) for item in having]
    everywhere = frozenset.intersection(*texts) if len(set(texts)) > 1 else frozenset()
    found = []
    for item, text in zip(having, texts, strict=True):
        states, goal = item.trajectory.states, int(np.flatnonzero(item.positive)[0])
        known = outline(states[0]).keys if goal else frozenset()
        shown = tuple(each for each in outline(states[goal]).items if each.key not in known)
        words = frozenset(word for word in text - everywhere if len(word) > 1 or word.isdigit())
        found.append(Reached(item.trajectory.extra_info, words, shown))
    return found


def sharing(found: Sequence[Reached]) -> list[Sharing]:
    """Find places that share words with instructions. The best place comes first.

    Such a place shares words with the instruction of its own trajectory clearly more often than with other
    instructions.
    """
    said: dict[tuple[str, str], list[dict[str, str]]] = {}
    names: dict[tuple[str, str], str] = {}
    for number, each in enumerate(found):
        for item in each.items:
            for name, text in (("text", item.text), ("desc", item.desc)):
                if text and not (name == "desc" and text == item.text):
                    node = item.written(leave_out=("text", "desc", "hint", "states"))
                    rows = said.setdefault((item.package, f"{node} {name}"), [{} for _ in found])
                    names[item.package, f"{node} {name}"] = item.name
                    for word in words_of(text):
                        rows[number].setdefault(_plain(word), text)
    ranked = []
    for (package, place), rows in said.items():
        common = [each.words & row.keys() for each, row in zip(found, rows, strict=True)]
        own = sum(map(bool, common))
        pairs = [
            bool(other.words & row.keys())
            for number, row in enumerate(rows)
            for other in found
            if row and other.words != found[number].words
        ]
        with_others = sum(pairs) / len(pairs) if pairs else 0.0
        gap = own / len(found) - with_others
        if own and gap >= LEAST_GAP:
            number = max(range(len(found)), key=lambda n: len(common[n]))
            words = tuple(sorted(common[number]))
            example = rows[number][words[0]], words, found[number].instruction
            ranked.append(
                (-gap, -len(words), package, Sharing(place, package, own, with_others, example, names[package, place]))
            )
    ranked.sort(key=lambda entry: (*entry[:3], entry[3].place))
    return [entry[3] for entry in ranked[:MOST_PLACES]]


def words_table(found: Sequence[Reached], places: Sequence[Sharing], tokens: int) -> str:
    """Write the first table: places that share words with instructions, and nodes that go with a word.

    A node goes with a word if the node is on the positive screen whenever the instruction has the word. Of these nodes,
    only those in a state such as "checked" are listed. The text has at most `tokens` tokens (estimated).
    """
    packages = {item.package for each in found for item in each.items}

    def of(package: str) -> str:
        return f" of {named(package)}" if len(packages) > 1 else ""

    shared = [
        f"{each.place}{of(each.package)}: {each.own} of {len(found)}"
        + (f" (with other instructions {each.other:.0%})" if each.other else "")
        + f", such as {quoted(each.example[0], EXAMPLE)} with {', '.join(map(repr, each.example[1]))} of "
        + quoted(each.example[2], EXAMPLE)
        for each in places
    ]
    marked = [frozenset(f"{item.line}{of(item.package)}" for item in each.items if item.stateful) for each in found]
    going = going_with([each.words for each in found], marked) if found else {}
    likely = sorted(going.items(), key=lambda entry: (entry[1][1][0][2], entry[0]))
    states = [
        f"{word!r} ({count}): "
        + ", ".join(f"{line} (without it {elsewhere} of {len(found) - count})" for line, elsewhere, _ in chosen)
        for word, (count, chosen) in likely
    ]
    lines: list[str] = []
    for title, rows in (
        (
            "What shares words or numbers with its instruction on the first positive screen, and is not on the first "
            "screen, counted over the expert trajectories; counts, no proof:",
            shared,
        ),
        ("Nodes in a state of their own that are there whenever the instruction has a word:", states),
    ):
        for row in rows:
            cost = estimate(row) + 1 + (estimate(title) + 1 if title else 0)
            if cost > tokens:
                break
            lines += [title, row] if title else [row]
            title = ""
            tokens -= cost
    return "\n".join(lines)


def _plain(word: str) -> str:
    """Remove leading zeros from a number, so that 08 equals 8. Other words stay as they are."""
    return word.lstrip("0") or "0" if word.isdigit() else word


MAX_SCREENS = 1_500
"""Maximum number of screens for statistics. Of a larger set, at most 750 positive and 750 other screens are read,
evenly spaced."""

NEARLY_ALL = 0.9  # minimum share of screens that is called "nearly all"
LEAST_SCREENS = 5  # with fewer screens, "nearly all" means nothing
BACKGROUND = 300  # maximum tokens of the list of nodes that nearly all screens have
MOST_TELLING = 16  # maximum number of lines from `telling`, and from all tasks together in `telling_table`
MOST_TASKS = 6  # maximum number of tasks in the result of `telling_by_task`
LEAST_SHARE_GAP = 0.5  # minimum difference between the shares of positive and of other screens

Counted = tuple[Labelled, int, ScreenOutline]
"""A trajectory, a step, and the outline of the state at that step."""


def sampled(items: Sequence[Labelled], outline: Callable[[bytes], ScreenOutline]) -> list[Counted]:
    """Choose the screens for statistics, and make their outlines. Positive screens come first."""
    marked = [(item, step) for item in items for step in np.flatnonzero(item.positive).tolist()]
    others = [(item, step) for item in items for step in np.flatnonzero(~item.positive).tolist()]
    chosen = [pair for side in (marked, others) for pair in side[:: max(1, -(-2 * len(side) // MAX_SCREENS))]]
    if len(marked) + len(others) <= MAX_SCREENS:
        chosen = marked + others
    return [(item, step, outline(item.trajectory.states[step])) for item, step in chosen]


def shares(screens: Sequence[Counted]) -> dict[str, float]:
    """Map from each `Item.key` to the share of the screens that have an item with this key."""
    counts = Counter(key for _, _, outline in screens for key in outline.keys)
    return {key: count / len(screens) for key, count in counts.items()}


def name_shares(screens: Sequence[Counted]) -> dict[str, float]:
    """Map from each `Item.name` to the share of the screens that have an item with this name."""
    counts = Counter(name for _, _, outline in screens for name in {item.name for item in outline.items})
    return {name: count / len(screens) for name, count in counts.items()}


def background(screens: Sequence[Counted], on: Mapping[str, float]) -> dict[str, Item]:
    """Find the items that nearly all screens have, within `BACKGROUND` tokens, and return them by `Item.key`.

    A key that occurs more than once on a screen is left out.

    Args:
        screens: the screens.
        on: share of the screens that have each key, as returned by `shares`.
    """
    if len(screens) < LEAST_SCREENS:
        return {}
    common = {key for key, share in on.items() if share >= NEARLY_ALL}
    found: dict[str, Item] = {}
    for _, _, outline in screens:
        for key, times in Counter(item.key for item in outline.items if item.key in common).items():
            if times > 1:
                common.discard(key)
        for item in outline.items:
            if item.key in common:
                found.setdefault(item.key, item)
    room, kept = BACKGROUND, {}
    for key in sorted(common, key=lambda key: (-on[key], key)):
        room -= estimate(f"  {found[key].line}\n")
        if room < 0:
            break
        kept[key] = found[key]
    return kept


@dataclass(frozen=True)
class Telling:
    """A line that is more common on positive screens than on others.

    Attributes:
        line: a line of an outline. If it ends with `ANY_TEXT`, it stands for the node with any text.
        package: package of the node.
        positive: number of positive screens with the line.
        others: number of other screens with the line.
    """

    line: str
    package: str
    positive: int
    others: int


def telling(screens: Sequence[Counted], task: str) -> list[Telling]:
    """Find lines that distinguish the positive screens of a task from all screens that are not positive, best first.

    Lines are sorted by their share of the task's positive screens minus their share of the other screens. If one node
    has several lines with equal counts, only the first is returned.
    """
    sides: tuple[list[ScreenOutline], list[ScreenOutline]] = ([], [])
    for item, step, outline in screens:
        if not item.positive[step]:
            sides[1].append(outline)
        elif item.task == task:
            sides[0].append(outline)
    if not sides[0] or not sides[1]:
        return []
    having: list[Counter[tuple[str, str, str]]] = [Counter(), Counter()]
    for counter, outlines in zip(having, sides, strict=True):
        for outline in outlines:
            counter.update(outline.told)
    ranked = []
    for (package, node, line), count in having[0].items():
        other = having[1][package, node, line]
        gap = count / len(sides[0]) - other / len(sides[1])
        # A line on one screen of many is a coincidence.
        if gap >= LEAST_SHARE_GAP and (count > 1 or len(sides[0]) == 1):
            ranked.append((-gap, -count, line.endswith(ANY_TEXT), package, node, line, other))
    found: dict[tuple[str, str, int, int], Telling] = {}
    for _, count, _, package, node, line, other in sorted(ranked):
        found.setdefault((package, node, -count, other), Telling(line, package, -count, other))
    return list(found.values())[:MOST_TELLING]


def telling_by_task(screens: Sequence[Counted]) -> dict[str, list[Telling]]:
    """Find the lines that distinguish the positive screens of each task, for at most `MOST_TASKS` tasks."""
    positive = dict.fromkeys(item.task for item, step, _ in screens if item.positive[step])
    return {task: telling(screens, task) for task in list(positive)[:MOST_TASKS]}


def telling_names(screens: Sequence[Counted], tables: Mapping[str, Sequence[Telling]]) -> frozenset[str]:
    """The names (`Item.name`) of the nodes in the tables of `telling_by_task`."""
    told = {(each.package, each.line) for found in tables.values() for each in found}
    items = (each for item, step, outline in screens if item.positive[step] for each in outline.items)
    return frozenset(
        item.name for item in items if told & {(item.package, item.line), (item.package, f"{item.node}{ANY_TEXT}")}
    )


def telling_table(screens: Sequence[Counted], tables: Mapping[str, Sequence[Telling]], tokens: int) -> str:
    """Write the tables of `telling_by_task` within a token limit; "" if they are empty or the limit is too low."""
    positive = Counter(item.task for item, step, _ in screens if item.positive[step])
    others = len(screens) - positive.total()
    packages = {item.package for _, _, outline in screens for item in outline.items}
    lines = [f"Nodes that positive screens have and few of the {others} others (training data; counts, no proof):"]
    tokens -= estimate(lines[0])
    for task, found in tables.items():
        title = f"{'positive' if len(positive) == 1 else f'task {task}'}, {positive[task]} screens:"
        for each in found[: MOST_TELLING // len(tables)]:
            where = f" of {named(each.package)}" if len(packages) > 1 else ""
            rows = [title] if title else []
            rows.append(f"  {each.positive} and {each.others} others: {each.line}{where}")
            tokens -= sum(estimate(row) + 1 for row in rows)
            if tokens < 0:
                break
            lines += rows
            title = ""
    return "\n".join(lines) if len(lines) > 1 else ""
