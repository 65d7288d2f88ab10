"""Keys that commands print with `--json`: docs/runs.md names each."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from grace_irl.cli import main
from tests.frame.tree import ROOT

DEMOS = ROOT / "datasets" / "babyai-go-to-obj"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("json") / "run"
    assert main(["fit", "--demos", str(DEMOS), "--out", str(folder), "--workers", "1"]) == 0
    return folder


def named(command: str) -> set[str]:
    """The names that the page has for a command's keys; for `fit`, those of metrics, too."""
    section = re.search(r"## `--json`\n(.*?)\n## ", (ROOT / "docs" / "runs.md").read_text(), re.DOTALL)
    assert section
    parts = re.split(r"`(fit|score|show|export)`: ", section[1])
    return set(re.findall(r"`(\w+)`", dict(zip(parts[1::2], parts[2::2], strict=True))[command]))


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return found


def test_fit_and_score(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    metrics = {"fitness", "auc", "accuracy", "separated", "experts", "negatives", "episodes"}
    fitted = printed(capsys, "fit", "--demos", str(DEMOS), "--out", str(tmp_path / "run"), "--workers", "1")
    assert not set(fitted) - named("fit")
    assert set(fitted["train"]) == metrics
    assert metrics <= named("fit")
    assert not set(printed(capsys, "score", str(run / "reward.py"), "--demos", str(DEMOS))) - named("score") - metrics


def test_show(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not set(printed(capsys, "show", str(run))) - named("show") - {"run"}


def test_export(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, flags in {
        "reward.py": ("--out",),
        "library.py": ("--library", "--out"),
        "run.jsonl": ("--recording",),
    }.items():
        target = tmp_path / name
        assert not set(printed(capsys, "export", str(run), *flags, str(target))) - named("export")
        assert target.is_file()
