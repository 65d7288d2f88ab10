"""The client of a model server.

The client returns exactly the requested number of answers, and recovers from failures of the server.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from grace_irl.errors import InputError
from grace_irl.propose.client import recovery
from grace_irl.propose.client.dialect import Dialect, answers
from grace_irl.propose.client.errors import (
    BROKE,
    CallFailed,
    CallFailure,
    ContextOverflow,
    ServerGone,
    declined,
    overflow,
    refused_key,
)
from grace_irl.propose.client.recovery import Backoff, Catalogue, Diagnosis, ServerWatch
from grace_irl.propose.client.settings import ChatSettings, api_key, redactor
from grace_irl.propose.client.wire import Wire
from grace_irl.propose.json_answer import ANSWER_SCHEMA
from grace_irl.propose.protocol import AnswerFormat, Completion, LimitReached, Prompt, Question

LEAST_ANSWER = 512  # minimum tokens of room for an answer; with less room, the prompt has to become shorter
TRIES = {"time-out": 3, "too long": 2}  # maximum attempts after failures of these kinds, which take long
RETURNS = 3  # a request fails if the server has gone away and come back this number of times while it had the request


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
        trial: object that waits for a server that is there but answers no prompt, not even `recovery.TRIAL`.
        suspects: lock, so that requests during which the server went away twice are sent one at a time. Such a request
            may be the reason why the server went away.
    """

    loop: asyncio.AbstractEventLoop
    wire: Wire
    slots: asyncio.Semaphore
    opening: asyncio.Lock
    probing: asyncio.Lock
    watch: ServerWatch
    trial: ServerWatch
    suspects: asyncio.Lock


@dataclass(frozen=True)
class _Question:
    """The content of one HTTP request, which asks for `n` answers.

    With `within`, an attempt without an answer after this number of seconds is the last one, and the request fails.
    """

    prompt: Prompt
    n: int
    schema: Mapping[str, object] | None
    max_tokens: int
    within: float | None = None


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
        self._answered = 0.0  # time of the last answer
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
            InputError: the client library is missing, no server is at the address, the server refuses the key, or no
                model is named and there is not exactly one.
            ServerGone: the server was not ready within `ChatSettings.patience`.
        """
        bound = self._here()
        if not self._model:
            async with bound.opening:
                if not self._model:
                    self._catalogue = await self._listed(bound)
                    self._model = self._catalogue.chosen(self.settings.model)
        return self._model

    async def check(self) -> tuple[str, AnswerFormat]:
        """Find the model's name and the answer format, and test before a run whether the server has the model.

        Raises:
            InputError: as in `open`; also if the server does not have the model.
            ServerGone: as in `complete`.
        """
        name, auto = await self.open(), self._format is None
        if self._catalogue.models and not self._catalogue.lists(name):
            self._on_note(f"the server does not list the model {name!r}; requests name it all the same")
        if auto:
            self._on_note(
                f"the server is tried with a short prompt first, for its answer format, up to {self._within:g} s"
            )
        elif not self._catalogue.lists(name):
            with suppress(CallFailed, ContextOverflow):
                await self.complete(recovery.TRIAL, max_tokens=recovery.TRIAL_TOKENS, within=self._within)
        return name, await self.answer_format()

    async def complete(
        self,
        prompt: Prompt,
        n: int = 1,
        *,
        answer: AnswerFormat | None = None,
        max_tokens: int | None = None,
        schema: Mapping[str, object] = ANSWER_SCHEMA,
        within: float | None = None,
    ) -> tuple[Completion, ...]:
        """Request exactly `n` answers to a prompt.

        Args:
            prompt: the prompt.
            n: number of answers, 1 or more. If the server returns fewer, the client sends further requests.
            answer: format of the answers; by default the result of `answer_format`. With "json" the schema is sent.
            max_tokens: maximum tokens of each answer; by default the settings' value.
            schema: JSON schema of answers in the format "json".
            within: maximum seconds of one request. A request that takes longer fails and is not repeated. By default,
                the maximum is `ChatSettings.timeout`, with up to three attempts.

        Raises:
            CallFailed: the last attempt failed. The error's `answers` are the answers that have arrived. If there are
                any, CallFailed also replaces InputError, LimitReached and ServerGone, and has the replaced error as
                `ending`.
            LimitReached: a limit of the run forbids the first request.
            ContextOverflow: the prompt leaves no room for an answer.
            InputError: as in `open`; also if the server refuses the key later.
            ServerGone: the server was away, too busy, or failed at every request for longer than
                `ChatSettings.patience`.
        """
        sent = schema if (answer or await self.answer_format()) == "json" else None
        await self.open()
        most = max_tokens or self.settings.max_tokens
        got: list[Completion] = []
        while len(got) < n:
            size = min(n - len(got), self._dialect.most_choices or n)
            questions = [_Question(prompt, min(size, n - at), sent, most, within) for at in range(len(got), n, size)]
            parts = await asyncio.gather(*map(self._ask, questions), return_exceptions=True)
            got += [one for part in parts if not isinstance(part, BaseException) for one in part]
            errors = [part for part in parts if isinstance(part, BaseException)]
            # An error that ends the run is raised before a `CallFailed`, which concerns only this call.
            for error in sorted(errors, key=_rank):
                if isinstance(error, CallFailed):
                    raise CallFailed(str(error), tuple(got)) from None
                if got and isinstance(error, (InputError, LimitReached, ServerGone)):
                    raise CallFailed(str(error), tuple(got), error) from None
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
            bound.trial.close()
            await bound.wire.close()

    def _here(self) -> _Bound:
        loop = asyncio.get_running_loop()
        if self._bound is None or self._bound.loop is not loop:
            wire = Wire(self.settings, self._key)

            async def tried() -> None:
                trial = _Question(recovery.TRIAL, 1, None, recovery.TRIAL_TOKENS)
                await self._request(wire, *self._payload(trial, trial.max_tokens))

            patience = self.settings.patience
            self._bound = _Bound(
                loop=loop,
                wire=wire,
                slots=asyncio.Semaphore(self.settings.concurrency),
                opening=asyncio.Lock(),
                probing=asyncio.Lock(),
                watch=ServerWatch(wire.models, patience, self._backoff, self._on_note),
                trial=ServerWatch(tried, patience, self._backoff, self._on_note),
                suspects=asyncio.Lock(),
            )
        return self._bound

    async def _listed(self, bound: _Bound) -> Catalogue:
        try:
            return Catalogue(await bound.wire.models())
        except CallFailure as failure:
            problem = failure
        if problem.busy or problem.status in (500, 504, 524):  # the server is there, and may be loading its model
            await bound.watch.wait(self._diagnosis.quote(problem))
            try:
                return Catalogue(await bound.wire.models())
            except CallFailure as failure:
                problem = failure
        hopeless = problem.status == 0 or refused_key(problem)
        hopeless = hopeless or 300 <= problem.status < 400 or problem.kind == "web page"
        if self.settings.model and not hopeless:  # not every server lists its models
            return Catalogue()
        raise self._diagnosis.at_first_contact(problem)

    @property
    def _within(self) -> float:
        """Maximum seconds of a request that is sent before a run, such as the probe."""
        return min(self.settings.timeout, recovery.WITHIN)

    async def _probed(self) -> AnswerFormat:
        most = min(self.settings.max_tokens, recovery.MAX_TOKENS)
        try:
            asked = await self.complete(
                recovery.PROMPT, recovery.SAMPLES, answer="json", max_tokens=most, within=self._within
            )
        except (CallFailed, ContextOverflow) as error:
            if isinstance(error, CallFailed) and error.ending:
                raise error.ending from None
            self._on_note(f"the model writes code outside JSON: the test of JSON failed ({error})")
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
            started, tries, kinds, returns, said = time.monotonic(), 0, Counter[str](), 0, ""
            while True:
                payload, n = self._payload(question, max_tokens)
                try:
                    async with bound.suspects if returns > 1 else nullcontext():
                        if returns > 1:  # the request before this one may have brought the server down
                            await bound.watch.wait(said)
                        sent = time.monotonic()
                        return await self._request(bound.wire, payload, n, question.within)
                except CallFailure as failure:
                    problem = failure
                said = self._diagnosis.quote(problem)
                kinds[problem.kind] += 1
                tries += 1
                too_long = overflow(problem, max_tokens)
                if too_long:  # the message may name max_tokens, which the server accepts
                    max_tokens = _shortened(too_long, question.max_tokens, max_tokens)
                else:
                    for note in self._dialect.learn(problem, payload, kinds[problem.kind]):
                        self._on_note(f"{note} ({said})")
                # If the client has learnt from the failure, the payload is different and is sent immediately.
                if self._payload(question, max_tokens)[0] != payload:
                    continue
                if declined(problem):
                    return (Completion("", "refusal"),) * n
                error = self._diagnosis.final(problem, self._model, self._catalogue)
                if error:
                    raise error
                if question.within and problem.kind == "time-out":
                    raise CallFailed(said)
                if await self._back(bound, problem, kinds[problem.kind], sent):
                    # A failure counts if this request may have brought the server down. Of the statuses of a busy
                    # server, only those in `BROKE` suggest so.
                    returns += not problem.busy or problem.status in BROKE
                    if returns == RETURNS:
                        raise CallFailed(
                            f"no answer: the server went away {returns} times while it had this request ({said})"
                        )
                    started, tries = time.monotonic(), 0
                    kinds.clear()
                else:
                    if problem.busy and time.monotonic() - started + problem.retry_after > self.settings.patience:
                        raise self._diagnosis.too_busy(problem, self.settings.patience)
                    await asyncio.sleep(self._backoff.delay(tries, problem.retry_after))

    async def _request(
        self, wire: Wire, payload: dict[str, Any], n: int, within: float | None = None
    ) -> tuple[Completion, ...]:
        started = time.monotonic()
        body = await wire.chat(payload, within)
        got = answers(body, n, time.monotonic() - started)
        self._answered = time.monotonic()
        self._dialect.accepted(payload, len(got))
        return got

    async def _back(self, bound: _Bound, problem: CallFailure, same: int, sent: float) -> bool:
        """Wait for the server if it is away after a failure. Return True if it was away and is back.

        The caller then counts attempts anew.

        Args:
            bound: connections to the server.
            problem: the failure.
            same: number of failures of this kind since the first attempt, or since the server was last away.
            sent: time at which the last attempt began.

        Raises:
            CallFailed: the attempts are used up, and the server answers other requests.
            ServerGone: the server did not come back within `ChatSettings.patience`.
        """
        said = self._diagnosis.quote(problem)
        if problem.away and await bound.watch.wait(said):
            return True
        if problem.busy or same < min(self.settings.attempts, TRIES.get(problem.kind, self.settings.attempts)):
            return False
        # A server that fails at every request is away. Otherwise its failures would become results of the run.
        if problem.kind != "too long" and self._answered < sent and await bound.trial.wait(said):
            return True
        raise CallFailed(f"no answer after {same} tries ({problem.kind}: {said})")


def _rank(error: BaseException) -> int:
    """The sort key of an error, among the errors of one call's requests. The first error is raised."""
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
