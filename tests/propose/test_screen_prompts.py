"""Prompts of screens with the real sandbox, and programs written from what they show."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace

import pytest

from grace_irl.demos.labels import Problem, label, unmarked
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.evaluate.evaluator import DiscriminatorEvaluator
from grace_irl.evaluate.log_pi import log_pi
from grace_irl.evaluate.rewards import MemoryCache
from grace_irl.methods.grace_operators import OPERATORS
from grace_irl.propose.material import Workbench
from grace_irl.propose.prompter import Prompter, PromptSettings
from grace_irl.propose.protocol import Parent
from grace_irl.sandbox import Sandbox, open_sandbox
from grace_irl.search.protocol import Request
from grace_irl.states.texts import pack
from tests.propose import screens

HALF = """
from lxml import etree

class Reward:
    def __init__(self, extra_info=None):
        self.words = (extra_info or "").split()

    def reward_fn(self, state):
        root = etree.fromstring(state)
        return float(any(node.get("text") in self.words for node in root.iter("node")))

    def debug_fn(self, state):
        return f"{len(state)} characters"
"""

# From "LinearLayout #row", "TextView 'mip' #title", "TextView '85\\u200a°' #value" and "Switch* #onoff checked".
WHOLE = """
import re
import xml.etree.ElementTree as ET

class Reward:
    def __init__(self, extra_info=None):
        self.words = re.findall(r"\\w+", extra_info or "")

    def reward_fn(self, state):
        for row in ET.fromstring(state).iter("node"):
            if row.get("resource-id") != "org.acme.vessel:id/row":
                continue
            parts = {node.get("resource-id").rpartition("/")[2]: node for node in row.iter("node")}
            number = parts["value"].get("text").removesuffix("\\u200a°")
            if parts["title"].get("text") in self.words and number in self.words:
                return float(parts["onoff"].get("checked") == "true")
        return 0.0
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with open_sandbox(workers=1) as opened:
        yield opened


def problem() -> Problem:
    """The small problem, with one more expert of each thing."""
    more = tuple(Demonstration(screens.trajectory(*task), "expert") for task in (("mip", 60), ("fen", 95)))
    items = (*(item for item in screens.demonstrations() if item.side == "train"), *more)
    return label(Demonstrations(Metadata("ui", view="uiautomator"), items), "last")


def parent_of(source: str, whole: Problem, sandbox: Sandbox, cache: MemoryCache) -> Parent:
    program = sandbox.inspect(source).program(source)
    evaluator = DiscriminatorEvaluator(whole, sandbox, log_pi=log_pi(whole, "constant"), cache=cache)
    try:
        return Parent(program, evaluator.evaluate([program])[0])
    finally:
        evaluator.close()


def test_a_program_written_from_outlines_separates(sandbox: Sandbox) -> None:
    metrics = parent_of(WHOLE, problem(), sandbox, MemoryCache()).evaluation.metrics
    assert metrics["separated"] == metrics["accuracy"] == 1.0


def test_every_prompt_of_a_parent(sandbox: Sandbox) -> None:
    whole, cache = problem(), MemoryCache()
    parent = parent_of(HALF, whole, sandbox, cache)
    assert not parent.evaluation.metrics["separated"]
    prompter = Prompter(Workbench(whole, sandbox, rewards=cache), PromptSettings(operators=OPERATORS), "code")
    written = {
        name: prompter.write(Request(1, name, (parent.program.id,), seed=1), [parent]).user
        for name in ("initialise", "mutate", "reshape")
    }
    assert "TextView '85\\u200a°' #value desc '85 degrees'" in written["initialise"]
    assert "WRONG" in written["mutate"]
    assert " characters" in written["mutate"]  # what debug_fn said
    assert "{reward " in written["reshape"]
    assert "# What is wrong with it" in prompter.repair(Request(2, "mutate", seed=1), parent).user


def test_pictures_go_with_prompts(sandbox: Sandbox) -> None:
    images = pytest.importorskip("PIL.Image")
    prompter = Prompter(Workbench(problem(), sandbox), PromptSettings(images=True, operators=OPERATORS), "code")
    prompt = prompter.write(Request(1, "initialise", (), seed=1), [])
    assert len(prompt.images) == 6
    assert "Picture 6: drawing of state 4 of Expert 3, positive" in prompt.user
    assert all(images.open(io.BytesIO(file)).format == "PNG" for file in prompt.images)


def test_asking_for_goal_states_says_nothing_of_labels(sandbox: Sandbox) -> None:
    whole = problem()
    silent = replace(whole, rule="goal", items=tuple(unmarked(item.demonstration) for item in whole))
    prompt = Prompter(Workbench(silent, sandbox), PromptSettings(operators=OPERATORS), "code").clean(silent.train[0])
    for word in ("positive", "GOAL", "counts", "reward"):
        assert word not in prompt.text
    assert "4: " in prompt.user
    assert "warm the mip to 85 degrees" in prompt.user


def test_held_out_screens_stay_outside(sandbox: Sandbox) -> None:
    train = Demonstration(screens.trajectory("mip", 85), "expert")
    secret = Trajectory(pack([screens.things({"secret": (177, True)}, "17:77")] * 20), extra_info="warm the secret")
    items = (train, Demonstration(secret, "expert", split="held_out"))
    whole = label(Demonstrations(Metadata("ui"), items), "last")
    prompter = Prompter(Workbench(whole, sandbox), PromptSettings(images=True, operators=OPERATORS), "code")
    text = prompter.write(Request(1, "initialise", (), seed=1), []).text
    assert "secret" not in text
    assert "177" not in text
    assert "17:77" not in text
