"""Words and phrases of instructions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.synthesis.grid.lexicon import find_phrases, split_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Go to the RED ball", ("go", "to", "the", "red", "ball")),
        ("open it, then: 'stop'!", ("open", "it", "then", "stop")),
        ("a_b c-d", ("a", "b", "c", "d")),
        ("grüne Bälle №2", ("grüne", "bälle", "2")),
        ("", ()),
        ("  ?!  ", ()),
    ],
)
def test_words(text: str, words: tuple[str, ...]) -> None:
    assert split_words(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a ball in front of you", ("a", "ball", "in front of you")),
        ("IN  FRONT, of you", ("in front of you",)),
        ("in front of your", ("in", "front", "of", "your")),
        ("begin front of you", ("begin", "front", "of", "you")),
    ],
)
def test_phrases_are_one_word(text: str, words: tuple[str, ...]) -> None:
    assert split_words(text, ("in front of you",)) == words


@pytest.mark.parametrize(
    ("texts", "phrases"),
    [
        (["ball in front of you", "key in front of you", "box in front of you"], ("in front of you",)),
        (["ball in front of you", "key in front of you"], ()),  # twice could be chance
        (["go to ball", "go to key", "go on key"], ()),  # "go" and "to" are seen apart
        (["pick up ball", "pick up key", "up"], ()),
        (["up pick ball", "up pick key", "up pick box"], ("up pick",)),
        (["a b", "a b", "a b", "c d e", "c d e", "c d e"], ("c d e", "a b")),  # longest first
        (["so so ball", "so so key"], ()),  # a word and itself
        (["a b a b a b"], ("a b",)),
        (["a b c", "a b d", "a b e"], ("a b",)),
        (["a b c", "a b d", "c b a"], ()),
        ([], ()),
    ],
)
def test_find_phrases(texts: list[str], phrases: tuple[str, ...]) -> None:
    assert find_phrases(texts) == phrases


words = st.sampled_from(["ka", "lu", "mo", "ri"])


@settings(derandomize=True)
@given(st.lists(st.lists(words, max_size=6).map(" ".join), max_size=6))
def test_phrases_lose_no_word_and_never_stand_in_parts(texts: list[str]) -> None:
    phrases = find_phrases(texts)
    split = [split_words(text, phrases) for text in texts]
    assert [" ".join(sentence) for sentence in split] == texts
    parts = {word for phrase in phrases for word in phrase.split()}
    assert not parts & {word for sentence in split for word in sentence if " " not in word}
    for phrase in phrases:
        assert sum(sentence.count(phrase) for sentence in split) >= 2
