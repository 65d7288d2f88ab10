"""The pages of the project as Markdown: what they print as code, tables and headings; and scripts' docstrings."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.frame.tree import ROOT, files, texts

READER = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True)
class Code:
    """Something that a page prints as code.

    Attributes:
        page: relative to the root.
        line: of the page, from 1.
        text: one span, or one line of a block, with the lines that continue it.
        language: of the block; "span" for a span.
    """

    page: Path
    line: int
    text: str
    language: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"


@dataclass(frozen=True)
class Table:
    """A table: the cells of its head, and of each row below."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Section:
    """A heading, and what stands under it up to the next one.

    Attributes:
        page: relative to the root.
        heading: its text.
        text: all that stands there, as it is written.
        tables: those that stand there.
        blocks: texts of its code blocks.
    """

    page: Path
    heading: str
    text: str
    tables: tuple[Table, ...]
    blocks: tuple[str, ...]


@cache
def pages() -> dict[Path, list[Token]]:
    """Every page, relative to the root, as tokens."""
    return {path: READER.parse(text) for path, text in texts(".md")}


@cache
def docstrings() -> dict[Path, list[Token]]:
    """What each benchmark and example says of itself, as tokens: it shows commands, as pages do."""
    found = {}
    for path in [*files(ROOT / "benchmarks", ".py"), *files(ROOT / "examples", ".py")]:
        found[path.relative_to(ROOT)] = READER.parse(ast.get_docstring(ast.parse(path.read_text())) or "")
    return found


def code() -> Iterator[Code]:
    """All that is printed as code, on every page and in every docstring of a script."""
    for page, tokens in (pages() | docstrings()).items():
        for token in tokens:
            first = (token.map or [0])[0] + 1
            if token.type in ("fence", "code_block"):
                block = token.content.replace("\\\n", "")
                for number, line in enumerate(block.splitlines()):
                    yield Code(page, first + number, line, token.info or "block")
            for child in token.children or []:
                if child.type == "code_inline":
                    yield Code(page, first, child.content, "span")


def sections() -> Iterator[Section]:
    """Every section of every page."""
    for page, text in texts(".md"):
        tokens, lines = pages()[page], text.splitlines()
        heads = [index for index, token in enumerate(tokens) if token.type == "heading_open"]
        for start, end in zip(heads, [*heads[1:], len(tokens)], strict=True):
            inside = tokens[start + 3 : end]
            first = (tokens[start].map or [0])[0]
            last = (tokens[end].map or [len(lines)])[0] if end < len(tokens) else len(lines)
            yield Section(
                page,
                tokens[start + 1].content,
                "\n".join(lines[first:last]),
                tuple(_tables(inside)),
                tuple(token.content for token in inside if token.type in ("fence", "code_block")),
            )


def _tables(tokens: list[Token]) -> Iterator[Table]:
    rows: list[list[str]] = []
    for before, token in itertools.pairwise(tokens):
        if before.type == "tr_open":
            rows.append([])
        if before.type in ("th_open", "td_open"):
            rows[-1].append(token.content)
        elif token.type == "table_close":
            head, *below = map(tuple, rows)
            yield Table(head, tuple(below))
            rows = []


def anchors(page: Path) -> set[str]:
    """What links may end in: the headings of a page, as forges spell them."""
    tokens = pages()[page]
    heads = [tokens[index + 1].content for index, token in enumerate(tokens) if token.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
