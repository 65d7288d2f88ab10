"""A person who answers the prompt files of the proposer `manual`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from tests.fakes.scripted_proposer import SOURCE


def thresholds(count: int) -> str:
    """A threshold on the first component of a state, after a sentence, with the line ends of Windows."""
    threshold = round(0.1 * (count - 3), 2)
    return f"I would say so.\r\n\r\n```python\r\n{SOURCE.format(index=0, threshold=threshold)}```\r\n"


class Person:
    """Answers every prompt file, in a thread.

    Attributes:
        folder: the folder of the prompt files.
        most: number of prompts that the person answers at most.
        write: gives the text of an answer, from the number of prompts answered before.
        answered: names of the prompts, in the order of the answers.
        prompts: their texts.
    """

    def __init__(self, folder: Path, most: int = 10_000, write: Callable[[int], str] = thresholds) -> None:
        self.folder, self.most, self.write = folder, most, write
        self.answered: list[str] = []
        self.prompts: list[str] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Person:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(0.02):
            for path in sorted(self.folder.glob("*.prompt.md")):
                name = path.name.removesuffix(".prompt.md")
                if name in self.answered or len(self.answered) >= self.most:
                    continue
                self.prompts.append(path.read_text())
                (self.folder / f"{name}.answer.md").write_bytes(self.write(len(self.answered)).encode())
                self.answered.append(name)
