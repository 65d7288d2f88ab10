"""Puts the prompts of a run to whoever answers them, each as short as it has to be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from grace_irl.errors import InputError
from grace_irl.propose.chat import Chat, Completion, Question
from grace_irl.propose.client.errors import CallFailed, ContextOverflow
from grace_irl.propose.json_answer import ANSWER_SCHEMA
from grace_irl.propose.prompter import Prompter, PromptSettings
from grace_irl.propose.protocol import Prompt
from grace_irl.propose.workbench import Workbench

SHRINKS = 5  # times that a prompt is made shorter before the run ends


@dataclass(frozen=True)
class Asked:
    """A prompt and what it brought.

    Attributes:
        prompt: as it was sent.
        completions: the requested number, or fewer with a failure.
        failure: why some are missing; "" otherwise.
    """

    prompt: Prompt
    completions: tuple[Completion, ...]
    failure: str = ""


class Asking:
    """Asks, and writes a prompt that is too long for the model anew, shorter.

    Args:
        chat: who answers.
        bench: the data and the sandbox.
        settings: what prompts may hold.
    """

    def __init__(self, chat: Chat, bench: Workbench, settings: PromptSettings) -> None:
        self._chat = chat
        self._bench = bench
        self._settings = settings
        self._prompter: asyncio.Task[Prompter] | None = None

    async def ask(
        self,
        write: Callable[[Prompter], Prompt],
        name: str,
        n: int,
        schema: Mapping[str, object] = ANSWER_SCHEMA,
    ) -> Asked:
        """`n` answers.

        Args:
            write: makes the prompt.
            name, n, schema: see `Question`.

        Raises:
            InputError: a prompt that cannot be made short enough, a key that is refused.
            GraceError: nobody answers any more.
        """
        prompter = await self._opened()
        for _ in range(SHRINKS):
            version = prompter.version
            prompt = await asyncio.to_thread(write, prompter)
            try:
                return Asked(prompt, await self._chat.ask(Question(prompt, name, n, schema)))
            except CallFailed as failed:
                return Asked(prompt, failed.answers, f"no answer: {failed}")
            except ContextOverflow as overflow:
                last = overflow
                if prompter.version == version:  # else another call has shortened them meanwhile
                    self._bench.note(f"{overflow}; later prompts are shorter")
                    prompter.shrink(prompt, overflow.limit, overflow.prompt_tokens)
        raise InputError(f"{last}; {SHRINKS} shorter prompts did not fit either")

    async def close(self) -> None:
        """Ends what is open; it can be asked again."""
        if self._prompter is not None:
            self._prompter.cancel()
            await asyncio.gather(self._prompter, return_exceptions=True)
        self._prompter = None
        await self._chat.close()

    async def _opened(self) -> Prompter:
        """The prompter, made once; the server is asked what it takes."""
        if self._prompter is None:
            self._prompter = asyncio.create_task(self._open())
        return await asyncio.shield(self._prompter)

    async def _open(self) -> Prompter:
        form, room = await self._chat.answer_format(), await self._chat.room()
        return await asyncio.to_thread(Prompter, self._bench, self._settings, form, room)
