"""Opens the parcel of a run, whichever kind of states it holds."""

from __future__ import annotations

import os

from grace_irl.sandbox.parcel import TrajectoryView, Views
from grace_irl.sandbox.screen_parcel import NAME, ScreenView, ScreenViews

AnyView = TrajectoryView | ScreenView
AnyViews = Views | ScreenViews


def open_views(fd: int) -> AnyViews:
    """The trajectories of a parcel of arrays or of screens, mapped."""
    return ScreenViews(fd) if os.pread(fd, len(NAME), 0) == NAME else Views(fd)
