"""Sizes of models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grace_irl.propose.client.serve_command import ModelWeights, weights

BILLION = 1e9 / 8 / 2**30  # for each bit of a parameter


@pytest.mark.parametrize(
    ("name", "billions", "bits"),
    [
        ("Qwen/Qwen2.5-Coder-7B-Instruct", 7, 16),
        ("Qwen/Qwen2.5-Coder-0.5B-Instruct", 0.5, 16),
        ("Qwen/Qwen2.5-Coder-32B-Instruct-AWQ", 32, 4),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", 30, 8),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8", 7, 8),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", 56, 16),
        ("org/some_model_w4a16_13b", None, 4),
        ("HuggingFaceTB/SmolLM2-360M-Instruct", 0.36, 16),
        ("unsloth/Llama-3.1-8B-bnb-4bit", 8, 4),
        ("Qwen/Qwen2.5-7B-Instruct-Q8_0-GGUF", 7, 8),
        ("org/Llama-3.1-8B-Q4_K_M-GGUF", 8, 4),
        ("org/Llama-3.1-8B-BF16-GGUF", 8, 16),
        ("deepseek-ai/DeepSeek-V3", None, 16),
        ("7b-org/model", None, 16),
    ],
)
def test_names(name: str, billions: float | None, bits: int) -> None:
    found = weights(name)
    assert found.gib == (None if billions is None else pytest.approx(billions * bits * BILLION))
    assert (found.quantised, found.context) == (bits < 16, None)


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
