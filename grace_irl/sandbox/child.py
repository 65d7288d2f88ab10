"""Tasks of a locked-down child: score all states of a job (batch mode), compare two sets, or inspect a source."""

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
    """Score a job. This is the body of a forked child and never returns.

    Args:
        lockdown: prepared lock-down, which this process still has to apply.
        request: a dict with `layers`, `checks`, `cpu_s` and `memory_mb`.
        fds: descriptors of the job's memory, and of the parcel with its trajectories.
        base_bytes: address space of the zygote in bytes.
    """
    answer, views = AnswerMap(fds[0]), Views(fds[1])
    source, candidate = _enter(lockdown, request, answer, base_bytes + views.mapped)
    if candidate is not None:
        score(candidate, source, views, answer)
    os._exit(0)


def run_debug(lockdown: Lockdown, request: dict[str, Any], fds: Sequence[int], base_bytes: int) -> NoReturn:
    """Compare two sets of states by a program's `debug`. This is the body of a forked child and never returns.

    The arguments are those of `run_batch`, but the parcel holds single states, those of experts first. The request also
    has `experts`, the number of expert states.
    """
    answer, views = AnswerMap(fds[0]), Views(fds[1])
    source, candidate = _enter(lockdown, request, answer, base_bytes + views.mapped)
    if candidate is not None:
        compare(candidate, source, views, request["experts"], answer)
    os._exit(0)


def run_inspection(lockdown: Lockdown, request: dict[str, Any], fds: Sequence[int], base_bytes: int) -> NoReturn:
    """Parse and check a job's source, without executing it. The findings go into the job's message, as JSON."""
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
        "nodes": identity.nodes,
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

    If that fails, the failure is in the answer, and the returned candidate is None.
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
        checks: whether the static checks may refuse the source. If not, only errors of syntax and of the contract do.
            Tests use this to try the other protections alone.
    """
    try:
        source = canonical(source)
        reading = read(source)
        problems = [p for p in reading.problems if checks or p.kind != "rejected"]
        if problems:
            return ProgramFailure(problems[0].kind, "; ".join(str(problem) for problem in problems[:5]))
        # from the text, because compiling a tree of Python objects costs more than parsing again
        return Candidate(source, takes_action=reading.takes_action)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return explain(error, "syntax", source)


def score(candidate: Candidate, source: str, views: Views, answer: AnswerMap) -> None:
    """Score all states in order, with one Reward per trajectory. Write each reward to the job's memory as soon
    as it is known."""
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
    """Call the program's `debug(expert_states, negative_states)` on lists of fresh states, and write its text to
    the job's memory."""
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
    """The pass of a program over one trajectory.

    Attributes:
        step: index of the current state, for messages.
    """

    def __init__(self, reward: Reward, view: TrajectoryView, answer: AnswerMap, start: int) -> None:
        self._reward, self._view, self._answer, self._start = reward, view, answer, start
        self.step = 0

    def states(self, requests: dict[int, int]) -> None:
        """Call reward_fn(state) with a fresh copy of each state. `requests` maps steps to indices of debug requests."""
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
        """Call reward_fn(state, action, next_state). Reward t+1 belongs to the step into state t+1; reward 0 is NaN."""
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
    """The text of debug_fn, or of its failure. A broken debug_fn is no error, because the rewards are still right."""
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
