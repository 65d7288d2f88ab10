"""The example of docs/write-a-state-kind.md, run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grace_irl.cli import main
from grace_irl.demos import load, save
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.errors import InputError
from grace_irl.sandbox import memory
from grace_irl.sandbox.packing import pack
from grace_irl.sandbox.parcel import Views
from grace_irl.states import KINDS

PAGE = Path(__file__).parents[2] / "docs" / "write-a-state-kind.md"


@pytest.fixture
def bits(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The kind of the page, registered before all others."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {"__name__": "bits"}
    exec(compile(code, str(PAGE), "exec"), names)
    others = dict(KINDS)
    monkeypatch.setattr("grace_irl.states.KINDS", {"bits": names["BITS"], **others})
    for name in list(others):
        monkeypatch.delitem(KINDS, name)
    KINDS.update({"bits": names["BITS"], **others})
    yield names["BITS"]
    KINDS.clear()
    KINDS.update(others)


def test_the_example_serves(bits: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    items = tuple(
        Demonstration(Trajectory(rng.random((4, 3)) < 0.5, extra_info="all on"), role)
        for role in ("expert", "negative", "expert")
    )
    assert {item.trajectory.kind for item in items} == {"bits"}
    with pytest.raises(InputError, match="without a switch"):
        Trajectory(np.zeros((2, 0), bool))
    save(Demonstrations(Metadata("bits"), items), tmp_path / "set.parquet")
    found = load([tmp_path / "set.parquet"])
    assert [item.trajectory.digest for item in found] == [item.trajectory.digest for item in items]
    assert main(["demos", "inspect", str(tmp_path / "set.parquet"), "--json"]) == 0
    about = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert sum(about["switches_on"].values()) == 12
    assert main(["demos", "scramble", str(tmp_path / "set.parquet"), str(tmp_path / "copy.parquet")]) == 0
    copies = load([tmp_path / "copy.parquet"])
    for one, other in zip(copies, items, strict=True):
        np.testing.assert_array_equal(one.trajectory.states.sum(axis=1), other.trajectory.states.sum(axis=1))


def test_its_states_lie_in_a_parcel(bits: Any) -> None:
    """As a child of the sandbox reads them, in this process: children import the kinds of the package alone."""
    states = np.array([[True, False, True], [False, False, False]])
    fd = pack([Trajectory(states)]).parcel(np.array([0]))
    (view,) = Views(fd)
    handed = list(view.states())
    np.testing.assert_array_equal(handed, states)
    assert all(state.dtype == np.bool_ and state.flags.owndata for state in handed)
    np.testing.assert_array_equal(view.layout.state(view.wire(0)), bits.as_state(states[0]))
    memory.close(fd)
