"""A person with a chat window as who answers prompts: prompt files out, answer files in."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from grace_irl.atomic import write_atomically
from grace_irl.propose.chat import Question
from grace_irl.propose.completion import Completion
from grace_irl.propose.prompt import AnswerFormat, Prompt

LOOK = 0.2  # seconds between two looks into the folder
PROMPT, ANSWER = ".prompt.md", ".answer.md"
MAX_BYTES = 2_000_000  # of an answer; the parser takes less


class Manual:
    """Writes each prompt to `NAME.prompt.md` and waits for `NAME.answer.md` (`NAME-2.answer.md` … for more answers).

    Prompts and answers stay in the folder: a run that is interrupted and resumed finds answers that came meanwhile. A
    prompt file that is there already is left as it is. An answer is taken when its size has stayed the same between
    two looks, so that one that is still being written is not cut.

    Args:
        folder: for the files; made when the first prompt is written.
        note: tells the person where prompts wait, and of files that answer nothing.
        answer_format: how programs are to be answered.
    """

    def __init__(self, folder: Path, note: Callable[[str], None], answer_format: AnswerFormat = "code") -> None:
        self._folder = folder
        self._note = note
        self._answer_format = answer_format
        self._waiting: set[str] = set()
        self._foreign: set[str] = set()

    async def answer_format(self) -> AnswerFormat:
        """See `Chat`."""
        return self._answer_format

    async def room(self) -> None:
        """See `Chat`: a person's chat window does not say."""

    async def ask(self, question: Question) -> tuple[Completion, ...]:
        """See `Chat`. Waits as long as the person takes."""
        names = [question.name if n == 0 else f"{question.name}-{n + 1}" for n in range(question.n)]
        self._write(question.name, question.prompt)
        self._waiting |= set(names)
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
        if not (self._folder / f"{name}{ANSWER}").exists():
            self._note(f"prompt {path} waits for {name}{ANSWER} beside it")

    async def _answered(self, name: str) -> Completion:
        path, size = self._folder / f"{name}{ANSWER}", -1
        while True:
            self._look_for_foreign_files()
            now = path.stat().st_size if path.is_file() else 0
            if 0 < now == size:
                with path.open("rb") as file:
                    text = file.read(MAX_BYTES).decode("utf-8-sig", "replace")
                if text.strip():
                    self._waiting.discard(name)
                    return Completion(text)
            size = now
            await asyncio.sleep(LOOK)

    def _look_for_foreign_files(self) -> None:
        """Says once of each file that it answers nothing: most often a name with a slip in it."""
        for entry in os.scandir(self._folder):
            name = entry.name
            if name in self._foreign or name.startswith(".") or name.endswith((PROMPT, ".png")):
                continue
            stem = name.removesuffix(ANSWER)
            asked = stem in self._waiting or (self._folder / f"{stem.rsplit('-', 1)[0]}{PROMPT}").exists()
            if name.endswith(ANSWER) and (asked or (self._folder / f"{stem}{PROMPT}").exists()):
                continue
            self._foreign.add(name)
            example = min(self._waiting, default="0000")
            self._note(f"{entry.path} answers no prompt here; expected a name such as {example}{ANSWER}: rename it")
