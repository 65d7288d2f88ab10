"""Parts of `ChatClient` that handle failures and find out what the server can do.

`Diagnosis` turns failures into errors for the user, unless another attempt may help. `Backoff` gives the waiting times
between attempts. `ServerWatch` waits for a server that is away, once for all calls. `Catalogue` is the server's list of
models. `TRIAL` tests whether a server answers at all. The probe (`PROMPT`, `passed`) tests whether the model writes
correct JSON.
"""

from __future__ import annotations

import ast
import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grace_irl.errors import GraceError, InputError
from grace_irl.programs.parsing import parse
from grace_irl.propose.client.errors import (
    CallFailed,
    CallFailure,
    ServerGone,
    no_such_path,
    refused_key,
    unknown_model,
)
from grace_irl.propose.protocol import Completion, Prompt


@dataclass(frozen=True)
class Catalogue:
    """The models that a server lists under /v1/models; empty if the server does not list its models.

    Attributes:
        models: entries of the list; each has an "id".
    """

    models: Sequence[Mapping[str, Any]] = ()

    @property
    def names(self) -> list[str]:
        """Names of the models, in the server's order."""
        return [str(one["id"]) for one in self.models]

    @property
    def shown(self) -> str:
        """The first names of models, for a message."""
        shown = ", ".join(repr(name)[1:-1][:80] for name in self.names[:20])
        return (f"{shown}, …" if len(self.names) > 20 else shown) or "none that it lists"

    def chosen(self, wanted: str) -> str:
        """Return the name of the model to use: `wanted`, or the server's only model if `wanted` is "".

        A server may have a model without listing its name, such as an alias, a deployment of Azure, or a name with a
        suffix. So a name that the list lacks is allowed.

        Raises:
            InputError: `wanted` is "" and there is not exactly one model.
        """
        if not wanted:
            if len(self.names) != 1:
                found = f"{len(self.names)} models ({self.shown})"
                raise InputError(f"the server has {found}; expected one: name it with --model")
            return self.names[0]
        return wanted

    def lists(self, name: str) -> bool:
        """Whether the server lists this model."""
        return self._entry(name) is not None

    def unknown(self, wanted: str) -> InputError:
        """The error for a model that the server does not have."""
        return InputError(f"the server has no model {wanted!r}; it has: {self.shown}; correct --model")

    def context_length(self, model: str) -> int | None:
        """The model's context in tokens; None if the server does not report it."""
        entry = self._entry(model) or {}
        inner = entry.get("meta")
        # The field is max_model_len in vLLM, context_length in several hosted servers, meta.n_ctx in llama.cpp.
        found = [entry.get("max_model_len"), entry.get("context_length")]
        found += [inner.get("n_ctx")] if isinstance(inner, dict) else []
        return next((value for value in found if isinstance(value, int) and value > 1), None)

    def _entry(self, name: str) -> Mapping[str, Any] | None:
        # Ollama lists names with a tag, and Gemini with a folder. Users may omit both.
        return next((one for one in self.models if one["id"] in (name, f"{name}:latest", f"models/{name}")), None)


@dataclass(frozen=True)
class Diagnosis:
    """The mapping from failures of requests to errors for the user.

    Attributes:
        url: address of the server.
        has_key: whether requests contain a key.
        shown: function that makes the server's message printable and removes the key from it.
    """

    url: str
    has_key: bool
    shown: Callable[[str], str]

    def quote(self, failure: CallFailure) -> str:
        """Describe the failure, with the server's message if there is one."""
        return self.shown(f"{failure.message}: {failure.said}" if failure.said else failure.message)

    def at_first_contact(self, failure: CallFailure) -> GraceError:
        """The error for the user after a failure of the first request, which asks for the list of models."""
        if failure.kind in ("connection", "time-out"):
            return InputError(
                f"no server at {self.url}: {self.quote(failure)}; expected one that speaks OpenAI's protocol "
                "(grace-irl serve starts one), or correct --llm-url"
            )
        if refused_key(failure):
            return self._refused_key(failure)
        if 300 <= failure.status < 400:
            return self._elsewhere(failure)
        if failure.kind == "web page":
            return InputError(
                f"{self.url} answers with a web page; expected a server that speaks OpenAI's protocol: "
                "correct --llm-url"
            )
        return InputError(
            f"the server at {self.url} does not list its models ({self.quote(failure)}); "
            "name one with --model, or correct --llm-url"
        )

    def final(self, failure: CallFailure, model: str, catalogue: Catalogue) -> GraceError | None:
        """The error for the user if another attempt would fail in the same way; None if another attempt may succeed."""
        if refused_key(failure):
            return self._refused_key(failure)
        if 300 <= failure.status < 400:
            return self._elsewhere(failure)
        if failure.status == 402 or "insufficient_quota" in failure.code:
            return ServerGone(f"the server says that the account has no credit left ({self.quote(failure)})")
        if unknown_model(failure):
            return catalogue.unknown(model)
        if no_such_path(failure):
            return InputError(f"no chat completions at {self.url} ({self.quote(failure)}); correct --llm-url")
        if failure.status == 404:
            return InputError(
                f"the server at {self.url} has nothing that answers the request ({self.quote(failure)}); "
                "correct --model or --llm-url, or ask for less"
            )
        if failure.kind == "rejected":
            return CallFailed(f"the server refuses the request ({self.quote(failure)})")
        return None

    def too_busy(self, failure: CallFailure, patience: float) -> ServerGone:
        """The error for a server that stayed too busy for `patience` seconds."""
        return ServerGone(
            f"the server has been too busy for the {patience:g} s of --llm-patience ({self.quote(failure)}); "
            "try later, or ask less at once with --concurrency"
        )

    def _elsewhere(self, failure: CallFailure) -> InputError:
        return InputError(
            f"the server at {self.url} redirects requests ({self.quote(failure)}); prompts and keys go to the "
            "server that you name and to no other: expected the other's address with --llm-url"
        )

    def _refused_key(self, failure: CallFailure) -> InputError:
        found = "refuses the key" if self.has_key else "wants a key, and none is set"
        return InputError(
            f"the server {found} ({self.quote(failure)}); expected a valid one in the environment variable "
            "GRACE_IRL_API_KEY or OPENAI_API_KEY"
        )


CODE = "reward_class_code"  # key of the program in `ANSWER_SCHEMA`

SAMPLES = 4
"""Number of answers to the probe, at the run's temperature.

The probe asks the model to copy `PROGRAM` into a JSON object. If any answer fails, the client requests plain code
instead (format "code"). Plain code is better even if JSON breaks only one program in ten."""

WITHIN = 180.0  # maximum seconds of a request of the probe; a slower model writes plain code
MAX_TOKENS = 800  # maximum tokens of an answer to the probe; the copy takes about 250

PROGRAM = r'''import re


class Reward:
    """Counts "words" and 'lines'."""

    def __init__(self, extra_info=None):
        self.wanted = re.findall(r"\b[\w']+\b", extra_info or "")
        self.separator = "\t|\n"

    def reward_fn(self, state):
        text = f"{state!r}".replace("\\", "/").replace('"', "'")
        lines = text.split("\n")
        return float(sum(word in line for line in lines for word in self.wanted))
'''
"""The program that the model copies in the probe.

It has the line breaks, quotation marks and backslashes that often break in a JSON string."""

PROMPT = Prompt(
    system="You copy Python code exactly.",
    user=(
        f"Copy this program, unchanged, into the field {CODE} of a JSON object. "
        f'Write "copied" into its field reasoning.\n\n```python\n{PROGRAM}```\n'
    ),
)


TRIAL, TRIAL_TOKENS = Prompt(system="", user="Say yes."), 16
"""A prompt that every model can answer, and the maximum tokens of its answer.

If a request fails again and again, the client sends this prompt. If the server answers the prompt, the fault lies in
the request. Otherwise the server fails at every request."""


def passed(answer: Completion) -> bool:
    """Whether an answer to the probe contains `PROGRAM`. The comparison is by syntax tree."""
    if answer.finish != "stop":
        return False
    try:
        copied = json.loads(answer.text)[CODE]
        return ast.dump(parse(copied)) == ast.dump(parse(PROGRAM))
    except (ValueError, TypeError, KeyError, SyntaxError, RecursionError, MemoryError):
        return False


@dataclass(frozen=True)
class Backoff:
    """Random waiting times below a limit that doubles with each attempt ("full jitter").

    Because the times are random, calls that failed at the same time are not repeated at the same time.

    Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.

    Attributes:
        first: maximum wait before the second attempt, in seconds.
        longest: maximum wait before any attempt, in seconds. The server may request a longer wait (Retry-After).
    """

    first: float = 0.5
    longest: float = 30.0

    def delay(self, tries: int, asked: float = 0.0) -> float:
        """Seconds to wait before the next attempt.

        Args:
            tries: number of failed attempts so far.
            asked: seconds that the server asks to wait; 0 for none.
        """
        top = min(self.longest, self.first * 2.0 ** min(tries - 1, 60))
        # A random time is added to the server's wait, so that calls with equal waits are not repeated all at once.
        return asked + random.uniform(0.0, min(top, self.first) if asked else top)


OFTEN = 10.0  # maximum seconds between two checks for a server that is away


class ServerWatch:
    """The wait for a server that is away. One task checks the server, and all calls wait for this task.

    Args:
        look: function that sends a cheap request to the server, and raises `CallFailure` if the request fails.
        patience: maximum seconds to wait.
        backoff: waiting times between checks.
        on_note: callback that shows the user one line when the wait starts, and one when the server is back.
    """

    def __init__(
        self,
        look: Callable[[], Awaitable[object]],
        patience: float,
        backoff: Backoff,
        on_note: Callable[[str], None],
    ) -> None:
        self._look = look
        self._patience = patience
        self._backoff = backoff
        self._on_note = on_note
        self._task: asyncio.Task[bool] | None = None
        # True from the time-out of a wait until the server is back. While it is True, each new wait checks only once.
        self._given_up = False

    async def wait(self, why: str) -> bool:
        """Wait until the server answers. Return False if the first check succeeds, True if the server was away.

        Args:
            why: description of the failure, for messages.

        Raises:
            ServerGone: the server was away for longer than `patience`.
        """
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._until_back(why))
            self._task.add_done_callback(_looked_at)
        return await asyncio.shield(self._task)  # if one call is cancelled, the others still need the task

    def close(self) -> None:
        """Stop checking."""
        if self._task is not None:
            self._task.cancel()

    async def _until_back(self, why: str) -> bool:
        started, looks = time.monotonic(), 0
        while not await self._there():
            waited = time.monotonic() - started
            if self._given_up or waited >= self._patience:
                self._given_up = True
                raise ServerGone(
                    f"the server has been away for the {self._patience:g} s of --llm-patience ({why}); start it again"
                )
            if not looks:
                self._on_note(f"the server is away ({why}); waiting for it up to {self._patience:g} s")
            looks += 1
            await asyncio.sleep(min(self._backoff.delay(looks), OFTEN, self._patience - waited))
        self._given_up = False
        if looks:
            self._on_note(f"the server is back after {time.monotonic() - started:.0f} s")
        return looks > 0

    async def _there(self) -> bool:
        try:
            await self._look()
        except CallFailure as failure:
            return failure.kind == "rejected"  # a refusal shows that the server is there
        return True


def _looked_at(task: asyncio.Task[bool]) -> None:
    """Retrieve the task's error, so that asyncio does not log it if all waiting calls have been cancelled."""
    if not task.cancelled():
        task.exception()
