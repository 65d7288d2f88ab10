"""Writes a program as one file that needs nothing of ours: provenance above, calibration below.

Sources are split into tokens, and never parsed or run here. What is written is the last of its file, so whatever a
program says before it, in a string or by names of its own, is not taken for it.
"""

from __future__ import annotations

import inspect
import itertools
import math
import re
import tokenize
import unicodedata
from collections.abc import Iterator, Sequence

from grace_irl.errors import GraceError, InputError
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

NAMES = ("SCALE", "OFFSET", "THRESHOLD", "discriminator_logit")
CALIBRATION = "# The discriminator that was fitted"
"""The first line of the part that an export puts below a program."""
SPARE = ("CALIBRATION_SCALE", "CALIBRATION_OFFSET", "CALIBRATION_THRESHOLD", "calibrated_logit")

Numbers = tuple[float, float, float | None]  # scale, offset, threshold

_LEVEL = """# A reward above it counts as an expert's: the threshold of the best balanced accuracy on the training data.
{threshold} = <threshold>
"""
"""Left out if no threshold is known."""
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
    """The program as a module of its own.

    The module's docstring is the title, the facts (one `name: value` each) and the program's own docstring.
    At its end it defines `SCALE`, `OFFSET` and `discriminator_logit(reward, log_pi=0.0)`: the logit of D, the
    probability that a state is an expert's; and `THRESHOLD`, of the reward as it comes. A program that uses one of
    these names itself gets `CALIBRATION_SCALE`, `CALIBRATION_OFFSET`, `CALIBRATION_THRESHOLD` and `calibrated_logit`
    instead, with a number behind them if need be.

    Args:
        source: a program that compiles.
        title: first line of the docstring.
        facts: provenance.
        scale, offset: the calibration; 1 and 0 without one. Without a scale the module defines none of these.
        threshold: above which a reward counts as an expert's; None: not known.

    Raises:
        GraceError: a calibration or a threshold that is no number.
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
    lines = [title, "", *(f"{name + ':':<{width}} {value}" for name, value in facts)]
    if own and not own.startswith(title):
        lines += ["", *own.splitlines()]
    docstring = "\n".join(plain(line).rstrip() for line in lines)
    gap = "\n" if body.startswith(("class ", "def ", "@")) else ""
    if scale is None:
        return f'"""{docstring}\n"""\n\n{gap}{body}\n'
    level = "" if threshold is None else _LEVEL.format(threshold=level_name)
    end = _END.format(about=CALIBRATION, scale=scale_name, offset=offset_name, level=level, logit=logit_name)
    end = end.replace("<threshold>", repr(float(threshold or 0)))
    end = end.replace("<scale>", repr(float(scale))).replace("<offset>", repr(float(offset)))
    return f'"""{docstring}\n"""\n\n{gap}{body}\n{end}'


def calibration_of(source: str) -> tuple[float, float] | None:
    """Scale and offset that an exported file carries, or None; nothing is run or parsed.

    They stand in the file's last lines, as an export writes them. Of a file that was written by hand, or changed, the
    last pair counts that is assigned on lines of its own at the left margin.
    """
    found = _numbers(source)
    return None if found is None else found[:2]


def threshold_of(source: str) -> float | None:
    """The threshold on the reward that an exported file carries beside its calibration, or None; as `calibration_of`.

    Of a file that was written by hand, or changed, it counts if it is assigned right behind the pair.
    """
    found = _numbers(source)
    return None if found is None else found[2]


def _numbers(source: str) -> Numbers | None:
    text = normalised(source)
    written = _ending(text)
    scale, offset, threshold = written.group("scale", "offset", "threshold") if written else _assigned(text)
    calibration = _number(scale), _number(offset)
    if calibration[0] is None or calibration[1] is None or calibration[0] <= 0:
        return None
    return calibration[0], calibration[1], _number(threshold)


def _number(text: str | None) -> float | None:
    """A finite number, or None: there is none, or it is in another base."""
    try:
        found = float(text or "")
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def program_of(source: str) -> str:
    """The program that an exported file holds, without provenance and calibration; any other source as it is."""
    text = normalised(source)
    written = _ending(text)
    if written is None:
        return source
    said, body = _take_docstring(normalised(text[: written.start()]))
    own = "".join(said.split("\n\n", 2)[2:])  # behind the title and the facts
    own = "\n".join(plain(line) for line in own.splitlines())
    docstring = f'"""{own}{chr(10) if chr(10) in own else ""}"""\n\n\n' if own else ""
    return normalised(f"{docstring}{body}")


def sound(text: str, what: str) -> str:
    """The text of a file that is about to be written, unchanged.

    Raises:
        InputError: it hides something, or does not compile: the run that it comes from is old, damaged or forged.
    """
    hidden = unseen(text)
    why = str(hidden[0]) if hidden else why_not_compiled(text, what)
    if why:
        raise InputError(f"{what}: not written ({why}); expected a run of programs that compile and hide nothing")
    return text


def plain(line: str) -> str:
    """A line that can stand in a docstring or a comment: no quotes or escapes, and nothing that is not seen."""
    clean = "".join(c if c.isprintable() else " " for c in seen(line))
    return clean.replace("\\", "/").replace('"', "'")


def _names_to_use() -> Iterator[tuple[str, str, str, str]]:
    """Names to choose from, the usual ones first."""
    yield NAMES
    yield SPARE
    for number in itertools.count(2):
        scale, offset, threshold, logit = (f"{name}_{number}" for name in SPARE)
        yield scale, offset, threshold, logit


def _names(text: str) -> set[str]:
    """The names of a program, as Python reads them: letters of other widths are the usual ones."""
    every = every_token(text)
    if not every or every[-1].type != tokenize.ENDMARKER:  # it goes on at the end of its tokens
        return set(re.findall(r"\w+", unicodedata.normalize("NFKC", text)))
    return {unicodedata.normalize("NFKC", token.string) for token in every if token.type == tokenize.NAME}


def _ending(text: str) -> re.Match[str] | None:
    """The part that an export put below a program.

    A string or a bracket that were open before it would still be open at the end of the file, which would not compile.
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
    """The last scale and offset that belong together and are assigned at the left margin, and a threshold that is
    assigned right behind them; "" without them.
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
    """The module's docstring, in brackets or not, and the text without it: whatever compiled still does."""
    every = every_token(text)
    found = [token for token in every if matters(token)]
    layout = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)  # of a line that ends in "\\", above a comment
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
    # What follows on its line stays: a comment, or further statements behind a semicolon.
    stay = every[every.index(found[end - 1]) + 1]
    if after[0].string == ";":
        stay = every[every.index(after[0]) + 1]
    lines = text.split("\n")
    (first, start), (last, column) = found[0].start, stay.start
    kept = [*lines[: first - 1], lines[first - 1][:start] + lines[last - 1][column:], *lines[last:]]
    return inspect.cleandoc(own), "\n".join(kept).strip("\n")
