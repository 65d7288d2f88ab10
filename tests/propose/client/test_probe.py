"""Copies that pass the probe."""

from __future__ import annotations

import json

import pytest

from grace_irl.propose.client.recovery import PROGRAM, PROMPT, passed
from grace_irl.propose.protocol import Completion


def answer(program: str) -> str:
    return json.dumps({"reasoning": "copied", "reward_class_code": program})


def test_a_true_copy_passes_and_so_does_one_with_another_layout() -> None:
    assert passed(Completion(answer(PROGRAM)))
    assert passed(Completion(answer(PROGRAM.replace("\n\n\n", "\n").replace("state!r}", "state!r}  # a comment")))) is (
        False  # inside a string it is no comment
    )
    assert passed(Completion(answer(PROGRAM.replace("import re\n", "import re  # a comment\n"))))


@pytest.mark.parametrize(
    "given",
    [
        Completion(answer(PROGRAM), "length"),
        Completion(answer(PROGRAM), "refusal"),
        Completion(answer("pass")),
        Completion(answer(PROGRAM.replace("\\", ""))),
        Completion(answer(PROGRAM.replace("\n", "\\n"))),
        Completion(answer(PROGRAM.replace("\n", " "))),
        Completion(answer(PROGRAM.replace('"', "'"))),
        Completion(answer("\0")),
        Completion(json.dumps({"reward_class_code": 5})),
        Completion(json.dumps([PROGRAM])),
        Completion(f"```python\n{PROGRAM}```"),
        Completion(""),
    ],
)
def test_everything_else_fails(given: Completion) -> None:
    assert not passed(given)


def test_the_prompt_shows_the_program() -> None:
    assert PROGRAM in PROMPT.user
