"""Demonstrations in the layouts of other programs, as those programs write them."""

import csv
import gzip
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory

NAMES = ("height", "speed", "angle")


def plain(fields: tuple[str, ...] = (), *, ended: bool = True, cut: bool = False) -> Demonstrations:
    """Two episodes of vectors with actions and rewards, which most programs can hold."""
    rng = np.random.default_rng(0)
    items = []
    for number, steps in enumerate((4, 2)):
        trajectory = Trajectory(
            rng.normal(size=(steps + 1, 3)),
            rng.normal(size=(steps, 2)),
            rewards=rng.normal(size=steps),
            terminated=ended and number == 0,
            truncated=cut and number == 1,
        )
        items.append(Demonstration(trajectory, "expert"))
    return Demonstrations(Metadata("vector", fields), tuple(items))


def rows(demonstrations: Demonstrations) -> list[dict[str, Any]]:
    """One row per state: episode, fields, actions, reward, role, task, instruction and split."""
    found = []
    for number, item in enumerate(demonstrations):
        trajectory = item.trajectory
        for step, state in enumerate(trajectory.states):
            last = step == trajectory.num_steps
            action = trajectory.actions[step] if not last else np.zeros(2)
            row: dict[str, Any] = {"episode": number, "step": step}
            row |= dict(zip(demonstrations.metadata.fields, map(float, state), strict=True))
            row |= {"action_x": float(action[0]), "action_y": float(action[1])}
            row |= {"reward": 0.0 if last else float(trajectory.rewards[step]), "done": last and trajectory.terminated}
            row |= {"truncated": last and trajectory.truncated, "role": item.role, "task": item.task}
            row |= {"instruction": trajectory.extra_info, "split": item.split or ""}
            found.append(row)
    return found


def to_csv(table: list[dict[str, Any]], path: Path, delimiter: str = ",") -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(table[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(table)
    data = text.getvalue().encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def to_json_lines(table: list[dict[str, Any]], path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in table))


def to_parquet(table: list[dict[str, Any]], path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(table), path)


def flat(demonstrations: Demonstrations) -> dict[str, np.ndarray]:
    """D4RL's arrays, with the next observations."""
    trajectories = [item.trajectory for item in demonstrations]
    last = [step == each.num_steps - 1 for each in trajectories for step in range(each.num_steps)]
    ended = [each.terminated for each in trajectories for _ in range(each.num_steps)]
    return {
        "observations": np.concatenate([each.states[:-1] for each in trajectories]),
        "next_observations": np.concatenate([each.states[1:] for each in trajectories]),
        "actions": np.concatenate([each.actions for each in trajectories]),
        "rewards": np.concatenate([each.rewards for each in trajectories]),
        "terminals": np.array(last) & np.array(ended),
        "timeouts": np.array(last) & ~np.array(ended),
    }


def to_hdf5(demonstrations: Demonstrations, path: Path) -> None:
    with h5py.File(path, "w") as file:
        for name, array in flat(demonstrations).items():
            file[name] = array
        file.create_group("metadata")["algorithm"] = "SAC"


def to_robomimic(demonstrations: Demonstrations, path: Path) -> None:
    with h5py.File(path, "w") as file:
        for number, item in enumerate(demonstrations):
            trajectory = item.trajectory
            group = file.create_group(f"data/demo_{number}")
            group["actions"], group["rewards"] = trajectory.actions, trajectory.rewards
            group["dones"] = np.arange(trajectory.num_steps) == (trajectory.num_steps - 1) * trajectory.terminated
            group["states"] = np.zeros((trajectory.num_steps, 7))  # of the simulator
            group["obs"], group["next_obs"] = trajectory.states[:-1], trajectory.states[1:]


def to_lerobot(
    demonstrations: Demonstrations, folder: Path, version: str = "v2.1", last_rewards: Sequence[float] = (0.0, 0.0)
) -> None:
    """Version 2.1 has a file for each episode, version 3.0 one for many."""
    (folder / "meta").mkdir(parents=True)
    fields = list(demonstrations.metadata.fields)
    features: dict[str, Any] = {
        "observation.state": {"dtype": "float64", "shape": [3], "names": {"motors": fields}},
        "action": {"dtype": "float64", "shape": [2], "names": None},
        "observation.images.top": {"dtype": "video", "shape": [8, 8, 3]},
    }
    (folder / "meta" / "info.json").write_text(json.dumps({"codebase_version": version, "features": features}))
    tasks = list(dict.fromkeys(item.trajectory.extra_info for item in demonstrations))
    if version == "v3.0":
        pq.write_table(pa.table({"task_index": range(len(tasks)), "task": tasks}), folder / "meta" / "tasks.parquet")
    else:
        lines = [json.dumps({"task_index": number, "task": task}) + "\n" for number, task in enumerate(tasks)]
        (folder / "meta" / "tasks.jsonl").write_text("".join(lines))
    data = folder / "data" / "chunk-000"
    data.mkdir(parents=True)
    tables = []
    for number, item in enumerate(demonstrations):
        trajectory, count = item.trajectory, len(item.trajectory.states)
        table = pa.table(
            {
                "observation.state": pa.array(trajectory.states.tolist()),
                "action": pa.array([*trajectory.actions.tolist(), [0.0, 0.0]]),
                "next.reward": [*trajectory.rewards.tolist(), last_rewards[number]],
                "next.done": [False] * (count - 1) + [trajectory.terminated],
                "timestamp": [step / 10 for step in range(count)],
                "frame_index": range(count),
                "episode_index": [number] * count,
                "task_index": [tasks.index(trajectory.extra_info)] * count,
            }
        )
        tables.append(table)
        if version != "v3.0":
            pq.write_table(table, data / f"episode_{number:06d}.parquet")
    if version == "v3.0":
        pq.write_table(pa.concat_tables(tables), data / "file-000.parquet")


def to_rlds(demonstrations: Demonstrations, folder: Path, last_rewards: Sequence[float] = (0.0, 0.0)) -> None:
    """The folder of TensorFlow Datasets. `by_tfds.py` writes one with the library itself."""
    from grace_irl.demos.tfrecord import write_record
    from grace_irl.demos.ui.androidcontrol_pb2 import Example

    def tensor(dtype: str, *shape: int) -> dict[str, Any]:
        return {"tensor": {"dtype": dtype, "shape": {"dimensions": [str(each) for each in shape]} if shape else {}}}

    folder.mkdir()
    flags = ("is_terminal", "is_last")
    features = {"observation": tensor("float64", 3), "action": tensor("float64", 2), "reward": tensor("float64")}
    features |= dict.fromkeys(flags, tensor("bool")) | {"language_instruction": {"text": {}}}
    step = {"feature": {"featuresDict": {"features": features}}, "length": "-1"}
    about = {"featuresDict": {"features": {"steps": {"sequence": step}}}}
    (folder / "features.json").write_text(json.dumps(about))
    with (folder / "robot-train.tfrecord-00000-of-00001").open("wb") as stream:
        for item, last in zip(demonstrations, last_rewards, strict=True):
            trajectory, example = item.trajectory, Example()
            count = trajectory.num_steps
            feature = example.features.feature
            feature["steps/observation"].float_list.value.extend(trajectory.states.ravel())
            feature["steps/action"].float_list.value.extend([*trajectory.actions.ravel(), 0.0, 0.0])
            feature["steps/reward"].float_list.value.extend([*trajectory.rewards, last])
            for name, ended in zip(
                flags, (trajectory.terminated, trajectory.terminated or trajectory.truncated), strict=True
            ):
                feature[f"steps/{name}"].int64_list.value.extend([0] * count + [int(ended)])
            text = trajectory.extra_info.encode()
            feature["steps/language_instruction"].bytes_list.value.extend([text] * (count + 1))
            write_record(stream, example.SerializeToString())


def _lists(states: NDArray[Any]) -> pa.DataType:
    """Arrow's type of nested lists with the array's type of numbers."""
    kind = pa.from_numpy_dtype(states.dtype)
    for _ in states.shape:
        kind = pa.list_(kind)
    return kind


def to_imitation(demonstrations: Demonstrations, folder: Path) -> None:
    """The folder of `imitation.data.serialize.save`, with infos that nobody may decode."""
    folder.mkdir()
    features = {name: {"_type": "Sequence"} for name in ("obs", "acts", "infos", "terminal", "rews")}
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))
    trajectories = [item.trajectory for item in demonstrations]
    table = pa.table(
        {
            "obs": pa.array([each.states.tolist() for each in trajectories], _lists(trajectories[0].states)),
            "acts": [each.actions.tolist() for each in trajectories],
            "infos": [['{"py/reduce": [{"py/function": "os.abort"}]}'] * each.num_steps for each in trajectories],
            "terminal": [each.terminated for each in trajectories],
            "rews": [each.rewards.tolist() for each in trajectories],
        }
    )
    with (
        pa.OSFile(str(folder / "data-00000-of-00001.arrow"), "wb") as file,
        pa.ipc.new_stream(file, table.schema) as out,
    ):
        out.write_table(table)


def table(**more: list[Any]) -> list[dict[str, Any]]:
    """Two episodes of two states."""
    columns: dict[str, list[Any]] = {"episode": [0, 0, 1, 1], "x": [0.5, 1.5, 2.5, 3.5], **more}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def rlds(change: Callable[[Path], object]) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        to_rlds(plain(), folder / "robot")
        change(folder / "robot")
        return folder / "robot"

    return write


def described(**features: Any) -> Callable[[Path], Path]:
    """RLDS with another description of some features of a step, or none (None)."""

    def change(folder: Path) -> None:
        about = json.loads((folder / "features.json").read_text())
        step = about["featuresDict"]["features"]["steps"]["sequence"]["feature"]["featuresDict"]
        step["features"] = {name: each for name, each in (step["features"] | features).items() if each is not None}
        (folder / "features.json").write_text(json.dumps(about))

    return rlds(change)


def tensor(dtype: str, *shape: int) -> dict[str, Any]:
    return {"tensor": {"dtype": dtype, "shape": {"dimensions": list(map(str, shape))}}}
