"""Writes a reading of screens as a reward program that a person can read."""

from __future__ import annotations

import re
from textwrap import fill

from grace_irl.propose.synthesis.quote import quoted
from grace_irl.propose.synthesis.ui.quotation import quote
from grace_irl.propose.synthesis.ui.reading import Around, Clause, Condition, Reading, Spoken, Test

WIDTH = 100


def write_source(reading: Reading, *, system: bool) -> str:
    """The program of a reading.

    Args:
        system: whether it looks at the system's own windows, too.
    """
    fetch = "all_nodes" if system else "nodes"
    goals = [_goal(clause, 3) for clause in reading.clauses]
    body = "\n".join(goals)
    init = _init(body)
    several = len(goals) > 1
    if several:
        returned = f"        goals = [\n{_indented(body, 0)}\n        ]\n        return max(map(graded, goals))"
    else:
        returned = f"        return graded(\n{body}\n        )"
        returned = returned.replace("            ],\n        )", "            ]\n        )")
    reward = f"""class Reward:
{init}    def reward_fn(self, state: str) -> float:
        screen = {fetch}(state)
{returned}"""
    names = set(re.findall(r"\b[a-z_]+\b", reward))
    imports, definitions = quote(sorted(names))
    about = fill(f"Reward 1.0 where {reading.phrase()}; less than 0.5 elsewhere.", WIDTH)
    docstring = f'"""{about}{chr(10) if chr(10) in about else ""}"""'
    return "\n".join([docstring, "", *imports, "", *_spaced(definitions), "", "", reward, ""])


def _init(body: str) -> str:
    """The constructor: what the conditions ask of the instruction."""
    made = {
        "self.words": 'self.words = " ".join(words(plain(extra_info)))',
        "self.times": "self.times = times(plain(extra_info))",
        "self.quotes": "self.quotes = quotes(plain(extra_info))",
        "self.numbers": "self.numbers = numbers(plain(extra_info))",
    }
    needed = [line for name, line in made.items() if name in body] or ["pass  # the screen alone decides"]
    lines = "".join(f"        {line}\n" for line in needed)
    return f'    def __init__(self, extra_info: str = "") -> None:\n{lines}\n'


def _spaced(definitions: list[str]) -> list[str]:
    """Definitions with empty lines between: two before functions, none between constants."""
    lines: list[str] = []
    constants = [text for text in definitions if not text.startswith("def ")]
    for text in constants:
        lines.append(text)
    for text in definitions:
        if text.startswith("def "):
            lines += ["", "", text] if lines else ["", text]
    return lines


def _goal(clause: Clause, depth: int) -> str:
    pad = "    " * depth
    lines = "".join(f"{_fitted(_expression(one), depth + 1)},\n" for one in clause)
    return f"{pad}[\n{lines}{pad}],"


def _indented(text: str, depth: int) -> str:
    return "\n".join("    " * depth + line for line in text.splitlines())


Expression = tuple[str, list[str], str]
"""What comes before tests that hold together, the tests, and what comes behind."""


def _expression(condition: Condition) -> Expression | list[Expression]:
    match condition:
        case Spoken(word):
            return ("", [f"{quoted(word)} in self.words.split()"], "")
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
    if len(line) < WIDTH or not before:
        return line
    inside, _, rest = behind.partition(")")
    parts = [f"{pad}    {'and ' if i else ''}{test}" for i, test in enumerate(tests)]
    return "\n".join([f"{pad}{before}", *parts, f"{pad}    {inside.strip()}", f"{pad}){rest}"])
