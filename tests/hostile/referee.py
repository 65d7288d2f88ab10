"""Runs attacks and says which got out."""

from __future__ import annotations

import numpy as np

from grace_irl.demos.trajectory import Trajectory
from grace_irl.sandbox.pool import ZygotePool
from grace_irl.sandbox.protocol import DebugRequest, Limits, Mode, Outcome
from tests.hostile import files, kernel_and_network, processes, time_and_memory, values, xml
from tests.hostile.attack import Attack
from tests.hostile.ground import SECRET, Ground, zygotes

ATTACKS: list[Attack] = [
    *time_and_memory.ATTACKS,
    *files.ATTACKS,
    *processes.ATTACKS,
    *kernel_and_network.ATTACKS,
    *values.ATTACKS,
    *xml.ATTACKS,
]

IN_SETS_ATTACKS = [attack for attack in ATTACKS if "def attack():" in attack.source]
"""Those that can also be made where sets of states are compared."""

HONEST = """
class Reward:
    def reward_fn(self, state):
        return float(state.sum())
"""


WORKED = "it worked"

IN_SETS = f"""
def debug(experts, negatives):
    try:
        return "{WORKED}" if attack() else "no"
    except Exception:
        return "no"
"""
"""What lets an attack that is a function run where sets are compared."""


class Contest:
    """A pool, a ground, and trajectories that an honest program must go on seeing as they are."""

    def __init__(self, layers: tuple[str, ...] | None = None) -> None:
        self.pool = ZygotePool(1)
        self.layers = layers
        self.ground = Ground()
        random = np.random.default_rng(0)
        self.trajectories = [Trajectory(random.normal(size=(4, 3))) for _ in range(3)]
        self.handle = self.pool.put(self.trajectories)
        self.expected = [trajectory.states.sum(axis=1) for trajectory in self.trajectories]

    def attack(self, attack: Attack, mode: Mode) -> tuple[Outcome, list[str]]:
        """Run it; its outcome, and everything that it reached."""
        before = zygotes(self.pool)
        limits = Limits(wall_s=attack.wall_s, cpu_s=attack.wall_s, memory_mb=attack.memory_mb, debug_chars=2000)
        outcome = self.pool.run(
            self.ground.fill_in(attack.source, self.pool),
            self.handle,
            range(len(self.trajectories)),
            mode=mode,
            limits=limits,
            debug=[DebugRequest(0, 0)] if attack.debug else [],
            checks=False,
            layers=self.layers,
        )
        return outcome, self._reached(outcome, before)

    def attack_in_sets(self, attack: Attack) -> tuple[Outcome, list[str]]:
        """The same by a program that is asked to compare sets of states, and is told which they are."""
        before = zygotes(self.pool)
        limits = Limits(wall_s=attack.wall_s, cpu_s=attack.wall_s, memory_mb=attack.memory_mb, debug_chars=2000)
        source = self.ground.fill_in(attack.source + IN_SETS, self.pool)
        outcome = self.pool.debug_sets(source, self.handle, [(0, 0)], [(1, 0)], limits=limits, checks=False)
        return outcome, self._reached(outcome, before)

    def _reached(self, outcome: Outcome, before: list[int]) -> list[str]:
        reached = self.ground.damage(self.pool, before)
        if outcome.status == "ok" and any(rewards.any() for rewards in outcome.rewards):
            reached.append("it says that it worked")
        texts = (outcome.message, outcome.traceback, *outcome.debug)
        for word, said in ((WORKED, "it says that it worked"), (SECRET, "the secret got out")):
            if any(word in text for text in texts):
                reached.append(said)
        honest = self.pool.run(HONEST, self.handle, range(len(self.trajectories)))
        if honest.status != "ok" or not all(map(np.array_equal, honest.rewards, self.expected)):
            reached.append("another program was hurt")
        return reached

    def close(self) -> None:
        """Take it all down."""
        self.pool.close()
        self.ground.close()


def referee_all() -> tuple[int, list[str]]:
    """Every attack in each of its modes: how many ran, and the names of those that reached anything."""
    contest = Contest()
    ran, escapes = 0, []
    try:
        for attack in ATTACKS:
            for mode in attack.modes:
                _, reached = contest.attack(attack, mode)  # type: ignore[arg-type]
                ran += 1
                if reached:
                    escapes.append(f"{attack.name} ({mode}): {', '.join(reached)}")
        for attack in IN_SETS_ATTACKS:
            _, reached = contest.attack_in_sets(attack)
            ran += 1
            if reached:
                escapes.append(f"{attack.name} (sets): {', '.join(reached)}")
    finally:
        contest.close()
    return ran, escapes
