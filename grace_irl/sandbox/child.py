"""Code of a sandbox child, a process that locks itself down, does one task for one program, and ends.

The task is called a job: score states in batch mode, call the program's `debug`, or inspect a source. A zygote (a
process that has all modules loaded) forks the child. The child reads its input from shared memory, the memory of the
job, and writes its answer there. Strict mode (`strict.py`) and sessions (`session_child.py`) have their own modules.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Sequence
from typing import Any, NoReturn

from numpy.typing import NDArray

from grace_irl.programs import contract
from grace_irl.programs.check import SourceReading, read
from grace_irl.programs.parsing import canonical
from grace_irl.programs.program import Identity, identify, text_id
from grace_irl.sandbox.candidate import Candidate, ProgramFailure, Reward, explain, number
from grace_irl.sandbox.job import AnswerMap
from grace_irl.sandbox.lockdown import Allowance, Lockdown
from grace_irl.sandbox.parcel import TrajectoryView, Views
from grace_irl.sandbox.protocol import Status

NO_ACTIONS = (
    "reward_fn takes (state, action, next_state), but the data holds states only, or lacks the actions of some "
    "trajectories; expected reward_fn(self, state)"
)


def run_batch(lockdown: Lockdown, request: dict[str, Any], fds: Sequence[int], base_bytes: int) -> NoReturn:
    """Score all states of a job in batch mode. This is the body of a forked child and never returns.

    Args:
        lockdown: protections that this process applies to itself.
        request: a dict with `layers` (the protections to apply), `checks` (see `prepare`), `cpu_s` (CPU limit in
            seconds) and `memory_mb` (memory limit in MiB).
        fds: file descriptors of the job's memory and of the parcel, the memory with the trajectories.
        base_bytes: address space of the zygote in bytes. The memory limit comes on top of it.
    """
    answer, views = AnswerMap(fds[0]), Views(fds[1])
    source, candidate = _enter(lockdown, request, answer, base_bytes + views.mapped)
    if candidate is not None:
        score(candidate, source, views, answer)
    os._exit(0)


def run_debug(lockdown: Lockdown, request: dict[str, Any], fds: Sequence[int], base_bytes: int) -> NoReturn:
    """Call a program's `debug(expert_states, negative_states)`. This is the body of a forked child and never returns.

    The arguments are those of `run_batch`. The parcel holds single states, with expert states first. `request` also has
    `experts`, the number of expert states.
    """
    answer, views = AnswerMap(fds[0]), Views(fds[1])
    source, candidate = _enter(lockdown, request, answer, base_bytes + views.mapped)
    if candidate is not None:
        compare(candidate, source, views, request["experts"], answer)
    os._exit(0)


def run_inspection(lockdown: Lockdown, request: dict[str, Any], fds: Sequence[int], base_bytes: int) -> NoReturn:
    """Parse and check a job's source, without executing it. This is the body of a forked child and never returns.

    The child writes its findings as JSON to the job's memory, where other jobs write a message for the user. The
    arguments are those of `run_batch`, but there is no parcel.
    """
    answer = AnswerMap(fds[0])
    lockdown.apply(
        request["layers"],
        Allowance(request["cpu_s"], request["memory_mb"], base_bytes + answer.mapped),
    )
    source = canonical(answer.source().decode("utf-8", "surrogatepass"))
    reading = read(source)
    identity, problems = _identity(reading, source)
    found = {
        "id": identity.id,
        "size": identity.size,
        "functions": [vars(each) for each in identity.functions],
        "problems": problems,
        "takes_action": reading.takes_action,
    }
    answer.finish("ok", json.dumps(found))
    os._exit(0)


def _enter(
    lockdown: Lockdown, request: dict[str, Any], answer: AnswerMap, base_bytes: int
) -> tuple[str, Candidate | None]:
    """Lock this process down, then read, check and compile the source.

    Returns:
        The source and the compiled program. If the source is invalid, the program is None, and `answer` holds the
        failure.
    """
    lockdown.apply(request["layers"], Allowance(request["cpu_s"], request["memory_mb"], base_bytes + answer.mapped))
    gc.enable()
    source = answer.source().decode("utf-8", "surrogatepass")
    candidate = prepare(source, checks=request["checks"])
    if isinstance(candidate, ProgramFailure):
        answer.fail(candidate)
        return source, None
    return source, candidate


def prepare(source: str, *, checks: bool) -> Candidate | ProgramFailure:
    """Check and compile a source.

    Args:
        source: text of the program.
        checks: whether the static checks may refuse forbidden code, such as `open`. It is False for test
            programs that attack the other protections. Errors of syntax and of the contract are always failures.
    """
    try:
        source = canonical(source)
        reading = read(source)
        problems = [p for p in reading.problems if checks or p.kind != "rejected"]
        if problems:
            return ProgramFailure(problems[0].kind, "; ".join(str(problem) for problem in problems[:5]))
        # Compile the text instead of the tree. Converting the tree's Python objects takes longer than parsing again.
        return Candidate(source, takes_action=reading.takes_action)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return explain(error, "syntax", source)


def score(candidate: Candidate, source: str, views: Views, answer: AnswerMap) -> None:
    """Score all states in order, with one `Reward` object per trajectory.

    Each reward is written to the job's memory as soon as it is known.
    """
    requests = answer.requests()
    phase: Status = "init"
    where, start = "", 0
    episode: ProgramPass | None = None
    answer.transitions = candidate.takes_action
    try:
        for position, view in enumerate(views):
            phase, where = "init", f"trajectory {answer.job.first + position}"
            episode = ProgramPass(candidate.start(view.extra_info), view, answer, start)
            phase = "runtime"
            asked = requests.get(position, {})
            if not candidate.takes_action:
                episode.states(asked)
            elif view.actions is None:
                answer.finish("contract", NO_ACTIONS)
                return
            else:
                episode.transitions(view.actions, asked)
            start += view.length
    except BaseException as error:
        if phase == "runtime" and episode is not None:
            where = f"state {episode.step} of {where}"
        answer.fail(explain(error, phase, source, where))
        return
    answer.finish("ok")


def compare(candidate: Candidate, source: str, views: Views, experts: int, answer: AnswerMap) -> None:
    """Call the program's `debug(expert_states, negative_states)`, and write the result to the job's memory.

    Args:
        candidate: the program.
        source: text of the program.
        views: trajectories of one state each, with expert states first.
        experts: number of expert states.
        answer: memory of the job.
    """
    phase: Status = "init"
    try:
        function = candidate.module().get(contract.DEBUG_SETS)
        phase = "runtime"
        if callable(function):
            states = [view.state(0) for view in views]
            answer.debug(0, str(function(states[:experts], states[experts:])))
    except BaseException as error:
        answer.fail(explain(error, phase, source, contract.DEBUG_SETS))
        return
    answer.finish("ok")


class ProgramPass:
    """A pass of a program over the states of one trajectory, in order.

    Args:
        reward: the program's `Reward` object for this trajectory.
        view: the trajectory.
        answer: memory of the job, which receives the rewards and the debug texts.
        start: index of the trajectory's first reward in `AnswerMap.rewards`.

    Attributes:
        step: index of the current state, for messages.
    """

    def __init__(self, reward: Reward, view: TrajectoryView, answer: AnswerMap, start: int) -> None:
        self._reward, self._view, self._answer, self._start = reward, view, answer, start
        self.step = 0

    def states(self, requests: dict[int, int]) -> None:
        """Call reward_fn(state) with a fresh copy of each state. `requests` maps steps to indices of debug requests.

        A debug request asks for the text of debug_fn about a state.
        """
        rewards, at, call = self._answer.rewards, self._start, self._reward.call
        step = 0
        try:
            for step, state in enumerate(self._view.states()):
                value = call(state)
                rewards[at + step] = value if type(value) is float else number(value)
                if step in requests:
                    self._debug(requests[step], self._view.state(step))
        finally:
            self.step = step

    def transitions(self, actions: NDArray[Any], requests: dict[int, int]) -> None:
        """Call reward_fn(state, action, next_state) for each step. For `requests`, see `states`.

        The reward of the step into state t+1 has index t+1. The reward with index 0 is NaN.
        """
        state = self._view.state
        self._answer.rewards[self._start] = float("nan")
        for step in range(1, self._view.length):
            self.step = step
            value = self._reward.call(state(step - 1), actions[step - 1].copy(), state(step))
            self._answer.rewards[self._start + step] = number(value)
            if step in requests:
                self._debug(requests[step], state(step - 1), actions[step - 1].copy(), state(step))

    def _debug(self, slot: int, *arguments: Any) -> None:
        self._answer.debug(slot, debug_text(self._reward, *arguments))


def debug_text(reward: Reward, *arguments: Any) -> str:
    """The text of the program's debug_fn, or a message if debug_fn raises an exception.

    An exception in debug_fn does not end the run, because the rewards are still right.
    """
    try:
        return reward.debug(*arguments)
    except Exception as error:
        return f"debug_fn raised {explain(error, 'runtime', '').message}"


def _identity(reading: SourceReading, source: str) -> tuple[Identity, list[str]]:
    problems = [str(problem) for problem in reading.problems]
    if reading.tree is not None:
        try:
            return identify(reading.tree), problems
        except RecursionError:
            problems.append("nested too deeply")
    return Identity(text_id(source), 0, ()), problems
