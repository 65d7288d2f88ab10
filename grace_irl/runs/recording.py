"""Recordings: files with the answers of a run's proposer. Other people can replay a recording without a model.

If trained policies judge the programs of the run, the recording also contains their trainings.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from grace_irl.atomic import write_atomically
from grace_irl.config import Config
from grace_irl.contents import require_own_file
from grace_irl.errors import InputError
from grace_irl.evaluate.evaluation import Evaluator
from grace_irl.methods.registry import method_of, needs_demonstrations
from grace_irl.methods.trained import TASK_FILE, plan_of
from grace_irl.propose.given import require_answers
from grace_irl.propose.goals import GoalAnswer
from grace_irl.propose.material import Workbench
from grace_irl.propose.protocol import Proposal
from grace_irl.runs.acting import shareable
from grace_irl.runs.config import flat, resolve, validated
from grace_irl.runs.folder import RunPaths
from grace_irl.runs.labelling import with_label
from grace_irl.runs.record import TrajectoryRow
from grace_irl.runs.run import is_own, require_single
from grace_irl.runs.store import Store
from grace_irl.runs.trainings import policies_of, trainings_of
from grace_irl.tasks.recorded import RecordedFailure, RecordedTraining, RecordedTrainings, TakesRecorded
from grace_irl.toml import from_json

FORMAT = "grace-irl recording 3"
WITH_TRAININGS = "grace-irl recording 4"
"""Format 4 has lines about trainings. A recording without trainings is written in format 3."""
OLDER = ("grace-irl recording 2", "grace-irl recording 1")  # format 1 lists no trajectories
_MOST = 2**53
"""Largest valid token count, index or attempt in a recording."""
_NEEDED = {"source", "failure"}  # fields of an answer that are written even if they have default values


Content = list[tuple[str, str, str, str]]
"""The trajectories of a run, sorted. Each entry has the digest, role, task and split of one trajectory."""


@dataclass(frozen=True)
class _Head:
    """The header of a recording without its settings.

    Attributes:
        calls: number of the run's requests that have a result: a score, or a failure.
        data: the trajectories of the run; [] in format 1.
        task: digests of the parts of the run's task (`digests_of`); {} before format 4, and without trainings.
    """

    calls: int
    data: Content = field(default_factory=list)
    task: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Place:
    """The call that an answer belongs to.

    Attributes:
        index: index of the request.
        attempt: 0 for the first answer to the request; later numbers for follow-up calls, such as repairs.
    """

    index: int
    attempt: int


@dataclass(frozen=True)
class _Goals:
    """A line of a recording with an answer that names the goal states of an expert trajectory (label rule "goal")."""

    goals: GoalAnswer


@dataclass(frozen=True)
class _Trained:
    """A line of a recording with a finished training."""

    training: RecordedTraining


@dataclass(frozen=True)
class _Failed:
    """A line of a recording with a program that failed, if the method trains policies."""

    failed: RecordedFailure


@dataclass(frozen=True)
class Written:
    """Numbers of entries in a recording that was written.

    Attributes:
        answers: number of answers, without those about goal states.
        trainings: number of finished trainings.
    """

    answers: int
    trainings: int


class Recorded:
    """The content of a recording.

    The file has JSON lines: a header with settings and trajectories, then answers about goal states, then answers with
    programs, then trainings and failures of these programs.

    Attributes:
        trainings: the trainings of the run; none before format 4.
        config: the settings in the header, without those that run code, read files or contact a server (`shareable`).
        calls: number of the run's requests that have a result: a score, or a failure.
        content: the trajectories of the run; [] in a recording of format 1, which does not list them.
    """

    def __init__(
        self,
        config: Config,
        answers: dict[tuple[int, int], Proposal],
        calls: int,
        goals: Sequence[GoalAnswer],
        content: Content,
        trainings: RecordedTrainings = RecordedTrainings(),
    ) -> None:
        self.trainings = trainings
        self.config = config
        self.calls = calls
        self.content = content
        self._answers = answers
        self._goals = tuple(goals)

    def goals(self) -> Sequence[GoalAnswer]:
        """Answers about goal states, in order."""
        return self._goals

    def proposal(self, index: int, attempt: int = 0) -> Proposal | None:
        """The answer to request `index` at this attempt (`_Place`); None if the recording has none."""
        return self._answers.get((index, attempt))

    def close(self) -> None:
        """Do nothing, because no file is open. Callers close a `Recorded` just as they close a `Store`."""


def opened_recording(path: Path) -> Store | Recorded:
    """Open the answers in a run's folder or in a recording.

    Raises:
        InputError: a path that is neither a run nor a recording, or that has no answers.
    """
    if path.is_dir():
        require_single(path)
    found: Store | Recorded = Store(RunPaths(path).database) if path.is_dir() else _read(path)
    try:
        require_answers(found, str(path))
    except BaseException:
        found.close()
        raise
    return found


def recorded_config(path: Path) -> Config:
    """The configuration for a replay of a recorded run. The replay stops after as many results as the run had.

    A recording may come from somebody else. So it provides no settings that run code, read files or contact a server
    (`shareable`). The folder of a run also provides the names of the demonstrations, if this user made the run on this
    machine.

    Args:
        path: the folder of a run, or a recording.

    Raises:
        InputError: a path that is neither a run nor a recording, or that has no answers.
    """
    if path.is_dir():
        require_own_file(RunPaths(path).config)
    found = opened_recording(path)
    try:
        if isinstance(found, Recorded):
            whole, calls, own = found.config, found.calls, False
        else:
            whole, calls = with_label(resolve(RunPaths(path).config), found.meta("label")), len(found.told())
            own = is_own(found, whole, path)
    finally:
        found.close()
    config = shareable(whole)
    if own:
        data = config.data.model_copy(update=whole.data.model_dump(include={"demos", "experts", "negatives"}))
        config = config.model_copy(update={"data": data})  # `data.goals` stays empty: recorded answers name the goals
    proposer = config.proposer.model_copy(update={"name": "replay", "recording": str(path.absolute())})
    # The number of results says where the recorded run ended, whichever limit ended it.
    ends = {"max_calls": max(calls, 1), "max_tokens": None, "max_cost": None, "max_seconds": None}
    stop = config.stop.model_copy(update=ends)
    return config.model_copy(update={"proposer": proposer, "stop": stop})


def require_recorded_data(config: Config, rows: Sequence[TrajectoryRow]) -> None:
    """Check that a replay has the demonstrations of the recorded run.

    A recording of format 1 is not checked, because it does not list the demonstrations.

    Args:
        config: the configuration of the new run. Without a replay, there is nothing to check.
        rows: the demonstrations of the new run.

    Raises:
        InputError: different trajectories, roles, tasks or splits.
    """
    recording = config.proposer.recording
    if config.proposer.name != "replay" or not recording:
        return
    with closing(opened_recording(Path(recording))) as found:
        recorded = found.content if isinstance(found, Recorded) else content_of(found.trajectories())
    given = content_of(rows)
    if not recorded or recorded == given:
        return
    old, new = Counter(row[:3] for row in recorded), Counter(row[:3] for row in given)
    if old == new:
        raise InputError(
            f"{recording}: recorded with other held-out or validation trajectories among the same "
            "demonstrations; expected the same split (--seed, --held-out); a later round of an expansion has the split "
            "of its first round, which no other run can have"
        )
    swaps = recorded_config(Path(recording)).data.swaps
    expected = "the demonstrations that it was recorded on (--demos)"
    if swaps != config.data.swaps:
        expected = "--swaps, as it was recorded" if swaps else "no --swaps, as it was recorded"
    elif not old - new and new.keys() == old.keys():
        expected = "each of them once: some are named twice"
    raise InputError(
        f"{recording}: recorded on {len(recorded)} trajectories, of which {(old - new).total()} are not among the "
        f"{len(given)} demonstrations here with the same role and task; {(new - old).total()} here are not in the "
        f"recording; expected {expected}"
    )


def is_of_task(path: Path) -> bool:
    """Whether the folder of a run, or a recording, is of a run with a task.

    Raises:
        InputError: a path that is neither a run nor a recording.
    """
    if path.is_dir():
        return (path / TASK_FILE).exists()
    with closing(opened_recording(path)) as found:
        return isinstance(found, Recorded) and bool(found.trainings.task)


def changed_search(config: Config) -> str:
    """A line for the user if a replay searches with other settings than the recorded run did; "" if not.

    A replay takes answers by the index of their requests. With other settings, requests may have other operators and
    parents than the answers were written for.
    """
    if config.proposer.name != "replay" or not config.proposer.recording:
        return ""
    before, now = flat(recorded_config(Path(config.proposer.recording))), flat(config)
    own = (
        "method",
        "seed",
        "search.",
        "policy.checkpoint",
        "policy.train_seeds",
        "policy.train_steps",
        *(f"{name}." for name in method_of(config).sections if name != "policy"),
    )
    without_effect = ("search.lag",) if method_of(config).waits(config) else ()
    both = [key for key in now if key in before and key.startswith(own) and key not in without_effect]
    changed = [key for key in both if before[key] != now[key]]
    if not changed:
        return ""
    told = ", ".join(f"{key} was {before[key]!r} and is {now[key]!r}" for key in changed[:4])
    return (
        f"this replay searches otherwise than the recorded run ({told}): it takes the recorded answers in their order, "
        "whatever operator and parents they were written for"
    )


def content_of(rows: Sequence[TrajectoryRow]) -> Content:
    """The trajectories of a run without file names, so that two runs can be compared."""
    return sorted((row.digest, row.role, row.task, row.split) for row in rows)


def recorded_trainings(path: Path) -> RecordedTrainings:
    """The trainings of a recorded run.

    Args:
        path: the folder of a run, or a recording.

    Raises:
        InputError: a path that is neither a run nor a recording, or damaged trainings.
    """
    with closing(opened_recording(path)) as found:
        if isinstance(found, Recorded):
            return found.trainings
        require_own_file(RunPaths(path).config)
        return trainings_of(found, resolve(RunPaths(path).config))


def with_recorded_scores(opens: Callable[[Workbench], Evaluator], config: Config) -> Callable[[Workbench], Evaluator]:
    """Return a function that makes the evaluator. With `--recorded-scores`, the evaluator uses recorded trainings.

    Args:
        opens: function that makes an evaluator without recorded trainings.
        config: the configuration of the run.

    Raises:
        InputError: no recording, or trainings that differ from the trainings that the run would do itself.
    """
    policies = policies_of(config)
    if policies is None or not policies.recorded_scores:
        return opens
    if config.proposer.name != "replay" or not config.proposer.recording:
        raise InputError("--recorded-scores without a recording; expected --replay with a run or an exported recording")
    path = Path(config.proposer.recording)
    recorded = recorded_trainings(path)
    recorded.require(plan_of(config))

    def opened(bench: Workbench) -> Evaluator:
        evaluator = opens(bench)
        if not isinstance(evaluator, TakesRecorded):
            raise InputError(f"--recorded-scores: method {config.method!r} cannot take them; expected no such flag")
        evaluator.take(recorded)
        bench.note(f"scores are taken from the recording {path}, and not trained here (--recorded-scores)")
        return evaluator

    return opened


def write_recording(store: Store, config: Config, path: Path) -> Written:
    """Write the answers and trainings of a run into a recording. Return their numbers.

    An answer is left out if its request has no result yet.

    Raises:
        InputError: the run has no answer yet, or a training is damaged.
    """
    require_answers(store, str(store.folder))
    trained = trainings_of(store, config)
    told = store.told()
    about = content_of(store.trajectories())
    settings = shareable(with_label(config, store.meta("label"))).model_dump(mode="json")
    header = {"format": FORMAT, "calls": len(told), "config": settings, "data": about}
    if trained.task:
        header["task"] = trained.task
    if trained.trainings or trained.failures:
        header["format"] = WITH_TRAININGS
    lines = [json.dumps(header), *(json.dumps({"goals": asdict(answer)}) for answer in store.goals())]
    count = 0
    for index, attempt, proposal in store.proposals():
        if index in told:
            lines.append(json.dumps({"index": index, "attempt": attempt} | _without_defaults(proposal)))
            count += 1
    lines += (json.dumps({"training": asdict(each)}) for each in trained.trainings)
    lines += (json.dumps({"failed": asdict(each)}) for each in trained.failures)
    write_atomically(path, "\n".join(lines) + "\n")
    return Written(count, len(trained.trainings))


def _without_defaults(proposal: Proposal) -> dict[str, Any]:
    plain = asdict(Proposal(""))
    return {name: value for name, value in asdict(proposal).items() if name in _NEEDED or value != plain[name]}


def _read(path: Path) -> Recorded:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected the folder of a run, or a recording") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text; expected a recording made by grace-irl export --recording") from None
    answers, goals = {}, dict[tuple[str, int], GoalAnswer]()
    trainings, failures = dict[tuple[str, str], RecordedTraining](), dict[str, RecordedFailure]()
    reached = 1
    try:
        header = json.loads(lines[0])
        if header.get("format") not in (WITH_TRAININGS, FORMAT, *OLDER):
            raise ValueError(f"format {header.get('format')!r}")
        config, head = validated(header["config"]), from_json(_Head, lines[0])
        named = header["format"] != OLDER[-1]
        content = sorted(head.data) if named else []
        if named and not content and needs_demonstrations(config.method):
            raise ValueError("no data")
        for line in lines[1:]:
            reached += 1
            entry = json.loads(line)
            json.dumps(entry, ensure_ascii=False).encode()  # raises for lone surrogates: SQLite cannot store them
            if "goals" in entry:
                said = from_json(_Goals, line).goals
                if goals.setdefault((said.digest, said.attempt), said) is not said:
                    raise ValueError("an answer about goal states that an earlier line holds")
                if max(map(abs, (said.attempt, said.tokens_in, said.tokens_out))) > _MOST:
                    raise ValueError("a number that no run has")
                continue
            if header["format"] == WITH_TRAININGS and "training" in entry:
                training = from_json(_Trained, line).training
                training.require_sound()
                if trainings.setdefault((training.program, training.name), training) is not training:
                    raise ValueError("a training that an earlier line holds")
                continue
            if header["format"] == WITH_TRAININGS and "failed" in entry:
                failure = from_json(_Failed, line).failed
                failure.require_sound()
                if failures.setdefault(failure.program, failure) is not failure:
                    raise ValueError("a failure that an earlier line holds")
                continue
            place, answer = from_json(_Place, line), from_json(Proposal, line)
            if header["format"] in OLDER:  # older formats have only the text of the failure
                answer = replace(answer, exhausted=answer.failure.lower().startswith("exhausted"))
            if max(map(abs, (place.index, place.attempt, answer.tokens_in, answer.tokens_out))) > _MOST:
                raise ValueError("a number that no run has")
            answers[place.index, place.attempt] = answer
    except (InputError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        reason = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
        raise InputError(
            f"{path}, line {reached}: not a recording ({reason}); expected one made by grace-irl export --recording"
        ) from None
    trained = RecordedTrainings(str(path), head.task, tuple(trainings.values()), tuple(failures.values()))
    return Recorded(config, answers, head.calls, tuple(goals.values()), content, trained)
