"""Web addresses of the documentation, for messages and help. A user needs no clone of the project to open them."""

from __future__ import annotations

BASE = "https://grace-irl.readthedocs.io/en/latest/"
"""The address of the first page of the documentation. `pyproject.toml` names the same address."""


def page(name: str) -> str:
    """The address of a page of `docs/`, such as `page("demonstrations")` for docs/demonstrations.md."""
    return f"{BASE}{name}"
