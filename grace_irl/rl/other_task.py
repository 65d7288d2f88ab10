"""Other tasks of a BabyAI world: instructions of the same form as the level's instruction, with another meaning."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np
from minigrid.envs.babyai.core.roomgrid_level import RejectSampling
from minigrid.envs.babyai.core.verifier import (
    LOC_NAMES,
    OBJ_TYPES,
    AndInstr,
    GoToInstr,
    Instr,
    ObjDesc,
    OpenInstr,
    PickupInstr,
    PutNextInstr,
    SeqInstr,
)

from grace_irl.rl.environments import quiet
from grace_irl.rl.instructions import NeverInstr, actions_in, parse

ON_ONE_OBJECT = (GoToInstr, OpenInstr, PickupInstr)
"""Classes of instructions with a single description, `desc`."""

ABSENT = "absent object"
"""Deviation of worlds without other tasks: the instruction is that of another world, about an object that this world
does not have."""
DEVIATIONS = (
    *("similar object", "other object", "exchanged", "other moved", "other fixed", "other order", "other part"),
    ABSENT,
)
"""Names of the ways in which another task differs from the instruction."""
WORLDS = 10
"""Number of other worlds in which `absent_task` looks for an instruction."""


def other_tasks(level: Any) -> dict[str, list[Instr]]:
    """Instructions of the same form as the level's instruction, about things of the same world, with another meaning.

    The deviations depend on the form of the instruction:

    - "go to", "open" and "pick up": a new description replaces the description in the level's instruction. The new
      description has values for the same parts (type, colour, location), but matches no object that the replaced
      description matches. In "similar object", the two descriptions share a value. In "other object", they share none.
    - "put next to": in "exchanged", the two objects swap roles. In "other moved", another description replaces that
      of the moved object. In "other fixed", another description replaces that of the fixed object.
    - sequences: in "other order", the two parts of "then" or "after" swap places. In "other part", another task of the
      same form replaces one part.

    Args:
        level: a BabyAI environment, unwrapped and just reset.

    Returns:
        The instructions by the name of the deviation; {} if the world has none. The instructions are not strict. (In
        BabyAI, a strict instruction fails at a wrong object or in a wrong order.)
    """
    found: dict[str, list[Instr]] = {}
    for name, task in _others(level.instrs, level):
        if _is_valid(task, level):
            found.setdefault(name, []).append(task)
    return found


def absent_task(level: Any, rng: np.random.Generator) -> tuple[Instr, str] | None:
    """Draw an instruction of another world of the level, about an object that this world does not have.

    Args:
        level: a BabyAI environment, unwrapped and just reset. It is not changed.
        rng: generator of the other worlds.

    Returns:
        The instruction, which nothing in this world fulfils, and its text; None if none of `WORLDS` worlds has one.
    """
    other = deepcopy(level)
    for seed in rng.integers(2**31 - 1, size=WORLDS).tolist():
        with quiet():
            other.reset(seed=seed)
        task = parse(other.mission, level)
        if task is not None and any(_is_absent(action) for action in actions_in(task)):
            return task, other.mission
    return None


def copy_of(task: Any) -> Any:
    """A copy of an instruction. The copy is not strict, and remembers nothing of an episode."""
    if isinstance(task, SeqInstr):
        return type(task)(copy_of(task.instr_a), copy_of(task.instr_b))
    if isinstance(task, PutNextInstr):
        return PutNextInstr(_copied(task.desc_move), _copied(task.desc_fixed))
    return type(task)(_copied(task.desc))


def _others(right: Any, level: Any) -> Iterator[tuple[str, Instr]]:
    """Other tasks of the form of `right`, each with the name of its deviation."""
    if isinstance(right, PutNextInstr):
        yield from _other_pairs(right, level)
    elif isinstance(right, SeqInstr):
        yield from _other_sequences(right, level)
    elif isinstance(right, ON_ONE_OBJECT):
        for description in _other_descriptions(right.desc, level):
            if isinstance(right, OpenInstr) != (description.type == "door") and not isinstance(right, GoToInstr):
                continue
            name = "similar object" if _shares_a_part(right.desc, description) else "other object"
            yield name, type(right)(description)


def _other_pairs(right: PutNextInstr, level: Any) -> Iterator[tuple[str, Instr]]:
    if right.desc_fixed.type != "door":
        yield "exchanged", PutNextInstr(_copied(right.desc_fixed), _copied(right.desc_move))
    for moved in _other_descriptions(right.desc_move, level):
        if moved.type != "door":
            yield "other moved", PutNextInstr(moved, _copied(right.desc_fixed))
    for fixed in _other_descriptions(right.desc_fixed, level):
        yield "other fixed", PutNextInstr(_copied(right.desc_move), fixed)


def _other_sequences(right: SeqInstr, level: Any) -> Iterator[tuple[str, Instr]]:
    one, two = right.instr_a, right.instr_b
    alike = any(_is_alike(*pair) for pair in itertools.product(actions_in(one), actions_in(two)))
    if not isinstance(right, AndInstr) and not alike:
        yield "other order", type(right)(copy_of(two), copy_of(one))
    for _, other in _others(one, level):
        yield "other part", type(right)(other, copy_of(two))
    for _, other in _others(two, level):
        yield "other part", type(right)(copy_of(one), other)


def _other_descriptions(right: ObjDesc, level: Any) -> Iterator[ObjDesc]:
    """Descriptions of things of the world, with values for the same parts as `right`.

    No description matches a thing that `right` matches.
    """
    things = [cell for cell in level.grid.grid if cell is not None and cell.type in OBJ_TYPES]
    types = sorted({thing.type for thing in things}) if right.type else [None]
    colors = sorted({thing.color for thing in things}) if right.color else [None]
    for parts in itertools.product(types, colors, LOC_NAMES if right.loc else [None]):
        other = ObjDesc(*parts)
        matches, _ = other.find_matching_objs(level)
        if matches and not any(match is thing for match in matches for thing in right.obj_set):
            yield other


def _shares_a_part(one: ObjDesc, other: ObjDesc) -> bool:
    pairs = ((one.type, other.type), (one.color, other.color), (one.loc, other.loc))
    return any(a is not None and a == b for a, b in pairs)


def _is_valid(task: Any, level: Any) -> bool:
    """Whether the level may give this instruction: the objects lie in the grid, and the actions suit them."""
    try:
        level.validate_instrs(task)
    except RejectSampling:
        return False
    task.reset_verifier(level)
    for action in actions_in(task):
        if not all(description.obj_set for description in _descriptions(action)):
            return False  # the agent carries the object from the start
        if isinstance(action, PickupInstr) and any(thing.type == "door" for thing in action.desc.obj_set):
            return False
    return True


def _descriptions(action: Any) -> list[ObjDesc]:
    return [getattr(action, name) for name in ("desc", "desc_move", "desc_fixed") if hasattr(action, name)]


def _is_absent(action: Any) -> bool:
    """Whether no object of the world matches a description in this action."""
    return isinstance(action, NeverInstr) or not all(each.obj_set for each in _descriptions(action))


def _is_alike(one: Any, other: Any) -> bool:
    """Whether one act may fulfil both actions: they have the same form, and their descriptions share objects."""
    if type(one) is not type(other):
        return False
    pairs = zip(_descriptions(one), _descriptions(other), strict=True)
    return all(any(thing is match for thing in a.obj_set for match in b.obj_set) for a, b in pairs)


def _copied(description: ObjDesc) -> ObjDesc:
    return ObjDesc(description.type, description.color, description.loc)
