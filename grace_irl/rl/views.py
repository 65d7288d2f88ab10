"""States that programs see, made of an environment's observations, offline and online alike."""

from __future__ import annotations

import string
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.label_rule import environment_rule
from grace_irl.demos.trajectory import Metadata
from grace_irl.states import kinds_of_space
from grace_irl.states.grid import GRID
from grace_irl.states.kind import StateKind
from grace_irl.states.layout import StateLayout

# Components of the observation, in order, as Gymnasium's documentation of each environment lists them
# ("Observation Space" of Hopper, HalfCheetah, Walker2d; v2, v4 and v5 agree). `z_torso`: height in metres;
# `angle_*`: of a joint or the torso, in radians; `velocity_*`: rates, metres or radians per second.
_HOPPER_JOINTS = ("thigh", "leg", "foot")
_CHEETAH_JOINTS = ("back_thigh", "back_shin", "back_foot", "front_thigh", "front_shin", "front_foot")
_WALKER_JOINTS = ("right_thigh", "right_leg", "right_foot", "left_thigh", "left_leg", "left_foot")


def _body(joints: tuple[str, ...]) -> tuple[str, ...]:
    angles = ("z_torso", "angle_torso", *(f"angle_{joint}" for joint in joints))
    velocities = ("torso", *joints)
    return (*angles, "velocity_x", "velocity_z", *(f"velocity_angle_{name}" for name in velocities))


VECTOR_FIELDS: dict[str, tuple[str, ...]] = {
    "Hopper": _body(_HOPPER_JOINTS),
    "HalfCheetah": _body(_CHEETAH_JOINTS),
    "Walker2d": _body(_WALKER_JOINTS),
}
"""Field names by the environment's name without its version."""


def vector_fields(environment_id: str) -> tuple[str, ...]:
    """Names of the observation's components, whatever the version; () if they are not known."""
    return VECTOR_FIELDS.get(environment_id.split("/")[-1].rsplit("-v", 1)[0], ())


class SpaceView:
    """Observations that are states already (MuJoCo, classic control, pictures of games).

    Args:
        environment_id: a Gymnasium id; its name without version selects the field names.
        observation_space: of the environment.
        kind: of the observations (`grace_irl.rl.environments.make` decides it).

    Attributes:
        kinds: names of the kinds that the space leaves; that of `metadata` is one of them.
    """

    has_goal = False

    def __init__(self, environment_id: str, observation_space: Any, kind: StateKind) -> None:
        self._kind = kind
        self.kinds = tuple(each.name for each in kinds_of_space(observation_space))
        fields = vector_fields(environment_id) if kind.named_fields else ()
        named = fields if len(fields) == (getattr(observation_space, "shape", None) or (0,))[0] else ()
        self.metadata = Metadata(kind.name, named, environment_id, kind.name, environment_rule(environment_id))

    def prepare(self, environment: Any) -> None:
        """Nothing to prepare."""

    def state(self, environment: Any, observation: Any) -> Any:  # noqa: ARG002
        """A copy, because simulators reuse their buffers."""
        return self._kind.copied(observation)

    def instruction(self, environment: Any) -> str:  # noqa: ARG002
        """No instruction."""
        return ""

    def success(self, terminated: bool, reward: float) -> bool:  # noqa: ARG002
        """A control task has no goal state."""
        return False


LONGEST_TEXT = 1 << 16
"""Characters of a text of an observation."""

MINIGRID = "minigrid-full"
"""The view of whole grids of MiniGrid."""


class MiniGridView:
    """The whole grid of a MiniGrid or BabyAI environment, `(width, height, 3)` uint8, mission as instruction.

    The array equals that of MiniGrid's `FullyObsWrapper`, encoded straight from the grid: the wrapper would
    have the environment render the agent's partial view first and throw it away.
    """

    has_goal = True

    def __init__(self, environment_id: str) -> None:
        self.metadata = Metadata(GRID.name, (), environment_id, MINIGRID, "last")

    def prepare(self, environment: Any) -> None:
        """Switches off the partial view, which `step` would compute and nobody here reads."""
        base = environment.unwrapped
        base.gen_obs = lambda: {"image": None, "direction": base.agent_dir, "mission": base.mission}

    def state(self, environment: Any, observation: Any) -> NDArray[np.uint8]:  # noqa: ARG002
        """See the class."""
        return encode_grid(environment.unwrapped)

    def instruction(self, environment: Any) -> str:
        """The mission."""
        return str(environment.unwrapped.mission)

    def success(self, terminated: bool, reward: float) -> bool:
        """A MiniGrid episode that ends with a positive reward reached its goal."""
        return terminated and reward > 0


def encode_grid(environment: Any) -> NDArray[np.uint8]:
    """The array of `FullyObsWrapper`, for an unwrapped environment: `(width, height, 3)`, C-contiguous."""
    from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX

    grid = environment.grid
    empty = (OBJECT_TO_IDX["empty"], 0, 0)
    codes = [empty if cell is None else cell.encode() for cell in grid.grid]
    by_row: NDArray[np.uint8] = np.array(codes, np.uint8).reshape(grid.height, grid.width, 3)
    state = np.ascontiguousarray(by_row.transpose(1, 0, 2))
    column, row = environment.agent_pos
    state[column, row] = (OBJECT_TO_IDX["agent"], COLOR_TO_IDX["red"], environment.agent_dir)
    return state


def space_of(kind: StateKind, state: Any) -> Any:
    """The Gymnasium space of states like this one, as wide as their type allows: a `Box`, or a `Dict` of named parts.

    Raises:
        ImportError: Gymnasium is not installed.
    """
    from gymnasium.spaces import Box, Dict, Text

    spaces: dict[str, Any] = {}
    for part in StateLayout.of(kind, state).parts:
        if part.is_text:
            spaces[part.name] = Text(LONGEST_TEXT, min_length=0, charset=string.printable)
            continue
        dtype: Any = np.dtype(part.dtype).type
        whole = np.issubdtype(dtype, np.integer)
        low, high = (0, np.iinfo(dtype).max) if whole else (-np.inf, np.inf)
        spaces[part.name] = Box(low, high, part.shape, dtype)
    return spaces[""] if list(spaces) == [""] else Dict(spaces)
