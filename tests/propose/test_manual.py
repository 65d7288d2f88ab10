"""A person who answers prompt files, played by the tests."""

from __future__ import annotations

import asyncio
import codecs
import re
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from grace_irl.cli import main
from grace_irl.demos import save
from grace_irl.propose import manual
from grace_irl.propose.manual import Manual
from grace_irl.propose.protocol import Completion, Prompt, Question
from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.fit import resume, start
from grace_irl.runs.front import UNJUDGED
from grace_irl.runs.run import Interrupted, Run, opened
from tests.fakes.data import vector_set
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.fakes.person import Person

PATIENCE = 60.0  # seconds after which a test gives up


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manual, "LOOK", 0.02)


class Table:
    """The folder between the proposer and the person, and what the person was told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "manual"
        self.notes: list[str] = []
        self.manual = Manual(self.folder, self.notes.append)

    def ask(
        self, name: str = "0000", n: int = 1, user: str = "Write a reward."
    ) -> asyncio.Task[tuple[Completion, ...]]:
        return asyncio.create_task(self.manual.ask(Question(Prompt("You write rewards.", "Write a reward."), name, n)))

    def answer(self, name: str, text: str | bytes) -> None:
        path = self.folder / f"{name}.answer.md"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())


async def looks(count: int = 3 * manual.STILL) -> None:
    await asyncio.sleep(count * manual.LOOK)


def play(work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), PATIENCE))  # type: ignore[arg-type]


def test_prompt_out_answer_in(tmp_path: Path) -> None:
    async def work() -> None:
        table = Table(tmp_path)
        asked = table.ask()
        await looks()
        assert (table.folder / "0000.prompt.md").read_text() == "You write rewards.\n\nWrite a reward.\n"
        table.answer("0000", "A program.")
        assert await asked == (Completion("A program."),)

    play(work)


def test_a_half_written_answer_is_not_taken(tmp_path: Path) -> None:
    async def work() -> None:
        table = Table(tmp_path)
        asked = table.ask()
        await looks()
        whole = "x" * 20
        for end in range(1, len(whole)):
            table.answer("0000", whole[:end])
            await asyncio.sleep(manual.LOOK / 2)
            assert not asked.done()
        table.answer("0000", whole)
        assert (await asked)[0].text == whole

    play(work)


@pytest.mark.parametrize("empty", [b"", b" \n", codecs.BOM_UTF8, b"\r\n"])
def test_an_empty_answer_waits(tmp_path: Path, empty: bytes) -> None:
    async def work() -> None:
        table = Table(tmp_path)
        asked = table.ask()
        await looks()
        table.answer("0000", empty)
        await looks()
        assert not asked.done()
        table.answer("0000", "now")
        assert (await asked)[0].text == "now"

    play(work)


@pytest.mark.parametrize(
    "saved",
    [
        b"a\r\nb\r\n",
        codecs.BOM_UTF8 + b"a\nb\n",
        codecs.BOM_UTF16_LE + "a\r\nb\r\n".encode("utf-16-le"),
        codecs.BOM_UTF16_BE + "a\nb\n".encode("utf-16-be"),
        b"a\rb\r",
    ],
)
def test_what_editors_do_to_a_text(tmp_path: Path, saved: bytes) -> None:
    async def work() -> None:
        table = Table(tmp_path)
        asked = table.ask()
        await looks()
        table.answer("0000", saved)
        assert (await asked)[0].text == "a\nb\n"

    play(work)


def test_several_answers_to_one_prompt(tmp_path: Path) -> None:
    async def work() -> None:
        table = Table(tmp_path)
        asked = table.ask(n=3)
        await looks()
        for name, text in (("0000-3", "third"), ("0000", "first"), ("0000-2", "second")):
            table.answer(name, text)
        assert [one.text for one in await asked] == ["first", "second", "third"]
        assert len(table.notes) == 1
        assert "0000-2.answer.md to 0000-3.answer.md" in table.notes[0]

    play(work)


def test_one_note_for_a_batch_of_prompts(tmp_path: Path) -> None:
    async def work() -> None:
        table = Table(tmp_path)
        asked = []
        for number in range(20):
            asked.append(table.ask(f"{number:04d}"))
            await asyncio.sleep(manual.LOOK / 4)  # prompts are not written all at once
        await looks()
        (note,) = table.notes
        assert "20 prompts wait" in note
        assert "0000.prompt.md … 0019.prompt.md" in note
        assert "\n" not in note
        for number in range(20):
            table.answer(f"{number:04d}", str(number))
        assert [one[0].text for one in await asyncio.gather(*asked)] == [str(n) for n in range(20)]
        later = table.ask("0020")
        await looks()
        assert len(table.notes) == 2
        assert "1 prompt waits: " in table.notes[1]
        assert str(table.folder / "0020.prompt.md") in table.notes[1]
        later.cancel()

    play(work)


def test_foreign_files_are_noted_once(tmp_path: Path) -> None:
    async def work() -> None:
        table = Table(tmp_path)
        table.folder.mkdir()
        old = ("0001.prompt.md", "0001.answer.md", "0001-2.answer.md")  # of an earlier sitting
        for name in (*old, "0000.answer.md.txt", "notes.txt", "0000-2.answer.md", "0007.answer.md", ".hidden", "a.png"):
            (table.folder / name).write_text("x")
        asked = table.ask()
        await looks()
        await looks()
        noted = sorted(
            Path(note.split(" is not the answer to any prompt")[0]).name for note in table.notes if "rename it" in note
        )
        # One answer is wanted to 0000, so that nobody would read 0000-2.
        assert noted == ["0000-2.answer.md", "0000.answer.md.txt", "0007.answer.md", "notes.txt"]
        assert all("0000.answer.md" in note for note in table.notes if "rename it" in note)
        (table.folder / "0000.answer.md.txt").rename(table.folder / "0000.answer.md")
        assert (await asked)[0].text == "x"

    play(work)


def test_answers_that_came_between_two_sittings_are_found(tmp_path: Path) -> None:
    async def work() -> None:
        first = Table(tmp_path)
        asked = first.ask()
        await looks()
        asked.cancel()
        first.answer("0000", "meanwhile")
        (first.folder / "0000.prompt.md").write_text("with a person's notes in it")
        second = Table(tmp_path)
        assert (await second.ask())[0].text == "meanwhile"
        assert second.notes == []
        assert (first.folder / "0000.prompt.md").read_text() == "with a person's notes in it"

    play(work)


FLAGS: dict[str, object] = {
    "proposer.name": "manual",
    "search.population": 4,
    "search.elite": 2,
    "search.generations": 1,
}
SETS = ("stop.target_accuracy=none",)


def test_a_whole_run_by_hand(tmp_path: Path) -> None:
    save(vector_set(noise=0.05), tmp_path / "set.parquet")
    folder = tmp_path / "run"
    arguments = ["fit", "--demos", str(tmp_path / "set.parquet"), "--out", str(folder), "--proposer", "manual"]
    arguments += ["--population", "4", "--elite", "2", "--generations", "1", "--set", SETS[0]]
    with Person(folder / "manual") as person:
        assert main(arguments) == 0
    assert (folder / "reward.py").read_text().startswith('"""A reward recovered')
    with opened(folder) as (store, config):
        told, events = store.told(), store.events()
        assert config.proposer.name == "manual"
    assert [t.failure for t in told.values() if t.failure] == []
    assert len(told) == len(person.answered) == 8
    rule, *notes, unjudged = [detail for _, kind, detail in events if kind == "note"]
    assert rule.startswith("label rule ")
    assert unjudged == UNJUDGED.format(share=0.25)
    assert 1 <= len(notes) <= 4  # not one per prompt
    assert all(re.search(r"prompts? waits?", note) for note in notes)


def test_a_run_by_hand_goes_on_after_an_interruption(tmp_path: Path) -> None:
    parts = Parts(vector_set(noise=0.05), sandbox=InProcessSandbox())
    folder = tmp_path / "run"

    def leave() -> None:
        deadline = time.monotonic() + PATIENCE
        while len(person.answered) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(20 * manual.LOOK)
        import _thread

        _thread.interrupt_main()

    with Person(folder / "manual", most=2) as person:
        leaver = threading.Thread(target=leave)
        leaver.start()
        with pytest.raises(Interrupted):
            start(resolve(flags=FLAGS, sets=SETS), folder, parts)
        leaver.join()
    with Person(folder / "manual") as other:
        other.answered += person.answered
        run: Run = resume(folder, parts=parts)
    assert run.calls == 8
    assert len(set(other.answered)) == 8
    with opened(folder) as (store, _):
        assert [t.failure for t in store.told().values() if t.failure] == []


def test_the_message_names_the_prompt_that_wants_further_answers(tmp_path: Path) -> None:
    """The first of two prompts wants one answer, the second one three. A name with the number 1 is no answer."""
    table = Table(tmp_path)

    async def work() -> None:
        waiting = [table.ask("0001"), table.ask("0002", 3)]
        await looks()
        table.answer("0001-1", "late")
        for name in ("0001", "0002", "0002-2", "0002-3"):
            table.answer(name, "code")
        await asyncio.gather(*waiting)

    play(work)
    assert "further answers into 0002-2.answer.md to 0002-3.answer.md" in table.notes[0]
    assert any("0001-1.answer.md is not the answer to any prompt here" in note for note in table.notes[1:])
