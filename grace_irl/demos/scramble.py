"""Copies of demonstrations in which nothing means what it did: a test of what a method learns from data
alone.

How states lose their meaning is their kind's affair: grid codes are permuted per channel, axes flipped or transposed; a
vector's fields are permuted, rescaled and renamed; screens are put in invented words, as all instructions are. One map
serves a whole set and is kept beside it as JSON. What is equal, what recurs and when an episode ends stay as they are,
and so do actions and rewards.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from grace_irl.atomic import write_atomically
from grace_irl.demos.label_rule import rule_of
from grace_irl.demos.trajectory import Demonstration, Metadata, Trajectory
from grace_irl.errors import InputError
from grace_irl.states import kind_named
from grace_irl.states.kind import Scrambler

CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"
SYLLABLES = 3
TRIES = 100
"""Words of this many syllables that are tried before longer ones: all short ones may be taken."""


NO_MAP = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""Errors of reading JSON that is no map."""


@dataclass
class ScrambleMap:
    """The replacements of a scramble.

    Words are invented when they are first met, by the seed, so that a map may be used again for data with words that it
    has not seen.

    Attributes:
        seed: of every choice.
        kind: name of the states' kind.
        scrambler: takes the meaning out of states of this kind.
        words: invented word by old one (lower case).
    """

    seed: int
    kind: str
    scrambler: Scrambler
    words: dict[str, str] = field(default_factory=dict)

    @cached_property
    def _invented(self) -> set[str]:
        return set(self.words.values())

    @classmethod
    def draw(cls, seed: int, like: Trajectory) -> ScrambleMap:
        """A fresh map for states like a trajectory's."""
        return cls(seed, like.kind, like.state_kind.draw_scrambler(like.states, seed))

    def metadata(self, metadata: Metadata) -> Metadata:
        """That of the copy: no environment gives such states, fields have names that say nothing, the rule stays."""
        fields, rule = self.scrambler.fields, rule_of(metadata)
        return replace(metadata, fields=fields, environment="", view="scrambled", label=rule)

    def apply(self, demonstration: Demonstration) -> Demonstration:
        """The copy of one demonstration; words that are new join the table.

        Pictures and what was done in words are left out: they would give everything away.

        Raises:
            InputError: states that the map was not made for.
        """
        trajectory = demonstration.trajectory
        if trajectory.kind != self.kind:
            raise InputError(
                f"{trajectory.source}: {trajectory.state_kind.plural}; expected {kind_named(self.kind).plural}, "
                "as the map was made for: scramble it with a map of its own"
            )
        states = self.scrambler.states(trajectory.states, self._word, trajectory.source)
        text = self.scrambler.text(trajectory.extra_info, self._word)
        said: dict[str, Any] = dict.fromkeys(("screenshots", "action_texts", "step_instructions"), ())
        return replace(demonstration, trajectory=replace(trajectory, states=states, extra_info=text, **said))

    def _word(self, word: str) -> str:
        """The invented word for a word, made of syllables; different words get different ones."""
        if word not in self.words:
            rng = np.random.default_rng([self.seed, 2, *word.encode()])
            invented, tries = word, 0
            while invented in self.words or invented in self._invented or invented == word:
                count = SYLLABLES + tries // TRIES
                pairs = zip(rng.choice(list(CONSONANTS), count), rng.choice(list(VOWELS), count), strict=True)
                invented = "".join(consonant + vowel for consonant, vowel in pairs)
                tries += 1
            self.words[word] = invented
            self._invented.add(invented)
        return self.words[word]

    def save(self, path: Path) -> None:
        """Writes the map as JSON, atomically."""
        about = {"seed": self.seed, "kind": self.kind, **self.scrambler.to_json(), "words": self.words}
        write_atomically(path, json.dumps(about, indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> ScrambleMap:
        """Reads what `save` wrote.

        Raises:
            InputError: missing, or not such a map.
        """
        try:
            about = json.loads(path.read_text(encoding="utf-8"))
            seed, kind = int(about["seed"]), kind_named(str(about["kind"]))
            words = {str(old): str(new) for old, new in about["words"].items()}
            return cls(seed, kind.name, kind.read_scrambler(about, seed), words)
        except (OSError, InputError, *NO_MAP) as error:
            raise InputError(
                f"{path}: not a scramble map ({type(error).__name__}: {str(error)[:200]}); expected the JSON that "
                "grace-irl demos scramble writes"
            ) from None
