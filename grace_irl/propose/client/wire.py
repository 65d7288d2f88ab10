"""HTTP requests to a model server through OpenAI's client library. This module does not repeat failed requests."""

from __future__ import annotations

import asyncio
import email.utils
import json
import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from grace_irl.errors import InputError
from grace_irl.propose.client.errors import CallFailure, Kind
from grace_irl.propose.client.settings import ChatSettings

if TYPE_CHECKING:
    import openai


LIST = 30.0  # maximum seconds for the list of models
CONNECT = 10.0  # maximum seconds for a connection to the host, but at most half of `ChatSettings.timeout`


class Wire:
    """Connections to one server, for one event loop.

    Only `ChatClient` repeats requests. The library's own retries are off, because they cannot be counted, do not cover
    malformed bodies, and end long before a restarted server is back.
    """

    def __init__(self, settings: ChatSettings, key: str) -> None:
        library = openai_library()
        self._library = library
        self._connect = min(CONNECT, settings.timeout / 2)
        self._client = library.AsyncOpenAI(
            base_url=settings.url,
            api_key=key or "none",  # the library refuses an empty key, and a server without a key accepts any
            max_retries=0,
            # The library's default client closes itself on garbage collection, which may happen in another event loop.
            # Redirects are off, so that prompts and the key go only to the server that the user named.
            http_client=library.DefaultAsyncHttpxClient(
                timeout=library.Timeout(settings.timeout, connect=self._connect),
                follow_redirects=False,
            ),
        )
        self._timeout = settings.timeout
        self._max_bytes = settings.max_bytes

    async def chat(self, payload: Mapping[str, Any], seconds: float | None = None) -> bytes:
        """Request a chat completion. Return the body of the response.

        Args:
            payload: the body of the request.
            seconds: maximum seconds to the last byte of the response; by default `ChatSettings.timeout`.

        Raises:
            CallFailure: the response is not a complete body with status 200.
        """
        create = self._client.chat.completions.with_streaming_response.create
        return await self._body(create(**payload), seconds or self._timeout)

    async def models(self, seconds: float = LIST) -> list[dict[str, Any]]:
        """Request /v1/models. Return the entries of the list; each has an "id".

        Raises:
            CallFailure: there is no response, or the response is not a list of models.
        """
        body = await self._body(self._client.models.with_streaming_response.list(), seconds)
        if body.lstrip().startswith(b"<"):
            raise CallFailure("web page", "a web page", status=200)
        try:
            listed = json.loads(body)["data"]
            return [dict(one) for one in listed if isinstance(one["id"], str)]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise CallFailure("malformed body", "a body that is not a list of models", status=200) from None

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _body(self, request: Any, seconds: float) -> bytes:
        try:
            async with asyncio.timeout(seconds), request as response:
                return await self._read(response)
        except TimeoutError:
            raise CallFailure("time-out", f"no answer within {seconds:g} s") from None
        except self._library.OpenAIError as error:
            raise self._failure(error) from None

    async def _read(self, response: Any) -> bytes:
        """Read the body of a response. Raise CallFailure if the body exceeds `ChatSettings.max_bytes`."""
        parts, size = [], 0
        try:
            async for part in response.iter_bytes():
                size += len(part)
                if size > self._max_bytes:
                    raise CallFailure("too long", f"an answer of more than {self._max_bytes} bytes", status=200)
                parts.append(part)
        except (CallFailure, self._library.OpenAIError):
            raise
        except Exception as error:  # while a body is read, OpenAI's library does not wrap HTTP errors
            raise CallFailure(
                "connection", f"the connection broke while the answer was read ({type(error).__name__})", 200
            ) from None
        return b"".join(parts)

    def _failure(self, error: openai.OpenAIError) -> CallFailure:
        cause = error.__cause__
        if type(cause).__name__ == "ConnectTimeout":
            return CallFailure("connection", f"no connection within {self._connect:g} s")
        if isinstance(error, self._library.APITimeoutError):
            return CallFailure("time-out", f"no answer within {self._timeout:g} s")
        if isinstance(error, self._library.APIStatusError):
            return _of_status(error)
        return CallFailure("connection", f"no connection ({cause or type(error).__name__})")


def openai_library() -> Any:
    """Import the module `openai`. The import takes about a second, so it is delayed until a model is used.

    Raises:
        InputError: the module is not installed.
    """
    try:
        import openai
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is not installed; to use a model: pip install 'grace-irl[llm]'") from None
    return openai


def _of_status(error: openai.APIStatusError) -> CallFailure:
    status = error.status_code
    found: object = error.body  # the library has taken the object "error" out of the body
    if isinstance(found, list) and len(found) == 1 and isinstance(found[0], dict):  # Gemini
        found = found[0].get("error", found[0])
    body = found if isinstance(found, dict) else {}
    said = body.get("message") or (found if isinstance(found, str) else _detail(body.get("detail")))
    kind: Kind = "busy" if status == 429 else "server error" if status >= 500 or status == 408 else "rejected"
    return CallFailure(
        kind,
        f"HTTP {status}",
        status=status,
        said=str(said),
        body=body,
        retry_after=retry_after(error.response.headers),
    )


def _detail(detail: object) -> str:
    """The message in FastAPI's field `detail`: a text, or a list of faults, each with its place in the request."""
    if isinstance(detail, list):
        wrong = [one for one in detail if isinstance(one, dict)]
        return "; ".join(f"'{_last(one.get('loc'))}': {one.get('msg', '')}" for one in wrong)
    return detail if isinstance(detail, str) else ""


def _last(place: object) -> object:
    return place[-1] if isinstance(place, list) and place else "request"


def retry_after(headers: Mapping[str, str]) -> float:
    """Read the number of seconds that a server asks to wait; 0 if no header can be read.

    The headers are Retry-After (seconds or a date) and OpenAI's retry-after-ms (milliseconds), which is preferred.
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
