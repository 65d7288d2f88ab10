"""`benchmarks/million_states_load.py` fails where its goal is missed."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "million_states_load.py"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module, its measurements replaced by figures of the test."""
    spec = importlib.util.spec_from_file_location("million_states_load", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "write", lambda path, *_: path.write_bytes(b"x"))
    return module


@pytest.mark.parametrize(("peak", "code"), [(1.0, 0), (1.5, 0), (1.51, 1), (9.0, 1)])
@pytest.mark.parametrize("as_json", [False, True])
def test_exit_code(
    peak: float,
    code: int,
    as_json: bool,
    benchmark: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def figures(part: str, _: Path) -> dict[str, Any]:
        if part == "pyarrow":
            return {"table_s": 1.0, "batches_s": 1.0}
        return {
            "data_mib": 1.0,
            "states": 10,
            "trajectories": 1,
            "peak_loading_over_data": 1.0,
            "peak_over_data": peak,
            "load_s": 1.0,
            "label_and_score_s": 1.0,
            "auc": 1.0,
        }

    monkeypatch.setattr(benchmark, "fresh", figures)
    monkeypatch.setattr(sys, "argv", ["million_states_load.py", *(["--json"] if as_json else [])])
    assert benchmark.main() == code
    out, err = capsys.readouterr()
    if as_json:
        assert json.loads(out)["peak_over_data"] == peak
    else:
        assert f"{peak:.2f} x data (goal: at most 1.5)" in out  # the table comes first, whatever the code
        assert ("goal missed" in err) == bool(code)
