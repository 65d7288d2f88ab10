"""Parser of a language model's raw answer. `parse` returns the reward program in the answer, or the kind of failure.

An answer is untrusted text, so this module neither runs nor compiles it. Regular expressions find the program. The
sandbox later checks whether the program compiles.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from grace_irl.programs.contract import REWARD_CLASS
from grace_irl.propose.json_answer import CODE_KEYS, read_object
from grace_irl.propose.protocol import Finish
from grace_irl.search.protocol import UNTOLD

_OPENING = re.compile(r"^[ \t]*(?:[-*>][ \t]+)?(?P<mark>`{3,}|~{3,})[ \t]*(?P<language>[\w+-]*)[^`\n]*$")
_OPENING_LATE = re.compile(r"(?P<mark>`{3,}|~{3,})[ \t]*(?P<language>python3?|py)[ \t]*$")
_NO_PROGRAM = frozenset({"json", "text", "txt", "bash", "sh", "console", "markdown", "md", "diff", "yaml", "output"})
_ELIDED = re.compile(
    r"^[ \t]*(?:\.\.\.[ \t]*$"
    r"|#[ \t]*(?:\.\.\.|(?:existing|previous|other) (?:code|methods?|helpers?) (?:here|unchanged|as)))"
    # A comment such as "unchanged cells count" may explain the statement that follows it. So such a comment stands for
    # omitted code only at the end of its block, or before another function.
    r"|^(?P<indent>[ \t]*)#[ \t]*(?:\(?(?:the )?rest (?:of|is|as|unchanged)|same as (?:before|above)|unchanged\b)"
    r"[^\n]*$(?!\n(?:[ \t]*(?:#[^\n]*)?\n){0,20}(?P=indent)[ \t]*(?!def\b|async\b|class\b|[@#])\S)",
    re.MULTILINE | re.IGNORECASE,
)
# Assignments to lower-case names do not count as definitions, because examples of how to use a program contain them.
_DEFINED = re.compile(r"^(?:class|def|async def)[ \t]+(\w+)|^([A-Z_]\w*)[ \t]*(?::[^=\n]*)?=(?!=)", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")
_IMPORTED = re.compile(r"^(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]+([^#\n]+)", re.MULTILINE)

MAX_BLOCKS = 64
"""Maximum number of blocks that `blocks` returns. Later blocks are ignored."""

_MAX_LINE = 500  # maximum characters of a line that opens a block
_MAX_DOCSTRING = 400  # maximum lines between a fence inside a docstring and the fence that ends the block


@dataclass(frozen=True)
class Block:
    """A fenced code block of Markdown in an answer.

    Attributes:
        language: the word after the opening fence, in lower case; "" if there is none.
        text: the content without its common indentation. It ends with a line break.
        closed: whether the block has a closing fence. If not, the answer ends inside the block.
        start: index of the line with the opening fence.
        stop: index of the line after the block.
    """

    language: str
    text: str
    closed: bool
    start: int
    stop: int


def blocks(text: str) -> list[Block]:
    """Find the fenced blocks of a text, in order.

    A fence consists of three or more backticks or tildes. It may be indented. An opening fence may follow the mark of a
    list item ("-", "*") or of a quotation (">"). An opening fence with the language Python may follow any text.
    """
    lines = text.split("\n")
    found: list[Block] = []
    at = 0
    while at < len(lines) and len(found) < MAX_BLOCKS:
        line = lines[at]
        opening = (_OPENING.match(line) or _OPENING_LATE.search(line)) if len(line) <= _MAX_LINE else None
        if opening is None:
            at += 1
            continue
        end, last = _closing(lines, at + 1, opening["mark"])
        body = lines[at + 1 : end]
        if last is not None:
            body.append(last)
        content = textwrap.dedent("\n".join(body)).strip("\n")
        found.append(Block(opening["language"].lower(), f"{content}\n", end < len(lines), at, min(end + 1, len(lines))))
        at = end + 1
    return found


def _closing(lines: Sequence[str], start: int, mark: str) -> tuple[int, str | None]:
    """Find the end of a block.

    A fence inside a docstring of the program is probably part of the docstring. So such a fence closes the block only
    if no fence outside a docstring follows within `_MAX_DOCSTRING` lines.

    Args:
        lines: all lines of the answer.
        start: index of the first line after the opening fence.
        mark: the opening fence.

    Returns:
        The index of the line with the closing fence, and the code before the fence on this line. The code is None if
        the line has only the fence. Without a closing fence, the index is the number of lines and the code is None.
    """
    first: tuple[int, str | None] | None = None
    quotes = 0
    for at in range(start, len(lines)):
        line = lines[at].rstrip()
        ended = len(line.lstrip()) >= len(mark) and set(line.lstrip()) == {mark[0]}
        glued = not ended and line.endswith(mark) and not _OPENING.match(line)
        if ended or glued:
            found = (at, line[: -len(mark)] if glued else None)
            if quotes % 2 == 0:
                return found
            first = first or found
        if first and at > first[0] + _MAX_DOCSTRING:
            return first
        quotes += line.count('"""') + line.count("'''")
    return first or (len(lines), None)


def joined(parts: Sequence[Block], wanted: re.Pattern[str]) -> str:
    """Build the program from the blocks of an answer. The result is "" if no block matches `wanted`.

    Candidates for the main block are the matching blocks with `def reward_fn`, or all matching blocks if none has this
    function. The main block is the last complete candidate, or the longest candidate if all are incomplete. A block is
    incomplete if it contains words such as "rest unchanged" instead of code.

    Models often put imports and helpers into other blocks. So a block that does not match `wanted` is added if it
    defines a name that the program uses but does not define. A block with the function `debug` is also added if the
    program lacks `debug`.
    """
    programs = [part for part in parts if part.language not in _NO_PROGRAM and not part.text.startswith("{")]
    candidates = [part for part in programs if wanted.search(part.text)]
    if not candidates:
        return ""
    ranked = [part for part in candidates if "def reward_fn" in part.text] or candidates
    ranked = [part for part in ranked if not _ELIDED.search(part.text)] or [max(ranked, key=lambda p: len(p.text))]
    chosen, others = [ranked[-1]], [part for part in programs if part not in candidates]
    defined = {part.start: _names(part.text) for part in programs}
    used = {part.start: set(_WORD.findall(part.text)) for part in programs}
    while True:
        known = {name for part in chosen for name in defined[part.start]}
        lacking = {"debug"}.union(*(used[part.start] for part in chosen)) - known
        new = [part for part in others if lacking & defined[part.start]]
        if not new:
            return "\n\n".join(part.text for part in sorted(chosen, key=lambda part: part.start))
        chosen += new
        others = [part for part in others if part not in new]


def _names(code: str) -> set[str]:
    """Find the names that a piece of code defines or imports at its top level, without parsing the code."""
    names = {one or two for one, two in _DEFINED.findall(code)}
    for listed in _IMPORTED.findall(code):
        for entry in listed.strip("() ").split(","):
            words = entry.split()
            if words:
                names.add(words[-1].partition(".")[0] if len(words) == 1 else words[-1])
    return names


MAX_CHARS = 1_000_000
"""Maximum number of characters of an answer. A longer answer is a failure. A program itself has at most 64 KB."""

MAX_UNTOLD = 500  # maximum characters of the reason in a failure of kind "untold"
MAX_REASONING = 4_000  # maximum characters of `Answer.reasoning`

CLASS = re.compile(rf"^class\s+{REWARD_CLASS}\s*[(:]", re.MULTILINE)
_THOUGHT = re.compile(r"\s*<(think|thinking|thought|reasoning)>")
_DECLINED = re.compile(
    r"\W*(?:sorry\b|(?:i['’]?m|i am) (?:very |so )?(?:sorry|unable)\b|i (?:cannot|can['’]t|won['’]t)\b)", re.IGNORECASE
)
_UNTOLD = re.compile(r"\W*(?:it )?cannot be told from the states\b\W*(.*)", re.IGNORECASE | re.DOTALL)
_CODE_LINE = re.compile(
    r"import\s|from\s+[\w.]+\s+import\b|class\s+\w+\s*[(:]|(?:async\s+)?def\s+\w+\s*\(|@\w|#|\"{3}|'{3}"
    r"|[A-Za-z_][\w.]*\s*(?::[^=]*)?=[^=]|(?:if|for|while|try|with|else|elif|except|finally)\b.*:\s*$"
)


@dataclass(frozen=True)
class Answer:
    """The result of parsing an answer.

    Attributes:
        source: the program, which defines class Reward; "" if there is none.
        reasoning: the model's explanation, cut to `MAX_REASONING` characters: the text outside the program, or a field
            of the JSON object. For an answer with nothing but code blocks it is the whole answer. For an answer with
            nothing but thoughts it is the thoughts.
        failure: one line that begins with the kind of failure; "" if there is a program. The kinds are:

            - "length": the token limit cut the answer before the program was complete.
            - "refusal": the model or a filter declined.
            - "empty": the answer has no text except white space and thoughts.
            - "unparsable": JSON without a program, or a text longer than `MAX_CHARS`.
            - "no_class": no class Reward.
            - "untold": no program, because the model answers that the states lack information for a better one
              (`Result.untold`).
    """

    source: str
    reasoning: str
    failure: str


def parse(text: str, finish: Finish = "stop") -> Answer:
    """Find the program in an answer.

    The program may be in a fenced block, in JSON, or bare. All three forms are tried, since models do not always use
    the requested format. A complete program is accepted even if the token limit cut the text after the program.

    Args:
        text: the answer as the model sent it, of any size and content.
        finish: the reason why the model stopped.
    """
    if finish == "refusal":
        return _failed("refusal", "the model or a filter declined", text.strip())
    if len(text) > MAX_CHARS:
        return _failed("unparsable", f"{len(text)} characters; expected at most {MAX_CHARS}", text)
    text, thought = without_thoughts(tidy(text))
    if not text.strip():
        if finish == "length":
            return _failed("length", "cut by the token limit before the answer began", thought)
        return _failed("empty", "no text" if not thought else "nothing after the thoughts", thought)
    found = _find(text)
    if found.source and (found.whole or finish != "length"):
        return Answer(found.source, found.reasoning[:MAX_REASONING], "")
    if finish == "length":
        return _failed("length", "cut by the token limit before the program was whole", found.reasoning)
    if told := _UNTOLD.match(found.reasoning or text):
        words = " ".join(told[1].split()) or "no reason given"
        return _failed(UNTOLD, f"it cannot be told from the states: {words[:MAX_UNTOLD]}", found.reasoning)
    if _DECLINED.match(text) and "```" not in text:
        return _failed("refusal", "the model declined", text.strip())
    if found.as_json or f'"{CODE_KEYS[0]}"' in text:
        return _failed("unparsable", "an answer in JSON without a program in it", found.reasoning)
    return _failed("no_class", f"no class {REWARD_CLASS} in an answer of {len(text)} characters", found.reasoning)


def tidy(text: str) -> str:
    """Replace unusual line breaks and spaces, and remove some invisible characters.

    Chat windows insert such characters, and Python refuses most of them. Zero-width joiners stay, because a program may
    compare texts of screens with a text that contains a joiner. Without the joiner, the comparison could give another
    result. A later check refuses programs with joiners and names the escape sequence to use instead.
    """
    text = text.encode("utf-8", "replace").decode()  # replaces lone surrogates
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u00a0", " ")
    return re.sub("[\u200b\u2060\ufeff\x00]", "", text)


def without_thoughts(text: str) -> tuple[str, str]:
    """Split an answer into the text after the model's thoughts, and the thoughts.

    Thoughts are the text between tags such as <think> and </think>. If an opening tag has no closing tag, all text
    counts as thoughts.
    """
    opened = _THOUGHT.match(text)
    for name in (opened[1],) if opened else ("think", "thinking"):
        # Some servers put the opening tag into the prompt, so the answer has only the closing tag.
        before, end, after = text.partition(f"</{name}>")
        if end:
            return after, before[opened.end() if opened else 0 :].strip()
    return ("", text[opened.end() :].strip()) if opened else (text, "")


@dataclass(frozen=True)
class _Found:
    """A program found in an answer.

    Attributes:
        source: the program; "" if there is none.
        whole: whether the program is complete.
        reasoning: the text outside the program, or a field of the JSON object; "" if there is neither. For an answer
            with nothing but code blocks it is the whole answer.
        as_json: whether the answer contains a JSON object with a field for code, even if this field has no program.
    """

    source: str
    whole: bool = True
    reasoning: str = ""
    as_json: bool = False


def _find(text: str) -> _Found:
    """Find the program of an answer in JSON, in fenced blocks, or as bare code.

    If the answer begins with JSON, JSON is tried before fences, because the code in the JSON may contain fences.
    """
    begins = text.lstrip().removeprefix("```json").lstrip("`~ \n").startswith("{")
    found = _in_json(text) if begins else _in_fences(text)
    if not found.source:
        other = _in_fences(text) if begins else _in_json(text)
        found = other if other.source or other.as_json else found
    return found if found.source else _bare(text, found)


def _in_json(text: str) -> _Found:
    value = read_object(text)
    if value is None:
        return _Found("", reasoning=text.strip())
    fenced = joined(blocks(value.code), CLASS)
    source = fenced or (value.code.strip("\n") + "\n" if CLASS.search(value.code) else "")
    return _Found(source, value.whole, value.reasoning.strip(), as_json=True)


def _in_fences(text: str) -> _Found:
    parts = blocks(text)
    lines = text.split("\n")
    for part in parts:
        lines[part.start : part.stop] = [""] * (part.stop - part.start)
    prose = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    whole = all(part.closed for part in parts if CLASS.search(part.text))
    return _Found(joined(parts, CLASS), whole, prose or text.strip())


def _bare(text: str, otherwise: _Found) -> _Found:
    """Find a program that is neither fenced nor in JSON: the lines around class Reward that look like code.

    If there is no such class, or if the answer is JSON, return `otherwise`.
    """
    match = CLASS.search(text)
    if match is None or otherwise.as_json:
        return otherwise
    lines = text.split("\n")
    at = text.count("\n", 0, match.start())
    start = at
    while start > 0 and _looks_like_code(lines[start - 1]):
        start -= 1
    stop, quotes = at + 1, 0
    while stop < len(lines) and (quotes % 2 or _looks_like_code(lines[stop])):
        quotes += lines[stop].count('"""') + lines[stop].count("'''")
        stop += 1
    source = "\n".join(lines[start:stop]).strip("\n") + "\n"
    prose = "\n".join([*lines[:start], *lines[stop:]]).strip()
    return _Found(source, whole=stop < len(lines), reasoning=prose)


def _looks_like_code(line: str) -> bool:
    return not line.strip() or line[0] in " \t)]}" or _CODE_LINE.match(line) is not None


def _failed(kind: str, why: str, reasoning: str) -> Answer:
    return Answer("", reasoning[:MAX_REASONING], f"{kind}: {why}")
