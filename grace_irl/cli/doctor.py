"""`grace-irl doctor`: a test of this machine's sandbox, and a list of installed packages.

The test runs harmless attacks (canaries) in the sandbox. The result is a tier from A (best confinement) to E (none).
"""

from __future__ import annotations

import platform
import time
from typing import Annotated

import typer
from rich.table import Table

from grace_irl.cli.console import console, plain_table, print_json, say
from grace_irl.packages import version_of
from grace_irl.pages import page
from grace_irl.sandbox.pool import cores
from grace_irl.sandbox.tiers import ATTACKS, Finding, Tier, open_with_tier
from grace_irl.version import __version__

PACKAGES = {
    "numpy": "core",
    "lxml": "core",
    "pyarrow": "core",
    "scipy": "core",
    "minari": "minari",
    "gymnasium": "rl",
    "minigrid": "rl",
    "mujoco": "rl",
    "stable-baselines3": "rl",
    "torch": "rl",
    "openai": "llm",
    "pillow": "llm",
}
"""Packages that commands may need, with the pip extra that installs each of them."""


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object as the last line.")] = False,
) -> None:
    """Probe the sandbox with canary attacks, and list what is installed.

    Exits with 1 if nothing confines generated code (tier E).
    """
    started = time.monotonic()
    pool, tier = open_with_tier(workers=1)
    pool.close()
    seconds = time.monotonic() - started
    versions = {name: version_of(name) for name in PACKAGES}
    if as_json:
        print_json(
            {
                "version": __version__,
                "tier": tier.letter,
                "meaning": tier.meaning,
                "layers": list(tier.layers),
                "wrapped": bool(tier.wrap),
                "escaped": list(tier.escaped),
                "canaries": [_finding(finding) for finding in tier.findings],
                "python": platform.python_version(),
                "system": f"{platform.system()} {platform.release()} {platform.machine()}",
                "cores": cores(),
                "packages": versions,
                "seconds": round(seconds, 3),
            }
        )
    else:
        _print(tier, versions)
    if tier.letter == "E":
        raise typer.Exit(1)


def _print(tier: Tier, versions: dict[str, str | None]) -> None:
    out = console()
    say(f"grace-irl {__version__}, Python {platform.python_version()}, {cores()} cores")
    say(f"{platform.system()} {platform.release()} {platform.machine()}")
    out.print()
    say(f"sandbox: tier {tier.letter}: {tier.meaning}")
    out.print(_canaries(tier))
    if tier.letter == "E":
        say(f"fit refuses to run programs here, unless --allow-weak-sandbox is given ({page('sandbox')})")
    elif tier.letter != "A":
        say(f"weaker than it could be: {page('sandbox')} says what to change")
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, version in versions.items():
        extra = PACKAGES[name]
        table.add_row(name, version or f"missing: pip install 'grace-irl{f'[{extra}]' if extra != 'core' else ''}'")
    out.print()
    out.print(table)


def _canaries(tier: Tier) -> Table:
    """A table with one row per attack, and one column per tested set of the sandbox's protections (layers).

    The last column is for the set under which programs run.
    """
    table = plain_table("canary attack", *(" + ".join(each.layers) or "limits only" for each in tier.findings))
    for attack in ATTACKS:
        words = [_word(finding, attack) for finding in tier.findings]
        if words and words[-1] == "passes":
            words[-1] = "ESCAPES"
        table.add_row(attack, *words)
    return table


def _word(finding: Finding, attack: str) -> str:
    if not finding.ran:
        return "not available"
    return "passes" if attack in finding.escaped else "stopped"


def _finding(finding: Finding) -> dict[str, object]:
    return {"layers": list(finding.layers), "ran": finding.ran, "escaped": list(finding.escaped)}
