"""Sizes of models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grace_irl.propose.client.serve_command import ModelWeights, weights

BILLION = 1e9 * 2 / 2**30  # in 16 bits


@pytest.mark.parametrize(
    ("name", "billions", "quantised"),
    [
        ("Qwen/Qwen2.5-Coder-7B-Instruct", 7, False),
        ("Qwen/Qwen2.5-Coder-0.5B-Instruct", 0.5, False),
        ("Qwen/Qwen2.5-Coder-32B-Instruct-AWQ", 32, True),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", 30, True),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", 56, False),
        ("org/some_model_w4a16_13b", None, True),
        ("HuggingFaceTB/SmolLM2-360M-Instruct", 0.36, False),
        ("unsloth/Llama-3.1-8B-bnb-4bit", 8, True),
        ("deepseek-ai/DeepSeek-V3", None, False),
        ("7b-org/model", None, False),
    ],
)
def test_names(name: str, billions: float | None, quantised: bool) -> None:
    found = weights(name)
    assert found.gib == (None if billions is None else pytest.approx(billions * BILLION))
    assert (found.quantised, found.context) == (quantised, None)


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"max_position_embeddings": 4096}))
    for place in range(2):
        (tmp_path / f"model-{place}.safetensors").write_bytes(b"\0" * 2**20)
    assert weights(str(tmp_path)) == ModelWeights(2 / 1024, False, 4096)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ('{"quantization_config": {"bits": 4}}', ModelWeights(None, True, None)),
        ('{"text_config": {"max_position_embeddings": 99}}', ModelWeights(None, False, 99)),
        ("[]", ModelWeights(None, False, None)),
        ("{", ModelWeights(None, False, None)),
    ],
)
def test_folders_that_say_little(config: str, expected: ModelWeights, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(config)
    assert weights(str(tmp_path)) == expected
