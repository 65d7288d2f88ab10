"""Runs that go on to reshape: a model's versions over real HTTP, scored, judged, replayed, resumed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from grace_irl.cli import main
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Trajectory
from grace_irl.errors import InputError
from grace_irl.programs.parts import Reads
from grace_irl.rewards.file import load_reward
from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.fit import resume, start
from grace_irl.runs.recording import recorded_config
from grace_irl.runs.run import Interrupted, Run, opened
from grace_irl.states.record import RecordStates
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.propose.client.server import ChatServer
from tests.runs.goal_world import RESHAPING
from tests.runs.test_resume import memory

PROGRAM = """class Reward:
    def __init__(self, extra_info=None):
        self.extra_info = extra_info

    def reward_fn(self, state):
        return {value}
"""
FLAGS: dict[str, object] = {
    "search.population": 4,
    "search.elite": 2,
    "search.generations": 3,
    "search.samples": 4,
    "search.reshape": 4,
    "model.answer_format": "code",
}
SEARCHED = ("float(state[0] > -5.0)", "float(state[0] > 0.0)", "float(state[0] > 5.0)", "state[1]")
RESHAPED = (
    "10.0 * (state[0] > 0.0) - state[2]",  # falls along experts
    "10.0 * (state[0] > 0.0) + (state[2] > 0.45)",  # rises once
    "10.0 * (state[0] > 0.0) + state[2]",  # rises at every step
    "state[2]",  # rises, and tells nothing apart
)


def rising_set(experts: int = 4, negatives: int = 4, length: int = 10) -> Demonstrations:
    """The first number tells experts from negatives, the second is noise, the third is time, from 0 to 0.9."""
    rng = np.random.default_rng(0)
    roles: list[tuple[Role, int]] = [("expert", experts), ("negative", negatives)]
    items = []
    for role, count in roles:
        for number in range(count):
            states = rng.normal(size=(length, 3))
            states[:, 0] = rng.uniform(0.1, 1.0, length) * (1 if role == "expert" else -1)
            states[:, 2] = np.arange(length) / length
            items.append(Demonstration(Trajectory(states, source=f"{role} {number}"), role))
    return Demonstrations(Metadata("vector", label="all"), tuple(items))


class Shaper:
    """Answers each kind of prompt from its list, in turn."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self._counts = {True: 0, False: 0}
        self._lock = threading.Lock()

    def __call__(self, prompt: str) -> str:
        with self._lock:
            reshaping = RESHAPING in prompt
            values = RESHAPED if reshaping else SEARCHED
            value = values[self._counts[reshaping] % len(values)]
            self._counts[reshaping] += 1
            if reshaping:
                self.prompts.append(prompt)
        return f"```python\n{PROGRAM.format(value=value)}```"


def parts() -> Parts:
    return Parts(rising_set(), sandbox=InProcessSandbox())


def run_with(server: ChatServer, folder: Path, **flags: object) -> Run:
    return start(resolve(flags={**FLAGS, "model.url": server.url, **flags}), folder, parts())


def test_the_best_program_is_reshaped_once_it_tells_all_apart(tmp_path: Path) -> None:
    model = Shaper()
    with ChatServer(answer=model) as server:
        run = run_with(server, tmp_path / "run")
    assert run.calls == 4 + 4  # the first generation reaches the target; then the versions
    assert run.reason.startswith("target_accuracy: 1")
    assert run.best.program.operator == "reshape"
    assert "+ state[2]" in run.best.source
    assert run.best.metrics["monotonicity"] == pytest.approx(1.0)
    assert run.best.train.separated
    assert "monotonicity:  1.0000 (" in run.reward_path.read_text()
    assert all("Monotonicity (Kendall's tau" in prompt for prompt in model.prompts)
    with opened(run.folder) as (store, _):
        requests, rows = store.requests(), store.fates()
        records = store.records()
    assert [operator for _, operator in requests.values()] == ["initialise"] * 4 + ["reshape"] * 4
    fates = {records[row.fate.program_id].index: row.fate for row in rows if row.index >= 4}
    assert [fates[n].verdict for n in (4, 5, 6, 7)] == ["dropped", "kept", "kept", "dropped"]
    # Tau-b against time of a step from 0 to 1 after 5 of 10 states: 25 / sqrt(45 * 25).
    assert fates[5].reason.startswith("reshaped: monotonicity 0 -> 0.7454, accuracy 1 stays")
    assert fates[6].reason.startswith("reshaped: monotonicity 0 -> 1, accuracy 1 stays")
    assert "monotonicity 0 -> -1: not higher" in fates[4].reason
    assert "lower" in fates[7].reason


def test_the_file_of_a_reshaped_reward_names_the_parts_of_records(tmp_path: Path) -> None:
    def recorded(item: Demonstration) -> Demonstration:
        states = item.trajectory.states
        parts = {"place": states[:, 0], "noise": states[:, 1], "more/time": states[:, 2:]}
        return replace(item, trajectory=Trajectory(RecordStates(parts), source=item.trajectory.source))

    def answer(prompt: str, shaper: Callable[[str], str] = Shaper()) -> str:
        text = shaper(prompt).replace("state[2]", 'float(state["more/time"][0])')
        return text.replace("state[0]", 'state["place"]').replace("state[1]", 'float(state["noise"])')

    demonstrations = Demonstrations(Metadata("record", label="all"), tuple(map(recorded, rising_set())))
    with ChatServer(answer=answer) as server:
        config = resolve(flags={**FLAGS, "model.url": server.url})
        run = start(config, tmp_path / "run", Parts(demonstrations, sandbox=InProcessSandbox()))
    assert run.best.program.operator == "reshape"
    reads = load_reward(run.reward_path).reads
    assert reads == Reads("record", {"more/time": (1,), "noise": (), "place": ()})


@pytest.mark.parametrize(
    "flags",
    [
        {"stop.target_accuracy": None, "search.generations": 1},
        {"stop.target_accuracy": None, "stop.plateau": 1, "search.generations": 9},
        {"search.steady": True, "search.lag": 3, "search.samples": 1, "model.concurrency": 1},
    ],
)
def test_however_the_search_ends(tmp_path: Path, flags: dict[str, object]) -> None:
    with ChatServer(answer=Shaper()) as server:
        run = run_with(server, tmp_path / "run", **flags)
    with opened(run.folder) as (store, _):
        operators = [operator for _, operator in store.requests().values()]
    assert operators[-4:] == ["reshape"] * 4
    assert operators.count("reshape") == 4
    assert run.best.program.operator == "reshape"
    again = start(recorded_config(run.folder), tmp_path / "again", parts())
    assert memory(tmp_path / "again") == memory(run.folder)
    assert again.best.program == run.best.program


def test_what_is_capped_ends_everything(tmp_path: Path) -> None:
    with ChatServer(answer=Shaper()) as server:
        run = run_with(server, tmp_path / "run", **{"stop.max_calls": 4})
        assert run.best.program.operator == "initialise"
        assert run.calls == 4
        # Target and cap were met at once; with a higher cap it goes on to reshape.
        more = resume(run.folder, {"stop.max_calls": 6}, parts=parts())
    assert more.calls == 6
    assert more.reason.startswith("max_calls")
    assert more.best.program.operator == "reshape"


def test_a_finished_run_may_be_reshaped_later(tmp_path: Path) -> None:
    with ChatServer(answer=Shaper()) as server:
        whole = run_with(server, tmp_path / "whole")
    with ChatServer(answer=Shaper()) as server:
        plain = run_with(server, tmp_path / "run", **{"search.reshape": 0})
        assert plain.best.program.operator == "initialise"
        later = resume(plain.folder, {"search.reshape": 4}, parts=parts())
        assert later.best == whole.best or later.best.program == whole.best.program
        assert memory(plain.folder) == memory(whole.folder)
        for flags in ({"search.reshape": 8}, {"search.generations": 9}, {"stop.plateau": 2}):
            with pytest.raises(InputError, match="the search has ended") as caught:
                resume(plain.folder, flags, parts=parts())
            assert "\n" not in str(caught.value)


def test_interrupted_while_it_reshapes(tmp_path: Path) -> None:
    with ChatServer(answer=Shaper()) as server:
        whole = run_with(server, tmp_path / "whole")

    def stop(snapshot: object) -> None:
        if snapshot.told and snapshot.progress.calls == 7 and not stopped:  # type: ignore[attr-defined]
            stopped.append(True)
            raise KeyboardInterrupt

    stopped: list[bool] = []
    with ChatServer(answer=Shaper()) as server:
        config = resolve(flags={**FLAGS, "model.url": server.url})
        watched = Parts(rising_set(), sandbox=InProcessSandbox(), listener=stop)
        with pytest.raises(Interrupted) as caught:
            start(config, tmp_path / "run", watched)
        assert caught.value.best is not None
        assert caught.value.best.program.operator == "reshape"
        run = resume(tmp_path / "run", parts=parts())
    assert memory(run.folder) == memory(whole.folder)
    assert run.reward_path.read_text() == whole.reward_path.read_text()


def test_show_tells_how_monotone_programs_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ChatServer(answer=Shaper()) as server:
        run = run_with(server, tmp_path / "run")
    assert main(["show", str(run.folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    best = next(program for program in found["population"] if program["program"] == found["best"])
    assert (best["operator"], best["monotonicity"]) == ("reshape", pytest.approx(1.0))
    assert main(["show", str(run.folder), "--program", found["best"]]) == 0
    assert "monotonicity: 1.0000" in capsys.readouterr().out


def test_who_cannot_reshape_says_so_before_anything_is_written(tmp_path: Path) -> None:
    flags = {"proposer.name": "synthesis", "search.reshape": 3}
    with pytest.raises(InputError, match="--reshape 3 with proposer 'synthesis'") as caught:
        start(resolve(flags=flags), tmp_path / "run", parts())
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
