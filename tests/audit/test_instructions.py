"""Warnings about rewards and instructions: words that are ignored, misread, or shown by no expert."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from grace_irl.audit.asked import StatedGoals
from grace_irl.audit.contrast import by_end, by_instruction, by_word, swaps
from grace_irl.demos.labels import label
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Trajectory
from tests.audit.bench import codes, drawn, examined, warned

COLOURS = ("red", "green", "blue", "grey")


def visit(rng: np.random.Generator, role: Role) -> Trajectory:
    """Four lamps: an expert lights the one that the text names, a negative lights none."""
    colour, kind = int(rng.integers(4)), ("lamp", "light")[int(rng.integers(2))]
    length = int(rng.integers(6, 12))
    states = np.column_stack([np.zeros((length, 4)), rng.normal(size=length)])
    if role == "expert":
        states[-1, colour] = 1
    return Trajectory(states, np.zeros(length - 1), extra_info=f"switch on the {COLOURS[colour]} {kind}")


READS = f"return float(state[{COLOURS!r}.index(self.text.split()[3])])"
IGNORES = "return float(state[:4].max())"


def lit(trajectory: Trajectory, texts: object, state: int) -> list[bool | None]:
    """A simulator: whether the lamp that each text names is lit."""
    return [bool(trajectory.states[state][COLOURS.index(text.split()[3])]) for text in texts]  # type: ignore[attr-defined]


def test_an_ignored_instruction_in_a_simulator() -> None:
    good, bad = (examined(drawn(visit, count=80), body, judge=lit) for body in (READS, IGNORES))
    assert good.contrast is not None
    assert bad.contrast is not None
    assert good.contrast.unpaid is not None
    assert bad.contrast.unpaid is not None
    assert (good.contrast.unpaid.value, bad.contrast.unpaid.value) == (1.0, 0.0)
    assert good.contrast.doubtful == 0
    # Swaps that name the same colour are fulfilled, too, and do not count.
    assert good.contrast.swaps < good.contrast.experts * 7
    assert "in 100% of the swaps, a goal is paid" in warned(bad, "instruction-ignored").found
    assert "--near-miss" in warned(bad, "instruction-ignored").advice
    assert {"instruction-ignored", "negatives-far"} & codes(good) == set()


def test_a_run_with_swaps_is_not_told_to_add_them() -> None:
    plain = drawn(visit, count=80)
    swapped = replace(plain, items=(*plain.items[:-1], replace(plain.items[-1], swapped=True)))
    found = [warned(examined(each, IGNORES, judge=lit), "instruction-ignored").advice for each in (plain, swapped)]
    assert ["--swaps" in advice for advice in found] == [True, False]
    assert found[0].endswith(found[1])


def test_words_that_no_expert_shows() -> None:
    """Only negatives are told of grey lamps, and the reward pays whatever is lit under such a text."""

    def shy(rng: np.random.Generator, role: Role) -> Trajectory:
        while "grey" in (made := visit(rng, role)).extra_info and role == "expert":
            pass
        return made

    body = f"colour = self.text.split()[3]\nreturn {IGNORES[7:]} if colour == 'grey' else {READS[7:]}"
    found = warned(examined(drawn(shy, count=40), body, judge=lit), "words-unshown")
    assert "no expert's instruction has 'grey'" in found.found
    assert "words-unshown" not in codes(examined(drawn(shy, count=40), READS, judge=lit))
    assert "words-unshown" not in codes(examined(drawn(visit, count=40), body, judge=lit))
    assert "words-unshown" not in codes(examined(drawn(shy, count=40), body))  # no simulator


KINDS = ("lamp", "door")


def furnish(rng: np.random.Generator, role: Role) -> Trajectory:
    """Four lamps and four doors: an expert lights or opens the one that the text names. One in twelve is a door."""
    colour, kind = int(rng.integers(3)), int(rng.random() < 1 / 12)
    length = int(rng.integers(6, 12))
    states = np.column_stack([np.zeros((length, 8)), rng.normal(size=length)])
    if role == "expert":
        states[-1, 4 * kind + colour] = 1
        return Trajectory(states, np.zeros(length - 1), extra_info=f"use the {COLOURS[colour]} {KINDS[kind]}")
    return Trajectory(states, np.zeros(length - 1), extra_info="use the grey door")


def used(trajectory: Trajectory, texts: object, state: int) -> list[bool | None]:
    """A simulator: whether the thing that each text names is lit or open."""
    asked = [text.split()[2:] for text in texts]  # type: ignore[attr-defined]
    things = trajectory.states[state]
    return [bool(things[4 * KINDS.index(kind) + COLOURS.index(colour)]) for colour, kind in asked]


def test_an_unshown_word_beside_a_word_that_few_experts_show() -> None:
    """Under "the grey door", the lamps of most experts say nothing about "grey"."""
    reads = (
        "words = self.text.split()\n"
        "things = state[4:8] if 'door' in words else state[:4]\n"
        f"named = [things[{COLOURS!r}.index(word)] for word in words if word in {COLOURS!r}]\n"
    )
    ignores = f"{reads}return float(max(things) if 'grey' in words or not named else named[0])"
    data = drawn(furnish, count=60)
    doors = sum("door" in item.trajectory.extra_info for item in data.items if item.role == "expert")
    assert 0 < doors <= 6  # at most a tenth
    found = warned(examined(data, ignores, held_out=0.0, judge=used), "words-unshown")
    assert "no expert's instruction has 'grey'" in found.found
    good = f"{reads}return float(named[0] if named else max(things))"
    assert "words-unshown" not in codes(examined(data, good, held_out=0.0, judge=used))


def lit_on_the_way(states: NDArray[np.float64]) -> NDArray[np.float64]:
    """The states, with the second one as that in which all lamps but the last one's are lit."""
    changed = states.copy()
    changed[1, :4] = 1 - states[-1, :4]
    return changed


def lit_by_then(trajectory: Trajectory, texts: object, state: int) -> list[bool | None]:
    """A simulator: whether the lamp that each text names was ever lit."""
    said = [lit(trajectory, texts, earlier) for earlier in range(state + 1)]
    return [any(one) for one in zip(*said, strict=True)]


def test_a_word_that_is_read_too_narrowly() -> None:
    """Experts say "light" of red lamps only, so the reward takes each light for a red one."""

    def of_red(rng: np.random.Generator, role: Role) -> Trajectory:
        made = visit(rng, role)
        while role == "expert" and "light" in made.extra_info and "red" not in made.extra_info:
            made = visit(rng, role)
        return made

    data = drawn(of_red, count=40)
    narrow = f"if 'light' in self.text:\n    return float(state[0] * ('red' in self.text))\n{READS}"
    found = warned(examined(data, narrow, judge=lit), "words-misread")
    assert "an episode is not paid under an instruction that it fulfils" in found.found
    assert "light' for 'switch on the" in found.found
    assert "words-misread" not in codes(examined(data, READS, judge=lit))
    before = [  # each expert lights all lamps on its way, but the reward pays a lamp only while it is lit
        replace(item, trajectory=replace(item.trajectory, states=lit_on_the_way(item.trajectory.states)))
        for item in data.items
    ]
    on_the_way = replace(data, items=tuple(before))
    assert "words-misread" not in codes(examined(on_the_way, READS, judge=lit_by_then))
    assert "words-misread" not in codes(examined(data, narrow))  # no simulator


def test_without_a_simulator_swaps_are_doubtful() -> None:
    good, bad = (examined(drawn(visit), body) for body in (READS, IGNORES))
    assert "instruction-ignored" in codes(bad)
    assert bad.contrast is not None
    assert bad.contrast.unpaid is None
    assert "no simulator can judge" in bad.contrast.line
    assert bad.contrast.doubtful_paid == bad.contrast.doubtful > 0
    # A few doubtful swaps of the good reward are paid, as they name the same colour, and are no sign.
    assert good.contrast is not None
    assert 0 < good.contrast.doubtful_paid < good.contrast.doubtful / 4


def test_a_contrast_without_a_swap_that_counts_does_not_blame_a_missing_simulator() -> None:
    found = examined(drawn(visit), READS, judge=lambda _, texts, state: [True] * len(texts))
    assert found.contrast is not None
    assert (found.contrast.unpaid, found.contrast.doubtful) == (None, 0)
    assert "simulator" not in found.contrast.line


def visit_of_a_kind(rng: np.random.Generator, role: Role) -> Trajectory:
    """As `visit`, and the last state shows whether the text says lamp or light."""
    made = visit(rng, role)
    states = np.column_stack([made.states, np.zeros(len(made.states))])
    states[-1, -1] = role == "expert" and "lamp" in made.extra_info
    return Trajectory(states, made.actions, extra_info=made.extra_info)


def test_words_that_change_nothing_are_named() -> None:
    found = warned(examined(drawn(visit_of_a_kind, count=60), READS), "words-ignored")
    assert "if another word replaces 'lamp', 'light' in the instruction" in found.found
    # A reward that ignores the whole instruction has one warning about that.
    assert "words-ignored" not in codes(examined(drawn(visit), IGNORES, judge=lit))


def test_spaces_at_the_end_of_instructions_hide_no_words() -> None:
    def spaced(rng: np.random.Generator, role: Role) -> Trajectory:
        made = visit_of_a_kind(rng, role)
        return Trajectory(made.states, made.actions, extra_info=f"{made.extra_info} \n")

    assert "words-ignored" in codes(examined(drawn(spaced, count=60), READS))


def test_a_word_of_two_experts_says_little() -> None:
    """Of six held-out experts two have a text with a light."""
    found = warned(examined(drawn(visit_of_a_kind), READS), "words-ignored")
    assert "if another word replaces 'lamp' in the instruction" in found.found


def visit_at_a_time(rng: np.random.Generator, role: Role) -> Trajectory:
    """As `visit`, by day or by night; one text in eight says which."""
    made, night = visit(rng, role), bool(rng.integers(2))
    states = np.column_stack([made.states, np.full(len(made.states), float(night))])
    end = ("", " by night" if night else " by day")[int(rng.integers(8)) == 0]
    return Trajectory(states, made.actions, extra_info=made.extra_info + end)


def lit_in_time(trajectory: Trajectory, texts: object, state: int) -> list[bool | None]:
    """A simulator: whether the lamp that each text names is lit, at the time that the text names."""
    time = ("day", "night")[int(trajectory.states[state][5])]
    asked = [text.split()[-1] for text in texts]  # type: ignore[attr-defined]
    return [
        bool(one) and word in ("lamp", "light", time)
        for one, word in zip(lit(trajectory, texts, state), asked, strict=True)
    ]


def test_an_end_of_few_instructions_that_changes_nothing() -> None:
    """No word of the end is replaced in three experts, and few swaps of whole instructions have it."""
    demonstrations = drawn(visit_at_a_time, count=60)
    found = warned(examined(demonstrations, READS, judge=lit_in_time), "words-ignored")
    assert "swaps of an instruction's end, such as 'switch on the" in found.found
    assert "by night' for 'switch on the blue lamp'" in found.found
    reads = f"if ('day', 'night')[int(state[5] < 0.5)] == self.text.split()[-1]:\n    return 0.0\n{READS}"
    assert "words-ignored" not in codes(examined(demonstrations, reads, judge=lit_in_time))
    assert "words-ignored" not in codes(examined(demonstrations, READS))  # no simulator


def test_words_that_no_goal_depends_on_need_no_effect() -> None:
    assert "words-ignored" not in codes(examined(drawn(visit), READS))


def test_swaps_are_not_advised_where_they_are_refused() -> None:
    def always(rng: np.random.Generator, role: Role) -> Trajectory:
        made = visit(rng, role)
        made.states[:] = np.where(np.arange(5) < 4, made.states[-1], made.states)
        return made

    found = examined(drawn(always, count=80), IGNORES, "all")
    assert "--swaps" not in warned(found, "instruction-ignored").advice


def test_a_word_twice_in_an_instruction_is_tried_only_if_there_is_such_an_instruction() -> None:
    def of(*texts: str) -> dict[str, list[str]]:
        items = [Demonstration(Trajectory(np.zeros((2, 1)), np.zeros(1), extra_info=text), "expert") for text in texts]
        made = by_word(label(Demonstrations(Metadata("vector"), tuple(items)), "last").train)
        return {text: sorted(copies) for (_, text), copies in made.items()}

    between, red, blue = (
        "put a box between the box and the box",
        "the red cup or the blue box",
        "the blue cup or the blue box",
    )
    assert of(between) == {between: []}
    assert of(red, blue) == {red: [blue], blue: [red]}


def test_one_instruction() -> None:
    def same(rng: np.random.Generator, role: Role) -> Trajectory:
        made = visit(rng, role)
        return Trajectory(made.states, made.actions, extra_info="switch on any lamp")

    found = examined(drawn(same), IGNORES)
    assert "have the same instruction, 'switch on any lamp'" in warned(found, "one-instruction").found
    assert found.contrast is None


def test_one_instruction_in_several_spellings_and_for_whole_episodes() -> None:
    def same(rng: np.random.Generator, role: Role) -> Trajectory:
        made = visit(rng, role)
        text = str(rng.choice(["Switch on any lamp.", "switch on any  lamp"]))
        return Trajectory(made.states, made.actions, extra_info=text)

    assert "one-instruction" in codes(examined(drawn(same), IGNORES))
    assert "one-instruction" in codes(examined(drawn(same), IGNORES, "all"))


def test_a_program_that_fails_under_another_instruction() -> None:
    """It knows each state only with the text that it came with."""
    body = f"if state[:4].max() and not state[{COLOURS!r}.index(self.text.split()[3])]:\n    raise KeyError(1)\n{READS}"
    found = examined(drawn(visit), body)
    assert "fails" in codes(found)
    assert found.contrast is None


def test_several_wordings_of_two_tasks_are_no_sign() -> None:
    """A reward that reads the text is paid under the other wordings of its own task: under 2 of 5 others."""

    def worded(rng: np.random.Generator, role: Role) -> Trajectory:
        colour, lamp = int(rng.integers(2)), int(rng.integers(2))
        length = int(rng.integers(6, 12))
        states = np.column_stack([np.zeros((length, 2)), rng.normal(size=length)])
        states[-1, colour] = role == "expert"
        name = ("lamp", "light", "bulb")[lamp + int(rng.integers(2))]
        return Trajectory(states, np.zeros(length - 1), extra_info=f"switch on the {COLOURS[colour]} {name}")

    found = examined(drawn(worded, count=40), f"return float(state[{COLOURS!r}.index(self.text.split()[3])])")
    assert found.contrast is not None
    assert found.contrast.doubtful / 4 < found.contrast.doubtful_paid <= found.contrast.doubtful / 2
    assert "instruction-ignored" not in codes(found)


def test_a_few_swaps_that_a_simulator_finds_paid_are_no_sign() -> None:
    """One swap of seven is paid. The simulator says of half of these, or of all, that they should not be."""
    for share, said in ((0.5, False), (1.0, True)):
        rng = np.random.default_rng(0)

        def strict(trajectory: Trajectory, texts: object, state: int, share: float = share,
                   rng: np.random.Generator = rng) -> list[bool | None]:  # fmt: skip
            return [each and not rng.random() < share for each in lit(trajectory, texts, state)]

        found = codes(examined(drawn(visit, count=80), READS, judge=strict))
        assert ("instruction-ignored" in found) == said


def test_ends_of_another_task_are_not_put_behind_an_instruction() -> None:
    def said(task: str, text: str) -> Demonstration:
        return Demonstration(Trajectory(np.zeros((2, 1)), np.zeros(1), extra_info=text), "expert", task)

    texts = {"one": ("key", "box", "box by day"), "two": ("key", "box", "box in the shed")}
    items = [said(task, f"take the {thing}") for task, things in texts.items() for thing in things]
    found = by_end(label(Demonstrations(Metadata("vector"), tuple(items)), "last").items)
    assert found["one", "take the key"] == ["take the key by day"]
    assert found["two", "take the key"] == ["take the key in the shed"]
    assert found["two", "take the box in the shed"] == ["take the box"]


def test_an_episode_without_an_instruction_beside_experts_of_several() -> None:
    """Negatives are often recorded without a task."""
    for silent in ("negative", "expert"):

        def recorded(rng: np.random.Generator, role: Role, silent: str = silent) -> Trajectory:
            made = visit(rng, role)
            return replace(made, extra_info="") if role == silent and rng.integers(2) else made

        assert ("instruction-ignored" in codes(examined(drawn(recorded), IGNORES))) == (silent == "negative")


def test_symbols_and_pictures_in_instructions_are_words() -> None:
    """Whether all instructions are one is asked of their words, without capitals and punctuation."""

    def saying(*texts: str) -> set[str]:
        rest = itertools.cycle(texts)
        return codes(examined(drawn(lambda rng, role: replace(visit(rng, role), extra_info=next(rest))), IGNORES))

    assert "one-instruction" not in saying("open 😀", "open 🎉", "open ☀️")
    assert "one-instruction" not in saying("write C++", "write C#")
    assert "one-instruction" in saying("open it", "Open it.", "open: it!", "“open” it…")


def lit_of_a_kind(rng: np.random.Generator, role: Role) -> Trajectory:
    """Lamps and doors of three colours: a negative lights one of the right kind and another colour."""
    colour, kind, other = int(rng.integers(3)), int(rng.integers(2)), int(rng.integers(1, 3))
    length = int(rng.integers(20, 30))
    states = np.column_stack([np.zeros((length, 6)), rng.normal(size=length)])
    states[-1, 2 * (colour if role == "expert" else (colour + other) % 3) + kind] = 1
    return Trajectory(states, np.zeros(length - 1), extra_info=f"switch on {COLOURS[colour]} {('lamp', 'door')[kind]}")


@pytest.mark.parametrize("seed", range(3))
def test_near_misses_in_one_word_do_not_excuse_a_reward_that_reads_no_other_word(seed: int) -> None:
    """The excuse is for rewards that need no text: these near misses show nothing about "lamp" and "door"."""
    given = drawn(lit_of_a_kind, count=40, seed=seed)
    place = f"place = 2 * {COLOURS!r}.index(self.text.split()[2])\n"
    found = warned(examined(given, f"{place}return float(state[place : place + 2].max())"), "words-ignored")
    assert "replaces 'door', 'lamp'" in found.found
    right = f"{place}return float(state[place + (self.text.split()[3] == 'door')])"
    assert codes(examined(given, right)) == set()


def test_long_episodes_leave_three_experts_with_other_instructions() -> None:
    def walk(length: int, number: int) -> Demonstration:
        return Demonstration(Trajectory(np.ones((length, 2)), extra_info=f"go to place {number}"), "expert")

    def seen(lengths: list[int]) -> dict[int, int]:
        items = [walk(length, number) for number, length in enumerate(lengths)]
        experts = label(Demonstrations(Metadata("vector"), tuple(items)), "last").items
        made = swaps(experts, by_instruction(experts), 0.0, lambda given: [np.ones(len(each.states)) for each in given],
                     None)  # fmt: skip
        return dict(sorted(Counter(int(swap.item.trajectory.extra_info.split()[-1]) for swap in made).items()))

    assert seen([40] * 13) == dict.fromkeys(range(13), 12)
    assert seen([40] * 3 + [900] + [40] * 9) == dict.fromkeys([*range(3), *range(4, 13)], 12)  # one is left out
    assert seen([900] + [40] * 12) == {0: 3, **dict.fromkeys(range(1, 13), 12)}
    assert seen([4000] * 13) == {0: 1, 1: 1, 2: 1}


def test_an_excuse_holds_where_no_instruction_of_another_expert_can_be_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each task has one instruction of experts; only negatives show other words. No swap shows that text is read."""
    rng = np.random.default_rng(0)
    items = []
    for number in range(48):
        task, role = number % 2, ("expert", "negative")[number // 24]
        made = visit(rng, role)  # type: ignore[arg-type]
        word = "lamp" if role == "expert" else "light"
        text = replace(made, extra_info=f"switch on the {COLOURS[task]} {word}")
        items.append(Demonstration(text, role, COLOURS[task]))  # type: ignore[arg-type]
    given = Demonstrations(Metadata("vector"), tuple(items))
    monkeypatch.setattr(StatedGoals, "telling", frozenset({"lamp"}))
    for excused in (False, True):
        monkeypatch.setattr(StatedGoals, "excused", lambda _, known=excused: known)
        assert ("words-ignored" in codes(examined(given, IGNORES))) is not excused
    found = examined(given, IGNORES)
    assert found.contrast is not None
    assert (found.contrast.doubtful, found.contrast.ignored) == (0, ("lamp",))
