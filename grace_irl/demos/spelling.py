"""Conversion of states that are texts, such as screens, to their canonical spelling. All readers of texts use it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from grace_irl.demos.memory import Memory
from grace_irl.demos.trajectory import Demonstrations, Trajectory
from grace_irl.demos.ui.texts import PARSED
from grace_irl.states.kind import StateKind, States
from grace_irl.states.texts import pack, require_utf8


class Spelling:
    """A converter of a set's texts to the canonical spelling of their kind (`StateKind.canonical`).

    Args:
        kind: kind of the states.
        memory: memory limit of the set; None for a limit of its own.
    """

    def __init__(self, kind: StateKind, memory: Memory | None = None) -> None:
        self._kind = kind
        self._memory = Memory() if memory is None else memory
        self._canonical: set[bytes] = set()

    def texts(self, texts: Sequence[str], where: str) -> list[str]:
        """The texts of one trajectory's states, converted. A text that is known to be canonical is not parsed again.

        Args:
            texts: one text per state.
            where: file and episode, for messages.

        Raises:
            InputError: a text that is no state, or texts that exceed the memory limit.
        """
        found: dict[str, str] = {}
        nbytes = 0
        for step, text in enumerate(texts):
            if text in found:
                continue
            found[text] = text
            name = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
            if name not in self._canonical:
                here = f"{where}, step {step}"
                self._memory.require(PARSED * len(text), f"{here}: a text of {len(text):,} characters")
                found[text] = self._kind.canonical(text, here)
                if found[text] == text:
                    self._canonical.add(name)
            nbytes += len(found[text])
            self._memory.require(nbytes, f"{where}: its texts")
        return [found[text] for text in texts]

    def states(self, states: States, where: str) -> States:
        """The states of one trajectory, an array of texts in UTF-8, converted.

        Raises:
            InputError: see `texts`; or a text that is not UTF-8.
        """
        encoded = states.tolist()
        for value in dict.fromkeys(encoded):
            require_utf8(value, where)
        return pack(self.texts([value.decode() for value in encoded], where))


def spelled(trajectory: Trajectory, where: str) -> Trajectory:
    """The trajectory with its states in their canonical spelling. A Python caller may pass raw dumps of screens.

    Raises:
        InputError: see `Spelling.states`.
    """
    kind, where = trajectory.state_kind, trajectory.source or where
    states: Any = trajectory.states
    if not kind.annotated or _is_canonical(kind, states, where):
        return trajectory
    return replace(trajectory, states=Spelling(kind).states(states, where))


def _is_canonical(kind: StateKind, states: Iterable[bytes], where: str) -> bool:
    """Whether all states have their canonical spelling. Only one text is decoded at a time, because texts are long."""
    known: set[bytes] = set()
    for state in states:
        digest = hashlib.blake2b(state, digest_size=16).digest()
        if digest not in known:
            require_utf8(state, where)
            text = state.decode()
            if kind.canonical(text, where) != text:
                return False
            known.add(digest)
    return True


def spelled_set(held: Demonstrations, where: str) -> Demonstrations:
    """The set with all states in their canonical spelling.

    The readers of files convert the states already. But a Python caller may add other episodes to a set from files.

    Raises:
        InputError: see `Spelling.states`.
    """
    if not held.metadata.state_kind.annotated:
        return held
    items = [replace(each, trajectory=spelled(each.trajectory, f"{where}: episode {n}")) for n, each in enumerate(held)]
    return replace(held, items=tuple(items))
