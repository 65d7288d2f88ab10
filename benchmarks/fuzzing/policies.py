"""Files of policies that are nearly right: saved ones, checkpoints of trainings, and those of Stable-Baselines3."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

from fuzzing import mutations as m
from fuzzing.draw import Draw, change
from fuzzing.screens import written

_PARTS = ("about", "weights", "identity", "steps", "updates", "policy", "optimizer", "returns", "curve")


@cache
def _saved(form: str = "vectors") -> Any:
    """The content of a saved policy of vectors, records or images."""
    import torch
    from gymnasium.spaces import Discrete

    from grace_irl.rl.hyperparameters import Hyperparameters
    from grace_irl.rl.observers import ImageObserver, RecordObserver, VectorObserver
    from grace_irl.rl.trained import TrainedPolicy, build_network

    settings = Hyperparameters("-", net_arch=(4,))
    observer = {
        "vectors": VectorObserver(2),
        "records": RecordObserver(("at",), 2, ("seen",), ((1, 36, 36),), ("said",)),
        "images": ImageObserver((8, 9), 1),
    }[form]
    policy = TrainedPolicy(build_network(observer, Discrete(3), settings), observer, settings, "A-v0")
    with tempfile.TemporaryDirectory() as folder:
        policy.save(Path(folder) / "p.pt")
        return torch.load(Path(folder) / "p.pt", weights_only=True)


@cache
def _checkpoint() -> Any:
    """The content of a checkpoint of a training."""
    found = _saved()
    curve = [
        {"steps": 5, "episodes": 1, "mean": 0.5, "deviation": 0.1, "success": None, "length": 3.0, "components": {}}
    ]
    parts = {"identity": "i", "steps": 5, "updates": 2, "policy": found["weights"], "optimizer": {"state": {}}}
    return {**parts, "returns": (0.0, 1.0, 2.0), "curve": json.dumps(curve)}


def saved(rng: Draw, folder: Path) -> Path:
    """A saved policy."""
    return _file(rng, folder / "policy.pt", dict(_saved(rng.choice(("vectors", "records", "images")))), "about")


def checkpoint(rng: Draw, folder: Path) -> Path:
    """A checkpoint of a training."""
    return _file(rng, folder / "checkpoint.pt", dict(_checkpoint()), "curve")


def _file(rng: Draw, path: Path, parts: Any, text: str) -> Path:
    import torch

    for _ in rng.rounds():
        parts = _changed(rng, parts, text)
    stream = io.BytesIO()
    try:
        torch.save(parts, stream)
    except (OverflowError, RecursionError, UnicodeEncodeError):
        stream = io.BytesIO(b"no archive")
    data = stream.getvalue()
    path.write_bytes(m.in_bytes(rng, data) if rng.may(0.1) else data)
    return path


@change
def _changed(rng: Draw, parts: Any, text: str) -> Any:
    """Another part, another tensor, or something else in the JSON."""
    import torch

    if not isinstance(parts, dict) or not parts:
        return {"about": "{}"}
    kind = rng.randrange(8)
    if kind < 4 and isinstance(parts.get(text), str):
        try:
            return {**parts, text: written(rng, m.in_value(rng, json.loads(parts[text]))).decode("utf-8", "replace")}
        except (ValueError, RecursionError):
            return {**parts, text: "["}
    name = rng.choice(list(parts))
    if kind == 4:
        return {key: value for key, value in parts.items() if key != name}
    if kind == 5:
        return {**parts, rng.choice((*_PARTS, "x")): rng.choice((m.scalar(rng), [], {}, torch.zeros(2), parts[name]))}
    weights = next((key for key in ("weights", "policy") if isinstance(parts.get(key), dict)), None)
    if weights is None or not parts[weights]:
        return [parts]
    tensor = rng.choice(list(parts[weights]))
    odd = (torch.zeros(0), torch.full((3, 4), float("nan")), torch.zeros(4, 2, dtype=torch.int8), m.scalar(rng), None)
    return {**parts, weights: {**parts[weights], rng.choice((tensor, "x")): rng.choice(odd)}}


def stable_baselines(rng: Draw, folder: Path) -> Path:
    """A checkpoint of Stable-Baselines3: readable JSON and weights in a zip."""
    import torch

    about: Any = {
        "policy_class": {"__module__": "stable_baselines3.common.policies", ":serialized:": "gAU="},
        "policy_kwargs": {
            "net_arch": {"pi": [4], "vf": [4]},
            "activation_fn": "<class 'torch.nn.modules.activation.Tanh'>",
        },
        "use_sde": False,
    }
    weights = {key: value for key, value in _saved()["weights"].items() if "features_extractor" not in key}
    for _ in rng.rounds():
        about = m.in_value(rng, about)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("data" if not rng.changed(0.03) else "date", written(rng, about))
        inner = io.BytesIO()
        torch.save(weights, inner)
        archive.writestr("policy.pth", inner.getvalue())
        archive.writestr("_stable_baselines3_version", "2.6.0")
    data = stream.getvalue()
    path = folder / "policy.zip"
    path.write_bytes(m.in_bytes(rng, data) if rng.may(0.1) else data)
    return path
