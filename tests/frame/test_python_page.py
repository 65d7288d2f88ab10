"""The code on the page about Python runs as it stands there, block after block."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.frame.tree import ROOT

BLOCK = re.compile(r"(?P<mark><!-- not run: [^>]+ -->\n)?^```python\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_blocks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorboard")
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    found = list(BLOCK.finditer((ROOT / "docs" / "python.md").read_text(encoding="utf-8")))
    names: dict[str, Any] = {}
    run = [each for each in found if not each["mark"]]
    assert (len(found), len(run)) == (4, 3)
    for place, each in enumerate(run):
        exec(compile(each["code"], f"docs/python.md, block {place}", "exec"), names)
    assert names["run"].best.held_out.accuracy > 0.9
    assert len(list((tmp_path / "logs").glob("events.*"))) == 1
