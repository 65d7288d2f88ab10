"""Flags by machine and model."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from grace_irl.propose.client.serve_command import Gpu, Machine, ModelWeights, ServeCommand, serve_command

CPU = Machine((), 24.0)


def cards(count: int, gib: float, capability: float = 9.0) -> Machine:
    return Machine((Gpu("card", gib, capability),) * count, 256.0)


def flags(command: ServeCommand) -> dict[str, str]:
    """Each flag with what follows it."""
    words = command.arguments
    return {
        word: words[place + 1] if place + 1 < len(words) else "" for place, word in enumerate(words) if word[0] == "-"
    }


@pytest.mark.parametrize(
    ("machine", "size", "expected", "absent"),
    [
        # 7B in 16 bits on a large card: nothing special, and the model's own context where it is known to be shorter
        (
            cards(1, 80),
            ModelWeights(14, False, 131072),
            {"--max-model-len": "32768"},
            ["--quantization", "--tensor-parallel-size"],
        ),
        (cards(1, 80), ModelWeights(14, False, 4096), {"--max-model-len": "4096"}, []),
        (cards(1, 80), ModelWeights(14, False, None), {"--max-model-len": "auto"}, []),
        # 7B on 16 GiB: 8 bits, where the card can
        (cards(1, 16), ModelWeights(14, False, 32768), {"--quantization": "fp8", "--max-model-len": "16384"}, []),
        (cards(1, 16, 7.0), ModelWeights(14, False, 32768), {"--max-model-len": "8192"}, ["--quantization"]),
        (cards(1, 16), ModelWeights(14, True, 32768), {}, ["--quantization"]),
        # 70B on eight cards of 80: four of them
        (cards(8, 80), ModelWeights(140, False, 32768), {"--tensor-parallel-size": "4"}, ["--quantization"]),
        (cards(3, 80), ModelWeights(140, False, 32768), {"--tensor-parallel-size": "2", "--quantization": "fp8"}, []),
        (cards(1, 80), ModelWeights(None, False, None), {"--max-model-len": "auto"}, ["--quantization"]),
        # without a card
        (CPU, ModelWeights(3.0, False, 32768), {"--max-model-len": "16384", "--dtype": "bfloat16"}, ["--quantization"]),
        (CPU, ModelWeights(3.0, False, 8192), {"--max-model-len": "8192"}, ["--gpu-memory-utilization"]),
    ],
)
def test_flags(machine: Machine, size: ModelWeights, expected: dict[str, str], absent: list[str]) -> None:
    found = flags(serve_command("m", machine, size))
    assert expected.items() <= found.items()
    assert not [flag for flag in absent if flag in found]
    assert "--enable-prefix-caching" in found
    assert json.loads(found["--structured-outputs-config"]) == {"backend": "xgrammar", "disable_any_whitespace": True}


@pytest.mark.parametrize(
    ("machine", "size", "words"),
    [
        (cards(1, 80), ModelWeights(200, True, None), "will do better"),
        (cards(1, 80), ModelWeights(None, False, None), "the model's size is unknown"),
        (cards(1, 16), ModelWeights(14, False, None), "kept in 8 bits"),
        (CPU, ModelWeights(3, False, None), "no GPU found"),
        (CPU, ModelWeights(60, False, None), "a smaller model"),
    ],
)
def test_what_a_person_is_told(machine: Machine, size: ModelWeights, words: str) -> None:
    assert words in " ".join(serve_command("m", machine, size).notes)


@pytest.mark.parametrize(
    ("gib", "needed", "cache"), [(24.0, 3.0, "5"), (4.0, 3.0, "1"), (512.0, 3.0, "16"), (2.0, 9.0, "1")]
)
def test_the_cache_on_a_cpu(gib: float, needed: float, cache: str) -> None:
    command = serve_command("m", Machine((), gib), ModelWeights(needed, False, None))
    assert command.environment["VLLM_CPU_KVCACHE_SPACE"] == cache


def test_what_the_user_says_goes_first() -> None:
    command = serve_command(
        "m", cards(1, 16), ModelWeights(14, False, None), max_model_len=1234, quantization="awq", extra=["--seed", "3"]
    )
    found = flags(command)
    assert (found["--max-model-len"], found["--quantization"]) == ("1234", "awq")
    assert command.arguments[-2:] == ("--seed", "3")


def test_a_folder_is_served_under_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "my model"
    folder.mkdir()
    command = serve_command(str(folder), CPU, ModelWeights(None, False, None))
    assert (command.model, flags(command)["--served-model-name"]) == ("my model", "my model")
    assert command.arguments[2] == str(folder)
    assert shlex.split(str(command))[-len(command.arguments) :] == list(command.arguments)
    assert command.fit == "grace-irl fit --demos DEMOS --llm-url http://127.0.0.1:8000 --model 'my model'"


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:81"),
        ("0.0.0.0", "http://127.0.0.1:81"),
        ("::", "http://[::1]:81"),
        ("h", "http://h:81"),
    ],
)
def test_where_it_is_reached(host: str, url: str) -> None:
    more: dict[str, Any] = {"host": host, "port": 81}
    command = serve_command("m", CPU, ModelWeights(None, False, None), **more)
    assert command.url == url
    assert (flags(command)["--host"], flags(command)["--port"]) == (host, "81")
