"""A request that brought no answer, and what may be done about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "busy",
    "server error",
    "connection",
    "time-out",
    "empty body",
    "malformed body",
    "web page",
    "no answer",
    "too long",
    "rejected",
]

LONGEST = 10_000  # characters of a server's words that are searched for reasons


@dataclass(eq=False)
class Failure(Exception):  # noqa: N818  a failed request is no defect
    """Inside the client only; what leaves it is in `errors.py`.

    Attributes:
        kind: for counting and for what to do.
        message: what happened, in a few words that can be shown.
        status: of HTTP; 0 without a response.
        said: the server's own words, which may hold anything.
        body: the error object of the response, {} without one.
        retry_after: seconds that the server asks to wait; 0 where it does not.
    """

    kind: Kind
    message: str
    status: int = 0
    said: str = ""
    body: dict[str, object] | None = None
    retry_after: float = 0.0

    def __post_init__(self) -> None:
        self.said = self.said[:LONGEST]

    @property
    def away(self) -> bool:
        """Nobody listens, or a proxy says that nobody does: worth a look whether the server is there at all."""
        return (self.kind == "connection" and self.status == 0) or self.status in (502, 503)

    @property
    def busy(self) -> bool:
        """The server answers, and takes no work for now."""
        return self.kind == "busy" or self.status in (502, 503)

    @property
    def code(self) -> str:
        """The server's own code or type of the error, as words."""
        body = self.body or {}
        return f"{body.get('code', '')} {body.get('type', '')}".strip()
