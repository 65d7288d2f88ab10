"""The proposer that asks a model, whoever stands behind `Chat`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from grace_irl.errors import InputError
from grace_irl.propose.answer import parse
from grace_irl.propose.chat import Chat, Question
from grace_irl.propose.client.errors import CallFailed, ContextOverflow
from grace_irl.propose.completion import Completion
from grace_irl.propose.prompt import Prompt
from grace_irl.propose.prompter import Prompter, PromptSettings
from grace_irl.propose.protocol import Parent, Proposal
from grace_irl.propose.workbench import Workbench
from grace_irl.search.protocol import Request

SHRINKS = 5  # times that a prompt is made shorter before the run ends


@dataclass(frozen=True)
class _Call:
    """One call under way: the answers to the samples of a request, from number `first`."""

    first: int
    answers: asyncio.Task[list[Proposal]]


class LlmProposer:
    """Writes a prompt for each request and reads the answers.

    Requests that ask the same (`Request.samples`) are answered by one call. Answers that hold no program are
    proposals with a failure that begins with its kind: "length", "refusal", "empty", "unparsable", "no_class",
    "no answer".

    Args:
        chat: who answers.
        bench: the data and the sandbox.
        settings: what prompts may hold.
        repairs: send programs that fail back, once each.
    """

    def __init__(self, chat: Chat, bench: Workbench, settings: PromptSettings, *, repairs: bool = True) -> None:
        self._chat = chat
        self._bench = bench
        self._settings = settings
        self._repairs = repairs
        self._calls: dict[int, _Call] = {}
        self._prompter: asyncio.Task[Prompter] | None = None

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        """See `Proposer`.

        Raises:
            InputError: a prompt that cannot be made short enough, a key that is refused.
            GraceError: nobody answers any more.
        """
        group = request.index - request.sample
        if group not in self._calls:
            # Requests come in order, so that what is missing of a call after a resume is its rest.
            work = self._answers(request, tuple(parents), request.samples - request.sample)
            self._calls[group] = _Call(request.sample, asyncio.create_task(work))
        call = self._calls[group]
        answers = await asyncio.shield(call.answers)
        if request.sample == request.samples - 1:
            self._calls.pop(group, None)
        return answers[request.sample - call.first]

    async def repair(self, request: Request, parents: Sequence[Parent], failed: Parent) -> Proposal | None:
        """See `Repairer`. Raises as `propose` does."""
        del parents
        if not self._repairs:
            return None
        name = f"{request.index:04d}-repair"
        found = await self._asked(lambda prompter: prompter.repair(request, failed), name, 1, request.seed + 1)
        return found[0]

    async def stop(self) -> None:
        """See `Stoppable`."""
        waiting: list[asyncio.Task[Any]] = [call.answers for call in self._calls.values()]
        waiting += [] if self._prompter is None else [self._prompter]
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        self._calls.clear()
        self._prompter = None
        await self._chat.close()

    async def _answers(self, request: Request, parents: tuple[Parent, ...], n: int) -> list[Proposal]:
        return await self._asked(
            lambda prompter: prompter.write(request, parents), f"{request.index:04d}", n, request.seed
        )

    async def _asked(self, write: Callable[[Prompter], Prompt], name: str, n: int, seed: int) -> list[Proposal]:
        """`n` proposals; a prompt that is too long for the model is written anew, shorter."""
        prompter = await self._opened()
        for _ in range(SHRINKS):
            version = prompter.version
            prompt = await asyncio.to_thread(write, prompter)
            try:
                return _read(prompt, await self._chat.ask(Question(prompt, name, n, seed)))
            except CallFailed as failed:
                missing = [Proposal("", failure=f"no answer: {failed}", prompt=prompt.text)]
                return [*_read(prompt, failed.answers), *missing * (n - len(failed.answers))]
            except ContextOverflow as overflow:
                last = overflow
                if prompter.version == version:  # else another call has shortened them meanwhile
                    self._bench.note(f"{overflow}; later prompts are shorter")
                    prompter.shrink(prompt, overflow.limit, overflow.prompt_tokens)
        raise InputError(f"{last}; {SHRINKS} shorter prompts did not fit either")

    async def _opened(self) -> Prompter:
        """The prompter, made once; the server is asked what it takes."""
        if self._prompter is None:
            self._prompter = asyncio.create_task(self._open())
        return await asyncio.shield(self._prompter)

    async def _open(self) -> Prompter:
        form, room = await self._chat.answer_format(), await self._chat.room()
        return await asyncio.to_thread(Prompter, self._bench, self._settings, form, room)


def _read(prompt: Prompt, completions: Sequence[Completion]) -> list[Proposal]:
    proposals = []
    for place, completion in enumerate(completions):
        answer = parse(completion.text, completion.finish)
        proposals.append(
            Proposal(
                source=answer.source,
                failure=answer.failure,
                reasoning=answer.reasoning,
                prompt=prompt.text if place == 0 else "",  # kept once for all answers of a call
                raw=completion.text,
                tokens_in=completion.tokens_in,
                tokens_out=completion.tokens_out,
                seconds=completion.seconds,
            )
        )
    return proposals
