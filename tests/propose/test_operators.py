"""Prompts: their text by snapshots, and what must hold for all of them."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import takewhile

import numpy as np
import pytest

from grace_irl.demos.labels import positive_states
from grace_irl.demos.trajectory import LabelRule
from grace_irl.errors import InputError
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.methods.directed_operators import OPERATORS as DIRECTED
from grace_irl.methods.grace_operators import OPERATORS, initialise, mutate
from grace_irl.propose.briefing import PromptBudget, brief
from grace_irl.propose.material import Material, ParentMaterial
from grace_irl.propose.protocol import Attempt
from grace_irl.propose.rendering import COMMON, clean
from grace_irl.propose.tokens import estimate
from grace_irl.tasks.facts import TaskFacts
from grace_irl.tasks.operators import operators
from grace_irl.tasks.task import Task
from tests.propose import asked

PROMPTS = asked.prompts()


def common(one: str, other: str) -> str:
    """What two texts begin with."""
    return "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


@pytest.mark.parametrize("name", sorted(PROMPTS))
def test_snapshots(name: str) -> None:
    """Written anew by `python -m tests.propose.asked`."""
    assert f"{PROMPTS[name].text}\n" == (asked.SNAPSHOTS / f"{name}.txt").read_text()


def test_every_snapshot_has_its_prompt_and_every_operator_a_snapshot() -> None:
    assert {path.stem for path in asked.SNAPSHOTS.glob("*.txt")} == set(PROMPTS)
    assert {name.split("-")[0] for name in PROMPTS} == {*OPERATORS, *COMMON}


@pytest.mark.parametrize("name", sorted(PROMPTS))
def test_held_out_data_and_environments_stay_outside(name: str) -> None:
    text = PROMPTS[name].text
    for secret in ("(177,", "heldout", "0.1234", "0.4321", "-0.9999"):
        assert secret not in text
    for word in ("minigrid", "babyai", "mujoco", "door", "wall", "agent at", "colour", "color"):
        assert word not in text.lower()


def test_the_system_part_is_the_same_for_every_program() -> None:
    plain = brief(asked.grids())
    given = asked.material(asked.grids())
    systems = {
        {**OPERATORS, **COMMON}[name](plain, given).system for name in ("initialise", "mutate", "repair", "reshape")
    }
    assert len(systems) == 1
    assert systems != {clean(plain, Material(trajectories=asked.grids().train)).system}


def test_mutations_share_everything_up_to_the_source() -> None:
    plain = brief(asked.grids())
    one = mutate(plain, asked.material(asked.grids(), seed=1)).text
    other = mutate(plain, replace(asked.material(asked.grids(), seed=2), source="import re\n" + asked.SOURCE)).text
    assert common(one, other).endswith("# The program\n```python\n")
    assert common(one, initialise(plain, Material()).text).endswith(plain.preamble + "\n\n# ")


def test_a_seed_gives_one_prompt_and_seeds_differ() -> None:
    plain = brief(asked.grids(tasks=("a", "b", "c")), budget=PromptBudget(experts=1, negatives=1))
    texts = {seed: {initialise(plain, Material(seed=seed)).text for _ in range(3)} for seed in range(8)}
    assert all(len(each) == 1 for each in texts.values())
    assert len({text for each in texts.values() for text in each}) > 1
    for (text,) in texts.values():
        assert all(f"## Task {name}\nExpert {place}:" in text for place, name in enumerate("ABC", start=1))


@pytest.mark.parametrize("scale", [1.0, 0.75, 0.5, 0.4])
def test_a_scale_asks_for_a_share_of_the_tokens(scale: float) -> None:
    problem = asked.vectors(length=400)
    whole = estimate(initialise(brief(problem), Material()).text)
    scaled = estimate(initialise(brief(problem, budget=PromptBudget(scale=scale)), Material()).text)
    assert scale * whole * 0.8 <= scaled <= scale * whole * 1.05


def test_the_first_experts_have_every_verb_and_connective() -> None:
    """Verbs and connectives are in some instructions of 40, things in fewer; a prompt shows four experts."""
    things = [f"thing{n}" for n in range(20)]
    texts = [f"{'zor' if n % 10 else 'plu'} the {things[n % 20]}" for n in range(37)]
    texts += ["zor the thing1 ek plu the thing2", "plu the thing3 dun zor the thing4", "mab the thing5 nim the thing6"]
    one = asked.grids().items[0]
    items = tuple(
        replace(one, demonstration=replace(one.demonstration, trajectory=replace(one.trajectory, extra_info=text)))
        for text in texts
    )
    plain = brief(replace(asked.grids(), items=items), budget=PromptBudget(experts=4))
    orders = set()
    for seed in range(20):
        text = initialise(plain, Material(seed=seed)).user.split("# Trajectories")[1]
        shown = re.findall(r"^Expert \d: extra_info '(.*)';.*;", text, re.MULTILINE)
        assert len(shown) == 4
        assert {"zor", "plu", "mab", "ek", "dun", "nim"} <= set(" ".join(shown).split())
        orders.add(tuple(shown))
    assert len(orders) > 1


def test_a_total_is_kept_or_refused() -> None:
    problem = asked.vectors(length=400)
    for total in (4000, 2500, 1800):
        assert estimate(initialise(brief(problem, budget=PromptBudget(total=total)), Material()).text) <= total
    with pytest.raises(InputError, match=r"needs about \d+ tokens; expected at most 300"):
        initialise(brief(problem, budget=PromptBudget(total=300)), Material())


def test_every_part_shrinks_with_the_total() -> None:
    """A user's long text and a wide legend leave room for a trajectory."""
    problem = asked.vectors(width=60, length=60)
    for total in (20_000, 6_000, 4_000):
        plain = brief(problem, context="word " * 5000, budget=PromptBudget(total=total))
        for name in ("initialise", "mutate", "reshape"):
            given = replace(asked.material(problem), source=asked.SOURCE * 100, overall="said " * 3000)
            prompt = {**OPERATORS, **COMMON}[name](plain, given)
            assert estimate(prompt.text) <= total
            assert re.search(r"^(Expert|Negative) 1: ", prompt.user, re.MULTILINE)


def test_actions_are_offered_where_the_data_has_them() -> None:
    plain = asked.vectors()
    items = tuple(
        replace(
            item, demonstration=replace(item.demonstration, trajectory=replace(t, actions=np.zeros((t.num_steps, 3))))
        )
        for item in plain.items
        if (t := item.trajectory)
    )
    acted = replace(plain, items=items)
    assert "action is a numpy array of float64 with shape (3,)." in brief(acted).system
    assert "next_state" not in brief(plain).system
    assert "next_state" not in brief(replace(acted, items=(*items, *plain.items))).system
    assert "next_state" not in brief(asked.grids()).system


@pytest.mark.parametrize("rule", ["last", "goal", "all"])
def test_the_system_part_says_what_the_label_rule_makes_true(rule: LabelRule) -> None:
    plain = asked.grids()
    items = tuple(
        replace(item, positive=positive_states(replace(item.demonstration, goals=(1,)), rule)) for item in plain.items
    )
    alone = tuple(item for item in items if item.demonstration.role == "expert")
    system = brief(replace(plain, rule=rule, items=items)).system
    assert ("No state of a negative trajectory fulfils its instruction." in system) == (rule != "all")
    assert ("No first state in this data is positive." in system) == (rule != "all")
    assert "No state of a negative trajectory" not in brief(replace(plain, rule=rule, items=alone)).system
    assert "fulfils its instruction" not in brief(asked.vectors()).system


def test_a_first_state_can_be_positive_where_it_is() -> None:
    plain = asked.grids()
    done = replace(plain.items[0], positive=np.array([True, False, False, False]))
    system = brief(replace(plain, rule="goal", items=(done, *plain.items[1:]))).system
    assert "A first state can be positive: in 1 of 2 expert trajectories it is." in system
    assert "No first state" not in system


def test_failures_are_marked_and_told_with_rewards_and_debug() -> None:
    text = mutate(brief(asked.grids()), asked.material(asked.grids())).user
    assert "{reward 1 WRONG}" in text  # the expert's last state
    assert "debug: sees 3 and more" in text
    assert "accuracy 0.750, AUC 0.800, fitness -0.731 (at best 0)" in text


def test_expert_only_leaves_negative_failures_out() -> None:
    given = asked.material(asked.grids())
    both = mutate(brief(asked.grids()), given).user
    only = mutate(brief(asked.grids()), replace(given, expert_only=True)).user
    assert "Negative 1:" in both
    assert "Negative 1:" not in only
    assert "Expert 1:" in only


def test_a_program_without_failures_is_shown_examples() -> None:
    given = asked.material(asked.grids())
    text = mutate(brief(asked.grids()), replace(given, wrong={})).user
    assert "On no training trajectory." in text
    assert "# For comparison" in text
    assert "Negative 1:" in text


def test_mistakes_are_counted_in_plain_words() -> None:
    given = asked.material(asked.grids())
    text = mutate(brief(asked.grids()), given).user
    assert "At its best threshold it is wrong on 1 of 2 positive states and on 2 of 21 negative states." in text
    right = mutate(brief(asked.grids()), replace(given, wrong={})).user
    assert "At its best threshold it is wrong on 0 of 2 positive states and on 0 of 21 negative states." in right
    assert "wrong on" not in mutate(brief(asked.grids()), replace(given, rewards={}, wrong={})).user


@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("only", [False, True])
@pytest.mark.parametrize("failing", [0, 1, 3])
def test_a_mutation_shows_two_whole_experts_at_least(include: bool, only: bool, failing: int) -> None:
    """One more with `include_expert`; of experts that are not wrong, if there are any."""
    several = asked.grids(tasks=("a", "b", "c"))
    trajectories = [replace(item.trajectory, extra_info=f"mip {n}") for n, item in enumerate(several.train)]
    items = [
        replace(item, demonstration=replace(item.demonstration, trajectory=trajectory))
        for item, trajectory in zip(several.train, trajectories, strict=True)
    ]
    problem = replace(several, items=tuple(items))
    experts = [n for n, item in enumerate(items) if item.demonstration.role == "expert"]
    wrong = {n: np.array([3]) for n in experts[:failing]}
    for seed in range(5):
        given = replace(asked.material(problem, seed), wrong=wrong, include_expert=include, incorrect_only=only)
        text = mutate(brief(problem), given).user
        where, _, compared = text.partition("# For comparison")
        assert len(re.findall("^Expert", where, re.MULTILINE)) == failing
        added = len(re.findall("^Expert", compared, re.MULTILINE))
        assert added == max(2 - (0 if only else failing), 0) + include
        assert "WRONG" not in compared
        assert ("Negative" in compared) == (not failing)


def test_examples_are_of_the_tasks_that_fail() -> None:
    problem = asked.grids(tasks=("a", "b", "c"))
    trajectories = [replace(item.trajectory, extra_info=f"mip {n}") for n, item in enumerate(problem.train)]
    items = [
        replace(item, demonstration=replace(item.demonstration, trajectory=trajectory))
        for item, trajectory in zip(problem.train, trajectories, strict=True)
    ]
    distinct = replace(problem, items=tuple(items))
    place = next(n for n, item in enumerate(items) if (item.task, item.demonstration.role) == ("b", "negative"))
    for seed in range(5):
        text = mutate(brief(distinct), replace(asked.material(distinct, seed), wrong={place: np.array([1])})).user
        assert re.findall("^## Task (.)", text.partition("# For comparison")[2], re.MULTILINE) in ([], ["B"])


def test_a_mutation_tells_what_was_tried() -> None:
    problem = asked.grids()
    parent = asked.evaluation(problem)
    attempts = (
        Attempt("Looks at\n the box." + " So." * 100, replace(parent, score=parent.score + 0.1)),
        Attempt("", replace(parent, score=parent.score - 0.1)),
        Attempt("Counts.", Evaluation("timeout", "too slow")),
        Attempt("Stops early.", Evaluation("ok", bound=-0.9)),
        Attempt("Same.", parent),
    )
    given = replace(asked.material(problem), tried=attempts)
    text = mutate(brief(problem), given).user
    lines = text.split("# What was tried before\n")[1].split("\n\n")[0].splitlines()[1:]
    assert lines[0].startswith("- better, fitness -0.631: Looks at the box. So. So.")
    assert lines[0].endswith("…")
    assert lines[1:] == [
        "- worse, fitness -0.831: (nothing)",
        "- does not run (timeout): Counts.",
        "- worse: Stops early.",
        "- no better, fitness -0.731: Same.",
    ]
    assert "tried before" not in mutate(brief(problem), replace(given, tried=())).user
    many = mutate(brief(problem), replace(given, tried=attempts * 50)).user
    assert re.search(r"^\[2\d\d more left out\]\n- ", many, re.MULTILINE)
    assert estimate(many) < estimate(text) + 700


def test_an_answer_without_a_program_is_allowed_where_the_search_heeds_it() -> None:
    said = "It cannot be told from the states:"
    given = asked.material(asked.grids())
    assert said in OPERATORS["mutate"](brief(asked.grids()), given).user
    assert "begin the reasoning with" in OPERATORS["mutate"](brief(asked.grids(), answer_format="json"), given).user
    assert said not in OPERATORS["mutate"](brief(asked.grids()), replace(given, wrong={})).user  # nothing to tell
    assert said not in OPERATORS["mutate"](brief(asked.vectors()), asked.material(asked.vectors())).user
    assert said not in DIRECTED["mutate"](brief(asked.grids()), given).user
    assert said not in DIRECTED["reflect"](brief(asked.grids()), given).user


@pytest.mark.parametrize("judged", ["by demonstrations", "by policies"])
def test_the_way_of_a_first_program_is_a_change_of_its_structure(judged: str) -> None:
    task = Task("tiny", "CartPole-v1", "Balance a pole.", "tests.tasks.scores:length")
    writes = DIRECTED if judged == "by demonstrations" else operators(task, TaskFacts("A state is what it is.", "", ""))
    problem = asked.grids()
    plain, parent = brief(problem), ParentMaterial(asked.SOURCE, asked.evaluation(problem))
    first = replace(asked.material(problem), parents=(parent,))
    assert writes["path"](plain, first) == writes["structure"](plain, first)
    later = replace(first, ancestors=(parent,))
    assert writes["path"](plain, later) != writes["structure"](plain, later)


def test_worst_tasks_come_first() -> None:
    problem = asked.grids(tasks=("near", "far"))
    lines = mutate(brief(problem), asked.material(problem)).user.splitlines()
    scored = [line.split()[1] for line in lines if line.startswith("task ")]
    assert scored == ["B:", "A:"]  # far before near


def test_a_long_source_is_cut_and_says_so() -> None:
    given = replace(asked.material(asked.grids()), source="x = 1\n" * 9000)
    assert "more characters left out]" in mutate(brief(asked.grids()), given).user


def test_cleaning_numbers_states_and_marks_none() -> None:
    text = clean(brief(asked.grids()), Material(trajectories=asked.grids().train[:2])).user
    assert "GOAL" not in text
    assert "positive" not in text
    states = text[text.index("Trajectory 1") : text.index("Trajectory 2")].splitlines()[1:]
    assert [line.split(":")[0] for line in states] == ["1", "2", "3", "4"]


def test_rewards_that_are_missing_are_said_to_be() -> None:
    given = asked.material(asked.grids())
    rewards = {name: np.where(np.arange(len(r)) == 0, np.nan, r) for name, r in given.rewards.items()}
    text = OPERATORS["reshape"](brief(asked.grids()), replace(given, rewards=rewards)).user
    first = list(takewhile(lambda line: not line.startswith("2:"), text.splitlines()))[-1]
    assert first.startswith("1: {reward none}")
