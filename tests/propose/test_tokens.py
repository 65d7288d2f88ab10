"""The estimate of tokens, against counts of a real tokenizer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grace_irl.propose.tokens import cut, estimate

LOGS = Path(__file__).parents[3] / "shared" / "data" / "llm_logs" / "large_model_babyai.jsonl"

# Tokens of each recorded prompt and answer as Qwen's byte-pair encoding counts them (its published vocabulary).
COUNTED = [(2674, 829), (6403, 1546), (5266, 1099), (4919, 938), (13136, 2089)]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("123", 3),  # digit by digit
        ("(1,0,0)", 7),
        ("state", 1),
        ("state 1", 3),  # the space before a digit is one of its own
        ("a\n  b", 4),
        ("a:\n\n\nb", 4),  # empty lines are one
        ("incomprehensibilities", 3),
        ("déjà 你好", 6),
    ],
)
def test_closed_forms(text: str, tokens: int) -> None:
    assert estimate(text) == tokens


@pytest.mark.skipif(not LOGS.is_file(), reason="../shared/data/llm_logs is not there")
def test_against_a_real_tokenizer() -> None:
    records = [json.loads(line) for line in LOGS.read_text().splitlines()]
    for record, counted in zip(records, COUNTED, strict=True):
        for text, true in zip((record["prompt"], record["answer"]), counted, strict=True):
            assert 1.0 <= estimate(text) / true <= 1.15


def test_long_runs_of_tabs_are_read_in_one_go() -> None:
    """A search that began again at every tab would not come to an end."""
    assert estimate("a" + "\t" * 500_000 + "b") == 2


def test_short_texts_stay_as_they_are() -> None:
    assert cut("one two\nthree", 4) == "one two\nthree"


def test_long_texts_end_at_a_line_and_say_how_much_is_missing() -> None:
    text = "".join(f"line {number} of many\n" for number in range(100))
    short = cut(text, 100)
    kept, _, note = short.rpartition("\n")
    assert text.startswith(kept + "\n")
    assert note == f"[{len(text) - len(kept)} more characters left out]"
    assert estimate(kept) <= 100


def test_a_text_of_one_line_is_cut_within_it() -> None:
    assert cut("word " * 100, 10).startswith("word word")
    assert estimate(cut("word " * 100, 10).partition("\n")[0]) <= 10
