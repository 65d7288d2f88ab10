"""The child of batch mode: locked down, it runs one program over all the states of its job, and ends."""

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
    """Score a job; the body of a forked child, which never returns.

    Args:
        lockdown: the layers.
        request: `layers`, `checks`, `cpu_s`, `memory_mb`.
        fds: the job's memory and the parcel.
        base_bytes: the address space of the zygote.
    """
    answer, views = AnswerMap(fds[0]), Views(fds[1])
    source, candidate = _enter(lockdown, request, answer, base_bytes + views.mapped)
    if candidate is not None:
        score(candidate, source, views, answer)
    os._exit(0)


def run_debug(lockdown: Lockdown, request: dict[str, Any], fds: Sequence[int], base_bytes: int) -> NoReturn:
    """Have a program's `debug` compare two sets of states; arguments as for `run_batch`, and `experts`: the parcel
    holds single states, and this number of them is the first set."""
    answer, views = AnswerMap(fds[0]), Views(fds[1])
    source, candidate = _enter(lockdown, request, answer, base_bytes + views.mapped)
    if candidate is not None:
        compare(candidate, source, views, request["experts"], answer)
    os._exit(0)


def run_inspection(lockdown: Lockdown, request: dict[str, Any], fds: Sequence[int], base_bytes: int) -> NoReturn:
    """Parse and check a job's source; its message becomes JSON. Nothing of the source is executed."""
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
    """Lock this process down; then read, check and compile the source. None if it failed, and said so."""
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
        checks: False leaves the static checks' refusals aside, so that the layers below can be tested.
    """
    try:
        source = canonical(source)
        reading = read(source)
        problems = [p for p in reading.problems if checks or p.kind != "rejected"]
        if problems:
            return ProgramFailure(problems[0].kind, "; ".join(str(problem) for problem in problems[:5]))
        # from the text: compiling a tree of Python objects costs more than parsing once more
        return Candidate(source, takes_action=reading.takes_action)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return explain(error, "syntax", source)


def score(candidate: Candidate, source: str, views: Views, answer: AnswerMap) -> None:
    """One Reward per trajectory, one call per state, in order; rewards land in the job as they come."""
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
    """`debug(expert_states, negative_states)` of the program, each set a list of copies; its text lands in the job."""
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
    """A program's way along one trajectory.

    Attributes:
        step: the state at hand, for messages.
    """

    def __init__(self, reward: Reward, view: TrajectoryView, answer: AnswerMap, start: int) -> None:
        self._reward, self._view, self._answer, self._start = reward, view, answer, start
        self.step = 0

    def states(self, requests: dict[int, int]) -> None:
        """reward_fn(state) for each state, each a copy of its own; `requests` maps steps to debug slots."""
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
        """reward_fn(state, action, next_state): entry t+1 rewards the step into state t+1, entry 0 is NaN."""
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
    """The text of debug_fn, or its failure: a broken debug_fn does not make the rewards wrong."""
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
