"""Views of known environments: conversions of their observations to the states that reward programs receive.

Recording and training use the same views, so a program sees the same states in both.
"""

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

# Components of the observation, in the order of Gymnasium's documentation ("Observation Space" of Hopper, HalfCheetah
# and Walker2d; the same in v2, v4 and v5). `z_torso` is the torso's height in metres. `angle_*` is the angle of a joint
# or of the torso, in radians. `velocity_*` is a rate of change, in metres or radians per second.
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
"""Names of the components of a state, by the environment's name without its version."""


def vector_fields(environment_id: str) -> tuple[str, ...]:
    """Names of the components of an environment's observation; () if unknown. The version in the id has no effect."""
    return VECTOR_FIELDS.get(environment_id.split("/")[-1].rsplit("-v", 1)[0], ())


class SpaceView:
    """The view of environments whose observations are the states (MuJoCo, classic control, images of games).

    Args:
        environment_id: a Gymnasium id. Its name without version determines the field names.
        observation_space: the environment's observation space.
        kind: kind of the observations, as chosen by `grace_irl.rl.environments.make`.

    Attributes:
        kinds: names of all kinds that fit the space, including that of `metadata`.
    """

    has_goal = False

    def __init__(self, environment_id: str, observation_space: Any, kind: StateKind) -> None:
        self._kind = kind
        self.kinds = tuple(each.name for each in kinds_of_space(observation_space))
        fields = vector_fields(environment_id) if kind.named_fields else ()
        named = fields if len(fields) == (getattr(observation_space, "shape", None) or (0,))[0] else ()
        self.metadata = Metadata(kind.name, named, environment_id, kind.name, environment_rule(environment_id))

    def prepare(self, environment: Any) -> None:
        """Do nothing."""

    def state(self, environment: Any, observation: Any) -> Any:  # noqa: ARG002
        """A copy of the observation, because simulators reuse their buffers."""
        return self._kind.copied(observation)

    def instruction(self, environment: Any) -> str:  # noqa: ARG002
        """The empty instruction, because this view knows none."""
        return ""

    def success(self, terminated: bool, reward: float) -> bool:  # noqa: ARG002
        """Always False, because this view knows no goal states."""
        return False


LONGEST_TEXT = 1 << 16
"""Maximum number of characters of a text in an observation."""

MINIGRID = "minigrid-full"
"""Name of the view of whole MiniGrid grids."""


class MiniGridView:
    """The view of the whole grid of a MiniGrid or BabyAI environment, with the mission as instruction.

    A state is `(width, height, 3)`, uint8. It equals the array of MiniGrid's `FullyObsWrapper`, but is encoded directly
    from the grid. The wrapper would also compute the part of the grid that the agent sees. No state needs that part.
    """

    has_goal = True

    def __init__(self, environment_id: str) -> None:
        self.metadata = Metadata(GRID.name, (), environment_id, MINIGRID, "last")

    def prepare(self, environment: Any) -> None:
        """Switch off the computation of the agent's observation in `step` (`gen_obs`), because no state needs it."""
        base = environment.unwrapped
        base.gen_obs = lambda: {"image": None, "direction": base.agent_dir, "mission": base.mission}

    def state(self, environment: Any, observation: Any) -> NDArray[np.uint8]:  # noqa: ARG002
        """The current grid with the agent, from `encode_grid`."""
        return encode_grid(environment.unwrapped)

    def instruction(self, environment: Any) -> str:
        """The mission."""
        return str(environment.unwrapped.mission)

    def success(self, terminated: bool, reward: float) -> bool:
        """Whether the episode ended with a positive reward, which MiniGrid gives only at the goal."""
        return terminated and reward > 0


def encode_grid(environment: Any) -> NDArray[np.uint8]:
    """The state of an unwrapped environment as in `MiniGridView`, `(width, height, 3)` uint8, C-contiguous."""
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
    """The Gymnasium space of states with the layout of `state`: a `Box`, a `Text`, or a `Dict` of these by part name.

    Integers range from 0 to the maximum of their type. Other numbers are unbounded.

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
