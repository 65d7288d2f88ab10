"""Scrambled copies of demonstrations. In a scrambled copy, the states have lost their meaning.

A fit to scrambled copies shows what a method learns from the data alone, without prior knowledge. Each kind of state
has its own scrambling. For grids, the integer codes of the cells are permuted per channel, and the axes are flipped or
transposed. For vectors, the fields are permuted, rescaled and renamed. In screens and in all instructions, invented
words replace the words. Equal states stay equal. The ends of episodes, the actions and the rewards do not change.

A scramble map holds all replacements in a set of demonstrations. The map is stored beside the copies as JSON.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from grace_irl.atomic import write_atomically
from grace_irl.demos.components import listed, source_in_order
from grace_irl.demos.label_rule import rule_of
from grace_irl.demos.source import Source
from grace_irl.demos.trajectory import Demonstration, Metadata, Trajectory
from grace_irl.errors import InputError
from grace_irl.states import kind_named
from grace_irl.states.kind import Scrambler

CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"
SYLLABLES = 3
TRIES = 100
"""Maximum number of attempts to invent a word with a given number of syllables. After that, words get one more."""
SCRAMBLED = "scrambled"
"""The view (`Metadata.view`) of scrambled copies. No environment has it."""


NO_MAP = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""Errors that may occur when `ScrambleMap.load` reads a file that is not a scramble map."""


@dataclass
class ScrambleMap:
    """A scramble map: all replacements of states and words in a set of demonstrations.

    The map draws an invented word for each word when the word first occurs. So the map also works for later data with
    new words.

    Attributes:
        seed: seed of all random choices.
        kind: name of the states' kind.
        scrambler: object that scrambles states of this kind.
        words: map from each word in lower case to its invented word.
        fields: names of a vector's components, in the order in which the map numbers them; () if they are unknown.
    """

    seed: int
    kind: str
    scrambler: Scrambler
    words: dict[str, str] = field(default_factory=dict)
    fields: tuple[str, ...] = ()

    @cached_property
    def _invented(self) -> set[str]:
        return set(self.words.values())

    @classmethod
    def draw(cls, seed: int, like: Trajectory, fields: tuple[str, ...] = ()) -> ScrambleMap:
        """A new random map for states with the kind and shape of the states of `like`, and with these components."""
        return cls(seed, like.kind, like.state_kind.draw_scrambler(like.states, seed), fields=fields)

    def ordered(self, source: Source) -> Source:
        """The source, with the components of its vectors in the order of the map.

        Raises:
            InputError: the source names other components.
        """
        known = source.header.metadata.fields
        if self.fields and known and sorted(known) != sorted(self.fields):
            raise InputError(
                f"{source.path}: components {listed(known)}; expected {listed(self.fields)}, for which the map was "
                "made: use another map"
            )
        return source_in_order(source, self.fields)

    def metadata(self, metadata: Metadata) -> Metadata:
        """The metadata of a scrambled copy: no environment, meaningless field names, and the same label rule."""
        fields, rule = self.scrambler.fields, rule_of(metadata, self.scrambler.old_parts)
        return replace(metadata, fields=fields, environment="", view=SCRAMBLED, label=rule)

    def apply(self, demonstration: Demonstration) -> Demonstration:
        """The scrambled copy of one demonstration. New words are added to the map.

        Screenshots, action texts and step instructions are left out, because they would reveal the meaning.

        Raises:
            InputError: the states are not of the map's kind.
        """
        trajectory = demonstration.trajectory
        if trajectory.kind != self.kind:
            raise InputError(
                f"{trajectory.source}: {trajectory.state_kind.plural}; expected {kind_named(self.kind).plural}, "
                "for which the map was made: use another map"
            )
        states = self.scrambler.states(trajectory.states, self._word, trajectory.source)
        text = self.scrambler.text(trajectory.extra_info, self._word)
        said: dict[str, Any] = dict.fromkeys(("screenshots", "action_texts", "step_instructions"), ())
        return replace(demonstration, trajectory=replace(trajectory, states=states, extra_info=text, **said))

    def _word(self, word: str) -> str:
        """Return the invented word that replaces `word`. Different words get different invented words."""
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
        """Write the map as JSON, atomically."""
        about = {
            "seed": self.seed,
            "kind": self.kind,
            **self.scrambler.to_json(),
            "words": self.words,
            "fields": self.fields,
        }
        write_atomically(path, json.dumps(about, indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> ScrambleMap:
        """Read a file that `save` wrote.

        Raises:
            InputError: no such file, or not a scramble map.
        """
        try:
            about = json.loads(path.read_text(encoding="utf-8"))
            seed, kind = int(about["seed"]), kind_named(str(about["kind"]))
            words = {str(old): str(new) for old, new in about["words"].items()}
            fields = tuple(map(str, about.get("fields", ())))
            return cls(seed, kind.name, kind.read_scrambler(about, seed), words, fields)
        except (OSError, InputError, *NO_MAP) as error:
            raise InputError(
                f"{path}: not a scramble map ({type(error).__name__}: {str(error)[:200]}); expected the JSON that "
                "grace-irl demos scramble writes"
            ) from None
