"""Text from the data is a literal, whatever it holds."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.programs.parsing import unseen
from grace_irl.text import packed, quoted

characters = st.characters(codec=None, exclude_categories=())


@settings(derandomize=True)
@given(st.text(characters, max_size=30))
def test_a_literal_reads_as_the_text(text: str) -> None:
    literal = quoted(text)
    assert ast.literal_eval(literal) == text
    assert unseen(f"x = {literal}\n") == ()
    assert literal.isprintable()
    assert literal.encode() is not None


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("red", '"red"'),
        ("grün", '"grün"'),
        ('a"b', r'"a\"b"'),
        ("a\\", r'"a\\"'),
        ("\n\0", r'"\n\u0000"'),
        ("\u202e", r'"\u202e"'),
        ("\ud800", r'"\ud800"'),
    ],
)
def test_plain_text_stays_readable(text: str, literal: str) -> None:
    assert quoted(text) == literal


@pytest.mark.parametrize(
    ("entries", "lines"),
    [
        ([], []),
        (["a"], ["    a,"]),
        (["aaa", "bbb", "ccc"], ["    aaa, bbb,", "    ccc,"]),
        (["longer than a line", "b"], ["    longer than a line,", "    b,"]),
    ],
)
def test_packed(entries: list[str], lines: list[str]) -> None:
    assert packed(entries, 14) == lines


@pytest.mark.parametrize("text", ["\u3164", "\u034f", "a\ufe0f", "\U000e0100", "\u200d", "\ud800", "\U000e0041"])
def test_what_a_source_may_not_hold_is_spelt_out(text: str) -> None:
    written = quoted(text)
    assert written == ascii(text).replace("'", '"')
    assert unseen(f"x = {written}\n") == ()
