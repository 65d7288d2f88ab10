"""The files of the project, as a clone holds them."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _ignored(path: Path, patterns: list[str]) -> bool:
    """Whether .gitignore's patterns name it: plain names, and paths from the root, which begin with a slash."""
    place = "/" + path.relative_to(ROOT).as_posix()
    return any(fnmatch(place if pattern.startswith("/") else path.name, pattern) for pattern in patterns)


def _walked(folder: Path, patterns: list[str]) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if _ignored(path, patterns):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _walked(path, patterns)
        else:
            yield path


@cache
def _all() -> tuple[Path, ...]:
    """All files of the project; no test adds one."""
    lines = (ROOT / ".gitignore").read_text().splitlines()
    patterns = ["/.git", *(line.strip().rstrip("/") for line in lines if line.strip() and not line.startswith("#"))]
    return tuple(_walked(ROOT, patterns))


def files(folder: Path = ROOT, suffix: str = "") -> Iterator[Path]:
    """All files whose name ends in `suffix`, less what .gitignore names."""
    return (path for path in _all() if path.name.endswith(suffix) and path.is_relative_to(folder))


@cache
def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def texts(suffix: str = "") -> Iterator[tuple[Path, str]]:
    """Those that hold text, relative to the root, with it."""
    for path in files(ROOT, suffix):
        text = _text(path)
        if text is not None:
            yield path.relative_to(ROOT), text
