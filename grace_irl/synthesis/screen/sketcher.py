"""Programs that look for what goal screens show, and how a reading is written as one that a person can read."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Sequence
from functools import cache
from textwrap import fill

import numpy as np

from grace_irl.demos.labels import Labelled
from grace_irl.programs.parsing import parse
from grace_irl.propose.templates import written
from grace_irl.synthesis.screen import functions
from grace_irl.synthesis.screen.reading import Around, Clause, Condition, ScreenReading, Spoken, Test
from grace_irl.synthesis.screen.search import SearchSpace
from grace_irl.text import quoted


def quote(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Import lines, and the definitions of these functions and constants of `functions`, in the order of the file."""
    definitions, imports = _library()
    wanted, used, new = set[str](), set[str](), set(names)
    while new := (new & definitions.keys()) - wanted:
        wanted |= new
        new = set().union(*(_names(definitions[name]) for name in new))
        used |= new
    lines = []
    for module, offered in imports.items():
        if taken := sorted(used & offered):
            lines.append(f"import {module}" if module in taken else f"from {module} import {', '.join(taken)}")
    return lines, [definitions[name] for name in definitions if name in wanted]


def _names(source: str) -> set[str]:
    return {node.id for node in ast.walk(parse(source)) if isinstance(node, ast.Name)}


@cache
def _library() -> tuple[dict[str, str], dict[str, set[str]]]:
    """Source of each definition, and by module the names that it imports; a module by itself holds its own name."""
    text = inspect.getsource(functions)
    lines = text.splitlines()
    definitions: dict[str, str] = {}
    imports: dict[str, set[str]] = {}
    for node in parse(text).body:
        match node:
            case ast.FunctionDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
                definitions[name] = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            case ast.Import(names=[ast.alias(name=module)]):
                imports[module] = {module}
            case ast.ImportFrom(module=str(module), names=names):
                imports[module] = {alias.name for alias in names}
    return definitions, imports


WIDTH = 100
INDENT = 16
"""Columns before the first condition's line of a list."""
KEPT = {
    "words": 'self.words = " ".join(words(plain(extra_info)))',
    "times": "self.times = times(plain(extra_info))",
    "numbers": "self.numbers = numbers(plain(extra_info))",
    "quotes": "self.quotes = quotes(plain(extra_info))",
}
"""The parts of the instruction that a program keeps, by the attribute that its conditions read."""


def write_source(reading: ScreenReading, *, system: bool) -> str:
    """The program of a reading.

    Args:
        system: whether it looks at the system's own windows, too.
    """
    goals = [_goal(clause) for clause in reading.clauses]
    nodes = "all_nodes" if system else "nodes"
    asked = parse(",\n".join(goals))
    kept = [line for name, line in KEPT.items() if any(_reads(node, name) for node in ast.walk(asked))]
    imports, definitions = quote({nodes, "graded"}.union(*map(_names, [*goals, *kept])))
    about = fill(f"Reward 1.0 where {reading.phrase()}; less than 0.5 elsewhere.", WIDTH, break_long_words=False)
    values: dict[str, object] = {
        "goals": goals,
        "nodes": nodes,
        "kept": kept,
        "imports": imports,
        "definitions": definitions,
    }
    values["about"] = f"{about}\n" if "\n" in about else about
    return written("grace_irl.synthesis", "screen.py.j2", values)


def _reads(node: ast.AST, name: str) -> bool:
    """Whether a node of a syntax tree is `self.name`."""
    return isinstance(node, ast.Attribute) and node.attr == name


def _goal(clause: Clause) -> str:
    """The list of the outcomes of a clause's conditions."""
    return "[\n" + "".join(f"{_fitted(_expression(one), 1)},\n" for one in clause) + "]"


Expression = tuple[str, list[str], str]
"""The text before tests that hold together, the tests, and the text behind."""


def _expression(condition: Condition) -> Expression | list[Expression]:
    match condition:
        case Spoken((word,)):
            return ("", [f"{quoted(word)} in self.words.split()"], "")
        case Spoken(words):
            return ("", [f"not {{{', '.join(map(quoted, words))}}}.isdisjoint(self.words.split())"], "")
        case Around(anchor, patterns):
            return [
                (f"*best(items(screen, {quoted(anchor)}), lambda item: [", [], "])"),
                *(_some(pattern.expression(), "item") for pattern in patterns),
            ]
        case Test(pattern, count):
            before, tests, behind = _some(pattern.expression(), "screen")
            if count == 0:
                before = "not any("
            elif count > 1:
                before, behind = "sum(", f"{behind} >= {count}"
            return (before, tests, behind)


def _some(tests: list[str], place: str) -> Expression:
    return ("any(", tests, f" for n in {place})")


def _fitted(expression: Expression | list[Expression], depth: int) -> str:
    pad = "    " * depth
    if isinstance(expression, list):
        (before, _, behind), *inner = expression
        lines = "".join(f"{_fitted(one, depth + 1)},\n" for one in inner)
        return f"{pad}{before}\n{lines}{pad}{behind}"
    before, tests, behind = expression
    line = pad + before + " and ".join(tests) + behind
    if len(line) + INDENT - 4 <= WIDTH or not before:
        return line
    inside, _, rest = behind.partition(")")
    parts = [f"{pad}    {'and ' if i else ''}{test}" for i, test in enumerate(tests)]
    return "\n".join([f"{pad}{before}", *parts, f"{pad}    {inside.strip()}", f"{pad}){rest}"])


SYSTEM = 6.0
"""Price of a reading, in nats, for looking at the system's own windows: clocks, batteries and signals go by there."""
UNSURE = 12.0
"""Nats that a reading of the apps' windows alone may be wrong by before the system's are looked at."""
CANDIDATES = 12
"""Conditions among which a variation chooses."""


class UiSketcher:
    """Sketches are readings; variations say less, more or something else of the same goals.

    Args:
        items: training demonstrations.
    """

    def __init__(self, items: Sequence[Labelled]) -> None:
        self._found = SearchSpace(items, system=False)
        self._readings = self._found.readings()
        if not self._readings or self._wrong(self._readings[0], self._found) > UNSURE:
            wider = SearchSpace(items, system=True)
            readings = wider.readings()
            if readings and (
                not self._readings or wider.cost(readings[0]) + SYSTEM < self._found.cost(self._readings[0])
            ):
                self._found, self._readings = wider, readings

    @staticmethod
    def _wrong(reading: ScreenReading, found: SearchSpace) -> float:
        return found.evidence.cost(found.hits(reading))

    def initial(self) -> list[str]:
        """The readings of least cost, and of each what asks for more, if there is more."""
        sketches = [reading.text() for one in self._readings for reading in (one, self._found.fuller(one))]
        return list(dict.fromkeys(sketches))

    def mutate(self, sketch: str, seed: int) -> str:
        """Drops, adds or exchanges a condition of one clause, or drops the clause."""
        rng = np.random.default_rng(seed)
        clauses = list(ScreenReading.of(sketch).clauses)
        at = int(rng.integers(len(clauses)))
        if len(clauses) > 1 and rng.random() < 0.1:
            return ScreenReading(tuple(clauses[:at] + clauses[at + 1 :])).text()
        clauses[at] = self._varied(clauses[at], rng)
        return ScreenReading(tuple(clauses)).text()

    def source(self, sketch: str) -> str:
        return write_source(ScreenReading.of(sketch), system=self._found.system)

    def prior(self, sketch: str) -> float:
        """Minus what the reading costs more than the best one."""
        return min(0.0, self._found.cost(self._readings[0]) - self._found.cost(ScreenReading.of(sketch)))

    def reasoning(self, sketch: str) -> str:
        return f"The goal is reached where {ScreenReading.of(sketch).phrase()}."

    def _varied(self, clause: Clause, rng: np.random.Generator) -> Clause:
        conditions = list(clause)
        step = rng.random()
        if (step < 0.7 and len(conditions) > 1) or step < 0.3:
            dropped = int(rng.integers(len(conditions)))
            rest = conditions[:dropped] + conditions[dropped + 1 :]
            if step < 0.2 and _looks(rest):
                return tuple(rest)
            if rest:
                conditions = rest
        added = self._addition(tuple(conditions), clause, rng)
        return tuple(conditions if added is None else [*conditions, added])

    def _addition(self, clause: Clause, former: Clause, rng: np.random.Generator) -> Condition | None:
        """A condition that nearly all goals of a clause share, cheap and telling ones the likelier."""
        offered = [one for one in self._found.additions(clause) if one not in former][: 4 * CANDIDATES]
        if not offered:
            return None
        chances = np.exp(-np.arange(len(offered)) / CANDIDATES)
        return offered[int(rng.choice(len(offered), p=chances / chances.sum()))]


def _looks(clause: Sequence[Condition]) -> bool:
    """Whether a clause looks at the screen."""
    return any(not isinstance(one, Spoken) for one in clause)
