"""Words of pages and docstrings: pages that texts cite exist, and a few phrases without an actor do not."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.frame.pages import pages
from tests.frame.tree import ROOT, texts

PHRASES = {
    r"\b(?:is|are|was|were|been|being) (?:told|said)\b(?! (?:apart|from))": "name who tells or says it",
    r"\b(?:is|are|was|were|been|being) asked for\b": "name who asks for it",
    r"\bso many\b": "give the number or its name",
    r"\b(?:None|\"\"|0|only|even) where\b": "write 'if'",
    r"\bnone the worse\b": "say what happens",
}
"""Phrases that no text has, and what to write in their place."""
QUESTION = re.compile(r"(?:What|Who|Whose|Which|How|Where|When|Why)\b")
CITED = re.compile(r"\b(?P<page>[\w/]+\.md)\b(?:, \"(?P<heading>[^\"]+)\")?")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
NOT_HELD = re.compile(r"\b(?:METHODS|ARCHITECTURE|HOUSE|SANDBOX|STACK2?|STYLE|LLM)(?:\.md|: [A-Z]|, \"[A-Z])")
"""Pages of plans, which the repository does not hold."""
OLD = ("tests/",)
"""Python that was written before these rules and not read since. A room that was read leaves this list."""


@cache
def docstrings() -> list[tuple[str, int, str]]:
    """Every docstring of the project: file, line, text."""
    found = []
    for path, text in texts(".py"):
        for node in ast.walk(ast.parse(text)):
            for part in getattr(node, "body", None) or [] if isinstance(getattr(node, "body", None), list) else []:
                value = getattr(part, "value", None) if isinstance(part, ast.Expr) else None
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    found.append((path.as_posix(), part.lineno, value.value))
    return found


def read() -> Iterator[tuple[str, str]]:
    """Texts that these rules hold for: pages, and the docstrings of rooms that were read."""
    for path, text in texts(".md"):
        if path.name != "CHANGELOG.md":
            yield path.as_posix(), FENCE.sub("", text)
    yield from ((f"{path}:{line}", text) for path, line, text in docstrings() if not path.startswith(OLD))


@pytest.mark.parametrize(("phrase", "instead"), PHRASES.items())
def test_phrases_without_an_actor_are_gone(phrase: str, instead: str) -> None:
    found = [f"{place}: {hit[0]}" for place, text in read() for hit in re.finditer(phrase, text)]
    assert not found, f"{instead}: " + "; ".join(found)


def test_docstrings_open_with_no_question_word() -> None:
    """They open with a noun phrase or an imperative."""
    assert not [
        f"{path}:{line}: {text.splitlines()[0]}"
        for path, line, text in docstrings()
        if not path.startswith(OLD) and QUESTION.match(text)
    ]


def test_cited_pages_exist() -> None:
    """With the heading that a citation names, such as `docs/fitness.md, "Metrics"`."""
    headings = {
        path.as_posix(): {after.content for token, after in itertools.pairwise(tokens) if token.type == "heading_open"}
        for path, tokens in pages().items()
    }
    found = [(f"{path}:{line}", hit) for path, line, text in docstrings() for hit in CITED.finditer(text)]
    ours = [(place, hit) for place, hit in found if hit["page"].startswith("docs/")]
    assert len(ours) > 30
    assert not [f"{place}: {hit[0]}" for place, hit in ours if hit["page"] not in headings]
    assert not [
        f"{place}: {hit[0]}" for place, hit in ours if hit["heading"] and hit["heading"] not in headings[hit["page"]]
    ]


def test_no_text_cites_a_plan() -> None:
    this = Path(__file__).relative_to(ROOT)
    assert not [
        f"{path}: {hit[0]}"
        for path, text in texts()
        if path.suffix in (".py", ".md", ".j2") and path != this
        for hit in NOT_HELD.finditer(text)
    ]
