"""A chat through files, for a person who copies prompts into a chat window and saves the answers."""

from __future__ import annotations

import asyncio
import codecs
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from grace_irl.atomic import write_atomically
from grace_irl.propose.protocol import AnswerFormat, Completion, Prompt, Question

LOOK = 0.2  # seconds between two checks of the folder
STILL = 3
"""An answer file is complete after this number of checks without a change; a batch of prompts is complete after this
number of checks without a further prompt."""

PROMPT, ANSWER = ".prompt.md", ".answer.md"
MAX_BYTES = 2_000_000  # maximum bytes that are read from an answer file


class Manual:
    """A chat through files. The chat writes `NAME.prompt.md` and waits for `NAME.answer.md`.

    Further answers to one prompt are `NAME-2.answer.md`, `NAME-3.answer.md`, …

    Prompts and answers stay in the folder, so a resumed run finds answers that a person has saved before. An existing
    prompt file is not overwritten. An answer file is read only after it has stayed the same for `STILL` checks, so that
    the answer is complete. An empty file does not count as an answer.

    Args:
        folder: folder of the files; created with the first prompt.
        note: callback that shows a message: one for each batch of new prompts, and one for each file that belongs to no
            prompt.
        answer_format: the requested format of programs.
    """

    def __init__(self, folder: Path, note: Callable[[str], None], answer_format: AnswerFormat = "code") -> None:
        self._folder = folder
        self._note = note
        self._answer_format = answer_format
        self._waiting: set[str] = set()
        self._asked: dict[str, int] = {}  # number of requested answers by prompt name
        self._foreign: set[str] = set()
        self._untold: list[str] = []  # unanswered prompts that no message has named yet
        self._still = 0  # number of checks since the last prompt in `_untold` was written
        self._looked = float("-inf")

    async def answer_format(self) -> AnswerFormat:
        """See `Chat`."""
        return self._answer_format

    async def room(self) -> None:
        """See `Chat`. The result is None, because the limit of a person's chat window is unknown."""

    async def ask(self, question: Question) -> tuple[Completion, ...]:
        """See `Chat`. There is no time limit."""
        names = [question.name if n == 0 else f"{question.name}-{n + 1}" for n in range(question.n)]
        self._write(question.name, question.prompt)
        self._asked[question.name] = question.n
        self._waiting |= set(names)
        if not all((self._folder / f"{name}{ANSWER}").exists() for name in names):
            self._untold.append(question.name)
            self._still = 0
        return tuple([await self._answered(name) for name in names])

    async def close(self) -> None:
        """See `Chat`."""

    def _write(self, name: str, prompt: Prompt) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{name}{PROMPT}"
        text = f"{prompt.text}\n"
        for number, image in enumerate(prompt.images):
            picture = self._folder / f"{name}.image{number + 1}.png"
            write_atomically(picture, image)
            text += f"\n(With this prompt goes the picture {picture.name}.)\n"
        if not path.exists():
            write_atomically(path, text)

    async def _answered(self, name: str) -> Completion:
        path = self._folder / f"{name}{ANSWER}"
        before, still = (0, 0), 0
        while True:
            self._look()
            now = _state(path)
            still = still + 1 if now == before and now[0] else 0
            if still >= STILL:
                text = _text(path)
                if text.strip():
                    self._waiting.discard(name)
                    return Completion(text)
            before = now
            await asyncio.sleep(LOOK)

    def _look(self) -> None:
        """Check the folder at most once in `LOOK` / 2 seconds, because every waiting prompt calls this method."""
        now = time.monotonic()
        if now - self._looked < LOOK / 2:
            return
        self._looked = now
        self._tell_of_prompts()
        self._look_for_foreign_files()

    def _tell_of_prompts(self) -> None:
        """Say how many new prompts wait, once their batch is complete. The message names the first and the last."""
        if not self._untold:
            return
        self._still += 1
        if self._still < STILL:
            return
        names, self._untold = self._untold, []
        first, last = names[0], names[-1]
        if len(names) == 1:
            said = f"1 prompt waits: {self._folder / (first + PROMPT)}; put the answer into {first}{ANSWER} beside it"
        else:
            said = (
                f"{len(names)} prompts wait in {self._folder}: {first}{PROMPT} … {last}{PROMPT}; "
                f"put the answer to each beside it, such as {first}{ANSWER}"
            )
        name = max(names, key=lambda name: self._asked[name])
        most = self._asked[name]
        self._note(said + (f", and further answers into {name}-2{ANSWER} to {name}-{most}{ANSWER}" if most > 1 else ""))

    def _look_for_foreign_files(self) -> None:
        """Report each file that belongs to no prompt, once. Most often the file's name has a typing error."""
        for entry in os.scandir(self._folder):
            name = entry.name
            if name in self._foreign or name.startswith(".") or name.endswith((PROMPT, ".png")):
                continue
            if name.endswith(ANSWER) and self._is_answer(name.removesuffix(ANSWER)):
                continue
            self._foreign.add(name)
            example = min(self._waiting, default="0000")
            self._note(
                f"{entry.path} is not the answer to any prompt here; expected a name such as "
                f"{example}{ANSWER}: rename it"
            )

    def _is_answer(self, stem: str) -> bool:
        """Whether an answer file belongs to a prompt. `stem` is the file's name without `ANSWER`.

        If an earlier process wrote the prompt, it is unknown how many answers were requested. Then `NAME-N.answer.md`
        may have any N.
        """
        base, _, number = stem.rpartition("-")
        further = int(number) if re.fullmatch("[1-9][0-9]{0,8}", number) else 0
        for prompt, place in ((stem, 1), (base, further if further > 1 else 0)):
            if place and (self._folder / f"{prompt}{PROMPT}").exists():
                return place <= self._asked.get(prompt, place)
        return False


def _state(path: Path) -> tuple[int, int]:
    """Size in bytes and modification time in nanoseconds of a file; (0, 0) if it does not exist."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


def _text(path: Path) -> str:
    """The text of an answer file: UTF-8, or UTF-16 with a byte order mark; line breaks become `\\n`."""
    with path.open("rb") as file:
        data = file.read(MAX_BYTES)
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = data.decode("utf-16" if wide else "utf-8-sig", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")
