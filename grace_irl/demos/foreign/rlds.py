"""Reader of RLDS: data sets of episodes that TensorFlow Datasets has prepared, as a folder with TFRecord files.

`features.json` describes the features of an episode. A record is a `tf.train.Example` with one episode; each feature of
its steps is one flat list, such as `steps/observation/joints`. The state after the last action is the last step's
observation, so the action and the reward of the last step do not count. The text of an episode's first step is its
instruction. Encoded pictures are not read, and a line says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.contents import require_inside
from grace_irl.demos.foreign.episode import Episode, EpisodesSource
from grace_irl.demos.memory import Memory
from grace_irl.demos.tfrecord import is_name, read_records, require_libraries
from grace_irl.errors import InputError

STEPS, OBSERVATION = "steps", "observation"
TEXTS = ("language_instruction", "natural_language_instruction")
"""Names of the instruction's text, among the features of a step or those of its observation."""
PICTURES = ("image", "video")
DEPTH = 8
"""Number of nested groups in which features are looked for."""
FACTOR = 15
"""Bytes of memory for each byte of a record, at most, while it becomes an episode."""


@dataclass(frozen=True)
class Feature:
    """A feature of a step.

    Attributes:
        sort: "tensor", "text", one of `PICTURES`, or what else `features.json` calls it.
        shape: shape of a tensor for one step.
        dtype: type of a tensor; texts are `str`.
    """

    sort: str
    shape: tuple[int, ...] = ()
    dtype: str = "str"


def is_dataset(folder: Path) -> bool:
    """Whether a folder is a data set of TensorFlow Datasets whose examples are episodes."""
    return _steps(folder) is not None


def open_dataset(folder: Path, memory: Memory) -> EpisodesSource:
    """Open a data set in the format RLDS.

    Raises:
        InputError: no records, damaged ones, or steps without observations that can be used.
    """
    described = _steps(folder)
    assert described is not None
    require_libraries(folder, "rlds")
    features = dict(_features(described, folder))
    observed = {name: each for name, each in features.items() if name.split("/")[0] == OBSERVATION}
    pictures = [name for name, each in observed.items() if each.sort in PICTURES]
    text = next((name for name in features if name.split("/")[-1] in TEXTS and features[name].sort == "text"), "")
    states = {name: each for name, each in observed.items() if name not in (*pictures, text)}
    if not states:
        raise InputError(
            f"{folder}: no observations of numbers or texts among {', '.join(features)[:200] or 'the steps'}; expected "
            f"a feature {STEPS}/{OBSERVATION} that is no picture"
        )
    for name, each in states.items():
        if each.sort not in ("tensor", "text"):
            raise InputError(f"{folder}: {STEPS}/{name} is a feature {each.sort!r}; expected a tensor or a text")
    files = sorted(file for file in folder.iterdir() if file.is_file() and is_name(file))
    if not files:
        raise InputError(
            f"{folder}: no TFRecord file; expected shards such as NAME-train.tfrecord-00000-of-00001: copy the whole "
            "data set, or prepare it in the file format tfrecord"
        )
    wanted = states | {name: features[name] for name in (*_BESIDE, text) if name in features}
    episodes = []
    for file in files:
        require_inside(file, folder)
        for number, data in enumerate(read_records(file)):
            where = f"{file}: episode {number}"
            memory.require(FACTOR * len(data), where)
            episodes.append(_episode(_values(data, wanted, where), list(states), text, where))
    notes = [f"{folder}: left out: {', '.join(pictures)} (pictures are not read)"] if pictures else []
    return EpisodesSource(folder, episodes, (), notes)


_BESIDE = ("action", "reward", "is_terminal", "is_last")


def _episode(values: Mapping[str, NDArray[Any]], states: list[str], text: str, where: str) -> Episode:
    lengths = {len(part) for part in values.values()}
    if len(lengths) != 1 or lengths == {0}:
        raise InputError(f"{where}: features of {sorted(lengths)} steps; expected one number above 0: prepare it again")
    parts = {name.removeprefix(f"{OBSERVATION}/"): values[name] for name in states}
    actions, rewards = values.get("action"), values.get("reward")
    terminal, last = (bool(values[name][-1]) if name in values else False for name in ("is_terminal", "is_last"))
    return Episode(
        parts[OBSERVATION] if set(parts) == {OBSERVATION} else parts,
        where,
        actions=None if actions is None else actions[:-1],
        rewards=None if rewards is None else np.asarray(rewards, np.float64)[:-1],
        terminated=terminal,
        truncated=last and not terminal,
        instruction=str(values[text][0]) if text else "",
    )


def _values(data: bytes, wanted: Mapping[str, Feature], where: str) -> dict[str, NDArray[Any]]:
    """The wanted features of an episode, an array with a row for each step."""
    from google.protobuf.message import DecodeError

    from grace_irl.demos.ui.androidcontrol_pb2 import Example

    try:
        found = Example.FromString(data).features.feature
    except DecodeError as error:
        raise InputError(f"{where}: no tf.train.Example ({error}); expected a whole file: copy it again") from None
    values: dict[str, NDArray[Any]] = {}
    for name, feature in wanted.items():
        key = f"{STEPS}/{name}"
        if key not in found:
            raise InputError(f"{where}: no feature {key!r}; expected what features.json describes: copy it again")
        sort = found[key].WhichOneof("kind")
        flat = getattr(found[key], sort).value if sort else ()
        if feature.sort == "text":
            if sort != "bytes_list":
                raise InputError(f"{where}: {key} holds no texts; expected what features.json describes: copy it again")
            try:
                values[name] = np.array([each.decode() for each in flat], np.str_)
            except UnicodeDecodeError:
                raise InputError(f"{where}: {key} is no UTF-8; expected texts") from None
            continue
        if sort == "bytes_list":
            raise InputError(f"{where}: {key} holds encoded bytes; expected numbers: prepare it with encoding none")
        kept = _stored(feature.dtype)
        if sort == "float_list" and kept is not np.float64:
            raise InputError(
                f"{where}: {key} holds floats; expected {feature.dtype}, as in features.json: copy it again"
            )
        size = prod(feature.shape)
        if size < 1 or len(flat) % size:
            raise InputError(
                f"{where}: {key} has {len(flat)} numbers; expected a multiple of {size}, for {feature.shape} a step"
            )
        # Whole numbers wrap around like those of the type that the data set states.
        values[name] = np.array(flat, None if kept is np.float64 else np.int64).astype(kept).reshape(-1, *feature.shape)
    return values


def _stored(dtype: str) -> Any:
    """The type in which numbers of a feature are kept: bytes as bytes, other whole ones as int64, others as float64."""
    return np.uint8 if dtype in ("uint8", "bool") else np.int64 if dtype.startswith(("int", "uint")) else np.float64


def _steps(folder: Path) -> Mapping[str, Any] | None:
    """The description of a step in `features.json`; None if the folder holds no such data set."""
    try:
        found = json.loads((folder / "features.json").read_bytes())
        found = found["featuresDict"]["features"][STEPS]["sequence"]["feature"]
        return found if isinstance(found["featuresDict"]["features"], dict) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _features(
    described: Mapping[str, Any], folder: Path, prefix: str = "", depth: int = 0
) -> Iterator[tuple[str, Feature]]:
    """The features of a step by name; those of a group have names such as `observation/joints`."""
    inside = described.get("featuresDict")
    if not isinstance(inside, dict):
        yield prefix, _feature(described, f"{folder}: features.json: {STEPS}/{prefix}")
        return
    groups = inside.get("features")
    for name, each in groups.items() if isinstance(groups, dict) and depth < DEPTH else ():
        if isinstance(each, dict):
            yield from _features(each, folder, f"{prefix}/{name}" if prefix else name, depth + 1)


def _feature(described: Mapping[str, Any], where: str) -> Feature:
    sort = next((key for key in described if key != "pythonClassName"), "unknown")
    if sort != "tensor":
        return Feature(sort)
    tensor = described[sort]
    try:
        shape = tuple(int(each) for each in tensor.get("shape", {}).get("dimensions", ()))
        dtype = str(tensor["dtype"])
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(f"{where}: no shape and type; expected a tensor: copy the data set again") from None
    if dtype in ("string", "object", "bytes", "str"):
        return Feature("text")
    if any(each < 1 for each in shape):
        raise InputError(f"{where}: a shape of {shape}; expected one that is the same for all steps")
    return Feature(sort, shape, dtype)
