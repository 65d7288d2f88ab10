"""A short run of `benchmarks/reader_fuzzing.py` over all readers, and what it takes for a failure."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import grace_irl.demos
import grace_irl.demos.goals
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.errors import InputError
from grace_irl.states import screen
from tests.frame.tree import ROOT

pytest.importorskip("google.protobuf")
pytest.importorskip("yaml")
pytest.importorskip("minari")
pytest.importorskip("torch")

SCRIPT = ROOT / "benchmarks" / "reader_fuzzing.py"
ROW = re.compile(r"^([a-z0-9-]+) +(\d+) +(\d+) % +(\d+) +(\d+) +(\d+) +(\d+) ", re.MULTILINE)
UNTIMED = ("json", "tfrecord")  # gzip keeps the time
LENT = ("minari-hdf5", "minari-arrow", "folder", "database", "policy", "checkpoint", "stable-baselines", "npz")


@pytest.fixture
def fuzzing(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module."""
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    return __import__("reader_fuzzing")


@pytest.mark.slow
def test_three_thousand_inputs_are_read_or_refused(tmp_path: Path, fuzzing: ModuleType) -> None:
    command = [sys.executable, SCRIPT, "--inputs", "3000", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr
    rows = {name: [int(number) for number in numbers] for name, *numbers in ROW.findall(done.stdout)}
    assert set(rows) == set(fuzzing.READERS)
    assert sum(near * inputs for inputs, near, *_ in rows.values()) / sum(row[0] for row in rows.values()) > 100 / 3
    for name, (inputs, _, read, refused, wrong, messages) in rows.items():
        assert (read + refused, wrong) == (inputs, 0), name
        assert read, name  # changes that leave nothing to read would test the first check only
        assert refused, name
        assert messages >= 2, name
    assert "lines that no input reached:\n" in done.stdout


def test_a_run_that_was_interrupted_goes_on(tmp_path: Path, fuzzing: ModuleType) -> None:
    command = [sys.executable, SCRIPT, "--inputs", "60", "--readers", "goals", "recipe", "--out", tmp_path]
    first = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
    (kept,) = tmp_path.glob("*.jsonl")
    kept.write_text(kept.read_text() + '{"parts": [["goals", 0')  # a process that was killed while it wrote
    again = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert first.returncode == again.returncode == 0, again.stderr
    assert again.stdout.startswith("1 batches were done before, 0 are left\n")
    assert ROW.findall(again.stdout) == ROW.findall(first.stdout)


def test_an_input_is_the_same_whenever_it_is_made(fuzzing: ModuleType, tmp_path: Path) -> None:
    for name, reader in fuzzing.READERS.items():
        made = []
        for turn in range(2):
            folder = tmp_path / f"{name}{turn}"
            folder.mkdir()
            reader.make(fuzzing.Draw(f"0:{name}:7"), folder)
            made.append({path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()})
        if name not in UNTIMED and name not in LENT:
            assert made[0] == made[1], name
        assert made[0].keys() == made[1].keys()


UNCHANGED = ("npz", "parquet", "minari-hdf5", "recipe", "config", "recording", "round", "reward")
FOREIGN = ("table", "arrays", "imitation", "lerobot", "rlds")


@pytest.mark.parametrize("name", [*UNCHANGED, *FOREIGN])
def test_what_is_not_changed_is_read(name: str, fuzzing: ModuleType, tmp_path: Path) -> None:
    class Unchanged(fuzzing.Draw):  # type: ignore[name-defined,misc]
        def rounds(self) -> range:
            return range(0)

        def random(self) -> float:
            return 0.99

    assert fuzzing.outcome(fuzzing.READERS[name], fuzzing.READERS[name].make(Unchanged(1), tmp_path)) == ("read", "")


def test_changes_are_counted_once(fuzzing: ModuleType) -> None:
    mutations = __import__("fuzzing.mutations", fromlist=["in_value"])
    rng = fuzzing.Draw(3)
    mutations.in_value(rng, {"a": [{"b": [1, 2, {"c": 3}]}]})
    assert rng.changes == 1
    assert not any(rng.changed(0.0) for _ in range(9))
    assert rng.changed()
    assert rng.changes == 2


def returns(state: bytes) -> Callable[..., Demonstrations]:
    trajectory = Trajectory(screen.pack([state.decode()]))
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
        fuzzing.outcome(fuzzing.READERS["xml"], Path("a.xml"))


def test_what_it_takes_for_none(fuzzing: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grace_irl.demos, "load", returns(b'<hierarchy rotation="0"/>'))
    assert fuzzing.outcome(fuzzing.READERS["xml"], Path("a.xml")) == ("read", "")
    monkeypatch.setattr(grace_irl.demos, "load", raises(InputError("a.xml: empty; expected XML")))
    assert fuzzing.outcome(fuzzing.READERS["xml"], Path("a.xml")) == ("refused", "expected XML")


@pytest.mark.parametrize(("kept", "lost"), [(None, 0), (2, 2), (3, 3)])
def test_a_process_that_dies_is_told_with_its_input_and_the_rest_is_run(
    kept: int | None, lost: int, fuzzing: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A stand-in for the script dies at input 3, as a reader in C may, with or without what it kept before."""
    script = tmp_path / "dies.py"
    script.write_text(
        "import json, os, sys\n"
        "parts, at, found = json.loads(sys.argv[-1])\n"
        "done = 0\n"
        "def keep(after): json.dump({'counts': {'xml': {'read': done}}, 'failures': [], 'left': {}, 'next': after},"
        " open(found, 'w'))\n"
        "for name, start, stop in parts:\n"
        "    for number in range(start, stop):\n"
        "        open(at, 'w').write(json.dumps([name, number]))\n"
        f"        if number == {kept}: keep([name, number])\n"
        "        if number == 3: os.abort()\n"
        "        done += 1\n"
        "keep(None)\n"
    )
    monkeypatch.setattr(fuzzing, "__file__", str(script))
    about = fuzzing.run(0, [["xml", 0, 10]])
    assert about["counts"]["xml"] == {"read": 9, "wrong": 1}
    (failure,) = about["failures"]
    assert failure.startswith("xml:3: exit code -6")
    assert "--only xml:3" in failure


def test_lines_that_no_input_reached(fuzzing: ModuleType, tmp_path: Path) -> None:
    lines = __import__("fuzzing.lines", fromlist=["Tracer"])
    named = lines.functions({"grace_irl.demos.goals": ("save_goals",)})
    (file,) = named
    assert "save_goals" not in named[file]
    (tmp_path / "a.toml").write_text("a = 1\n")
    tracer = lines.Tracer(named)
    with tracer, pytest.raises(InputError):
        grace_irl.demos.goals.load_goals(tmp_path / "a.toml")
    told = list(lines.told(tracer.left(), named))
    assert f"{file}: goal_rows: all" in told
    (partly,) = (line for line in told if f"{file}: load_goals" in line)
    assert re.search(r"load_goals: \d+", partly)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a.xml: 日 – é", "a.xml: 日 – é"),
        ("two\nlines", "two lines"),
        ("\x1b[2J\0\r", "\\x1b[2J\\x00 "),
        ("\ud800\u202e\u2028", "\\ud800\\u202e\\u2028"),
    ],
)
def test_a_message_is_one_line_that_a_terminal_can_print(text: str, line: str) -> None:
    assert str(InputError(text)) == line
    assert line.isprintable()
