"""A task whose states are grids, whole: a model reads the task, policies are trained, and the reward fits the grid."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3", reason="grace-irl[rl] is not installed")
pytest.importorskip("minigrid", reason="grace-irl[minigrid] is not installed")

import gymnasium
from minigrid.wrappers import FullyObsWrapper, ImgObsWrapper

import grace_irl
from grace_irl.cli import main
from grace_irl.errors import InputError
from grace_irl.tasks.task import read_task
from tests.propose.client.server import ChatServer
from tests.tasks.poles import stored

KEY = """class Reward:
    def reward_fn(self, state, action, next_state):
        here = (state[..., 0] == 5).any()
        self.key = {weight} * float(here and not (next_state[..., 0] == 5).any())
        return self.key

    def terms_fn(self, state):
        return {{"key": self.key}}
"""


@pytest.mark.slow
def test_a_model_designs_a_reward_for_grids(tmp_path: Path) -> None:
    prompts: list[str] = []

    def answer(prompt: str) -> str:
        prompts.append(prompt)
        return f"```python\n{KEY.format(weight=len(prompts))}```\n"

    folder = tmp_path / "run"
    with ChatServer(answer=answer) as server:
        run = grace_irl.fit(
            method="eureka",
            task="doorkey",
            train_steps=256,
            llm_url=server.url,
            answer_format="code",
            rounds=2,
            round_programs=1,
            out=folder,
        )
    assert run.programs == 2
    first, later = prompts
    assert read_task("doorkey").text in first
    assert "A state is a numpy array of int64 with shape (h, w, 3)." in first
    assert "action is a whole number from 0 to 6." in first
    assert "Sizes (h, w) seen so far: 5 x 5" in first
    assert "One cell of every state has a=10: the actor." in first
    assert KEY.format(weight=1).strip() in later
    assert "\nkey: " in later
    assert "success: " in later
    programs, best = stored(folder)
    assert 0 <= dict(programs)[best] <= 1
    source = run.reward_path.read_text()
    assert "\nstates:  grid (5, 5, 3)\n" in source
    reward = grace_irl.load_reward(run.reward_path)
    own, view = read_task("doorkey").make()
    seen = ImgObsWrapper(FullyObsWrapper(gymnasium.make("MiniGrid-DoorKey-5x5-v0")))
    for door in (reward.wrap(own, view=view), reward.wrap(seen)):
        with closing(door):
            door.reset(seed=0)
            assert [door.step(action)[1] for action in (2, 0)] == [0.0, 0.0]  # no key is taken
    said = r"records; expected grids, .* give it a wrapper or a view that shows them"
    bare = reward.wrap(gymnasium.make("MiniGrid-DoorKey-5x5-v0"))
    with closing(bare), pytest.raises(InputError, match=said):
        bare.reset(seed=0)

    recording, again = tmp_path / "answers.jsonl", tmp_path / "again"
    assert main(["export", str(folder), "--recording", str(recording)]) == 0
    words = ["--replay", str(recording), "--task", "doorkey", "--recorded-scores", "--out", str(again)]
    assert main(["fit", *words]) == 0
    assert stored(again) == (programs, best)
