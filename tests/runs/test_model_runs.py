"""Whole runs whose programs a model writes: a chat server that answers as a script says, over real HTTP."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from grace_irl.cli import main
from grace_irl.errors import GraceError, InputError
from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.engine import Snapshot
from grace_irl.runs.fit import resume, start
from grace_irl.runs.recording import opened_recording, recorded_config, write_recording
from grace_irl.runs.run import Interrupted, Run, opened
from grace_irl.runs.store import Store
from tests.fakes.data import vector_set
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.fakes.scripted_proposer import SOURCE
from tests.propose.client import server as behaviours
from tests.propose.client.server import ChatServer
from tests.propose.test_pictures import grid_set
from tests.runs.test_resume import memory

FLAGS: dict[str, object] = {
    "search.population": 6,
    "search.elite": 2,
    "search.generations": 2,
    "search.samples": 3,
    "model.answer_format": "code",
    "stop.target_accuracy": 0.99,
}


class Model:
    """A weak model, made up: it draws thresholds; some answers hold no program, some programs raise until repaired."""

    def __init__(self, troubles: bool = True) -> None:
        self.calls = 0
        self.troubles = troubles
        self.prompts: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, prompt: str) -> str:
        with self._lock:
            self.calls += 1
            number = self.calls
            self.prompts.append(prompt)
        rng = np.random.default_rng(number)
        source = SOURCE.format(index=int(rng.integers(3)), threshold=round(float(rng.normal(0, 1)), 2))
        if self.troubles and number % 7 == 0:
            return "I would rather talk about the weather."
        if self.troubles and number % 5 == 0:
            source = source.replace("self.extra_info = extra_info", "self.extra_info = missing")
        return f"A threshold.\n\n```python\n{source}```\n"


def run_with(server: ChatServer, folder: Path, **flags: object) -> Run:
    config = resolve(flags={**FLAGS, "model.url": server.url, **flags})
    return start(config, folder, Parts(vector_set(noise=0.05), sandbox=InProcessSandbox()))


def test_a_run_from_answers(tmp_path: Path) -> None:
    model = Model()
    with ChatServer(answer=model) as server:
        run = run_with(server, tmp_path / "run", **{"model.price_in": 2.0, "model.price_out": 6.0})
    assert run.proposer == "llm"
    with opened(run.folder) as (store, config):
        assert (config.model.name, config.search.samples, config.search.lag) == ("model", 3, 4 * 32 * 3)
        told, fates = store.told(), store.fates()
        proposals = list(store.proposals())
    failed = [t.failure for t in told.values() if t.failure]
    assert failed
    assert all(failure.startswith("no_class: ") for failure in failed)
    repaired = [row.fate for row in fates if row.fate.verdict == "repaired"]
    assert repaired
    assert all("NameError" in fate.reason for fate in repaired)
    # A call answers three requests (what the first population lacked is asked for again); a repair is its own call.
    repairs, lacked = sum(attempt for _, attempt, _ in proposals), run.calls - 18
    assert [p["n"] for p in server.payloads if p.get("n", 1) > 1] == [3] * 6 + [lacked] * (lacked > 1)
    assert len(server.payloads) == 6 + (lacked > 0) + repairs
    assert model.calls == run.calls + repairs
    # Every token is counted once.
    assert run.tokens == server.tokens_in + server.tokens_out > 0
    assert run.cost == pytest.approx((2.0 * server.tokens_in + 6.0 * server.tokens_out) / 1e6)


def test_prompts_hold_the_parent_and_no_held_out_state(tmp_path: Path) -> None:
    model = Model(troubles=False)
    with ChatServer(answer=model) as server:
        run = run_with(server, tmp_path / "run", **{"data.held_out": 0.5})
    with opened(run.folder) as (store, _):
        records = store.records()
        held = {row.digest for row in store.trajectories() if row.split == "held_out"}
    mutations = [
        prompt for prompt in model.prompts if any(r.program.source.strip() in prompt for r in records.values())
    ]
    assert len(mutations) == 12  # every sample of both generations sees its parent
    numbers = {
        f"{value:.3g}"
        for item in vector_set(noise=0.05)
        if item.trajectory.digest in held
        for value in item.trajectory.states[:, 1]
    }
    seen = set(re.findall(r"-?\d+\.\d+", " ".join(model.prompts)))
    assert len(numbers & seen) < len(numbers) / 4  # three digits meet by chance


def test_a_run_replays_bit_for_bit_without_its_server(tmp_path: Path) -> None:
    with ChatServer(answer=Model()) as server:
        run = run_with(server, tmp_path / "run")
    parts = Parts(vector_set(noise=0.05), sandbox=InProcessSandbox())
    with opened(run.folder) as (store, config):
        write_recording(store, config, tmp_path / "run.jsonl")
    for number, recording in enumerate((run.folder, tmp_path / "run.jsonl")):
        folder = tmp_path / f"again-{number}"
        again = start(recorded_config(recording), folder, parts)
        assert memory(folder) == memory(run.folder)
        assert again.best.program == run.best.program
        old, new = run.reward_path.read_text(), again.reward_path.read_text()
        assert new.replace("proposer replay", "proposer llm") == old


class Stubborn(Model):
    """Its programs fail until they are sent back a second time."""

    def __call__(self, prompt: str) -> str:
        answer = super().__call__(prompt)
        if "name 'again'" in prompt:
            return answer
        return answer.replace("= extra_info", f"= {'again' if 'missing' in prompt else 'missing'}")


def test_several_repairs_are_replayed_whatever_this_user_allows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ChatServer(answer=Stubborn(troubles=False)) as server:
        run = run_with(server, tmp_path / "run", **{"model.repairs": 2, "search.generations": 0})
    parts = Parts(vector_set(noise=0.05), sandbox=InProcessSandbox())
    with opened(run.folder) as (store, config):
        assert {attempt for _, attempt, _ in store.proposals()} == {0, 1, 2}
        write_recording(store, config, tmp_path / "run.jsonl")
    for number, recording in enumerate((run.folder, tmp_path / "run.jsonl")):
        again = start(recorded_config(recording), tmp_path / f"again-{number}", parts)
        assert memory(again.folder) == memory(run.folder)
    assert main(["fit", "--replay", str(run.folder), "--repairs", "3", "--out", str(tmp_path / "other")]) == 2
    assert "--repairs: no effect, since this run has no prompts (proposer 'replay')" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("version", [2, 3])
def test_a_recording_keeps_that_its_proposer_had_nothing_new(version: int, tmp_path: Path) -> None:
    """Recordings of format 2 say it in words alone."""
    head = {"format": f"grace-irl recording {version}", "calls": 2, "config": {}, "data": [["a", "b", "c", "d"]]}
    said = {"index": 1, "attempt": 0, "source": "", "failure": "exhausted: 20 variations"}
    answers = [
        {"index": 0, "attempt": 0, "source": "x", "failure": ""},
        said | ({"exhausted": True} if version > 2 else {}),
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, (head, *answers))))
    found = [opened_recording(tmp_path / "a.jsonl").proposal(index) for index in range(2)]
    assert [each is not None and each.exhausted for each in found] == [False, True]


def test_a_recording_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"format": "other"}\n')
    (tmp_path / "b.jsonl").write_text("")
    (tmp_path / "d.jsonl").write_text("[" * 100_000)
    with ChatServer(answer=Model()) as server:
        run = run_with(server, tmp_path / "run", **{"search.generations": 0})
    with opened(run.folder) as (store, config):
        write_recording(store, config, tmp_path / "c.jsonl")
    lines = (tmp_path / "c.jsonl").read_text().splitlines()
    (tmp_path / "c.jsonl").write_text("\n".join([lines[0], lines[1], lines[2][:40]]))
    for name, said in (("a", "line 1"), ("b", "line 1"), ("c", "line 3"), ("d", "line 1"), ("absent", "No such file")):
        with pytest.raises(InputError, match=said) as caught:
            opened_recording(tmp_path / f"{name}.jsonl")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("flags", "models", "said"),
    [
        ({"model.url": "http://127.0.0.1:9"}, [{"id": "model"}], "127.0.0.1:9"),
        ({"model.name": "other"}, [{"id": "model"}], "no model 'other'; it has: model"),
        ({}, [{"id": "a"}, {"id": "b"}], "name it with --model"),
        ({"model.context": "absent.txt"}, [{"id": "model"}], "absent.txt"),
        ({"stop.max_cost": 1.0}, [{"id": "model"}], "--max-cost 1 without prices"),
    ],
)
def test_what_cannot_begin_writes_nothing(
    tmp_path: Path, flags: dict[str, object], models: list[dict[str, object]], said: str
) -> None:
    with ChatServer(answer=Model(), models=models) as server:
        server.rule = behaviours.unlisted(server)
        with pytest.raises(InputError, match=re.escape(said)) as caught:
            run_with(server, tmp_path / "run", **flags)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRACE_IRL_API_KEY", "sk-very-secret")
    with ChatServer(answer=Model(), models_status=401) as server, pytest.raises(InputError, match="key") as caught:
        run_with(server, tmp_path / "run")
    assert "very-secret" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_no_key_is_ever_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRACE_IRL_API_KEY", "sk-very-secret")
    with ChatServer(answer=Model()) as server:
        run = run_with(server, tmp_path / "run", **{"search.generations": 0})
    assert set(server.authorizations) == {"Bearer sk-very-secret"}
    assert not [path for path in run.folder.rglob("*") if path.is_file() and b"very-secret" in path.read_bytes()]


def test_pictures_go_with_prompts(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    with ChatServer(answer=Model(troubles=False)) as server:
        with pytest.raises(InputError, match="vector states have no picture"):
            run_with(server, tmp_path / "run", **{"model.images": True})
        assert list(tmp_path.iterdir()) == []
        config = resolve(flags={**FLAGS, "model.url": server.url, "model.images": True, "search.generations": 0})
        with pytest.raises(GraceError, match="no valid program"):  # it answers with rewards of vectors
            start(config, tmp_path / "run", Parts(grid_set(), sandbox=InProcessSandbox()))
    parts = server.payloads[0]["messages"][-1]["content"]
    assert [part["type"] for part in parts].count("image_url") == 6
    assert "Picture 6: state 4 of Expert 3, positive" in next(p["text"] for p in parts if p["type"] == "text")
    assert all(p["image_url"]["url"].startswith("data:image/png;base64,") for p in parts if p["type"] == "image_url")


def test_synthesis_may_seed_the_population(tmp_path: Path) -> None:
    with ChatServer(answer=Model(troubles=False)) as server:
        run = run_with(server, tmp_path / "run", **{"proposer.seed_synthesis": 2, "search.generations": 0})
        assert sum(payload.get("n", 1) for payload in server.payloads) == 4
    with opened(run.folder) as (store, _):
        proposals = {index: proposal for index, _, proposal in store.proposals()}
    assert [bool(proposals[n].raw) for n in range(6)] == [False, False, True, True, True, True]
    assert proposals[0].sketch


@pytest.mark.slow
@pytest.mark.parametrize("steady", [False, True])
def test_killed_and_resumed_it_is_the_run_that_its_answers_make(tmp_path: Path, steady: bool) -> None:
    """What a model answers differs from time to time; so the recording of the killed run is what is replayed."""
    folder = tmp_path / "run"
    demos = tmp_path / "demos.parquet"
    from grace_irl.demos import save

    save(vector_set(noise=0.05), demos)
    model = Model()
    with ChatServer(answer=model, latency=lambda _: 0.01) as server:
        new = ["--demos", str(demos), "--llm-url", server.url, "--out", str(folder)]
        for name, value in FLAGS.items():
            new += ["--set", f"{name}={value}"]
        new += ["--set", f"search.steady={str(steady).lower()}", "--set", "search.lag=4"]
        kill_when(folder, new, lambda store: len(store.told()) >= 8)
        final = subprocess.run(arguments(folder, new), capture_output=True, text=True, timeout=120, check=False)
        assert final.returncode == 0, final.stderr
    replay = [sys.executable, "-m", "grace_irl", "fit", "--replay", str(folder), "--out", str(tmp_path / "again")]
    again = subprocess.run(replay, capture_output=True, text=True, timeout=120, check=False)
    assert again.returncode == 0, again.stderr
    assert memory(tmp_path / "again") == memory(folder)


def arguments(folder: Path, new: list[str]) -> list[str]:
    rest = ["--resume", str(folder)] if folder.exists() else new
    return [sys.executable, "-m", "grace_irl", "fit", *rest]


def kill_when(folder: Path, new: list[str], reached: Callable[[Store], bool]) -> None:
    """Starts or resumes the run, and kills it once its store says so."""
    process = subprocess.Popen(arguments(folder, new), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None:
        if (folder / "run.db").exists():
            store = Store(folder / "run.db")
            try:
                if reached(store):
                    break
            finally:
                store.close()
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.returncode == -signal.SIGKILL


def test_no_call_asks_for_more_answers_than_the_run_may_have(tmp_path: Path) -> None:
    model = Model(troubles=False)
    with ChatServer(answer=model) as server:
        config = resolve(flags={**FLAGS, "model.url": server.url, "stop.max_calls": 4, "search.samples": 3})
        run = start(config, tmp_path / "run", Parts(vector_set(noise=0.05), sandbox=InProcessSandbox()))
        assert (run.calls, sorted(payload.get("n", 1) for payload in server.payloads)) == (4, [1, 3])  # both at once
        assert run.tokens == server.tokens_in + server.tokens_out
        parts = Parts(vector_set(noise=0.05), sandbox=InProcessSandbox())
        more = resume(run.folder, {"stop.max_calls": 6}, parts=parts)
        assert (more.calls, model.calls) == (6, 6)


def test_calls_that_wait_for_the_server_are_not_sent_beyond_a_cap(tmp_path: Path) -> None:
    """The first answer is late, so all others wait for it."""
    with ChatServer(answer=Model(troubles=False), latency=lambda count: 0.6 if count == 0 else 0.0) as server:
        flags = {"search.samples": 1, "model.concurrency": 2, "stop.max_tokens": 1, "stop.target_accuracy": None}
        run = run_with(server, tmp_path / "run", **flags)
        assert run.reason == f"max_tokens: {run.tokens} tokens"
        assert len(server.payloads) <= 3  # of six: the two at once, and one that took the place of the second
        assert run.tokens == server.tokens_in + server.tokens_out
    parts = Parts(vector_set(noise=0.05), sandbox=InProcessSandbox())
    again = start(recorded_config(run.folder), tmp_path / "again", parts)  # the cap has no part in a replay
    assert (again.calls, again.best.program) == (run.calls, run.best.program)


def test_all_answers_of_a_call_are_kept_at_once(tmp_path: Path) -> None:
    """One request in flight: the run ends after its first answer, and the call brought three."""

    def end(snapshot: Snapshot) -> None:
        if snapshot.told:
            raise KeyboardInterrupt

    with ChatServer(answer=Model(troubles=False)) as server:
        flags = {**FLAGS, "model.url": server.url, "search.lag": 1}
        data, sandbox = vector_set(noise=0.05), InProcessSandbox()
        with pytest.raises(Interrupted):
            start(resolve(flags=flags), tmp_path / "run", Parts(data, sandbox=sandbox, listener=end))
        with opened(tmp_path / "run") as (store, _):
            assert store.answered() == {0, 1, 2}
        run = resume(tmp_path / "run", {"stop.max_calls": 3}, parts=Parts(data, sandbox=sandbox))
        assert (run.calls, len(server.payloads)) == (3, 1)
        assert run.tokens == server.tokens_in + server.tokens_out


def test_follow_up_answers_without_a_program_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = "class Reward:\n    def reward_fn(self, state):\n        raise ValueError('no')\n"

    def answer(prompt: str) -> str:
        return "I cannot repair it." if "raise ValueError('no')" in prompt else f"```python\n{wrong}```"

    with ChatServer(answer=answer) as server:
        config = resolve(flags={**FLAGS, "model.url": server.url, "stop.max_calls": 2, "search.samples": 1})
        with pytest.raises(GraceError, match="no valid program"):
            start(config, tmp_path / "run", Parts(vector_set(noise=0.05), sandbox=InProcessSandbox()))
    assert main(["show", str(tmp_path / "run")]) == 0
    assert "besides, 2 follow-up answers, such as repairs, without a program" in capsys.readouterr().out


def test_a_limit_before_the_first_program_is_complete_is_not_a_limit_before_the_first_answer(tmp_path: Path) -> None:
    broken = SOURCE.format(index=0, threshold=0.5).replace("self.extra_info = extra_info", "self.extra_info = missing")
    with (
        ChatServer(answer=lambda _: f"A threshold.\n\n```python\n{broken}```\n") as server,
        pytest.raises(GraceError, match=r"first program needed more; the .* --max-tokens N") as told,
    ):
        run_with(server, tmp_path / "run", **{"stop.max_tokens": 1, "model.concurrency": 1})
    assert "no proposal" not in str(told.value)
