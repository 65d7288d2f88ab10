"""The labels of a run's demonstrations; for the rule "goal" a model may be asked (docs/runs.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from grace_irl.config import Config
from grace_irl.demos.goals import Goals, goals_of, load_goals, save_goals, with_goals
from grace_irl.demos.label_rule import RuleChoice, choose_rule, earlier_rule
from grace_irl.demos.labels import Labelled, Problem, label, unmarked
from grace_irl.demos.trajectory import Demonstration, Demonstrations, LabelRule
from grace_irl.errors import GraceError, InputError
from grace_irl.evaluate.columns import require_both_sides
from grace_irl.propose.cleaning import ANSWERS, Cleaner
from grace_irl.propose.goals import GoalAnswer, last_words
from grace_irl.propose.llm import Asking
from grace_irl.runs.engine import run_to_end
from grace_irl.runs.folder import RunPaths
from grace_irl.runs.record import trajectory_rows
from grace_irl.runs.run import Interrupted
from grace_irl.runs.store import Store


def chosen_rule(config: Config, demonstrations: Demonstrations) -> RuleChoice:
    """The label rule of a new run.

    Raises:
        InputError: as `choose_rule`.
    """
    asked = config.data.label
    if config.proposer.name != "replay":
        return choose_rule(demonstrations, asked)
    if asked:
        return RuleChoice(asked, "as recorded, or as chosen with --label")
    return RuleChoice(earlier_rule(demonstrations), "as the version chose that made the recording")


def with_label(config: Config, rule: str) -> Config:
    """The configuration with this label rule, if it states none yet and the rule is one."""
    if config.data.label or rule not in get_args(LabelRule):
        return config
    return config.model_copy(update={"data": config.data.model_copy(update={"label": rule})})


@dataclass(frozen=True, eq=False)
class Labelling:
    """Demonstrations, and what is known of their goal states.

    Attributes:
        demonstrations: split.
        choice: which expert states are positive, and why.
        answers: those about goal states so far, in order; for the rule "goal".
    """

    demonstrations: Demonstrations
    choice: RuleChoice
    answers: tuple[GoalAnswer, ...] = ()

    @property
    def rule(self) -> LabelRule:
        """The rule for positive expert states."""
        return self.choice.rule

    @property
    def goals(self) -> dict[str, tuple[int, ...]]:
        """Goal states by digest, 1-based: the last word on each trajectory."""
        return last_words(self.answers)

    @property
    def silent(self) -> tuple[Labelled, ...]:
        """Expert trajectories, each once, of whose goal states nothing is known; () for other rules."""
        if self.rule != "goal":
            return ()
        known = self.goals
        experts = (found[0] for digest, found in _experts(self.demonstrations).items() if digest not in known)
        return tuple(unmarked(item) for item in experts)

    def problem(self) -> Problem:
        """The labelled demonstrations; without a mark while trajectories are silent.

        Raises:
            InputError: as `label`.
        """
        if self.silent:
            return Problem(self.demonstrations.metadata, self.rule, tuple(map(unmarked, self.demonstrations)))
        return label(self.demonstrations, self.rule, goals=self.goals if self.rule == "goal" else None)


def begun(
    demonstrations: Demonstrations, choice: RuleChoice, file: str, recorded: Sequence[GoalAnswer] = ()
) -> Labelling:
    """The labelling of a new run: a person's file counts most, then what a recorded run knew, then the data's marks.

    Args:
        file: of goal states (`--goals`), or "".
        recorded: answers of the run that is replayed.

    Raises:
        InputError: goal states for another rule, of none of the trajectories, or outside one.
    """
    if choice.rule != "goal":
        if file:
            raise InputError(f"--goals {file} with --label {choice.rule}, which does not use it; expected --label goal")
        return Labelling(demonstrations, choice)
    given = load_goals(file) if file else {}
    experts = _experts(demonstrations)
    if given and not given.keys() & experts.keys():
        raise InputError(
            f"{file}: none of its {len(given)} entries is of an expert trajectory here; "
            "expected their digests: see them with grace-irl demos inspect --goals"
        )
    answers: list[GoalAnswer] = []
    for digest, items in experts.items():
        marked = next((goals for item in items if (goals := goals_of(item)) is not None), None)
        if digest in given:
            answers.append(GoalAnswer(digest, 0, "file", _within(items[0], given)))
        elif any(answer.digest == digest for answer in recorded):
            answers += [answer for answer in recorded if answer.digest == digest]
        elif marked is not None:
            answers.append(GoalAnswer(digest, 0, "data", marked))
    return Labelling(demonstrations, choice, tuple(answers))


def resumed(
    demonstrations: Demonstrations, choice: RuleChoice, folder: Path, store: Store, note: Callable[[str], None]
) -> Labelling:
    """The labelling of a run that goes on: its own answers.

    As long as no state is labelled (a model's answers were still missing, or made no problem of it), what a person
    wrote into the run's file of goal states counts, too. Later the file is for new runs.

    Raises:
        InputError: a file of goal states that cannot be read, or does not fit the trajectories.
    """
    labelling = Labelling(demonstrations, choice, tuple(store.goals()))
    edited = _edited(labelling, folder)
    if not edited:
        return labelling
    if any(row.positives for row in store.trajectories()):
        note(_too_late(folder))
        return labelling
    said, experts = Counter(answer.digest for answer in labelling.answers), _experts(demonstrations)
    answers = [GoalAnswer(name, said[name], "file", _within(experts[name][0], edited)) for name in edited]
    store.add_goals(answers)
    return replace(labelling, answers=(*labelling.answers, *answers))


def marked(demonstrations: Demonstrations, folder: Path, note: Callable[[str], None]) -> Demonstrations:
    """Demonstrations with the goal states of a run as their own marks, so that later runs ask nobody again.

    Args:
        demonstrations: as the run got them.
        folder: of a run that has settled its labels; of one with another rule the demonstrations stay as they are.
        note: gets a line if the run's file of goal states was edited since then, which counts for new runs only.

    Raises:
        InputError: a file of goal states that cannot be read.
    """
    with closing(Store(RunPaths(folder).database)) as store:
        if store.meta("label") != "goal":
            return demonstrations
        choice = RuleChoice("goal", store.meta("label_reason"))
        labelling = Labelling(demonstrations, choice, tuple(store.goals()))
    if _edited(labelling, folder):
        note(_too_late(folder))
    return with_goals(demonstrations, labelling.goals)


def ask(
    labelling: Labelling, asking: Asking, folder: Path, store: Store, in_flight: int, resume: str = ""
) -> Labelling:
    """Asks a model for the goal states of the silent trajectories, held-out ones too; each answer is kept at once.

    Args:
        labelling: what is known so far.
        asking: puts the prompts.
        folder, store: of the run.
        in_flight: trajectories that are asked about at once.
        resume: how to go on, for messages; "": with the run.

    Raises:
        GraceError: answers that cannot be read, or nobody answers any more; what was answered is saved.
        Interrupted: by Ctrl-C; what was answered is saved.
    """
    said = Counter(answer.digest for answer in labelling.answers)
    resume = resume or RunPaths(folder).resume

    def keep(answer: GoalAnswer) -> None:
        store.add_goals([answer])

    try:
        failures = run_to_end(Cleaner(asking, keep, in_flight).clean(labelling.silent, said))
    except KeyboardInterrupt:
        store.add_event("interrupted", "while goal states were asked for")
        raise Interrupted(folder, None) from None
    except GraceError as error:
        store.add_event("failed", str(error))
        raise error.saved(resume) from error
    finally:
        labelling = replace(labelling, answers=tuple(store.goals()))
        _save(labelling, folder)
    if failures:
        digest, failure = next(iter(failures.items()))
        source = next(item.trajectory.source for item in labelling.silent if item.trajectory.digest == digest)
        more = f" ({len(failures) - 1} more like it)" if len(failures) > 1 else ""
        said_so = (
            f"{source or 'an expert trajectory'} ({digest}): no goal states after {ANSWERS} answers, the last: "
            f"{failure}{more}; write them into {RunPaths(folder).goals}, such as {digest} = [12], or [] for none, "
            f"and go on with {resume}, which asks for what is still missing"
        )
        store.add_event("failed", said_so)
        unanswered = GraceError(said_so)
        unanswered.says_how_to_go_on = True
        raise unanswered
    return labelling


def settled(labelling: Labelling, folder: Path, store: Store, note: Callable[[str], None], resume: str = "") -> Problem:
    """The labelled problem of a run whose folder exists, kept in its store.

    Args:
        labelling: everything known.
        folder, store: of the run.
        note: gets the findings.
        resume: as for `ask`.

    Raises:
        InputError: labels that leave nothing to tell apart.
    """
    if labelling.rule == "goal" and not RunPaths(folder).goals.exists():
        _save(labelling, folder)
    try:
        problem = labelling.problem()
        if labelling.demonstrations.items:  # a method may need none
            require_both_sides(problem.train)
    except InputError as error:
        raise InputError(
            f"{error}; correct {RunPaths(folder).goals}, and go on with {resume or RunPaths(folder).resume}"
        ) from None
    rows, before = trajectory_rows(problem), store.trajectories()
    if rows != before:  # labelled now, or moved to other files
        store.set_problem(problem)
    if [row.positives for row in rows] != [row.positives for row in before]:
        found = labelling.goals
        note(
            f"goal states: {sum(map(bool, found.values()))} of {len(found)} different expert trajectories have some; "
            f"see and correct them in {RunPaths(folder).goals}"
        )
    return problem


def _edited(labelling: Labelling, folder: Path) -> dict[str, tuple[int, ...]]:
    """The difference of a run's file of goal states from the run's own."""
    path = RunPaths(folder).goals
    if labelling.rule != "goal" or not path.exists():
        return {}
    known, experts = labelling.goals, _experts(labelling.demonstrations)
    written = {name: goals for name, goals in load_goals(path).items() if name in experts}
    return {name: goals for name, goals in written.items() if known.get(name) != tuple(sorted(set(goals)))}


def _too_late(folder: Path) -> str:
    path = RunPaths(folder).goals
    return f"{path} was edited: the run keeps the goal states that it began with; for a new run: --goals {path}"


def _save(labelling: Labelling, folder: Path) -> None:
    """Writes what is known of goal states beside the run, for a person to read, correct and use again."""
    save_goals(RunPaths(folder).goals, labelling.goals, labelling.demonstrations)


def _experts(demonstrations: Demonstrations) -> dict[str, list[Demonstration]]:
    """Expert trajectories by digest, equal ones together, in order."""
    found: dict[str, list[Demonstration]] = {}
    for item in demonstrations:
        if item.role == "expert":
            found.setdefault(item.trajectory.digest, []).append(item)
    return found


def _within(item: Demonstration, goals: Goals) -> tuple[int, ...]:
    """The goal states that a file gives a trajectory, checked and in order."""
    return goals_of(item, goals) or ()
