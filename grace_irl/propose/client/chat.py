"""The client of a model server.

The client returns exactly the requested number of answers, and recovers from failures of the server.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from grace_irl.propose.client import recovery
from grace_irl.propose.client.dialect import Dialect, answers
from grace_irl.propose.client.errors import CallFailed, CallFailure, ContextOverflow, declined, overflow
from grace_irl.propose.client.recovery import Backoff, Catalogue, Diagnosis, ServerWatch
from grace_irl.propose.client.settings import ChatSettings, api_key, redactor
from grace_irl.propose.client.wire import Wire
from grace_irl.propose.json_answer import ANSWER_SCHEMA
from grace_irl.propose.protocol import AnswerFormat, Completion, LimitReached, Prompt, Question

LEAST_ANSWER = 512  # minimum tokens of room for an answer; with less room, the prompt has to become shorter
TRIES = {"time-out": 3, "too long": 2}  # maximum attempts after failures of these kinds, which take long


@dataclass(frozen=True)
class _Bound:
    """The parts of a client that belong to one event loop.

    Attributes:
        loop: the event loop.
        wire: connections to the server.
        slots: semaphore that limits the number of requests in parallel.
        opening: lock, so that only one call makes the first contact.
        probing: lock, so that only one call sends the probe that finds the answer format.
        watch: object that waits for a server that is away.
    """

    loop: asyncio.AbstractEventLoop
    wire: Wire
    slots: asyncio.Semaphore
    opening: asyncio.Lock
    probing: asyncio.Lock
    watch: ServerWatch


@dataclass(frozen=True)
class _Question:
    """The content of one HTTP request, which asks for `n` answers."""

    prompt: Prompt
    n: int
    schema: Mapping[str, object] | None
    max_tokens: int


class ChatClient:
    """A client of one server, and an implementation of `Chat`.

    The client works in one event loop at a time. In a new loop it opens new connections.

    Args:
        settings: the server, and the form of requests.
        on_note: callback that shows the user one line. The client calls it for each parameter that the server refuses,
            and whenever the server goes away or comes back.
        backoff: waiting times between attempts.
        limit: function that returns the reason why no further request may be sent; "" if one may. The client calls it
            when a request's turn comes, because requests wait for earlier ones.

    Attributes:
        settings: the settings as given.

    Raises:
        InputError: the key is invalid (see `settings.api_key`).
    """

    def __init__(
        self,
        settings: ChatSettings,
        on_note: Callable[[str], None] = lambda _: None,
        *,
        backoff: Backoff | None = None,
        limit: Callable[[], str] = lambda: "",
    ) -> None:
        self.settings = settings
        self._limit = limit
        self._on_note = on_note
        self._said_no_usage = False
        self._backoff = backoff or Backoff()
        self._key = api_key()
        self._diagnosis = Diagnosis(settings.url, bool(self._key), redactor(self._key))
        self._dialect = Dialect()
        self._model = ""
        self._catalogue = Catalogue()
        self._format: AnswerFormat | None = None if settings.answer_format == "auto" else settings.answer_format
        self._bound: _Bound | None = None

    async def __aenter__(self) -> ChatClient:
        try:
            await self.open()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def model(self) -> str:
        """The model's name on the server. Before the first contact it is the name in the settings, which may be ""."""
        return self._model or self.settings.model

    async def open(self) -> str:
        """Make the first contact, find the model, and return its name. Later calls return immediately.

        Raises:
            InputError: the client library is missing, no server is at the address, or the server refuses the key or
                does not have the model.
            ServerGone: the server was not ready within `ChatSettings.patience`.
        """
        bound = self._here()
        if not self._model:
            async with bound.opening:
                if not self._model:
                    self._catalogue = await self._listed(bound)
                    self._model = self._catalogue.chosen(self.settings.model)
        return self._model

    async def complete(
        self,
        prompt: Prompt,
        n: int = 1,
        *,
        answer: AnswerFormat | None = None,
        max_tokens: int | None = None,
        schema: Mapping[str, object] = ANSWER_SCHEMA,
    ) -> tuple[Completion, ...]:
        """Request exactly `n` answers to a prompt.

        Args:
            prompt: the prompt.
            n: number of answers, 1 or more. If the server returns fewer, the client sends further requests.
            answer: format of the answers; by default the result of `answer_format`. With "json" the schema is sent.
            max_tokens: maximum tokens of each answer; by default the settings' value.
            schema: JSON schema of answers in the format "json".

        Raises:
            CallFailed: the last attempt failed. The error's `answers` are the answers that have arrived.
            LimitReached: the run reached a limit before all answers. The error's `answers` are those that have arrived.
            ContextOverflow: the prompt leaves no room for an answer.
            InputError: as in `open`; also if the server refuses the key later.
            ServerGone: the server was away or too busy for longer than `ChatSettings.patience`.
        """
        sent = schema if (answer or await self.answer_format()) == "json" else None
        await self.open()
        most = max_tokens or self.settings.max_tokens
        got: list[Completion] = []
        while len(got) < n:
            size = min(n - len(got), self._dialect.most_choices or n)
            questions = [_Question(prompt, min(size, n - at), sent, most) for at in range(len(got), n, size)]
            parts = await asyncio.gather(*map(self._ask, questions), return_exceptions=True)
            got += [one for part in parts if not isinstance(part, BaseException) for one in part]
            errors = [part for part in parts if isinstance(part, BaseException)]
            # An error that ends the run is raised before a `CallFailed`, which concerns only this call.
            for error in sorted(errors, key=_rank):
                if isinstance(error, CallFailed | LimitReached):
                    raise type(error)(str(error), tuple(got)) from None
                raise error
        answered = [each for each in got if each.finish != "refusal"]
        if not self._said_no_usage and answered and not any(each.tokens_in or each.tokens_out for each in answered):
            self._said_no_usage = True
            self._on_note("the server reports no tokens: counts stay 0, and --max-tokens and --max-cost stop nothing")
        return tuple(got)

    async def answer_format(self) -> AnswerFormat:
        """The answer format in the settings. With "auto", the first call sends a probe to find the format.

        Raises:
            InputError, ServerGone: as in `complete`.
        """
        if self._format is None:
            async with self._here().probing:
                if self._format is None:
                    self._format = await self._probed()
        return self._format

    async def context_length(self) -> int | None:
        """The model's context in tokens; None if the server does not report it.

        Raises:
            InputError, ServerGone: as in `open`.
        """
        model = await self.open()  # also loads the list of models
        return self._catalogue.context_length(model)

    async def room(self) -> int | None:
        """See `Chat`."""
        length = await self.context_length()
        return None if length is None else self.settings.room(length)

    async def ask(self, question: Question) -> tuple[Completion, ...]:
        """See `Chat`.

        Requests contain no seed. A seed would not make answers reproducible, because answers also depend on the other
        requests in the server's batch. To repeat a run, use a recording. Besides, vLLM 0.32 on a CPU crashes if a
        request has a seed and a prompt that is long enough to be read in chunks.
        """
        return await self.complete(question.prompt, question.n, schema=question.schema)

    async def close(self) -> None:
        """Close the connections. The client can be used again, and keeps its knowledge of the server."""
        bound, self._bound = self._bound, None
        if bound is not None and bound.loop is asyncio.get_running_loop():
            bound.watch.close()
            await bound.wire.close()

    def _here(self) -> _Bound:
        loop = asyncio.get_running_loop()
        if self._bound is None or self._bound.loop is not loop:
            wire = Wire(self.settings, self._key)
            self._bound = _Bound(
                loop=loop,
                wire=wire,
                slots=asyncio.Semaphore(self.settings.concurrency),
                opening=asyncio.Lock(),
                probing=asyncio.Lock(),
                watch=ServerWatch(wire.models, self.settings.patience, self._backoff, self._on_note),
            )
        return self._bound

    async def _listed(self, bound: _Bound) -> Catalogue:
        try:
            return Catalogue(await bound.wire.models())
        except CallFailure as failure:
            problem = failure
        if problem.status in (429, 500, 502, 503, 504):  # the server is there, and may be loading its model
            await bound.watch.wait(self._diagnosis.quote(problem))
            try:
                return Catalogue(await bound.wire.models())
            except CallFailure as failure:
                problem = failure
        hopeless = problem.status in (0, 401, 403) or 300 <= problem.status < 400 or problem.kind == "web page"
        if self.settings.model and not hopeless:  # not every server lists its models
            return Catalogue()
        raise self._diagnosis.at_first_contact(problem)

    async def _probed(self) -> AnswerFormat:
        most = min(self.settings.max_tokens, recovery.MAX_TOKENS)
        try:
            asked = await self.complete(recovery.PROMPT, recovery.SAMPLES, answer="json", max_tokens=most)
        except (CallFailed, ContextOverflow):
            return "code"
        return "json" if all(map(recovery.passed, asked)) else "code"

    def _payload(self, question: _Question, max_tokens: int) -> tuple[dict[str, Any], int]:
        """The body of a request in the form that the server accepts, and the number of answers in it."""
        n = min(question.n, self._dialect.most_choices or question.n)
        return self._dialect.payload(
            question.prompt,
            model=self._model,
            temperature=self.settings.temperature,
            max_tokens=max_tokens,
            n=n,
            schema=question.schema,
        ), n

    async def _ask(self, question: _Question) -> tuple[Completion, ...]:
        """Repeat a request until it succeeds. Return at least one answer, and at most the requested number."""
        bound = self._here()
        context = self._catalogue.context_length(self._model)
        max_tokens = min(question.max_tokens, context - 1) if context else question.max_tokens
        async with bound.slots:
            if reached := self._limit():
                raise LimitReached(reached)
            started, tries, kinds = time.monotonic(), 0, Counter[str]()
            while True:
                payload, n = self._payload(question, max_tokens)
                try:
                    return await self._request(bound, payload, n)
                except CallFailure as failure:
                    problem = failure
                kinds[problem.kind] += 1
                tries += 1
                too_long = overflow(problem)
                if too_long:
                    max_tokens = _shortened(too_long, question.max_tokens, max_tokens)
                for note in self._dialect.learn(problem, payload, kinds[problem.kind]):
                    self._on_note(f"{note} ({self._diagnosis.quote(problem)})")
                # If the client has learnt from the failure, the payload is different and is sent immediately.
                if self._payload(question, max_tokens)[0] == payload:
                    if declined(problem):
                        return (Completion("", "refusal"),) * n
                    error = self._diagnosis.final(problem, self._model, self._catalogue)
                    if error:
                        raise error
                    if problem.away and await bound.watch.wait(self._diagnosis.quote(problem)):
                        started, tries = time.monotonic(), 0
                        kinds.clear()
                    else:
                        await self._pause(problem, tries, kinds[problem.kind], time.monotonic() - started)

    async def _request(self, bound: _Bound, payload: dict[str, Any], n: int) -> tuple[Completion, ...]:
        started = time.monotonic()
        body = await bound.wire.chat(payload)
        got = answers(body, n, time.monotonic() - started)
        self._dialect.accepted(payload, len(got))
        return got

    async def _pause(self, problem: CallFailure, tries: int, same: int, spent: float) -> None:
        """Wait before the next attempt, or raise the final error.

        Args:
            problem: the last failure.
            tries: number of failures since the server was last away.
            same: number of these failures that are of the same kind as `problem`.
            spent: seconds since the first attempt, or since the server was last away.
        """
        if problem.busy:
            if spent + problem.retry_after > self.settings.patience:
                raise self._diagnosis.too_busy(problem, self.settings.patience)
        elif same >= min(self.settings.attempts, TRIES.get(problem.kind, self.settings.attempts)):
            raise CallFailed(f"no answer after {same} tries ({problem.kind}: {self._diagnosis.quote(problem)})")
        await asyncio.sleep(self._backoff.delay(tries, problem.retry_after))


def _rank(error: BaseException) -> int:
    """The place of an error of a request among those of the same call. The first one is raised."""
    return 2 if isinstance(error, CallFailed) else 1 if isinstance(error, LimitReached) else 0


def _shortened(found: ContextOverflow, wanted: int, max_tokens: int) -> int:
    """Find the number of tokens that remain for an answer beside a long prompt.

    Args:
        found: the server's refusal of the request.
        wanted: maximum tokens of an answer according to the settings.
        max_tokens: maximum tokens of an answer in the refused request.

    Raises:
        ContextOverflow: the number is unknown, or too small for an answer.
    """
    room = found.limit - (found.prompt_tokens or 1) if found.limit else 0
    if min(wanted, LEAST_ANSWER) <= room < max_tokens:
        return room
    raise found
