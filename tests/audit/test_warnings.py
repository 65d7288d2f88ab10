"""Warnings of the audit: each sign is found where it is made, and a good reward has none."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from grace_irl.demos.labels import label
from grace_irl.demos.split import split
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Trajectory
from grace_irl.evaluate.evaluator import DiscriminatorEvaluator
from grace_irl.propose.material import Workbench
from grace_irl.runs.auditing import audited
from grace_irl.runs.record import Record
from grace_irl.states.record import RecordStates
from grace_irl.states.texts import pack
from tests.audit.bench import codes, drawn, examined, warned
from tests.fakes.in_process_sandbox import InProcessSandbox


def reach(rng: np.random.Generator, role: Role) -> Trajectory:
    """A point on a line: experts walk to 1 and end there, negatives stay below 0.9. Two more numbers are noise."""
    length = int(rng.integers(8, 15))
    end = 1.0 if role == "expert" else float(rng.uniform(0.3, 0.88))
    places = np.append(np.sort(rng.uniform(0, min(end, 0.94), length - 1)), end)
    return Trajectory(np.column_stack([places, rng.normal(size=(length, 2))]), np.zeros(length - 1))


GOOD = "return float(state[0] > 0.95)"


def test_a_good_reward_on_enough_episodes_has_no_warning() -> None:
    assert codes(examined(drawn(reach), GOOD)) == set()


def test_few_held_out_episodes_and_none() -> None:
    found = warned(examined(drawn(reach, count=8), GOOD), "few-episodes")
    assert "only 2 expert and 2 negative episodes are held out" in found.found
    assert "--held-out" in found.advice
    assert codes(examined(drawn(reach), GOOD, held_out=0.0)) == {"nothing-held-out"}


def test_sides_that_do_not_differ() -> None:
    alike = drawn(lambda rng, _: reach(rng, "expert"))
    assert "no-difference" in codes(examined(alike, "return state[1]", "all"))
    # The negatives end at the goal, too: by state that is hardly seen.
    by_goal = examined(alike, GOOD)
    assert "negative episodes nearly as often as experts: 100% of 6" in warned(by_goal, "no-difference").found


def test_an_episode_on_both_sides() -> None:
    items = drawn(reach).items
    twice = Demonstration(items[0].trajectory, "negative")
    found = examined(Demonstrations(Metadata("vector"), (*items, twice)), GOOD)
    assert "1 negative episode is also among the experts" in warned(found, "no-difference").found


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ("return float(state[0] > 0.95 and self.step > 11)", "misses", "at their goal"),
        ("return float(state[0] > 0.5)", "early", "6 of 6 held-out experts before their goal"),
        ("return float(state[0] > 0.95 or 0.6 < state[0] < 0.61)", "false", "negative episodes"),
    ],
)
def test_wrong_episodes(body: str, code: str, said: str) -> None:
    data = drawn(reach, count=60) if code == "false" else drawn(reach)
    body = body.replace("0.6 < state[0] < 0.61", "0.6 < state[0] < 0.7") if code == "false" else body
    assert said in warned(examined(data, body), code).found


def test_a_reward_that_lists_its_training_states() -> None:
    data = drawn(reach, count=200)
    train = label(split(data, 0.25, 0), "last").train
    listed = [tuple(map(float, item.trajectory.states[-1])) for item in train if item.positive.any()]
    found = examined(data, f"return float(tuple(map(float, state)) in {listed!r})")
    assert {"memorised", "held-out-below", "misses"} <= codes(found)
    assert "constants for 150 positive training states" in warned(found, "memorised").found
    # The accuracy need not fall if the hit rate does, so the warning has both.
    assert "0% of experts paid at their goal) than on training data" in warned(found, "held-out-below").found


def test_the_step_as_the_cue() -> None:
    def of_length(rng: np.random.Generator, role: Role) -> Trajectory:
        length = 20 if role == "expert" else 12
        return Trajectory(rng.normal(size=(length, 2)), np.zeros(length - 1))

    found = warned(examined(drawn(of_length), "return float(self.step >= 19)"), "time")
    assert "by the step, the length or the instruction" in found.found
    assert "same lengths" in found.advice


def test_a_clock_in_the_states_as_the_cue() -> None:
    def clocked(rng: np.random.Generator, role: Role) -> Trajectory:
        length = 20 if role == "expert" else 12
        return Trajectory(np.column_stack([np.arange(length), rng.normal(size=length)]), np.zeros(length - 1))

    found = warned(examined(drawn(clocked, fields=("t", "x")), "return state[0]"), "time")
    assert "by the clock in t" in found.found


def test_constants_of_two_simulators_as_the_cue() -> None:
    def simulated(rng: np.random.Generator, role: Role) -> Trajectory:
        length = int(rng.integers(8, 15))
        gravity = np.full(length, 9.81 if role == "expert" else 9.8)
        return Trajectory(np.column_stack([gravity, rng.normal(size=length)]), np.zeros(length - 1))

    found = warned(examined(drawn(simulated, fields=("gravity", "x")), "return state[0]", "all"), "constants")
    assert "by gravity: nearly constant everywhere, or one constant in all experts" in found.found


def goal_reaching(rng: np.random.Generator, role: Role, apart: bool = True) -> Trajectory:
    """A point and its goal: experts' goals lie above 0.8, others' below or anywhere, and only experts get there."""
    length = 12
    goal = rng.uniform(0.8, 1.0) if role == "expert" and apart else rng.uniform(0.0, 0.7 if apart else 1.0)
    place = np.linspace(0, goal, length) if role == "expert" else rng.uniform(0, 1, size=length)
    return Trajectory(np.column_stack([place, np.full(length, goal)]), np.zeros(length - 1))


NEARNESS = "return -abs(state[0] - state[1])"


def test_a_field_that_is_constant_within_episodes_as_the_cue() -> None:
    data = drawn(goal_reaching, fields=("x", "goal"))
    found = examined(data, "return state[1]", "all")
    assert "by goal, which hardly changes within an episode" in warned(found, "constant-field").found
    alike = drawn(lambda rng, role: goal_reaching(rng, role, apart=False), fields=("x", "goal"))
    assert "constant-field" not in codes(examined(alike, NEARNESS, "all"))


def test_a_cue_in_arrays_of_columns() -> None:
    """NumPy may store an array column by column (Fortran order)."""
    rng = np.random.default_rng(0)
    roles: tuple[Role, ...] = ("expert", "negative")
    items = []
    for role in roles:
        for _ in range(24):
            states = np.asfortranarray(rng.random((12, 2, 3)))
            states[:, 0, 0] = rng.uniform(0.8, 1.0) if role == "expert" else rng.uniform(0.0, 0.7)
            items.append(Demonstration(Trajectory(RecordStates({"m": states}), np.zeros(11)), role))
    found = examined(Demonstrations(Metadata("record"), tuple(items)), "return state['m'][0, 0]", "all")
    assert "by m[0, 0], which hardly changes within an episode" in warned(found, "constant-field").found


def test_goals_in_other_places_are_a_fault_of_the_data_even_if_the_reward_does_not_use_them() -> None:
    found = examined(drawn(goal_reaching, fields=("x", "goal")), NEARNESS, "all")
    assert "goal hardly changes within an episode and alone tells" in warned(found, "constant-field").found


def test_pixels() -> None:
    def pictured(rng: np.random.Generator, role: Role) -> Trajectory:
        states = rng.integers(0, 256, size=(6, 300)).astype(np.float64)
        states[-1, 0] = 255 if role == "expert" else 0
        return Trajectory(states, np.zeros(5))

    assert "pixels" in codes(examined(drawn(pictured), "return float(state[0] == 255)"))


def test_rewards_of_transitions_are_audited() -> None:
    method = "    def reward_fn(self, state, action, next_state):\n        return float(next_state[0] > 0.95)\n"
    source = f"class Reward:\n{method}"
    with InProcessSandbox() as sandbox:
        best = sandbox.inspect(source).program(source)
        problem = label(split(drawn(reach), 0.25, 0), "last")
        found = DiscriminatorEvaluator(problem, sandbox).evaluate([best])[0]
        audit = audited(Workbench(problem, sandbox), Record(best, found, 0))
    assert audit is not None
    assert audit.warnings == ()


def test_declared_pictures_are_no_sign() -> None:
    def pictured(rng: np.random.Generator, role: Role) -> Trajectory:
        states = rng.integers(0, 256, size=(6, 16, 16, 3)).astype(np.uint8)
        states[-1, 0, 0, 0] = 255 if role == "expert" else 0
        return Trajectory(states, np.zeros(5), kind="image")

    rng = np.random.default_rng(0)
    roles: tuple[Role, ...] = ("expert", "negative")
    items = tuple(Demonstration(pictured(rng, role), role) for role in roles for _ in range(24))
    found = examined(Demonstrations(Metadata("image"), items), "return float(state[0, 0, 0] == 255 and self.step == 5)")
    assert "pixels" not in codes(found)


def test_a_clock_that_jitters_a_target_with_noise_and_a_sensor_of_a_constant() -> None:
    def measured(rng: np.random.Generator, role: Role) -> Trajectory:
        length = 20 if role == "expert" else 12
        hour = np.cumsum(rng.uniform(0.5, 1.5, size=length))
        target = rng.uniform(0, 1) + (2 if role == "expert" else 0) + rng.normal(scale=0.01, size=length)
        gravity = (9.81 if role == "expert" else 9.80) + rng.normal(scale=1e-3, size=length)
        return Trajectory(np.column_stack([hour, target, gravity, rng.normal(size=length)]), np.zeros(length - 1))

    data = drawn(measured, fields=("hour", "target", "az", "x"))
    assert "clock in hour" in warned(examined(data, "return float(state[0] > 16)"), "time").found
    assert "by target" in warned(examined(data, "return state[1]", "all"), "constant-field").found
    assert "by az" in warned(examined(data, "return state[2]", "all"), "constants").found


def test_a_behaviour_beside_a_large_constant_is_no_constant() -> None:
    """Experts keep an altitude of 100 m within 0.3 m, and negatives within 3 m."""

    def fly(rng: np.random.Generator, role: Role) -> Trajectory:
        steps = np.arange(int(rng.integers(20, 40)))
        swing = (0.3 if role == "expert" else 3.0) * np.sin(steps / 2 + rng.uniform(0, 6))
        altitude = 100 + swing + rng.normal(0, 0.1, len(steps))
        return Trajectory(np.column_stack([altitude, rng.normal(0, 1, len(steps))]), np.zeros(len(steps) - 1))

    data = drawn(fly, fields=("altitude_m", "wind"))
    assert "constants" not in codes(examined(data, "return -abs(state[0] - 100)", "all"))


def test_copies_of_one_recording_are_one_episode() -> None:
    items = drawn(reach, count=2).items
    copied = Demonstrations(Metadata("vector"), tuple(item for item in items for _ in range(20)))
    assert "only 1 expert and 1 negative episodes" in warned(examined(copied, GOOD), "few-episodes").found


def test_a_single_wrong_episode_is_no_sign() -> None:
    """An expert that stops short, a negative that comes too far, among the held-out ones: one, and then two of each."""
    for count in (1, 2):
        data = list(drawn(reach).items)
        problem = label(split(Demonstrations(Metadata("vector"), tuple(data)), 0.25, 0), "last")
        held_out = {item.trajectory.digest for item in problem.held_out if item.positive.any()}
        changed = 0
        for place, item in enumerate(data):
            if item.trajectory.digest in held_out and changed < count:
                states = item.trajectory.states.copy()
                states[-1, 0] = 0.949
                data[place] = Demonstration(Trajectory(states, item.trajectory.actions), "expert", split="held_out")
                changed += 1
            else:
                side = (
                    "held_out" if item.trajectory.digest in {x.trajectory.digest for x in problem.held_out} else "train"
                )
                data[place] = Demonstration(item.trajectory, item.role, split=side)
        found = codes(examined(Demonstrations(Metadata("vector"), tuple(data)), GOOD))
        assert found == (set() if count == 1 else {"misses", "held-out-below"})


def test_states_may_differ_somewhat_where_whole_episodes_are_told_apart() -> None:
    """A few, or many, states of held-out experts are bad, but each expert still outranks each negative."""
    for share, said in ((0.15, False), (0.3, True)):
        rng = np.random.default_rng(0)
        items = []
        for role in ("expert", "negative"):
            for place in range(24):
                bad = role == "negative" or rng.uniform(size=40) < (share if place < 8 else 0)
                states = np.column_stack([rng.normal(np.where(bad, np.zeros(40), 1), 0.1), rng.normal(size=40)])
                side = "held_out" if place < 8 else "train"
                items.append(Demonstration(Trajectory(states, np.zeros(39)), role, split=side))  # type: ignore[arg-type]
        found = codes(examined(Demonstrations(Metadata("vector"), tuple(items)), "return state[0]", "all"))
        assert found == ({"held-out-below"} if said else set())


def test_a_clock_of_another_hour_on_each_side_is_a_clock() -> None:
    """It hardly changes within an episode, too."""

    def ride(rng: np.random.Generator, role: Role) -> Trajectory:
        length = int(rng.integers(30, 50))
        start = rng.uniform(8.0, 11.3) if role == "expert" else rng.uniform(13.0, 16.5)
        hour = start + np.cumsum(rng.gamma(9.0, 30.0 / 9.0, length)) / 3600
        return Trajectory(np.column_stack([hour, rng.normal(size=length)]), np.zeros(length - 1))

    found = warned(examined(drawn(ride, fields=("hour", "x")), "return float(state[0] < 12)", "all"), "time")
    assert "by the clock in hour" in found.found


def test_scaled_pixels() -> None:
    def pictured(rng: np.random.Generator, role: Role) -> Trajectory:
        states = rng.integers(0, 256, size=(6, 300)) / 255
        states[-1, 0] = 1.0 if role == "expert" else 0.0
        return Trajectory(states, np.zeros(5))

    assert "pixels" in codes(examined(drawn(pictured), "return float(state[0] == 1.0)"))


def test_grids_of_two_sizes_in_two_tasks_are_audited() -> None:
    rng = np.random.default_rng(0)
    roles: tuple[Role, ...] = ("expert", "negative")
    items = []
    for task, size in (("small", 4), ("large", 7)):
        for role in roles:
            for _ in range(24):
                states = rng.integers(0, 3, size=(5, size, size, 3))
                states[:, 0, 0, 0] = 0
                states[-1, 0, 0, 0] = 9 if role == "expert" else 0
                items.append(Demonstration(Trajectory(states, np.zeros(4), kind="grid"), role, task))
    found = examined(Demonstrations(Metadata("grid"), tuple(items)), "return float(state[0, 0, 0] == 9)")
    assert codes(found) == set()


def test_failing_pays_where_steps_cost_and_failures_are_short() -> None:
    def on_a_ledge(rng: np.random.Generator, role: Role) -> Trajectory:
        length = int(rng.integers(12, 16)) if role == "expert" else int(rng.integers(4, 6))
        way = np.linspace(0, 1 if role == "expert" else -0.3, length)
        return Trajectory(np.column_stack([way, rng.normal(size=length)]), np.zeros(length - 1))

    costly = "return 1.0 if state[0] > 0.95 else -abs(1 - float(state[0]))"
    found = warned(examined(drawn(on_a_ledge), costly), "failing-pays")
    assert found.found.startswith("in 73% of pairs, the rewards of a negative episode add up to more")
    assert "--expand-form progress" in found.advice
    assert "failing-pays" not in codes(examined(drawn(on_a_ledge), GOOD))
    assert "failing-pays" not in codes(examined(drawn(on_a_ledge), costly, "all"))


def test_a_negative_that_waits_below_the_threshold_is_paid_once() -> None:
    """A policy gets the reward in the form "guided", so half a goal at each of many steps is half a goal."""

    def waits(rng: np.random.Generator, role: Role) -> Trajectory:
        way = np.linspace(0, 1, 12) if role == "expert" else np.full(40, 0.5)
        return Trajectory(np.column_stack([way, rng.normal(size=len(way))]), np.zeros(len(way) - 1))

    half = "return 1.0 if state[0] > 0.95 else 0.5 * (0.45 < state[0] < 0.55)"
    assert "failing-pays" not in codes(examined(drawn(waits), half))


def test_training_negatives_that_are_paid_though_no_held_out_one_is() -> None:
    data = drawn(reach, count=60)
    train = label(split(data, 0.25, 0), "last").train
    ends = [tuple(map(float, item.trajectory.states[-1])) for item in train if not item.positive.any()][:9]
    found = warned(examined(data, f"return float(state[0] > 0.95 or tuple(map(float, state)) in {ends!r})"), "false")
    assert found.found == "the reward pays 9 of 45 training negative episodes"
    assert found.advice.startswith("look whether they do the task")


def test_paid_experts_without_a_goal_state_are_said() -> None:
    """They count as negative episodes, and more negative episodes are no cure."""
    given = drawn(reach, count=60)
    experts = [number for number, item in enumerate(given) if item.role == "expert"]
    items = [
        replace(item, goals=() if number in experts[:20] else (len(item.trajectory.states) - 1,))
        if item.role == "expert"
        else item
        for number, item in enumerate(given)
    ]
    found = warned(examined(replace(given, items=tuple(items)), GOOD, "goal", held_out=0.0), "false")
    assert found.found == (
        "the reward pays 20 of 80 training negative episodes, 20 of them experts without a goal state"
    )
    assert found.advice == "mark the goal states of these experts (--goals), or leave them out"


def test_held_out_episodes_of_one_side_are_said() -> None:
    given = drawn(reach)
    for role, lacking in (("expert", "negative"), ("negative", "positive")):
        items = [
            replace(item, split="held_out" if item.role == role and number % 4 == 0 else "train")
            for number, item in enumerate(given)
        ]
        found = warned(examined(replace(given, items=tuple(items)), GOOD, "all", held_out=0.0), "nothing-held-out")
        assert found.found.startswith(f"the held-out episodes lack {lacking} states")


def test_experts_that_stay_at_their_goal() -> None:
    """Label rule "last" calls the earlier states there negative, and no reward without memory can tell them apart."""

    def stays(rng: np.random.Generator, role: Role) -> Trajectory:
        made = reach(rng, role)
        return Trajectory(np.vstack([made.states, made.states[-1:], made.states[-1:]]), np.zeros(len(made.states) + 1))

    found = warned(examined(drawn(stays), GOOD), "early")
    assert found.found == (
        "the reward pays 6 of 6 held-out experts before their goal, 6 of them in a state that equals the goal"
    )
    assert found.advice.startswith("mark all states that reach the goal (--label goal)")
    assert warned(examined(drawn(reach), "return float(state[0] > 0.5)"), "early").advice.startswith("search longer")


def test_experts_that_stay_behind_their_goal_do_not_explain_payments_before_it() -> None:
    def recorded(rng: np.random.Generator, role: Role) -> Trajectory:
        made = reach(rng, role)
        if role == "expert":
            made.states[-2, 0] = 0.97
        return Trajectory(np.vstack([made.states, made.states[-1:]]), np.zeros(len(made.states)))

    given = drawn(recorded)
    items = [replace(item, goals=(item.trajectory.num_steps - 1,)) if item.role == "expert" else item for item in given]
    found = warned(examined(replace(given, items=tuple(items)), GOOD, "goal"), "early")
    assert found.found == "the reward pays 6 of 6 held-out experts before their goal"


def test_one_lucky_order_of_few_states_is_no_cue() -> None:
    """An expert and a negative of a few states: at random, the goal often falls on its own place."""
    rng = np.random.default_rng(0)
    for lengths in itertools.product(range(2, 7), repeat=2):
        items = []
        roles: tuple[Role, ...] = ("expert", "negative")
        for role, length in zip(roles, lengths, strict=True):
            states = rng.uniform(0, 0.9, (length, 1))
            states[-1] = 1.0 if role == "expert" else 0.5
            items.append(Demonstration(Trajectory(states, np.zeros(length - 1)), role))
        audit = examined(Demonstrations(Metadata("vector"), tuple(items)), GOOD, held_out=0.0)
        assert not [each for each in audit.warnings if each.found.startswith("the reward tells experts from")]


def test_no_environment_is_advised_for_screens() -> None:
    """Screens are recorded on devices: nothing collects near misses there, expands, or swaps instructions."""

    def screens(number: int, role: Role) -> Demonstration:
        shown = f"switch {number % 3} is on" if role == "expert" else "all switches are off"
        states = pack([f'<hierarchy><node text="{text}"/></hierarchy>' for text in (f"page {number}", shown)])
        made = Trajectory(states, extra_info=f"turn on switch {number % 3}", source=f"{role} {number}")
        return Demonstration(made, role)

    roles: tuple[Role, ...] = ("expert", "negative")
    items = tuple(screens(number, role) for role in roles for number in range(24))
    audit = examined(Demonstrations(Metadata("ui"), items), "return float('is on' in state)")
    found = {each.code: each.advice for each in audit.warnings}
    assert found["instruction-ignored"] == "record episodes that end at a wrong goal"
    every = examined(Demonstrations(Metadata("ui"), items), "return float('page' not in state)")
    assert warned(every, "false").advice == "search longer, or bring negative episodes that come close to a goal"


@pytest.mark.parametrize(
    ("state", "body", "code", "said"),
    [
        (-1, "state[0] > 0.95 and not listed", "misses", "pays only 38 of 45 training experts at their goal"),
        (0, "state[0] > 0.95 or listed", "early", "pays 7 of 45 training experts before their goal"),
    ],
)
def test_training_experts_that_are_paid_wrongly_though_no_held_out_one_is(
    state: int, body: str, code: str, said: str
) -> None:
    data = drawn(reach, count=60)
    train = label(split(data, 0.25, 0), "last").train
    some = [tuple(map(float, item.trajectory.states[state])) for item in train if item.positive.any()][:7]
    found = examined(data, f"listed = tuple(map(float, state)) in {some!r}\nreturn float({body})")
    assert warned(found, code).found == f"the reward {said}"
    assert codes(found) == {code}
