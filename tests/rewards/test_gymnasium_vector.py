"""Gymnasium's vector environments: which object rewards which state, in every mode of starting again."""

from __future__ import annotations

import functools
import string
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")

import gymnasium
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers.vector import NormalizeObservation, NormalizeReward, RecordEpisodeStatistics

import grace_irl
from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import GraceError, InputError
from grace_irl.rewards.file import RewardFile
from grace_irl.rewards.gymnasium import RewardVectorEnv
from tests.rewards.recorders import EPISODE, STEPS, TRANSITION, Numbered

LENGTHS = ((3, 1, 5), (2, 2, 2), (4, 1, 1))
TRUST = pytest.mark.parametrize("trust", [True, False], ids=["trusted", "sandboxed"])
MODES = pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
ENDS = pytest.mark.parametrize("truncated", [False, True], ids=["terminated", "truncated"])


def numbered(
    mode: AutoresetMode,
    lengths: tuple[tuple[int, ...], ...] = LENGTHS,
    *,
    truncated: bool = False,
    kind: Callable[..., Any] = SyncVectorEnv,
) -> VectorEnv:
    makes = [functools.partial(Numbered, number, each, truncated=truncated) for number, each in enumerate(lengths)]
    return kind(makes, autoreset_mode=mode)


def reward_file(tmp_path: Path, source: str, *, trust: bool = True) -> RewardFile:
    path = tmp_path / "reward.py"
    path.write_text(source)
    return grace_irl.load_reward(path, trust=trust)


def wrapped(tmp_path: Path, source: str, venv: Any, *, trust: bool = True) -> RewardVectorEnv:
    found = reward_file(tmp_path, source, trust=trust).wrap_vec(venv)
    assert isinstance(found, RewardVectorEnv)
    return found


def played(venv: RewardVectorEnv, mode: AutoresetMode, steps: int) -> list[tuple[int, int, int, float, dict[str, Any]]]:
    """What was paid: environment, episode, step, reward and its components; 0 for a step that only starts again."""
    venv.reset()
    at = [(0, 0)] * venv.num_envs
    found = []
    again = np.zeros(venv.num_envs, bool)
    for _ in range(steps):
        if mode is AutoresetMode.DISABLED and again.any():
            venv.reset(options={"reset_mask": again})
            at = [
                (episode + 1, 0) if over else (episode, step) for (episode, step), over in zip(at, again, strict=True)
            ]
            again = np.zeros(venv.num_envs, bool)
        _, rewards, terminated, truncated, infos = venv.step(np.zeros(venv.num_envs, np.int64))
        assert rewards.dtype == np.float64
        for slot in range(venv.num_envs):
            episode, step = at[slot]
            if again[slot] and mode is AutoresetMode.NEXT_STEP:
                assert (rewards[slot], infos["original_reward"][slot]) == (0.0, 0.0)
                assert not infos.get("_reward_terms", np.zeros(venv.num_envs, bool))[slot]
                at[slot] = episode + 1, 0
            else:
                if again[slot]:
                    episode, step = episode + 1, 0
                at[slot] = episode, step + 1
                assert infos["original_reward"][slot] == 0.5
                terms = {key: value[slot] for key, value in infos.get("reward_terms", {}).items() if key[0] != "_"}
                found.append((slot, *at[slot], float(rewards[slot]), terms))
        again = terminated | truncated
    return found


@TRUST
@MODES
@ENDS
def test_each_episode_has_an_object_of_its_own(
    tmp_path: Path, trust: bool, mode: AutoresetMode, truncated: bool
) -> None:
    venv = wrapped(tmp_path, STEPS, numbered(mode, truncated=truncated), trust=trust)
    found = played(venv, mode, 20)
    venv.close()
    assert len(found) > 35
    for slot, episode, step, paid, terms in found:
        assert paid == 1000 * (episode % 2) + step  # the instruction of every second one has a letter
        assert terms == {"steps": step, "episode": 100 * slot + episode}
        assert step <= LENGTHS[slot][episode % 3]


@MODES
@ENDS
def test_a_state_is_rewarded_by_its_own_episode(tmp_path: Path, mode: AutoresetMode, truncated: bool) -> None:
    venv = wrapped(tmp_path, EPISODE, numbered(mode, truncated=truncated))
    found = played(venv, mode, 20)
    for slot, episode, step, paid, _ in found:
        assert paid == pytest.approx(100 * slot + episode + step / 100)
    assert {(slot, episode, step) for slot, episode, step, *_ in found} >= {(0, 0, 3), (0, 1, 1), (1, 0, 2), (2, 1, 1)}


@TRUST
@MODES
def test_transitions_never_cross_episodes(tmp_path: Path, trust: bool, mode: AutoresetMode) -> None:
    venv = wrapped(tmp_path, TRANSITION, numbered(mode), trust=trust)
    assert {paid for *_, paid, _ in played(venv, mode, 15)} == {1.0}
    venv.reset()
    assert venv.step(np.array([0, 2, 3]))[1].tolist() == [1, 21, 31]
    venv.close()


@MODES
def test_ends_and_observations_stay_as_they_are(tmp_path: Path, mode: AutoresetMode) -> None:
    steps = []
    for venv in (numbered(mode, truncated=True), wrapped(tmp_path, EPISODE, numbered(mode, truncated=True))):
        venv.reset(seed=3)
        steps.append([])
        for _ in range(3 if mode is not AutoresetMode.DISABLED else 2):
            observations, _, terminated, truncated, infos = venv.step(np.zeros(3, np.int64))
            finals = [None if final is None else final.tolist() for final in infos.get("final_obs", [])]
            steps[-1].append((observations.tolist(), terminated.tolist(), truncated.tolist(), finals))
    assert steps[0] == steps[1]


@MODES
def test_a_reset_in_mid_episode_starts_new_objects(tmp_path: Path, mode: AutoresetMode) -> None:
    venv = wrapped(tmp_path, STEPS, numbered(mode, ((2,),) * 3))
    for steps in (1, 2, 1):  # at 2 an episode is over, and would start again at the next step
        venv.reset()
        for at in range(steps):
            assert (venv.step(np.zeros(3, np.int64))[1] % 1000).tolist() == [at + 1] * 3
    venv.reset()
    venv.step(np.zeros(3, np.int64))
    venv.reset(options={"reset_mask": np.array([True, False, False])})
    assert (venv.step(np.zeros(3, np.int64))[1] % 1000).tolist() == [1, 2, 2]


def test_rewards_are_those_of_other_wrappers(tmp_path: Path) -> None:
    """Other vector wrappers see what is paid, and the form is the one that was chosen."""
    reward = reward_file(tmp_path, EPISODE)
    venv = RecordEpisodeStatistics(reward.wrap_vec(numbered(AutoresetMode.NEXT_STEP), scale="progress"))
    venv.reset()
    paid = [venv.step(np.zeros(3, np.int64))[1] for _ in range(3)]
    values = np.array([0.01, 100.01, 200.01])
    np.testing.assert_allclose(paid[0], 0.99 * values)
    np.testing.assert_allclose(paid[1], 0.99 * (values + 0.01) - values)
    assert paid[2][1] == 0.0
    NormalizeReward(reward.wrap_vec(numbered(AutoresetMode.SAME_STEP))).reset()


def test_environments_of_make_vec(tmp_path: Path) -> None:
    source = (
        "SEEN = []\n\nclass Reward:\n    def reward_fn(self, state):\n        SEEN.append(1)\n"
        "        return len(SEEN) + float(state[2])\n"
    )
    reward = reward_file(tmp_path, source, trust=True)
    for kind in ("sync", "vector_entry_point"):
        venv = reward.wrap_vec(gymnasium.make_vec("CartPole-v1", 3, vectorization_mode=kind))
        observations, _ = venv.reset(seed=0)
        episodes = [[observation] for observation in observations]
        paid: list[list[float]] = [[] for _ in range(3)]
        whole, over = [], np.zeros(3, bool)
        for _ in range(80):
            observations, rewards, terminated, truncated, _ = venv.step(np.ones(3, np.int64))
            for slot in range(3):
                if over[slot]:
                    whole.append((np.stack(episodes[slot]), paid[slot]))
                    episodes[slot], paid[slot] = [observations[slot]], []
                else:
                    episodes[slot].append(observations[slot])
                    paid[slot].append(float(rewards[slot]))
            over = terminated | truncated
        assert len(whole) > 9
        offline = reward.rewards([Trajectory(states) for states, _ in whole], workers=1)
        for (_, online), values in zip(whole, offline, strict=True):
            np.testing.assert_allclose(online, values[1:], rtol=1e-6)


def test_instructions_are_the_missions_of_the_environments(tmp_path: Path) -> None:
    pytest.importorskip("minigrid")
    from minigrid.wrappers import FullyObsWrapper, ImgObsWrapper

    source = "class Reward:\n    def __init__(self, extra_info):\n        self.n = len(extra_info)\n"
    source += "    def reward_fn(self, state):\n        return self.n\n"
    for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
        venv = gymnasium.make_vec(
            "BabyAI-GoToObj-v0",
            2,
            vectorization_mode="sync",
            vector_kwargs={"autoreset_mode": mode},
            wrappers=[FullyObsWrapper, ImgObsWrapper],
            max_steps=3,
        )
        rewarded = reward_file(tmp_path, source).wrap_vec(venv)
        rewarded.reset(seed=0)
        told = set()
        for _ in range(12):
            before = [len(said) for said in venv.unwrapped.get_attr("mission")]
            _, rewards, *_ = rewarded.step(np.zeros(2, np.int64))
            told |= {*rewards.tolist()}
            assert all(paid in (0, said) for paid, said in zip(rewards.tolist(), before, strict=True))
        assert len(told) > 2


@pytest.mark.slow
@MODES
def test_environments_in_processes_of_their_own(tmp_path: Path, mode: AutoresetMode) -> None:
    venv = wrapped(tmp_path, STEPS, numbered(mode, kind=AsyncVectorEnv))
    for _, episode, step, paid, _ in played(venv, mode, 12):
        assert paid == 1000 * (episode % 2) + step
    venv.close()


def test_what_cannot_be_wrapped(tmp_path: Path) -> None:
    reward = reward_file(tmp_path, EPISODE)
    venv = numbered(AutoresetMode.NEXT_STEP)
    with pytest.raises(InputError, match="wrap with the reward first"):
        reward.wrap_vec(NormalizeObservation(venv))
    for wrong in (Numbered(0), [Numbered(0)], None):
        with pytest.raises(InputError, match=f"wrap_vec of {type(wrong).__name__}; expected a VectorEnv of Gymnasium"):
            reward.wrap_vec(wrong)
    with pytest.raises(InputError, match="wrap of SyncVectorEnv; expected a Gymnasium environment: wrap_vec takes"):
        reward.wrap(venv)


def test_a_last_observation_that_is_missing_is_one_line(tmp_path: Path) -> None:
    venv = numbered(AutoresetMode.NEXT_STEP)
    venv.metadata = {**venv.metadata, "autoreset_mode": AutoresetMode.SAME_STEP}  # which it is not
    rewarded = wrapped(tmp_path, EPISODE, venv)
    rewarded.reset()
    rewarded.step(np.zeros(3, np.int64))
    with pytest.raises(InputError, match="an episode ended without infos\\['final_obs'\\]"):
        rewarded.step(np.zeros(3, np.int64))


SCREEN = '<hierarchy rotation="0"><node text="{}" bounds="[0,0][9,9]" class="android.widget.TextView"/></hierarchy>'
READS = 'class Reward:\n    def reward_fn(self, state):\n        return float(len(state.split("long")) - 1)\n'


class Screens(gymnasium.Env[str, Any]):
    """Shows longer and longer screens, and ends with the third."""

    observation_space = gymnasium.spaces.Text(5_000, charset=string.printable)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.step_number = 0
        return SCREEN.format("short"), {}

    def step(self, action: Any) -> Any:
        self.step_number += 1
        return SCREEN.format("long" * 9**self.step_number), 0.0, self.step_number == 3, False, {}


@pytest.mark.parametrize("trust", [True, False])
def test_texts_are_states_of_single_and_of_vector_environments(trust: bool, tmp_path: Path) -> None:
    path = tmp_path / "reward.py"
    path.write_text(READS)
    reward = grace_irl.load_reward(path, trust=trust)
    with closing(reward.wrap(Screens())) as single:
        single.reset()
        assert [single.step(0)[1] for _ in range(3)] == [9.0, 81.0, 729.0]
    for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
        with closing(reward.wrap_vec(SyncVectorEnv([Screens] * 2, autoreset_mode=mode))) as several:
            several.reset()
            paid = [several.step(np.zeros(2, np.int64))[1].tolist() for _ in range(4)]
        first = 0.0 if mode is AutoresetMode.NEXT_STEP else 9.0
        assert paid == [[9.0] * 2, [81.0] * 2, [729.0] * 2, [first] * 2]


SPACES = gymnasium.spaces
PARTS = {
    "dict": SPACES.Dict({"arm": SPACES.Box(-1, 1, (2,)), "grip": SPACES.Discrete(2)}),
    "tuple": SPACES.Tuple((SPACES.Box(-1, 1, (2,)), SPACES.Discrete(2))),
    "choices": SPACES.Tuple((SPACES.Discrete(3), SPACES.Discrete(2))),
}


class Parts(gymnasium.Env[Any, Any]):
    """Takes actions with parts."""

    observation_space = SPACES.Box(-9.0, 9.0, (1,), np.float64)

    def __init__(self, parts: str) -> None:
        self.action_space = PARTS[parts]

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return np.zeros(1), {}

    def step(self, action: Any) -> Any:
        assert action in self.action_space
        return np.ones(1), 0.0, False, False, {}


@pytest.mark.parametrize("trust", [True, False])
@pytest.mark.parametrize("parts", PARTS)
def test_actions_with_parts(parts: str, trust: bool, tmp_path: Path) -> None:
    path = tmp_path / "reward.py"
    path.write_text("class Reward:\n    def reward_fn(self, state):\n        return float(state[0])\n")
    venv = SyncVectorEnv([lambda: Parts(parts)] * 3)
    reward = grace_irl.load_reward(path, trust=trust)
    with closing(reward.wrap(Parts(parts))) as single, closing(reward.wrap_vec(venv)) as several:
        single.reset()
        assert single.step(single.action_space.sample())[1] == 1.0
        several.reset()
        assert several.step(several.action_space.sample())[1].tolist() == [1.0] * 3


@pytest.mark.parametrize("trust", [True, False])
def test_only_numbers_are_actions_of_a_program(trust: bool, tmp_path: Path) -> None:
    path = tmp_path / "reward.py"
    path.write_text(
        "class Reward:\n    def reward_fn(self, state, action, next_state):\n        return float(action[0])\n"
    )
    reward = grace_irl.load_reward(path, trust=trust)
    choices = SyncVectorEnv([lambda: Parts("choices")] * 3)
    with closing(reward.wrap_vec(choices)) as several:
        several.reset()
        assert several.step((np.array([2, 1, 0]), np.array([0, 1, 1])))[1].tolist() == [2.0, 1.0, 0.0]
    for made in (reward.wrap(Parts("dict")), reward.wrap_vec(SyncVectorEnv([lambda: Parts("dict")] * 3))):
        with closing(made):
            made.reset()
            with pytest.raises(GraceError, match="number"):
                made.step(made.action_space.sample())


def test_an_environment_that_resets_itself_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "reward.py"
    path.write_text(READS)
    with pytest.raises(InputError, match="Autoreset under the recovered reward"):
        grace_irl.load_reward(path, trust=True).wrap(gymnasium.wrappers.Autoreset(Screens()))
