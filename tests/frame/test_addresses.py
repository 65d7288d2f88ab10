"""Addresses of documentation in messages: one place makes them, and each leads to a page of docs/."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator

import pytest

from grace_irl.pages import BASE, page
from tests.frame.tree import ROOT, texts

EXCEPTIONS = {
    "grace_irl/programs/check.py": "prompts show it to models, and name no project",
    "grace_irl/rewards/runner.py": "it speaks of what a program of this file is",
    "grace_irl/runs/schema.py": "a comment of SQL",
}
"""Files whose messages name a page by its path, each with the reason."""
PATH = re.compile(r"\bdocs/[\w/-]+\.md\b")


def messages(text: str) -> Iterator[str]:
    """Texts of a module that are no docstrings: neither of code, nor below what they describe."""
    tree = ast.parse(text)
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield node.value


def asked(text: str) -> Iterator[str]:
    """The names that a module gives to `page`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "page":
            yield from (each.value for each in node.args if isinstance(each, ast.Constant))


SOURCES = {path.as_posix(): text for path, text in texts(".py") if path.parts[0] == "grace_irl"}


def test_messages_name_pages_by_address() -> None:
    found = {path for path, text in SOURCES.items() for each in messages(text) if PATH.search(each)}
    assert found == set(EXCEPTIONS)


def test_every_address_is_one_of_a_page() -> None:
    names = [name for text in SOURCES.values() for name in asked(text)]
    assert len(names) > 10
    assert not [name for name in names if not (ROOT / "docs" / f"{name}.md").is_file()]


def test_only_one_file_knows_where_the_pages_are() -> None:
    assert [path for path, text in SOURCES.items() if BASE.rstrip("/") in text] == ["grace_irl/pages.py"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    addresses = project["urls"]
    assert addresses["Documentation"] == BASE
    named = [each.removeprefix(BASE) for each in addresses.values() if each != BASE]
    assert all((ROOT / "docs" / f"{name}.md").is_file() for name in named)


@pytest.mark.parametrize("text", ['raise Wrong("see docs/runs.md")', 'x = f"{y} (docs/runs.md)"'])
def test_a_path_in_a_message_is_found(text: str) -> None:
    assert any(map(PATH.search, messages(text)))
    assert not any(map(PATH.search, messages('"""A page: docs/runs.md"""')))


def test_an_address() -> None:
    assert page("runs") == "https://grace-irl.readthedocs.io/en/latest/runs"
