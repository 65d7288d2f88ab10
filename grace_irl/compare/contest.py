"""The contest: settings and demonstrations of a comparison, from which jobs make their learning problems and methods.

A job is one method with one seed. This module also marks the goal states of the demonstrations, once for all jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from grace_irl.compare.fitted import Fitted
from grace_irl.compare.folder import ComparisonFolder
from grace_irl.compare.settings import ORACLE, OURS, Settings, is_search, require_task_alone, tuned
from grace_irl.config import Config, SandboxConfig
from grace_irl.demos.label_rule import RuleChoice, choose_rule, earlier_rule, shown_rule, with_rule
from grace_irl.demos.split import draw, split
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata
from grace_irl.errors import InputError
from grace_irl.methods.registry import judged_by, method_of, names
from grace_irl.pages import page
from grace_irl.rl.environments import is_adapter
from grace_irl.rl.method import Policy, PolicyMethod, PolicyProblem, load_method, offered
from grace_irl.runs import labelling as labellings
from grace_irl.runs import proposers
from grace_irl.runs.beginnings import programs_of, require_readable
from grace_irl.runs.bench import labelled
from grace_irl.runs.caller import Parts, notes_of
from grace_irl.runs.config import flat, with_settings
from grace_irl.runs.data import load_data, with_sample
from grace_irl.runs.folder import RunLock, RunPaths, create
from grace_irl.runs.labelling import Labelling, marked, with_label
from grace_irl.runs.loading import new_labelling, require_chat
from grace_irl.runs.sandbox import opened_sandbox
from grace_irl.runs.store import Store

if TYPE_CHECKING:
    from grace_irl.rl.curve import Point
    from grace_irl.rl.evaluation import Rollout
    from grace_irl.rl.hyperparameters import Hyperparameters
    from grace_irl.rl.observed import EnvironmentFactory
    from grace_irl.tasks.task import Task


def _learns(settings: Settings) -> set[str]:
    """The compared methods that read labels: those that learn from demonstrations, or are judged by them."""
    comparison = settings.comparison
    return {
        name
        for name in comparison.methods
        if name != ORACLE and (not is_search(name) or judged_by(name, comparison.task).needs.demonstrations)
    }


def require_cleanable(config: Config, demonstrations: Demonstrations, note: Callable[[str], None]) -> Config:
    """Check the inputs of `clean` before anything is written.

    Args:
        config, demonstrations: as for `clean`.
        note: function that shows one line to the user, for example that the first call to a server is under way.

    Returns:
        The configuration for `clean`. If a model on a server will name goal states, the check asks the server for the
        model's name and answer format. The returned configuration contains both.

    Raises:
        InputError: the file of goal states is invalid, or goal states are missing and no model is available.
    """
    return _checked(config, new_labelling(config, demonstrations), note)


def clean(
    config: Config, folder: Path, demonstrations: Demonstrations, parts: Parts, checked: Config | None = None
) -> Demonstrations:
    """Mark the goal states in demonstrations. A model names missing goal states.

    After an interruption, a further call with the same folder resumes the work.

    Args:
        config: configuration of the runs that share the goal states. Its search settings have no effect.
        folder: folder of the run that stores the goal states. If the run exists, its goal states are used instead of
            the file that the setting `data.goals` names.
        demonstrations: the demonstrations as loaded, before this function marks goal states.
        parts: callbacks, and the name for messages of what the user resumes after an interruption (`Parts.whole`).
        checked: result of `require_cleanable`; None: this function makes the check.

    Raises:
        InputError: as in `require_cleanable`, or no expert has a goal state.
        GraceError: the model's answers are unreadable, or the model stopped answering. Earlier answers are saved.
        Interrupted: the user pressed Ctrl-C. Earlier answers are saved.
    """
    paths = RunPaths(folder)
    if not paths.database.exists():
        labelling = new_labelling(config, demonstrations)
        checked = checked or _checked(config, labelling, parts.note)
        create(folder, checked, labelling.problem(), labelling.answers)
    with RunLock(paths.lock), closing(Store(paths.database)) as store:
        kept = labellings.resumed(demonstrations, RuleChoice("goal", ""), folder, store, notes_of(store, parts))
        if kept.silent or not any(row.positives for row in store.trajectories()):
            with opened_sandbox(config.sandbox) as sandbox:
                labelled(folder, checked or _checked(config, kept, parts.note), kept, sandbox, store, parts)
    return labellings.marked(demonstrations, folder, lambda _: None)


def _checked(config: Config, labelling: Labelling, note: Callable[[str], None] | None) -> Config:
    """Fill in settings that the user left open. If goal states are missing, check the model that will name them.

    Raises:
        InputError: goal states are missing and no model is available.
    """
    config = proposers.settled(config)
    if not labelling.silent:
        return config
    require_chat(labelling, config)
    return proposers.checked(config, labelling.problem(), note or (lambda _: None))


def require_searchable(
    contest: Contest, methods: Collection[str], note: Callable[[str], None], checked: Config | None = None
) -> None:
    """Check the inputs of searches that `Fitted.check` does not read: `--start-from`, `--context` and the proposer.

    A server is tried once for all searches, because they have the same model.

    Args:
        contest: the contest.
        methods: names of the methods whose searches are checked.
        note: function that shows one line to the user, for example that the first call to a server is under way.
        checked: result of `require_cleanable`, which may have tried the server.

    Raises:
        InputError: programs, context or proposer cannot be used.
        GraceError: the server cannot be used for now.
    """
    demonstrations = contest.demonstrations if contest.demonstrations.items else None
    model = None if checked is None else checked.model
    for name, config in contest.settings.searches.items():
        if name not in methods or (name == OURS and contest.settings.comparison.reward):
            continue
        config = proposers.settled(with_settings(config, {"data.goals": ""}))  # which names all of them, if any
        served = config.proposer.name == "llm"
        if served and model is not None:
            config = config.model_copy(update={"model": model})
        problem = new_labelling(config, demonstrations).problem()
        require_readable(programs_of(config.proposer.start_from, method_of(config).width(config)), config, problem)
        config = proposers.checked(config, problem, note)
        model = config.model if served else model


@dataclass(frozen=True)
class Judge:
    """The evaluation of policies in one environment, the same for all methods.

    Attributes:
        problem: the learning problem, which provides the environments.
        environment: name of the environment in tables.
        settings: settings of PPO in this environment.
        score: function that scores an episode by the task; None without a task.
    """

    problem: PolicyProblem
    environment: str
    settings: Hyperparameters
    score: Callable[[Rollout], float] | None = None

    @property
    def deterministic(self) -> bool:
        """Whether policies take their most probable action, instead of a random draw."""
        return self.settings.deterministic

    def point(self, policy: Policy, steps: int, episodes: int, seed: int) -> Point:
        """The results of a policy over some episodes, after `steps` environment steps of training."""
        from grace_irl.rl.evaluation import evaluate

        found = evaluate(
            policy, self.problem.make_env, episodes, seed, deterministic=self.deterministic, score=self.score
        )
        return found.point(steps)


@dataclass(frozen=True)
class Contest:
    """The settings and the demonstrations of a comparison, with the label rule.

    The label rule decides which expert states are positive.

    Attributes:
        settings: settings of the comparison.
        demonstrations: the demonstrations, with the label rule in their metadata. Under the rule "goal", `cleaned` and
            `marked` return copies of the contest whose demonstrations contain the goal states.
        choice: the label rule, and the reason for its choice.
    """

    settings: Settings
    demonstrations: Demonstrations
    choice: RuleChoice

    @classmethod
    def of(cls, settings: Settings, workers: int | None = None, *, new: bool = False) -> Contest:
        """Load the demonstrations, and choose the label rule.

        Args:
            settings: settings of the comparison.
            workers: number of sandbox processes of each search, unless the settings contain this number.
            new: whether the comparison starts now. A resumed comparison without a label rule in its stored settings
                comes from an earlier version of grace-irl, and keeps the rule that the earlier version chose.

        Raises:
            InputError: the demonstrations cannot be read.
        """
        require_task_alone(settings)
        fit = settings.fit
        if workers is not None and fit.sandbox.workers is None:
            sandbox: SandboxConfig = fit.sandbox.model_copy(update={"workers": workers})
            settings = Settings(settings.comparison, fit.model_copy(update={"sandbox": sandbox}))
        if not fit.data.files and settings.comparison.task:
            _require_no_data(settings)
            metadata = _task_of(settings).metadata
            return cls(settings, Demonstrations(metadata, ()), RuleChoice("all", "there are no demonstrations"))
        demonstrations = load_data(fit.data, new=new)
        fit = with_sample(fit, demonstrations)
        asked = fit.data.label or (earlier_rule(demonstrations) if not new else "")
        labels = _learns(settings)
        choice = choose_rule(demonstrations, asked) if asked or labels else shown_rule(demonstrations)
        choice = replace(choice, reason=settings.comparison.label_reason or choice.reason)
        settings = Settings(settings.comparison, with_label(fit, choice.rule))
        return cls(settings, with_rule(demonstrations, choice.rule), choice)

    @cached_property
    def task(self) -> Task | None:
        """The task of the comparison; None without a task.

        Raises:
            InputError: the task cannot be read.
        """
        return _task_of(self.settings) if self.settings.comparison.task else None

    @property
    def longest(self) -> int | None:
        """Maximum steps of an episode in the comparison's environment, by `--horizon` or the task; None without both.

        A task's limit does not hold in transfer environments.
        """
        return self.settings.comparison.horizon or (self.task.max_steps if self.task else 0) or None

    @property
    def labels(self) -> Config:
        """Settings of the run that stores the goal states: those of the search, but without held-out trajectories."""
        fit = self.settings.fit
        return fit.model_copy(update={"data": fit.data.model_copy(update={"held_out": 0.0})})

    @property
    def needs_goals(self) -> bool:
        """Whether the label rule is "goal" and a method learns from the demonstrations."""
        comparison = self.settings.comparison
        idle = {OURS} if comparison.reward else set()
        return self.demonstrations.metadata.label == "goal" and not _learns(self.settings) <= idle

    def cleaned(self, folder: Path, note: Callable[[str], None], checked: Config | None = None) -> Contest:
        """A copy with the goal states of the experts. A model names missing goal states, once for all jobs.

        Args:
            folder: folder of the comparison. Goal states found there are reused.
            note: function that receives a line for each question to the model and each answer.
            checked: result of `require_cleanable`; None: this call makes the check.

        Raises:
            InputError, GraceError, Interrupted: as in the function `clean`.
        """
        if not self.needs_goals:
            return self
        parts = Parts(note=note, whole=folder)
        place = ComparisonFolder(folder).goals
        return replace(self, demonstrations=clean(self.labels, place, self.demonstrations, parts, checked))

    def marked(self, folder: Path) -> Contest:
        """A copy with the goal states that `cleaned` has stored in the folder of a comparison."""
        if not self.needs_goals:
            return self
        return replace(self, demonstrations=marked(self.demonstrations, ComparisonFolder(folder).goals, lambda _: None))

    def drawn(self, seed: int) -> Contest:
        """A copy with the demonstrations of one seed: a random draw if the settings have `draw_demos`, else all.

        Raises:
            InputError: there are fewer demonstrations than the draw needs.
        """
        count = self.settings.comparison.draw_demos
        return replace(self, demonstrations=draw(self.demonstrations, count, seed)) if count else self

    def problem(self, seed: int, environment: str = "") -> PolicyProblem:
        """The learning problem. All methods get the same training trajectories, split as in GRACE's search.

        Args:
            seed: seed of the split, if some demonstrations are held out.
            environment: the environment of the problem; "" for the one in the settings.

        Raises:
            InputError: the environment cannot be made, its states differ from those of the demonstrations, or settings
                contradict each other.
        """
        from grace_irl.rl.problems import make_problem

        comparison, data = self.settings.comparison, self.settings.fit.data
        return make_problem(
            split(self.demonstrations, data.held_out, seed),
            self._make(environment),
            comparison.steps,
            settings=None if self.task is None or environment else self.task.settings,
            horizon=comparison.horizon,
            watches=comparison.looks,
            keeps=self.settings.keeps(),
            device=comparison.device,
        )

    @property
    def environment(self) -> str:
        """Name of the environment: that of the task, of the settings or of the demonstrations."""
        if self.task is not None:
            return self.task.env
        return self.settings.comparison.env or self.demonstrations.metadata.environment

    def _make(self, environment: str) -> EnvironmentFactory:
        from grace_irl.rl.matching import environment_for, require_alike

        shown = self._shown
        if self.task is None or environment:
            return environment_for(shown, environment or self.settings.comparison.env)
        if self.demonstrations.items:
            self.task.require_alike(shown.metadata)
            unnamed = replace(shown.metadata, fields=())
            require_alike(f"task {self.task.name}", self.task.make, unnamed, shown.items[0].trajectory)
        return self.task.make

    @property
    def _shown(self) -> Demonstrations:
        """Trajectories with states of the comparison's environment: the demonstrations, or one random episode.

        The random episode replaces missing demonstrations in a comparison with a task.
        """
        if self.demonstrations.items or self.task is None:
            return self.demonstrations
        from grace_irl.tasks.random_episodes import random_episodes

        return Demonstrations(self.task.metadata, (Demonstration(random_episodes(self.task, 1)[0], "negative"),))

    def method(self, name: str, folder: Path, note: Callable[[str], None] | None = None) -> PolicyMethod:
        """A method by its name.

        Args:
            name: the name of a method of `grace-irl fit`, or of an installed method (`offered()`).
            folder: folder of the search.
            note: function that receives each line about the search.

        Raises:
            InputError: the method is unknown, its settings are invalid, or a package is missing.
        """
        settings = tuned(self.settings.comparison, name)
        if not is_search(name):
            if name not in offered():
                raise InputError(
                    f"method {name!r}; expected one of {', '.join((*names(), *offered()))} ({page('compare')})"
                )
            return load_method(name, **settings)
        if settings:
            raise InputError(f"--tune {name}.{next(iter(settings))}; expected --set or --config for how it searches")
        comparison, config = self.settings.comparison, self.settings.search(name)
        changes: dict[str, object] = {"data.goals": ""}  # The goal states are already marked.
        if config.expand.rounds:
            changes |= {"expand.steps": comparison.steps, "expand.env": comparison.env}
        if flat(config).get("policy.trainings", 0) is None:
            changes["policy.trainings"] = config.sandbox.workers
        own = Path(comparison.reward) if name == OURS and comparison.reward else None
        config = with_settings(config, changes)
        return Fitted(name, config, folder, self.demonstrations, own, note, comparison.device)

    def label(self, problem: PolicyProblem, environment: str = "") -> str:
        """The name of a problem's environment in tables: the Gymnasium id, or `file.py:function` for an adapter."""
        own = self.settings.comparison.env if self.task is None else self.task.env
        asked = environment or own
        return Path(asked).name if is_adapter(asked) else str(_metadata(problem).environment)

    def judge(self, problem: PolicyProblem, environment: str = "") -> Judge:
        """The evaluation of policies in a problem's environment.

        Args:
            problem: the problem.
            environment: the environment of the problem; "" for the one in the settings.
        """
        from grace_irl.rl.hyperparameters import hyperparameters

        metadata, task = _metadata(problem), None if environment else self.task
        settings: Hyperparameters
        settings = hyperparameters(metadata.environment, metadata.kind) if task is None else task.settings
        score = None if task is None else task.scorer()
        return Judge(problem, self.label(problem, environment), settings, score)

    def interface(self, problem: PolicyProblem) -> str:
        """The inputs of a reward network in this problem, as text: observation shape and action space."""
        with closing(problem.make_env()) as environment:
            return f"observations of shape {environment.observation_space.shape} and {environment.action_space}"


def _metadata(problem: PolicyProblem) -> Metadata:
    with closing(problem.make_env()) as environment:
        found: Metadata = environment.get_wrapper_attr("view").metadata
    return found


def _require_no_data(settings: Settings) -> None:
    """Refuse settings about demonstrations in a comparison without demonstrations.

    Raises:
        InputError: such a setting is given.
    """
    data = settings.fit.data
    given = {"--draw-demos": settings.comparison.draw_demos, "--negatives": data.negatives, "--goals": data.goals}
    named = [flag for flag, value in given.items() if value]
    if named:
        raise InputError(f"{' and '.join(named)} without demonstrations; expected --demos PATH… as well")


def _task_of(settings: Settings) -> Task:
    from grace_irl.tasks.task import read_task

    return read_task(settings.comparison.task)
