"""Versions of installed packages."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterable

from grace_irl.version import __version__


def version_of(package: str) -> str | None:
    """The version of an installed distribution; None if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def versions_of(packages: Iterable[str]) -> str:
    """One line with the versions of grace-irl, of Python, and of these packages as far as they are installed."""
    found = {"grace-irl": __version__, "Python": platform.python_version()}
    found |= {name: known for name in packages if (known := version_of(name)) is not None}
    return ", ".join(f"{name} {known}" for name, known in found.items())
