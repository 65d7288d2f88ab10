"""Collection of demonstrations from the episodes of a policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from grace_irl.demos.kind_rule import choose_observed, of_kind
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Role, Trajectory
from grace_irl.errors import GraceError, InputError
from grace_irl.rewards.view import StateView, instruction_of
from grace_irl.rl.environments import make, quiet, success_in
from grace_irl.rl.near_miss import NO_OTHER_TASK, OUT_OF_TIME, RIGHT_TASK_DONE, NearMissPolicy
from grace_irl.rl.policies import ActingPolicy, PolicyDoneError, PolicyFailureError, make_policy

PATIENCE = 10
"""Collection fails if more than PATIENCE * (1 + number of kept episodes) episodes failed or were left out. The policy
is then not good enough for this environment. Episodes in worlds without a possible near miss (`grace_irl.rl.near_miss`)
do not count towards this limit, but towards `WORLDS`."""

WORLDS = 100
"""Collection of near misses (`grace_irl.rl.near_miss`) fails if more than WORLDS * (1 + number of kept episodes) worlds
allow no other task than the instructed task. Such a world is usually recognised before the first step, so WORLDS is
higher than `PATIENCE`."""


@dataclass
class EpisodeTally:
    """Numbers of episodes by outcome.

    Attributes:
        kept: episodes in the resulting set of demonstrations.
        dropped_successes: negative episodes left out because they reached the goal.
        failures: numbers of episodes left out for other reasons, by reason. For example, an expert missed the goal, or
            an attempt at a near miss (`grace_irl.rl.near_miss`) failed.
    """

    kept: int = 0
    dropped_successes: int = 0
    failures: Counter[str] = field(default_factory=Counter)

    def lines(self) -> list[str]:
        """Notes on the episodes that are not in the set; [] if there are none."""
        lines = []
        if self.dropped_successes:
            lines.append(
                f"{self.dropped_successes} episodes reached the goal and were left out of the negatives "
                "(--keep-successes keeps them)"
            )
        if self.failures:
            reasons = ", ".join(f"{reason}: {count}" for reason, count in self.failures.most_common())
            lines.append(f"{self.failures.total()} episodes failed and were skipped ({reasons})")
        return lines


def collect(
    env_id: str,
    policy: str,
    episodes: int,
    role: Role,
    seed: int = 0,
    *,
    max_steps: int | None = None,
    keep_successes: bool = False,
    near_miss: bool | str = False,
    task: str | None = None,
    kind: str = "",
    alarm_s: float = 5.0,
    tally: EpisodeTally | None = None,
    progress: Callable[[int], None] | None = None,
) -> Demonstrations:
    """Play episodes until `episodes` of them are kept.

    If the environment has a goal, or tells in `info` whether one was reached (`environments.SUCCESS`), an expert's
    episode that misses the goal is left out. A negative episode that reaches the goal is left out too, because it would
    be a false negative.

    In a near miss (`near_miss`), BabyAI's bot does another task of the same world, such as going to another object. In
    a level of our own (`grace_irl.rl.levels`), a script does the other task. The instruction and the rewards are those
    of the right task, so all rewards are 0. An episode in which the right task gets done is left out.

    A near miss stops when the other task is done. The episode is then `truncated` and not `terminated`, because the
    environment did not end it. Negatives that are `truncated` are evidence for the label rule "last"
    (`grace_irl.demos.label_rule`). Without its rewards, a `terminated` near miss could look like a success. A near miss
    is `terminated` only if the environment itself ends the episode with a failure, such as at a wrong door in
    BabyAI-OpenMatchingDoor-v0.

    Args:
        env_id: Gymnasium id.
        policy: "bot", "random", or a checkpoint's path.
        episodes: number of trajectories to keep.
        role: role of the trajectories.
        seed: seed from which the seeds of all episodes are drawn. The same seed gives the same set.
        max_steps: time limit of an episode in steps; None keeps the environment's own limit.
        keep_successes: whether to keep negative episodes that reached the goal.
        near_miss: whether the policy does another task than the instruction says. The name of a deviation, for example
            "other order", allows only this deviation.
        task: task name; the environment's id by default.
        kind: name of the states' kind, if the observation space fits several kinds, for example "grid" or "image".
            With "", the values of the states decide.
        alarm_s: maximum computing time of the bot per episode, in seconds.
        tally: counter to fill with the outcomes of the episodes.
        progress: callback with the number of trajectories kept so far.

    Raises:
        InputError: an argument is invalid, or the level has no near misses.
        GraceError: too many episodes failed or were left out (`PATIENCE`, `WORLDS`).
    """
    if near_miss:
        _require_near_miss(policy, role, keep_successes=keep_successes)
    if episodes < 1:
        raise InputError(f"--episodes {episodes}; expected at least 1")
    if seed < 0:
        raise InputError(f"--seed {seed}; expected 0 or more")
    count = EpisodeTally() if tally is None else tally
    actor: ActingPolicy
    if near_miss:
        actor = NearMissPolicy(env_id, near_miss if isinstance(near_miss, str) else "", alarm_s)
    else:
        actor = make_policy(policy, env_id, alarm_s=alarm_s)
    environment, view = prepare(env_id, max_steps=max_steps, kind=kind)
    try:
        seeds = np.random.default_rng(seed)
        kept: list[Demonstration] = []
        while len(kept) < episodes:
            _check_losses(count, len(kept), episodes, env_id)
            try:
                trajectory, success = rollout(environment, view, actor, int(seeds.integers(2**31 - 1)))
            except PolicyFailureError as error:
                count.failures[str(error)] += 1
                continue
            if isinstance(actor, NearMissPolicy):
                if success or (trajectory.truncated and not actor.done):
                    count.failures[RIGHT_TASK_DONE if success else OUT_OF_TIME] += 1
                    continue
                actor.kept = True
                trajectory = replace(trajectory, source=f"{trajectory.source}, near miss, {actor.deed}")
            if role == "negative" and success and not keep_successes:
                count.dropped_successes += 1
                continue
            if role == "expert" and success is False:
                count.failures["goal not reached"] += 1
                continue
            kept.append(Demonstration(trajectory, role, task or env_id))
            count.kept += 1
            if progress is not None:
                progress(len(kept))
    finally:
        environment.close()
    choice = choose_observed((item.trajectory.states for item in kept), _kinds(view), env_id, kind)
    metadata = view.metadata if choice is None else of_kind(view.metadata, choice.kind)
    return Demonstrations(metadata, tuple(kept), choice=choice)


def prepare(env_id: str, *, max_steps: int | None = None, kind: str = "") -> tuple[Any, StateView]:
    """Make an environment and its view, as `environments.make`.

    Raises:
        InputError: the environment cannot be made, or its states are not of this kind.
    """
    environment, view = make(env_id, max_steps=max_steps, kind=kind)
    try:
        choose_observed((), _kinds(view), env_id, kind)
    except InputError:
        environment.close()
        raise
    return environment, view


def _kinds(view: StateView) -> tuple[str, ...]:
    """Names of the kinds that a view's states may be of."""
    return tuple(getattr(view, "kinds", ())) or (view.metadata.kind,)


def _check_losses(count: EpisodeTally, kept: int, episodes: int, env_id: str) -> None:
    """Check that not too many episodes were left out.

    Raises:
        InputError: no episode was kept, and too many were left out, all because their worlds have no other task for a
            near miss.
        GraceError: too many episodes were left out, in any other case.
    """
    lost, poor = count.failures.total() + count.dropped_successes, count.failures[NO_OTHER_TASK]
    if lost - poor <= PATIENCE * (1 + kept) and poor <= WORLDS * (1 + kept):
        return
    if lost == poor and not kept:
        raise InputError(
            f"{env_id}: no near misses, because none of {poor} worlds has another task of the form of its instruction; "
            "expected a level with other objects to choose from, for --near-miss"
        )
    raise GraceError(
        f"{env_id}: only {kept} of {episodes} episodes kept, and {lost} left out "
        f"({'; '.join(count.lines())}); expected a level within the policy's reach"
    )


def _require_near_miss(policy: str, role: Role, *, keep_successes: bool) -> None:
    """Check that settings suit near misses.

    Raises:
        InputError: the role is not "negative", the policy is not "bot", or successes are to be kept.
    """
    if role != "negative":
        raise InputError(f"--near-miss with --role {role}; expected --role negative: the bot does another task")
    if policy != "bot":
        raise InputError(f"--near-miss with --policy {policy}; expected --policy bot, which can do another task")
    if keep_successes:
        raise InputError("--near-miss with --keep-successes; expected one of them: a near miss never reaches the goal")


def rollout(environment: Any, view: StateView, policy: ActingPolicy, seed: int) -> tuple[Trajectory, bool | None]:
    """Play one episode to its end, or until the policy is done.

    Returns:
        The trajectory with its final state, and whether it reached the goal; None if nothing tells.

    Raises:
        PolicyFailureError: the policy cannot continue the episode.
    """
    with quiet():
        observation, info = environment.reset(seed=seed)
    policy.reset(environment, seed)
    states = [view.state(environment, observation)]
    instruction = instruction_of(environment, info, view)
    actions: list[Any] = []
    rewards: list[float] = []
    log_probs: list[float | None] = []
    terminated = truncated = False
    success: bool | None = None
    while not (terminated or truncated):
        try:
            action, log_prob = policy.act(states[-1])
        except PolicyDoneError:
            truncated = True
            break
        observation, reward, terminated, truncated, info = environment.step(action)
        success = success_in(info, success)
        states.append(view.state(environment, observation))
        actions.append(action)
        rewards.append(float(reward))
        log_probs.append(log_prob)
    known = None not in log_probs
    kind = view.metadata.state_kind
    trajectory = Trajectory(
        kind.online(states),
        np.stack(actions),
        instruction,
        kind=kind.name,
        rewards=np.array(rewards, np.float64),
        log_probs=np.array(log_probs, np.float64) if known else None,
        terminated=bool(terminated),
        truncated=bool(truncated),
        source=f"{view.metadata.environment} seed {seed}",
    )
    if success is None and view.has_goal:
        success = view.success(bool(terminated), rewards[-1])
    return trajectory, success
