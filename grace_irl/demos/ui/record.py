"""Records of the data set AndroidControl. A record holds one episode as a `tf.train.Example`.

A shard is a file of records.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Demonstration, Metadata, Role, Split
from grace_irl.demos.ui.episode import METADATA
from grace_irl.demos.ui.residue import Residue
from grace_irl.errors import InputError
from grace_irl.pages import page
from grace_irl.toml import from_json

if TYPE_CHECKING:
    from grace_irl.demos.ui.androidcontrol_pb2 import Features


ABOUT = "grace_irl"
"""Name of grace-irl's own feature of a record: a JSON object with facts that AndroidControl's features cannot hold.
Other programs ignore this feature."""

T = TypeVar("T")

_EXPECTED = f"expected the features of AndroidControl ({page('demonstrations')})"


@dataclass(frozen=True)
class EpisodeRecord:
    """One episode of a shard.

    Attributes:
        episode_id: number of the episode in its data set.
        goal: the user's instruction for the episode.
        trees: T+1 serialised accessibility forests (`forest.py`), one per screen.
        actions: T actions between the screens, each a JSON object as text; () if the source has none.
        step_instructions: T texts with the purpose of each action, or ().
        screenshots: T+1 pictures (PNG), b"" for a screen without a picture; or ().
        sizes: width and height of each screenshot in pixels.
        about: grace-irl's additional facts as JSON (`About`); "" in records from other programs.
    """

    episode_id: int
    goal: str
    trees: tuple[bytes, ...]
    actions: tuple[str, ...] = ()
    step_instructions: tuple[str, ...] = ()
    screenshots: tuple[bytes, ...] = ()
    sizes: tuple[tuple[int, int], ...] = ()
    about: str = ""

    @classmethod
    def parse(cls, data: bytes, where: str) -> EpisodeRecord:
        """Parse one record.

        Args:
            data: data of one record of a shard.
            where: file and number of the record, for messages.

        Raises:
            InputError: not an Example, a feature that is missing or of the wrong type, an action that is not a JSON
                object, or counts of trees, actions, instructions and screenshots that do not match.
        """
        from google.protobuf.message import DecodeError

        from grace_irl.demos.ui.androidcontrol_pb2 import Example

        try:
            features = Example.FromString(data).features
        except DecodeError:
            raise InputError(f"{where}: not a tf.train.Example; {_EXPECTED}") from None
        read = _Features(features, where)
        record = cls(
            episode_id=read.number("episode_id"),
            goal=read.text("goal"),
            trees=read.many("accessibility_trees", bytes),
            actions=read.many("actions", _utf8),
            step_instructions=read.many("step_instructions", _utf8),
            screenshots=read.many("screenshots", bytes),
            sizes=tuple(zip(read.numbers("screenshot_widths"), read.numbers("screenshot_heights"), strict=False)),
            about="".join(read.many(ABOUT, _utf8)),
        )
        record.check(f"{where}: episode {record.episode_id}")
        return record

    def serialise(self) -> bytes:
        """The record as bytes. Equal records give equal bytes."""
        from grace_irl.demos.ui.androidcontrol_pb2 import Example

        example = Example()
        feature = example.features.feature
        feature["episode_id"].int64_list.value.append(self.episode_id)
        feature["screenshot_widths"].int64_list.value.extend(width for width, _ in self.sizes)
        feature["screenshot_heights"].int64_list.value.extend(height for _, height in self.sizes)
        texts: dict[str, Sequence[bytes]] = {
            "goal": [self.goal.encode()],
            "accessibility_trees": self.trees,
            "screenshots": self.screenshots,
            "actions": [action.encode() for action in self.actions],
            "step_instructions": [text.encode() for text in self.step_instructions],
        }
        if self.about:
            texts[ABOUT] = [self.about.encode()]
        for name, values in texts.items():
            feature[name].bytes_list.value.extend(values)
        for name in ("screenshots", "actions", "step_instructions"):
            feature[name].bytes_list.SetInParent()
        for name in ("screenshot_widths", "screenshot_heights"):
            feature[name].int64_list.SetInParent()
        return bytes(example.SerializeToString(deterministic=True))

    def check(self, where: str) -> None:
        """Check that the counts of trees, actions, instructions and screenshots match, and that actions are JSON.

        Raises:
            InputError: counts that do not match, or an action that is not a JSON object.
        """
        screens = len(self.trees)
        if not screens:
            raise InputError(f"{where}: no accessibility trees; expected one for each screen")
        for name, found, expected in (
            ("actions", len(self.actions), screens - 1),
            ("step_instructions", len(self.step_instructions), screens - 1),
            ("screenshots", len(self.screenshots), screens),
            ("screenshot_widths and screenshot_heights", len(self.sizes), screens),
        ):
            if found not in (expected, 0):
                raise InputError(
                    f"{where}: {found} {name} for {screens} accessibility trees; expected {expected}, or none: "
                    "drop the episode"
                )
        for step, action in enumerate(self.actions):
            try:
                if not isinstance(json.loads(action), dict):
                    raise ValueError("not an object")
            except (ValueError, RecursionError) as error:
                raise InputError(
                    f"{where}, step {step}: an action that cannot be read ({error}); expected a JSON object"
                ) from None


class _Features:
    """Access to the features of one Example, with checks of their types."""

    def __init__(self, features: Features, where: str) -> None:
        self._features = features.feature
        self._where = where

    def text(self, name: str) -> str:
        """The single text of a required feature."""
        return self._only(name, self.many(name, _utf8))

    def number(self, name: str) -> int:
        """The single whole number of a required feature."""
        return self._only(name, self.numbers(name))

    def numbers(self, name: str) -> tuple[int, ...]:
        """The whole numbers of a feature; () if it is missing."""
        return tuple(self._values(name, "int64_list"))

    def many(self, name: str, read: Callable[[bytes], T]) -> tuple[T, ...]:
        """The byte strings of a feature, each converted by `read`; () if the feature is missing."""
        try:
            return tuple(read(value) for value in self._values(name, "bytes_list"))
        except UnicodeDecodeError:
            raise InputError(f"{self._where}: feature {name!r} is not UTF-8; {_EXPECTED}") from None

    def _values(self, name: str, kind: str) -> Any:
        feature = self._features.get(name)
        stated = None if feature is None else feature.WhichOneof("kind")
        if feature is None or stated is None:
            return ()
        if stated != kind:
            raise InputError(f"{self._where}: feature {name!r} is a {stated}, not a {kind}; {_EXPECTED}")
        return getattr(feature, kind).value

    def _only(self, name: str, values: Sequence[T]) -> T:
        if len(values) != 1:
            found = f"{len(values)} values in" if values else "no"
            raise InputError(f"{self._where}: {found} feature {name!r}; {_EXPECTED}")
        return values[0]


def _utf8(value: bytes) -> str:
    return value.decode()


ARRAYS = ("actions", "rewards", "log_probs")
"""Numeric arrays of a trajectory. AndroidControl has no features for these arrays: its actions are texts."""


@dataclass(frozen=True)
class About:
    """Facts about one episode that AndroidControl's features cannot hold.

    Attributes:
        metadata: metadata of the set to which the episode belongs.
        role: role of the episode; None if the record gives none.
        task, split, goals: attributes of `Demonstration`.
        terminated, truncated: attributes of `Trajectory`.
        arrays: map from the names in `ARRAYS` to the trajectory's arrays. Missing arrays are left out.
        screens: residue of each screen (`residue.py`), None for a screen without residue; () in records from other
            programs. A residue holds the parts of the screen's XML that a forest cannot represent.
    """

    metadata: Metadata = METADATA
    role: Role | None = None
    task: str = "default"
    split: Split | None = None
    goals: tuple[int, ...] | None = None
    terminated: bool = False
    truncated: bool = False
    arrays: Mapping[str, Any] = field(default_factory=dict)
    screens: tuple[Residue | None, ...] = ()

    @classmethod
    def of(cls, demonstration: Demonstration, metadata: Metadata, screens: tuple[Residue | None, ...]) -> About:
        """The additional facts of a demonstration.

        Args:
            demonstration: the demonstration.
            metadata: metadata of the set.
            screens: residue of each screen, from `residue.difference`.
        """
        trajectory = demonstration.trajectory
        arrays = {name: getattr(trajectory, name) for name in ARRAYS}
        return cls(
            metadata,
            demonstration.role,
            demonstration.task,
            demonstration.split,
            demonstration.goals and tuple(map(int, demonstration.goals)),
            bool(trajectory.terminated),
            bool(trajectory.truncated),
            {name: array for name, array in arrays.items() if array is not None},
            screens,
        )

    def to_json(self) -> str:
        """The facts as JSON, with the shapes and dtypes of arrays."""
        arrays = {
            name: {"dtype": array.dtype.str, "shape": array.shape, "values": array.tolist()}
            for name, array in self.arrays.items()
        }
        about = {**vars(self), "metadata": vars(self.metadata), "arrays": arrays}
        return json.dumps(about, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str, where: str) -> About:
        """Parse a text from `to_json`. For an empty text, as in records from other programs, return the defaults.

        Raises:
            InputError: any other text.
        """
        if not text:
            return cls()
        try:
            found = from_json(cls, text)
            metadata = replace(found.metadata, kind=METADATA.kind, fields=())
            arrays = {name: _array(name, kept) for name, kept in found.arrays.items() if name in ARRAYS}
            return replace(found, metadata=metadata, arrays=arrays)
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:160]
            raise InputError(
                f"{where}: grace-irl's own feature (`{ABOUT}`) cannot be used ({reason}); expected it as grace-irl "
                "wrote it: write the file again"
            ) from None


def _array(name: str, kept: Mapping[str, Any]) -> NDArray[Any]:
    dtype = np.dtype(str(kept["dtype"]))
    if dtype.kind not in "biuf":
        raise ValueError(f"numbers of dtype {dtype}")
    array = np.array(kept["values"], dtype).reshape([int(side) for side in kept["shape"]])
    if not array.ndim or (array.ndim > 1 and name != "actions"):
        raise ValueError(f"{name} of shape {array.shape}")
    return array
