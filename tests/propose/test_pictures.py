"""States as pictures."""

from __future__ import annotations

import io
import itertools
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from grace_irl.demos.labels import label
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.errors import InputError
from grace_irl.methods.grace_operators import initialise, mutate
from grace_irl.propose.briefing import PromptBudget, brief
from grace_irl.propose.material import Material
from grace_irl.propose.pictures import CELL, LONGEST, PICTURES, most_of_captions, pictures, png, require_pictures
from grace_irl.propose.protocol import Prompt
from grace_irl.propose.rendering import clean
from grace_irl.propose.tokens import estimate
from grace_irl.propose.views.trajectory import Shown
from grace_irl.states.record import RecordStates
from tests.fakes.data import vector_set
from tests.propose import asked

Image = pytest.importorskip("PIL.Image")


def grid_set(experts: int = 5) -> Demonstrations:
    rng = np.random.default_rng(0)
    items = [
        Demonstration(Trajectory(rng.integers(0, 5, (4, 3, 6, 3)), extra_info=f"go to {n}"), role)  # type: ignore[arg-type]
        for role, count in (("expert", experts), ("negative", 2))
        for n in range(count)
    ]
    return Demonstrations(Metadata("grid", label="last"), tuple(items))


def test_every_code_has_its_own_colour_and_the_first_index_goes_down() -> None:
    codes = list(itertools.product(range(4), range(3), range(2)))
    state = np.array(codes).reshape(4, 6, 3)
    image = Image.open(io.BytesIO(png(state))).convert("RGB")
    assert image.size == (6 * CELL, 4 * CELL)
    corners = {(i, j): image.getpixel((j * CELL + CELL - 4, i * CELL + CELL // 2)) for i in range(4) for j in range(6)}
    assert len(set(corners.values())) == 24
    again = Image.open(io.BytesIO(png(state[::-1]))).convert("RGB")
    assert again.getpixel((CELL - 4, CELL // 2)) == corners[3, 0]


def test_large_grids_stay_within_a_size() -> None:
    image = Image.open(io.BytesIO(png(np.zeros((500, 90, 3), int))))
    assert max(image.size) <= LONGEST


def told(prompt: Prompt) -> list[str]:
    """The captions of a prompt."""
    assert len(prompt.images) == prompt.user.count("\nPicture ")
    return re.findall(r"^Picture \d+: (.*)$", prompt.user, re.MULTILINE)


def test_first_and_last_states_of_experts_go_with_a_prompt() -> None:
    plain = brief(label(grid_set(), "last"), images=True)
    prompts = {seed: initialise(plain, Material(seed=seed)) for seed in (3, 4)}
    experts = [f"state {step} of Expert {n}" for n in (1, 2, 3) for step in ("1", "4")]
    assert [caption.removesuffix(", positive") for caption in told(prompts[3])] == experts
    assert [caption.endswith(", positive") for caption in told(prompts[3])] == [False, True] * 3
    assert prompts[3] == initialise(plain, Material(seed=3))
    assert prompts[3].images != prompts[4].images
    # They are the states of the trajectory that the text calls so.
    (number,) = re.findall(r"Expert 2: extra_info 'go to (\d)'", prompts[3].user)
    assert prompts[3].images[3] == png(plain.items[int(number)].trajectory.states[-1])


def test_wrong_states_go_with_a_mutation() -> None:
    problem = asked.grids()
    plain, given = brief(problem, images=True), asked.material(problem)
    for seed in range(5):
        prompt = mutate(plain, replace(given, seed=seed, include_expert=True))
        captions = told(prompt)
        assert sorted(captions[:3]) == [
            "state 2 of Negative 1, WRONG",
            "state 4 of Expert 1, positive, WRONG",
            "state 9 of Negative 1, WRONG",
        ]
        assert captions[3:] == ["state 1 of Expert 2", "state 4 of Expert 2, positive"]
        assert "Expert 2: " in prompt.user.split("# For comparison")[1]
        for caption, file in zip(captions[:3], prompt.images, strict=False):
            step, title = re.findall(r"\d+|Expert|Negative", caption)[:2]
            item = problem.train[0 if title == "Expert" else 2]
            assert file == png(item.trajectory.states[int(step) - 1])


def test_many_wrong_states_share_the_pictures() -> None:
    problem = label(grid_set(), "last")
    wrong = {place: np.arange(4) for place in range(len(problem.train))}
    captions = told(mutate(brief(problem, images=True), Material(seed=1, wrong=wrong)))
    assert len(captions) == PICTURES
    assert all("WRONG" in caption for caption in captions)
    counts = Counter(caption.split(" of ")[1].split(",")[0] for caption in captions)
    assert sorted(counts.values()) == [1, 1, 2, 2]  # four trajectories


def test_questions_about_goal_states_have_pictures_and_no_label() -> None:
    problem = label(grid_set(), "last")
    plain = brief(problem, images=True)
    assert told(clean(plain, Material(trajectories=problem.train[:1]))) == [
        f"state {n} of Trajectory 1" for n in range(1, 5)
    ]
    walk = asked.grids().train[2]  # 15 states
    captions = told(clean(brief(asked.grids(), images=True), Material(trajectories=(walk,))))
    steps = [int(caption.split()[1]) for caption in captions]
    assert len(steps) == PICTURES
    assert {1, 15} <= set(steps)
    assert max(np.diff(steps)) <= 5


def test_captions_count_towards_a_prompts_tokens() -> None:
    problem = label(grid_set(), "last")
    for total in (3_000, 2_500, 2_000):
        prompt = initialise(brief(problem, budget=PromptBudget(total=total), images=True), Material(seed=1))
        assert prompt.images
        assert estimate(prompt.text) <= total


def test_long_captions_count_whole() -> None:
    """Names of parts, and numbers of states above a thousand."""
    walk = Trajectory(
        RecordStates({f"camera {n}, seen from above": np.zeros((1_500, 5, 5, 3), np.uint8) for n in "123"})
    )
    problem = label(Demonstrations(Metadata("record"), (Demonstration(walk, "expert"),)), "last")
    shown = [Shown(item, focus=range(1_200, 1_210), wrong=range(1_210)) for item in problem.train * 12]
    drawn = pictures({f"Negative {n}": each for n, each in enumerate(shown, start=1)})
    assert len(drawn.captions) == PICTURES
    assert estimate(drawn.text) <= most_of_captions(shown)


def test_vectors_have_no_picture() -> None:
    with pytest.raises(InputError, match="vector states have no picture"):
        require_pictures(label(vector_set(), "all"))
    require_pictures(label(grid_set(), "last"))
