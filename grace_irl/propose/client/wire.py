"""Requests over HTTP, on OpenAI's client library, and their totals; nothing is tried twice here."""

from __future__ import annotations

import asyncio
import email.utils
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from grace_irl.errors import InputError
from grace_irl.propose.chat import Completion
from grace_irl.propose.client.errors import CallFailure, Kind
from grace_irl.propose.client.settings import ChatSettings

if TYPE_CHECKING:
    import openai


LIST = 30.0  # seconds for the list of models
CONNECT = 10.0  # seconds until a host is taken to be absent


class Wire:
    """Connections to one server, for one event loop.

    The library's own retries are off: they could neither be counted nor told apart, do not know malformed bodies,
    and end long before a server that is restarted comes back. `ChatClient` has the one loop that tries again.
    """

    def __init__(self, settings: ChatSettings, key: str) -> None:
        library = openai_library()
        self._library = library
        self._client = library.AsyncOpenAI(
            base_url=settings.url,
            api_key=key or "none",  # an empty one is refused by the library, and any will do if the server needs none
            max_retries=0,
            # The library's usual one closes itself when it is collected, in whatever event loop then runs.
            # Prompts and the key are for the server that the user named, and not for the target of a redirect.
            http_client=library.DefaultAsyncHttpxClient(
                timeout=library.Timeout(settings.timeout, connect=min(CONNECT, settings.timeout)),
                follow_redirects=False,
            ),
        )
        self._timeout = settings.timeout
        self._max_bytes = settings.max_bytes

    async def chat(self, payload: Mapping[str, Any]) -> bytes:
        """The body of the response to a chat completion.

        Raises:
            CallFailure: for everything else than a whole body with status 200.
        """
        try:
            async with asyncio.timeout(self._timeout):
                create = self._client.chat.completions.with_streaming_response.create
                async with create(**payload) as response:
                    return await self._read(response)
        except TimeoutError:
            raise CallFailure("time-out", f"no answer within {self._timeout:g} s") from None
        except self._library.OpenAIError as error:
            raise self._failure(error) from None

    async def models(self, seconds: float = LIST) -> list[dict[str, Any]]:
        """The entries of /v1/models; each has an "id".

        Raises:
            CallFailure: if it does not answer, or with something else.
        """
        try:
            async with asyncio.timeout(seconds):
                async with self._client.models.with_streaming_response.list() as response:
                    body = await self._read(response)
        except TimeoutError:
            raise CallFailure("time-out", f"no answer within {seconds:g} s") from None
        except self._library.OpenAIError as error:
            raise self._failure(error) from None
        if body.lstrip().startswith(b"<"):
            raise CallFailure("web page", "a web page", status=200)
        try:
            listed = json.loads(body)["data"]
            return [dict(one) for one in listed if isinstance(one["id"], str)]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise CallFailure("malformed body", "a list of models that is none", status=200) from None

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()

    async def _read(self, response: Any) -> bytes:
        """The body, given up if it grows too long: the rest is never read."""
        parts, size = [], 0
        try:
            async for part in response.iter_bytes():
                size += len(part)
                if size > self._max_bytes:
                    raise CallFailure("too long", f"an answer of more than {self._max_bytes} bytes", status=200)
                parts.append(part)
        except (CallFailure, self._library.OpenAIError):
            raise
        except Exception as error:  # reading a body fails in the transport's own ways, which the library does not wrap
            raise CallFailure(
                "connection", f"the connection broke in the middle ({type(error).__name__})", 200
            ) from None
        return b"".join(parts)

    def _failure(self, error: openai.OpenAIError) -> CallFailure:
        if isinstance(error, self._library.APITimeoutError):
            return CallFailure("time-out", f"no answer within {self._timeout:g} s")
        if isinstance(error, self._library.APIStatusError):
            return _of_status(error)
        cause = error.__cause__
        return CallFailure("connection", f"no connection ({cause or type(error).__name__})")


def openai_library() -> Any:
    """The module `openai`, which takes about a second to import: only who asks a model pays for it.

    Raises:
        InputError: if it is not installed.
    """
    try:
        import openai
    except ModuleNotFoundError as error:
        raise InputError(
            f"{error.name} is not installed; models are asked with: pip install 'grace-irl[llm]'"
        ) from None
    return openai


def _of_status(error: openai.APIStatusError) -> CallFailure:
    status = error.status_code
    body = error.body if isinstance(error.body, dict) else {}
    said = body.get("message") or (error.body if isinstance(error.body, str) else "")
    kind: Kind = "busy" if status == 429 else "server error" if status >= 500 or status == 408 else "rejected"
    return CallFailure(
        kind,
        f"HTTP {status}",
        status=status,
        said=str(said),
        body=body,
        retry_after=retry_after(error.response.headers),
    )


def retry_after(headers: Mapping[str, str]) -> float:
    """Seconds that a server asks to wait, from Retry-After (seconds or a date) or OpenAI's finer retry-after-ms.

    What cannot be read asks for nothing.
    """
    text = headers.get("retry-after", "")
    for number, unit in ((headers.get("retry-after-ms", ""), 1e-3), (text, 1.0)):
        try:
            seconds = float(number) * unit
        except ValueError:
            continue
        return max(0.0, seconds) if math.isfinite(seconds) else 0.0
    date = email.utils.parsedate_tz(text)
    return 0.0 if date is None else max(0.0, email.utils.mktime_tz(date) - time.time())


@dataclass
class Counters:
    """Live sums; reading them costs nothing.

    Attributes:
        calls: requests that brought answers.
        answers: in all.
        tokens_in, tokens_out: of those requests, as the server counted them.
        seconds: those requests took, added up (not wall time: requests overlap).
        retries: requests sent again after a failure.
        waits: times that the server was away and was waited for.
        failures: requests that brought no answer, by kind: "busy" (429), "server error", "connection", "time-out",
            "empty body", "malformed body", "no answer", "too long", "rejected".
        in_flight: requests right now.
    """

    calls: int = 0
    answers: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    retries: int = 0
    waits: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    in_flight: int = 0
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    _first: float | None = field(default=None, repr=False)
    _last: float = field(default=0.0, repr=False)
    _area: float = field(default=0.0, repr=False)

    def add(self, answers: Sequence[Completion]) -> None:
        """Counts the answers of one request."""
        self.calls += 1
        self.answers += len(answers)
        self.tokens_in += sum(one.tokens_in for one in answers)
        self.tokens_out += sum(one.tokens_out for one in answers)
        self.seconds += sum(one.seconds for one in answers)

    @contextmanager
    def request(self) -> Iterator[None]:
        """Holds one request in flight."""
        self._step(+1)
        try:
            yield
        finally:
            self._step(-1)

    @property
    def mean_in_flight(self) -> float:
        """Requests in flight, averaged over time from the first one's start to the last change."""
        if self._first is None or self._last <= self._first:
            return 0.0
        return self._area / (self._last - self._first)

    def _step(self, by: int) -> None:
        now = self.clock()
        if self._first is None:
            self._first = self._last = now
        self._area += self.in_flight * (now - self._last)
        self._last = now
        self.in_flight += by
