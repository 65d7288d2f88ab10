"""The command line as a process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def command(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """A real process, started from the checkout."""
    return subprocess.run(
        [sys.executable, str(ROOT / "cli.py"), *arguments], capture_output=True, text=True, timeout=300, **more
    )


def last_object(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text.strip().splitlines()[-1])
    return found
