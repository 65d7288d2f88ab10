"""One environment with a recovered reward; the same numbers wherever the program runs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")

import gymnasium

import grace_irl
from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import GraceError, InputError
from grace_irl.programs.export import export_source
from grace_irl.rewards.gymnasium import RewardEnv, RewardVectorEnv
from grace_irl.rewards.runner import InProcessRunner
from grace_irl.rewards.view import states_of
from grace_irl.rl.environments import make
from grace_irl.states import as_state
from tests.rewards.recorders import EPISODE, RANDOM, STEPS, Numbered

GRID = """
import random
import numpy as np

class Reward:
    def __init__(self, extra_info=None):
        self.words = (extra_info or "").split()
        self.seen = set()

    def reward_fn(self, state):
        self.seen.add(state.tobytes())
        noise = random.random() * 1e-3
        return len(self.words) + len(self.seen) / 7 + float(np.std(state[:, :, 0])) + noise
"""
VECTOR = """
import numpy as np

class Reward:
    def __init__(self, extra_info=None):
        self.before = None

    def reward_fn(self, state, action, next_state):
        return float(np.tanh(next_state).sum() - np.square(action).sum() + state[0] / 3)
"""


def reward_file(tmp_path: Path, source: str) -> Path:
    path = tmp_path / "reward.py"
    path.write_text(source)
    return path


def played(environment: Any, view: Any, episodes: int, steps: int) -> Iterator[tuple[Trajectory, list[float]]]:
    """Random episodes of a wrapped environment: what was seen, and what was paid."""
    rng = np.random.default_rng(5)
    for seed in range(episodes):
        observation, _ = environment.reset(seed=seed)
        states, actions, rewards = [view.state(environment, observation)], [], []
        for _ in range(steps):
            space = environment.action_space
            action = (
                int(rng.integers(space.n))
                if hasattr(space, "n")
                else rng.uniform(-1, 1, space.shape).astype(space.dtype)
            )
            observation, reward, terminated, truncated, info = environment.step(action)
            assert isinstance(info["original_reward"], float)
            states.append(view.state(environment, observation))
            actions.append(action)
            rewards.append(reward)
            if terminated or truncated:
                break
        yield Trajectory(np.stack(states), np.stack(actions), view.instruction(environment)), rewards
    environment.close()


@pytest.mark.parametrize(
    ("environment_id", "source", "steps"), [("BabyAI-GoToLocal-v0", GRID, 64), ("Hopper-v5", VECTOR, 200)]
)
def test_rewards_are_the_same_trusted_sandboxed_and_offline(
    tmp_path: Path, environment_id: str, source: str, steps: int
) -> None:
    pytest.importorskip("minigrid" if "BabyAI" in environment_id else "mujoco")
    path = reward_file(tmp_path, source)
    paid: list[list[list[float]]] = []
    for trust in (True, False):
        environment, view = make(environment_id)
        reward = grace_irl.load_reward(path, trust=trust)
        rollouts = list(played(reward.wrap(environment, view=view), view, 4, steps))
        offline = reward.rewards([trajectory for trajectory, _ in rollouts])
        for (_, online), values in zip(rollouts, offline, strict=True):
            np.testing.assert_array_equal(online, values[1:])
        paid.append([online for _, online in rollouts])
    assert paid[0] == paid[1]


def test_the_instruction_comes_from_the_view_or_the_reset_or_the_environment(tmp_path: Path) -> None:
    pytest.importorskip("minigrid")
    import gymnasium
    from minigrid.wrappers import FullyObsWrapper, ImgObsWrapper

    source = "class Reward:\n    def __init__(self, extra_info):\n        self.n = len(extra_info)\n"
    source += "    def reward_fn(self, state):\n        return self.n\n"
    reward = grace_irl.load_reward(reward_file(tmp_path, source), trust=True)
    grid, view = make("BabyAI-GoToObj-v0")
    bare = ImgObsWrapper(FullyObsWrapper(gymnasium.make("BabyAI-GoToObj-v0", disable_env_checker=True)))
    for environment in (reward.wrap(grid, view=view), reward.wrap(bare)):
        for seed in range(5):
            environment.reset(seed=seed)
            assert environment.step(0)[1] == len(environment.unwrapped.mission)  # type: ignore[attr-defined]
    numbered = reward.wrap(Numbered(0))
    for number in range(3):
        numbered.reset()
        assert numbered.step(0)[1] == number % 2


def test_an_episode_that_is_cut_off_leaves_nothing(tmp_path: Path) -> None:
    environment = grace_irl.load_reward(reward_file(tmp_path, STEPS), trust=True).wrap(Numbered(0, (50,)))
    for steps in (1, 7, 2):
        environment.reset()
        for at in range(steps):
            _, reward, _, _, info = environment.step(0)
            assert reward % 1000 == at + 1 == info["reward_terms"]["steps"]


def test_a_program_that_draws_leaves_the_process_its_own_numbers(tmp_path: Path) -> None:
    environment = grace_irl.load_reward(reward_file(tmp_path, RANDOM), trust=True).wrap(Numbered(0, (50,)))
    random.seed(7)
    np.random.seed(7)
    first = []
    for _ in range(2):
        environment.reset()
        first.append([environment.step(0)[1] for _ in range(5)])
    after = random.random(), np.random.uniform()
    random.seed(7)
    np.random.seed(7)
    assert after == (random.random(), np.random.uniform())
    assert first[0] == first[1]  # every episode draws from the start
    assert len(set(first[0])) == 5


def test_terms_are_asked_for_or_not(tmp_path: Path) -> None:
    reward = grace_irl.load_reward(reward_file(tmp_path, STEPS), trust=True)
    for terms in (True, False):
        environment = reward.wrap(Numbered(0), terms=terms)
        environment.reset()
        assert ("reward_terms" in environment.step(0)[4]) == terms
    without = grace_irl.load_reward(reward_file(tmp_path, EPISODE), trust=True).wrap(Numbered(0))
    without.reset()
    assert "reward_terms" not in without.step(0)[4]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return float('nan')", "nonfinite: reward nan"),
        ("return 'x'", "reward_fn returned str"),
        ("raise ValueError('no')", "runtime: ValueError: no"),
        ("return 1e10", "at most 1e\\+09"),
    ],
)
def test_a_trusted_program_that_fails_is_one_line(tmp_path: Path, body: str, message: str) -> None:
    source = f"class Reward:\n    def reward_fn(self, state):\n        if state[1] == 0: return 0\n        {body}\n"
    environment = grace_irl.load_reward(reward_file(tmp_path, source), trust=True).wrap(Numbered(0))
    environment.reset()
    with pytest.raises(GraceError, match=f"reward.py: .*{message}"):
        environment.step(0)


@pytest.mark.parametrize("trust", [True, False], ids=["trusted", "sandboxed"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("float('nan')", "nonfinite: terms_fn: 'speed' is nan; expected a finite number of at most 1e\\+09 in size"),
        ("float('inf')", "nonfinite: terms_fn: 'speed' is inf; expected a finite number"),
        ("-1e300", "nonfinite: terms_fn: 'speed' is -1e\\+300; expected a finite number"),
        ("np.float32('-inf')", "nonfinite: terms_fn: 'speed' is -inf; expected a finite number"),
        ("10 ** 400", "nonfinite: terms_fn: 'speed' is inf; expected a finite number"),
        ("'x'", "terms_fn: 'speed' is str; expected one number"),
    ],
)
def test_components_are_finite_numbers_as_rewards_are(tmp_path: Path, value: str, message: str, trust: bool) -> None:
    source = (
        "import numpy as np\nclass Reward:\n    def reward_fn(self, state): return 0.0\n"
        f"    def terms_fn(self, state): return {{'calm': 1.0, 'speed': {value}}}\n"
    )
    environment = grace_irl.load_reward(reward_file(tmp_path, source), trust=trust).wrap(Numbered(0))
    environment.reset()
    with pytest.raises(GraceError, match=f"^[^\n]*reward.py: [^\n]*{message}[^\n]*$"):
        environment.step(0)
    without = grace_irl.load_reward(reward_file(tmp_path, source), trust=trust).wrap(Numbered(0), terms=False)
    without.reset()
    assert without.step(0)[1] == 0.0


def test_a_source_that_breaks_the_contract_is_bad_input() -> None:
    for source in ("class Other: pass", "class Reward:\n    pass", "def :"):
        with pytest.raises(InputError, match=r"docs/contract\.md"):
            InProcessRunner(source, "reward.py")


def test_observations_that_hold_no_state_are_records() -> None:
    class Texts(Numbered):
        def _state(self) -> Any:
            return {"image": np.full(3, 2.0), "mission": "go"}

    source = "class Reward:\n    def reward_fn(self, state): return state['image'].sum() + len(state['mission'])\n"
    environment = RewardEnv(Texts(0), InProcessRunner(source, "reward.py"))
    environment.reset()
    assert environment.step(0)[1] == 8.0


def test_observations_of_arrays_of_different_shapes_are_refused() -> None:
    class Uneven(Numbered):
        def _state(self) -> Any:
            return np.zeros(2), np.zeros(3)

    environment = RewardEnv(Uneven(0), InProcessRunner(VECTOR, "reward.py"))
    with pytest.raises(InputError, match="an observation that is tuple of arrays of different shapes; expected"):
        environment.reset()
    for state in ((np.zeros(2), np.zeros(3)), [[1], [1, 2]]):
        with pytest.raises(InputError, match=rf"a state that is {type(state).__name__}; expected numbers"):
            as_state(state)
    for state in (3, np.int64(3), np.array(3)):  # of a discrete space
        with pytest.raises(InputError, match="a state that is one number; expected numbers"):
            as_state(state)
    with pytest.raises(InputError, match="a state that is bool; expected numbers"):
        as_state(True)


def test_parts_of_a_tuple_are_those_of_one_observation_in_vector_environments() -> None:
    """Blackjack's observations are tuples of three numbers, which Gymnasium batches part by part."""
    program = "class Reward:\n    def reward_fn(self, state):\n        return float(state @ [1e4, 1e2, 1])\n"
    several = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make("Blackjack-v1")] * 3)
    environment = RewardVectorEnv(several, InProcessRunner(program, "reward.py"))
    environment.reset(seed=0)
    (own, dealer, ace), rewards, *_ = environment.step(np.zeros(3, int))
    np.testing.assert_array_equal(rewards, 1e4 * own + 1e2 * dealer + ace)
    np.testing.assert_array_equal(states_of({"state": (own, dealer, ace)}, 3), np.stack([own, dealer, ace], axis=1))


def test_observations_that_are_changed_underneath_are_refused(tmp_path: Path) -> None:
    reward = grace_irl.load_reward(reward_file(tmp_path, VECTOR))
    normal = gymnasium.wrappers.NormalizeObservation(gymnasium.make("CartPole-v1"))
    box = gymnasium.wrappers.TransformObservation(
        gymnasium.make("CartPole-v1"), lambda seen: seen, gymnasium.spaces.Box(-9, 9, (4,))
    )
    rescaled = gymnasium.wrappers.RescaleObservation(box, 0, 1)
    for environment in (normal, gymnasium.wrappers.TimeLimit(normal, 10), rescaled):
        with pytest.raises(InputError, match="wrap with the reward first, then change them"):
            reward.wrap(environment)
    inner = gymnasium.vector.SyncVectorEnv([lambda: normal])
    with pytest.raises(InputError, match="wrap with the reward first, then change them"):
        reward.wrap_vec(inner)
    sb3 = pytest.importorskip("stable_baselines3.common.vec_env")
    with pytest.raises(InputError, match="wrap with the reward first, then change them"):
        reward.wrap_vec(sb3.DummyVecEnv([lambda: rescaled]))


@pytest.mark.parametrize("wrapper", ["Grayscale", "Resize", "Reshape"])
def test_observations_of_another_shape_than_the_demonstrations_are_refused(wrapper: str, tmp_path: Path) -> None:
    class Pictures(gymnasium.Env[Any, Any]):
        observation_space = gymnasium.spaces.Box(0, 255, (8, 6, 3), np.uint8)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, **_: Any) -> Any:
            return np.full((8, 6, 3), 255, np.uint8), {}

        def step(self, action: Any) -> Any:
            return np.full((8, 6, 3), 255, np.uint8), 0.0, False, False, {}

    pytest.importorskip("cv2") if wrapper == "Resize" else None
    arguments, shape = {
        "Grayscale": ({"keep_dim": True}, (8, 6, 1)),
        "Resize": ({"shape": (4, 4)}, (4, 4, 3)),
        "Reshape": ({"shape": (6, 8, 3)}, (6, 8, 3)),
    }[wrapper]
    changed = getattr(gymnasium.wrappers, f"{wrapper}Observation")(Pictures(), **arguments)
    source = "class Reward:\n    def reward_fn(self, state): return float(state.shape[0])\n"
    path = tmp_path / "reward.py"
    several = gymnasium.vector.SyncVectorEnv([lambda: changed])
    for facts in ((), (("states", "image"),), (("states", "image (8, 6, 3)"),)):
        path.write_text(export_source(source, title="One.", facts=facts))
        reward = grace_irl.load_reward(path)
        for wrap, environment in ((reward.wrap, changed), (reward.wrap_vec, several)):
            with pytest.raises(InputError, match=f"{wrapper}Observation under the recovered reward; expected"):
                wrap(environment)
        reward.wrap(Pictures()).close()
    path.write_text(path.read_text().replace("(8, 6, 3)", str(shape)))  # the demonstrations were changed so, too
    environment = grace_irl.load_reward(path, trust=True).wrap(changed)
    environment.reset()
    assert environment.step(0)[1] == shape[0]


def test_a_function_is_no_view(tmp_path: Path) -> None:
    reward = grace_irl.load_reward(reward_file(tmp_path, VECTOR))
    with pytest.raises(InputError, match="view is a function; expected a StateView"):
        reward.wrap(gymnasium.make("CartPole-v1"), view=lambda seen: seen[:3])  # type: ignore[arg-type]
