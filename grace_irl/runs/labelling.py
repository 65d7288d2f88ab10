"""The labels of a run's demonstrations (docs/runs.md).

A label rule decides which expert states are positive: "all", the "last" of each trajectory, or its "goal" states. A
file, marks in the data, a model or a person names the goal states.
"""

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
from grace_irl.runs.folder import RunPaths
from grace_irl.runs.loop import run_to_end
from grace_irl.runs.record import trajectory_rows
from grace_irl.runs.run import Interrupted
from grace_irl.runs.store import Store


def chosen_rule(config: Config, demonstrations: Demonstrations) -> RuleChoice:
    """Choose the label rule of a new run.

    The settings of a replay hold the user's rule, or else the rule of the replayed recording. A recording of an old
    version of grace-irl contains no rule. Its replay uses the rule that the old version chose.

    Raises:
        InputError: files or environments that support different rules.
    """
    asked = config.data.label
    if config.proposer.name != "replay":
        return choose_rule(demonstrations, asked)
    if asked:
        return RuleChoice(asked, "as recorded, or as chosen with --label")
    return RuleChoice(earlier_rule(demonstrations), "as the version chose that made the recording")


def with_label(config: Config, rule: str) -> Config:
    """Set the label rule in a copy of the configuration, unless a rule is set already. Ignore an unknown rule."""
    if config.data.label or rule not in get_args(LabelRule):
        return config
    return config.model_copy(update={"data": config.data.model_copy(update={"label": rule})})


@dataclass(frozen=True, eq=False)
class Labelling:
    """Demonstrations with their label rule and the goal states known so far.

    Attributes:
        demonstrations: demonstrations, split into training and held-out data.
        choice: the label rule, with its reason.
        answers: answers about goal states so far, in order; () for other rules than "goal".
    """

    demonstrations: Demonstrations
    choice: RuleChoice
    answers: tuple[GoalAnswer, ...] = ()

    @property
    def rule(self) -> LabelRule:
        """The label rule, without its reason."""
        return self.choice.rule

    @property
    def goals(self) -> dict[str, tuple[int, ...]]:
        """1-based indices of goal states by trajectory digest, from the last valid answer about each trajectory."""
        return last_words(self.answers)

    @property
    def silent(self) -> tuple[Labelled, ...]:
        """Expert trajectories with unknown goal states, without repeats; () for other rules than "goal"."""
        if self.rule != "goal":
            return ()
        known = self.goals
        experts = (found[0] for digest, found in _experts(self.demonstrations).items() if digest not in known)
        return tuple(unmarked(item) for item in experts)

    def problem(self) -> Problem:
        """The labelled demonstrations. While goal states of an expert trajectory are unknown, no state is positive.

        Raises:
            InputError: demonstrations that do not fit the rule, or no goal state in any expert trajectory.
        """
        if self.silent:
            return Problem(self.demonstrations.metadata, self.rule, tuple(map(unmarked, self.demonstrations)))
        return label(self.demonstrations, self.rule, goals=self.goals if self.rule == "goal" else None)


def begun(
    demonstrations: Demonstrations, choice: RuleChoice, file: str, recorded: Sequence[GoalAnswer] = ()
) -> Labelling:
    """Begin the labelling of a new run.

    Goal states of a trajectory come from the user's file, else from the replayed run, else from marks in the data. For
    a sample, the entries of the file about other trajectories are kept, too.

    Args:
        demonstrations: demonstrations, split into training and held-out data.
        choice: the label rule.
        file: path of the file of goal states (`--goals`), or "".
        recorded: answers about goal states from the replayed run; () without a replay.

    Raises:
        InputError: a file of goal states although the rule is not "goal", a file whose entries match no expert
            trajectory, or a goal state whose index is outside its trajectory.
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
    replayed: dict[str, list[GoalAnswer]] = {}
    for answer in recorded:
        replayed.setdefault(answer.digest, []).append(answer)
    for digest, items in experts.items():
        marked = next((goals for item in items if (goals := goals_of(item)) is not None), None)
        if digest in given:
            answers.append(GoalAnswer(digest, 0, "file", _within(items[0], given)))
        elif digest in replayed:
            answers += replayed[digest]
        elif marked is not None:
            answers.append(GoalAnswer(digest, 0, "data", marked))
    if demonstrations.sampled is not None:  # for the test outside the sample, where only a file's goal states are known
        others = {**last_words(recorded), **demonstrations.sampled.goals, **given}
        answers += [GoalAnswer(digest, 0, "file", others[digest]) for digest in others if digest not in experts]
    return Labelling(demonstrations, choice, tuple(answers))


def resumed(
    demonstrations: Demonstrations, choice: RuleChoice, folder: Path, store: Store, note: Callable[[str], None]
) -> Labelling:
    """Read the labelling of a resumed run from the answers in its store.

    Until the labels are complete, the user may correct the run's file of goal states. Later edits have no effect, and
    `note` receives a line about them. The labels are complete once the store has an answer about each expert
    trajectory, and at least one goal state.

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
    """Mark the demonstrations with the goal states of a run, so that later runs need no answers about goal states.

    If the run has another rule than "goal", return the demonstrations unchanged.

    Args:
        demonstrations: the demonstrations of the run.
        folder: the folder of a run whose labels are complete.
        note: callback for a line to the user. It is called if the user edited the run's file of goal states after the
            labels were complete.

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
    labelling: Labelling,
    asking: Asking,
    folder: Path,
    store: Store,
    in_flight: int,
    resume: str = "",
    limit: Callable[[int, int], str] = lambda *_: "",
) -> Labelling:
    """Ask a model or a person for all missing goal states, and save each answer. Return the complete labelling.

    Args:
        labelling: the labelling so far.
        asking: client of the model or the person that answers prompts.
        folder, store: folder and store of the run.
        in_flight: maximum number of prompts in parallel. Each prompt is about one trajectory.
        resume: command-line arguments that resume the run, for messages. "" means `--resume FOLDER` of this run.
        limit: function whose arguments are the numbers of input and output tokens so far. It returns the stop rule that
            they break, in words, or "".

    Raises:
        GraceError: unusable answers, a lost server, or a stop rule. All answers are saved.
        Interrupted: Ctrl-C. All answers are saved.
    """
    said = Counter(answer.digest for answer in labelling.answers)
    resume = resume or RunPaths(folder).resume

    def keep(answer: GoalAnswer) -> None:
        store.add_goals([answer])
        require_tokens()

    def require_tokens() -> None:
        answers = store.goals()
        known = {each.digest for each in answers if each.indices is not None}
        reached = limit(sum(each.tokens_in for each in answers), sum(each.tokens_out for each in answers))
        if reached and any(item.trajectory.digest not in known for item in labelling.silent):
            raise GraceError(f"{reached}, while goal states were asked for; expected a higher limit, or none")

    try:
        require_tokens()
        failures = run_to_end(Cleaner(asking, keep, in_flight).clean(labelling.silent, said))
    except KeyboardInterrupt:
        store.add_event("interrupted", "while a model was asked for goal states")
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


def settled(
    labelling: Labelling,
    folder: Path,
    store: Store,
    note: Callable[[str], None],
    resume: str = "",
    *,
    judges: bool = True,
) -> Problem:
    """Label the demonstrations of a run, and save them in its store.

    Args:
        labelling: the complete labelling.
        folder, store: folder and store of the run.
        note: callback for a line to the user about the goal states.
        resume: command-line arguments that resume the run, for messages. "" means `--resume FOLDER` of this run.
        judges: whether these labels decide the scores of programs. False if, for example, trained policies decide. If
            True, the training data of each task must have positive and negative states.

    Raises:
        InputError: a task lacks positive or negative states, or no expert trajectory has a goal state.
    """
    if labelling.rule == "goal" and not RunPaths(folder).goals.exists():
        _save(labelling, folder)
    try:
        problem = labelling.problem()
        if judges and labelling.demonstrations.items:
            require_both_sides(problem.train)
    except InputError as error:
        raise InputError(
            f"{error}; correct {RunPaths(folder).goals}, and go on with {resume or RunPaths(folder).resume}"
        ) from None
    rows, before = trajectory_rows(problem), store.trajectories()
    if rows != before:  # the labels are new, or the files have moved
        store.set_problem(problem)
    if labelling.rule == "goal" and [row.positives for row in rows] != [row.positives for row in before]:
        experts = _experts(labelling.demonstrations)
        found = {digest: goals for digest, goals in labelling.goals.items() if digest in experts}
        note(
            f"goal states: {sum(map(bool, found.values()))} of {len(found)} different expert trajectories have some; "
            f"see and correct them in {RunPaths(folder).goals}"
        )
    return problem


def _edited(labelling: Labelling, folder: Path) -> dict[str, tuple[int, ...]]:
    """The changed entries of the run's file of goal states, by trajectory digest."""
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
    """Write the known goal states into a file in the run's folder. A person can correct and reuse the file."""
    save_goals(RunPaths(folder).goals, labelling.goals, labelling.demonstrations)


def _experts(demonstrations: Demonstrations) -> dict[str, list[Demonstration]]:
    """Expert demonstrations by trajectory digest, in order. Equal trajectories share an entry."""
    found: dict[str, list[Demonstration]] = {}
    for item in demonstrations:
        if item.role == "expert":
            found.setdefault(item.trajectory.digest, []).append(item)
    return found


def _within(item: Demonstration, goals: Goals) -> tuple[int, ...]:
    """1-based indices of a trajectory's goal states from the entries `goals` of a file, checked and sorted."""
    return goals_of(item, goals) or ()
