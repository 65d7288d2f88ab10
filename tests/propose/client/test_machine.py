"""Devices as nvidia-smi tells them, and those that CUDA_VISIBLE_DEVICES hides."""

from __future__ import annotations

import pytest

from grace_irl.propose.client.serve_command import Gpu, Machine, parsed, this_machine, visible

CARDS = tuple(Gpu(name, 10.0) for name in "abcd")


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("", ()),
        ("No devices were found\n", ()),
        ("NVIDIA H200, 143771, 9.0\n", (Gpu("NVIDIA H200", 143771 / 1024, 9.0),)),
        ("A, with a comma, 1024, 8.6\nB, 2048, 8.6\n", (Gpu("A, with a comma", 1.0, 8.6), Gpu("B", 2.0, 8.6))),
        ("NVIDIA GB10, [N/A], 12.1\n", ()),
    ],
)
def test_cards_in_nvidias_words(told: str, expected: tuple[Gpu, ...]) -> None:
    assert parsed(told) == expected


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (None, "abcd"),
        ("", ""),
        ("-1", ""),
        ("NoDevFiles", ""),
        ("2", "c"),
        ("3, 0", "da"),
        ("0,9,1", "a"),
        ("1,-1,2", "b"),
        ("GPU-8932f937,GPU-11111111", "ab"),
    ],
)
def test_hidden_cards(chosen: str | None, expected: str) -> None:
    assert "".join(gpu.name for gpu in visible(CARDS, chosen)) == expected


def test_this_machine() -> None:
    found = this_machine({"CUDA_VISIBLE_DEVICES": ""})
    assert found.gpus == ()
    assert 0.1 < found.gib < 100_000
    assert str(found).startswith("no GPU, ")
    assert str(Machine(CARDS, 1.0)) == "4 x a, 10 GiB each"
