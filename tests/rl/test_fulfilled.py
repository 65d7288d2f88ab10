"""Fulfilment of other instructions by stored episodes, against the real environments and their verifiers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("minigrid")

from minigrid.core.actions import Actions
from minigrid.core.world_object import Ball, Key

from grace_irl.demos.scramble import ScrambleMap
from grace_irl.demos.trajectory import Trajectory
from grace_irl.rl.collect import collect
from grace_irl.rl.environments import make, quiet
from grace_irl.rl.fulfilled import Fulfilment, does_alike, fulfilled, fulfilments
from grace_irl.rl.instructions import about_other_things, parse, things_in
from grace_irl.rl.replay import ReplayedLevel, room_side
from grace_irl.rl.views import encode_grid
from tests.rl.babyai import LEVELS, OWN, id_of

SHIPPED = Path(__file__).parents[2] / "datasets" / "babyai-go-to-obj" / "expert.parquet"
EPISODES = 8
WIDE = ("BossLevel", "KeyCorridor", "PutNextS4N1", "GoToSeqS5R2", "MoveTwoAcrossS5N2", "SynthLoc")
"""Levels with long sequences, locations, locked doors and missing walls."""
NEVER = Fulfilment(None)


@cache
def experts(level: str) -> tuple[Trajectory, ...]:
    return tuple(item.trajectory for item in collect(id_of(level), "bot", EPISODES, "expert", seed=11))


def seed_of(trajectory: Trajectory) -> int:
    return int(trajectory.source.rpartition(" seed ")[2])


def board_of(level: str, seed: int) -> Any:
    with quiet():
        environment, _ = make(id_of(level))
        environment.reset(seed=seed)
    return environment.unwrapped


def verified(level: str, trajectory: Trajectory, task_of: Any) -> int | None:
    """The step at which the real environment, reset by the same seed, sees that a task is done."""
    board = board_of(level, seed_of(trajectory))
    task = task_of(board)
    task.reset_verifier(board)
    for number, action in enumerate(trajectory.actions, 1):  # type: ignore[arg-type]
        board.step(action)
        if action == Actions.drop:
            board.update_objs_poss(task)
        status = task.verify(action)
        if status != "continue":
            return number if status == "success" else None
    return None


@pytest.mark.parametrize("level", [*LEVELS, *WIDE])
def test_experts_fulfil_their_own_instruction_at_their_last_state(level: str) -> None:
    for trajectory in experts(level):
        assert fulfilments(trajectory, [trajectory.extra_info]) == [Fulfilment(trajectory.num_steps)]
        assert fulfilled(trajectory, trajectory.extra_info, trajectory.num_steps) is True
        assert fulfilled(trajectory, trajectory.extra_info, trajectory.num_steps - 1) is False


@pytest.mark.parametrize("level", [*LEVELS, *WIDE])
def test_other_instructions_are_judged_as_by_the_real_verifier(level: str) -> None:
    """The tasks come from other episodes' environments, and in our own levels from the text."""
    for trajectory in experts(level)[:4]:
        found = fulfilments(trajectory, [other.extra_info for other in experts(level)])
        for other, result in zip(experts(level), found, strict=True):

            def task_of(board: Any, other: Trajectory = other) -> Any:
                return parse(other.extra_info, board) if level in OWN else board_of(level, seed_of(other)).instrs

            if result is not None:
                assert result.at == verified(level, trajectory, task_of), other.extra_info


def test_places_of_things_are_followed_through_drops_and_opened_boxes() -> None:
    """Most actions of these episodes change the world, or are a drop that changes nothing."""
    rng, changes = np.random.default_rng(5), 0
    for seed in range(5):
        board = board_of("GoToLocal", seed)
        states, actions, before = [encode_grid(board)], [], list(board.grid.grid)
        for action in rng.choice(7, 150, p=[0.15, 0.15, 0.2, 0.15, 0.2, 0.15, 0]):
            board.step(action)
            states.append(encode_grid(board))
            actions.append(action)
            changes += action == Actions.drop and before != board.grid.grid
            before = list(board.grid.grid)
        played = Trajectory(np.stack(states), np.array(actions), "", kind="grid", source=f"GoToLocal seed {seed}")
        pairs = [(one, other) for one in ("ball", "box", "key") for other in ("ball", "box", "key") if one != other]
        texts = [text for one, other in pairs for text in (f"put the {one} next to the {other}",
                 f"go to the {one}, then go to the {other}")]  # fmt: skip
        for text, result in zip(texts, fulfilments(played, texts), strict=True):
            if result is not None:
                assert result.at == verified("GoToLocal", played, lambda board, text=text: parse(text, board)), text
    assert changes > 10


@pytest.mark.parametrize("level", LEVELS)
def test_instructions_of_other_levels_are_seldom_doubtful(level: str) -> None:
    """Their objects are mostly absent; an instruction with absent objects is not fulfilled."""
    texts = [trajectory.extra_info for other in LEVELS for trajectory in experts(other)[:2]]
    found = fulfilments(experts(level)[0], texts)
    assert sum(result is None for result in found) < len(texts) / 4
    assert NEVER in found


def test_many_other_instructions_are_fulfilled_and_not() -> None:
    """Neither verdict is rare in a crowded level."""
    results = [
        result
        for trajectory in experts("Open")
        for result in fulfilments(trajectory, [other.extra_info for other in experts("Open")])
    ]
    assert sum(result == NEVER for result in results) > 5
    assert sum(result is not None and result != NEVER for result in results) > EPISODES


def test_absent_things() -> None:
    (trajectory, *_) = experts("GoToObj")
    color, kind = trajectory.extra_info.split()[-2:]
    other = "grey" if color != "grey" else "red"
    texts = [
        *(f"go to the {other} {kind}", f"pick up a {other} {kind}", f"open the {other} door"),
        f"put the {color} {kind} next to the {other} ball",
        *(f"go to the {color} {kind}, then open the door", f"go to a door after you go to the {color} {kind}"),
        f"go to the {color} {kind} and pick up the {other} {kind}",
        "open the door matching the key" if kind != "key" else "open the red door",
        "put the red ball in the right room and put the blue ball in the left room",
        f"put the {color} {kind} between the {other} ball and the {other} box",
    ]
    assert fulfilments(trajectory, texts) == [NEVER] * len(texts)


@pytest.mark.parametrize(
    "text", ["go to the {}", "go to a {}", "go to the {} and go to a {}", "go to a {}, then go to the {}"]
)
def test_articles_and_sequences(text: str) -> None:
    (trajectory, *_) = experts("GoToObj")
    what = " ".join(trajectory.extra_info.split()[-2:])
    assert fulfilments(trajectory, [text.format(what, what)]) == [Fulfilment(trajectory.num_steps)]


@pytest.mark.parametrize(
    "text",
    [
        *("", "go", "go to", "go to red ball", "go to the red balls", "Go to the red ball", "go to the crimson ball"),
        *(
            "open the red ball",
            "pick up the red door",
            "put the red door next to the ball",
            "go to the ball on your top",
        ),
        *(
            "go to the ball, then",
            "go to the ball, then go to the key, then go to the box",
            "get to the green goal square",
        ),
        *("go to the ball and go to the key and go to the box", "go to the red ball\n", "go to the  ball", "\0"),
        *("open the door matching the ball", "put the ball between the key and the box"),
    ],
)
def test_texts_outside_the_grammar_are_doubtful(text: str) -> None:
    assert fulfilled(experts("GoToObj")[0], text, 1) is None


def test_a_text_is_the_surface_of_what_is_parsed() -> None:
    texts = set()
    for seed in range(40):
        board = board_of("BossLevel", seed)
        task = parse(board.mission, board)
        assert task is not None
        assert task.surface(board) == board.mission
        texts.add(board.mission)
    for words in (" and ", ", then ", " after you ", " next to ", " on your left", " behind you", " in front of you"):
        assert any(words in text for text in texts)


def changed(**values: Any) -> Trajectory:
    return replace(experts("Pickup")[0], **values)


def doubtful_cases() -> Iterator[tuple[str, Any]]:
    yield "no actions", lambda: changed(actions=None)
    yield "actions of no environment", lambda: changed(actions=experts("Pickup")[0].actions + 7)
    yield "actions between", lambda: changed(actions=experts("Pickup")[0].actions + 0.5)
    yield "two numbers an action", lambda: changed(actions=np.stack([experts("Pickup")[0].actions] * 2, 1))
    yield "other actions", lambda: changed(actions=experts("Pickup")[0].actions * 0)
    yield "partial view", lambda: changed(states=experts("Pickup")[0].states[:, :7, :7])
    yield "vectors", lambda: changed(states=experts("Pickup")[0].states[:, 0, :, 0].astype(float), kind="vector")
    yield "turned", lambda: changed(states=experts("Pickup")[0].states.swapaxes(1, 2))
    yield (
        "a state is missing",
        lambda: changed(
            states=np.delete(experts("Pickup")[0].states, 3, 0),
            actions=np.delete(experts("Pickup")[0].actions, 3),
            rewards=None,
        ),
    )
    yield "two agents", lambda: changed(states=twice_the_agent())


def twice_the_agent() -> Any:
    states = experts("Pickup")[0].states.copy()
    states[:, 1, 1] = (10, 0, 0)
    return states


@pytest.mark.parametrize("case", [pytest.param(make_it, id=name) for name, make_it in doubtful_cases()])
def test_what_cannot_be_replayed_is_doubtful(case: Any) -> None:
    own = experts("Pickup")[0].extra_info
    assert fulfilments(case(), [own, "go to the red ball"]) == [None, None]


@pytest.mark.parametrize("level", ["GoToObj", "Pickup", "OpenTwoDoors", "SortColors"])
@pytest.mark.parametrize("seed", range(5))
def test_scrambled_episodes_are_doubtful(level: str, seed: int) -> None:
    item = collect(id_of(level), "bot", 1, "expert", seed=seed)[0]
    mixed = ScrambleMap.draw(seed, item.trajectory).apply(item).trajectory
    texts = [mixed.extra_info, item.trajectory.extra_info]
    assert fulfilments(mixed, texts) == [None, None]


@pytest.mark.slow
def test_a_hidden_load_and_hidden_contents_are_doubtful() -> None:
    """The agent begins with an object, and a box holds the key."""
    carrying = collect(id_of("PutNextS5N2Carrying"), "random", 3, "negative", seed=1, max_steps=60)
    assert [fulfilled(item.trajectory, item.trajectory.extra_info, 60) for item in carrying] == [None] * 3
    boxes = collect(id_of("KeyInBox"), "random", 10, "negative", seed=1)
    found = [fulfilments(item.trajectory, [item.trajectory.extra_info])[0] for item in boxes]
    assert None in found
    assert {result.at for result in found if result is not None} <= {None}


def alone(board: Any) -> Trajectory:
    """An episode of one state: a level as it stands."""
    return Trajectory(encode_grid(board)[None], np.zeros(0, np.int64), kind="grid")


def test_a_world_in_which_own_levels_texts_have_no_clear_meaning() -> None:
    between = "put the red ball between the blue key and the green key"
    sort = "put the red ball in the right room and put the blue ball in the left room"
    match = "open the door matching the key"
    board = board_of("GoToRedBallNoDists", 0)
    assert fulfilments(alone(board), [between, sort, match]) == [NEVER, NEVER, NEVER]
    for thing in (Key("blue"), Key("green"), Ball("blue")):
        board.place_obj(thing)
    assert fulfilments(alone(board), [sort, match]) == [None, None]  # one room, keys of two colours
    board.place_obj(Ball("red"))
    assert fulfilments(alone(board), [between]) == [None]  # two red balls


def test_what_is_done_from_the_start_is_doubtful() -> None:
    board = board_of("OpenRedDoor", 0)
    (door,) = (cell for cell in board.grid.grid if cell is not None and cell.type == "door")
    assert fulfilments(alone(board), ["open the red door"]) == [NEVER]
    door.is_open = True
    assert fulfilments(alone(board), ["open the red door"]) == [None]
    board = board_of("GoToRedBallNoDists", 0)
    for cell in [place for place, thing in enumerate(board.grid.grid) if thing is not None and thing.type == "ball"]:
        board.grid.grid[cell] = None
    board.agent_pos = (1, 1)
    text = "put the red ball next to the blue key"
    board.put_obj(Ball("red"), 4, 4)
    board.put_obj(Key("blue"), 4, 6)
    assert fulfilments(alone(board), [text]) == [NEVER]
    board.grid.set(4, 6, None)
    board.put_obj(Key("blue"), 4, 5)
    assert fulfilments(alone(board), [text]) == [None]
    board.put_obj(Key("green"), 4, 3)
    assert fulfilments(alone(board), ["put the red ball between the blue key and the green key"]) == [None]


def test_an_object_that_the_agent_faces_from_the_start() -> None:
    (trajectory, *_) = experts("GoToObj")
    last = Trajectory(trajectory.states[-1:], np.zeros(0, np.int64), kind="grid")
    assert fulfilments(last, [trajectory.extra_info]) == [Fulfilment(0)]


def test_nothing_but_states_and_actions_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """No environment is made, and neither instruction, rewards nor origin change the result."""
    episodes = experts("OpenTwoDoors")

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("an environment was made by its name")

    monkeypatch.setattr("gymnasium.make", refuse)
    monkeypatch.setattr("grace_irl.rl.environments.make", refuse)
    for trajectory in episodes:
        bare = Trajectory(trajectory.states, trajectory.actions, "file.py:function", source="BabyAI-GoToObj-v0 seed 3")
        text = trajectory.extra_info
        assert fulfilments(bare, [text, text]) == [Fulfilment(trajectory.num_steps)] * 2


def test_without_minigrid_everything_is_doubtful() -> None:
    script = (
        "import sys; sys.modules['minigrid'] = None\n"
        "from grace_irl.demos import load\n"
        "from grace_irl.rl.fulfilled import fulfilments\n"
        f"trajectory = load([{str(SHIPPED)!r}])[0].trajectory\n"
        "print(fulfilments(trajectory, [trajectory.extra_info]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[None]"


@pytest.mark.parametrize("level", [*LEVELS, *WIDE])
def test_rooms_are_found_in_the_grid(level: str) -> None:
    board = board_of(level, 3)
    copy = ReplayedLevel(encode_grid(board))
    assert (copy.room_size, copy.num_rows, copy.num_cols) == (board.room_size, board.num_rows, board.num_cols)
    assert np.array_equal(encode_grid(copy), encode_grid(board))


@pytest.mark.parametrize(("shape", "side"), [((5, 5), 5), ((9, 5), 5), ((7, 7), 7), ((8, 5), None), ((2, 2), None)])
def test_sides_of_rooms(shape: tuple[int, int], side: int | None) -> None:
    types = np.ones(shape, np.uint8)
    assert room_side(types) is None  # no border
    types[[0, -1]] = 2
    types[:, [0, -1]] = 2
    assert room_side(types) == side
    if min(shape) > 2:
        types[2, 1] = 2  # a wall inside
        assert room_side(types) is None


@settings(max_examples=300)
@given(st.data())
def test_damaged_episodes_give_an_answer(data: Any) -> None:
    trajectory = data.draw(st.sampled_from(experts("OpenTwoDoors") + experts("PlaceBetween") + experts("SortColors")))
    states, actions = trajectory.states.astype(np.int64), trajectory.actions.copy()
    for _ in range(data.draw(st.integers(0, 4))):
        place = [data.draw(st.integers(0, length - 1)) for length in states.shape[1:]]
        value = data.draw(st.sampled_from([-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 255, 256, 10**12]))
        states[:, *place] = value
    if data.draw(st.booleans()):
        actions[data.draw(st.integers(0, len(actions) - 1))] = data.draw(st.integers(-1, 7))
    results = fulfilments(
        replace(trajectory, states=states, actions=actions), [trajectory.extra_info, "go to the ball"]
    )
    assert all(result is None or result.at is None or result.at <= trajectory.num_steps for result in results)


def test_a_near_miss_does_with_another_thing_what_is_asked() -> None:
    """The level asks for a red or a blue ball, and near misses go to other things."""
    level = "BabyAI-GoToRedBlueBall-v0"
    asked = ["go to the red ball", "go to the blue ball"]
    for item in collect(level, "bot", 3, "negative", seed=2, near_miss=True):
        assert not any(each and each.at is not None for each in fulfilments(item.trajectory, asked))
        assert does_alike(item.trajectory, asked)
        assert not does_alike(item.trajectory, ["pick up the red ball"])
        assert not does_alike(replace(item.trajectory, actions=None), asked)


def test_an_instruction_is_changed_to_things_that_are_there() -> None:
    """Only they can be in what the episode does: a thing that no state shows fulfils nothing."""
    state = np.zeros((3, 3, 3), np.uint8)
    state[1, 1], state[1, 2], state[2, 2] = (6, 0, 0), (7, 4, 0), (99, 98, 0)  # a red ball, a yellow box, unknown codes
    things = things_in(state)
    assert things == ["the red ball", "the yellow box"]
    assert about_other_things("put the red ball next to a key on your left", things) == [
        "put the red ball next to a key on your left",
        "put the yellow box next to a key on your left",
        "put the red ball next to the red ball",
        "put the red ball next to the yellow box",
    ]
