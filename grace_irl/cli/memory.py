"""The option `--max-memory`, of every command that reads demonstrations or policies."""

from __future__ import annotations

from typing import Annotated

import typer

from grace_irl.demos.memory import VARIABLE, state_limit


def _state(value: str | None) -> str | None:
    if value is not None:
        state_limit(value, "--max-memory")
    return value


MaxMemory = Annotated[
    str | None,
    typer.Option(
        "--max-memory",
        metavar="SIZE",
        help="Refuse demonstrations and policies that need more memory, such as 4G or 512M.",
        show_default="80 % of what is available",
        envvar=VARIABLE,
        callback=_state,
        rich_help_panel="Run",
    ),
]
"""Its callback states the limit, for this machine and this command: no run records it."""
