"""Types of the keywords of `grace_irl.fit`; `python docs/settings_page.py` writes this file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypedDict

Paths = str | Path | Sequence[str | Path]


class FitSettings(TypedDict, total=False):
    """Settings of a run, which override those of a file. It lists the settings of all methods."""

    method: str
    seed: int
    state_columns: Paths
    episode_column: str
    kind: str
    sample: str
    label: Literal["all", "last", "goal"]
    goals: str
    held_out: float
    validation: float
    swaps: bool
    field_names: bool
    samples_per_call: int
    lag: int
    population: int
    elite: int
    generations: int
    include_expert: float
    incorrect_only: float
    expert_only: float
    parent_temperature: float
    steady: bool
    reshape: int
    max_calls: int
    max_seconds: float
    max_tokens: int
    max_cost: float
    target_accuracy: float
    plateau: int
    seed_synthesis: int
    start_from: Paths
    llm_url: str
    model: str
    temperature: float
    answer_tokens: int
    concurrency: int
    answer_format: Literal["auto", "code", "json"]
    repair: bool
    repairs: int
    llm_patience: float
    model_timeout: float
    prompt_tokens: int
    prompt_scale: float
    context: str
    images: bool
    price_in: float
    price_out: float
    expand: int
    env: str
    env_steps: int
    expand_growth: float
    rollouts: int
    expand_enough: float
    expand_alike: float
    expand_form: Literal["auto", "raw", "guided", "logit", "probability", "soft", "progress"]
    online_reshape: int
    expand_carry: Literal["auto", "always", "never"]
    trust_reward: bool
    workers: int
    allow_weak_sandbox: bool
    sandbox_wall_s: float
    sandbox_cpu_s: float
    sandbox_memory_mb: int
    log_pi: Literal["constant", "uniform", "recorded", "cloned"]
    calibrate: bool
    programs: int
    first_programs: int
    niches: int
    task: str
    train_steps: int
    train_seeds: int
    checkpoint: Literal["best", "last"]
    trainings: int
    train_limit: float
    recorded_scores: bool
    rounds: int
    round_programs: int
    keep_overall: bool
    islands: int
    island_programs: int
    crossover: float
    migration: float
    actions: str
    exploration: float
    eta: float
    tree_rule: Literal["uct", "depth-first", "breadth-first", "greedy"]
    thoughts: bool
    virtual_loss: bool
    pairs: int
    pool_programs: int
    patience: int
    deeper: int
    planner: bool
    pair_choice: Literal["score", "uniform"]
