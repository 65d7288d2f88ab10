"""Instructions as words, with words that always go together taken as one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

WORD = r"[^\W_]+"
MIN_COUNT = 2
"""Times that words must have been seen together before they count as one: once could be chance."""


def split_words(text: str, phrases: Sequence[str] = ()) -> tuple[str, ...]:
    """Words and phrases of an instruction, lower case, without punctuation."""
    words = tuple(re.findall(WORD, text.lower()))
    if not phrases:
        return words
    pattern = "|".join([*(rf"\b{re.escape(phrase)}\b" for phrase in phrases), WORD])
    return tuple(re.findall(pattern, " ".join(words)))


def find_phrases(texts: Sequence[str]) -> tuple[str, ...]:
    """Runs of words that never occur but in this order and together ("in front of you"), longest first."""
    split = [split_words(text) for text in texts]
    counts = Counter(word for words in split for word in words)
    follow = Counter(pair for words in split for pair in pairwise(words))
    glued = {
        (one, other)
        for (one, other), count in follow.items()
        if count == counts[one] == counts[other] and count >= MIN_COUNT and one != other
    }
    phrases: set[str] = set()
    for words in split:
        run = list(words[:1])
        for one, other in pairwise(words):
            if (one, other) not in glued:
                phrases.add(" ".join(run))
                run = []
            run.append(other)
        phrases.add(" ".join(run))
    return tuple(sorted((phrase for phrase in phrases if " " in phrase), key=lambda p: (-len(p), p)))
