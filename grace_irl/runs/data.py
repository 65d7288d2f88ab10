"""The demonstrations that the settings of a run name."""

from __future__ import annotations

from grace_irl.config import DataConfig
from grace_irl.demos import load
from grace_irl.demos.foreign.table import Columns
from grace_irl.demos.trajectory import Demonstrations


def load_data(data: DataConfig) -> Demonstrations:
    """Read the demonstrations that the settings name.

    Raises:
        InputError: data that cannot be used; see `grace_irl.demos.files.load`.
    """
    return load(data.demos, data.negatives, experts=data.experts, kind=data.kind, columns=columns_of(data))


def columns_of(data: DataConfig) -> Columns:
    """The user's choice of columns."""
    named = (name.strip() for each in data.state_columns for name in each.split(","))
    return Columns(tuple(filter(None, named)), data.episode_column)
