"""Programs that hide something from their reader: refused wherever a program comes from, in one line that says what."""

from __future__ import annotations

import ast
import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import grace_irl
from grace_irl import load_reward
from grace_irl.cli import main
from grace_irl.demos import save
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.errors import InputError
from grace_irl.programs.check import read
from grace_irl.programs.parsing import canonical, seen, unseen
from grace_irl.propose.protocol import Parent, Proposal, Step
from grace_irl.runs.folder import RunPaths
from grace_irl.runs.store import Store
from grace_irl.search.protocol import Request
from grace_irl.states.texts import pack
from grace_irl.text import shows
from tests.demos.conftest import screen
from tests.fakes.data import vector_set

REWARD = "class Reward:\n    def reward_fn(self, state):\n        return float(state[1])\n"
TROJAN = (
    "class Reward:\n    def reward_fn(self, state):\n"
    "        # Check the side \u202e } \u2066if state[0] > 0\u2069 \u2066 begin\n        return float(state[1])\n"
)
SIGNS = {
    "\x1b": "a control character",
    "\x0c": "a control character",
    "\x7f": "a control character",
    "\x9b": "a control character",
    "\u061c": "ARABIC LETTER MARK",
    "\u200d": "ZERO WIDTH JOINER",
    "\u200f": "RIGHT-TO-LEFT MARK",
    "\u202e": "RIGHT-TO-LEFT OVERRIDE",
    "\u2066": "LEFT-TO-RIGHT ISOLATE",
    "\u2029": "PARAGRAPH SEPARATOR",
    "\u2060": "WORD JOINER",
    "\ufeff": "ZERO WIDTH NO-BREAK SPACE",
    "\u00ad": "SOFT HYPHEN",
    "\u3164": "HANGUL FILLER",
    "\ue000": "private use",
    "\U000e0041": "TAG LATIN CAPITAL LETTER A",
    "\u0378": "Unicode does not know",
}
Capture = pytest.CaptureFixture[str]


class Sources:
    """A proposer of given sources."""

    def __init__(self, *sources: str) -> None:
        self.sources = sources
        self.failed: list[Parent] = []

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        return Proposal(self.sources[request.index % len(self.sources)])


class Answers(Sources):
    """One that answers what fails with a program that does not."""

    async def follow(
        self, step: Step, request: Request, parents: Sequence[Parent], failed: Parent, attempt: int
    ) -> Proposal | None:
        self.failed.append(failed)
        return Proposal(REWARD)


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sources") / "set.parquet"
    save(vector_set(8, 8, 10), path)
    return path


def one_line(capsys: Capture) -> str:
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said[:-1].isprintable()
    return said


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("line", ["# {}", "NOTE = '{}'", "NOTE = '''\n{}'''", "'''{}'''"])
def test_a_reward_file_that_hides_something_is_refused(
    sign: str, line: str, demos: Path, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "reward.py"
    path.write_bytes((REWARD + line.format(f"a{sign}b") + "\n").encode())
    assert main(["score", str(path), "--demos", str(demos)]) == 2
    said = one_line(capsys)
    column = line.split("\n")[-1].index("{") + 2
    assert f"line {5 if chr(10) in line else 4}: U+{ord(sign):04X}" in said
    assert SIGNS[sign] in said
    assert f'in column {column}: a reader does not see it; leave it out, or write "{ascii(sign)[1:-1]}"' in said
    for trust in (False, True):
        with pytest.raises(InputError, match="a reader does not see it"):
            load_reward(path, trust=trust)


@pytest.mark.parametrize("name", ["a\ufe0f", "a\u034f", "\u3164", "a\U000e0100", "a1\ufe00"])
def test_names_that_look_equal_are_refused(name: str) -> None:
    assert name.isidentifier()
    (found,) = read(f"{REWARD}{name} = 1\n").problems
    assert found.kind == "syntax"
    assert found.line == 4


@pytest.mark.parametrize(
    "line",
    [
        "# Größe 5 µm · 日本語 · العربية · עברית",
        "NOTE = '⚠️ ❤️ 🙂'",
        "σ = α = 1.0",
        "NOTE = 'a\u00a0b\u202fc\u3000d'",
        "\tx = 1",
    ],
)
def test_what_a_reader_sees_passes(line: str) -> None:
    assert read(f"{REWARD}{'if True:' + chr(10) if line[0] == chr(9) else ''}{line}\n").problems == ()


def test_each_is_named_once_on_a_line_and_the_first_of_many() -> None:
    found = read("# \u200b\u200b\u200c\n# \u200b\n" + "# \u200d\n" * 100).problems
    assert [problem.line for problem in found[:4]] == [1, 1, 2, 3]
    assert len(found) == 20


def test_a_program_that_hides_something_is_sent_back_with_what_it_is(demos: Path, tmp_path: Path) -> None:
    proposer = Answers(TROJAN)
    run = grace_irl.fit([demos], out=tmp_path / "run", proposer=proposer, max_calls=1, workers=1)
    assert run.best.source == REWARD
    (failed,) = proposer.failed
    assert failed.evaluation.status == "rejected"
    assert "line 3: U+202E, RIGHT-TO-LEFT OVERRIDE, in column 26: a reader" in failed.evaluation.message
    assert 'write "\\u202e" in a string' in failed.evaluation.message
    assert "\u202e" not in run.reward_path.read_text()


def test_a_version_without_the_characters_is_another_program(demos: Path, tmp_path: Path) -> None:
    """Comments do not count for identity, but what is refused must not stand for what is not."""
    proposer = Sources(TROJAN, TROJAN.replace("\u202e", "").replace("\u2066", "").replace("\u2069", ""))
    run = grace_irl.fit([demos], out=tmp_path / "run", proposer=proposer, max_calls=2, workers=1)
    assert run.programs == 2
    assert run.best.evaluation.valid


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_byte_order_marks_do_not_make_another_program(
    end: str, mark: str, demos: Path, tmp_path: Path
) -> None:
    source = REWARD + "\n\nNOTE = '''two\nlines'''\n"
    proposer = Answers(mark + source.replace("\n", end), source)
    run = grace_irl.fit([demos], out=tmp_path / "run", proposer=proposer, max_calls=2, workers=1)
    assert run.programs == 1
    assert run.best.source == source
    assert b"\r" not in run.reward_path.read_bytes()
    path = tmp_path / "reward.py"
    path.write_bytes((mark + source.replace("\n", end)).encode())
    assert load_reward(path).source == source
    assert main(["score", str(path), "--demos", str(demos), "--json"]) == 0
    assert (
        main(
            ["fit", "--start-from", str(path), "--demos", str(demos), "--out", str(tmp_path / "2"), "--max-calls", "1"]
        )
        == 0
    )
    assert b"\r" not in RunPaths(tmp_path / "2").reward.read_bytes()


def test_programs_of_old_runs_are_shown_in_lines_and_exported_with_lf(
    demos: Path, tmp_path: Path, capsys: Capture
) -> None:
    run = grace_irl.fit([demos], out=tmp_path / "run", proposer=Sources(REWARD), max_calls=1, workers=1)
    with closing(sqlite3.connect(RunPaths(run.folder).database)) as database:
        database.execute("UPDATE programs SET source = ?", (REWARD.replace("\n", "\r\n"),))
        database.commit()
    capsys.readouterr()
    assert main(["show", str(run.folder), "--program", run.best.program.id]) == 0
    shown = capsys.readouterr().out
    assert REWARD in shown
    assert "\\r" not in shown
    assert main(["export", str(run.folder), "--out", str(tmp_path / "reward.py")]) == 0
    assert b"\r" not in (tmp_path / "reward.py").read_bytes()


def test_a_file_to_begin_with_is_refused(demos: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "reward.py").write_text(TROJAN)
    out = tmp_path / "run"
    arguments = ["fit", "--demos", str(demos), "--start-from", str(tmp_path / "reward.py"), "--out", str(out)]
    assert main(arguments) == 2
    assert "RIGHT-TO-LEFT OVERRIDE" in one_line(capsys)
    assert not out.exists()


def test_what_a_recording_answers_is_refused(demos: Path, tmp_path: Path, capsys: Capture) -> None:
    run = tmp_path / "run"
    grace_irl.fit([demos], out=run, proposer=Answers(REWARD), max_calls=1, workers=1)
    assert main(["export", str(run), "--recording", str(tmp_path / "recording.jsonl")]) == 0
    header, answer = (tmp_path / "recording.jsonl").read_text().splitlines()
    (tmp_path / "recording.jsonl").write_text(f"{header}\n{json.dumps(json.loads(answer) | {'source': TROJAN})}\n")
    again = ["fit", "--replay", str(tmp_path / "recording.jsonl"), "--demos", str(demos), "--out", str(tmp_path / "2")]
    assert main(again) == 1
    assert "no valid program" in capsys.readouterr().err
    store = Store(RunPaths(tmp_path / "2").database)
    (record,) = store.records().values()
    store.close()
    assert "RIGHT-TO-LEFT OVERRIDE" in record.evaluation.message
    assert not RunPaths(tmp_path / "2").reward.exists()


def shown(text: str) -> str:
    return f"{text} saved"


TEXTS = ["\u200fنجاح", "👩\u200d💻", "\u202egnitset", "\u2066x\u2069", "❤️\u200b", "\u3164", "a\u00adb", "می\u200cخواهم"]


@pytest.mark.parametrize("text", TEXTS)
def test_a_synthesised_reward_spells_out_what_a_screen_hides(text: str, tmp_path: Path) -> None:
    """The text alone tells experts from the others: it has to be in the program, and it has to be right."""
    items: list[Demonstration] = []
    seen = "".join(sign for sign in text if shows(sign))  # what the others show looks the same
    for number in range(12):
        role: Any = "expert" if number % 2 else "negative"
        last = shown(text) if role == "expert" else shown(seen)
        states = [screen("Start", f"tab {number % 3}"), screen("Start", last, f"tab {number % 3}")]
        trajectory = Trajectory(pack(states), extra_info=f"do {text}", source=f"{text}/{number}")
        items.append(Demonstration(trajectory, role, f"task {text}"))
    save(Demonstrations(Metadata("ui", view="uiautomator", label="last"), tuple(items)), tmp_path / "set.parquet")
    arguments = ["--demos", str(tmp_path / "set.parquet"), "--out", str(tmp_path / "run"), "--held-out", "0"]
    assert main(["fit", *arguments, "--workers", "1", "--generations", "1", "--json"]) == 0
    source = RunPaths(tmp_path / "run").reward.read_text(encoding="utf-8")
    assert read(source).problems == ()
    assert all(sign.isprintable() or sign == "\n" for sign in source)
    literals = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    assert any(isinstance(value, str) and not value.isprintable() for value in literals) or text.isprintable()
    store = Store(RunPaths(tmp_path / "run").database)
    assert all("a reader does not see" not in each.evaluation.message for each in store.records().values())
    store.close()
    found = load_reward(RunPaths(tmp_path / "run").reward).rewards([item.trajectory for item in items], workers=1)
    experts = [values[-1] for values, item in zip(found, items, strict=True) if item.role == "expert"]
    others = [values[-1] for values, item in zip(found, items, strict=True) if item.role == "negative"]
    assert min(experts) > max(others)


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=30))
@example("a\u200b\ufe0f\ufe0fb\u034f\r\n\x85")
def test_what_is_taken_out_leaves_nothing_that_is_refused(text: str) -> None:
    assert unseen(seen(text)) == ()
    assert len(seen(text)) == len(text)
    assert seen(seen(text)) == seen(text)
    if unseen(canonical(text)) == ():
        assert seen(canonical(text)) == canonical(text)
