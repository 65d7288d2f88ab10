"""Runs whose model's server fails, runs out of credit, stays away, or has too small a context."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from grace_irl.errors import GraceError, InputError
from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.fit import resume, start
from grace_irl.runs.run import opened
from tests.fakes.data import vector_set
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.propose.client import server as behaviours
from tests.propose.client.server import ChatServer
from tests.runs.test_model_runs import FLAGS, Model, run_with


def test_faults_lose_no_program(tmp_path: Path) -> None:
    calm, model = Model(troubles=False), Model(troubles=False)
    faults = [
        behaviours.BUSY,
        behaviours.BROKEN,
        behaviours.RESET_MIDWAY,
        behaviours.MALFORMED,
        behaviours.EMPTY,
        replace(behaviours.OK, choices=1),
        behaviours.CLOSED_MIDWAY,
        behaviours.NO_CHOICE,
    ]
    with ChatServer(answer=calm) as server:
        whole = run_with(server, tmp_path / "calm")
    with ChatServer(answer=model, script=faults) as server:
        run = run_with(server, tmp_path / "run", **{"model.concurrency": 2})
        served = len(server.served)
    assert run.calls == whole.calls == 18
    with opened(run.folder) as (store, _):
        told = store.told()
        raws = [proposal.raw for _, _, proposal in store.proposals()]
    assert [t.failure for t in told.values() if t.failure] == []
    assert len(raws) == 18
    assert set(raws) <= set(server.served)
    assert served >= 18


def test_answers_that_came_before_an_ending_error_are_kept(tmp_path: Path) -> None:
    """The account runs dry in the middle of a call: what is paid for is not asked for again."""
    flags = {"search.generations": 0, "model.concurrency": 2}
    with ChatServer(answer=Model(troubles=False)) as server:
        server.rule = lambda sent: (
            behaviours.Behaviour(choices=1)
            if len(server.payloads) <= 3
            else behaviours.error(402, "Insufficient credits")
        )
        with pytest.raises(GraceError, match="no credit left"):
            run_with(server, tmp_path / "run", **flags)
        with opened(tmp_path / "run") as (store, _):
            assert sorted(proposal.raw for _, _, proposal in store.proposals()) == sorted(server.served)
        assert len(server.served) == 3
        server.rule = lambda sent: None
        run = resume(tmp_path / "run", parts=Parts(vector_set(noise=0.05), sandbox=InProcessSandbox()))
        assert run.calls == 6
        assert len(server.served) == 6


def test_a_context_that_is_too_small_shrinks_prompts(tmp_path: Path) -> None:
    """The server counts twice the tokens that we do, and takes 3,600 with the answer: it says so, as vLLM does."""

    def rule(payload: dict[str, object]) -> behaviours.Behaviour | None:
        text = "".join(str(m["content"]) for m in payload["messages"])  # type: ignore[attr-defined]
        tokens = len(text) // 2
        if tokens + 600 <= 3600:
            return None
        return behaviours.error(
            400,
            f"This model's maximum context length is 3600 tokens. However, your request has {tokens} input tokens. "
            "Please reduce the length of the input messages.",
        )

    model = Model(troubles=False)
    with ChatServer(answer=model, rule=rule) as server:
        run = run_with(server, tmp_path / "run", **{"model.answer_tokens": 600})
    assert run.calls == 18
    with opened(run.folder) as (store, _):
        assert not [t.failure for t in store.told().values() if t.failure]
        assert any("later prompts are shorter" in detail for _, kind, detail in store.events() if kind == "note")


def test_a_context_that_holds_nothing_is_said_clearly(tmp_path: Path) -> None:
    with (
        ChatServer(answer=Model(), models=[{"id": "model", "max_model_len": 900}]) as server,
        pytest.raises(InputError, match="expected at most"),
    ):
        run_with(server, tmp_path / "run", **{"model.answer_tokens": 600})


def test_a_run_whose_later_prompts_do_not_fit_goes_on_with_longer_ones(tmp_path: Path) -> None:
    parts = Parts(vector_set(noise=0.05), sandbox=InProcessSandbox())
    with ChatServer(answer=Model(troubles=False)) as server:
        with pytest.raises(InputError, match=r"\(initialise\) needs about \d+ tokens") as refused:
            run_with(server, tmp_path / "none", **{"model.prompt_tokens": 500})
        enough = int(re.findall(r"about (\d+)", str(refused.value))[0])
        with pytest.raises(InputError, match=rf"at most {enough}: allow more \(--prompt-tokens\)"):
            run_with(server, tmp_path / "run", **{"model.prompt_tokens": enough})
        asked = len(server.payloads)
        run = resume(tmp_path / "run", flags={"model.prompt_tokens": 24_000}, parts=parts)
    assert asked == 2  # the whole first population
    assert run.calls == 18
    with opened(run.folder) as (store, config):
        assert not [t.failure for t in store.told().values() if t.failure]
        assert config.model.prompt_tokens == 24_000


def test_a_server_that_stays_away_ends_the_run_and_it_goes_on_later(tmp_path: Path) -> None:
    parts = Parts(vector_set(noise=0.05), sandbox=InProcessSandbox())
    model, notes = Model(troubles=False), []
    with ChatServer(answer=model) as server:
        gone = threading.Event()

        def listener(snapshot: object) -> None:
            if not gone.is_set() and snapshot.progress.calls == 7:  # type: ignore[attr-defined]
                server.stop()
                gone.set()

        flags = {"model.url": server.url, "model.patience": 0.5, "model.timeout": 20.0}
        config = resolve(flags={**FLAGS, **flags, "search.lag": 3})
        watched = replace(parts, listener=listener, note=notes.append)
        with pytest.raises(GraceError, match="--resume") as caught:
            start(config, tmp_path / "run", watched)
        assert caught.value.exit_code == 1
        assert notes
        server.start()
        run = resume(tmp_path / "run", parts=parts)
    assert run.calls == 18
    with opened(run.folder) as (store, _):
        assert not [t.failure for t in store.told().values() if t.failure]
