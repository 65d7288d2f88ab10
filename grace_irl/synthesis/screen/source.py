"""Writes a reading of screens as a reward program that a person can read."""

from __future__ import annotations

import ast
from textwrap import fill, indent

from grace_irl.programs.parsing import parse
from grace_irl.synthesis.quote import quoted
from grace_irl.synthesis.screen.quotation import quote
from grace_irl.synthesis.screen.reading import Around, Clause, Condition, Reading, Spoken, Test

WIDTH = 100
INDENT = 16
"""Columns before the first condition's line of a list."""
KEPT = {
    "words": 'self.words = " ".join(words(plain(extra_info)))',
    "times": "self.times = times(plain(extra_info))",
    "numbers": "self.numbers = numbers(plain(extra_info))",
    "quotes": "self.quotes = quotes(plain(extra_info))",
}
"""What a program keeps of the instruction, by the attribute that its conditions ask for."""


def write_source(reading: Reading, *, system: bool) -> str:
    """The program of a reading.

    Args:
        system: whether it looks at the system's own windows, too.
    """
    goals = [_goal(clause) for clause in reading.clauses]
    if len(goals) == 1:
        returned = f"return graded(\n{indent(goals[0], '    ')}\n)"
    else:
        listed = ",\n".join(indent(goal, "    ") for goal in goals)
        returned = f"goals = [\n{listed},\n]\nreturn max(map(graded, goals))"
    body = f"screen = {'all_nodes' if system else 'nodes'}(state)\n{returned}"
    tree = parse(f"def reward_fn(self, state):\n{indent(body, '    ')}")
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    asked = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    kept = [line for name, line in KEPT.items() if name in asked]
    init = "\n".join(kept or ["pass  # the screen alone decides"])
    used = {node.id for line in kept for node in ast.walk(parse(line)) if isinstance(node, ast.Name)}
    imports, definitions = quote(names | used)
    about = fill(f"Reward 1.0 where {reading.phrase()}; less than 0.5 elsewhere.", WIDTH, break_long_words=False)
    methods = [
        f'def __init__(self, extra_info: str = "") -> None:\n{indent(init, "    ")}',
        f"def reward_fn(self, state: str) -> float:\n{indent(body, '    ')}",
    ]
    reward = "class Reward:\n" + "\n\n".join(indent(method, "    ") for method in methods)
    docstring = f'"""{about}{chr(10) if chr(10) in about else ""}"""'
    return "\n".join([docstring, "", *imports, "", *_spaced(definitions), "", "", reward, ""])


def _spaced(definitions: list[str]) -> list[str]:
    """Definitions with empty lines between: two before functions, none between constants."""
    lines = [text for text in definitions if not text.startswith("def ")]
    for text in definitions:
        if text.startswith("def "):
            lines += ["", "", text] if lines else ["", text]
    return lines


def _goal(clause: Clause) -> str:
    """The list of the outcomes of a clause's conditions."""
    return "[\n" + "".join(f"{_fitted(_expression(one), 1)},\n" for one in clause) + "]"


Expression = tuple[str, list[str], str]
"""What comes before tests that hold together, the tests, and what comes behind."""


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
