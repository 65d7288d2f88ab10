"""Expansions without an environment: made-up rollouts, a scripted proposer, and learners that train nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.propose.protocol import Proposal
from grace_irl.rl.evaluation import Rollout
from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.expand.expansion import start
from grace_irl.runs.expand.learner import Learnt
from grace_irl.runs.run import Run
from tests.fakes.in_process_sandbox import InProcessSandbox

FLAGS = {
    "search.population": 6,
    "search.elite": 2,
    "search.generations": 2,
    "data.held_out": 0.0,
    "expand.rounds": 2,
    "expand.steps": 101,
    "expand.episodes": 4,
    "sandbox.workers": 1,
}


def cloud(centre: float, seed: int, length: int = 200, **parts: Any) -> Trajectory:
    """States around (centre, centre)."""
    rng = np.random.default_rng(seed)
    return Trajectory(centre + 0.3 * rng.standard_normal((length, 2)), source=f"cloud {centre} {seed}", **parts)


def demonstrations(label: str = "all", centre: float = 2.0) -> Demonstrations:
    """Experts around the centre, negatives around minus that."""
    items = [Demonstration(cloud(centre, seed, terminated=True), "expert") for seed in range(4)]
    items += [Demonstration(cloud(-centre, 10 + seed), "negative") for seed in range(4)]
    return Demonstrations(Metadata("vector", ("x", "y"), "Cloud-v0", label=label), tuple(items))  # type: ignore[arg-type]


class Thresholds:
    """Proposes "x is above T" and "x is between T and 3.5" in turn, for three T, whatever is asked."""

    async def propose(self, request: Any, parents: Any) -> Proposal:
        low = -1.0 + request.index % 3
        body = f"{low} < state[0] < 3.5" if request.index % 2 else f"state[0] > {low}"
        return Proposal(
            "class Reward:\n    def __init__(self, extra_info=None): pass\n"
            f"    def reward_fn(self, state): return float({body})\n"
        )


class FakeLearner:
    """Its policies go to given places, whatever the reward.

    Args:
        centres: of each round's rollouts.
        fail_at: which call to it (from 0) breaks off.
        error: how.
    """

    def __init__(
        self, centres: Sequence[float] = (6.0, 6.0), fail_at: int = -1, error: Any = KeyboardInterrupt
    ) -> None:
        self.centres = centres
        self.calls = 0
        self.fail_at = fail_at
        self.error = error
        self.trained: list[tuple[int, int, bool]] = []

    carries = False

    def _call(self) -> None:
        self.calls += 1
        if self.calls - 1 == self.fail_at:
            raise self.error

    def check(self, demonstrations: Demonstrations) -> None:
        assert demonstrations.metadata.kind == "vector"

    def train(self, reward: Path, steps: int, seed: int, folder: Path, initial: Path | None) -> Learnt:
        self._call()
        assert "class Reward" in reward.read_text()
        self.trained.append((steps, seed, initial is not None))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "policy").write_text(folder.parent.name)
        return Learnt(folder / "policy", steps, (0.0, 0.0))

    def play(self, policy: Path, episodes: int, seed: int) -> Sequence[Rollout]:
        self._call()
        centre = self.centres[int(policy.read_text()) - 1]
        return [
            Rollout(cloud(centre, seed % 1000 + each, truncated=True), float(each), None, {"reward_x": 1.0})
            for each in range(episodes)
        ]


def parts(label: str = "all") -> Parts:
    return Parts(demonstrations(label), Thresholds(), InProcessSandbox())


def begun(folder: Path, learner: FakeLearner, **flags: object) -> Run:
    return start(resolve(flags={**FLAGS, **flags}), folder, parts(), learner)


class Slopes:
    """Proposes "the further right, the better", as steep as is asked for."""

    async def propose(self, request: Any, parents: Any) -> Proposal:
        source = "class Reward:\n    def __init__(self, extra_info=None): pass\n"
        return Proposal(source + f"    def reward_fn(self, state): return {1 + request.index} * float(state[0])\n")


class Carrying(FakeLearner):
    """Its policies go on from others'."""

    carries = True

    def __init__(self, centres: Sequence[float]) -> None:
        super().__init__(centres)
        self.begun_with: list[str] = []

    def train(self, reward: Path, steps: int, seed: int, folder: Path, initial: Path | None) -> Learnt:
        self.begun_with.append("" if initial is None else initial.read_text())
        return super().train(reward, steps, seed, folder, initial)
