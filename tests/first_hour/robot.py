"""A point robot that drives to a place, and what a user does with its episodes."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import grace_irl

COLUMNS = ("across", "height", "speed")
STEPS = 10
GOAL = (1.0, 1.0)


def drives(seed: int, goal: tuple[float, float] | None, episodes: int = 8) -> list[np.ndarray]:
    """Episodes `(STEPS, 3)` of place across, height and speed: to the goal, or to anywhere else."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(episodes):
        start = random.uniform(-0.2, 0.2, 2)
        end = random.uniform(-1, 0.4, 2) if goal is None else np.asarray(goal) + random.normal(0, 0.03, 2)
        way = start + (end - start) * np.minimum(np.linspace(0, 1.4, STEPS), 1)[:, None]
        speed = np.linalg.norm(np.diff(way, axis=0, append=way[-1:]), axis=1)
        found.append(np.column_stack([way, speed]))
    return found


def steps(episode: np.ndarray) -> np.ndarray:
    """The action at each state but the last one: how far the robot moves."""
    return np.diff(episode[:, :2], axis=0)


def rows(episodes: Sequence[np.ndarray]) -> list[dict[str, float | int]]:
    """One row per state, with the episode's number and a column per number."""
    return [
        {"episode": number, **dict(zip(COLUMNS, map(float, state), strict=True))}
        for number, episode in enumerate(episodes)
        for state in episode
    ]


def flat(episodes: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """D4RL's layout: all steps of all episodes in one array, and flags where an episode ends."""
    last = np.tile(np.arange(STEPS) == STEPS - 1, len(episodes))
    return {
        "observations": np.concatenate(episodes).astype(np.float32),
        "actions": np.concatenate([np.vstack([steps(each), np.zeros((1, 2))]) for each in episodes]).astype(np.float32),
        "rewards": np.zeros(len(last), np.float32),
        "terminals": np.zeros(len(last), bool),
        "timeouts": last,
    }


def write_states(path: Path, episodes: Sequence[np.ndarray], **more: Sequence[Any]) -> Path:
    """Write the Parquet file of the README: the columns `episode` and `state`."""
    numbers = [number for number, episode in enumerate(episodes) for _ in episode]
    states = [state.tolist() for episode in episodes for state in episode]
    pq.write_table(pa.table({"episode": numbers, "state": states, **more}), path)
    return path


def write_wide(path: Path, episodes: Sequence[np.ndarray]) -> Path:
    """Write a table with a column per number, as Parquet or CSV by the path's name."""
    table = pa.Table.from_pylist(rows(episodes))
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        lines = [",".join(map(str, row.values())) for row in rows(episodes)]
        path.write_text("\n".join([",".join(table.column_names), *lines]) + "\n")
    return path


def paid(reward_path: Path, episodes: Sequence[np.ndarray]) -> list[list[float]]:
    """The reward of each state, from the exported file itself."""
    reward = grace_irl.load_reward(reward_path, trust=True)
    values = []
    for episode in episodes:
        one = reward()
        values.append([float(one.reward_fn(state)) for state in episode])
    return values


def pays_experts(reward_path: Path, experts: Sequence[np.ndarray], negatives: Sequence[np.ndarray]) -> bool:
    """Whether the reward pays experts more than negatives, state by state in the mean."""
    return bool(np.mean(paid(reward_path, experts)) > np.mean(paid(reward_path, negatives)))


def names_a_column(source: str) -> bool:
    """Whether a program speaks of the numbers by the names that the user gave them."""
    return any(f'"{name}"' in source or f"'{name}'" in source for name in COLUMNS)


def one_line(message: object) -> str:
    """The words of an error, which are one line that a person can read."""
    text = str(message)
    assert "\n" not in text.strip()
    assert len(text) < 400
    return text


def shell(
    *words: object, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What somebody types: `grace-irl` with these words, off a terminal."""
    return subprocess.run(
        [sys.executable, "-m", "grace_irl", *map(str, words)],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=100,
    )


def said(done: subprocess.CompletedProcess[str]) -> str:
    """All that a command printed, in which there is never a traceback."""
    text = done.stdout + done.stderr
    assert "Traceback" not in text
    return text
