"""A probe for what a model loses by writing its program inside JSON: it is asked to copy one."""

from __future__ import annotations

import ast
import json

from grace_irl.programs.parsing import parse
from grace_irl.propose.completion import Completion
from grace_irl.propose.prompt import Prompt

CODE = "reward_class_code"  # a field of `ANSWER_SCHEMA`

SAMPLES = 4
"""At the run's temperature. All must pass: a format that breaks one program in ten costs more than it brings."""

MAX_TOKENS = 800  # the copy takes about 250

PROGRAM = r'''import re


class Reward:
    """Counts "words" and 'lines'."""

    def __init__(self, extra_info=None):
        self.wanted = re.findall(r"\b[\w']+\b", extra_info or "")
        self.separator = "\t|\n"

    def reward_fn(self, state):
        text = f"{state!r}".replace("\\", "/").replace('"', "'")
        lines = text.split("\n")
        return float(sum(word in line for line in lines for word in self.wanted))
'''
"""What breaks in a JSON string: line breaks, both quotation marks, backslashes of both kinds, indentation."""

PROMPT = Prompt(
    system="You copy Python code exactly.",
    user=(
        f"Copy this program, unchanged, into the field {CODE} of a JSON object. "
        f'Write "copied" into its field reasoning.\n\n```python\n{PROGRAM}```\n'
    ),
)


def passed(answer: Completion) -> bool:
    """Whether the answer holds the same program (the same syntax tree)."""
    if answer.finish != "stop":
        return False
    try:
        copied = json.loads(answer.text)[CODE]
        return ast.dump(parse(copied)) == ast.dump(parse(PROGRAM))
    except (ValueError, TypeError, KeyError, SyntaxError, RecursionError, MemoryError):
        return False
