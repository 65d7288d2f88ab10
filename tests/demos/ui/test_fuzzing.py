"""A short run of `benchmarks/reader_fuzzing.py`, and what it takes for a failure."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

import grace_irl.demos
from grace_irl.demos import screens
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.errors import InputError
from tests.frame.tree import ROOT

pytest.importorskip("google.protobuf")
pytest.importorskip("yaml")

SCRIPT = ROOT / "benchmarks" / "reader_fuzzing.py"
ROW = re.compile(r"^(\w+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) ", re.MULTILINE)


@pytest.fixture
def fuzzing(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module."""
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    return __import__("reader_fuzzing")


def test_two_thousand_inputs_are_read_or_refused() -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, "--inputs", "2000"], capture_output=True, text=True, cwd=ROOT, timeout=300
    )
    assert done.returncode == 0, done.stderr
    rows = {name: [int(number) for number in numbers] for name, *numbers in ROW.findall(done.stdout)}
    assert set(rows) == {"xml", "json", "elements", "yaml", "tfrecord", "parquet"}
    for name, (inputs, read, refused, wrong, messages) in rows.items():
        assert read + refused == inputs, name
        assert wrong == 0, name
        assert read >= inputs / 10, name  # changes that leave nothing to read would test the first check only
        assert refused >= inputs / 10, name
        assert messages >= 4, name


def test_an_input_is_the_same_whenever_it_is_made(fuzzing: ModuleType, tmp_path: Path) -> None:
    for name, (make, _) in fuzzing.READERS.items():
        made = []
        for turn in range(2):
            folder = tmp_path / f"{name}{turn}"
            folder.mkdir()
            make(Random(f"0:{name}:7"), folder)
            made.append({path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()})
        if name not in ("json", "tfrecord"):  # gzip keeps the time
            assert made[0] == made[1]
        assert made[0].keys() == made[1].keys()


def returns(state: bytes) -> Callable[..., Demonstrations]:
    trajectory = Trajectory(screens.pack([state.decode()]))
    found = Demonstrations(Metadata("ui"), (Demonstration(trajectory, "negative"),))
    return lambda *_, **__: found


def raises(error: Exception) -> Callable[..., Demonstrations]:
    def load(*_: object, **__: object) -> Demonstrations:
        raise error

    return load


def warns(*_: object, **__: object) -> Demonstrations:
    warnings.warn("a reader is not sure", stacklevel=1)
    return returns(b"<hierarchy/>")()


FAULTS = {
    "another error": (raises(ValueError("a")), "a"),
    "a recursion without end": (raises(RecursionError("deep")), "deep"),
    "a long message": (raises(InputError("expected " + "a" * 2000)), "not one printable line"),
    "a message that says little": (raises(InputError("bad file")), "neither what was expected"),
    "a warning": (warns, "not sure"),
    "another spelling": (returns(b"<hierarchy></hierarchy>"), "one spelling"),
    "no screen": (returns(b"<html/>"), "root <html>"),
}


@pytest.mark.parametrize(("load", "words"), FAULTS.values(), ids=FAULTS)
def test_what_it_takes_for_a_failure(
    load: Callable[..., Demonstrations], words: str, fuzzing: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grace_irl.demos, "load", load)
    with pytest.raises(Exception, match=words):
        fuzzing.outcome(Path("a.xml"))


def test_what_it_takes_for_none(fuzzing: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grace_irl.demos, "load", returns(b'<hierarchy rotation="0"/>'))
    assert fuzzing.outcome(Path("a.xml")) == ("read", "")
    monkeypatch.setattr(grace_irl.demos, "load", raises(InputError("a.xml: empty; expected XML")))
    assert fuzzing.outcome(Path("a.xml")) == ("refused", "expected XML")


def test_a_process_that_dies_is_told_with_its_input_and_the_rest_is_run(
    fuzzing: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A stand-in for the script dies at input 3, as a reader in C may."""
    script = tmp_path / "dies.py"
    script.write_text(
        "import json, os, sys\n"
        "name, start, stop, at, found = json.loads(sys.argv[-1])\n"
        "for number in range(start, stop):\n"
        "    open(at, 'w').write(str(number))\n"
        "    if number == 3: os.abort()\n"
        "json.dump({'counts': {'read': stop - start}, 'failures': []}, open(found, 'w'))\n"
    )
    monkeypatch.setattr(fuzzing, "__file__", str(script))
    name, counts, failures = fuzzing.run(0, "xml", 0, 10)
    assert (name, counts["read"], counts["wrong"]) == ("xml", 9, 1)
    (failure,) = failures
    assert failure.startswith("xml:3: exit code -6")
    assert "--only xml:3" in failure


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a.xml: 日 – é", "a.xml: 日 – é"),
        ("two\nlines", "two lines"),
        ("\x1b[2J\0\r", "\\x1b[2J\\x00\\r"),
        ("\ud800\u202e\u2028", "\\ud800\\u202e\\u2028"),
    ],
)
def test_a_message_is_one_line_that_a_terminal_can_print(text: str, line: str) -> None:
    assert str(InputError(text)) == line
    assert line.isprintable()
