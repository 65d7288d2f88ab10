"""Demonstrations of screens with pictures, and what they show."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from grace_irl.demos.screenshots import Screenshot
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.states.texts import pack
from tests.demos.conftest import screen

UI = Metadata("ui", view="uiautomator")


class Drawn:
    """A picture that lies in no file."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self) -> bytes:
        return self.data


def png(seed: int = 0, side: int = 12) -> bytes:
    """A real picture of noise."""
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=np.uint8)
    file = io.BytesIO()
    image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def one(screenshots: tuple[Screenshot | None, ...], **parts: Any) -> Demonstration:
    screens = [screen(f"{parts.get('extra_info', '')} {step}") for step in range(len(screenshots))]
    return Demonstration(Trajectory(pack(screens), screenshots=screenshots, **parts), "expert")


def a_set(*items: Demonstration) -> Demonstrations:
    return Demonstrations(UI, items)


def shots(item: Demonstration) -> list[bytes | None]:
    return [shot and shot.read() for shot in item.trajectory.screenshots]


def words(item: Demonstration) -> tuple[tuple[str, ...], tuple[str, ...]]:
    found = item.trajectory
    return found.action_texts, found.step_instructions
