"""Statistics of states for prompts that show no states. Those of vectors: tests/tasks/test_operators.py."""

from __future__ import annotations

import numpy as np

from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import Demonstration, Metadata, Role, Trajectory
from grace_irl.propose.views.grid import GridView
from grace_irl.propose.views.image import ImageView
from tests.propose.screens import APP, node, screen
from tests.propose.views.outlines import view
from tests.propose.views.test_actor import ITEMS

WRITTEN = ("is written", "left out", "moved there", "in full")
"""Words about the notation of states."""


def test_grids_have_their_background_their_actor_and_their_codes() -> None:
    found = GridView(ITEMS, Metadata("grid")).figures(1000)
    assert found.startswith("Background, the commonest codes: (")
    assert "a=21: the actor. Its codes tell its next step: (21,1,0) [+1,0], (21,1,1) [0,+1]," in found
    assert "\nCodes beside the background: a " in found
    assert not [words for words in WRITTEN if words in found]


def test_images_have_the_means_of_each_role() -> None:
    def film(shade: int, role: Role) -> Labelled:
        states = np.full((3, 4, 4, 1), shade, np.uint8)
        return Labelled(Demonstration(Trajectory(states), role), np.array([False, False, True]))

    found = ImageView([film(10, "expert"), film(200, "negative")], Metadata("image")).figures(1000)
    assert "Experts' states: mean of each channel (deviation between states) 10.0 (0.0)." in found
    assert "Negatives' states: mean of each channel (deviation between states) 200.0 (0.0)." in found
    assert "Negatives'" not in ImageView([film(10, "expert")], Metadata("image")).figures(1000)
    assert not [words for words in WRITTEN if words in found]


def test_screens_have_their_packages() -> None:
    found = view(screen(node("Button", "OK")), screen(node("Button", "Go"))).figures(1000)
    assert found.startswith("Packages: ")
    assert APP in found
    assert not [words for words in WRITTEN if words in found]
