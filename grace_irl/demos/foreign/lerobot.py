"""Reader of LeRobot's data sets for robots (versions 2.0, 2.1 and 3.0): a folder with `meta` and `data`.

A row of the Parquet files in `data` is a step, with columns such as `observation.*`, `action` and `episode_index`.
`meta/info.json` lists the features. The text of an episode's task becomes the instruction of the episode. Videos and
pictures are not read; a note lists them for the user.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from grace_irl.contents import require_inside
from grace_irl.demos.foreign.arrow import columns_of
from grace_irl.demos.foreign.episode import Episode, EpisodesSource, column_of, rows_of
from grace_irl.demos.memory import Memory
from grace_irl.demos.parquet.schema import is_list
from grace_irl.demos.trajectory import step_rewards
from grace_irl.errors import InputError

OBSERVATION = "observation."
STATE = "observation.state"
PICTURES = ("video", "image")
BESIDE = ("episode_index", "frame_index", "action", "next.reward", "next.done", "task_index")
FACTOR = 4
"""Maximum bytes of memory per byte of data, while rows become episodes."""


def is_dataset(folder: Path) -> bool:
    """Whether a folder is a data set of LeRobot."""
    try:
        about = json.loads((folder / "meta" / "info.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(about, dict) and "codebase_version" in about and isinstance(about.get("features"), dict)


def open_dataset(folder: Path, memory: Memory) -> EpisodesSource:
    """Open a data set of LeRobot.

    Raises:
        InputError: no data, damaged data, or no numeric observations.
    """
    features = json.loads((folder / "meta" / "info.json").read_bytes())["features"]
    features = {name: each for name, each in features.items() if isinstance(each, dict)}
    observed = [name for name in features if name.startswith(OBSERVATION)]
    pictures = [name for name in observed if features[name].get("dtype") in PICTURES]
    wanted = [name for name in observed if name not in pictures]
    if not wanted:
        raise InputError(
            f"{folder}: no observations of numbers among {', '.join(features)[:200]}; "
            f"expected a feature such as {STATE!r}"
        )
    files = sorted((folder / "data").rglob("*.parquet"))
    if not files:
        raise InputError(f"{folder}: no Parquet file under data; expected a whole data set: copy it again")
    tasks = _tasks(folder)
    episodes: list[Episode] = []
    kept = 0
    for file in files:
        require_inside(file, folder)
        found = _episodes(_table(file, [*wanted, *BESIDE], memory, kept), wanted, tasks, f"{folder}: ")
        episodes += found
        kept += sum(each.nbytes for each in found)
    episodes.sort(key=_number)
    for one, other in pairwise(episodes):
        if _number(one) == _number(other):
            raise InputError(
                f"{one.where} is in the data twice, or in two parts; expected the rows of an episode together, once: "
                "remove the second copy, or write the data set again"
            )
    notes = [f"{folder}: left out: {', '.join(pictures)} (pictures are not read)"] if pictures else []
    return EpisodesSource(folder, episodes, _names(features[STATE]) if wanted == [STATE] else (), notes)


def _table(file: Path, columns: list[str], memory: Memory, kept: int) -> dict[str, NDArray[Any]]:
    try:
        opened = pq.ParquetFile(file)
        about = opened.metadata
        size = sum(about.row_group(group).total_byte_size for group in range(about.num_row_groups))
        memory.require(kept + FACTOR * max(size, 8 * about.num_rows * len(columns)), str(file))
        present = [name for name in columns if name in opened.schema_arrow.names]
        read = opened.read(columns=present, use_threads=False)
        table = columns_of(read, str(file))
        for name in present:
            kind = read.schema.field(name).type
            if is_list(kind) and pa.types.is_float32(kind.value_type):  # Python's numbers would become float64
                for place, row in enumerate(table[name].tolist()):
                    if row is not None and None not in row:
                        table[name][place] = np.asarray(row, np.float32)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0].rstrip(". ")
        raise InputError(f"{file}: not readable as Parquet ({said}); expected a whole file: copy it again") from None
    missing = [name for name in columns if name.startswith(OBSERVATION) or name == "episode_index"]
    missing = [name for name in missing if name not in table]
    if missing:
        raise InputError(f"{file}: no column {missing[0]!r}; expected the features of meta/info.json: copy it again")
    return table


def _episodes(
    table: Mapping[str, NDArray[Any]], parts: list[str], tasks: Mapping[int, str], prefix: str
) -> list[Episode]:
    table = _in_order(table, prefix)
    ids = _whole(table["episode_index"], f"{prefix}episode_index")
    starts = [0, *(np.flatnonzero(np.diff(ids)) + 1).tolist(), len(ids)]
    episodes = []
    for start, stop in pairwise(starts):
        if start == stop:
            continue
        where, rows = f"{prefix}episode {int(ids[start])}", slice(start, stop)
        states = {
            name.removeprefix(OBSERVATION).replace(".", "/"): _rows(table[name][rows], where, name) for name in parts
        }
        rewards, done, task = (
            None if name not in table else column_of(table[name][rows].tolist(), f"{where}, {name}")
            for name in ("next.reward", "next.done", "task_index")
        )
        actions = table.get("action")
        episodes.append(
            Episode(
                next(iter(states.values())) if parts == [STATE] else states,
                where,
                # The state after the last action is not stored, so this action is left out.
                actions=None if actions is None else _rows(actions[rows], where, "action")[:-1],
                rewards=None if rewards is None else step_rewards(rewards, stop - start - 1),
                terminated=done is not None and bool(np.any(done.astype(bool))),
                instruction="" if task is None else tasks.get(task[0].item(), ""),
            )
        )
    return episodes


def _number(episode: Episode) -> int:
    return int(episode.where.rsplit(" ", 1)[1])


def _in_order(table: Mapping[str, NDArray[Any]], prefix: str) -> Mapping[str, NDArray[Any]]:
    """Sort the rows by `episode_index` and `frame_index`. A table without `frame_index` is returned unchanged.

    Raises:
        InputError: an episode has a frame twice.
    """
    if "frame_index" not in table or not len(table["frame_index"]):
        return table
    ids = _whole(table["episode_index"], f"{prefix}episode_index")
    frames = _whole(table["frame_index"], f"{prefix}frame_index")
    order = np.lexsort((frames, ids))
    twice = np.flatnonzero((np.diff(frames[order]) == 0) & (np.diff(ids[order]) == 0))
    if len(twice):
        row = order[twice[0]]
        raise InputError(
            f"{prefix}episode {ids[row]} has frame_index {frames[row]} twice; expected each frame once: remove the "
            "second copy, or write the data set again"
        )
    return {name: column[order] for name, column in table.items()}


def _whole(column: NDArray[Any], where: str) -> NDArray[np.int64]:
    """Convert a column of whole numbers to integers."""
    numbers = column_of(column.tolist(), where) if len(column) else column
    if len(column) and not (np.isfinite(numbers).all() and (numbers == np.round(numbers)).all()):
        raise InputError(f"{where}: numbers that are not whole; expected the number of an episode in each row")
    return np.asarray(numbers, np.int64)


def _rows(column: NDArray[Any], where: str, name: str) -> NDArray[Any]:
    return rows_of(column.tolist(), f"{where}, {name}") if column.dtype.kind == "O" else column.reshape(-1, 1)


def _names(feature: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of a vector's components, from the entry `names` of a feature in `meta/info.json`.

    The entry is a list, or a dict such as `{"motors": […]}`. The result is () if the entry does not hold one distinct
    name for each component.
    """
    found = feature.get("names")
    while isinstance(found, dict) and len(found) == 1:
        (found,) = found.values()
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        return ()
    return tuple(found) if [len(found)] == feature.get("shape") and len(set(found)) == len(found) else ()


def _tasks(folder: Path) -> dict[int, str]:
    """Map from task number to text; {} if the folder has no file of tasks.

    The file is `tasks.parquet` in version 3, and `tasks.jsonl` in version 2.
    """
    try:
        if (folder / "meta" / "tasks.parquet").is_file():
            table = pq.read_table(folder / "meta" / "tasks.parquet", use_threads=False)
            texts = "task" if "task" in table.column_names else "__index_level_0__"
            rows = zip(table["task_index"].to_pylist(), table[texts].to_pylist(), strict=True)
            return {int(number): str(text) for number, text in rows}
        lines = (folder / "meta" / "tasks.jsonl").read_text(encoding="utf-8").splitlines()
        found = [json.loads(line) for line in lines if line.strip()]
        return {int(each["task_index"]): str(each["task"]) for each in found}
    except FileNotFoundError:
        return {}
    except (pa.ArrowException, OSError, LookupError, ValueError, TypeError, ArithmeticError, RuntimeError) as error:
        raise InputError(f"{folder}: the tasks in meta are not readable ({error}); expected a whole data set") from None
