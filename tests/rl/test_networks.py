"""Outputs of the networks: places as the agent sees them, instructions that matter, statistics that stand still."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import torch
from gymnasium.spaces import Box, Discrete

from grace_irl.rl.hyperparameters import Hyperparameters
from grace_irl.rl.networks import CODES, GRIDS, GridFeatures, NormalisedVector, NormalisingPolicy
from grace_irl.rl.observers import GridObserver, VectorObserver
from grace_irl.rl.trained import build_network

SHAPE = (7, 7, 3)
BALL, AGENT = (6, 0, 0), 10


def grid(agent: tuple[int, int], facing: int, ball: tuple[int, int]) -> np.ndarray[Any, Any]:
    state = np.zeros(SHAPE, np.uint8)
    state[...] = (1, 0, 0)
    state[ball] = BALL
    state[agent] = (AGENT, 0, facing)
    return state


def features(observer: GridObserver, *seen: tuple[np.ndarray[Any, Any], str]) -> torch.Tensor:
    torch.manual_seed(0)
    network = GridFeatures(observer.space, observer.shape, observer.agent)
    with torch.no_grad():
        found: torch.Tensor = network(torch.as_tensor(np.stack([observer.observe(*each) for each in seen])).float())
    return found


def test_a_place_is_the_same_from_wherever_the_agent_looks() -> None:
    """One ahead and two to the right, facing each way; borders are out of the way of the largest value."""
    observer = GridObserver(SHAPE, AGENT)
    torch.manual_seed(0)
    network = GridFeatures(observer.space, SHAPE, AGENT)
    places = []
    for facing, ball in enumerate([(4, 5), (1, 4), (2, 1), (5, 2)]):
        codes = torch.as_tensor(grid((3, 3), facing, ball).reshape(1, -1, 3)).long()
        places.append(int(network._seen_from(codes)[0, ball[0] * 7 + ball[1]]))
    assert len(set(places)) == 1
    assert places[0] == (1 + 6) * 13 + 2 + 6


def test_without_an_agent_places_are_those_of_the_grid() -> None:
    moved = features(GridObserver(SHAPE), (grid((3, 3), 0, (4, 5)), ""), (grid((3, 3), 0, (4, 4)), ""))
    assert not torch.equal(moved[0], moved[1])


def test_cells_that_share_a_computation_get_what_they_would_alone() -> None:
    """More grids than are pooled at once, with codes beyond the largest: as if every cell had been computed."""
    rng = np.random.default_rng(0)
    observer = GridObserver(SHAPE, AGENT)
    states = rng.integers(0, 9, (2 * GRIDS + 3, *SHAPE))
    states[:, 2, 3] = (AGENT, 0, 1)
    states[0, 0, 0] = (CODES + 9, 5, 255)
    batch = np.stack([observer.observe(state, "go to the red ball"[: 5 * n]) for n, state in enumerate(states)])
    torch.manual_seed(0)
    network = GridFeatures(observer.space, SHAPE, AGENT)
    numbers = torch.as_tensor(batch).long()
    codes = numbers[:, : observer.cells].reshape(len(batch), -1, 3)
    looked_up = sum(network._codes(codes[..., i].clamp(max=CODES - 1) + i * CODES) for i in range(3))
    hidden = network._second(torch.relu(looked_up + network._places(network._seen_from(codes))))
    scale, shift = network._film(network._read(numbers[:, observer.cells :])).chunk(2, dim=1)
    cells = torch.relu(hidden * (1 + scale[:, None]) + shift[:, None])
    expected = torch.cat((cells.amax(dim=1), cells.mean(dim=1)), dim=1)
    found = network(torch.as_tensor(batch).float())
    torch.testing.assert_close(found, expected)
    weight = torch.linspace(-1, 1, found.shape[1])
    wanted = torch.autograd.grad((expected * weight).sum(), list(network.parameters()))
    torch.testing.assert_close(torch.autograd.grad((found * weight).sum(), list(network.parameters())), wanted)


def test_the_instruction_and_its_order_matter() -> None:
    state = grid((3, 3), 0, (4, 5))
    texts = ("go to the red ball", "go to the blue ball", "put the red ball next to the blue box", "")
    swapped = "put the blue ball next to the red box"
    found = features(GridObserver(SHAPE, AGENT), *((state, text) for text in (*texts, swapped)))
    for one in range(len(found)):
        for other in range(one):
            assert not torch.allclose(found[one], found[other])


def test_the_features_of_an_instruction_do_not_depend_on_the_batch() -> None:
    """Shorter instructions beside longer ones are padded, which must change nothing."""
    state = grid((3, 3), 1, (4, 5))
    observer = GridObserver(SHAPE, AGENT)
    alone = features(observer, (state, "go to the ball"))
    beside = features(observer, (state, "go to the ball"), (state, "open the door, then go to the red ball"))
    torch.testing.assert_close(alone[0], beside[0])


def test_statistics_are_those_of_all_rollouts_and_change_between_updates_only() -> None:
    network = build_network(VectorObserver(3), Box(-1, 1, (2,), np.float32), Hyperparameters("test"))
    assert isinstance(network, NormalisingPolicy)
    vector = network.features_extractor
    assert isinstance(vector, NormalisedVector)
    rng = np.random.default_rng(0)
    rollouts = rng.normal((5, -3, 100), (1, 0.1, 30), (4, 50, 8, 3))
    for number, rollout in enumerate(rollouts):
        for batch in rollout:
            network.set_training_mode(False)
            network(torch.as_tensor(batch))
            network.predict(rng.normal(size=(4, 3)))  # an evaluation in between
        seen = rollouts[:number].reshape(-1, 3)
        if number:
            np.testing.assert_allclose(vector.mean, seen.mean(0), rtol=1e-4)
            np.testing.assert_allclose(vector.variance, seen.var(0), rtol=1e-3)
        else:
            assert vector.mean.tolist() == [0, 0, 0]
        network.set_training_mode(True)
        network.evaluate_actions(torch.as_tensor(rollout[0]).float(), torch.zeros(8, 2))
    normal = vector(torch.as_tensor([[5.0, -3, 100], [1e9, -3, 100]]))
    assert normal.abs()[0].max() < 0.2
    assert normal[1, 0] == 10


def test_discrete_actions_have_a_network_too() -> None:
    network = build_network(GridObserver(SHAPE, AGENT), Discrete(7), Hyperparameters("test"))
    observation = GridObserver(SHAPE, AGENT).observe(grid((1, 1), 0, (2, 2)), "go")
    action, _ = network.predict(observation)
    assert 0 <= int(action) < 7
