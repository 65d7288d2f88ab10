"""Files of policies: a loaded policy acts as the saved one, and a file that claims what it does not hold is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import torch
from gymnasium.spaces import MultiBinary, MultiDiscrete

from grace_irl.demos.trajectory import Metadata
from grace_irl.errors import InputError
from grace_irl.rl.environments import FunctionView
from grace_irl.rl.ppo import POLICY, train
from grace_irl.rl.trained import load_policy
from tests.rl.test_ppo import FAST, Lamp, Sign, lamp


def test_a_policy_is_a_file(tmp_path: Path) -> None:
    training = train(lamp, 600, settings=FAST, evaluations=1, episodes=1, out=tmp_path)
    loaded = load_policy(tmp_path / POLICY)
    observations = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    for deterministic in (True, False):
        torch.manual_seed(0)
        one = training.policy.act(observations, deterministic=deterministic)
        torch.manual_seed(0)
        other = loaded.act(observations, deterministic=deterministic)
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])
    assert (loaded.settings, loaded.observer) == (training.policy.settings, training.policy.observer)
    (tmp_path / "broken.pt").write_bytes(b"PK")
    for name, message in (("broken.pt", "not a saved policy"), ("none.pt", "No such file")):
        with pytest.raises(InputError, match=message):
            load_policy(tmp_path / name)


class Buttons(Lamp):
    """Several actions at once, of which none earns anything."""

    def __init__(self, actions: Any) -> None:
        super().__init__()
        self.action_space = actions

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        return super().step(2)


@pytest.mark.parametrize("actions", [MultiDiscrete([3, 2]), MultiBinary(3)])
def test_a_policy_of_several_discrete_actions_is_a_file(actions: Any, tmp_path: Path) -> None:
    training = train(lambda: Buttons(actions), 128, settings=FAST, evaluations=1, episodes=1, out=tmp_path)
    loaded = load_policy(tmp_path / POLICY)
    assert loaded.network.action_space == actions
    observations = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    one, other = (policy.act(observations, deterministic=True) for policy in (training.policy, loaded))
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(one[1], other[1])


@pytest.mark.parametrize("claimed", [{"n": [2**62] * 4}, {"n": 10**12}, {"n": 10**12, "binary": True}])
def test_a_policy_that_claims_more_actions_than_it_has_weights_is_refused(claimed: Any, tmp_path: Path) -> None:
    train(lamp, 128, settings=FAST, evaluations=1, episodes=1, out=tmp_path)
    found = torch.load(tmp_path / POLICY, weights_only=True)
    claims = json.loads(found["about"]) | {"action_space": claimed}
    torch.save({**found, "about": json.dumps(claims)}, tmp_path / POLICY)
    with pytest.raises(InputError, match=r"layers that need more than its [0-9,]+ weights"):
        load_policy(tmp_path / POLICY)


@pytest.mark.parametrize(
    "about",
    [
        {"shapes": [[1, 36, 10**6]], "images": ["seen"]},
        {"texts": ["a"] * 1000},
        {"width": 10**9},
        {"reads_instruction": 10**9},
        {"shapes": [[36, 36]]},
        {"kind": "image", "sides": [1, 10**6], "channels": 1},
        {"kind": "image", "sides": [40, 40], "channels": 10**9},
        {"kind": "image", "sides": [0, 40], "channels": 3},
    ],
)
def test_a_policy_that_claims_more_parts_than_it_has_weights_is_refused(about: dict[str, Any], tmp_path: Path) -> None:
    make = lambda: (Sign(), FunctionView(Metadata("record")))  # noqa: E731
    train(make, 128, settings=FAST, evaluations=1, episodes=1, out=tmp_path)
    found = torch.load(tmp_path / POLICY, weights_only=True)
    claims = json.loads(found["about"])
    claims["observer"] = about if "kind" in about else claims["observer"] | about
    torch.save({**found, "about": json.dumps(claims)}, tmp_path / POLICY)
    with pytest.raises(InputError, match="not a saved policy"):
        load_policy(tmp_path / POLICY)


def test_a_policy_that_claims_other_layers_says_which_claim_is_wrong(tmp_path: Path) -> None:
    train(lambda: (Sign(), FunctionView(Metadata("record"))), 128, settings=FAST, evaluations=1, out=tmp_path)
    found = torch.load(tmp_path / POLICY, weights_only=True)
    for part, change, said in (
        ("settings", {"activation": "GELU"}, "activation 'GELU', which is neither Tanh nor ReLU"),
        ("observer", {"width": 10**9}, "layers that need more than its [0-9,]+ weights"),
    ):
        claims = json.loads(found["about"])
        claims[part] |= change
        torch.save({**found, "about": json.dumps(claims)}, tmp_path / POLICY)
        with pytest.raises(InputError, match=said):
            load_policy(tmp_path / POLICY)
