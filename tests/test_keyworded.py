"""Error messages in the words of Python."""

import pytest

from grace_irl.errors import InputError
from grace_irl.keyworded import in_keywords, keyworded

KEYWORDS = {"negatives": (), "label": ("all", "last"), "validation": (), "resume": ()}

SAID = {
    "name a file with --negatives, or choose --label last": "name a file with negatives=, or choose label='last'",
    "--negatives: no effect": "negatives: no effect",
    "expected --negatives PATH…": "expected negatives=PATH…",
    "(--validation 0.2)": "(validation=0.2)",
    "with --negatives and more": "with negatives= and more",
    "go on: grace-irl fit --resume runs/a --label all": "go on: grace-irl fit --resume runs/a --label all",
    "--unknown stays, and so does a--negatives": "--unknown stays, and so does a--negatives",
}


@pytest.mark.parametrize("message", SAID)
def test_flags_become_keywords(message: str) -> None:
    assert keyworded(message, KEYWORDS) == SAID[message]


def test_an_error_keeps_its_type_and_its_place() -> None:
    @in_keywords(lambda: KEYWORDS)
    def fails() -> None:
        raise InputError("--label: no")

    with pytest.raises(InputError, match=r"^label: no$") as error:
        fails()
    assert error.traceback[-1].name == "fails"
