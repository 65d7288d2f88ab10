"""Wrong states that a prompt shows: any of them, and some of every task that has any."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from grace_irl.api import fit
from grace_irl.demos.labels import Labelled, label
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Trajectory
from grace_irl.evaluate.evaluator import DiscriminatorEvaluator
from grace_irl.evaluate.rewards import MemoryCache
from grace_irl.methods.grace_operators import OPERATORS
from grace_irl.propose.material import Workbench, drawn, of_experts, wrong_states
from grace_irl.propose.prompter import Prompter, PromptSettings
from grace_irl.propose.protocol import Parent
from grace_irl.runs.run import opened
from grace_irl.search.protocol import Request
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.propose.client.server import ChatServer
from tests.runs.test_model_runs import Model, vector_set

FIRST_NUMBER = """class Reward:
    def __init__(self, extra_info=None):
        self.extra_info = extra_info

    def reward_fn(self, state):
        return float(state[0])
"""


def one(role: Role, values: Sequence[float], task: str = "default") -> Demonstration:
    """A trajectory whose states a program values as these numbers; a second number tells equal ones apart."""
    states = np.stack([np.array(values, dtype=float), np.arange(len(values)) + hash_of(role, task, values)], axis=1)
    return Demonstration(Trajectory(states), role, task)


def hash_of(*parts: object) -> float:
    return float(sum(repr(parts).encode()))


def problem_of(items: Sequence[Demonstration]) -> tuple[Labelled, ...]:
    return label(Demonstrations(Metadata("vector"), tuple(items)), "all").items


def values_of(items: Sequence[Labelled]) -> dict[str, np.ndarray]:
    return {item.trajectory.digest: item.trajectory.states[:, 0] for item in items}


def prompts(items: Sequence[Demonstration], seeds: int, context: Sequence[tuple[str, bool]] = ()) -> list[str]:
    """What so many mutations of `FIRST_NUMBER` are shown under "Where it is wrong"."""
    problem = label(Demonstrations(Metadata("vector"), tuple(items)), "all")
    cache = MemoryCache()
    with InProcessSandbox() as sandbox:
        program = sandbox.inspect(FIRST_NUMBER).program(FIRST_NUMBER)
        parent = Parent(program, DiscriminatorEvaluator(problem, sandbox, cache=cache).evaluate([program])[0])
        prompter = Prompter(Workbench(problem, sandbox, rewards=cache), PromptSettings(operators=OPERATORS), "code")
        found = [
            prompter.write(Request(n, "mutate", (program.id,), seed=n, context=tuple(context)), [parent]).user
            for n in range(seeds)
        ]
    return [text.split("# Where it is wrong")[1].split("# For comparison")[0] for text in found]


def test_states_on_the_wrong_side_of_the_best_threshold() -> None:
    items = problem_of([one("expert", [5, 5, -1]), one("negative", [0, 0, 9]), one("expert", [7, 7, 7])])
    found = wrong_states(items, values_of(items))
    assert {place: steps.tolist() for place, steps in found.items()} == {0: [2], 1: [2]}
    assert {place: steps.tolist() for place, steps in of_experts(items, found).items()} == {0: [2]}
    only_negative = {1: found[1]}
    assert of_experts(items, only_negative) == only_negative


def test_states_without_a_reward_are_not_wrong() -> None:
    items = problem_of([one("expert", [0, 5, 5]), one("negative", [9, 0, 0])])
    rewards = {name: np.where(np.arange(3) == 0, np.nan, values) for name, values in values_of(items).items()}
    assert wrong_states(items, rewards) == {}
    assert wrong_states(items, {}) == {}
    assert wrong_states(items, {items[0].trajectory.digest: rewards[items[0].trajectory.digest]}) == {}


def test_an_equal_trajectory_in_another_role_is_judged_by_its_own_marks() -> None:
    same = Trajectory(np.array([[5.0], [5.0]]))
    other = Trajectory(np.array([[0.0], [0.0]]))
    items = problem_of(
        [Demonstration(same, "expert"), Demonstration(other, "negative"), Demonstration(same, "negative", "b")]
    )
    found = wrong_states(items, {same.digest: np.full(2, 5.0), other.digest: np.zeros(2)})
    assert list(found) == [2]


def unlearnable() -> list[Demonstration]:
    """Ten tasks: of one every negative is far on the wrong side, of the others one negative just so."""
    rng = np.random.default_rng(0)
    items = []
    for number in range(10):
        bad = number == 3
        items += [one("expert", rng.uniform(1, 2, 9), f"task {number}") for _ in range(4)]
        items += [one("negative", rng.uniform(50, 60, 9), f"task {number}") for _ in range(20 if bad else 0)]
        items += [one("negative", [*rng.uniform(-2, -1, 8), 1.9], f"task {number}")]
    return items


def test_a_task_that_no_program_learns_takes_its_share_only() -> None:
    items = problem_of(unlearnable())
    wrong = wrong_states(items, values_of(items))
    tasks = {items[place].task for place in wrong}
    assert len(tasks) == 10
    shown = Counter(items[n].task for seed in range(250) for n in drawn(items, wrong, 4, np.random.default_rng(seed)))
    assert min(shown.values()) > 60  # of 100 each
    assert max(shown.values()) < 140
    for seed in range(20):
        chosen = drawn(items, wrong, 12, np.random.default_rng(seed))
        assert len(set(chosen)) == 12
        assert set(Counter(items[n].task for n in chosen)) == tasks


def test_prompts_show_every_task_that_has_a_mistake() -> None:
    found = Counter(task for text in prompts(unlearnable(), 40) for task in re.findall(r"## Task (\w+)", text))
    assert set(found) == set("ABCDEFGHIJ")


def test_sides_have_the_same_chance_and_states_too() -> None:
    many = [one("negative", [9.0] * 100 + [0.0] * 100), *(one("negative", [9.0, 0.0, float(n) / 99]) for n in range(5))]
    items = problem_of([one("expert", [5.0] * 50 + [0.5] * 3), *many])
    wrong = {0: np.array([50]), 1: np.arange(100), **{n: np.array([0]) for n in range(2, 7)}}
    first = Counter(drawn(items, wrong, 1, np.random.default_rng(seed))[0] for seed in range(400))
    assert 150 < first[0] < 250  # half, though it is one state of 106
    assert first[1] > 150


def test_far_states_do_not_hide_the_others() -> None:
    """One expert episode that begins like everybody does: its reset states are the worst, and not all that is wrong."""
    expert = one("expert", [-9.0, -9.0, -9.0, *[3.0] * 40, *[0.5] * 40, *[3.0] * 40])
    negatives = [one("negative", [-9.0 + n / 10, *[1.0] * 30]) for n in range(3)]
    marked = [
        {int(step) for step in re.findall(r"^(\d+): \{reward [^}]* WRONG\}", text, re.MULTILINE)}
        for text in prompts([expert, *negatives], 12, [("incorrect_only", True), ("expert_only", True)])
    ]
    assert all(any(step > 3 for step in steps) for steps in marked)
    assert len(set().union(*marked)) > 20  # each mutation sees others


def test_every_wrong_state_that_is_shown_is_marked() -> None:
    expert = one("expert", [3.0] * 5 + [0.5] * 8 + [3.0] * 5)
    (text,) = prompts([expert, one("negative", [1.0] * 30)], 1)
    assert re.findall(r"^(\d+): \{reward 0.5 WRONG\}", text, re.MULTILINE) == [str(n) for n in range(6, 14)]


@pytest.mark.slow
@pytest.mark.parametrize("cut", [7, 9])
def test_a_resumed_run_asks_what_it_would_have_asked(cut: int, tmp_path: Path) -> None:
    def asked(folder: Path) -> dict[int, str]:
        with opened(folder) as (store, _):
            return {index: proposal.prompt for index, attempt, proposal in store.proposals() if not attempt}

    size = {"population": 4, "elite": 1, "generations": 2, "samples_per_call": 1, "target_accuracy": 1.0}
    answer = Model(troubles=False)
    with ChatServer(answer=answer) as server:
        given = {"llm_url": server.url, "answer_format": "code", "held_out": 0.0, "sets": ("search.lag=1",), **size}
        whole = fit(vector_set(noise=0.2), out=tmp_path / "whole", **given)
        answer.calls = 0
        fit(vector_set(noise=0.2), out=tmp_path / "cut", max_calls=cut, **given)
        fit(vector_set(noise=0.2), resume=tmp_path / "cut", max_calls=100, llm_url=server.url)
    assert len(asked(whole.folder)) == 12
    assert asked(tmp_path / "cut") == asked(whole.folder)
    assert any("WRONG" in prompt for prompt in asked(whole.folder).values())
