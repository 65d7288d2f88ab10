"""The functions and classes that the programs of a run share (METHODS: Reuse)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from grace_irl.programs.definition import Definition
from grace_irl.programs.program import Program

SHARED = 2  # valid programs from which a function counts as reusable


@dataclass(frozen=True)
class Known:
    """A function or class as the first program that was told with it wrote it.

    Attributes:
        digest: of its normalised syntax tree.
        name: qualified, in that program.
        program: that program's id.
        source: its lines there, as they stand.
    """

    digest: str
    name: str
    program: str
    source: str


@dataclass(frozen=True)
class Usage:
    """How the programs of a run use a function.

    Attributes:
        known: the function.
        programs: different programs that contain it.
        valid: of those, how many have a score.
        calls: places that call it by name in the sources of those programs, added up; not calls at run time.
        best: the best valid program that contains it; "" without one.
    """

    known: Known
    programs: int
    valid: int
    calls: int
    best: str


def segment(source: str, definition: Definition) -> str:
    """The lines of a definition. Lines end as Python's parser ends them; a range that is not there gives less."""
    lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(lines[max(definition.first - 1, 0) : max(definition.last, 0)])


def usages(known: Iterable[Known], programs: Mapping[str, Program], order: Sequence[str]) -> list[Usage]:
    """How each function is used, those of the best programs first.

    Args:
        known: the functions of a run.
        programs: every program that was told, by id.
        order: ids of the valid ones, best first.

    Returns:
        By the place of the best valid program with it (none: last), then by the number of valid programs, then by
        name and digest.
    """
    place = {name: n for n, name in enumerate(order)}
    users: dict[str, dict[str, int]] = {}
    for program in programs.values():
        for each in program.functions:
            calls = users.setdefault(each.digest, {})
            calls[program.id] = calls.get(program.id, 0) + each.calls
    found = []
    for one in known:
        calls = users.get(one.digest, {})
        valid = sorted((name for name in calls if name in place), key=lambda name: place[name])
        best = valid[0] if valid else ""
        found.append(Usage(one, len(calls), len(valid), sum(calls.values()), best))
    last = len(place)
    return sorted(found, key=lambda use: (place.get(use.best, last), -use.valid, use.known.name, use.known.digest))


def reusable(uses: Iterable[Usage], programs: Mapping[str, Program], order: Sequence[str]) -> list[Usage]:
    """Those that at least `SHARED` valid programs contain, in the order given.

    Left out are parts that never occur without the same whole (the methods of a class that is shared itself), and
    functions within functions, which may need the variables around them.
    """
    owners: dict[str, set[str]] = {}
    free: set[str] = set()
    for name in order:
        functions = programs[name].functions
        digests = {each.name: each.digest for each in functions}
        for each in functions:
            owners.setdefault(each.digest, set()).add(digests.get(each.name.rpartition(".")[0], ""))
            if each.within != "function":
                free.add(each.digest)
    return [
        use
        for use in uses
        if use.valid >= SHARED
        and use.known.digest in free
        and (len(owners[use.known.digest]) > 1 or "" in owners[use.known.digest])
    ]
