"""Reader of folders that `imitation.data.serialize.save` writes: a Hugging Face data set with a row per trajectory.

The columns `obs`, `acts`, `rews` and `terminal` are read. The column `infos` is never decoded, because its jsonpickle
texts can create any object.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from grace_irl.contents import require_inside
from grace_irl.demos.arrow_stream import batches_of
from grace_irl.demos.foreign.episode import Episode, EpisodesSource, column_of, rows_of
from grace_irl.demos.memory import Memory
from grace_irl.demos.parquet.schema import dtype_of, is_list
from grace_irl.errors import InputError

COLUMNS = ("obs", "acts", "rews", "terminal")
FACTOR = 20
"""Maximum bytes of memory per byte of a file, while the file's rows become arrays."""


def is_dataset(folder: Path) -> bool:
    """Whether a folder is a data set of Hugging Face's `datasets` with trajectories of `imitation`."""
    try:
        features = json.loads((folder / "dataset_info.json").read_bytes()).get("features", {})
    except (OSError, ValueError, AttributeError, RecursionError):
        return False
    return isinstance(features, dict) and {"obs", "acts"} <= features.keys()


def open_dataset(folder: Path, memory: Memory) -> EpisodesSource:
    """Open a data set that `is_dataset` recognises.

    Raises:
        InputError: no data, damaged data, or trajectories that cannot be used.
    """
    files = sorted(folder.glob("data-*.arrow"))
    if not files:
        raise InputError(f"{folder}: no file data-*.arrow; expected a whole data set: copy it again")
    episodes: list[Episode] = []
    kept = 0
    for file in files:
        require_inside(file, folder)
        memory.require(kept + FACTOR * file.stat().st_size, str(file))
        try:
            batches = [
                batch.select([name for name in COLUMNS if name in batch.schema.names])
                for batch in batches_of(pa.py_buffer(file.read_bytes()), str(file))
            ]
            kinds = {field.name: field.type for batch in batches[:1] for field in batch.schema}
            rows = [row for batch in batches for row in batch.to_pylist()]
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            said = (str(error).splitlines() or [type(error).__name__])[0]
            raise InputError(f"{file}: not readable ({said}); expected a whole data set: copy it again") from None
        for row in rows:
            where = f"{folder}: episode {len(episodes)}"
            if row.get("obs") is None or row.get("acts") is None:
                raise InputError(f"{where}: no obs or no acts; expected both: write it again")
            rewards = row.get("rews")
            episodes.append(
                Episode(
                    _rows(row["obs"], kinds["obs"], f"{where}, obs"),
                    where,
                    actions=_rows(row["acts"], kinds["acts"], f"{where}, acts"),
                    rewards=None if rewards is None else column_of(rewards, f"{where}, rews"),
                    terminated=bool(row.get("terminal")),
                )
            )
            kept += episodes[-1].nbytes
    return EpisodesSource(folder, episodes)


def _rows(value: Any, kind: pa.DataType, where: str) -> NDArray[Any]:
    """Convert the nested lists of one episode to an array with the number type of their column.

    Python's numbers do not keep that type, so it comes from `kind`, the Arrow type of the column.
    """
    rows = rows_of(value, where)
    while is_list(kind):
        kind = kind.value_type
    return rows.astype(dtype_of(kind)) if rows.dtype.kind in "biuf" else rows
