"""Writes a program as one file that needs nothing of ours: provenance above, calibration below."""

from __future__ import annotations

import inspect
import itertools
import re
import tokenize
from collections.abc import Sequence

from grace_irl.programs.tokens import TokenInfo, normalised, tokens

NAMES = ("SCALE", "OFFSET", "discriminator_logit")
CALIBRATION = "# The discriminator that was fitted"
"""How the part begins that an export puts below a program."""
SPARE = ("CALIBRATION_SCALE", "CALIBRATION_OFFSET", "calibrated_logit")


def export_source(source: str, *, title: str, facts: Sequence[tuple[str, str]], scale: float, offset: float) -> str:
    """The program as a module of its own.

    The module's docstring is the title, the facts (one `name: value` each) and the program's own docstring.
    At its end it defines `SCALE`, `OFFSET` and `discriminator_logit(reward, log_pi=0.0)`: the logit of D, the
    probability that a state is an expert's. A program that uses one of these names itself gets
    `CALIBRATION_SCALE`, `CALIBRATION_OFFSET` and `calibrated_logit` instead.

    Args:
        source: a program. It is split into tokens, and never parsed or run here.
        title: first line of the docstring.
        facts: provenance.
        scale, offset: the calibration; 1 and 0 without one.
    """
    text = normalised(source)
    found = tokens(text)
    own, body = _take_docstring(text, found)
    used = {token.string for token in found if token.type == tokenize.NAME}
    scale_name, offset_name, logit_name = SPARE if used & set(NAMES) else NAMES
    width = max((len(name) for name, _ in facts), default=0) + 1
    lines = [title, "", *(f"{name + ':':<{width}} {value}" for name, value in facts)]
    if own and not own.startswith(title):
        lines += ["", *own.splitlines()]
    docstring = "\n".join(_plain(line).rstrip() for line in lines)
    gap = "\n" if body.startswith(("class ", "def ", "@")) else ""
    return f'''"""{docstring}
"""

{gap}{body}


{CALIBRATION}: D(s) = sigmoid({scale_name} * reward + {offset_name} - log pi).
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


def program_of(source: str) -> str:
    """The program that an exported file holds, without provenance and calibration; any other source as it is."""
    text = normalised(source)
    at = text.rfind(f"\n{CALIBRATION}")
    if at < 0 or calibration_of(text[at:]) is None:
        return source
    said, body = _take_docstring(text[:at], tokens(text[:at]))
    own = "".join(said.split("\n\n", 2)[2:])  # behind the title and the facts
    docstring = f'"""{own}{chr(10) if chr(10) in own else ""}"""\n\n\n' if own else ""
    return f"{docstring}{body}\n"


def _take_docstring(text: str, found: Sequence[TokenInfo]) -> tuple[str, str]:
    """The module's docstring, and the text without it."""
    strings = list(itertools.takewhile(lambda token: token.type == tokenize.STRING, found))
    after = found[len(strings)].string if len(strings) < len(found) else ""
    prefixes = {token.string.split(token.string[-1], 1)[0].lower() for token in strings}
    if not strings or after not in ("\n", ";", "") or not prefixes <= {"", "r", "u"}:
        return "", text.strip("\n")
    # Literals alone: nothing in them can be called.
    literal = " ".join(token.string for token in strings)
    own = str(eval(compile(f"({literal})", "<docstring>", "eval"), {"__builtins__": {}}))
    lines = text.split("\n")
    (first, start), (last, end) = strings[0].start, strings[-1].end
    rest = lines[last - 1][end:].lstrip(" ;")
    kept = [*lines[: first - 1], lines[first - 1][:start], rest, *lines[last:]]
    return inspect.cleandoc(own), "\n".join(kept).strip("\n")


def _plain(line: str) -> str:
    """A line that can stand in a docstring: no quotes that end it, no escapes, nothing unprintable."""
    clean = "".join(c if c.isprintable() else " " for c in line)
    return clean.replace("\\", "/").replace('"', "'")
