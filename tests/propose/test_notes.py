"""Answers without a program, such as opinions: the text in them."""

from __future__ import annotations

import pytest

from grace_irl.propose.json_answer import read_note


@pytest.mark.parametrize(
    "text",
    [
        "It waits. [0.4]",
        '{"text": "It waits. [0.4]"}',
        '```json\n{"text": "It waits. [0.4]"}\n```',
        '{"reasoning": "It waits. [0.4]", "reward_class_code": "low = [1]"}',
    ],
)
def test_the_text_of_a_note(text: str) -> None:
    assert read_note(text) == "It waits. [0.4]"


def test_another_object_is_kept_as_it_is() -> None:
    assert read_note('{"verdict": 1}') == '{"verdict": 1}'
    assert read_note("```\n[0.4]\n```") == "```\n[0.4]\n```"
