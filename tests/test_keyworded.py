"""Error messages in the words of Python."""

import pytest

import grace_irl
from grace_irl.errors import InputError
from grace_irl.keyworded import in_keywords, keyworded

NAMES = ("sample", "sets", "negatives", "validation", "resume", "repair", "repairs")
KEYWORDS = {**dict.fromkeys(NAMES, ()), "label": ("all", "last")}

SAID = {
    "name a file with --negatives, or choose --label last": "name a file with negatives=, or choose label='last'",
    "--negatives: no effect": "negatives: no effect",
    "expected --negatives PATH…": "expected negatives=PATH…",
    "(--validation 0.2)": "(validation=0.2)",
    "with --negatives and more": "with negatives= and more",
    "go on: grace-irl fit --resume runs/a --label all": "go on: grace-irl fit --resume runs/a --label all",
    "--sample 1M with --sample 2.5G": "sample=1M with sample=2.5G",
    "--set 'a': no '='": "sets='a': no '='",
    "--repair: no effect": "repair: no effect",
    "--no-repair: no effect": "repair=False: no effect",
    "give --no-repair with it": "give repair=False with it",
    "--resume run.jsonl: no such file": "resume=run.jsonl: no such file",
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


def test_settings_of_all_methods_are_keywords() -> None:
    with pytest.raises(InputError, match=r"^task=absent\.toml: no such file"):
        grace_irl.fit(method="eureka", task="absent.toml")


def test_a_function_adds_its_own_arguments() -> None:
    @in_keywords(lambda: KEYWORDS)
    def fails(workers: int) -> None:
        raise InputError(f"--workers {workers} --out")

    with pytest.raises(InputError, match=r"^workers=0 --out$"):
        fails(workers=0)
