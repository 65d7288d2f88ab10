"""The sketcher of programs over screens, and the writer of these programs.

A program is written from a reading, which describes goal screens by conditions.
"""

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
    """The source of the functions and constants with these names in module `functions`, and of all that they use.

    Returns:
        The lines of imports, and the definitions in the order of the module.
    """
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
    """The definitions and imports of module `functions`.

    Returns:
        The source of each definition by name, and the imported names by module. `import re` imports the name "re".
    """
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
"""Width of the indentation of conditions in a program, in characters."""
KEPT = {
    "words": 'self.words = " ".join(words(plain(extra_info)))',
    "times": "self.times = times(plain(extra_info))",
    "numbers": "self.numbers = numbers(plain(extra_info))",
    "quotes": "self.quotes = quotes(plain(extra_info))",
}
"""For each attribute that conditions can read, the line of a program that sets the attribute from the instruction."""


def write_source(reading: ScreenReading, *, system: bool) -> str:
    """Write the program of a reading.

    Args:
        reading: the reading.
        system: whether the program also reads the system's own windows (the status bar).
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
    """Whether a node of a syntax tree is an attribute with this name."""
    return isinstance(node, ast.Attribute) and node.attr == name


def _goal(clause: Clause) -> str:
    """Python for a list of the results of a clause's conditions."""
    return "[\n" + "".join(f"{_fitted(_expression(one), 1)},\n" for one in clause) + "]"


Expression = tuple[str, list[str], str]
"""Python in three parts: the text before the tests, the tests (to be joined by "and"), and the text after the tests."""


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
"""Price in nats of readings that may test the system's own windows (the status bar). Clocks and other signs in these
windows change by chance."""
UNSURE = 12.0
"""If the mistakes of the best reading cost more than this number of nats, the search also tries readings that may test
the system's own windows (the status bar)."""
CANDIDATES = 12
"""Scale of the random choice of a condition to add to a clause: the condition of rank i has a probability proportional
to exp(-i / CANDIDATES)."""


class UiSketcher:
    """Sketcher of programs over screens. A sketch is a reading as JSON. Variations change one condition or clause.

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
        """The readings of lowest cost. Each is followed by a version with more conditions (`SearchSpace.fuller`)."""
        sketches = [reading.text() for one in self._readings for reading in (one, self._found.fuller(one))]
        return list(dict.fromkeys(sketches))

    def mutate(self, sketch: str, seed: int) -> str:
        """Drop, add or exchange a condition of a random clause, or drop the clause."""
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
        """Cost of the best reading minus the cost of the sketch's reading, at most 0."""
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
        """Draw a condition to add to a clause (`SearchSpace.additions`); None if there is none.

        The first additions are the most likely.

        Args:
            clause: the clause to extend.
            former: a clause whose conditions are not drawn.
            rng: the random generator.
        """
        offered = [one for one in self._found.additions(clause) if one not in former][: 4 * CANDIDATES]
        if not offered:
            return None
        chances = np.exp(-np.arange(len(offered)) / CANDIDATES)
        return offered[int(rng.choice(len(offered), p=chances / chances.sum()))]


def _looks(clause: Sequence[Condition]) -> bool:
    """Whether a clause has a condition on the screen."""
    return any(not isinstance(one, Spoken) for one in clause)
