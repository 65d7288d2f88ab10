"""Checkpoints of Stable-Baselines3 that ask for gigabytes: refused in one line, before they are taken."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.hostile_files.huge import MEGABYTE
from tests.hostile_files.refusal import Ended, run


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of Stable-Baselines3."""
    sb3 = pytest.importorskip("stable_baselines3")
    path = tmp_path_factory.mktemp("model") / "model.zip"
    sb3.PPO("MlpPolicy", "CartPole-v1", device="cpu", n_steps=8, batch_size=8).save(path)
    return path


def collected(policy: Path, folder: Path) -> Ended:
    """Plays two episodes with a policy."""
    out = folder / "out.parquet"
    arguments = ["collect", "--env", "CartPole-v1", "--policy", str(policy), "--episodes", "2", "--role", "expert"]
    ended = run(folder, [*arguments, "--out", str(out)], max_memory="512M")
    assert out.exists() == (ended.code == 0)
    return ended


def test_a_whole_policy_plays(model: Path, tmp_path: Path) -> None:
    assert collected(model, tmp_path).code == 0


def changed(model: Path, path: Path, data: dict[str, Any], parts: dict[str, bytes] | None = None) -> Path:
    """A checkpoint that says something else of itself."""
    with zipfile.ZipFile(model) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = (parts or {}).get(name, old.read(name))
            new.writestr(name, json.dumps({**json.loads(content), **data}) if name == "data" else content)
    return path


@pytest.mark.parametrize(
    "kwargs",
    [
        {"net_arch": [10**8]},  # which a machine has the memory for
        pytest.param({"net_arch": [10**9]}, marks=pytest.mark.slow),
        {"net_arch": [10**9, 10**9]},
        pytest.param({"net_arch": {"pi": [64, 64], "vf": [10**9]}}, marks=pytest.mark.slow),
        {"net_arch": [1] * 100_000},
        pytest.param({"net_arch": [10**30]}, marks=pytest.mark.slow),
        {"net_arch": [-1]},
        pytest.param({"net_arch": "64"}, marks=pytest.mark.slow),
        {"net_arch": [True]},
    ],
)
def test_layers_that_the_weights_are_not_of(kwargs: dict[str, Any], model: Path, tmp_path: Path) -> None:
    ended = collected(changed(model, tmp_path / "a.zip", {"policy_kwargs": kwargs}), tmp_path)
    assert ended.code == 2, ended
    assert ended.said.count("\n") == 1, ended.said
    assert ended.seconds < 60, ended
    assert ended.peak < 1000 * MEGABYTE, ended


def test_weights_that_are_views_of_one_number(model: Path, tmp_path: Path) -> None:
    """A tensor of a terabyte, whose rows are all the same number."""
    torch = pytest.importorskip("torch")
    with zipfile.ZipFile(model) as archive:
        weights = torch.load(io.BytesIO(archive.read("policy.pth")), weights_only=True)
    name = next(iter(weights))
    weights[name] = torch.zeros(1).expand(1 << 38)
    buffer = io.BytesIO()
    torch.save(weights, buffer)
    path = changed(model, tmp_path / "a.zip", {}, {"policy.pth": buffer.getvalue()})
    ended = collected(path, tmp_path)
    assert ended.code == 2, ended
    assert "fewer numbers than its shape" in ended.said


@pytest.mark.slow
@pytest.mark.parametrize("name", ["data", "policy.pth"])
def test_a_policy_that_unpacks_to_gigabytes(name: str, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(model) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for other in old.namelist():
            new.writestr(other, bytes(600 * MEGABYTE) if other == name else old.read(other))
    ended = collected(path, tmp_path)
    assert ended.code == 2, ended
    assert ended.said.count("\n") == 1, ended.said
    assert ended.peak < 1000 * MEGABYTE, ended
