"""Tiers, on this machine and on kernels that really refuse a layer."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from grace_irl.errors import SandboxError
from grace_irl.sandbox import tiers
from grace_irl.sandbox.kernel import architecture
from grace_irl.sandbox.lockdown import LANDLOCK, LAYERS, SECCOMP
from grace_irl.sandbox.pool import ZygotePool
from grace_irl.sandbox.tiers import (
    ATTACKS,
    FILE_ATTACKS,
    OTHER_ATTACKS,
    bubblewrap,
    open_sandbox,
    open_with_tier,
    release,
)

DENY = Path(__file__).with_name("deny.py")

needs_seccomp = pytest.mark.skipif(architecture() is None, reason="no table of system calls for this machine")

DOCTOR = "import sys\nfrom grace_irl.cli import main\nsys.exit(main(['doctor', '--json']))"

RUN = """
import json, warnings
import numpy as np
warnings.simplefilter("ignore")
from grace_irl.demos.trajectory import Trajectory
from grace_irl.sandbox import Limits, open_sandbox
honest = "class Reward:\\n    def reward_fn(self, state):\\n        return float(state[0])\\n"
loop = "class Reward:\\n    def reward_fn(self, state):\\n        while True: pass\\n"
with open_sandbox(1, allow_weak=True) as sandbox:
    handle = sandbox.put([Trajectory(np.ones((3, 2))), Trajectory(np.zeros((3, 2)))])
    runs = [sandbox.run(honest, handle, [0, 1], mode=mode) for mode in ("batch", "strict")]
    late = sandbox.run(loop, handle, [0], limits=Limits(wall_s=0.3))
    print(json.dumps([sandbox.tier, [run.status for run in runs], runs[0].rewards[0].tolist(), late.status]))
"""


def denied(layers: str, code: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run code where the kernel refuses these layers, with nothing but `path` to find commands in."""
    environment = {"PATH": path if path is not None else "/nonexistent", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    command = [sys.executable, str(DENY), layers, code]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)


def last_line(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(done.stdout.splitlines()[-1])


@needs_seccomp
def test_layers_are_probed_one_by_one() -> None:
    with ZygotePool(1) as pool:
        assert release(pool, (SECCOMP,)).holds(ATTACKS)
        landlock = release(pool, (LANDLOCK,))
        assert not landlock.ran or landlock.holds(FILE_ATTACKS)
        assert release(pool, ()).escaped  # the bait is real: without layers the canaries get out


@needs_seccomp
def test_without_landlock_it_is_tier_b() -> None:
    found = last_line(denied("landlock", DOCTOR))
    assert (found["tier"], found["layers"], found["escaped"]) == ("B", [SECCOMP], [])
    assert last_line(denied("landlock", RUN)) == ["B", ["ok", "ok"], [1.0, 1.0, 1.0], "timeout"]


@needs_seccomp
@pytest.mark.parametrize("layers", ["seccomp", "seccomp,landlock"])
def test_without_seccomp_it_is_refused(layers: str) -> None:
    done = denied(layers, "from grace_irl.sandbox import open_sandbox\nopen_sandbox(1)")
    assert done.returncode != 0
    assert "this machine offers no sandbox" in done.stderr
    assert "--allow-weak-sandbox" in done.stderr
    doctor = denied(layers, DOCTOR)
    assert doctor.returncode == 1
    assert last_line(doctor)["tier"] == "E"
    assert last_line(denied(layers, RUN)) == ["E", ["ok", "ok"], [1.0, 1.0, 1.0], "timeout"]


@needs_seccomp
def test_bubblewrap_stands_in_for_seccomp() -> None:
    command = shutil.which("bwrap")
    if command is None or subprocess.run([command, "--unshare-all", "--ro-bind", "/", "/", "true"]).returncode:
        pytest.skip("bubblewrap is not installed, or may not make namespaces here")
    path = str(Path(command).parent)
    found = last_line(denied("seccomp,landlock", DOCTOR, path))
    assert (found["tier"], found["wrapped"]) == ("C", True)
    assert not set(found["escaped"]) & {*FILE_ATTACKS, "connect a socket", "signal the host"}
    assert last_line(denied("seccomp,landlock", RUN, path)) == ["C", ["ok", "ok"], [1.0, 1.0, 1.0], "timeout"]


def test_weak_tiers_are_refused_or_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "_probe", lambda _pool: tiers.Tier("E", ()))
    monkeypatch.setattr(tiers, "_boxed", lambda _workers, _bare: None)
    with pytest.raises(SandboxError, match="can read and change your files"):
        open_sandbox(1)
    with pytest.warns(UserWarning, match="tier E"):
        open_sandbox(1, allow_weak=True).close()
    monkeypatch.setattr(tiers, "_probe", lambda _pool: tiers.Tier("B", (SECCOMP,)))
    with pytest.warns(UserWarning, match="tier B"), open_sandbox(1) as pool:
        assert (pool.tier, pool.layers) == ("B", (SECCOMP,))


def test_findings_are_recorded() -> None:
    pool, tier = open_with_tier(1)
    pool.close()
    assert pool.tier == tier.letter
    assert set(tier.layers) <= set(LAYERS)
    assert tier.findings[-1].layers == tier.layers or tier.letter in "CD"
    assert len(set(FILE_ATTACKS + OTHER_ATTACKS)) == len(ATTACKS)


def test_a_box_shows_no_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    command = tmp_path / "bwrap"
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setattr(sys, "path", [*sys.path, "/home/someone", "/"])
    monkeypatch.setattr(Path, "is_dir", lambda _path: True)
    wrapped = bubblewrap()
    assert wrapped is not None
    assert wrapped[0] == str(command)
    shown = [wrapped[at + 1] for at, word in enumerate(wrapped) if word == "--ro-bind"]
    assert "/home/someone" not in shown
    assert "/" not in shown
    assert "--unshare-all" in wrapped
