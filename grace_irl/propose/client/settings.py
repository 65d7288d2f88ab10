"""Settings of requests to a model."""

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
    """A server, and how it is asked. Holds no key: that comes from the environment (`api_key`).

    Ranges of what a user gives are checked where it is declared (`grace_irl.config`).

    Attributes:
        url: of the server, such as http://127.0.0.1:8000; the path /v1 is added if there is none.
        model: as the server names it; "" takes the only one that it serves.
        temperature: of sampling.
        max_tokens: most tokens of one answer.
        concurrency: most requests in flight; more than 1,000 would wait inside the client library, unseen.
        patience: seconds to wait for a server that went away or is too busy, before the run stops.
        timeout: seconds for one request, first byte to last. A first request with `n` above 1 can take 20 s, and a
            model on a CPU minutes.
        answer_format: "auto" finds out by a probe whether JSON costs the model anything.
        attempts: at one request while the server is there.
        max_bytes: of one response; what is longer is cut off and counted as a failure.
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


def normalised(url: str) -> str:
    """The base of the API: without a closing slash or the name of a call, and with /v1 if it has no path.

    Raises:
        InputError: for what is no HTTP address, and for one that carries a key.
    """
    example = "such as http://127.0.0.1:8000"
    text = url.strip()
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise InputError(f"server address {text!r}: {error}; expected one {example}") from None
    if parts.username or parts.password or parts.query or parts.fragment:
        # The address may carry a key, so it is not shown.
        raise InputError(
            "the server address carries more than scheme, host, port and path; "
            f"expected one {example}, and a key in the environment variable GRACE_IRL_API_KEY"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise InputError(f"server address {text!r}; expected one {example}")
    path = parts.path.rstrip("/").removesuffix("/models").removesuffix("/chat/completions").rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path or '/v1'}"


def origin(url: str) -> str:
    """Scheme, host and port of a server: who gets what is sent there."""
    parts = urlsplit(normalised(url))
    return f"{parts.scheme}://{parts.netloc}"


VARIABLES = ("GRACE_IRL_API_KEY", "OPENAI_API_KEY")
LONGEST_QUOTE = 300


def key_variable() -> str:
    """The environment variable that holds the key, or ""."""
    return next((name for name in VARIABLES if os.environ.get(name, "").strip()), "")


def api_key() -> str:
    """The key, or "" if the environment has none (a local server needs none).

    Raises:
        InputError: for a key that no HTTP header can carry; it is not shown.
    """
    name = key_variable()
    key = os.environ.get(name, "").strip() if name else ""
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise InputError(f"{name} is no key: it holds spaces, line breaks or letters outside ASCII")
    return key


def redactor(key: str) -> Callable[[str], str]:
    """From a server's words to one line that can be shown: short, printable, without the key."""

    def redacted(text: str) -> str:
        shown = text.replace(key, "[key]") if key else text
        line = " ".join("".join(sign if sign.isprintable() else " " for sign in shown).split())
        return line if len(line) <= LONGEST_QUOTE else f"{line[: LONGEST_QUOTE - 1]}…"

    return redacted
