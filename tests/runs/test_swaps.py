"""`--swaps`: expert episodes with the instruction of another expert join the negatives."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import grace_irl
from grace_irl.cli import main
from grace_irl.compare.folder import read_result
from grace_irl.demos import load, save
from grace_irl.demos.label_rule import with_rule
from grace_irl.demos.split import set_aside, split
from grace_irl.demos.trajectory import Demonstration, Demonstrations
from grace_irl.errors import InputError
from grace_irl.rl.collect import collect
from grace_irl.rl.fulfilled import fulfilled
from grace_irl.runs.config import resolve
from grace_irl.runs.expand.expansion import start
from grace_irl.runs.run import opened
from grace_irl.runs.swaps import with_swaps
from tests.fakes.data import vector_set

pytest.importorskip("minigrid")
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def experts() -> Demonstrations:
    return collect("BabyAI-GoToLocalS8N7-v0", "bot", 12, "expert", seed=5)


@pytest.fixture(scope="module")
def demos(experts: Demonstrations, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demos")
    save(experts, folder / "expert.parquet")
    save(collect("BabyAI-GoToLocalS8N7-v0", "random", 12, "negative", seed=6), folder / "negative.parquet")
    return folder


def test_a_swap_has_an_instruction_that_its_episode_does_not_fulfil(experts: Demonstrations) -> None:
    divided = split(with_rule(experts, "last"), 0.5, 0)
    found = with_swaps(divided, "last")
    swaps = [item for item in found if item.swapped]
    assert len(swaps) > 6
    by_states = {item.trajectory.states.tobytes(): item for item in divided}  # type: ignore[union-attr]
    for swap in swaps:
        own = by_states[swap.trajectory.states.tobytes()]  # type: ignore[union-attr]
        assert swap.role == "negative"
        assert swap.side == own.side
        assert swap.trajectory.rewards is None
        assert fulfilled(own.trajectory, own.trajectory.extra_info, own.trajectory.num_steps) is True
        assert fulfilled(own.trajectory, swap.trajectory.extra_info, own.trajectory.num_steps) is False
        # Held-out instructions stay held out.
        others = {item.trajectory.extra_info for item in divided if item.side == own.side}
        assert swap.trajectory.extra_info in others


def test_swaps_have_the_nearest_instructions(experts: Demonstrations) -> None:
    """Of 12 experts each has 4 swaps. No other instruction that it does not fulfil has more words of its own."""
    divided = split(with_rule(experts, "last"), 0.0, 0)
    texts = {item.trajectory.extra_info for item in divided}
    for own in divided:
        of_own = [item for item in with_swaps(divided, "last") if item.swapped and _same(item, own)]
        assert len(of_own) == 4
        taken = {item.trajectory.extra_info for item in of_own}
        rest = [text for text in texts - taken if fulfilled(own.trajectory, text, own.trajectory.num_steps) is False]
        assert max(_unlike(own, text) for text in taken) <= min(_unlike(own, text) for text in rest)


def _same(one: Demonstration, other: Demonstration) -> bool:
    return np.array_equal(np.asarray(one.trajectory.states), np.asarray(other.trajectory.states))


def _unlike(own: Demonstration, text: str) -> int:
    """Words that the expert's instruction lacks or has too much."""
    return len(set(own.trajectory.extra_info.split()) ^ set(text.split()))


@pytest.mark.parametrize("rule", ["last", "goal"])
def test_without_a_simulator_there_are_no_swaps(rule: str) -> None:
    with pytest.raises(InputError, match="no expert episode has a swap; expected experts of BabyAI"):
        with_swaps(split(vector_set(), 0.0, 0), rule)  # type: ignore[arg-type]


def test_rule_all_has_no_swaps(experts: Demonstrations) -> None:
    with pytest.raises(InputError, match="the label rule is 'all', which has no goals"):
        with_swaps(experts, "all")


@pytest.mark.slow
def test_fit_with_swaps_resumes_and_replays(demos: Path, tmp_path: Path, capsys: Capture) -> None:
    run = tmp_path / "run"
    assert main(["fit", "--demos", str(demos), "--swaps", "--generations", "1", "--out", str(run), "--json"]) == 0
    done = capsys.readouterr()
    answer = json.loads(done.out.splitlines()[-1])
    assert "copies of 12 experts, with another expert's instruction, are negatives" in " ".join(answer["notes"])
    assert answer["train"]["episodes"]["negatives"] > answer["train"]["episodes"]["experts"]
    swaps = answer["train"]["episodes"]["negatives"] - 9
    assert f"9 expert + 9 negative trajectories + {swaps} swaps (experts" in (run / "reward.py").read_text()
    assert f"9 + {swaps} swaps</td>" in (run / "report.html").read_text()
    assert main(["fit", "--resume", str(run), "--generations", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["train"] == answer["train"]
    again = tmp_path / "again"
    assert main(["fit", "--demos", str(demos), "--swaps", "--replay", str(run), "--out", str(again), "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["program"] == answer["program"]
    assert "no longer in the demonstrations" not in (again / "report.html").read_text()  # swaps are made again
    assert main(["fit", "--no-swaps", "--replay", str(run), "--out", str(tmp_path / "without")]) == 2
    assert "0 here are not in the recording; expected --swaps, as it was recorded" in capsys.readouterr().err


def test_swaps_that_change_nothing_are_refused_in_one_line(tmp_path: Path, capsys: Capture) -> None:
    save(vector_set(), tmp_path / "set.parquet")
    asked = ["fit", "--demos", str(tmp_path / "set.parquet"), "--swaps", "--out", str(tmp_path / "run")]
    assert main(asked) == 2
    assert "--swaps: the label rule is 'all', which has no goals; expected 'last' or 'goal'" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_python_takes_swaps(demos: Path, tmp_path: Path) -> None:
    run = grace_irl.fit(load([demos]), swaps=True, generations=1, out=tmp_path / "run")
    assert run.best.train.episodes is not None
    assert run.best.train.episodes.negatives > 9


@pytest.mark.slow
def test_swaps_are_no_copies_outside_a_sample(demos: Path, tmp_path: Path) -> None:
    run = grace_irl.fit(demos, swaps=True, sample="40K", generations=1, out=tmp_path / "run")
    assert run.rest is not None
    assert (run.rest.copies, run.rest.trajectories > 0) == (0, True)


@pytest.mark.slow
def test_swaps_test_the_words_that_other_worlds_show(tmp_path: Path) -> None:
    """Each room has one thing. Other rooms show what words say, so another thing is paid half; with swaps, nothing."""
    shipped = "datasets/babyai-go-to-obj"
    plain, swapped = (
        grace_irl.fit(shipped, swaps=swaps, generations=1, out=tmp_path / str(swaps)) for swaps in (False, True)
    )
    for run in (plain, swapped):
        assert run.audit is not None
        assert run.audit.contrast is not None
        assert run.audit.contrast.unpaid is not None
        assert run.audit.contrast.unpaid.value == 1.0
    assert [warning.code for warning in plain.warnings] == ["negatives-far"]
    assert swapped.warnings == ()
    episode = load([shipped]).select(role="expert")[0].trajectory
    others = [replace(episode, extra_info=text) for text in ("go to the red ball", "go to the grey key")]
    (other,) = [each for each in others if set(each.extra_info.split()).isdisjoint(episode.extra_info.split()[3:])][:1]
    values = [grace_irl.load_reward(run.reward_path).rewards([episode, other]) for run in (plain, swapped)]
    assert [(own[-1], wrong[-1]) for own, wrong in values] == [(1.0, 0.5), (1.0, 0.0)]


def test_without_minigrid_swaps_say_what_to_install(experts: Demonstrations, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "minigrid", None)
    monkeypatch.setattr("grace_irl.runs.swaps.fulfilments", lambda _, texts: [None] * len(texts))
    monkeypatch.setattr("grace_irl.runs.swaps.find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"minigrid is not installed.*pip install 'grace-irl\[rl\]'"):
        with_swaps(experts, "last")


def test_scrambled_episodes_have_no_swaps(demos: Path, tmp_path: Path, capsys: Capture) -> None:
    """No simulator knows their codes."""
    copy = tmp_path / "copy"
    assert main(["demos", "scramble", str(demos), str(copy)]) == 0
    assert main(["fit", "--demos", str(copy), "--swaps", "--out", str(tmp_path / "run")]) == 2
    assert "no expert episode has a swap" in capsys.readouterr().err


def test_swaps_stay_within_a_task(experts: Demonstrations) -> None:
    """Two tasks, each with instructions of its own."""
    other = collect("BabyAI-GoToObj-v0", "bot", 8, "expert", seed=3, task="other")
    both = split(with_rule(Demonstrations(experts.metadata, (*experts, *other)), "last"), 0.0, 0)
    found = with_swaps(both, "last")
    for task in found.tasks:
        own = {item.trajectory.extra_info for item in both if item.task == task}
        swapped = {item.trajectory.extra_info for item in found if item.swapped and item.task == task}
        assert swapped
        assert swapped <= own


def test_swaps_of_episodes_that_are_set_aside_stay_there(experts: Demonstrations) -> None:
    divided = set_aside(split(with_rule(experts, "last"), 0.0, 0), 0.5, 0, 6)
    assert len(divided.select(split="validation")) == 6
    found = with_swaps(divided, "last")
    side = {item.trajectory.states.tobytes(): item.side for item in divided}  # type: ignore[union-attr]
    swaps = [item for item in found if item.swapped]
    assert {item.side for item in swaps} == {"train", "validation"}
    assert all(item.side == side[item.trajectory.states.tobytes()] for item in swaps)  # type: ignore[union-attr]


@pytest.mark.slow
def test_each_round_of_an_expansion_has_the_swaps(demos: Path, tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3", reason="grace-irl[rl] is not installed")
    flags = {
        "data.demos": (str(demos),),
        "data.swaps": True,
        "expand.rounds": 1,
        "expand.steps": 2048,
        "expand.episodes": 2,
        "expand.enough": 1.0,
        "expand.trust": True,
        "search.population": 4,
        "search.generations": 1,
        "sandbox.workers": 1,
    }
    run = start(resolve(flags=flags), tmp_path / "run")
    assert [each.number for each in run.rounds] == [0, 1]
    counts = []
    for folder in sorted((tmp_path / "run" / "rounds").glob("*/run")):
        with opened(folder) as (store, _):
            counts.append(sum(row.swap for row in store.trajectories()))
    assert counts[0] > 12
    assert len(set(counts)) == 1


@pytest.mark.slow
def test_a_comparison_searches_with_swaps(demos: Path, tmp_path: Path) -> None:
    pytest.importorskip("imitation", reason="not installed: pip install --no-deps imitation==1.0.1")
    folder = tmp_path / "c"
    small = ["--set", "search.population=4", "--set", "search.generations=1", "--swaps"]
    asked = ["--demos", str(demos), "--methods", "grace,bc", "--seeds", "1", "--steps", "512", "--trust-reward"]
    asked += ["--episodes", "3", "--looks", "1", "--look-episodes", "2", "--choice-episodes", "1"]
    asked += ["--tune", "bc.updates=20"]
    assert main(["compare", *asked, *small, "--out", str(folder)]) == 0
    for name in ("grace-0", "bc-0"):
        found = read_result(folder / "jobs" / name / "result.json")
        assert found is not None
        assert found.failure == ""
    with opened(folder / "jobs" / "grace-0" / "fit") as (store, _):
        assert any(row.swap for row in store.trajectories())
