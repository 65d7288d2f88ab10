"""The proposer that asks a language model for programs. It works with any implementation of `Chat`.

If a prompt is too long for the model, the proposer writes a shorter one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from grace_irl.errors import GraceError, InputError
from grace_irl.propose.answer import parse
from grace_irl.propose.client.errors import CallFailed, ContextOverflow
from grace_irl.propose.json_answer import ANSWER_SCHEMA, NOTE_SCHEMA, read_note
from grace_irl.propose.material import Workbench
from grace_irl.propose.prompter import Prompter, PromptSettings
from grace_irl.propose.protocol import Chat, Completion, Parent, Prompt, Proposal, Question, Step
from grace_irl.search.protocol import Request

SHRINKS = 5  # maximum number of versions of one prompt, each shorter than the one before


@dataclass(frozen=True)
class Asked:
    """A prompt and its answers.

    Attributes:
        prompt: the prompt as sent.
        completions: the answers; fewer than requested after a failure.
        failure: the reason why answers are missing; "" otherwise.
        ending: the error that ends the run, if it is the reason why answers are missing; None otherwise.
    """

    prompt: Prompt
    completions: tuple[Completion, ...]
    failure: str = ""
    ending: GraceError | None = None


class Asking:
    """A client that sends prompts to a model. If a prompt is too long for the model, the client sends a shorter one.

    Args:
        chat: the model.
        bench: data and sandbox of the run.
        settings: limits and content of prompts.
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
        """Request `n` answers to a prompt.

        Args:
            write: function that calls a `Prompter` to write the prompt. It is called again if the prompt is too long.
            name: unique name of the prompt within the run, such as "0012".
            n: number of answers.
            schema: JSON schema of answers in the format "json".

        Raises:
            InputError: a prompt cannot be made short enough, or the server refuses the key.
            LimitReached: a limit of the run forbids the call.
            GraceError: the server is gone.
        """
        prompter = await self._opened()
        for _ in range(SHRINKS):
            version = prompter.version
            prompt = await asyncio.to_thread(write, prompter)
            try:
                return Asked(prompt, await self._chat.ask(Question(prompt, name, n, schema)))
            except CallFailed as failed:
                return Asked(prompt, failed.answers, f"no answer: {failed}", failed.ending)
            except ContextOverflow as overflow:
                last = overflow
                if prompter.version == version:  # otherwise another call has already shortened prompts
                    self._bench.note(f"{overflow}; later prompts are shorter")
                    prompter.shrink(prompt, overflow.limit, overflow.prompt_tokens)
        raise InputError(f"{last}; {SHRINKS - 1} shorter prompts did not fit either")

    async def close(self) -> None:
        """Close the connections. Later calls open them again."""
        if self._prompter is not None:
            self._prompter.cancel()
            await asyncio.gather(self._prompter, return_exceptions=True)
        self._prompter = None
        await self._chat.close()

    async def _opened(self) -> Prompter:
        """Return the prompter. The first call creates it from the answer format and context length of the server."""
        if self._prompter is None:
            self._prompter = asyncio.create_task(self._open())
        return await asyncio.shield(self._prompter)

    async def _open(self) -> Prompter:
        form, room = await self._chat.answer_format(), await self._chat.room()
        return await asyncio.to_thread(Prompter, self._bench, self._settings, form, room)


@dataclass(frozen=True)
class _Call:
    """One call to the model. Its answers serve consecutive requests of the search that share a prompt.

    Attributes:
        first: `Request.sample` of the first request that this call answers. It is above 0 only if a resumed run already
            has the answers to earlier requests.
        answers: task that returns the answers. If an error ends the run, the error stands in the place of each missing
            answer, so that the run stores the other answers before it ends.
    """

    first: int
    answers: asyncio.Task[list[Proposal | GraceError]]


class LlmProposer:
    """A proposer that writes a prompt for each request and reads the model's answers.

    If consecutive requests share a prompt (`Request.samples`), one call to the model serves all of them.

    An answer without a program becomes a proposal with a failure. The failure begins with its kind: "length",
    "refusal", "empty", "unparsable", "no_class", "untold" or "no answer".

    Args:
        chat: the model.
        bench: data and sandbox of the run.
        settings: limits and content of prompts.
    """

    def __init__(self, chat: Chat, bench: Workbench, settings: PromptSettings) -> None:
        self._asking = Asking(chat, bench, settings)
        self._bench = bench
        self._most = settings.most_requests
        self._calls: dict[int, _Call] = {}

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        """See `Proposer`.

        Raises:
            InputError: a prompt cannot be made short enough, or the server refuses the key.
            LimitReached: a limit of the run forbids the call.
            GraceError: the server is gone.
        """
        group = request.index - request.sample
        if group not in self._calls:
            # A resumed run may already have the answers to the first requests of this group. Then the call asks only
            # for the other answers.
            left = request.samples if self._most is None else max(1, self._most - request.index)
            work = self._answers(request, tuple(parents), min(request.samples - request.sample, left))
            self._calls[group] = _Call(request.sample, asyncio.create_task(work))
        call = self._calls[group]
        answers = await asyncio.shield(call.answers)
        if request.sample == request.samples - 1:
            self._calls.pop(group, None)
        return _given(answers[request.sample - call.first])

    async def follow(
        self, step: Step, request: Request, parents: Sequence[Parent], version: Parent, attempt: int
    ) -> Proposal | None:
        """See `Follower`. The errors are those of `propose`."""
        name = f"{request.index:04d}-{step.operator}" + (f"-{attempt}" if attempt > 1 else "")
        found = await self._asked(
            lambda prompter: prompter.follow(step, request, tuple(parents), version), name, 1, reads=step.writes
        )
        return _given(found[0])

    async def stop(self) -> None:
        """See `Stoppable`."""
        waiting = [call.answers for call in self._calls.values()]
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        self._calls.clear()
        await self._asking.close()

    async def _answers(self, request: Request, parents: tuple[Parent, ...], n: int) -> list[Proposal | GraceError]:
        found = await self._asked(lambda prompter: prompter.write(request, parents), f"{request.index:04d}", n)
        self._bench.keep({request.index + at: one for at, one in enumerate(found) if isinstance(one, Proposal)})
        return found

    async def _asked(
        self, write: Callable[[Prompter], Prompt], name: str, n: int, *, reads: bool = True
    ) -> list[Proposal | GraceError]:
        """Request `n` proposals with one prompt. `reads`: whether the answers are read as programs, not kept as text.

        If an error ends the run after some answers have arrived, the error stands in the place of each missing answer.
        """
        asked = await self._asking.ask(write, name, n, ANSWER_SCHEMA if reads else NOTE_SCHEMA)
        found = [_read(asked.prompt, each, reads=reads) for each in asked.completions]
        # Only the first answer of a call stores the prompt.
        found[1:] = [replace(each, prompt="") for each in found[1:]]
        missing = asked.ending or Proposal("", failure=asked.failure, prompt=asked.prompt.text)
        return [*found, *[missing] * (n - len(found))]


def _given(answer: Proposal | GraceError) -> Proposal:
    if isinstance(answer, GraceError):
        raise answer
    return answer


def _read(prompt: Prompt, completion: Completion, *, reads: bool) -> Proposal:
    """Make a proposal from an answer. `reads`: whether the answer is read as a program, not kept as text."""
    answer = parse(completion.text, completion.finish) if reads else None
    return Proposal(
        source=answer.source if answer else "",
        failure=answer.failure if answer else "",
        reasoning=answer.reasoning if answer else "",
        prompt=prompt.text,
        raw=completion.text if reads else read_note(completion.text),
        tokens_in=completion.tokens_in,
        tokens_out=completion.tokens_out,
        seconds=completion.seconds,
    )
