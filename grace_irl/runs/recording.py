"""Recordings: files with the answers of a run's proposer. With one, others can replay the run without the model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from grace_irl.atomic import write_atomically
from grace_irl.config import Config, ProposerConfig
from grace_irl.contents import require_own_file
from grace_irl.errors import InputError
from grace_irl.methods.registry import needs_demonstrations
from grace_irl.propose.given import require_answers
from grace_irl.propose.goals import GoalAnswer
from grace_irl.propose.protocol import Proposal
from grace_irl.runs.acting import shareable
from grace_irl.runs.config import resolve, validated
from grace_irl.runs.folder import RunPaths
from grace_irl.runs.labelling import with_label
from grace_irl.runs.record import TrajectoryRow
from grace_irl.runs.run import is_own
from grace_irl.runs.store import Store
from grace_irl.toml import from_json

FORMAT = "grace-irl recording 3"
OLDER = ("grace-irl recording 2", "grace-irl recording 1")  # format 1 lists no trajectories
_MOST = 2**53
"""Largest valid token count, index or attempt."""
_NEEDED = {"source", "failure"}  # fields of an answer that a recording contains even with their default values


Content = list[tuple[str, str, str, str]]
"""(digest, role, task, split) of each trajectory, sorted."""


@dataclass(frozen=True)
class _Head:
    """The header of a recording without its settings.

    Attributes:
        calls: number of the run's requests that have a result: a score, or a failure.
        data: the trajectories of the run; [] in format 1.
    """

    calls: int
    data: Content = field(default_factory=list)


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


class Recorded:
    """The content of a recording.

    The file has JSON lines: a header with settings and trajectories, then answers about goal states, then answers with
    programs.

    Attributes:
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
    ) -> None:
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
        InputError: a path that is neither a run nor a recording, or one without answers.
    """
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
    (`shareable`). The folder of a run also provides its demonstrations, if this user made the run on this machine.

    Args:
        path: the folder of a run, or a recording.

    Raises:
        InputError: a path that is neither a run nor a recording, or one without answers.
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
        data = config.data.model_copy(update={"demos": whole.data.demos, "negatives": whole.data.negatives})
        config = config.model_copy(update={"data": data})  # without the file of goal states: the answers hold them
    proposer = config.proposer.model_copy(update={"name": "replay", "recording": str(path.absolute())})
    stop = config.stop.model_copy(update={"max_calls": max(calls, 1), "max_seconds": None})
    return config.model_copy(update={"proposer": proposer, "stop": stop})


def require_recorded_data(proposer: ProposerConfig, rows: Sequence[TrajectoryRow]) -> None:
    """Check that a replay has the demonstrations of the recorded run. A recording of format 1 does not list them.

    Args:
        proposer: settings of the proposer. Without a replay, there is nothing to check.
        rows: the demonstrations of the new run.

    Raises:
        InputError: different trajectories, roles, tasks or splits.
    """
    if proposer.name != "replay" or not proposer.recording:
        return
    with closing(opened_recording(Path(proposer.recording))) as found:
        recorded = found.content if isinstance(found, Recorded) else content_of(found.trajectories())
    given = content_of(rows)
    if recorded and recorded != given:
        missing = len(recorded) - len([each for each in given if each in set(recorded)])
        raise InputError(
            f"{proposer.recording}: recorded on {len(recorded)} trajectories, of which {max(missing, 0)} are "
            f"not among the {len(given)} demonstrations here with the same role, task and split; expected the "
            "demonstrations that it was recorded on (--demos)"
        )


def content_of(rows: Sequence[TrajectoryRow]) -> Content:
    """The trajectories of a run without file names, so that two runs can be compared."""
    return sorted((row.digest, row.role, row.task, row.split) for row in rows)


def write_recording(store: Store, config: Config, path: Path) -> int:
    """Write the answers of a run into a recording. Return their number, not counting answers about goal states.

    An answer is left out if its request has no result yet.

    Raises:
        InputError: the run has no answer yet.
    """
    require_answers(store, str(path))
    told = store.told()
    about = content_of(store.trajectories())
    settings = shareable(with_label(config, store.meta("label"))).model_dump(mode="json")
    header = {"format": FORMAT, "calls": len(told), "config": settings, "data": about}
    lines = [json.dumps(header), *(json.dumps({"goals": asdict(answer)}) for answer in store.goals())]
    count = 0
    for index, attempt, proposal in store.proposals():
        if index in told:
            lines.append(json.dumps({"index": index, "attempt": attempt} | _without_defaults(proposal)))
            count += 1
    write_atomically(path, "\n".join(lines) + "\n")
    return count


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
    answers, goals = {}, []
    reached = 1
    try:
        header = json.loads(lines[0])
        if header.get("format") not in (FORMAT, *OLDER):
            raise ValueError(f"format {header.get('format')!r}")
        config, head = validated(header["config"]), from_json(_Head, lines[0])
        named = header["format"] != OLDER[-1]
        content = sorted(head.data) if named else []
        if named and not content and needs_demonstrations(config.method):
            raise ValueError("no data")
        for line in lines[1:]:
            reached += 1
            entry = json.loads(line)
            json.dumps(entry, ensure_ascii=False).encode()  # lone surrogates, which SQLite cannot store, raise here
            if "goals" in entry:
                goals.append(said := from_json(_Goals, line).goals)
                if max(map(abs, (said.attempt, said.tokens_in, said.tokens_out))) > _MOST:
                    raise ValueError("a number that no run has")
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
    return Recorded(config, answers, head.calls, goals, content)
