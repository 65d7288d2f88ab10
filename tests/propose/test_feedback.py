"""Words of a prompt about a parent: rewards and debug texts, fetched from the real sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import pytest

from grace_irl.demos.labels import Problem, label
from grace_irl.demos.split import split
from grace_irl.evaluate.evaluator import DiscriminatorEvaluator
from grace_irl.evaluate.log_pi import log_pi
from grace_irl.evaluate.rewards import MemoryCache
from grace_irl.methods.grace_operators import OPERATORS
from grace_irl.propose.briefing import brief
from grace_irl.propose.feedback import material
from grace_irl.propose.material import Workbench
from grace_irl.propose.prompter import Prompter, PromptSettings
from grace_irl.propose.protocol import Parent
from grace_irl.sandbox import Limits, Sandbox, open_sandbox
from grace_irl.search.protocol import Request
from tests.fakes.data import vector_set

SOURCE = """
class Reward:
    def __init__(self, extra_info=None):
        self.seen = 0

    def reward_fn(self, state):
        self.seen += 1
        return float(state[0] > 0)

    def debug_fn(self, state):
        return f"state {self.seen}, first number {state[0]:.3f}"


def debug(expert_states, negative_states):
    return f"{len(expert_states)} against {len(negative_states)} states"
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with open_sandbox(workers=1) as opened:
        yield opened


@pytest.fixture(scope="module")
def problem() -> Problem:
    return label(split(vector_set(noise=0.1), 0.34, 0), "all")


def parent_of(source: str, problem: Problem, sandbox: Sandbox, cache: MemoryCache) -> Parent:
    program = sandbox.inspect(source).program(source)
    evaluator = DiscriminatorEvaluator(problem, sandbox, log_pi=log_pi(problem, "constant"), cache=cache)
    try:
        return Parent(program, evaluator.evaluate([program])[0])
    finally:
        evaluator.close()


def test_debug_texts_are_of_wrong_states_and_of_right_ones_beside_them(problem: Problem, sandbox: Sandbox) -> None:
    cache = MemoryCache()
    parent = parent_of(SOURCE, problem, sandbox, cache)
    bench = Workbench(problem, sandbox, rewards=cache)
    found = material(
        bench, brief(problem), Request(9, "mutate", (parent.program.id,), seed=1), [parent], OPERATORS["mutate"]
    )
    assert found.wrong
    train = {item.trajectory.digest: item.trajectory for item in problem.train}
    assert found.debug
    for (digest, step), text in found.debug.items():
        assert text == f"state {step + 1}, first number {train[digest].states[step][0]:.3f}"
    wrong = {(problem.train[place].trajectory.digest, step) for place, steps in found.wrong.items() for step in steps}
    told = {name for name, _ in found.debug}
    assert {(name, 0) for name in told} <= set(found.debug)  # the ends, right or wrong
    beside = {(name, near) for name, step in set(found.debug) & wrong for near in (step - 1, step + 1)}
    assert beside - wrong  # and right states beside wrong ones
    assert {(name, step) for name, step in beside - wrong if 0 <= step < len(train[name].states)} <= set(found.debug)
    positive = sum(int(item.positive.sum()) for item in problem.train)
    states = sum(len(item.positive) for item in problem.train)
    assert found.overall == f"{positive} against {states - positive} states"
    assert set(found.rewards) <= set(train)
    prompt = Prompter(bench, PromptSettings(operators=OPERATORS), "code").write(
        Request(9, "mutate", (parent.program.id,), seed=1), [parent]
    )
    assert found.overall in prompt.user
    assert any(text in prompt.user for text in found.debug.values())


def test_a_program_that_only_mentions_debug_functions_is_not_run_for_their_texts(
    problem: Problem, sandbox: Sandbox
) -> None:
    source = (
        '"""A reward.\n\ndef debug(a, b): none."""\n\n\n'
        "class Reward:\n    def __init__(self, extra_info=None):\n        pass\n\n"
        "    def reward_fn(self, state):\n        return 0.0  # no def debug_fn here\n"
    )
    cache = MemoryCache()
    parent = parent_of(source, problem, sandbox, cache)

    class Silent:
        def __getattr__(self, name: str) -> None:
            raise AssertionError(f"{name} of the sandbox was asked")

    bench = Workbench(problem, cast(Sandbox, Silent()), rewards=cache)
    request = Request(9, "mutate", (parent.program.id,), seed=1)
    found = material(bench, brief(problem), request, [parent], OPERATORS["mutate"])
    assert (found.debug, found.overall) == ({}, "")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('return f"state {self.seen}, first number {state[0]:.3f}"', "raise ValueError('no')"), ""),
        (
            ('return f"{len(expert_states)} against', 'while True: pass\n    return f"{len(expert_states)} against'),
            "timeout",
        ),
    ],
)
def test_debug_functions_that_fail_cost_nothing_else(
    problem: Problem, sandbox: Sandbox, change: tuple[str, str], said: str
) -> None:
    cache = MemoryCache()
    source = SOURCE.replace(*change)
    parent = parent_of(source, problem, sandbox, cache)
    assert parent.evaluation.valid
    bench = replace(Workbench(problem, sandbox, rewards=cache), limits=Limits(wall_s=2.0, cpu_s=1.0))
    found = material(
        bench, brief(problem), Request(9, "mutate", (parent.program.id,), seed=1), [parent], OPERATORS["mutate"]
    )
    assert said in found.overall
    assert found.rewards
