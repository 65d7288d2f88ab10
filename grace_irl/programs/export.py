"""Writes a program as one file that needs nothing of ours: provenance above, calibration below."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

NAMES = ("SCALE", "OFFSET", "discriminator_logit")
SPARE = ("CALIBRATION_SCALE", "CALIBRATION_OFFSET", "calibrated_logit")


def export_source(
    source: str, *, title: str, facts: Sequence[tuple[str, str]], scale: float, offset: float
) -> str:
    """The program as a module of its own.

    The module's docstring is the title, the facts (one `name: value` each) and the program's own docstring.
    At its end it defines `SCALE`, `OFFSET` and `discriminator_logit(reward, log_pi=0.0)`: the logit of D, the
    probability that a state is an expert's. A program that uses one of these names itself gets
    `CALIBRATION_SCALE`, `CALIBRATION_OFFSET` and `calibrated_logit` instead.

    Args:
        source: a program that the sandbox has parsed and accepted. Only then is it safe to parse here.
        title: first line of the docstring.
        facts: provenance.
        scale, offset: the calibration; 1 and 0 without one.
    """
    text = source.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    tree = ast.parse(text)
    own = ast.get_docstring(tree) or ""
    body = _without_docstring(text, tree).strip("\n")
    scale_name, offset_name, logit_name = SPARE if _uses(tree, NAMES) else NAMES
    width = max((len(name) for name, _ in facts), default=0) + 1
    lines = [title, "", *(f"{name + ':':<{width}} {value}" for name, value in facts)]
    if own and not own.startswith(title):
        lines += ["", *own.splitlines()]
    docstring = "\n".join(_plain(line).rstrip() for line in lines)
    gap = "\n" if body.startswith(("class ", "def ", "@")) else ""
    return f'''"""{docstring}
"""

{gap}{body}


# The discriminator that this reward was fitted as: D(s) = sigmoid({scale_name} * reward + {offset_name} - log
# pi).
{scale_name} = {float(scale)!r}
{offset_name} = {float(offset)!r}


def {logit_name}(reward, log_pi=0.0):
    """Logit of D, for one reward or an array: above 0 where a state looks more like an expert's than not."""
    return {scale_name} * reward + {offset_name} - log_pi
'''


def calibration_of(source: str) -> tuple[float, float] | None:
    """Scale and offset that an exported file carries, or None; nothing is run or parsed."""
    for names in (SPARE, NAMES):
        found = [re.findall(rf"^{name} = (-?[0-9][0-9.e+-]*)$", source, re.MULTILINE) for name in names[:2]]
        if all(found):
            try:
                scale, offset = (float(values[-1]) for values in found)
            except ValueError:
                continue
            if scale > 0:
                return scale, offset
    return None


def _without_docstring(text: str, tree: ast.Module) -> str:
    if ast.get_docstring(tree, clean=False) is None:
        return text
    node = tree.body[0]
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    lines = text.encode().split(b"\n")  # column offsets count UTF-8 bytes
    before = [*lines[: node.lineno - 1], lines[node.lineno - 1][: node.col_offset]]
    after = [lines[node.end_lineno - 1][node.end_col_offset :].lstrip(b" ;"), *lines[node.end_lineno :]]
    return b"\n".join([*before, *after]).decode()


def _uses(tree: ast.Module, names: Sequence[str]) -> bool:
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    used |= {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
    }
    return not used.isdisjoint(names)


def _plain(line: str) -> str:
    """A line that can stand in a docstring: no quotes that end it, no escapes, nothing unprintable."""
    clean = "".join(c if c.isprintable() else " " for c in line)
    return clean.replace("\\", "/").replace('"', "'")
