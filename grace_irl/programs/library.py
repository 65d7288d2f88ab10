"""Functions and classes that several programs of a run share (docs/runs.md, "Reuse").

This module ranks such definitions for the user, and exports them as the source of a Python module.
"""

from __future__ import annotations

import itertools
import keyword
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from grace_irl.programs.export import plain
from grace_irl.programs.parsing import names, normalised, only_reads, statements, tokens
from grace_irl.programs.program import Definition, Program

SHARED = 2  # a function is reusable if at least this number of valid programs contain it


@dataclass(frozen=True)
class Known:
    """A function or class, with its text in the first program of the run that contains it.

    Attributes:
        digest: hash of the normalised syntax tree, which identifies the definition in other programs.
        name: qualified name in the first program, such as "near" or "Reward.near".
        program: id of the first program.
        source: lines of the definition in the first program, unchanged.
    """

    digest: str
    name: str
    program: str
    source: str


@dataclass(frozen=True)
class Usage:
    """Use of a function or class by the programs of a run.

    Attributes:
        known: the function or class.
        programs: number of different programs that contain `known`.
        valid: number of these programs that are valid.
        calls: number of calls of `known` by name, summed over all programs that contain `known`.
        best: id of the best valid program that contains `known`; "" if there is none.
    """

    known: Known
    programs: int
    valid: int
    calls: int
    best: str


def segment(source: str, definition: Definition) -> str:
    """The lines of a definition in a source. Lines beyond the end of the source are left out."""
    lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(lines[max(definition.first - 1, 0) : max(definition.last, 0)])


def usages(known: Iterable[Known], programs: Mapping[str, Program], order: Sequence[str]) -> list[Usage]:
    """The use of each function or class by the programs of a run, sorted by importance.

    Args:
        known: the functions and classes of a run.
        programs: all scored programs by id.
        order: ids of the valid programs, best first.

    Returns:
        The usages, sorted by the rank of `Usage.best`, then by the number of valid programs (most first), name and
        digest. Functions and classes that no valid program contains come last.
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
    """The usages of functions that at least `SHARED` valid programs contain, in the order of `uses`.

    Two kinds of functions are left out:

    - functions that always occur in the same enclosing definition, such as the methods of a shared class, because the
      whole class is reusable;
    - functions that occur only within other functions, because they may need variables of those functions.

    Args:
        uses: the usages to select from.
        programs: all scored programs by id.
        order: ids of the valid programs.
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


FUTURE = "from __future__ import annotations"
MAX_CONSTANT = 2_000  # maximum characters of a copied constant; comments name longer constants


@dataclass
class _Module:
    """The top-level statements of a program.

    Attributes:
        imports: map from a name to the import statement that binds it.
        constants: map from a name to the simple assignment that binds it.
        definitions: names of functions and classes.
    """

    imports: dict[str, str] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    definitions: set[str] = field(default_factory=set)


def library_source(
    uses: Sequence[Usage],
    programs: Mapping[str, Program],
    scores: Mapping[str, str],
    *,
    title: str,
    facts: Iterable[str],
) -> str:
    """The source of a module with functions of a run's programs.

    The imports come first. A constant comes before the first function that needs it. Above each function, a comment
    gives its origin and its use in the run. The comment also names definitions that the function needs and the module
    lacks. If a needed constant is longer than `MAX_CONSTANT`, or if the module has another constant of the same name,
    the comment names the constant, and the module does not define it. A method becomes a function whose first argument
    is `self`. If several functions have the same name, the later ones get a number (`near_2`), also in the functions
    that need them.

    Args:
        uses: functions to write, best first.
        programs: programs by id, at least the first program of each function (`Known.program`).
        scores: text about the score of each program, by id.
        title: first line of the module's docstring.
        facts: further lines of the docstring.
    """
    bases = [use.known.name.rpartition(".")[2] for use in uses]
    taken: set[str] = set()
    written = []
    for use, base in zip(uses, bases, strict=True):
        numbered = (f"{base}_{number}" for number in itertools.count(2))
        name = base if base not in taken else next(each for each in numbered if each not in taken | {*bases})
        taken.add(name)
        written.append((use, base, name))
    imports: set[str] = set()
    constants: dict[str, str] = {}
    blocks: list[str] = []
    exported = {use.known.digest: name for use, _, name in written}
    for use, base, name in written:
        program = programs[use.known.program]
        module, own = _module(program.source), {each.name: each.digest for each in program.functions}
        text = renamed(dedented(use.known.source), base, name)
        used = _closure(names(text), module.constants)
        imports |= {module.imports[each] for each in used & module.imports.keys()}
        needs, block = [], []
        for each, value in module.constants.items():
            if each in used and constants.get(each) != value:
                if each in constants or len(value) > MAX_CONSTANT:
                    needs.append(f"{each} as in {program.id}")
                else:
                    constants[each] = value
                    block.append(value)
        for each in sorted(used & module.definitions):
            wanted = exported.get(own.get(each, ""), "")
            if wanted == each:
                continue
            changes = wanted and each != base and wanted not in used and only_reads(text, each)
            changed = renamed(text, each, wanted) if changes else text
            if changed != text and each not in names(changed):  # a name in an f-string stays on Python 3.11
                text = changed
                if not any(each in names(value) for key, value in module.constants.items() if key in used):
                    continue
            needs.append(f"{each} as in {program.id}" if each in taken else each)
        said = _provenance(use, name, scores) + ([f"it also needs {', '.join(needs)}"] if needs else [])
        blocks += ["\n".join(block)] if block else []
        blocks.append("\n".join([*(f"# {plain(line)}" for line in said), text]))
    head = "\n".join(plain(line) for line in (title, "", *facts))
    ordered = [FUTURE, *([""] if imports - {FUTURE} else []), *sorted(imports - {FUTURE})]
    return "\n\n\n".join([f'"""{head}\n"""\n\n' + "\n".join(ordered), *blocks]) + "\n"


_TEXTS = (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))  # from Python 3.12 on, both exist


def dedented(text: str) -> str:
    """A definition without its indentation. Lines within strings stay unchanged, except in docstrings."""
    lines = text.split("\n")
    width = len(lines[0]) - len(lines[0].lstrip())
    inside: set[int] = set()
    before = tokenize.NEWLINE
    for token in tokens("\n".join(["if 1:", *lines])) if width else ():
        if token.type in _TEXTS and before not in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            inside |= set(range(token.start[0] - 1, token.end[0] - 1))
        before = token.type
    moved = [line if n in inside or line[:width].strip() else line[width:] for n, line in enumerate(lines)]
    return "\n".join(moved).strip("\n")


def renamed(text: str, old: str, new: str) -> str:
    """A definition with a new name. Uses of the old name within the definition (`old`, `self.old`) change, too."""
    if old == new:
        return text
    lines = text.split("\n")
    found = tokens(text)
    places = []
    depth = 0
    for n, token in enumerate(found):
        depth += (token.string in "([{") - (token.string in ")]}") if token.type == tokenize.OP else 0
        if token.type != tokenize.NAME or token.string != old:
            continue
        before = [each.string for each in found[max(n - 2, 0) : n]]
        after = found[n + 1].string if n + 1 < len(found) else ""
        keyword = depth > 0 and after == "=" and before[-1:] != ["."]
        attribute = before[-1:] == ["."] and before not in (["self", "."], ["cls", "."])
        if not (keyword or attribute):
            places.append(token.start)
    for row, column in reversed(places):
        line = lines[row - 1]
        lines[row - 1] = line[:column] + new + line[column + len(old) :]
    return "\n".join(lines)


def _closure(used: set[str], constants: Mapping[str, str]) -> set[str]:
    """Add to `used` the names in the values of used constants, until there are no more names to add."""
    while True:
        more = {name for each in used & constants.keys() for name in names(constants[each])}
        if more <= used:
            return used
        used = used | more


def _provenance(use: Usage, name: str, scores: Mapping[str, str]) -> list[str]:
    known = use.known
    where = f"{name}: {known.name} of {known.program}" if known.name != name else f"{name}, of {known.program}"
    return [
        f"{where}; in {use.valid} valid programs, {use.programs} in all, called at {use.calls} places",
        f"best in {use.best} ({scores.get(use.best, 'not scored')})",
    ]


def _module(source: str) -> _Module:
    text = normalised(source)
    lines = text.split("\n")
    found = _Module()
    for statement in statements(tokens(text)):
        words = [token.string for token in statement]
        (first, _), (last, end) = statement[0].start, statement[-1].end
        whole = "\n".join([*lines[first - 1 : last - 1], lines[last - 1][:end]])
        if words[0] in ("import", "from"):
            for bound in _bound(words):
                found.imports[bound] = whole
        elif words[0] in ("def", "class", "async") and len(words) > 1:
            found.definitions.add(words[2] if words[0] == "async" else words[1])
        elif words[1:2] in (["="], [":"]) and statement[0].type == tokenize.NAME and not keyword.iskeyword(words[0]):
            found.constants[words[0]] = whole
    return found


def _bound(words: Sequence[str]) -> Iterable[str]:
    """The names that an import statement binds."""
    after = list(words[words.index("import") + 1 :])
    for part in " ".join(word for word in after if word not in "()").split(","):
        pieces = part.split()
        if pieces:
            yield pieces[-1] if "as" in pieces else pieces[0]
