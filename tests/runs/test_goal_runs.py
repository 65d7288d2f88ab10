"""Runs with the label rule "goal": a model says which states are goals, over real HTTP, before the search."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from grace_irl.cli import main
from grace_irl.demos import save
from grace_irl.demos.goals import load_goals
from grace_irl.errors import GraceError, InputError
from grace_irl.propose.goals import GoalAnswer
from grace_irl.report.account import account
from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.fit import resume, start
from grace_irl.runs.recording import recorded_config, write_recording
from grace_irl.runs.run import Interrupted, Run, opened
from grace_irl.runs.store import Store
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.propose.client import server as behaviours
from tests.propose.client.server import ChatServer
from tests.runs.goal_world import CLEANING, PROGRAM, GoalModel, goal_set, last_two
from tests.runs.test_model_runs import arguments, kill_when
from tests.runs.test_resume import memory

FLAGS: dict[str, object] = {
    "search.population": 4,
    "search.elite": 2,
    "search.generations": 1,
    "model.answer_format": "code",
    "data.held_out": 0.34,
}


def run_with(server: ChatServer, folder: Path, parts: Parts | None = None, **flags: object) -> Run:
    config = resolve(flags={**FLAGS, "model.url": server.url, **flags})
    return start(config, folder, parts or Parts(goal_set(), sandbox=InProcessSandbox()))


def answers(folder: Path) -> list[tuple[object, ...]]:
    with opened(folder) as (store, _):
        return [(a.digest, a.attempt, a.origin, a.indices, a.failure, a.raw) for a in store.goals()]


def by_name(run: Run) -> dict[str, list[int]]:
    """Where the run has positive states, by what it keeps of the trajectories."""
    goals = load_goals(run.folder / "goals.toml")
    with opened(run.folder) as (store, _):
        return {row.source: list(goals.get(row.digest, ())) for row in store.trajectories()}


def test_every_expert_trajectory_is_asked_about_and_no_other(tmp_path: Path) -> None:
    model, notes = GoalModel(), []
    parts = Parts(goal_set(), sandbox=InProcessSandbox(), note=notes.append)
    with ChatServer(answer=model, latency=lambda _: 0.05) as server:
        run = run_with(server, tmp_path / "run", parts)
    assert sorted(model.asked) == [5, 6, 7, 8, 9, 10]  # held-out ones, too, and each once
    assert server.most_in_flight > 1
    expected = {f"expert {n}": [n + 4, n + 5] for n in range(6)} | {f"negative {n}": [] for n in range(4)}
    assert by_name(run) == expected
    with opened(run.folder) as (store, _):
        assert [row.positives for row in store.trajectories()] == [2] * 6 + [0] * 4
        assert {row.split for row in store.trajectories() if row.role == "expert"} == {"train", "held_out"}
        kept = store.goals()
    assert {(a.attempt, a.origin, bool(a.prompt), bool(a.raw)) for a in kept} == {(0, "model", True, True)}
    assert run.best.train.separated
    assert run.tokens == server.tokens_in + server.tokens_out > sum(a.tokens_in + a.tokens_out for a in kept) > 0
    assert any("6 of 6" in note and "goals.toml" in note for note in notes)
    assert "goal (which expert states are positive)" in run.reward_path.read_text()


def test_json_answers_carry_the_schema_of_goal_states(tmp_path: Path) -> None:
    def say(length: int) -> str:
        return json.dumps({"reasoning": "jumps", "trajectories": [{"trajectory": 1, "goal_states": [length]}]})

    class Json(GoalModel):
        def __call__(self, prompt: str) -> str:
            said = super().__call__(prompt)
            return said if CLEANING in prompt else json.dumps({"reasoning": "", "reward_class_code": said})

    with ChatServer(answer=Json(say)) as server:
        run = run_with(server, tmp_path / "run", **{"model.answer_format": "json"})
        asked = {
            "goal_states" if CLEANING in behaviours.prompt_text(payload) else "program": json.dumps(
                payload["response_format"]
            )
            for payload in server.payloads
        }
    assert "goal_states" in asked["goal_states"]
    assert "reward_class_code" in asked["program"]
    assert by_name(run)["expert 2"] == [7]


def test_marks_and_files_are_not_asked_about(tmp_path: Path) -> None:
    data = goal_set(marked=(0, 1))
    model = GoalModel()
    with ChatServer(answer=model) as server:
        first = run_with(server, tmp_path / "first", Parts(data, sandbox=InProcessSandbox()))
        assert sorted(model.asked) == [7, 8, 9, 10]
        goals = tmp_path / "first" / "goals.toml"
        text = goals.read_text()
        digest = data[5].trajectory.digest
        (tmp_path / "mine.toml").write_text(re.sub(rf"^{digest} = .*$", f"{digest} = []", text, flags=re.MULTILINE))
        second = run_with(server, tmp_path / "second", **{"data.goals": str(tmp_path / "mine.toml")})
        assert len(model.asked) == 4
    assert by_name(first)["expert 5"] == [9, 10]
    assert by_name(second) == {**by_name(first), "expert 5": []}
    # No model is needed any more.
    flags = {"data.goals": str(goals), "proposer.name": "synthesis", "search.generations": 0, "search.population": 2}
    third = start(resolve(flags=flags), tmp_path / "third", Parts(goal_set(), sandbox=InProcessSandbox()))
    assert by_name(third) == by_name(first)
    assert {row[2] for row in answers(third.folder)} == {"file"}


def test_part_of_the_goals_by_hand_the_rest_by_the_model(tmp_path: Path) -> None:
    digest = goal_set()[3].trajectory.digest
    (tmp_path / "mine.toml").write_text(f"{digest} = [1]\n")
    model = GoalModel()
    with ChatServer(answer=model) as server:
        run = run_with(server, tmp_path / "run", **{"data.goals": str(tmp_path / "mine.toml")})
    assert sorted(model.asked) == [5, 6, 7, 9, 10]
    assert by_name(run)["expert 3"] == [1]


def test_an_answer_that_cannot_be_read_is_asked_for_again(tmp_path: Path) -> None:
    counts: dict[int, int] = {}

    def say(length: int) -> str:
        counts[length] = counts.get(length, 0) + 1
        return "trajectory 1: 99" if length in (6, 8) and counts[length] < 3 else last_two(length)

    model = GoalModel(say)
    with ChatServer(answer=model) as server:
        run = run_with(server, tmp_path / "run")
    assert counts == {5: 1, 6: 3, 7: 1, 8: 3, 9: 1, 10: 1}
    assert by_name(run)["expert 1"] == [5, 6]
    again = [prompt for prompt in model.prompts if "An earlier answer was of no use" in prompt]
    assert len(again) == 4
    assert all(re.search(r"state 99 of [68] states; expected 1 to [68]", prompt) for prompt in again)
    failed = [row for row in answers(run.folder) if row[4]]
    assert len(failed) == 4
    assert {row[3] for row in failed} == {None}


def test_what_the_model_cannot_say_is_said_by_hand(tmp_path: Path) -> None:
    data = goal_set()
    digest = data[3].trajectory.digest
    model = GoalModel(lambda length: "I cannot tell." if length == 8 else last_two(length))
    with ChatServer(answer=model) as server:
        with pytest.raises(GraceError) as caught:
            run_with(server, tmp_path / "run")
        said = str(caught.value)
        assert "\n" not in said
        assert caught.value.exit_code == 1
        for part in ("expert 3", digest, "3 answers", "goals.toml", f"{digest} = [12]", "--resume"):
            assert part in said
        assert sorted(model.asked) == [5, 6, 7, 8, 8, 8, 9, 10]  # the others were asked, and are kept
        goals = tmp_path / "run" / "goals.toml"
        assert len(load_goals(goals)) == 5
        goals.write_text(goals.read_text() + f"\n{digest} = [8]\n")
        run = resume(tmp_path / "run", parts=Parts(data, sandbox=InProcessSandbox()))
        assert len(model.asked) == 8
    assert by_name(run)["expert 3"] == [8]
    with opened(run.folder) as (store, _):
        assert [row.positives for row in store.trajectories()] == [2, 2, 2, 1, 2, 2, 0, 0, 0, 0]


def test_a_model_that_finds_no_goal_at_all(tmp_path: Path) -> None:
    with (
        ChatServer(answer=GoalModel(lambda _: "trajectory 1: none")) as server,
        pytest.raises(InputError, match="none of 6 expert trajectories has a goal state") as caught,
    ):
        run_with(server, tmp_path / "run")
    assert "goals.toml" in str(caught.value)
    assert "--resume" in str(caught.value)
    goals = tmp_path / "run" / "goals.toml"
    goals.write_text(goals.read_text().replace("[]\n", "[5]\n"))
    with ChatServer(answer=GoalModel()) as server:
        flags = {"model.url": server.url}
        run = resume(tmp_path / "run", flags, parts=Parts(goal_set(), sandbox=InProcessSandbox()))
    assert by_name(run)["expert 0"] == [5]


def test_a_finished_run_keeps_its_goals_whatever_is_written_later(tmp_path: Path) -> None:
    model, notes = GoalModel(), []
    parts = Parts(goal_set(), sandbox=InProcessSandbox(), note=notes.append)
    with ChatServer(answer=model) as server:
        run = run_with(server, tmp_path / "run", parts)
        before = memory(run.folder)
        goals = run.folder / "goals.toml"
        goals.write_text(goals.read_text().replace("[4, 5]", "[1]"))
        resume(run.folder, parts=parts)
    assert memory(run.folder) == before
    assert len(model.asked) == 6
    assert any("was edited" in note and "--goals" in note for note in notes)


def test_a_run_replays_its_goals_without_a_server(tmp_path: Path) -> None:
    counts: dict[int, int] = {}

    def say(length: int) -> str:
        counts[length] = counts.get(length, 0) + 1
        return "?" if length == 6 and counts[length] < 2 else last_two(length)

    with ChatServer(answer=GoalModel(say)) as server:
        run = run_with(server, tmp_path / "run")
    with opened(run.folder) as (store, config):
        write_recording(store, config, tmp_path / "run.jsonl")
    for number, recording in enumerate((run.folder, tmp_path / "run.jsonl")):
        folder = tmp_path / f"again-{number}"
        again = start(recorded_config(recording), folder, Parts(goal_set(), sandbox=InProcessSandbox()))
        assert memory(folder) == memory(run.folder)
        assert sorted(answers(folder)) == sorted(answers(run.folder))
        assert (folder / "goals.toml").read_text() == (run.folder / "goals.toml").read_text()
        assert (again.tokens, again.best.program) == (run.tokens, run.best.program)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"proposer.name": "synthesis"}, "expert 0 (DIGEST): no goal states are marked (nor of 5 others)"),
        ({"data.label": "last", "data.goals": "GOOD"}, "--label last, which does not use it"),
        ({"data.goals": "FOREIGN"}, "none of its 1 entries is of an expert trajectory here"),
        ({"data.goals": "OUTSIDE"}, "goal state 6 of 5 states"),
        ({"data.goals": "ABSENT"}, "cannot be read"),
        ({"model.url": "http://127.0.0.1:9"}, "127.0.0.1:9"),
        ({"search.reshape": 2, "proposer.name": "synthesis", "data.goals": "ALL"}, "cannot reshape"),
        ({"fitness.log_pi": "cloned"}, "no actions"),
    ],
)
def test_what_cannot_begin_writes_nothing(tmp_path: Path, flags: dict[str, object], said: str) -> None:
    data = goal_set()
    digest = data[0].trajectory.digest
    every = "".join(f"{item.trajectory.digest} = [5]\n" for item in data if item.role == "expert")
    texts = {
        "GOOD": f"{digest} = [5]\n",
        "FOREIGN": f"{'0' * 16} = [1]\n",
        "OUTSIDE": f"{digest} = [6]\n",
        "ALL": every,
    }
    (tmp_path / "files").mkdir()
    for name, text in texts.items():
        (tmp_path / "files" / name).write_text(text)
    found = {k: str(tmp_path / "files" / str(v)) if k == "data.goals" else v for k, v in flags.items()}
    with ChatServer(answer=GoalModel()) as server, pytest.raises(InputError) as caught:
        run_with(server, tmp_path / "run", Parts(data, sandbox=InProcessSandbox()), **found)
    assert said.replace("DIGEST", digest) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [entry.name for entry in tmp_path.iterdir()] == ["files"]
    assert server.payloads == []


def test_a_server_that_goes_away_while_it_is_asked(tmp_path: Path) -> None:
    model = GoalModel()
    stopped = threading.Event()

    def rule(payload: dict[str, object]) -> behaviours.Behaviour | None:
        if len(model.asked) >= 3:
            stopped.set()
            return behaviours.error(503, "gone")
        return None

    data = goal_set()
    with ChatServer(answer=model, rule=rule) as server:
        flags = {"model.patience": 0.3, "model.concurrency": 1, "model.timeout": 5.0}
        with pytest.raises(GraceError, match="go on with --resume"):
            run_with(server, tmp_path / "run", Parts(data, sandbox=InProcessSandbox()), **flags)
        assert stopped.is_set()
        before = len(answers(tmp_path / "run"))
        assert 0 < before < 6
        assert len(load_goals(tmp_path / "run" / "goals.toml")) == before
        server.rule = lambda _: None
        model.asked.clear()
        run = resume(tmp_path / "run", parts=Parts(data, sandbox=InProcessSandbox()))
    assert len(model.asked) == len(set(model.asked)) == 6 - before
    assert by_name(run)["expert 4"] == [8, 9]


def test_interrupted_while_goals_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, keep = goal_set(), Store.add_goals

    def stop_after_two(store: Store, kept: Sequence[GoalAnswer]) -> None:
        keep(store, kept)
        if len(store.goals()) == 2:
            os.kill(os.getpid(), signal.SIGINT)  # what Ctrl-C sends

    with ChatServer(answer=GoalModel(), latency=lambda count: 0.1 * count) as server:
        with monkeypatch.context() as patched:
            patched.setattr(Store, "add_goals", stop_after_two)
            with pytest.raises(Interrupted) as caught:
                run_with(server, tmp_path / "run", Parts(data, sandbox=InProcessSandbox()))
        assert (caught.value.folder, caught.value.best) == (tmp_path / "run", None)
        assert len(load_goals(tmp_path / "run" / "goals.toml")) == len(answers(tmp_path / "run")) < 6
        run = resume(tmp_path / "run", parts=Parts(data, sandbox=InProcessSandbox()))
    assert by_name(run)["expert 4"] == [8, 9]
    assert all(row[1] == 0 for row in answers(run.folder))


@pytest.mark.slow
def test_killed_while_goals_are_asked_for(tmp_path: Path) -> None:
    folder, demos = tmp_path / "run", tmp_path / "demos.parquet"
    save(goal_set(), demos)
    model = GoalModel()
    with ChatServer(answer=model, latency=lambda count: 0.2 * count) as server:
        new = ["--demos", str(demos), "--llm-url", server.url, "--out", str(folder), "--label", "goal"]
        for name, value in FLAGS.items():
            new += ["--set", f"{name}={value}"]
        kill_when(folder, new, lambda store: len(store.goals()) >= 2)
        known = len(answers(folder))
        assert 2 <= known < 6
        server.latency = lambda _: 0.0
        before = len(server.payloads)
        done = subprocess.run(arguments(folder, new), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    again = [payload for payload in server.payloads[before:] if CLEANING in behaviours.prompt_text(payload)]
    assert len(again) == 6 - known  # what was answered is not asked again
    assert len(load_goals(folder / "goals.toml")) == 6


def test_a_person_answers_with_files(tmp_path: Path) -> None:
    folder, done = tmp_path / "run" / "manual", threading.Event()

    def person() -> None:
        while not done.is_set():
            for prompt in list(folder.glob("*.prompt.md")) if folder.is_dir() else []:
                answer = folder / prompt.name.replace(".prompt.md", ".answer.md")
                if not answer.exists():
                    text = prompt.read_text()
                    length = re.search(r"Trajectory 1: (\d+) states", text)
                    program = f"```python\n{PROGRAM.format(threshold=1.0)}```"
                    answer.write_text(last_two(int(length[1])) if length else program)
            time.sleep(0.05)

    thread = threading.Thread(target=person)
    thread.start()
    try:
        flags = {**FLAGS, "proposer.name": "manual", "search.population": 2, "search.generations": 0}
        run = start(resolve(flags=flags), tmp_path / "run", Parts(goal_set(), sandbox=InProcessSandbox()))
    finally:
        done.set()
        thread.join()
    assert by_name(run)["expert 5"] == [9, 10]
    assert len(list(folder.glob("goals-*.prompt.md"))) == 6


def test_show_and_inspect_say_what_was_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demos = tmp_path / "demos.parquet"
    save(goal_set(), demos)
    with ChatServer(answer=GoalModel(lambda n: "trajectory 1: none" if n == 7 else last_two(n))) as server:
        run = run_with(server, tmp_path / "run")
    assert main(["show", str(run.folder)]) == 0
    shown = capsys.readouterr().out
    assert "goal states: 10 in 5 of 6 expert trajectories (6 by model), 6 calls" in shown
    assert main(["show", str(run.folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {name: found["goals"][name] for name in ("trajectories", "known", "with_goals", "states", "by")} == {
        "trajectories": 6,
        "known": 6,
        "with_goals": 5,
        "states": 10,
        "by": {"model": 6},
    }
    taus = [program["monotonicity"] for program in found["population"]]
    assert np.isfinite(taus).all()
    assert main(["demos", "inspect", str(demos), "--goals", str(run.folder / "goals.toml")]) == 0
    inspected = capsys.readouterr().out
    assert "6 expert trajectories: 5 with goal states, 1 with none, 0 not marked" in inspected


@pytest.mark.parametrize("flags", [{"stop.max_tokens": 100}, {"stop.max_cost": 0.0001, "model.price_in": 1.0}])
def test_stop_rules_of_tokens_hold_while_goals_are_asked_for(tmp_path: Path, flags: dict[str, object]) -> None:
    with ChatServer(answer=GoalModel()) as server:
        with pytest.raises(GraceError, match="while goal states were asked for; expected a higher limit") as error:
            run_with(server, tmp_path / "run", **flags, **{"search.lag": 1})
        assert "--resume" in str(error.value)
        asked = len(server.payloads)
        assert asked == len(answers(tmp_path / "run")) < 4
        with pytest.raises(GraceError, match="while goal states were asked for"):
            resume(tmp_path / "run", parts=Parts(goal_set(), sandbox=InProcessSandbox()))
        assert len(server.payloads) == asked  # a resume at the limit pays for nothing
        more = {**dict.fromkeys(flags.keys() - {"model.price_in"}, 10**9), "stop.max_calls": 4}
        assert resume(tmp_path / "run", more, parts=Parts(goal_set(), sandbox=InProcessSandbox())).calls == 4


def test_show_says_what_goal_states_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ChatServer(answer=GoalModel()) as server:
        run = run_with(server, tmp_path / "run", **{"model.price_in": 1.0, "model.price_out": 2.0})
    with opened(run.folder) as (store, config):
        cost = sum(each.tokens_in + 2 * each.tokens_out for each in store.goals()) / 1e6
        facts = dict(account(store, config, "").facts)
    assert facts["cost"] == f"{run.cost:,.4g}"  # of the search, too
    assert main(["show", str(run.folder)]) == 0
    assert f"cost {cost:.4g}; see" in capsys.readouterr().out
