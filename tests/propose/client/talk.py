"""Talk between the tests of the client and a server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from grace_irl.propose.client import ChatClient, ChatSettings
from grace_irl.propose.client.recovery import Backoff
from grace_irl.propose.protocol import Prompt
from tests.propose.client.server import ChatServer

T = TypeVar("T")


PROMPT = Prompt("who you are", "what to do")


SOON = Backoff(first=0.002, longest=0.02)


class Talk:
    """A client with its notes, used in one event loop."""

    def __init__(self, server: ChatServer, **settings: Any) -> None:
        self.notes: list[str] = []
        usual = {"answer_format": "code", "patience": 10.0, "timeout": 20.0}
        self.client = ChatClient(ChatSettings(server.url, **usual | settings), self.notes.append, backoff=SOON)

    def run(self, action: Callable[[ChatClient], Awaitable[T]]) -> T:
        async def inside() -> T:
            async with self.client as client:
                return await action(client)

        return asyncio.run(inside())

    def texts(self, n: int = 1, **more: Any) -> list[str]:
        """Of one call."""
        return [one.text for one in self.run(lambda client: client.complete(PROMPT, n, **more))]
