"""Runners of one reward program: `InProcessRunner` in this process, `SandboxedRunner` in the sandbox."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import GraceError, InputError
from grace_irl.evaluate.rewards import MemoryCache, RewardSource
from grace_irl.programs.check import read
from grace_irl.programs.contract import FILENAME, as_action
from grace_irl.programs.parts import Reads
from grace_irl.sandbox import open_sandbox
from grace_irl.sandbox.candidate import Candidate, ContractError, explain
from grace_irl.sandbox.protocol import Limits, Sandbox
from grace_irl.sandbox.session import Begin, RewardSession, SessionLimits, TurnRewards
from grace_irl.sandbox.slots import Generators, Slots
from grace_irl.states import as_state, kind_of_state, require_finite
from grace_irl.states.layout import StateLayout

Floats = NDArray[np.float64]

_OFFLINE = -1
"""Slot (`RewardRunner`) for recorded trajectories in `InProcessRunner`. One slot is enough, because recorded
trajectories run one after the other. Slots of running episodes start at 0."""


class RewardRunner(Protocol):
    """A runner of one program: `rewards` for recorded trajectories, `turn` or `post` for running episodes.

    All methods give equal rewards for equal states and actions. The runner holds one `Reward` object for each
    running episode. A slot is the number of a running episode, usually the index of its environment.
    """

    def rewards(self, trajectories: Sequence[Trajectory]) -> list[Floats]:
        """Rewards `(T+1,)` of each trajectory, in order.

        If the program rewards transitions, the first reward is NaN, because no transition ends in the first state.

        Raises:
            GraceError: the program fails or returns a value that is not a finite number.
        """
        ...

    def turn(
        self,
        slots: Sequence[int],
        actions: NDArray[Any] | None,
        states: Sequence[NDArray[Any]] | NDArray[Any],
        begins: Sequence[Begin] = (),
    ) -> TurnRewards:
        """Reward one step of running episodes, then start new episodes.

        Args:
            slots: slots of the episodes that made a step, `(n,)`.
            actions: actions of these steps, `(n, ...)`; only programs that reward transitions use them.
            states: next states, one per slot.
            begins: episodes to start after the steps are rewarded. A new episode ends the old episode in its slot.

        Returns:
            The rewards of the steps. The first states of new episodes have no reward.

        Raises:
            GraceError: the program fails or returns a value that is not a finite number.
            InputError: a state has other parts or another shape than the first state of the first episode. Outside the
                sandbox, grids and images may have another size in each episode (`StateKind.sides`).
        """
        ...

    def post(
        self,
        slots: Sequence[int],
        actions: NDArray[Any] | None,
        states: Sequence[NDArray[Any]] | NDArray[Any],
        begins: Sequence[Begin] = (),
    ) -> None:
        """Do the same as `turn`, but do not wait for the rewards. `settle` returns them later.

        An error of the program may also appear later, in `settle`. Call `settle` before the next `turn`.
        """
        ...

    def settle(self) -> list[TurnRewards]:
        """The rewards of all turns that were posted since the last call, in order.

        Raises:
            GraceError: the program fails or returns a value that is not a finite number.
        """
        ...

    def close(self) -> None:
        """Free all resources. A second call has no effect."""
        ...


class _Runner:
    """Base class of runners. It checks the first state of running episodes. A `with` block closes the runner.

    Args:
        name: the program's name in messages.
        reads: the form of the states and actions that the program reads.
    """

    def __init__(self, name: str, reads: Reads) -> None:
        self._name, self._reads = name, reads
        self._layout: StateLayout | None = None

    def _check(self, begins: Sequence[Begin]) -> None:
        """Check the first state of the first episode. It fixes the layout of all states."""
        if begins and self._layout is None:
            self._reads.require_state(begins[0].state, self._name)
            self._layout = self._layout_of(begins[0].state)

    def _taken(self, actions: Any) -> Any:
        """Actions in the shape that the program reads. What is no array is left to the checks of the turn."""
        return self._reads.taken(actions, self._name) if isinstance(actions, np.ndarray) and actions.ndim else actions

    def _fitting(self, trajectory: Trajectory) -> Trajectory:
        """A trajectory with its actions in the shape that the program reads."""
        taken = self._taken(trajectory.actions)
        return trajectory if taken is trajectory.actions else replace(trajectory, actions=taken)

    def _layout_of(self, state: Any) -> StateLayout:
        kind = kind_of_state(state, self._name)
        if getattr(state, "dtype", None) != np.uint8:  # eight times as many bytes would slow down images
            state = kind.as_state(state)
        return StateLayout.of(kind, state)

    def close(self) -> None:
        """See `RewardRunner`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class InProcessRunner(_Runner):
    """A `RewardRunner` that runs the program in this process, with all permissions of the process.

    Every episode has a new module, a new `Reward` object and, if the program draws random numbers, its own random
    generators. The rewards equal those of the sandbox. The random generators of this process stay unchanged.

    Args:
        source: the program.
        name: the program's name in messages.
        terms: whether to return the components of each reward as well, from the program's `terms_fn`.
        reads: the form of the states that the program reads.

    Raises:
        InputError: the source breaks the contract.
    """

    def __init__(self, source: str, name: str, *, terms: bool = False, reads: Reads = Reads()) -> None:
        super().__init__(name, reads)
        reading = read(source)
        problems = [problem for problem in reading.problems if problem.kind in ("syntax", "contract")]
        if problems:
            raise InputError(f"{name}: {problems[0]}; expected a program as docs/contract.md says")
        self._slots = Slots(trusted_candidate(source, takes_action=reading.takes_action))
        self._source, self._terms = source, terms
        self._posted: list[TurnRewards] = []
        self._layouts: dict[int, StateLayout] = {}

    def rewards(self, trajectories: Sequence[Trajectory]) -> list[Floats]:
        """See `RewardRunner`."""
        return [self._along(self._fitting(trajectory)) for trajectory in trajectories]

    def turn(
        self,
        slots: Sequence[int],
        actions: NDArray[Any] | None,
        states: Sequence[NDArray[Any]] | NDArray[Any],
        begins: Sequence[Begin] = (),
    ) -> TurnRewards:
        """See `RewardRunner`."""
        self._check(begins)
        for slot, state in zip(slots, states, strict=True):
            if slot in self._layouts:
                self._layouts[slot].required(state)
        for begin in begins:
            if self._layout is not None and not self._layout.kind.sides:
                self._layout.required(begin.state)
                self._layouts[begin.slot] = self._layout
            else:
                self._layouts[begin.slot] = self._layout_of(begin.state)
        return self._turn(slots, self._taken(actions), states, begins, terms=self._terms)[0]

    def post(
        self,
        slots: Sequence[int],
        actions: NDArray[Any] | None,
        states: Sequence[NDArray[Any]] | NDArray[Any],
        begins: Sequence[Begin] = (),
    ) -> None:
        """See `RewardRunner`. The rewards are computed at once."""
        self._posted.append(self.turn(slots, actions, states, begins))

    def settle(self) -> list[TurnRewards]:
        """See `RewardRunner`."""
        found, self._posted = self._posted, []
        return found

    def _along(self, trajectory: Trajectory) -> Floats:
        """Rewards `(T+1,)` of one trajectory."""
        states, actions = trajectory.states, trajectory.actions
        if self._slots.takes_action and actions is None:
            raise InputError(f"{self._name}: it rewards transitions, and a trajectory has no actions; expected them")
        _, (first,) = self._turn((), None, (), (Begin(_OFFLINE, states[0], trajectory.extra_info),), terms=False)
        if not self._slots.takes_action:
            self._require_usable(TurnRewards(np.array([first])))
        found = [first]
        for step, state in enumerate(states[1:]):
            taken = None if actions is None else actions[step : step + 1]
            found.append(float(self._turn((_OFFLINE,), taken, (state,), (), terms=False)[0].rewards[0]))
        return np.array(found)

    def _turn(
        self,
        slots: Sequence[int],
        actions: NDArray[Any] | None,
        states: Sequence[NDArray[Any]] | NDArray[Any],
        begins: Sequence[Begin],
        *,
        terms: bool,
    ) -> tuple[TurnRewards, list[float]]:
        """Rewards of one turn, and the reward of the first state of each episode that begins."""
        try:
            found, named = self._slots.turn(slots, actions, states, terms=terms)
            first = [self._slots.begin(begin.slot, begin.state, begin.instruction) for begin in begins]
        except ContractError as error:
            raise InputError(f"{self._name}: {error}") from error
        except InputError:  # a state that no program can receive
            raise
        except Exception as error:
            failure = explain(error, "runtime", self._source)
            raise GraceError(f"{self._name}: {failure.status}: {failure.message}") from error
        answer = TurnRewards(np.array(found, np.float64), tuple(named))
        self._require_usable(answer)
        return answer, first

    def _require_usable(self, answer: TurnRewards) -> None:
        problem = answer.problem(SessionLimits.max_abs)
        if problem:
            raise GraceError(f"{self._name}: nonfinite: {problem}")


class SandboxedRunner(_Runner):
    """A `RewardRunner` in locked-down child processes (docs/sandbox.md).

    All running episodes share one child process, which starts with the first episode. Each call of `turn` sends one
    message to this process, and several calls of `post` share one message. The first state of the first episode fixes
    the kind and shape of all states. States are sent in the type that programs receive, except that byte
    states (uint8) are sent as bytes.

    Args:
        source: the program.
        name: the program's name in messages.
        terms: whether to return the components of each reward as well, from the program's `terms_fn`.
        workers: number of child processes for recorded trajectories; None for one per core.
        allow_weak: whether to accept tier E, a sandbox that does not protect the user's files (docs/sandbox.md).
        sandbox: an open sandbox for recorded trajectories. If None, each call of `rewards` opens and closes a sandbox.
        reads: the form of the states that the program reads.
        limits: limits of the program, for recorded trajectories and for running episodes (`SessionLimits.of`).
    """

    def __init__(
        self,
        source: str,
        name: str,
        *,
        terms: bool = False,
        workers: int | None = None,
        allow_weak: bool = False,
        sandbox: Sandbox | None = None,
        reads: Reads = Reads(),
        limits: Limits = Limits(),
    ) -> None:
        super().__init__(name, reads)
        self._source, self._terms, self._limits = source, terms, limits
        self._workers, self._allow_weak, self._sandbox = workers, allow_weak, sandbox
        self._session: RewardSession | None = None

    def rewards(self, trajectories: Sequence[Trajectory]) -> list[Floats]:
        """See `RewardRunner`."""
        if not trajectories:
            return []
        trajectories = [self._fitting(trajectory) for trajectory in trajectories]
        with ExitStack() as stack:
            sandbox = self._sandbox
            if sandbox is None:
                sandbox = stack.enter_context(open_sandbox(workers=self._workers, allow_weak=self._allow_weak))
            inspection = sandbox.inspect(self._source)
            if inspection.problems:
                raise GraceError(f"{self._name}: {inspection.problems[0]}")
            over = stack.enter_context(closing(RewardSource(trajectories, sandbox, MemoryCache(), self._limits)))
            outcome, rewards = over.run(inspection.program(self._source), over.digests)
            if outcome.status != "ok":
                raise GraceError(f"{self._name}: {outcome.status}: {outcome.message}")
        return [rewards[trajectory.digest] for trajectory in trajectories]

    def turn(
        self,
        slots: Sequence[int],
        actions: NDArray[Any] | None,
        states: Sequence[NDArray[Any]] | NDArray[Any],
        begins: Sequence[Begin] = (),
    ) -> TurnRewards:
        """See `RewardRunner`."""
        return self._running(begins).turn(slots, self._taken(actions), states, begins)

    def post(
        self,
        slots: Sequence[int],
        actions: NDArray[Any] | None,
        states: Sequence[NDArray[Any]] | NDArray[Any],
        begins: Sequence[Begin] = (),
    ) -> None:
        """See `RewardRunner`. The child process computes the rewards while this process goes on."""
        self._running(begins).post(slots, self._taken(actions), states, begins)

    def settle(self) -> list[TurnRewards]:
        """See `RewardRunner`."""
        return [] if self._session is None else self._session.settle()

    def _running(self, begins: Sequence[Begin]) -> RewardSession:
        """The session of running episodes. The session opens when the first episodes begin."""
        self._check(begins)
        if self._layout is None:
            raise InputError(f"{self._name}: a step before any episode began; expected reset() first")
        if self._session is None:
            self._session = RewardSession(
                self._source,
                self._name,
                self._layout,
                terms=self._terms,
                limits=SessionLimits.of(self._limits),
                allow_weak=self._allow_weak,
            )
        return self._session

    def close(self) -> None:
        """End the child process of running episodes."""
        if self._session is not None:
            self._session.close()


class OnlineReward:
    """A program's `Reward` object for one trajectory, in this process. The rewards equal those of the sandbox.

    Each trajectory has a new copy of the program's module and its own random generators, seeded with 0. The trajectory
    shares nothing with other `Reward` objects, and does not change the random generators of this process. States and
    actions have the same form as in the sandbox, and are checked as in running episodes. Other attributes are those of
    the program's `Reward` object.

    Args:
        candidate: the compiled program.
        extra_info: the instruction.
        reads: the form of the states and actions that the program reads.
    """

    def __init__(self, candidate: Candidate, extra_info: str, reads: Reads = Reads()) -> None:
        self._reads = reads
        self._begun = False
        self._generators = Generators(used=candidate.uses_random)
        with self._generators.lent():
            self._reward = candidate.start(extra_info).instance

    def reward_fn(self, state: Any, *transition: Any) -> Any:
        """`reward_fn(state)`, or `reward_fn(state, action, next_state)`, of the program."""
        with self._generators.lent():
            return self._reward.reward_fn(*self._handed(state, *transition))

    def debug_fn(self, state: Any, *transition: Any) -> Any:
        """`debug_fn` of the program, with the arguments of `reward_fn`. Calls do not advance the random generators."""
        with self._generators.lent(kept=False):
            return self._reward.debug_fn(*self._handed(state, *transition))

    def terms_fn(self, state: Any, *transition: Any) -> Any:
        """`terms_fn` of the program, with the arguments of `reward_fn`. Calls do not advance the random generators."""
        with self._generators.lent(kept=False):
            return self._reward.terms_fn(*self._handed(state, *transition))

    def _handed(self, state: Any, *transition: Any) -> tuple[Any, ...]:
        if not self._begun:
            self._reads.require_state(state, "the reward")
            self._begun = True
        if not transition:
            return (_finite(state),)
        action, *after = transition
        taken = self._reads.taken(np.asarray(as_action(action))[None], "the reward")
        return (_finite(state), as_action(taken[0]), *map(_finite, after))

    def __getattr__(self, name: str) -> Any:
        if name in ("_reward", "_generators", "_reads", "_begun"):  # `copy` reads these before they exist
            raise AttributeError(name)
        return getattr(self._reward, name)


def _finite(state: Any) -> Any:
    """A state as the program receives it. NaN and infinity are refused."""
    found = as_state(state)
    require_finite(found)
    return found


def trusted_candidate(source: str, *, takes_action: bool = False, filename: str = FILENAME) -> Candidate:
    """Compile a trusted program. Different programs have different modules, named by a hash of the source.

    Args:
        source: the text of the program.
        takes_action: whether the arguments of `reward_fn` are (state, action, next_state).
        filename: file name in tracebacks.

    Raises:
        SyntaxError, ValueError: the program does not compile.
    """
    name = f"grace_irl_reward_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    return Candidate(source, takes_action=takes_action, name=name, filename=filename)
