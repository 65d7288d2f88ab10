"""Parser of instructions of BabyAI and of our own levels. This module requires MiniGrid."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from minigrid.core.constants import COLOR_NAMES, IDX_TO_COLOR, IDX_TO_OBJECT
from minigrid.core.world_object import WorldObj
from minigrid.envs.babyai.core.roomgrid_level import RejectSampling
from minigrid.envs.babyai.core.verifier import (
    OBJ_TYPES,
    ActionInstr,
    AfterInstr,
    AndInstr,
    BeforeInstr,
    GoToInstr,
    Instr,
    ObjDesc,
    OpenInstr,
    PickupInstr,
    PutNextInstr,
    SeqInstr,
)
from numpy.typing import NDArray

from grace_irl.rl.levels import LEFT, RIGHT, OpenMatchingInstr, PlaceBetweenInstr, SortColorsInstr, cell_of

THEN, AFTER, AND = ", then ", " after you ", " and "
LOCATIONS = {" on your left": "left", " on your right": "right", " in front of you": "front", " behind you": "behind"}
_COLOR, _TYPE = "|".join(COLOR_NAMES), "|".join(OBJ_TYPES)
_THING = rf"(?:the|a)(?: (?:{_COLOR}))? (?:{_TYPE}|object)(?:{'|'.join(LOCATIONS)})?"
_PARTS = re.compile(rf"(?:the|a)(?: ({_COLOR}))? ({_TYPE}|object)({'|'.join(LOCATIONS)})?")
_ACTION = re.compile(rf"(go to|pick up|open) ({_THING})")
_PUT_NEXT = re.compile(rf"put ({_THING}) next to ({_THING})")
_NAMED = rf"the ({_COLOR}) ({_TYPE})"
_PLACE_BETWEEN = re.compile(rf"put {_NAMED} between {_NAMED} and {_NAMED}")


class NeverInstr(ActionInstr):
    """A task that cannot be fulfilled, because it names an object that is not in the world."""

    def surface(self, env: Any) -> str:  # noqa: ARG002
        """The empty text."""
        return ""

    def verify_action(self, action: Any) -> str:  # noqa: ARG002
        """Return "continue"."""
        return "continue"


def about_other_things(text: str, things: Sequence[str]) -> list[str]:
    """Copies of an instruction. In each copy, one of `things` replaces one of the things that the instruction names.

    There is one copy for each pair of a named thing and a replacement, even if the two are the same. A replacement has
    no location, such as "on your left".

    Args:
        text: the instruction.
        things: the replacements, such as "the red ball" (`things_in`).
    """
    places = [match.span() for match in re.finditer(_THING, text)]
    return [f"{text[:first]}{thing}{text[last:]}" for first, last in places for thing in things]


def things_in(state: NDArray[Any]) -> list[str]:
    """The things in a grid that an instruction can name, such as "the red ball".

    Args:
        state: grid of MiniGrid's codes, `(width, height, 3)`. Unknown codes are left out.
    """
    cells = {(IDX_TO_COLOR.get(color), IDX_TO_OBJECT.get(kind)) for kind, color in state.reshape(-1, 3)[:, :2].tolist()}
    return [f"the {color} {kind}" for color in COLOR_NAMES for kind in OBJ_TYPES if (color, kind) in cells]


def parse(text: str, level: Any) -> Instr | None:
    """The instruction with a given text; None if the text is no instruction, or has no clear meaning in the level.

    The grammar is that of `Instr.surface` in BabyAI, and that of the missions of our own levels. Articles are ignored,
    as in BabyAI's verifier: any ball fulfils "go to the ball" and "go to a ball". BabyAI also has strict actions, which
    fail if the agent opens or picks up a wrong object. The text does not show whether an action is strict, so no action
    is strict, except in "open the door matching the key".

    The meaning is not clear if the level would not give the instruction. For example, a door to open is already open,
    an object already lies at its goal, or several red balls match "the red ball" in an instruction of our own levels.

    Args:
        text: the instruction.
        level: a level of BabyAI at the start of its episode. The level is not changed, except that an instruction of
            SortColors sets the attribute `balls` of the level.
    """
    task = _parsed(text, level)
    return task if task is not None and _is_open(task, level) else None


def actions_in(task: Any) -> Iterator[Any]:
    """The single actions of an instruction, in the order of its text."""
    if isinstance(task, SeqInstr):
        yield from actions_in(task.instr_a)
        yield from actions_in(task.instr_b)
    else:
        yield task


def _is_open(task: Instr, level: Any) -> bool:
    """Whether the level could give this instruction: it is valid, and none of its actions is done yet."""
    try:
        level.validate_instrs(task)
    except RejectSampling:
        return False
    task.reset_verifier(level)
    return not any(_is_done(action, level) for action in actions_in(task))


def _is_done(action: Any, level: Any) -> bool:
    if isinstance(action, OpenInstr):
        return any(door.is_open for door in action.desc.obj_set)
    if isinstance(action, PlaceBetweenInstr):
        return cell_of(action.moved.cur_pos) in action.cells()
    return isinstance(action, SortColorsInstr) and all(map(level.in_its_room, level.balls))


def _parsed(text: str, level: Any) -> Instr | None:
    if match := _PLACE_BETWEEN.fullmatch(text):
        return _place_between(match.groups(), level)
    if text == OpenMatchingInstr("red").surface(level):
        return _open_matching(level)
    if text == SortColorsInstr().surface(level):
        return _sort_colors(level)
    for separator, sequence in ((THEN, BeforeInstr), (AFTER, AfterInstr)):
        if separator in text:
            one, _, other = text.partition(separator)
            parts = _clause(one), _clause(other)
            return sequence(*parts) if None not in parts else None
    return _clause(text)


def _clause(text: str) -> Instr | None:
    """One action, or two actions joined by "and"."""
    if AND not in text:
        return _action(text)
    one, _, other = text.partition(AND)
    parts = _action(one), _action(other)
    return AndInstr(*parts) if None not in parts else None


def _action(text: str) -> Instr | None:
    if match := _PUT_NEXT.fullmatch(text):
        moved, fixed = map(_description, match.groups())
        return PutNextInstr(moved, fixed) if moved.type != "door" else None
    match = _ACTION.fullmatch(text)
    if match is None:
        return None
    verb, thing = match[1], _description(match[2])
    if verb == "go to":
        return GoToInstr(thing)
    if verb == "open":
        return OpenInstr(thing) if thing.type == "door" else None
    return PickupInstr(thing) if thing.type != "door" else None


def _description(text: str) -> ObjDesc:
    match = _PARTS.fullmatch(text)
    assert match is not None  # `_THING` has the same form
    color, kind, location = match.groups()
    return ObjDesc(None if kind == "object" else kind, color, LOCATIONS.get(location))


def _place_between(words: tuple[str, ...], level: Any) -> Instr | None:
    found = [_things(level, kind, color) for color, kind in zip(words[::2], words[1::2], strict=True)]
    if not all(found):
        return NeverInstr()
    if max(map(len, found)) > 1:
        return None
    (moved,), (one,), (other,) = found
    return PlaceBetweenInstr(moved, (one, other)) if len({id(moved), id(one), id(other)}) == 3 else None


def _open_matching(level: Any) -> Instr | None:
    colors = {key.color for key in _things(level, "key")}
    if not colors:
        return NeverInstr()
    return OpenMatchingInstr(colors.pop()) if len(colors) == 1 else None


def _sort_colors(level: Any) -> Instr | None:
    red, blue = (_things(level, "ball", color) for color in ("red", "blue"))
    if not (red and blue):
        return NeverInstr()
    if len(red) + len(blue) > 2 or (level.num_cols, level.num_rows) != (2, 1):
        return None
    level.balls = {red[0]: RIGHT, blue[0]: LEFT}
    return SortColorsInstr()


def _things(level: Any, kind: str, color: str | None = None) -> list[WorldObj]:
    return [cell for cell in level.grid.grid if cell is not None and cell.type == kind and color in (None, cell.color)]
