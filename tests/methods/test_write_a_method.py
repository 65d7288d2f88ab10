"""The page on methods quotes the example as it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "write-a-method.md").read_text(encoding="utf-8")
PIECES = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
SOURCES = {
    "python": [HERE / "toy" / "grace_irl_toy.py", HERE / "test_toy.py"],
    "toml": [HERE / "toy" / "pyproject.toml"],
}


def test_it_quotes_something() -> None:
    assert len(PIECES) > 10


@pytest.mark.parametrize(("language", "piece"), PIECES, ids=[piece.split("\n")[0].strip() for _, piece in PIECES])
def test_a_piece_is_in_the_example(language: str, piece: str) -> None:
    assert any(piece in path.read_text(encoding="utf-8") for path in SOURCES[language])


def test_it_names_every_part_of_the_object() -> None:
    (whole,) = [piece for _, piece in PIECES if piece.startswith("METHOD = ")]
    for name in re.findall(r"^    (\w+)=", whole, re.MULTILINE):
        assert re.search(rf"\b{name}\b", PAGE.replace(whole, "")), f"{name} is not explained"
