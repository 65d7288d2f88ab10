"""The share of several trajectories in a section."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.demos.labels import label
from grace_irl.demos.trajectory import Demonstrations, Metadata
from grace_irl.methods.grace_operators import initialise
from grace_irl.propose.briefing import PromptBudget, brief
from grace_irl.propose.material import Material
from grace_irl.propose.sections import needed, section, share, wanted
from grace_irl.propose.tokens import estimate
from grace_irl.propose.views.trajectory import Shown
from tests.propose import asked


@pytest.mark.parametrize(
    ("whole", "shortest", "tokens", "expected"),
    [
        ([10, 10], [5, 5], 20, [10, 10]),
        ([10, 30], [5, 5], 20, [10, 10]),
        ([10, 30], [5, 5], 31, [10, 21]),
        ([10, 30], [5, 5], 99, [10, 30]),
        ([10, 10], [5, 5], 8, [5, 5]),
        ([], [], 8, []),
    ],
)
def test_shares(whole: list[int], shortest: list[int], tokens: int, expected: list[int]) -> None:
    assert share(whole, shortest, tokens) == expected


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 200)), max_size=8), st.integers(0, 1500))
def test_shares_use_what_there_is(pairs: list[tuple[int, int]], tokens: int) -> None:
    shortest, whole = [low for low, _ in pairs], [low + more for low, more in pairs]
    shares = share(whole, shortest, tokens)
    assert all(low <= each <= high for low, each, high in zip(shortest, shares, whole, strict=True))
    assert sum(shares) == max(sum(shortest), min(tokens, sum(whole)))


def test_sections_keep_their_tokens_and_count_what_is_left_out() -> None:
    problem = asked.vectors(length=200)
    view = brief(problem).view
    shown = [Shown(item) for item in problem.train]
    whole = wanted(view, shown)
    for tokens in (whole, whole // 2, whole // 5, 150):
        assert estimate(section(view, shown, tokens).text) <= tokens + 20
    assert "left out" not in section(view, shown, whole).text
    least = section(view, shown, needed(view, shown)).text
    assert least.endswith("[3 more trajectories left out]")
    assert "Expert 1:" in section(view, shown, 0).text  # one trajectory in any case


def test_vectors_with_instructions_have_values_and_no_codes() -> None:
    plain = asked.vectors()
    found = [one.demonstration for one in plain.items]
    items = [replace(one, trajectory=replace(one.trajectory, extra_info="go left")) for one in found]
    told = label(Demonstrations(Metadata("vector"), tuple(items)), "all")
    assert "words and values will come" in initialise(brief(told), Material(seed=1)).text
    assert "will come" not in initialise(brief(plain), Material(seed=1)).text


def test_roles_and_tasks_are_headings() -> None:
    problem = asked.grids(tasks=("near", "far"))
    text = section(brief(problem).view, [Shown(item) for item in reversed(problem.train)], 10_000).text
    headings = [line.split(":")[0] for line in text.splitlines() if line.startswith(("## ", "Expert", "Negative"))]
    far, near = (
        ("## Task far", "Expert 1", "Expert 2", "Negative 1"),
        ("## Task near", "Expert 3", "Expert 4", "Negative 2"),
    )
    assert headings == [*far, *near]


def test_a_prompt_has_each_title_once() -> None:
    problem = asked.grids()
    view = brief(problem).view
    first = section(view, [Shown(item) for item in problem.train], 10_000)
    second = section(view, [Shown(item) for item in problem.train], 10_000, first.numbers)
    assert list(first.titles) == ["Expert 1", "Expert 2", "Negative 1"]
    assert list(second.titles) == ["Expert 3", "Expert 4", "Negative 2"]
    assert all(f"{title}: " in part.text for part in (first, second) for title in part.titles)


@pytest.mark.parametrize(
    ("budget", "fixed", "whole", "room"),
    [
        (PromptBudget(), 1000, 500, 500),
        (PromptBudget(trajectories=300), 1000, 500, 300),
        (PromptBudget(total=1200), 1000, 500, 200),
        (PromptBudget(total=900), 1000, 500, -100),
        (PromptBudget(scale=0.8), 1000, 500, 200),
    ],
)
def test_room(budget: PromptBudget, fixed: int, whole: int, room: int) -> None:
    assert budget.room(fixed, whole) == room


def test_what_is_spared_elsewhere_goes_to_trajectories() -> None:
    assert PromptBudget(scale=0.5).room(400, 1000, spared=200) == 400  # half of 1,600, less what is there
