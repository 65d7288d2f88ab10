"""MAP-Elites through the command line: it ends as it would have when it is stopped, and its recording repeats it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grace_irl.cli import main

SHIPPED = Path(__file__).resolve().parents[2] / "datasets" / "babyai-go-to-obj"
ENDLESS = ("--set", "stop.target_accuracy=none", "--set", "stop.plateau=none")


def last_object(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    found: dict[str, object] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return found


def test_fit_resume_and_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["fit", "--demos", str(SHIPPED), "--method", "map-elites", "--programs", "8", *ENDLESS, "--json"]
    assert main([*asked, "--out", str(tmp_path / "whole")]) == 0
    whole = last_object(capsys)
    assert whole["train"]["separated"]  # type: ignore[index]
    assert main([*asked, "--out", str(tmp_path / "parts"), "--max-calls", "4"]) == 0
    capsys.readouterr()
    assert main(["fit", "--resume", str(tmp_path / "parts"), "--max-calls", "100", "--json"]) == 0
    assert last_object(capsys)["program"] == whole["program"]
    replayed = ["fit", "--replay", str(tmp_path / "whole"), "--out", str(tmp_path / "again"), "--json"]
    assert main(replayed) == 0
    assert last_object(capsys)["program"] == whole["program"]
    assert main(["show", str(tmp_path / "whole"), "--json"]) == 0
    fates = last_object(capsys)["fates"]
    assert any("niche" in fate["reason"] for fate in fates)  # type: ignore[attr-defined]
