"""Episodes that are set aside for validation: no prompt shows them, and they choose among the programs of a run."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest

import grace_irl
from grace_irl.cli import main
from grace_irl.demos import save
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Split, Trajectory
from grace_irl.errors import InputError
from grace_irl.evaluate.separation import Separation
from grace_irl.runs.front import UNJUDGED
from grace_irl.runs.run import Run, opened
from tests.propose.client.server import ChatServer
from tests.runs.test_preference import Listed

SIMPLE = """
class Reward:
    def reward_fn(self, state):
        return float(state[0] > 0.0)
"""
WRONG = SIMPLE.replace("state[0]", "state[1]")
COUNT = 32


def noisy(count: int = COUNT, length: int = 5, noise: float = 0.1) -> Demonstrations:
    """The first number of an expert's state is above 0, but for a share of the states; the second is a number of it."""
    rng = np.random.default_rng(0)
    items = []
    for number in range(2 * count):
        states = rng.normal(size=(length, 2)).round(6)
        states[:, 0] = (1 if number < count else -1) * rng.uniform(0.1, 1.0, length).round(6)
        states[rng.random(length) < noise, 0] *= -1
        items.append(Demonstration(Trajectory(states), "expert" if number < count else "negative"))
    return Demonstrations(Metadata("vector", label="all"), tuple(items))


def by_heart(demonstrations: Demonstrations, digests: Sequence[str]) -> str:
    """A program that knows the states of these episodes, and takes every other state for a negative one."""
    known = sorted(
        float(state[1])
        for item in demonstrations
        if item.role == "expert" and item.trajectory.digest in digests
        for state in item.trajectory.states
    )
    return f"""
KNOWN = {known!r}


class Reward:
    def reward_fn(self, state):
        return float(round(float(state[1]), 6) in KNOWN)
"""


class Cheating:
    """Answers with programs; the second knows the states of all training episodes by heart."""

    def __init__(self, demonstrations: Demonstrations, folder: Path) -> None:
        self._demonstrations = demonstrations
        self._folder = folder

    async def propose(self, request, parents):  # type: ignore[no-untyped-def]
        del parents
        with opened(self._folder) as (store, _):
            train = [row.digest for row in store.trajectories() if row.split == "train"]
        heart = by_heart(self._demonstrations, train)
        return await Listed(SIMPLE, heart, WRONG).propose(request, ())


def cheated(tmp_path: Path, **settings: object) -> Run:
    demonstrations = noisy()
    given = {"held_out": 0.0, "generations": 0, "population": 3, "elite": 1, **settings}
    cheating = Cheating(demonstrations, tmp_path / "run")
    return grace_irl.fit(demonstrations, out=tmp_path / "run", proposer=cheating, **given)  # type: ignore[arg-type]


def test_a_program_that_learnt_training_by_heart_loses(tmp_path: Path) -> None:
    run = cheated(tmp_path, validation=0.25)
    assert run.best.source.strip() == SIMPLE.strip()
    assert not run.best.train.separated
    rows = {row.program: row for row in run.front_rows}
    best = next(row for row in run.front_rows if row.best)
    assert best.program == run.best.program.id
    assert best.auc is not None
    assert best.auc > 0.8
    heart = next(row for row in run.front_rows if row.score > best.score)
    assert heart.auc is not None
    assert heart.auc < 0.6
    assert heart.worse is not None
    assert heart.error is not None
    assert heart.worse > 5 * heart.error > 0
    with opened(run.folder) as (store, _):
        sides = [row.split for row in store.trajectories()]
    assert (sides.count("validation"), sides.count("train")) == (16, 48)
    assert len(rows) == len(run.front_rows)


def test_without_validation_it_wins(tmp_path: Path) -> None:
    run = cheated(tmp_path)
    assert run.best.train.separated
    assert run.best.source.strip() != SIMPLE.strip()
    assert all(row.auc is None for row in run.front_rows)


@pytest.fixture(scope="module")
def dropped(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run whose best program, by validation, is one that the search had dropped."""
    demonstrations, folder = noisy(48), tmp_path_factory.mktemp("dropped") / "run"

    class Later(Cheating):
        """Brings the simple program when the population is full of programs that know the training data by heart."""

        async def propose(self, request, parents):  # type: ignore[no-untyped-def]
            del parents
            with opened(self._folder) as (store, _):
                train = [row.digest for row in store.trajectories() if row.split == "train"]
            heart = by_heart(self._demonstrations, train[1:])  # the run would end at an accuracy of 1
            scaled = [heart.replace("float(", f"{scale} * float(", 1) for scale in (2.0, 3.0)]
            return await Listed(*scaled, SIMPLE).propose(request, ())

    given = {"held_out": 0.25, "validation": 0.25, "generations": 1, "population": 2, "elite": 1}
    run = grace_irl.fit(demonstrations, out=folder, proposer=Later(demonstrations, folder), **given)  # type: ignore[arg-type]
    assert run.best.source.strip() == SIMPLE.strip()
    return run


def test_a_chosen_program_that_the_search_had_dropped_has_figures_on_held_out_data(dropped: Run) -> None:
    assert dropped.best.held_out is not None
    assert "nothing-held-out" not in {warning.code for warning in dropped.warnings}
    with opened(dropped.folder) as (store, _):
        stored = Separation.of(store.records()[dropped.best.program.id].evaluation)
    assert stored is not None
    assert stored.held_out == dropped.best.held_out


def test_show_lists_a_chosen_program_that_the_search_had_dropped(
    dropped: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    best = dropped.best.program.id
    assert main(["show", str(dropped.folder)]) == 0
    assert f"{best} *" in capsys.readouterr().out
    assert main(["show", str(dropped.folder), "--json"]) == 0
    about = json.loads(capsys.readouterr().out)
    assert about["population"][0]["program"] == about["best"] == best


def test_where_the_choice_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = cheated(tmp_path, validation=0.25)
    assert "front: programs on validation episodes" in run.report_path.read_text()
    assert "validation data" in run.reward_path.read_text()
    assert main(["show", str(run.folder)]) == 0
    out = capsys.readouterr().out
    assert "auc, validation" in out
    assert "front: programs on validation episodes" in out


def test_reshaping_begins_with_the_chosen_program(tmp_path: Path) -> None:
    run = cheated(tmp_path, validation=0.25, reshape=2)
    with closing(sqlite3.connect(run.folder / "run.db")) as database:
        rows = database.execute("SELECT parents FROM requests WHERE operator = 'reshape'").fetchall()
    assert [json.loads(parents) for (parents,) in rows] == [[run.best.program.id]] * 2


def answer(source: str) -> str:
    return f"```python\n{source}\n```"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A run with a scripted server, whose defaults set episodes aside; and the prompts."""
    folder = tmp_path_factory.mktemp("served")
    save(noisy(), folder / "set.parquet")
    answers = cycle([answer(WRONG), answer(SIMPLE)])
    with ChatServer(answer=lambda _: next(answers)) as server:
        run = grace_irl.fit(
            folder / "set.parquet",
            out=folder / "run",
            llm_url=server.url,
            answer_format="code",
            population=2,
            elite=1,
            generations=3,
            held_out=0.0,
            sets=("search.lag=1", "search.samples=1"),
        )
        prompts = [each["messages"][-1]["content"] for each in server.payloads]
    assert prompts
    return run.folder, prompts


def test_no_prompt_shows_a_state_that_is_set_aside(served: tuple[Path, list[str]]) -> None:
    folder, prompts = served
    with opened(folder) as (store, _):
        split = {row.digest: row.split for row in store.trajectories()}
    rows = re.compile(r"^1: .*?\[(\S+) (\S+)\]\n2: .*?\[(\S+) (\S+)\]", re.MULTILINE)
    seen = {tuple(map(float, found)) for prompt in prompts for found in rows.findall(prompt)}
    shown = dict.fromkeys(("train", "validation"), 0)
    for item in noisy():
        first = [number for x, y in item.trajectory.states[:2] for number in (round(x, 2), round(y, 1))]
        shown[split[item.trajectory.digest]] += tuple(first) in seen
    assert list(split.values()).count("validation") == 16
    assert shown["train"] > 20
    assert shown["validation"] == 0


def test_a_replay_sets_the_same_episodes_aside(
    served: tuple[Path, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = served
    recording = tmp_path / "answers.jsonl"
    assert main(["export", str(folder), "--recording", str(recording)]) == 0
    demos = ["--demos", str(folder.parent / "set.parquet")]
    for number, source in enumerate((recording, folder)):
        again = tmp_path / f"again-{number}"
        assert main(["fit", "--replay", str(source), *demos, "--out", str(again)]) == 0
        with opened(again) as (store, _), opened(folder) as (before, _):
            assert store.meta("best") == before.meta("best")
            assert store.meta("sizes") == before.meta("sizes")
    capsys.readouterr()
    other = ["--validation", "0.3", "--out", str(tmp_path / "other")]
    assert main(["fit", "--replay", str(recording), *demos, *other]) == 2
    assert "trajectories" in capsys.readouterr().err


def test_a_recording_made_before_there_was_one_sets_nothing_aside(
    served: tuple[Path, list[str]], tmp_path: Path
) -> None:
    folder, _ = served
    recording = tmp_path / "answers.jsonl"
    assert main(["export", str(folder), "--recording", str(recording)]) == 0
    lines = recording.read_text().splitlines()
    head = json.loads(lines[0])
    del head["config"]["data"]["validation"]
    head["data"] = [[*row[:3], "train"] for row in head["data"]]
    recording.write_text("\n".join([json.dumps(head), *lines[1:]]) + "\n")
    run = grace_irl.fit(folder.parent / "set.parquet", replay=recording, out=tmp_path / "run")
    with opened(run.folder) as (store, _):
        assert {row.split for row in store.trajectories()} == {"train"}


def test_a_program_that_fails_on_validation_alone_is_warned_of(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    items = []
    for number in range(64):
        states = rng.normal(size=(5, 2))
        states[:, 0] = (1 if number < 32 else -1) * rng.uniform(0.1, 1, 5)
        if number == 0:
            states[2, 1] = 50.0
        split: Split = "train" if number % 4 else "validation"
        items.append(Demonstration(Trajectory(states), "expert" if number < 32 else "negative", split=split))
    fails = "if state[1] > 40:\n            raise ValueError('rare')\n        return float(state[0] > 0)"
    source = f"class Reward:\n    def reward_fn(self, state):\n        {fails}\n"
    run = grace_irl.fit(
        Demonstrations(Metadata("vector", label="all"), tuple(items)),
        out=tmp_path / "run",
        proposer=Listed(source),
        held_out=0.0,
        generations=0,
        population=1,
        elite=1,
    )
    (found,) = [each for each in run.warnings if each.code == "fails"]
    assert "fails on validation episodes: ValueError: rare" in found.found


def test_too_few_episodes_to_set_any_aside(tmp_path: Path) -> None:
    demonstrations = noisy(12)
    settings = {"held_out": 0.0, "generations": 0, "population": 1, "validation": 0.25}
    run = grace_irl.fit(demonstrations, out=tmp_path / "run", proposer=Listed(SIMPLE), **settings)  # type: ignore[arg-type]
    assert UNJUDGED.format(share=0.25) in run.notes
    assert all(row.auc is None for row in run.front_rows)


def test_shares_outside_the_range_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"data\.validation"):
        grace_irl.fit(noisy(12), out=tmp_path / "run", validation=1.0)
    assert not (tmp_path / "run").exists()
