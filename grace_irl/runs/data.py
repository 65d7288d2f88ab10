"""The demonstrations that the settings of a run name."""

from __future__ import annotations

from pathlib import Path

from grace_irl.config import Config, DataConfig
from grace_irl.demos.files import load, open_set
from grace_irl.demos.foreign.columns import Columns
from grace_irl.demos.memory import spelled
from grace_irl.demos.opened import OpenSet
from grace_irl.demos.trajectory import Demonstrations

LARGE = 1 << 30
"""Minimum size of the demonstrations in bytes for the line of `large_files`. Reading a GiB takes about 3 seconds."""


def load_data(data: DataConfig, *, new: bool = False) -> Demonstrations:
    """Read the demonstrations that the settings name, or a sample if the settings give its size.

    Args:
        data: the settings.
        new: whether the run is new. If a new run has settings without a sample size, and the set exceeds the memory
            limit, a sample is drawn. `with_sample` adds the size of this sample to the settings, so that a resumed run
            draws the same sample.

    Raises:
        InputError: data that cannot be used; see `grace_irl.demos.files.load`.
    """
    sample = data.sample if data.sample or new else None
    columns = columns_of(data)
    return load(data.demos, data.negatives, experts=data.experts, kind=data.kind, columns=columns, sample=sample)


def open_data(data: DataConfig) -> OpenSet:
    """Open all demonstrations that the settings name, to read them one at a time.

    Raises:
        InputError: data that cannot be used; see `grace_irl.demos.files.open_set`.
    """
    return open_set(data.demos, data.negatives, experts=data.experts, kind=data.kind, columns=columns_of(data))


def large_files(data: DataConfig) -> str:
    """A line for the user about the size of the demonstrations, if reading them takes a while; else ""."""
    paths = [Path(name) for name in (*data.files, *data.negatives) if name]
    files = [inside for path in paths for inside in (path.iterdir() if path.is_dir() else [path])]
    size = sum(file.stat().st_size for file in files if file.is_file())
    return f"reading {spelled(size)} of demonstrations" if size >= LARGE else ""


def with_sample(config: Config, demonstrations: Demonstrations) -> Config:
    """A copy of the configuration with the sample's size, if the demonstrations are a new sample; else `config`."""
    if demonstrations.sampled is None or config.data.sample:
        return config
    size = str(demonstrations.sampled.size)
    return config.model_copy(update={"data": config.data.model_copy(update={"sample": size})})


def columns_of(data: DataConfig) -> Columns:
    """The user's choice of columns in tables of demonstrations."""
    named = (name.strip() for each in data.state_columns for name in each.split(","))
    return Columns(tuple(filter(None, named)), data.episode_column)
