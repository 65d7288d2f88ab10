"""A whole fit against a real vLLM server with random weights: the protocol is real, the answers are noise."""

from __future__ import annotations

from pathlib import Path

import pytest

from grace_irl.runs.config import resolve
from grace_irl.runs.fit import Parts, start
from grace_irl.runs.run import opened
from tests.fakes.data import vector_set
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.propose.vllm import metric, vllm_url

__all__ = ["vllm_url"]


@pytest.mark.vllm
@pytest.mark.slow
@pytest.mark.parametrize("answer_format", ["code", "json"])
def test_a_fit_with_noise_for_answers(tmp_path: Path, vllm_url: str, answer_format: str) -> None:
    hits = metric(vllm_url, "vllm:prefix_cache_hits_total")
    config = resolve(
        flags={
            "model.url": vllm_url,
            "model.answer_format": answer_format,
            "model.answer_tokens": 64,
            "model.concurrency": 4,
            "model.patience": 20.0,
            "search.population": 6,
            "search.generations": 1,
            "search.samples": 3,
            "proposer.seed_synthesis": 3,
            "stop.target_accuracy": None,
        },
        sets=["stop.target_accuracy=none"],
    )
    run = start(config, tmp_path / "run", Parts(vector_set(noise=0.05), sandbox=InProcessSandbox()))
    with opened(run.folder) as (store, used):
        told = store.told()
        asked = {index: proposal for index, _, proposal in store.proposals() if proposal.tokens_out}
    assert used.model.name
    assert len(asked) >= 9
    # Noise holds no program: each answer is a named failure, cut by the limit or not; none is lost.
    kinds = {told[index].failure.partition(":")[0] for index in asked if told[index].failure}
    assert kinds <= {"length", "no_class", "unparsable", "empty"}
    assert kinds
    assert run.best.train.accuracy > 0.9
    assert run.tokens == sum(sum(store_tokens) for store_tokens in _tokens(run.folder)) > 0
    # Prompts of a run begin alike, and several samples share a prompt: the server's own counter sees it.
    assert metric(vllm_url, "vllm:prefix_cache_hits_total") > hits


def _tokens(folder: Path) -> list[tuple[int, int]]:
    with opened(folder) as (store, _):
        return [store.tokens(index) for index in store.told()]
