"""Loading and use of reward files. A reward file is a Python file with a recovered reward program."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.given import Given, trajectories_of
from grace_irl.demos.trajectory import LabelRule
from grace_irl.errors import GraceError, InputError
from grace_irl.keyworded import in_keywords
from grace_irl.notebook import near, shown
from grace_irl.pages import page
from grace_irl.programs.export import calibration_of, fields_of, label_of, reads_of, threshold_of
from grace_irl.programs.parsing import canonical, unseen
from grace_irl.programs.parts import Reads, Shape, difference, unfit
from grace_irl.rewards.runner import InProcessRunner, OnlineReward, RewardRunner, SandboxedRunner, trusted_candidate
from grace_irl.rewards.scale import GAMMA, Form, FormChoice, Scale
from grace_irl.rewards.view import STATE, StateView, holds_state, shapes_in, tops_of
from grace_irl.sandbox.candidate import Candidate, ContractError
from grace_irl.sandbox.protocol import Limits, Sandbox

if TYPE_CHECKING:  # only the wrappers need the extra "rl"
    from grace_irl.rewards.gymnasium import RewardEnv, RewardVectorEnv
    from grace_irl.rewards.imitation import ImitationReward
    from grace_irl.rewards.sb3 import RewardVecEnv


class RewardFile:
    """A loaded reward file.

    `rewards(trajectories)` runs the program in the sandbox, so the file need not be trusted.

    A call of this object, with the instruction of one trajectory, returns the program's own `Reward` object for this
    trajectory. The program then runs in the user's process, with all permissions of that process. So read the file
    before you load it by `load_reward(path, trust=True)`.

    `wrap`, `wrap_vec` and `imitation_reward` are for training. They run a trusted program in this process, and any
    other program in a separate, locked-down process (docs/training.md).

    Attributes:
        path: the file.
        source: the text of the file.
        trust: whether the program may run in this process.
        scale, offset: the calibration in the file, see `discriminator_logit`; 1 and 0 if the file has none.
        threshold: threshold on the program's reward with the best balanced accuracy on the training data. A state with
            a higher reward is classified as positive. None if the file has no threshold.
        fields: names of the components of a state, in order; () if the file does not name them.
        reads: the form of the states that the program reads: kind, shape, and the parts of records. Facts that the file
            does not name are unknown.
        form: the form in which a learner gets the reward by default (`form_by`).
    """

    def __init__(self, path: Path, source: str, *, trust: bool, exported: bool = True) -> None:
        self.path = path
        self.source = source
        self.trust = trust
        self.scale, self.offset = calibration_of(source) or (1.0, 0.0)
        self.threshold = threshold_of(source)
        self.fields = fields_of(source) if exported else ()
        self.reads = reads_of(source) if exported else Reads()
        self.form = self.form_by()

    def __call__(self, extra_info: str | None = None) -> OnlineReward:
        """One `Reward` object for one trajectory. Pass the states to its `reward_fn` in order.

        The rewards equal those of the sandbox, unless the program uses `hash` or the order of sets of texts
        (docs/contract.md). They do not depend on other `Reward` objects in this process.

        Args:
            extra_info: the instruction of the trajectory; None means "", as in the sandbox.

        Raises:
            InputError: the file is not trusted, or defines no class Reward.
            GraceError: the program's module or constructor fails.
        """
        candidate = self._candidate
        try:
            return OnlineReward(candidate, extra_info or "", self.reads)
        except ContractError as error:
            raise InputError(f"{self.path}: {error}") from error
        except Exception as error:
            raise GraceError(f"{self.path}: does not start: {type(error).__name__}: {error}") from error

    def discriminator_logit(
        self, reward: float | NDArray[np.float64], log_pi: float | NDArray[np.float64] = 0.0
    ) -> Any:
        """Logit of the discriminator D = sigmoid(scale * reward + offset - log pi), for arrays of any shape.

        `log_pi` is the log-probability of the action minus the mean log-probability of the training steps. So the
        default of 0 stands for an average action.
        """
        return self.scale * reward + self.offset - log_pi

    @in_keywords(dict)
    def rewards(
        self,
        trajectories: Given,
        *,
        workers: int | None = None,
        allow_weak_sandbox: bool = False,
        sandbox: Sandbox | None = None,
        limits: Limits = Limits(),
    ) -> list[NDArray[np.float64]]:
        """Return the rewards of each trajectory, as an array `(T+1,)` with an entry per state.

        The program runs in the sandbox, even if the file is trusted.

        Args:
            trajectories: the trajectories to reward: `Trajectory` objects, paths, or any object that holds episodes, as
                for `grace_irl.fit`. The columns of a table may have any order, because their names identify them.
            workers: number of processes of the sandbox; None for one per core.
            allow_weak_sandbox: whether the sandbox may have tier E, which does not protect the user's files
                (docs/sandbox.md).
            sandbox: an open sandbox. If None, this call opens a sandbox and closes it again.
            limits: limits of one run of the program.

        Raises:
            InputError: the object holds no episodes, or the program cannot read the states, for example because a part
                has another shape.
            GraceError: the program fails or returns a value that is not a finite number.
        """
        found = trajectories_of(trajectories, "trajectories", self.fields)
        for each in found:
            self.reads.require(each.state_kind, each.states, "trajectories", stated=False)
        return SandboxedRunner(
            self.source,
            str(self.path),
            workers=workers,
            allow_weak=allow_weak_sandbox,
            sandbox=sandbox,
            reads=self.reads,
            limits=limits,
        ).rewards(found)

    def wrap(
        self,
        environment: Any,
        *,
        view: StateView | None = None,
        scale: FormChoice = "auto",
        gamma: float = GAMMA,
        terms: bool = True,
        allow_weak_sandbox: bool = False,
    ) -> RewardEnv:
        """Wrap a Gymnasium environment, so that it returns this reward.

        Args:
            environment: the environment to wrap.
            view: the conversion of observations to states, as for `rewards.gymnasium.RewardEnv`.
            scale: the form of the returned reward (`rewards.scale.Scale`); "auto" for the file's own (`form`).
            gamma: the learner's discount factor, for the forms "guided" and "progress". With another factor, waiting
                in a state between 0 and the threshold costs or earns a little.
            terms: whether to add the components of the reward, from the program's `terms_fn`, to the `info` of each
                step.
            allow_weak_sandbox: whether a file that is not trusted may run in tier E, a sandbox that does not protect
                the user's files (docs/sandbox.md).

        Raises:
            InputError: `environment` is not a Gymnasium environment, or its observations are not the numbers or parts
                that this reward names.
        """
        from grace_irl.rewards.gymnasium import RewardEnv

        if view is None:
            self._require_states(environment, getattr(environment, "observation_space", None))
        runner = self.runner(terms=terms, allow_weak_sandbox=allow_weak_sandbox)
        return RewardEnv(environment, runner, self.scaled(scale, gamma), view, tops_of(self.parts))

    def wrap_vec(
        self,
        venv: Any,
        *,
        scale: FormChoice = "auto",
        gamma: float = GAMMA,
        terms: bool = True,
        allow_weak_sandbox: bool = False,
    ) -> RewardVecEnv | RewardVectorEnv:
        """Wrap a vector environment, so that it returns this reward. `wrap` explains the arguments.

        A Gymnasium `VectorEnv` (`gymnasium.make_vec`) becomes a `rewards.gymnasium.RewardVectorEnv`. A
        Stable-Baselines3 `VecEnv` becomes a `rewards.sb3.RewardVecEnv`.

        Raises:
            InputError: `venv` has neither of these types, or its observations are not the numbers or parts that this
                reward names.
        """
        from grace_irl.rewards.gymnasium import vector_wrapped

        space = getattr(venv, "single_observation_space", getattr(venv, "observation_space", None))
        self._require_states(venv, space)
        runner = self.runner(terms=terms, allow_weak_sandbox=allow_weak_sandbox)
        return vector_wrapped(venv, runner, self.scaled(scale, gamma), tops_of(self.parts))

    def imitation_reward(
        self,
        extra_info: str = "",
        *,
        scale: FormChoice = "auto",
        gamma: float = GAMMA,
        allow_weak_sandbox: bool = False,
    ) -> ImitationReward:
        """This reward as a function for the `imitation` library, with the instruction `extra_info` in all episodes.

        `wrap` explains the other arguments.
        """
        from grace_irl.rewards.imitation import ImitationReward

        runner = self.runner(allow_weak_sandbox=allow_weak_sandbox)
        return ImitationReward(runner, self.scaled(scale, gamma), extra_info, tops_of(self.parts))

    @property
    def parts(self) -> dict[str, Shape]:
        """The parts of a record that the program reads (`reads.parts`)."""
        return self.reads.parts

    def runner(
        self, *, terms: bool = False, allow_weak_sandbox: bool = False, limits: Limits = Limits()
    ) -> RewardRunner:
        """A runner of this program, in this process if the file is trusted, otherwise in the sandbox with `limits`."""
        if self.trust:
            return InProcessRunner(self.source, str(self.path), terms=terms, reads=self.reads)
        return SandboxedRunner(
            self.source,
            str(self.path),
            terms=terms,
            allow_weak=allow_weak_sandbox,
            reads=self.reads,
            limits=limits,
        )

    def scaled(self, form: FormChoice = "auto", gamma: float = GAMMA) -> Scale:
        """The conversion of this reward to a form for the learner, with the file's calibration."""
        return Scale(self.form if form == "auto" else form, self.scale, self.offset, gamma, self.threshold)

    def form_by(self, rule: LabelRule | Literal[""] = "") -> Form:
        """The form in which a learner gets the reward by default. It follows from the label rule (docs/training.md).

        With the rule "all", it is "soft". With "last" and "goal", it is "guided".
        It is "raw" if the rule is unknown, if the file has no calibration, or if "guided" lacks a threshold. Searches
        that judge programs by their policies write no calibration.

        Args:
            rule: the label rule if the file names none.
        """
        rule = label_of(self.source) or rule
        if not rule or calibration_of(self.source) is None:
            return "raw"
        if rule == "all":
            return "soft"
        return "raw" if self.threshold is None else "guided"

    def _require_states(self, environment: Any, space: Any) -> None:
        """Refuse observations that lack a part of this reward, or have another number of components than the reward.

        Also refuse a wrapper that changes the shape of observations, unless their shape is that of the demonstrations.

        Args:
            environment: the environment or vector environment.
            space: the space of one observation; None if unknown. An observation is the state, or a dict with the state
                under "state".

        Raises:
            InputError: the observations or a wrapper are refused.
        """
        parts = getattr(space, "spaces", None)
        states = space
        if isinstance(parts, Mapping) and holds_state(parts.keys(), tops_of(self.parts)):
            states = parts[STATE]
        shape = getattr(states, "shape", None)
        if isinstance(parts, Mapping) and STATE not in parts:
            found = f"parts {', '.join(map(repr, list(parts)[:8]))}"
        elif shape is not None and len(shape) == 1:
            found = "" if shape[0] == len(self.fields) else f"{shape[0]} numbers"
        else:
            found = "" if shape is None else f"shape {shape}"
        wrong = difference(self.parts, shapes_in(states)) if space is not None else ""
        if wrong:
            raise InputError(unfit(str(self.path), wrong))
        if not self.parts and (self.reads.shape is None or shape != self.reads.shape):
            from grace_irl.rewards.gymnasium import RESIZES, require_plain

            require_plain(environment, RESIZES)
        if self.fields and found:
            named = ", ".join(self.fields[:5]) + (", …" if len(self.fields) > 5 else "")
            raise InputError(
                f"{self.path}: observations of {found}; expected the {len(self.fields)} numbers that the reward reads "
                f"({named}): choose the environment that it was made for, or give it a wrapper or a view that shows "
                f"them ({page('training')})"
            )

    def __getstate__(self) -> dict[str, Any]:
        """All but the loaded program, which cannot be pickled. A copy loads it again."""
        return {name: value for name, value in self.__dict__.items() if name != "_candidate"}

    def __repr__(self) -> str:
        return f"RewardFile({near(self.path)!r}, trust={self.trust})"

    def _repr_html_(self) -> str:
        """The HTML that a notebook displays for this object."""
        trust = "may run in this process" if self.trust else "runs in the sandbox only"
        return shown(
            f"Reward {near(self.path)}", [f"{trust}; scale {self.scale:.4g}, offset {self.offset:.4g}"], self.source
        )

    @cached_property
    def _candidate(self) -> Candidate:
        if not self.trust:
            raise InputError(
                f"{self.path}: not trusted to run in this process; "
                "expected load_reward(path, trust=True) after reading the file, "
                "or .rewards(trajectories), which runs it in the sandbox"
            )
        try:
            return trusted_candidate(self.source, filename=str(self.path))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise GraceError(f"{self.path}: does not load: {type(error).__name__}: {error}") from error


def load_reward(path: str | Path, *, trust: bool = False, exported: bool = True) -> RewardFile:
    """Load a reward file.

    Args:
        path: a file that `fit` or `grace-irl export` wrote, or any program that follows docs/contract.md.
        trust: whether the program may run in this process. Read the file before you trust it.
        exported: whether the docstring of the file may hold facts of an export, such as the names of fields. The
            docstring of a proposer's program is free text.

    Raises:
        InputError: the file is missing, is not text, or contains invisible characters, or a fact cannot be read.
    """
    file = Path(path)
    return RewardFile(file, read_reward(file), trust=trust, exported=exported)


def read_reward(path: Path) -> str:
    """The source of a reward file.

    Raises:
        InputError: the file is missing, is not text, or contains invisible characters.
    """
    try:
        source = canonical(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected a reward file (Python)") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text; expected a reward file (Python)") from None
    if hidden := unseen(source):
        raise InputError(f"{path}: {hidden[0]}")
    return source
