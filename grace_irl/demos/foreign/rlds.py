"""Reader of RLDS data sets: episodes in TFRecord files, in a folder that TensorFlow Datasets has prepared.

`features.json` describes the features of an episode. A record is a `tf.train.Example` with one episode. In a record,
each feature of the steps is one flat list with a name such as `steps/observation/joints`. The observation of the last
step is the last state. So the reader ignores the action of the last step, and adds the reward of the last step to the
reward of the step before. The instruction is a text that all steps share, or a text of the whole episode. Encoded
pictures and non-numeric actions are left out; a note lists them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.contents import require_inside
from grace_irl.demos.foreign.episode import Episode, EpisodesSource, column_of
from grace_irl.demos.memory import Memory
from grace_irl.demos.source import one_text
from grace_irl.demos.tfrecord import read_records, require_libraries
from grace_irl.demos.trajectory import step_rewards
from grace_irl.errors import InputError

STEPS, OBSERVATION, ACTION = "steps", "observation", "action"
TEXTS = ("language_instruction", "natural_language_instruction")
"""Possible names of the instruction, which is a feature of the steps, of the observations, or of the whole episode."""
ENDS = ("is_terminal", "is_last")
SORTS = ("tensor", "text", "image", "video", "audio", "sequence", "classLabel", "boundingBox", "translation")
"""Sorts of features. In `features.json`, the sort is one of the keys of a feature's entry."""
LEFT_OUT = ("image", "video")
"""Sorts of observations that are left out of states. Any other observation that cannot be read raises an error."""
DEPTH = 8
"""Maximum nesting depth of groups whose features are read."""
FACTOR = 30
"""Maximum bytes of memory per byte of a record, while the record becomes an episode. The factor is large, because a
record may store an integer in one byte."""

_SHARD = re.compile(r"(.+)-([^-]+)\.tfrecord-(\d{5})-of-(\d{5})")
TRAINING = "train"
"""Name of the training split. If a data set has this split and further splits, the episodes of the further splits are
held out."""

Described = Mapping[str, Any]
"""The description of a feature in `features.json`."""


@dataclass(frozen=True)
class Feature:
    """A feature that the reader uses.

    Attributes:
        key: name of the feature in a record, such as `steps/observation/joints`.
        shape: shape of the feature in one step.
        dtype: type of the numbers; "str" for texts.
    """

    key: str
    shape: tuple[int, ...] = ()
    dtype: str = "str"


@dataclass(frozen=True)
class RecordLayout:
    """The features from which the reader makes the episodes of a data set.

    Attributes:
        states: parts of a state, by name. A single part without a name has the key `OBSERVATION`.
        actions: parts of an action, in order.
        rewards: the reward, or None.
        ends: flags that mark the end of an episode, by name, from `ENDS`.
        text: the instruction, or None.
        left_out: names of the features that are left out.
    """

    states: Mapping[str, Feature]
    actions: tuple[Feature, ...]
    rewards: Feature | None
    ends: Mapping[str, Feature]
    text: Feature | None
    left_out: tuple[str, ...]


def is_dataset(folder: Path) -> bool:
    """Whether a folder is a data set of TensorFlow Datasets whose examples are episodes."""
    return _described(folder) is not None


def open_dataset(folder: Path, memory: Memory) -> EpisodesSource:
    """Open an RLDS data set.

    Raises:
        InputError: no records, missing or damaged records, or no usable observations.
    """
    described = _described(folder)
    assert described is not None
    require_libraries(folder, "rlds")
    layout = _layout(described, folder)
    shards = _shards(folder)
    splits = list(dict.fromkeys(split for _, split in shards))
    sides = TRAINING in splits and len(splits) > 1
    episodes: list[Episode] = []
    kept = 0
    for file, split in shards:
        require_inside(file, folder)
        side = ("train" if split == TRAINING else "held_out") if sides else ""
        for number, data in enumerate(read_records(file)):
            where = f"{file}: episode {number}"
            memory.require(kept + FACTOR * len(data), where)
            episodes.append(_episode(data, layout, where, side, memory))
            kept += episodes[-1].nbytes
    notes = []
    if layout.left_out:
        notes.append(
            f"{folder}: left out: {', '.join(layout.left_out)} (pictures are not read, nor actions that are no numbers)"
        )
    if len(layout.actions) > 1:
        names = ", ".join(each.key.removeprefix(f"{STEPS}/{ACTION}/") for each in layout.actions)
        notes.append(f"{folder}: actions are {names}, side by side")
    if len(splits) > 1:
        said = f"{TRAINING} for training, the others held out" if sides else "all are read alike"
        notes.append(f"{folder}: splits {', '.join(splits)}: {said}")
    return EpisodesSource(folder, episodes, (), notes)


def _layout(described: Described, folder: Path) -> RecordLayout:
    of_steps = dict(_flat(described[STEPS]["sequence"]["feature"], STEPS, folder))
    of_episode = dict(
        _flat({"featuresDict": {"features": {k: v for k, v in described.items() if k != STEPS}}}, "", folder)
    )
    texts = [key for key in (*of_steps, *of_episode) if key.split("/")[-1] in TEXTS]
    text = next((key for key in texts if _sort((of_steps | of_episode)[key]) == "text"), "")
    prefix = f"{STEPS}/{OBSERVATION}"
    observed = {key: each for key, each in of_steps.items() if key == prefix or key.startswith(f"{prefix}/")}
    left_out = [key for key, each in observed.items() if _sort(each) in LEFT_OUT]
    states = {key: each for key, each in observed.items() if key not in (*left_out, text)}
    if not states:
        raise InputError(
            f"{folder}: no observations of numbers or texts among {', '.join(of_steps)[:200] or 'the steps'}; expected "
            f"a feature {prefix} that is no picture"
        )
    acted = [key for key in of_steps if key == f"{STEPS}/{ACTION}" or key.startswith(f"{STEPS}/{ACTION}/")]
    numbers = [key for key in acted if _sort(of_steps[key]) in ("tensor", "classLabel")]
    left_out += [key for key in acted if key not in numbers]
    beside = {
        name: _feature(f"{STEPS}/{name}", of_steps[f"{STEPS}/{name}"], folder)
        for name in ("reward", *ENDS)
        if f"{STEPS}/{name}" in of_steps
    }
    parts = {key.removeprefix(f"{prefix}/") if key != prefix else OBSERVATION: key for key in states}
    return RecordLayout(
        states={name: _feature(key, states[key], folder) for name, key in parts.items()},
        actions=tuple(_feature(key, of_steps[key], folder) for key in numbers),
        rewards=beside.get("reward"),
        ends={name: beside[name] for name in ENDS if name in beside},
        text=Feature(text) if text else None,
        left_out=tuple(key.removeprefix(f"{STEPS}/") for key in left_out),
    )


def _shards(folder: Path) -> list[tuple[Path, str]]:
    """The TFRecord files (shards) of a data set in the order of their names, each with the name of its split.

    Raises:
        InputError: no shards, or missing shards.
    """
    named = [(file, _SHARD.fullmatch(file.name)) for file in sorted(folder.iterdir()) if file.is_file()]
    found = [(file, match) for file, match in named if match]
    if not found:
        raise InputError(
            f"{folder}: no TFRecord file; expected shards such as NAME-train.tfrecord-00000-of-00001: copy the whole "
            "data set, or prepare it in the file format tfrecord"
        )
    present: dict[tuple[str, str], list[int]] = {}
    for _, match in found:
        present.setdefault((f"{match[1]}-{match[2]}", match[4]), []).append(int(match[3]))
    for (name, total), numbers in present.items():
        if numbers != list(range(int(total))):
            raise InputError(
                f"{folder}: {len(numbers)} of {int(total)} shards of {name}; expected all: copy the whole data set"
            )
    return [(file, match[2]) for file, match in found]


def _episode(data: bytes, layout: RecordLayout, where: str, side: str, memory: Memory) -> Episode:
    from google.protobuf.message import DecodeError

    from grace_irl.demos.ui.androidcontrol_pb2 import Example

    try:
        found = Example.FromString(data).features.feature
    except DecodeError as error:
        raise InputError(f"{where}: no tf.train.Example ({error}); expected a whole file: copy it again") from None

    def values(feature: Feature) -> NDArray[Any]:
        return _values(found, feature, where, memory)

    states = {name: values(feature) for name, feature in layout.states.items()}
    actions = [values(feature) for feature in layout.actions]
    rewards = None if layout.rewards is None else column_of(values(layout.rewards), f"{where}, reward")
    ends = {name: column_of(values(feature), f"{where}, {name}") for name, feature in layout.ends.items()}
    lengths = {len(part) for part in (*states.values(), *actions, *ends.values())}
    lengths |= set() if rewards is None else {len(rewards)}
    if len(lengths) != 1 or lengths == {0}:
        raise InputError(f"{where}: features of {sorted(lengths)} steps; expected one number above 0: prepare it again")
    terminal, last = (name in ends and bool(ends[name][-1]) for name in ENDS)
    if set(states) == {OBSERVATION}:
        only = states[OBSERVATION]
        is_screens = only.dtype.kind not in "biuf"
        whole: NDArray[Any] | Mapping[str, NDArray[Any]]
        whole = only if is_screens or only.ndim > 1 else only.reshape(-1, 1)
    else:
        whole = states
    return Episode(
        whole,
        where,
        actions=_side_by_side(actions),
        rewards=None if rewards is None else step_rewards(rewards, len(rewards) - 1),
        terminated=terminal,
        truncated=last and not terminal,
        instruction="" if layout.text is None else one_text(_texts(found, layout.text, where), "the text", where) or "",
        split=side,
    )


def _side_by_side(actions: Sequence[NDArray[Any]]) -> NDArray[Any] | None:
    """Join the parts of actions to one array; None without parts. The last action leads to no state and is left out."""
    if len(actions) < 2:
        return actions[0][:-1] if actions else None
    return np.concatenate([part.reshape(len(part), -1) for part in actions], axis=1)[:-1]


def _values(found: Any, feature: Feature, where: str, memory: Memory) -> NDArray[Any]:
    """The values of a feature in one episode, with one row per step."""
    if feature.dtype == "str":
        texts = _texts(found, feature, where)
        memory.require(4 * len(texts) * max(map(len, texts), default=0), f"{where}, {feature.key}")
        return np.array(texts, np.str_)
    sort = _require(found, feature.key, where).WhichOneof("kind")
    if sort == "bytes_list":
        raise InputError(f"{where}: {feature.key} holds encoded bytes; expected numbers: prepare it with encoding none")
    flat = getattr(found[feature.key], sort).value if sort else ()
    kept = _stored(feature.dtype)
    if sort == "float_list" and kept is not np.float64:
        raise InputError(f"{where}: {feature.key} holds floats; expected {feature.dtype}: copy the data set again")
    size = prod(feature.shape)
    if len(flat) % size:
        raise InputError(
            f"{where}: {feature.key} has {len(flat)} numbers; expected a multiple of {size}, for {feature.shape} a step"
        )
    numbers = np.array(flat, None if kept is np.float64 else np.int64)
    if feature.dtype == "uint64" and (numbers < 0).any():
        raise InputError(f"{where}: {feature.key} has numbers above 2^63; expected at most that")
    return numbers.astype(kept).reshape(-1, *feature.shape)


def _texts(found: Any, feature: Feature, where: str) -> list[str]:
    sort = _require(found, feature.key, where).WhichOneof("kind")
    if sort != "bytes_list" or not found[feature.key].bytes_list.value:
        raise InputError(f"{where}: {feature.key} holds no texts; expected what features.json describes: copy it again")
    try:
        return [each.decode() for each in found[feature.key].bytes_list.value]
    except UnicodeDecodeError:
        raise InputError(f"{where}: {feature.key} is no UTF-8; expected texts") from None


def _require(found: Any, key: str, where: str) -> Any:
    if key not in found:
        raise InputError(f"{where}: no feature {key!r}; expected what features.json describes: copy it again")
    return found[key]


def _stored(dtype: str) -> Any:
    """The array type for a feature's numbers: uint8 for bytes and booleans, int64 for other integers, else float64."""
    return np.uint8 if dtype in ("uint8", "bool") else np.int64 if dtype.startswith(("int", "uint")) else np.float64


def _described(folder: Path) -> Described | None:
    """The features of an episode from `features.json`; None if the folder is no RLDS data set."""
    try:
        found = json.loads((folder / "features.json").read_bytes())["featuresDict"]["features"]
        inside = found[STEPS]["sequence"]["feature"]["featuresDict"]["features"]
        return found if isinstance(found, dict) and isinstance(inside, dict) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _flat(described: Described, prefix: str, folder: Path, depth: int = 0) -> Iterator[tuple[str, Described]]:
    """Yield the name of each feature in a record, and the description of the feature.

    The name contains the groups (`featuresDict`) around the feature, as in `steps/observation/joints`.
    """
    inside = described.get("featuresDict")
    if not isinstance(inside, dict):
        yield prefix, described
        return
    groups = inside.get("features")
    for name, each in groups.items() if isinstance(groups, dict) and depth < DEPTH else ():
        if not name.isprintable():
            raise InputError(f"{folder}: features.json: a feature {name!a}; expected a name that prints")
        if isinstance(each, dict):
            yield from _flat(each, f"{prefix}/{name}" if prefix else name, folder, depth + 1)


def _sort(described: Described) -> str:
    """The sort of a feature, from `SORTS`; "unknown" for other sorts. A tensor of one string per step is a "text"."""
    found = next((name for name in SORTS if name in described), "unknown")
    tensor = described.get("tensor")
    strings = (
        found == "tensor" and isinstance(tensor, dict) and tensor.get("dtype") in ("string", "object", "bytes", "str")
    )
    return "text" if strings and not _dimensions(tensor) else found


def _dimensions(tensor: Any) -> list[Any]:
    shape = tensor.get("shape") if isinstance(tensor, dict) else None
    found = shape.get("dimensions") if isinstance(shape, dict) else None
    return found if isinstance(found, list) else []


def _feature(key: str, described: Described, folder: Path) -> Feature:
    """Read the description of a feature for a state, an action, a reward or a flag.

    Raises:
        InputError: a feature of an unreadable sort, or of a shape that varies.
    """
    sort, where = _sort(described), f"{folder}: features.json: {key}"
    if sort == "text":
        return Feature(key)
    if sort == "classLabel":
        return Feature(key, (), "int64")
    if sort != "tensor":
        raise InputError(f"{where} is a feature {sort!r}; expected a tensor or a text")
    tensor = described[sort]
    dtype = tensor.get("dtype") if isinstance(tensor, dict) else None
    if not isinstance(dtype, str):
        raise InputError(f"{where}: no type; expected a tensor: copy the data set again")
    sizes = _dimensions(tensor)
    shape = tuple(int(each) for each in sizes if isinstance(each, str | int) and re.fullmatch(r"\d{1,9}", str(each)))
    if len(shape) < len(sizes) or 0 in shape:
        raise InputError(f"{where}: a shape of {sizes!s:.80}; expected one that is the same for all steps")
    return Feature(key, shape, dtype)
