"""Recorded trainings: learning curves of another run, which a replay may use instead of training policies.

A recording may come from somebody else, so its curves are only claims. A replay uses them only with the flag
`--recorded-scores`, and only if they match the trainings that the replay would do itself (`TrainingPlan`).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol, get_args, runtime_checkable

from grace_irl.errors import InputError
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.rl.curve import Point
from grace_irl.rl.environments import without_folder
from grace_irl.sandbox.protocol import Status

SHORT, FULL = "short", "full"
"""Kinds of trainings. The name of a training consists of its kind and the index of its seed, such as "full-0"."""
MOST = 2**53
"""Largest valid value of a recorded seed, number of steps or number of episodes."""
LARGEST = 1e100
"""Maximum absolute value of a score, return, length or time in a recorded evaluation, so that means of such numbers are
finite. Other numbers only have to be finite."""
LONGEST = 2_000
"""Maximum length of the message of a recorded failure, in characters."""
_PROGRAM = re.compile(r"[0-9a-f]{16}")
_NAME = re.compile(rf"({SHORT}|{FULL})-[0-9]{{1,9}}")
CODE = "code"
"""Part of a task's content with digests of the Python files that the task names."""
MODULES = "modules"
"""Part of a task's content with digests of the modules that the task names; missing if the task names no module."""
WORDS = ("name", "text", "scored", "shows_score")
"""Parts of a task that only prompts and messages contain. They affect no training."""
_CODE = ("env", "score")  # parts of a task that may name a Python file


@dataclass(frozen=True)
class RecordedTraining:
    """A finished training.

    Attributes:
        program: id of the program.
        name: name of the training, such as "full-0".
        seed: seed of the training.
        steps: environment steps before they are rounded up to whole rollouts.
        curve: the learning curve, one point for each evaluation.
    """

    program: str
    name: str
    seed: int
    steps: int
    curve: tuple[Point, ...]

    def require_sound(self) -> None:
        """Check the values. Their types are already checked.

        Raises:
            ValueError: the program's id, the name or a number is invalid, or an evaluation or its score is missing.
        """
        _require_program(self.program)
        if not _NAME.fullmatch(self.name):
            raise ValueError("a training without a name such as full-0")
        require_scored(self.curve)
        counts = [self.seed, self.steps, *(count for each in self.curve for count in (each.steps, each.episodes))]
        if not all(0 <= count <= MOST for count in counts):
            raise ValueError("a number that no training has")
        for point in self.curve:
            sizes = [point.score or 0.0, point.mean, point.deviation, point.length, point.seconds, point.success or 0.0]
            others = [point.paid or 0.0, *point.components.values(), *point.terms.values()]
            if not all(abs(size) <= LARGEST for size in sizes) or not all(map(math.isfinite, others)):
                raise ValueError("an evaluation with a number that is not finite, or too large")


def require_scored(curve: Sequence[Point]) -> None:
    """Check that a learning curve has an evaluation, and that each evaluation has a score.

    Raises:
        ValueError: an evaluation or a score is missing, or a score is not finite or too large.
    """
    if not curve:
        raise ValueError("a training without an evaluation")
    for point in curve:
        if point.score is None:
            raise ValueError("an evaluation without a score")
        if not abs(point.score) <= LARGEST:
            raise ValueError("an evaluation with a number that is not finite, or too large")


@dataclass(frozen=True)
class RecordedFailure:
    """A program that failed in the recorded run, in its dry run or in a training.

    Attributes:
        program: id of the program.
        status: the kind of failure (`Evaluation.status`).
        message: one line about the failure.
    """

    program: str
    status: str
    message: str

    def require_sound(self) -> None:
        """Check the values. Their types are already checked.

        Raises:
            ValueError: the program's id or the status of the failure is invalid, or the message is too long.
        """
        _require_program(self.program)
        if self.status == "ok" or self.status not in get_args(Status):
            raise ValueError("a failure without a status of one")
        if len(self.message) > LONGEST:
            raise ValueError(f"a message of more than {LONGEST} characters")


def _require_program(program: str) -> None:
    if not _PROGRAM.fullmatch(program):
        raise ValueError("no id of a program")


@dataclass(frozen=True)
class Planned:
    """A training that a run plans for each program.

    Attributes:
        seed: seed of the training.
        steps: environment steps before they are rounded up to whole rollouts.
        evaluated_at: environment steps of each evaluation.
    """

    seed: int
    steps: int
    evaluated_at: tuple[int, ...]


@dataclass(frozen=True)
class TrainingPlan:
    """The trainings of each program in a run.

    Attributes:
        task: name of the task.
        digests: digests of the parts of the task (`digests_of`).
        episodes: episodes of each evaluation.
        trainings: the trainings by name. The score of a short training decides whether the full trainings follow.
    """

    task: str
    digests: Mapping[str, str]
    episodes: int
    trainings: Mapping[str, Planned]


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The parts of a task that differ between two contents, or between two sets of digests, by name.

    Older versions stored no digests of modules (`MODULES`). If `before` has no such digests, modules are not compared.
    """
    names = before.keys() | now.keys() - ({MODULES} if MODULES not in before else set())
    return sorted(name for name in names if _part(before, name) != _part(now, name))


def _part(content: Mapping[str, Any], name: str) -> Any:
    """A part of a task. Older versions stored the digests of Python files in the order of their paths."""
    found = content.get(name)
    return sorted(map(str, found)) if name == CODE and isinstance(found, list) else found


def portable(content: Mapping[str, Any]) -> dict[str, Any]:
    """A task's content (`Task.content`) without the folders of Python files, so that the files may move."""
    return {
        key: without_folder(value) if key in _CODE and isinstance(value, str) else value
        for key, value in content.items()
    }


def digests_of(content: Mapping[str, Any]) -> dict[str, str]:
    """A digest of each part of a task, from its content (`Task.content`). The folders of Python files do not matter."""
    return {
        key: hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
        for key, value in portable(content).items()
    }


@dataclass(frozen=True)
class RecordedTrainings:
    """All trainings of a recorded run.

    Attributes:
        source: the recording or the folder of the recorded run, for messages.
        task: digests of the parts of the recorded run's task (`digests_of`).
        trainings: the finished trainings.
        failures: the programs that failed.
    """

    source: str = ""
    task: Mapping[str, str] = field(default_factory=dict)
    trainings: Sequence[RecordedTraining] = ()
    failures: Sequence[RecordedFailure] = ()

    def __len__(self) -> int:
        return len(self.trainings)

    def require(self, plan: TrainingPlan) -> None:
        """Check that these trainings match the plan of a run. Words of the task (`WORDS`) may differ.

        Raises:
            InputError: there are no trainings and no failures, a training is missing, or something differs from the
                plan. The message names the difference.
        """
        if not self.trainings and not self.failures:
            self._refuse(
                "no trainings in it",
                "a recording that grace-irl export made of a run that trained its policies, or that run's folder",
            )
        if other := [name for name in changes(self.task, plan.digests) if name not in WORDS]:
            self._refuse(
                f"its trainings are of another task than {plan.task} here: different in {', '.join(other)[:200]}",
                "the same task and the same code (--task)",
            )
        for each in self.trainings:
            if each.name in plan.trainings:
                self._require_planned(each, plan.trainings[each.name], plan.episodes)
        known = {(each.program, each.name) for each in self.trainings}
        failed = {each.program for each in self.failures}
        full = {program for program, name in known if name.startswith(FULL)} - failed
        for program in sorted(full):
            for name in plan.trainings:
                if (program, name) not in known:
                    self._refuse(
                        f"no training {name} of program {program} in it",
                        "no more trainings than were recorded (--train-seeds)",
                    )

    def _require_planned(self, found: RecordedTraining, planned: Planned, episodes: int) -> None:
        which = f"training {found.name} of program {found.program}"
        if found.seed != planned.seed:
            self._refuse(f"{which} has seed {found.seed}, and {planned.seed} in this run", "the recorded run's --seed")
        if found.steps != planned.steps:
            self._refuse(
                f"{which} has {found.steps} steps, and {planned.steps} in this run", "the same --train-steps and task"
            )
        if (points := tuple(each.steps for each in found.curve)) != planned.evaluated_at:
            self._refuse(
                f"{which} has {len(points)} evaluations, at steps {_shown(points)}, and {len(planned.evaluated_at)} at "
                f"{_shown(planned.evaluated_at)} in this run",
                "the same evaluations",
            )
        if any(each.episodes != episodes for each in found.curve):
            self._refuse(f"{which} has not {episodes} episodes in each evaluation, as in this run", "the same number")

    def curve(self, program: str, name: str) -> tuple[Point, ...]:
        """The learning curve of a training.

        Raises:
            InputError: the recording does not have this training.
        """
        for each in self.trainings:
            if (each.program, each.name) == (program, name):
                return each.curve
        return self._refuse(f"no training {name} of program {program} in it", "one for each program that runs here")

    def failure(self, program: str) -> Evaluation | None:
        """The evaluation of a failed program; None if the program did not fail in the recorded run."""
        found = next((each for each in self.failures if each.program == program), None)
        return None if found is None else Evaluation(found.status, found.message)

    def _refuse(self, problem: str, expected: str) -> NoReturn:
        error = InputError(
            f"{self.source}: {problem}; expected {expected} for --recorded-scores, or a new run without this flag, "
            "which trains"
        )
        error.says_how_to_go_on = True  # a resumed run would fail again
        raise error


@runtime_checkable
class TakesRecorded(Protocol):
    """An evaluator that can take recorded trainings in place of its own."""

    def take(self, recorded: RecordedTrainings) -> None:
        """Use the curves of `recorded` from now on, and train no policy. `recorded` has passed `require`."""
        ...


def _shown(steps: Sequence[int]) -> str:
    return ", ".join(map(str, steps[:4])) + (", …" if len(steps) > 4 else "")


def names(seeds: int, *, short: bool) -> Iterator[tuple[str, int]]:
    """Yield the name of each training of a program, in order, with the index of its seed.

    Args:
        seeds: number of seeds of full trainings.
        short: whether the task has a short training.
    """
    if short:
        yield f"{SHORT}-0", 0
    yield from ((f"{FULL}-{number}", number) for number in range(seeds))
