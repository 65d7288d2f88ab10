"""Export of a reward program as one self-contained Python file: provenance, program, calibration.

The calibration is a scale and an offset. They turn a reward into the logit of D, and D is the probability that a state
is an expert's. The calibration stands at the end of the file, so that no string or variable of the program can be
mistaken for the calibration. This module splits programs into tokens, but never runs them.
"""

from __future__ import annotations

import inspect
import itertools
import math
import re
import tokenize
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Literal, get_args

from grace_irl.demos.trajectory import LabelRule
from grace_irl.errors import GraceError, InputError
from grace_irl.programs.components import names_of
from grace_irl.programs.parsing import (
    every_token,
    literal,
    matters,
    normalised,
    seen,
    statements,
    tokens,
    unseen,
    why_not_compiled,
)
from grace_irl.programs.parts import Reads

NAMES = ("SCALE", "OFFSET", "THRESHOLD", "discriminator_logit")
"""Names that an export defines below a program."""
CALIBRATION = "# The discriminator that was fitted"
"""Beginning of the text that an export adds below a program."""
SPARE = ("CALIBRATION_SCALE", "CALIBRATION_OFFSET", "CALIBRATION_THRESHOLD", "calibrated_logit")
"""Names that an export defines instead of `NAMES` if the program uses one of `NAMES`."""

Numbers = tuple[float, float, float | None]  # scale, offset, threshold

_HEADER = re.compile(r"A reward .* by grace-irl \S+\n\n(?:[\w ]+:.*\n)*program: +[0-9a-f]{16} ")
"""Beginning of the docstring of an export: the title, and facts that name the program's id."""

_LEVEL = """# A reward above it counts as an expert's: the threshold of the best balanced accuracy on the training data.
{threshold} = <threshold>
"""
"""The lines of an export that define the threshold. An export without a threshold omits them."""
_END = '''

{about}: D(s) = sigmoid({scale} * reward + {offset} - log pi).
{scale} = <scale>
{offset} = <offset>
{level}

def {logit}(reward, log_pi=0.0):
    """Logit of D, for one reward or an array: above 0 where a state looks more like an expert's than not."""
    return {scale} * reward + {offset} - log_pi
'''


def export_source(
    source: str,
    *,
    title: str,
    facts: Sequence[tuple[str, str]],
    scale: float | None = None,
    offset: float = 0.0,
    threshold: float | None = None,
) -> str:
    """The source of a module with the program, its provenance and its calibration.

    The module's docstring consists of the title, the facts (one line `name: value` each) and the program's docstring,
    unless that begins with the title. The end of the module defines four names: the calibration `SCALE` and `OFFSET`,
    the `THRESHOLD` on the uncalibrated reward, and the function `discriminator_logit(reward, log_pi=0.0)`. The function
    returns the logit of D. Its argument `log_pi` is the log-probability of the action minus the mean log-probability of
    the training steps. If the program uses one of these names, the module uses the names of `SPARE` instead, with a
    number appended if necessary.

    Args:
        source: a program that compiles.
        title: first line of the docstring.
        facts: provenance as pairs of name and value.
        scale: scale of the calibration; 1 for a reward without calibration. If None, the module defines none of the
            four names.
        offset: offset of the calibration.
        threshold: reward above which a state is classified as an expert's. If None, the module defines no `THRESHOLD`.

    Raises:
        GraceError: the calibration or the threshold is not a finite number.
    """
    if scale is not None and not (math.isfinite(scale) and math.isfinite(offset)):
        raise GraceError(f"calibration: scale {scale}, offset {offset}; expected finite numbers: the run is damaged")
    if threshold is not None and not math.isfinite(threshold):
        raise GraceError(f"threshold: {threshold}; expected a finite number: the run is damaged")
    text = normalised(source)
    own, body = _take_docstring(text)
    used = _names(text)
    scale_name, offset_name, level_name, logit_name = next(names for names in _names_to_use() if not used & set(names))
    width = max((len(name) for name, _ in facts), default=0) + 1
    # `fields_of` and `reads_of` read these two facts, so names keep their quotes and backslashes
    clean = {name: _escaped if name in ("fields", "parts") else plain for name, _ in facts}
    lines = [plain(title), "", *(f"{name + ':':<{width}} {clean[name](value)}" for name, value in facts)]
    if own and not own.startswith(title):
        lines += ["", *map(plain, own.splitlines())]
    docstring = "\n".join(line.rstrip() for line in lines)
    gap = "\n" if body.startswith(("class ", "def ", "@")) else ""
    if scale is None:
        return f'"""{docstring}\n"""\n\n{gap}{body}\n'
    level = "" if threshold is None else _LEVEL.format(threshold=level_name)
    end = _END.format(about=CALIBRATION, scale=scale_name, offset=offset_name, level=level, logit=logit_name)
    end = end.replace("<threshold>", repr(float(threshold or 0)))
    end = end.replace("<scale>", repr(float(scale))).replace("<offset>", repr(float(offset)))
    return f'"""{docstring}\n"""\n\n{gap}{body}\n{end}'


def calibration_of(source: str) -> tuple[float, float] | None:
    """Scale and offset in an exported file; None if one of them is missing or not finite, or the scale is not positive.

    The file is neither run nor parsed. An exported file has scale and offset in its last lines. In a file that a user
    wrote or changed, the assignments must begin at the left margin, each on its own line. If a name has several
    assignments, the last one counts.
    """
    found = _numbers(source)
    return None if found is None else found[:2]


def threshold_of(source: str) -> float | None:
    """The threshold on the reward in an exported file; None if the file has no threshold or no calibration.

    In a file that a user wrote or changed, the threshold must be assigned directly after scale and offset.
    """
    found = _numbers(source)
    return None if found is None else found[2]


def fields_of(source: str) -> tuple[str, ...]:
    """Names of all components of the state vector, in order, from an exported file; () if the file does not name them.

    The docstring of the file names the components in a line such as `fields: x0 height, x1 speed`. The file is not run.

    Raises:
        InputError: the line cannot be read.
    """
    return names_of(_fact(source, "fields"))


def reads_of(source: str) -> Reads:
    """The form of the states and actions that an exported file's program reads, as far as the file names it.

    The docstring of the file has a line such as `states: grid (7, 7, 3)`, for records one such as
    `parts: {'goal': (3,), 'said': 'text'}`, and if the program reads actions one such as `actions: (2,)`. The file is
    not run.

    Raises:
        InputError: the line `parts` cannot be read.
    """
    return Reads.of(_fact(source, "states"), _fact(source, "parts"), _fact(source, "actions"))


def label_of(source: str) -> LabelRule | Literal[""]:
    """The label rule of the run that found an exported program; "" if the file names none. The file is not run."""
    named = _fact(source, "label").partition(" ")[0]
    return next((rule for rule in get_args(LabelRule) if rule == named), "")


def _fact(source: str, name: str) -> str:
    """The text behind `name:` in the docstring of an exported file; "" if there is none."""
    said, _ = _take_docstring(normalised(source))
    parts = said.split("\n\n", 2)  # the title, the facts and the program's docstring
    line = re.search(rf"^{name}: +(\S.*)$", parts[1], re.MULTILINE) if len(parts) > 1 else None
    return line[1] if line else ""


def _numbers(source: str) -> Numbers | None:
    text = normalised(source)
    written = _ending(text)
    scale, offset, threshold = written.group("scale", "offset", "threshold") if written else _assigned(text)
    calibration = _number(scale), _number(offset)
    if calibration[0] is None or calibration[1] is None or calibration[0] <= 0:
        return None
    return calibration[0], calibration[1], _number(threshold)


def _number(text: str | None) -> float | None:
    """Convert a text to a finite number; None if this is not possible."""
    try:
        found = float(text or "")
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def program_of(source: str) -> str:
    """The program in an exported file, without provenance and calibration. Any other source is returned unchanged."""
    text = normalised(source)
    written = _ending(text)
    said, body = _take_docstring(normalised(text[: written.start()] if written else text))
    if written is None and not _HEADER.match(said):  # an export for a task has no calibration
        return source
    own = "".join(said.split("\n\n", 2)[2:])  # the program's docstring comes third, after the title and the facts
    own = "\n".join(plain(line) for line in own.splitlines())
    docstring = f'"""{own}{chr(10) if chr(10) in own else ""}"""\n\n\n' if own else ""
    return normalised(f"{docstring}{body}")


def sound(text: str, what: str) -> str:
    """Return the text of an exported Python file, after a check that it is safe to write.

    Args:
        text: text of the file.
        what: name of the exported thing, for messages.

    Raises:
        InputError: the text has invisible characters or does not compile, because the run is old, damaged or forged.
    """
    hidden = unseen(text)
    why = str(hidden[0]) if hidden else why_not_compiled(text, what)
    if why:
        raise InputError(f"{what}: not written ({why}); expected a run of programs that compile and hide nothing")
    return text


def plain(line: str) -> str:
    """Replace double quotes, backslashes and invisible characters in a line for a docstring."""
    return _visible(line).replace("\\", "/").replace('"', "'")


def _escaped(line: str) -> str:
    """Escape double quotes and backslashes, and replace invisible characters, in a line for a docstring."""
    return _visible(line).replace("\\", "\\\\").replace('"', '\\"')


def _visible(line: str) -> str:
    return "".join(c if c.isprintable() else " " for c in seen(line))


def _names_to_use() -> Iterator[tuple[str, str, str, str]]:
    """Yield candidates for the four names that an export defines: `NAMES`, `SPARE`, then `SPARE` with numbers."""
    yield NAMES
    yield SPARE
    for number in itertools.count(2):
        scale, offset, threshold, logit = (f"{name}_{number}" for name in SPARE)
        yield scale, offset, threshold, logit


def _names(text: str) -> set[str]:
    """All names in a program, in Unicode's NFKC form, because Python compares names in this form."""
    every = every_token(text)
    if not every or every[-1].type != tokenize.ENDMARKER:  # an error in the text ended the tokens early
        return set(re.findall(r"\w+", unicodedata.normalize("NFKC", text)))
    return {unicodedata.normalize("NFKC", token.string) for token in every if token.type == tokenize.NAME}


def _ending(text: str) -> re.Match[str] | None:
    """A match of the text that an export added below a program; None if there is none.

    The match reaches to the end of the file. So it is not inside a string or brackets of the program: an open string or
    bracket at the end would make the file invalid.
    """
    name = r"(?:{0}|CALIBRATION_{0}(?:_[0-9]+)?)"
    pattern = re.escape(_END.format(about=CALIBRATION, scale="<S>", offset="<O>", level="<T>", logit="<L>"))
    number = r"(?P<{}>-?[0-9][0-9.e+-]*)"
    for mark, words in (
        ("<T>", f"(?:{re.escape(_LEVEL.format(threshold='<T>'))})?"),
        ("<S>", name.format("SCALE")),
        ("<O>", name.format("OFFSET")),
        ("<T>", name.format("THRESHOLD")),
        ("<L>", r"(?:discriminator|calibrated)_logit(?:_[0-9]+)?"),
        ("<scale>", number.format("scale")),
        ("<offset>", number.format("offset")),
        ("<threshold>", number.format("threshold")),
    ):
        pattern = pattern.replace(mark, words)
    return re.search(rf"{pattern}\Z", text)


def _assigned(text: str) -> tuple[str, str, str]:
    """The last scale and offset assigned at the left margin, and the threshold assigned directly after them.

    The values are texts. A missing value is "".
    """
    found: dict[str, tuple[int, str]] = {}
    for row, line in enumerate(statements(tokens(text))):
        words = [token.string for token in line]
        if words[1:2] == ["="] and line[-1].type == tokenize.NUMBER and words[2:-1] in ([], ["-"]):
            found[words[0]] = row, "".join(words[2:])
    sets = [names for names in (NAMES, SPARE) if names[0] in found and names[1] in found]
    if not sets:
        return "", "", ""
    names = max(sets, key=lambda names: (found[names[1]], found[names[0]]))
    (row, scale), (last, offset) = found[names[0]], found[names[1]]
    level, threshold = found.get(names[2], (0, ""))
    return scale, offset, threshold if level == max(row, last) + 1 else ""


def _take_docstring(text: str) -> tuple[str, str]:
    """Split a module's text into its docstring ("" if there is none) and the rest of the text.

    The docstring may be in brackets. If the whole text compiles, the rest compiles, too.
    """
    every = every_token(text)
    found = [token for token in every if matters(token)]
    # Tokens of layout precede the docstring if a comment follows a line that ends in a backslash.
    layout = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    found = list(itertools.dropwhile(lambda token: token.type in layout, found))
    opened = list(itertools.takewhile(lambda token: token.string == "(", found))
    strings = list(itertools.takewhile(lambda token: token.type == tokenize.STRING, found[len(opened) :]))
    end = len(strings) + 2 * len(opened)
    closed = [token.string for token in found[len(opened) + len(strings) : end]]
    prefixes = {token.string.split(token.string[-1], 1)[0].lower() for token in strings}
    after = found[end : end + 2]
    if not strings or closed != [")"] * len(opened) or not prefixes <= {"", "r", "u"} or len(after) < 2:
        return "", text.strip("\n")
    if after[0].type != tokenize.NEWLINE and after[0].string != ";":
        return "", text.strip("\n")
    try:
        own = str(literal(f"({' '.join(token.string for token in strings)})"))
    except (SyntaxError, ValueError):
        return "", text.strip("\n")
    # Keep the rest of the docstring's line: a comment, or statements after a semicolon.
    stay = every[every.index(found[end - 1]) + 1]
    if after[0].string == ";":
        stay = every[every.index(after[0]) + 1]
    lines = text.split("\n")
    (first, start), (last, column) = found[0].start, stay.start
    kept = [*lines[: first - 1], lines[first - 1][:start] + lines[last - 1][column:], *lines[last:]]
    return inspect.cleandoc(own), "\n".join(kept).strip("\n")
