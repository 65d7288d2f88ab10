"""Settings of a client of a model server, and the server's key."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from grace_irl.errors import InputError
from grace_irl.propose.protocol import AnswerFormat


@dataclass(frozen=True)
class ChatSettings:
    """Settings of a `ChatClient`. The server's key is not a setting, but comes from the environment (`api_key`).

    `grace_irl.config` declares the user's settings and checks their ranges.

    Attributes:
        url: address of the server, such as http://127.0.0.1:8000; the path /v1 is added if there is none.
        model: the model's name on the server; "" selects the only model.
        temperature: sampling temperature.
        max_tokens: maximum tokens of one answer.
        concurrency: maximum number of requests in parallel, at most 1,000. More than 1,000 requests would wait inside
            the client library.
        patience: seconds to wait for a server that is away or too busy, before the run stops.
        timeout: maximum seconds from a request to the last byte of its response. The default is long, because a model
            on a CPU takes minutes.
        answer_format: format of answers. "auto" tests with a probe whether the model writes correct JSON.
        attempts: maximum number of attempts at one request while the server can be reached.
        max_bytes: maximum size of one response in bytes. A larger response is a failure.
    """

    url: str
    model: str = ""
    temperature: float = 0.8
    max_tokens: int = 4096
    concurrency: int = 32
    patience: float = 600.0
    timeout: float = 600.0
    answer_format: Literal["auto"] | AnswerFormat = "auto"
    attempts: int = 6
    max_bytes: int = 2_000_000

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", normalised(self.url))

    def room(self, context: int) -> int:
        """Maximum tokens of a prompt if the context has `context` tokens. An answer takes at most half of them."""
        return max(1, context - min(self.max_tokens, max(context // 2, 1)))


def normalised(url: str) -> str:
    """Normalise a server's address to the base address of its API.

    Trailing slashes and the paths of calls, such as /models, are removed. If there is no path, /v1 is added.

    Raises:
        InputError: `url` is not an HTTP address, or has a part that may contain a key, such as a query.
    """
    example = "such as http://127.0.0.1:8000"
    text = url.strip()
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise InputError(f"server address {text!r}: {error}; expected one {example}") from None
    if parts.username or parts.password or parts.query or parts.fragment:
        # The address may contain a key, so the message does not show it.
        raise InputError(
            "the server address carries more than scheme, host, port and path; "
            f"expected one {example}, and a key in the environment variable GRACE_IRL_API_KEY"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise InputError(f"server address {text!r}; expected one {example}")
    path = parts.path.rstrip("/").removesuffix("/models").removesuffix("/chat/completions").rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path or '/v1'}"


def origin(url: str) -> str:
    """The scheme, host and port of a server's address."""
    parts = urlsplit(normalised(url))
    return f"{parts.scheme}://{parts.netloc}"


VARIABLES = ("GRACE_IRL_API_KEY", "OPENAI_API_KEY")  # variables for the key; the first one that is set is used
LONGEST_QUOTE = 300  # maximum characters of a server's message that a user sees


def key_variable() -> str:
    """The name of the environment variable that holds the key; "" if none is set."""
    return next((name for name in VARIABLES if os.environ.get(name, "").strip()), "")


def api_key() -> str:
    """The server's key; "" if the environment has none. Local servers need no key.

    Raises:
        InputError: the key contains characters that an HTTP header cannot carry. The message does not show the key.
    """
    name = key_variable()
    key = os.environ.get(name, "").strip() if name else ""
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise InputError(f"{name} is no key: it holds spaces, line breaks or letters outside ASCII")
    return key


def redactor(key: str) -> Callable[[str], str]:
    """Return a function that turns a server's message into one short, printable line without the key."""

    def redacted(text: str) -> str:
        shown = text.replace(key, "[key]") if key else text
        line = " ".join("".join(sign if sign.isprintable() else " " for sign in shown).split())
        return line if len(line) <= LONGEST_QUOTE else f"{line[: LONGEST_QUOTE - 1]}…"

    return redacted
