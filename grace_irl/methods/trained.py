"""Settings, evaluator and report texts of methods that judge a program by policies trained on its rewards."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from grace_irl.config import Config
from grace_irl.errors import InputError
from grace_irl.evaluate.evaluation import shown
from grace_irl.methods.method import Course, Method, Needs, Panel, repairs_of
from grace_irl.methods.policy_account import PolicyAccount, panels
from grace_irl.settings import Section, setting
from grace_irl.toml import MAX_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from grace_irl.demos.labels import Problem
    from grace_irl.demos.trajectory import Metadata, Trajectory
    from grace_irl.evaluate.evaluation import Evaluator
    from grace_irl.propose.material import Workbench
    from grace_irl.propose.protocol import Following, Proposer
    from grace_irl.propose.rendering import Operator
    from grace_irl.search.protocol import Search
    from grace_irl.search.ranks import Scored
    from grace_irl.tasks.facts import TaskFacts
    from grace_irl.tasks.policy_evaluator import PolicySettings
    from grace_irl.tasks.recorded import TrainingPlan
    from grace_irl.tasks.task import Task

TASK_FILE = "task.json"
"""Name of the file with the content of the task, in the folder of a run."""


class PolicyConfig(Section):
    """The task, and the policies that judge programs (docs/tasks.md)."""

    panel: ClassVar[str] = "Policies"
    needs: ClassVar[str] = "a task"
    short: ClassVar[bool] = True

    task: str = setting(
        "",
        "Task: a TOML file, or reacher, snake, flappy-bird, acrobot, lunar-lander, doorkey.",
        unit="file",
        needs="",
        common=True,
        details="It names an environment and a score. This machine runs the code of both.",
    )
    train_steps: int = setting(
        0, "Environment steps of a training.", shown="those of the task", unit="steps", common=True, ge=0
    )
    train_seeds: int = setting(1, "Trainings of each program, with different seeds.", unit="trainings", ge=1, le=1000)
    checkpoint: Literal["best", "last"] = setting(
        "best",
        "Evaluation that gives the score: the best or the last one of a training.",
        details="The best one makes a reward look better than it is.",
    )
    trainings: int | None = setting(
        None, "Maximum number of trainings at once.", shown="one for each core", unit="trainings", ge=1
    )
    train_limit: float = setting(3600.0, "Maximum wall time of a training.", unit="seconds", gt=0)
    recorded_scores: bool = setting(
        False,
        "Take the learning curves of the recording, and train nothing.",
        needs="replay",
        details="Nobody checks the curves: you trust whoever made the recording. They must belong to the same task, "
        "programs, seeds, steps and evaluations. Each program is still tried on a few random episodes.",
    )


def task_of(config: Config) -> Task:
    """The task of a run.

    Raises:
        InputError: the settings name no task, or the task cannot be read.
    """
    from grace_irl.tasks.task import read_task, shipped

    name = config.own(PolicyConfig).task
    if not name:
        raise InputError(
            f"method {config.method!r} without a task; expected --task FILE, or one of {', '.join(shipped())}"
        )
    return read_task(name)


def states(config: Config) -> Metadata:
    """Facts about the states of the task's environment."""
    return task_of(config).metadata


def examples(config: Config) -> Sequence[Trajectory]:
    """Episodes of random actions in the task's environment."""
    from grace_irl.tasks.random_episodes import random_episodes

    return random_episodes(task_of(config), seed=config.seed)


def policy_evaluator(problem: Problem, config: Config) -> Callable[[Workbench], Evaluator]:
    """Return a function that creates the evaluator of a run.

    Raises:
        InputError: the task or its environment cannot be used, or the states of the demonstrations differ from those of
            the environment in kind or signature (`_form`).
    """
    from grace_irl.atomic import write_atomically
    from grace_irl.rl.environments import registration
    from grace_irl.tasks.policy_evaluator import PolicyEvaluator, rounded
    from grace_irl.tasks.random_episodes import kept_random_score, random_episodes, random_score

    task, settings = task_of(config), _settings(config)
    task.scorer()
    _ = task.settings
    if task.short_steps and 0 < settings.steps <= task.short_steps:
        raise InputError(
            f"--train-steps {settings.steps}, and the short training of task {task.name} has {task.short_steps} steps; "
            "expected more steps than those"
        )
    registration(task.env)
    episodes = random_episodes(task, seed=config.seed)
    theirs, ours = ([each.trajectory for each in problem.items[:1]], episodes[:1])
    if theirs and _form(theirs[0]) != _form(ours[0]):
        raise InputError(
            f"demonstrations with states of {_form(theirs[0])}, and task {task.name} has {_form(ours[0])}; expected "
            "the same: leave --demos out, or bring demonstrations of this environment"
        )
    if theirs:
        task.require_alike(problem.metadata)
    random_score(task, config.seed, 1)  # a score that fails ends the run before any file is written

    def opened(bench: Workbench) -> Evaluator:
        if not (bench.folder / TASK_FILE).exists():
            write_atomically(bench.folder / TASK_FILE, task.content)
        bench.note(task.destination)
        if line := rounded(task, settings):
            bench.note(line)
        chance, played = kept_random_score(task, config.seed, bench.folder)
        bench.note(f"random actions score {shown(chance)} (mean of {played} episodes)")
        return PolicyEvaluator(task, bench, settings, episodes, chance)

    return opened


def _settings(config: Config) -> PolicySettings:
    from grace_irl.tasks.policy_evaluator import PolicySettings

    own = config.own(PolicyConfig)
    return PolicySettings(
        seed=config.seed,
        seeds=own.train_seeds,
        checkpoint=own.checkpoint,
        steps=own.train_steps,
        workers=own.trainings or None,
        limit=own.train_limit,
        allow_weak=config.sandbox.allow_weak,
    )


def plan_of(config: Config) -> TrainingPlan:
    """The trainings of each program in a run.

    Raises:
        InputError: the task or its environment cannot be used.
    """
    from grace_irl.tasks.policy_evaluator import plan

    return plan(task_of(config), _settings(config))


def _form(trajectory: Trajectory) -> str:
    """The kind and the signature (such as the width of a vector) of a trajectory's states, as text."""
    kind = trajectory.state_kind
    shared = kind.signature(trajectory.states)
    return f"kind {kind.name}" + ("" if shared is None else f" ({shared})")


def resumes(config: Config, folder: Path) -> None:
    """Check that the task has not changed since the run in `folder` began.

    Raises:
        InputError: the task has changed.
    """
    path, task = folder / TASK_FILE, task_of(config)
    if path.exists() and (changed := _changed(path, task.content)):
        raise InputError(
            f"{folder}: task {task.name} is not as it was when the run began (different: {changed}); expected the same "
            "file and code, unchanged: begin a new run"
        )


def _changed(path: Path, now: str) -> str:
    """The parts of a task that differ between a file and a content (`Task.content`), as text; "" if none does."""
    from grace_irl.tasks.recorded import changes, portable

    try:
        with path.open("rb") as file:
            before = json.loads(file.read(MAX_BYTES))
        return ", ".join(changes(portable(before), portable(json.loads(now))))
    except (OSError, ValueError, AttributeError, RecursionError):
        return "all"


def writer(problem: Problem, config: Config) -> Proposer:
    """The proposer that needs no model.

    The proposer composes rewards from statistics of episodes with random actions, and from the scores of these
    episodes.

    Raises:
        InputError: `Task.sees` is not "transition", or the proposer cannot write programs for the task.
    """
    del problem
    from grace_irl.propose.given import InThread

    task = task_of(config)
    if task.sees != "transition":
        raise InputError(
            f"task {task.name}: sees = {task.sees!r}, and without a model only rewards of transitions are written; "
            "expected sees = 'transition', or a model: --llm-url URL or --proposer manual"
        )
    return InThread(_designer(config.own(PolicyConfig).task, task.content, config.seed))


@lru_cache(maxsize=1)
def _designer(name: str, content: str, seed: int) -> Any:
    """The designer of a task's rewards, made from up to a thousand random episodes.

    The cache keeps the designer from the check of the settings to the search.

    Args:
        name: name or path of the task.
        content: the task's content, with digests of its code. It is only part of the cache's key.
        seed: seed of the run.

    Raises:
        InputError: the proposer cannot write programs for the task.
    """
    from grace_irl.synthesis.vector.designer import Designer
    from grace_irl.tasks.random_episodes import random_episodes, scored_episodes
    from grace_irl.tasks.task import read_task

    del content
    task = read_task(name)
    try:
        designer = Designer(_steps(random_episodes(task, seed=seed)), task.metadata.fields, seed)
    except InputError as error:
        raise InputError(
            f"task {task.name}: {error}. A model or a person can write the programs: --llm-url URL or --proposer manual"
        ) from None
    played, scores = scored_episodes(task, seed)
    return designer.guided(_steps(played), scores)


def _steps(episodes: Sequence[Trajectory]) -> list[tuple[Any, NDArray[Any]]]:
    """States and actions of episodes."""
    return [(each.states, each.actions) for each in episodes if each.actions is not None]


def operators(config: Config) -> Mapping[str, Operator]:
    """The operators of methods in runs with a task, by name. All their prompts contain the text of the task."""
    from grace_irl.tasks.operators import operators as of_task

    context = Path(config.model.context).read_text(encoding="utf-8") if config.model.context else ""
    own, task = config.own(PolicyConfig), task_of(config)
    return of_task(task, _facts(own.task, task.content), own.train_steps, context)


@lru_cache(maxsize=1)
def _facts(name: str, content: str) -> TaskFacts:
    """Facts about a task's environment for prompts. The cache keeps them from the check of the settings to the search.

    Args:
        name: name or path of the task.
        content: the task's content, with digests of its code. It is only part of the cache's key.
    """
    from grace_irl.tasks.facts import facts_of
    from grace_irl.tasks.task import read_task

    del content
    return facts_of(read_task(name))


def policy_method(
    name: str,
    summary: str,
    search: Callable[[Config], Search],
    section: tuple[str, type[Section]],
    width: Callable[[Config], int],
    course: Callable[[Config], Course],
    *,
    following: Callable[[Config], Following] = repairs_of,
    more: Callable[[Scored | None, Sequence[Scored], Config], Sequence[Panel]] = lambda best, others, config: (),  # noqa: ARG005
) -> Method:
    """A method whose programs are judged by trained policies.

    Args:
        name, summary, search, width, course, following: as for `Method`.
        section: name and class of the search's settings, in addition to `PolicyConfig`.
        more: function that returns sections of the report about the search. They follow the sections of `panels`.
    """
    return Method(
        name=name,
        summary=f"{summary}, judged by trained policies (--task)",
        search=search,
        evaluator=policy_evaluator,
        account=PolicyAccount(),
        operators=operators,
        following=following,
        panels=lambda best, others, config: (*panels(best, others), *more(best, others, config)),
        needs=Needs(demonstrations=False),
        sections={section[0]: section[1], "policy": PolicyConfig},
        width=width,
        course=course,
        states=states,
        examples=examples,
        resumes=resumes,
        writer=writer,
    )
