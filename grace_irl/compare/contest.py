"""The problem that all methods of a comparison are set, its cleaning, and the methods."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from grace_irl.compare.folder import ComparisonFolder
from grace_irl.compare.grace import Grace
from grace_irl.compare.settings import Settings, tuned
from grace_irl.compare.standings import ORACLE
from grace_irl.config import Config, ExpandConfig, SandboxConfig
from grace_irl.demos import load
from grace_irl.demos.label_rule import RuleChoice, choose_rule, earlier_rule, with_rule
from grace_irl.demos.split import draw, split
from grace_irl.demos.trajectory import Demonstrations, Metadata
from grace_irl.errors import InputError
from grace_irl.rl.environments import is_adapter
from grace_irl.rl.method import PolicyMethod, PolicyProblem, load_method, offered
from grace_irl.runs import labelling as labellings
from grace_irl.runs import proposers
from grace_irl.runs.fit import Parts, labelled, new_labelling, notes_of, opened_sandbox, require_chat
from grace_irl.runs.folder import RunLock, RunPaths, create
from grace_irl.runs.labelling import Labelling, marked, with_label
from grace_irl.runs.store import Store

if TYPE_CHECKING:
    from grace_irl.rl.observed import EnvironmentFactory


def require_cleanable(config: Config, demonstrations: Demonstrations) -> Config:
    """Looks, before anything is written, at all that `clean` needs.

    Returns:
        The configuration with what a server was asked, for `clean`.

    Raises:
        InputError: a file of goal states that cannot be used, or nobody who can be asked for what it leaves out.
    """
    return _checked(config, new_labelling(config, demonstrations))


def clean(
    config: Config, folder: Path, demonstrations: Demonstrations, parts: Parts, checked: Config | None = None
) -> Demonstrations:
    """Demonstrations with their goal states as marks; asks for what nobody said, and goes on where it was ended.

    Args:
        config: of the runs that share them; their search does not matter.
        folder: of a run that is made, or that is there already: its goal states count, and no file any more.
        demonstrations: as loaded.
        parts: the listeners, and the command that resumes.
        checked: what `require_cleanable` gave; None: a server is asked here.

    Raises:
        InputError: as `require_cleanable`; no expert has a goal state.
        GraceError: answers that cannot be read, or nobody answers any more; what was answered is saved.
        Interrupted: by Ctrl-C; what was answered is saved.
    """
    paths = RunPaths(folder)
    if not paths.database.exists():
        labelling = new_labelling(config, demonstrations)
        checked = checked or _checked(config, labelling)
        create(folder, checked, labelling.problem(), labelling.answers)
    with RunLock(paths.lock), closing(Store(paths.database)) as store:
        kept = labellings.resumed(demonstrations, RuleChoice("goal", ""), folder, store, notes_of(store, parts))
        if kept.silent or not any(row.positives for row in store.trajectories()):
            with opened_sandbox(config.sandbox) as sandbox:
                labelled(folder, checked or _checked(config, kept), kept, sandbox, store, parts)
    return labellings.marked(demonstrations, folder, lambda _: None)


def _checked(config: Config, labelling: Labelling) -> Config:
    """The configuration with what its proposer found out, where somebody has to be asked."""
    config = proposers.settled(config)
    if not labelling.silent:
        return config
    require_chat(labelling, config)
    return proposers.checked(config, labelling.problem())


@dataclass(frozen=True)
class Contest:
    """Settings with their demonstrations.

    Attributes:
        settings: of the comparison.
        demonstrations: as loaded, with the label rule that every method goes by. For the rule "goal" also with goal
            states as marks, once they are known (`cleaned`).
        choice: of that rule.
    """

    settings: Settings
    demonstrations: Demonstrations
    choice: RuleChoice

    @classmethod
    def of(cls, settings: Settings, workers: int | None = None, *, new: bool = False) -> Contest:
        """Loads the demonstrations.

        Args:
            settings: of the comparison.
            workers: of the sandbox of each search, if the settings do not say.
            new: it begins now. One that began without a label rule in its settings is of an earlier version, and keeps
                the rule of that.

        Raises:
            InputError: they cannot be read.
        """
        fit = settings.fit
        if workers is not None and fit.sandbox.workers is None:
            sandbox: SandboxConfig = fit.sandbox.model_copy(update={"workers": workers})
            settings = Settings(settings.comparison, fit.model_copy(update={"sandbox": sandbox}))
        demonstrations = load(fit.data.demos, fit.data.negatives, kind=fit.data.kind)
        asked = fit.data.label or (earlier_rule(demonstrations) if not new else "")
        choice = choose_rule(demonstrations, asked)
        choice = replace(choice, reason=settings.comparison.label_reason or choice.reason)
        settings = Settings(settings.comparison, with_label(settings.fit, choice.rule))
        return cls(settings, with_rule(demonstrations, choice.rule), choice)

    @property
    def labels(self) -> Config:
        """Settings of the run that knows the goal states: as the search's, nothing held out."""
        fit = self.settings.fit
        return fit.model_copy(update={"data": fit.data.model_copy(update={"held_out": 0.0})})

    @property
    def needs_goals(self) -> bool:
        """Whether some method learns from experts whose goal states count."""
        comparison = self.settings.comparison
        idle = {ORACLE, *((Grace.name,) if comparison.reward else ())}
        return self.demonstrations.metadata.label == "goal" and not set(comparison.methods) <= idle

    def cleaned(self, folder: Path, note: Callable[[str], None], checked: Config | None = None) -> Contest:
        """With the goal states of the experts; a model names the missing ones, once for all jobs.

        Args:
            folder: of the comparison; goes on with what is there.
            note: gets a line for each question and answer.
            checked: as for `grace_irl.compare.contest.clean`.

        Raises:
            InputError, GraceError, Interrupted: as `grace_irl.compare.contest.clean`.
        """
        if not self.needs_goals:
            return self
        parts = Parts(note=note, whole=folder)
        place = ComparisonFolder(folder).goals
        return replace(self, demonstrations=clean(self.labels, place, self.demonstrations, parts, checked))

    def marked(self, folder: Path) -> Contest:
        """With the goal states that the comparison in a folder knows already (`cleaned`)."""
        if not self.needs_goals:
            return self
        return replace(self, demonstrations=marked(self.demonstrations, ComparisonFolder(folder).goals, lambda _: None))

    def drawn(self, seed: int) -> Contest:
        """With the demonstrations of one seed: its draw, if the settings ask for one, else all.

        Raises:
            InputError: too few to draw from.
        """
        count = self.settings.comparison.draw_demos
        return replace(self, demonstrations=draw(self.demonstrations, count, seed)) if count else self

    def problem(self, seed: int, environment: str = "") -> PolicyProblem:
        """The problem that every method solves.

        All methods learn from the same side of the split, which is the search's own.

        Args:
            seed: of the split, if some demonstrations are held out.
            environment: another one than the settings'.

        Raises:
            InputError: an environment that cannot be had, or shows other states than the demonstrations, or settings
                that do not go together.
        """
        from grace_irl.rl.problems import make_problem

        comparison, data = self.settings.comparison, self.settings.fit.data
        return make_problem(
            split(self.demonstrations, data.held_out, seed),
            self._make(environment or comparison.env),
            comparison.steps,
            horizon=comparison.horizon,
            watches=comparison.looks,
            keeps=self.settings.keeps(),
            device=comparison.device,
        )

    def _make(self, environment: str) -> EnvironmentFactory:
        from grace_irl.rl.matching import environment_for

        return environment_for(self.demonstrations, environment)

    def method(self, name: str, folder: Path, note: Callable[[str], None] | None = None) -> PolicyMethod:
        """A method by its name.

        Args:
            name: `grace`, or one of `offered()`.
            folder: the place of `grace`'s search.
            note: gets lines about the search.

        Raises:
            InputError: no such method, or packages that it needs are missing.
        """
        settings = tuned(self.settings.comparison, name)
        if name == Grace.name and settings:
            raise InputError(
                f"--tune {Grace.name}.{next(iter(settings))}; expected --set or --config for how it searches"
            )
        if name != Grace.name:
            if name not in offered():
                raise InputError(
                    f"method {name!r}; expected one of {', '.join((Grace.name, *offered()))} (GAIL, AIRL, BC and PPO "
                    "on the true reward come with grace-irl-baselines: docs/compare.md)"
                )
            return load_method(name, **settings)
        comparison, fit = self.settings.comparison, self.settings.fit
        expand: ExpandConfig = fit.expand.model_copy(update={"steps": comparison.steps, "env": comparison.env})
        data = fit.data.model_copy(update={"goals": ""})  # which the demonstrations are marked with
        return Grace(
            fit.model_copy(update={"expand": expand, "data": data}),
            folder,
            self.demonstrations,
            Path(comparison.reward) if comparison.reward else None,
            note,
        )

    def label(self, problem: PolicyProblem, environment: str = "") -> str:
        """The name of a problem's environment in tables: as made, or `file.py:function` for one of the user's own."""
        asked = environment or self.settings.comparison.env
        return Path(asked).name if is_adapter(asked) else str(_metadata(problem).environment)

    def deterministic(self, problem: PolicyProblem) -> bool:
        """Whether policies of a problem are evaluated by their likeliest actions."""
        from grace_irl.rl.hyperparameters import hyperparameters

        metadata = _metadata(problem)
        return hyperparameters(metadata.environment, metadata.kind).deterministic

    def interface(self, problem: PolicyProblem) -> str:
        """The interface of a reward network: the shape of observations, and the actions."""
        with closing(problem.make_env()) as environment:
            return f"observations of shape {environment.observation_space.shape} and {environment.action_space}"


def _metadata(problem: PolicyProblem) -> Metadata:
    with closing(problem.make_env()) as environment:
        found: Metadata = environment.get_wrapper_attr("view").metadata
    return found
