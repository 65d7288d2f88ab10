"""The evaluator: stages, cache, strict mode, held-out data, tasks, failures."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from grace_irl.demos.labels import Problem, label
from grace_irl.demos.split import split
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.errors import InputError
from grace_irl.evaluate.columns import require_both_sides
from grace_irl.evaluate.evaluation import Bar, Evaluation
from grace_irl.evaluate.evaluator import DiscriminatorEvaluator
from grace_irl.evaluate.log_pi import log_pi
from grace_irl.evaluate.rewards import MemoryCache, RewardSource
from grace_irl.evaluate.separation import Separation
from grace_irl.programs.program import Program
from grace_irl.sandbox.protocol import Limits, Outcome
from tests.fakes.data import THRESHOLD, vector_set
from tests.fakes.in_process_sandbox import InProcessSandbox

HEAD = "class Reward:\n    def __init__(self, extra_info=None):\n        self.extra_info = extra_info\n"


def program(body: str, signature: str = "self, state", head: str = "") -> Program:
    source = f"{head}{HEAD}    def reward_fn({signature}):\n        {body}\n"
    return replace(InProcessSandbox().inspect(source).program(source), size=10)


GOOD = program(f"return float(state[1] > {THRESHOLD})")
BAD = program("return -state[1]")


def problem_of(demonstrations: Demonstrations, rule: str = "all", held_out: float = 0.25) -> Problem:
    return label(split(demonstrations, held_out, 0), rule)  # type: ignore[arg-type]


def apart(found: Evaluation) -> Separation:
    separation = Separation.of(found)
    assert separation is not None
    return separation


def test_a_perfect_program() -> None:
    with InProcessSandbox() as sandbox:
        found = DiscriminatorEvaluator(problem_of(vector_set(8, 8)), sandbox).evaluate([GOOD])[0]
    assert found.valid
    assert apart(found).held_out is not None
    assert apart(found).train.separated
    assert apart(found).held_out.separated
    assert (apart(found).train.experts, apart(found).held_out.experts) == (6 * 12, 2 * 12)
    assert found.score == pytest.approx(0, abs=1e-9)


def test_without_calibration_the_reward_is_taken_as_it_comes() -> None:
    with InProcessSandbox() as sandbox:
        evaluator = DiscriminatorEvaluator(problem_of(vector_set(8, 8)), sandbox, calibrated=False)
        found = evaluator.evaluate([GOOD])[0]
    one = 1 / (1 + math.exp(-1))
    assert found.score == pytest.approx(math.log(one) + math.log(0.5))
    assert (apart(found).scale, apart(found).offset) == (1.0, 0.0)


@pytest.mark.parametrize("calibrated", [True, False])
def test_the_offset_holds_the_mean_of_log_pi(calibrated: bool) -> None:
    """So the reward alone gives the discriminator's decision, where log pi is unknown."""
    problem = problem_of(vector_set(8, 8, noise=0.1, actions=True))
    with InProcessSandbox() as sandbox:
        evaluator = DiscriminatorEvaluator(problem, sandbox, log_pi=log_pi(problem, "uniform"), calibrated=calibrated)
        found = evaluator.evaluate([GOOD])[0]
    values = np.concatenate([(i.trajectory.states[:, 1] > THRESHOLD).astype(float) for i in problem.train])
    positive = np.concatenate([item.positive for item in problem.train])
    logits = apart(found).scale * values + apart(found).offset
    expected = -np.logaddexp(0, -logits[positive]).mean() - np.logaddexp(0, logits[~positive]).mean()
    assert found.score == pytest.approx(expected)
    if not calibrated:
        assert (apart(found).scale, apart(found).offset) == (1.0, pytest.approx(math.log(4)))


def test_held_out_data_is_scored_with_the_train_calibration() -> None:
    problem = problem_of(vector_set(8, 8, noise=0.1))
    with InProcessSandbox() as sandbox:
        found = DiscriminatorEvaluator(problem, sandbox).evaluate([GOOD])[0]
    assert apart(found).held_out is not None
    values = np.concatenate([(i.trajectory.states[:, 1] > THRESHOLD).astype(float) for i in problem.held_out])
    positive = np.concatenate([item.positive for item in problem.held_out])
    logits = apart(found).scale * values + apart(found).offset
    expected = -np.logaddexp(0, -logits[positive]).mean() - np.logaddexp(0, logits[~positive]).mean()
    assert apart(found).held_out.fitness == pytest.approx(expected)


def test_rewards_are_run_once_and_new_negatives_cost_only_themselves() -> None:
    cache, before = MemoryCache(), vector_set(4, 4)
    with InProcessSandbox() as sandbox:
        evaluator = DiscriminatorEvaluator(problem_of(before, held_out=0), sandbox, cache=cache)
        first = evaluator.evaluate([GOOD], Bar(elite=1.0))[0]
        states = sandbox.states_run
        again = evaluator.evaluate([GOOD], Bar(elite=1.0))[0]
        assert sandbox.states_run == states == 8 * 12
        assert replace(again, seconds=0) == replace(first, seconds=0)
        extra = vector_set(1, 2, seed=9).select(role="negative")
        more = replace(before, items=(*before.items, *extra.items))
        DiscriminatorEvaluator(problem_of(more, held_out=0), sandbox, cache=cache).evaluate([GOOD], Bar(elite=1.0))
        assert sandbox.states_run == states + 2 * 12


def test_trajectories_are_run_in_an_order_that_tells_nothing() -> None:
    orders = set()
    with InProcessSandbox() as sandbox:
        for number in range(4):
            evaluator = DiscriminatorEvaluator(problem_of(vector_set(10, 10), held_out=0), sandbox)
            evaluator.evaluate([replace(GOOD, id=str(number))], Bar(elite=1.0))
        orders = {order for _, order, _ in sandbox.runs}
    assert len(orders) == 4  # 20! orders: four alike do not happen
    assert all(sorted(order) == list(range(20)) for order in orders)


def test_a_program_that_counts_calls_is_caught_by_strict_mode() -> None:
    cheat = program("global n; n += 1; return float(n)", head="n = 0\n")
    with InProcessSandbox() as sandbox:
        evaluator = DiscriminatorEvaluator(problem_of(vector_set()), sandbox)
        assert evaluator.evaluate([cheat])[0].status == "mismatch"
        assert evaluator.evaluate([cheat], Bar(elite=1.0))[0].valid  # no elite: not worth a strict run
        assert evaluator.verify(cheat).startswith("mismatch")
        assert evaluator.verify(GOOD) == ""


def test_the_winner_is_verified_on_held_out_data_too() -> None:
    problem = problem_of(vector_set())
    held = {item.trajectory.extra_info for item in problem.held_out}
    assert held == {""}
    with InProcessSandbox() as sandbox:
        DiscriminatorEvaluator(problem, sandbox).verify(GOOD)
        strict = [order for _, order, mode in sandbox.runs if mode == "strict"]
    assert sorted(len(order) for order in strict) == [len(problem.held_out), len(problem.train)]


def test_invalid_programs_say_why() -> None:
    with InProcessSandbox() as sandbox:
        evaluator = DiscriminatorEvaluator(problem_of(vector_set()), sandbox)
        broken, infinite = evaluator.evaluate([program("return state[7]"), program("return float('inf')")])
    assert (broken.status, infinite.status) == ("runtime", "nonfinite")
    assert "IndexError" in broken.message
    assert broken.traceback
    assert broken.score == -math.inf
    assert not broken.valid


def test_what_fails_on_held_out_data_tells_no_state() -> None:
    problem = problem_of(vector_set())
    value = float(problem.held_out[0].trajectory.states[3, 0])
    leak = program(f"assert state[0] != {value!r}, state.tolist(); return 0.0")
    with InProcessSandbox() as sandbox:
        found = DiscriminatorEvaluator(problem, sandbox).evaluate([leak])[0]
    assert found.status == "runtime"
    assert (found.message, found.traceback) == ("runtime on a held-out trajectory", "")


def long_problem() -> Problem:
    return problem_of(vector_set(60, 60, 100, noise=0.02), held_out=0)


def test_a_hopeless_program_stops_early_and_says_so() -> None:
    problem = long_problem()
    with InProcessSandbox() as sandbox:
        evaluator = DiscriminatorEvaluator(problem, sandbox)
        full = evaluator.evaluate([BAD], Bar(elite=1.0))[0]
        before = sandbox.states_run
        stopped = DiscriminatorEvaluator(problem, sandbox).evaluate([BAD], Bar(-0.3, 1.0))[0]
        assert sandbox.states_run - before < 5_000
    assert not stopped.complete
    assert full.score <= (stopped.bound or 0.0) < -0.3
    assert "stopped after" in stopped.message


def test_stopping_early_never_drops_what_reaches_the_floor() -> None:
    problem = long_problem()
    for body in ("return state[1]", "return float(state[1] > 0.5)", "return state[1] - state[0] / 3"):
        with InProcessSandbox() as sandbox:
            full = DiscriminatorEvaluator(problem, sandbox).evaluate([program(body)], Bar(elite=1.0))[0]
            again = DiscriminatorEvaluator(problem, sandbox).evaluate([program(body)], Bar(full.score, 1.0))[0]
        assert again.complete
        assert again.score == full.score


def test_a_half_cached_program_stops_where_an_uncached_one_does() -> None:
    problem, cache = long_problem(), MemoryCache()
    with InProcessSandbox() as sandbox:
        DiscriminatorEvaluator(problem, sandbox, cache=cache).evaluate([BAD], Bar(elite=1.0))
        bar = Bar(-0.3, 1.0)
        cached = DiscriminatorEvaluator(problem, sandbox, cache=cache).evaluate([BAD], bar)[0]
        fresh = DiscriminatorEvaluator(problem, sandbox).evaluate([BAD], bar)[0]
    assert not fresh.complete
    assert replace(cached, seconds=0) == replace(fresh, seconds=0)


def test_a_program_below_the_floor_costs_no_held_out_run() -> None:
    problem = problem_of(vector_set())
    with InProcessSandbox() as sandbox:
        found = DiscriminatorEvaluator(problem, sandbox).evaluate([BAD], Bar(floor=-0.1, elite=0.0))[0]
        assert len(sandbox.runs) == 1
    assert found.complete
    assert apart(found).held_out is None


def test_tasks_are_scored_apart_and_fitness_is_their_mean() -> None:
    problem = problem_of(vector_set(4, 4, tasks=("easy", "hard"), noise=0.1))
    with InProcessSandbox() as sandbox:
        found = DiscriminatorEvaluator(problem, sandbox).evaluate([GOOD])[0]
    assert list(apart(found).tasks) == ["easy", "hard"]
    parts = [train.fitness for train, _ in apart(found).tasks.values()]
    assert found.score == pytest.approx(np.mean(parts))
    assert all(held_out is not None for _, held_out in apart(found).tasks.values())
    assert apart(found).train.experts == sum(train.experts for train, _ in apart(found).tasks.values())


def test_a_constant_reward_stops_early() -> None:
    problem = problem_of(vector_set(20, 20, length=1000), held_out=0.25)
    with InProcessSandbox() as sandbox:
        (found,) = DiscriminatorEvaluator(problem, sandbox).evaluate([program("return 3.0")], Bar(floor=-0.1))
    assert found.bound is not None
    assert found.bound < -0.1


def test_a_program_of_transitions_skips_the_first_state() -> None:
    problem = problem_of(vector_set(actions=True), "last")
    rising = program("return float(next_state[1] > 0)", signature="self, state, action, next_state")
    with InProcessSandbox() as sandbox:
        found = DiscriminatorEvaluator(problem, sandbox).evaluate([rising])[0]
    per_trajectory = 12 - 1
    assert apart(found).train.experts + apart(found).train.negatives == len(problem.train) * per_trajectory


def test_the_signature_says_what_is_rewarded_and_not_the_rewards() -> None:
    """A child that claims to reward transitions, which its source does not, gives no reward for a first state."""

    class Broken(InProcessSandbox):
        def run(self, *_: object, **__: object) -> Outcome:  # type: ignore[override]
            return Outcome("ok", rewards=tuple(np.array([np.nan, 1.0]) for _ in range(2)))

    source = RewardSource([Trajectory(np.full((2, 1), n)) for n in range(2)], Broken(), MemoryCache(), Limits())
    assert source.run(GOOD, source.digests)[0].status == "nonfinite"
    outcome, rewards = source.run(replace(GOOD, takes_action=True), source.digests)
    assert (outcome.status, len(rewards)) == ("ok", 2)


def test_transitions_into_one_side_only() -> None:
    # The experts' only states are their first ones, which no transition leads to; negatives have transitions.
    items = (
        Demonstration(Trajectory(np.ones((1, 3)), np.zeros(0)), "expert"),
        Demonstration(Trajectory(np.zeros((4, 3)), np.zeros(3)), "negative"),
    )
    problem = label(Demonstrations(Metadata("vector"), items), "all")
    rising = program("return float(next_state[1])", signature="self, state, action, next_state")
    with InProcessSandbox() as sandbox:
        found = DiscriminatorEvaluator(problem, sandbox).evaluate([rising])[0]
    assert found.status == "contract"
    assert found.message.endswith(
        "no task has both transitions into positive states and transitions into negative ones"
    )


@pytest.mark.parametrize("role", ["expert", "negative"])
def test_one_side_missing(role: str) -> None:
    only = vector_set().select(role=role)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected some of each"):
        DiscriminatorEvaluator(label(only, "all"), InProcessSandbox())


def test_monotonicity_is_of_whole_expert_trajectories() -> None:
    items = []
    for role, step in (("expert", 1.0), ("negative", -1.0)):
        states = np.arange(6)[:, None] * step
        items.append(Demonstration(Trajectory(states), role))  # type: ignore[arg-type]
    problem = label(Demonstrations(Metadata("vector"), tuple(items)), "last")
    with InProcessSandbox() as sandbox:
        found = DiscriminatorEvaluator(problem, sandbox).evaluate([program("return float(state[0])")])[0]
    assert apart(found).monotonicity == pytest.approx(1.0)


def test_a_program_that_is_too_slow_is_told_what_is_allowed() -> None:
    class Slow(InProcessSandbox):
        def run(self, *_: object, limits: Limits = Limits(), **__: object) -> Outcome:  # type: ignore[override]
            self.limits = limits
            return Outcome("timeout", message="killed after 10.0 s of CPU: the limit")

    sandbox = Slow()
    trajectories = [Trajectory(np.full((2000, 1), n)) for n in range(3)]
    source = RewardSource(trajectories, sandbox, MemoryCache(), Limits(wall_s=10, cpu_s=10))
    outcome, _ = source.run(Program("p", "", 1), source.digests)
    assert outcome.message.endswith(
        "the limit; 16 s of CPU, and 40 s in all, are allowed for 6000 states; each additional state adds 0.001 s of "
        "CPU"
    )
    assert (sandbox.limits.cpu_s, sandbox.limits.wall_s) == (16.0, 40.0)


def test_sides_that_lie_in_tasks_of_their_own_are_said() -> None:
    items = vector_set().items
    apart = [replace(item, task="Hopper-v5" if item.role == "negative" else "default") for item in items]
    problem = label(replace(vector_set(), items=tuple(apart)), "all")
    with pytest.raises(InputError, match=r"'default'.*the other trajectories are of 'Hopper-v5'.*demos convert --task"):
        require_both_sides(problem.items)
