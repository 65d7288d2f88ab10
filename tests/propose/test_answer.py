"""Answers as models give them: each is a program or a named failure, whatever stands around it."""

from __future__ import annotations

import ast
import json
from collections import Counter
from pathlib import Path
from tarfile import open as open_tar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.propose.answer import MAX_CHARS, parse
from grace_irl.propose.json_answer import ANSWER_SCHEMA
from grace_irl.propose.protocol import Finish

LOGS = Path(__file__).parents[3] / "shared" / "data" / "llm_logs"

CODE = '''\
import numpy as np


class Reward:
    """Counts.

    ``x`` and {"braces": 1}
    """

    def __init__(self, extra_info=None):
        self.text = "a\\nb" + (extra_info or "")

    def reward_fn(self, state) -> float:
        return float(np.sum(state))
'''
HELPER = "def far(a, b):\n    return abs(a - b)\n"
USES = CODE.replace("float(np.sum(state))", "float(far(np.sum(state), LIMIT))")
AS_JSON = json.dumps({"reasoning": "It counts.", "reward_class_code": CODE})
FENCED_IN_DOCSTRING = CODE.replace("Counts.", "Counts.\n\n    ```\n    an example\n    ```\n")
DRAFT = "class Reward:\n    def reward_fn(self, state):\n        return 0\n"
EXCERPT = "class Reward:\n    # ... as above\n    def reward_fn(self, state): ...\n"
LOOSE = CODE.replace('"', '\\"')  # quotes escaped, line breaks not

FOUND = {
    "fence": f"It counts.\n\n```python\n{CODE}```\n",
    "fence without language": f"It counts.\n\n```\n{CODE}```\nDone.",
    "tildes": f"~~~py\n{CODE}~~~",
    "longer fence": f"````python\n{CODE}````",
    "fence at the end of a line": f"Here it is: ```python\n{CODE}```",
    "closing fence glued": f"```python\n{CODE.rstrip()}```",
    "fence in a list": "1. So:\n" + "".join(f"   {line}\n" for line in f"```python\n{CODE}```".split("\n")),
    "unclosed fence": f"It counts.\n```python\n{CODE}",
    "windows": f"```python\r\n{CODE}```".replace("\n", "\r\n").replace("\r\r", "\r"),
    "hard spaces": f"```python\n{CODE.replace('    ', chr(0xA0) * 4)}```",
    "zero-width": f"\ufeff```python\n{CODE}```\u200b",
    "bare": f"It counts.\n\n{CODE}\nThis should do it.",
    "bare alone": CODE,
    "label of a copied block": f"python\n{CODE}",
    "thoughts": f"<think>\n```python\nclass Reward:\n    pass\n```\n</think>\n```python\n{CODE}```",
    "thoughts without a beginning": f"Let me see: class Reward:\n</think>\n\n```python\n{CODE}```",
    "draft first": f"A draft:\n```python\n{DRAFT}```\n\n```python\n{CODE}```",
    "excerpt after": f"```python\n{CODE}```\nOr:\n```python\n{EXCERPT}```",
    "a comment about what is unchanged, then the old program": (
        "```python\n" + CODE.replace("        return", "        # Unchanged cells count.\n        return") + "```\n"
        f"It was:\n```python\n{EXCERPT}```"
    ),
    "usage after": f"```python\n{CODE}```\n```python\nstate = 1\nr = Reward('x')\n```\n```json\n{{}}\n```",
    "json": AS_JSON,
    "json in a fence": f"```json\n{AS_JSON}\n```",
    "json with text": f"Sure! {AS_JSON}\nI hope that helps.",
    "json in a fence with text": f"Sure!\n```json\n{json.dumps({'reward_class_code': CODE}, indent=1)}\n```",
    "json without line breaks escaped": f'{{"reasoning": "It counts.", "reward_class_code": "{LOOSE}"}}',
    "json with quotes bare": f'{{"reasoning": "It counts.", "reward_class_code": "{CODE}"}}',
    "json with triple quotes": "{'reasoning': 1, \"reward_class_code\": '''" + CODE + "'''}",
    "json with reasoning last": json.dumps({"reward_class_code": CODE, "reasoning": "It counts."}),
    "json, code fenced within": json.dumps({"reasoning": "r", "reward_class_code": f"```python\n{CODE}```"}),
    "json, another key": json.dumps({"code": CODE}),
    "json, one level down": json.dumps({"answer": {"reward_class_code": CODE}}),
    "json, lines": json.dumps({"reward_class_code": CODE.split("\n")}),
    "json, breaks escaped twice": json.dumps({"reasoning": "r", "reward_class_code": json.dumps(CODE)[1:-1]}),
}


@pytest.mark.parametrize("name", sorted(FOUND))
def test_programs_are_found(name: str) -> None:
    answer = parse(FOUND[name])
    assert answer.failure == ""
    assert ast.dump(ast.parse(answer.source)) == ast.dump(ast.parse(CODE))


@pytest.mark.parametrize("name", ["fence", "bare", "json", "json with quotes bare", "json with reasoning last"])
def test_the_reasoning_is_kept(name: str) -> None:
    assert parse(FOUND[name]).reasoning.startswith("It counts.")


def test_a_fence_in_a_docstring_does_not_end_the_program() -> None:
    answer = parse(f"```python\n{FENCED_IN_DOCSTRING}```\nDone.")
    assert ast.dump(ast.parse(answer.source)) == ast.dump(ast.parse(FENCED_IN_DOCSTRING))


@pytest.mark.parametrize(
    "text",
    [
        f"```python\n{HELPER}LIMIT = 3\n```\nand\n```python\n{USES}```",
        f"```python\n{USES}```\nwith\n```python\n{HELPER}```\n```python\nLIMIT = 3\n```",
        f"```python\nLIMIT = 3\n```\n```\n{HELPER}```\n```python\n{USES}```\n```python\nshow = 1\n```",
    ],
)
def test_blocks_that_need_each_other_are_joined(text: str) -> None:
    source = parse(text).source
    names = [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert sorted(names) == ["Reward", "far"]
    assert "LIMIT = 3" in source
    assert "show" not in source


def test_imports_and_debug_of_their_own_blocks_are_joined() -> None:
    head, body = CODE.split("\n\n\n")
    debug = "def debug(expert_states, negative_states):\n    return ''\n"
    source = parse(f"```python\n{head}\n```\n```python\n{body}```\n```python\n{debug}```").source
    assert ast.dump(ast.parse(source)) == ast.dump(ast.parse(f"{CODE}\n\n{debug}"))


FAILED: dict[str, tuple[str, Finish, str]] = {
    "nothing": ("", "stop", "empty"),
    "white space": (" \n\t", "stop", "empty"),
    "only thoughts": ("<think>class Reward: no</think>\n", "stop", "empty"),
    "thoughts that never end": (f"<think>\n{CODE}", "stop", "empty"),
    "thoughts cut": (f"<think>\n{CODE}", "length", "length"),
    "cut at once": ("", "length", "length"),
    "cut in the fence": (f"```python\n{CODE[:150]}", "length", "length"),
    "cut in the prose": ("It counts the", "length", "length"),
    "cut json": (AS_JSON[:-30], "length", "length"),
    "cut bare": (CODE[:-10], "length", "length"),
    "filtered": (FOUND["fence"], "refusal", "refusal"),
    "declined": ("I'm sorry, but I can't help with that.", "stop", "refusal"),
    "declined otherwise": ("I cannot write such a program.", "stop", "refusal"),
    "prose": ("It counts.", "stop", "no_class"),
    "nothing to tell": ("It cannot be told from the states: two are equal.", "stop", "untold"),
    "nothing to tell, in json": (
        json.dumps({"reasoning": "It cannot be told from the states: two are equal.", "reward_class_code": ""}),
        "stop",
        "untold",
    ),
    "nothing to tell, in json with the code first": (
        json.dumps({"reward_class_code": "", "reasoning": "It cannot be told from the states: two are equal."}),
        "stop",
        "untold",
    ),
    "nothing to tell, cut": ("It cannot be told from the states: two", "length", "length"),
    "something else is not told": ("Perhaps it cannot be told from the states.", "stop", "no_class"),
    "another class": ("```python\nclass Agent:\n    pass\n```", "stop", "no_class"),
    "a class that begins alike": ("```python\nclass RewardModel:\n    pass\n```", "stop", "no_class"),
    "the class in a sentence": ("I would write class Reward: it counts.", "stop", "no_class"),
    "another object": ('{"components": [{"id": "a"}]}', "stop", "no_class"),
    "an object without a class": (json.dumps({"reward_class_code": "def f(): pass"}), "stop", "unparsable"),
    "broken json": ('{"reasoning": "x", "reward_class_code": }', "stop", "unparsable"),
    "a code that is a number": ('{"reward_class_code": 3}', "stop", "unparsable"),
    "enormous": ("x" * (MAX_CHARS + 1), "stop", "unparsable"),
}


@pytest.mark.parametrize("name", sorted(FAILED))
def test_failures_are_named(name: str) -> None:
    text, finish, kind = FAILED[name]
    answer = parse(text, finish)
    assert answer.source == ""
    assert answer.failure.startswith(f"{kind}: ")


def test_a_program_that_is_whole_counts_though_the_answer_was_cut() -> None:
    assert parse(f"```python\n{CODE}```\nIn other wor", "length").failure == ""
    assert parse(AS_JSON + " and", "length").failure == ""
    assert parse(f"{CODE}\n\nIn other words, it coun", "length").failure == ""


PIECES = st.sampled_from(
    [
        *("```", "```python\n", "~~~", '"""', "{", "}", '{"reward_class_code": "', '\\n"', "\\", "\n", "    "),
        *("class Reward:\n", "def reward_fn(self, state):\n", "import re\n", "<think>", "</think>", "x", "\ud800"),
    ]
)


@given(st.lists(PIECES | st.text(max_size=5), max_size=40).map("".join), st.sampled_from(["stop", "length", "refusal"]))
def test_every_text_gives_an_answer(text: str, finish: Finish) -> None:
    answer = parse(text, finish)
    assert (answer.failure == "") == ("class Reward" in answer.source)
    answer.source.encode()


LONG = {
    "fences": "```\n" * 250_000,
    "docstrings": '```\n"""\n```\n' * 90_000,
    "ticks": "`" * 999_999,
    "braces": '{"a":' * 190_000,
    "keys": '"reward_class_code": "' * 45_000,
    "classes": "class Reward:\n" * 70_000,
    "spaces": "class Reward:" + " " * 900_000 + "x",
    "blocks": f"```python\n{CODE}```\n" * 2_500,
    "comments": f"```python\n{DRAFT}{'    # unchanged' + chr(10)}" * 20
    + "    # unchanged\n" * 60_000
    + "    x = 1\n```",
    "colons": "class Reward:\nif " + ": " * 400_000,
}


@pytest.mark.parametrize(
    ("lines", "left_out"),
    [
        ("        # unchanged cells count\n        return 1.0\n", False),
        ("        # The rest of the row is free.\n\n        # It ends here.\n        return 1.0\n", False),
        ("        # Same as above, for columns:\n        for x in y:\n            pass\n", False),
        ("        # rest of the code unchanged\n", True),
        ("    # unchanged", True),
        ("    # the rest of the helpers\n\n    def reward_fn(self, state):\n        return 1.0\n", True),
        ("    # ... helpers ...\n    x = 1\n", True),
        ("        # same as before\n    x = 1\n", True),
    ],
)
def test_a_comment_that_a_statement_follows_stands_for_no_code(lines: str, left_out: bool) -> None:
    """Only a block that holds all of its code is chosen where another one could be."""
    block = f"class Reward:\n    first = 1\n\n    def reward_fn(self, state):\n        pass\n{lines}"
    source = parse(f"```python\n{DRAFT}```\n```python\n{block}```").source
    assert (source == DRAFT) is left_out


@pytest.mark.parametrize("name", sorted(LONG))
def test_long_answers_are_read_in_one_go(name: str) -> None:
    """A search that tried every pair of places would not come to an end."""
    assert parse(LONG[name]).failure.partition(":")[0] in ("", "no_class", "unparsable")


def test_the_schema_asks_for_what_is_read() -> None:
    assert ANSWER_SCHEMA["required"] == ["reasoning", "reward_class_code"]


@pytest.mark.skipif(not LOGS.is_dir(), reason="../shared/data/llm_logs is not there")
class TestRecordedAnswers:
    """Real answers: a large model's rewards for BabyAI, DeepSeek's for LunarLander."""

    def test_a_large_model(self) -> None:
        lines = (LOGS / "large_model_babyai.jsonl").read_text().splitlines()
        for line in lines:
            answer = parse(json.loads(line)["answer"])
            assert answer.failure == ""
            assert any(isinstance(node, ast.ClassDef) for node in ast.parse(answer.source).body)
            assert len(answer.reasoning) > 100
        assert len(lines) == 5

    def test_deepseek(self) -> None:
        """43 answers with their prompts: expressions as JSON, lessons and reports, none of them a class."""
        (archive,) = LOGS.glob("*.tar.xz")
        with open_tar(archive) as tar:
            names = tar.getnames()
            answered = [n for n in names if n.endswith("/response.txt") and n.replace("response", "user") in names]
            texts = [handle.read().decode() for n in answered if (handle := tar.extractfile(n)) is not None]
        kinds = Counter(parse(text).failure.partition(":")[0] for text in texts)
        assert kinds == {"no_class": 43}
        # The same answers around a program: the program is found.
        assert all(parse(f"{text}\n\n```python\n{CODE}```").failure == "" for text in texts)
        assert all(parse(text[: len(text) // 2], "length").failure.startswith("length: ") for text in texts)
