"""A chat server of our own that answers, and misbehaves, as it is told. It runs in a thread, over real HTTP.

For tests of whatever asks a model:

    with ChatServer(answer=lambda prompt: "...", latency=lambda count: 2.0) as server:
        ChatClient(ChatSettings(server.url))

`answer` gets the texts of the system and of the user, joined by an empty line (`Prompt.text`), and is called once per
choice. A script of behaviours is used up first, one per chat request, in the order of arrival; a rule sees every
request's payload and may answer it by a behaviour.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any


@dataclass(frozen=True)
class Behaviour:
    """How one request is answered.

    Attributes:
        status: of HTTP.
        body: sent as it is; None is a chat completion.
        headers: beside the usual ones.
        choices: at most so many in a chat completion; None as many as asked for.
        finish: of every choice.
        sent: share of the body that is sent before the connection breaks; 1 sends all of it.
        reset: break the connection by a reset rather than by closing it.
        wait: seconds before the first byte.
        edit: changes the chat completion before it is sent.
    """

    status: int = 200
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    choices: int | None = None
    finish: str = "stop"
    sent: float = 1.0
    reset: bool = False
    wait: float = 0.0
    edit: Callable[[dict[str, Any]], object] = lambda completion: completion


def error(status: int, message: str = "", headers: Mapping[str, str] | None = None, **fields: object) -> Behaviour:
    """An error object as OpenAI's, vLLM's and llama.cpp's servers send it."""
    body = json.dumps({"error": {"message": message, **fields}}).encode()
    return Behaviour(status=status, body=body, headers=headers or {})


def unlisted(server: ChatServer) -> Callable[[dict[str, Any]], Behaviour | None]:
    """A rule: every model that the server does not list is refused, as vLLM does it."""
    known = [one["id"] for one in server.models]
    return lambda sent: (
        None if sent["model"] in known else error(404, f"The model `{sent['model']}` does not exist.", code=404)
    )


OK = Behaviour()
RESET = Behaviour(sent=0.0, reset=True)
CLOSED = Behaviour(sent=0.0)
RESET_MIDWAY = Behaviour(sent=0.5, reset=True)
CLOSED_MIDWAY = Behaviour(sent=0.5)
EMPTY = Behaviour(body=b"")
MALFORMED = Behaviour(body=b'{"choices": [{"mess')
NO_CHOICE = Behaviour(choices=0)
BUSY = error(429, "slow down")
BROKEN = error(500, "internal error")
NOT_READY = error(503, "loading model")


def huge(size: int) -> Behaviour:
    """An answer of so many bytes, whole and valid."""
    head, tail = b'{"choices": [{"message": {"content": "', b'"}}]}'
    return Behaviour(body=head + b"a" * (size - len(head) - len(tail)) + tail)


@dataclass
class ChatServer:
    """A context manager; `stop` and `start` in between keep the port.

    Attributes:
        answer: from the prompt's text to a choice's text; by default every text is another one.
        latency: from the number of the request (from 0) to seconds before the answer.
        script: behaviours of the next chat requests, used up from the front.
        rule: from a payload to a behaviour, or None for the script's or the usual one.
        models: as /v1/models lists them.
        models_status, models_body: of /v1/models, where it is to answer otherwise.
        payloads: of all chat requests, in the order of arrival.
        authorizations: headers of all requests.
        served: texts of all choices that were sent whole, with status 200 and as a chat completion.
        tokens_in, tokens_out: as told in the usage of those.
        most_in_flight: requests at one time.
    """

    answer: Callable[[str], str] | None = None
    latency: Callable[[int], float] = lambda count: 0.0
    script: list[Behaviour] = field(default_factory=list)
    rule: Callable[[dict[str, Any]], Behaviour | None] = lambda payload: None
    models: list[dict[str, Any]] = field(default_factory=lambda: [{"id": "model"}])
    models_status: int = 200
    models_body: bytes | None = None
    payloads: list[dict[str, Any]] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)
    served: list[str] = field(default_factory=list)
    tokens_in: int = 0
    tokens_out: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    port: int = 0

    @property
    def url(self) -> str:
        """Of the server, without a path."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> ChatServer:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="chat server", daemon=True)
        self._thread.start()
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def start(self) -> None:
        """Listens, again on the same port."""
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)

    def stop(self) -> None:
        """Stops listening and breaks all connections, answers half sent included."""
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)

    def extend(self, behaviours: Iterable[Behaviour]) -> None:
        """Adds to the script."""
        self.script += behaviours

    async def _start(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._one(reader, writer):
                    pass
        except asyncio.CancelledError:
            pass  # the server stops
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; whether the connection goes on."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path = head[0].split()[1]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        content = await reader.readexactly(int(headers.get("content-length", "0")))
        self.authorizations.append(headers.get("authorization", ""))
        if path == "/v1/models":
            body = json.dumps({"object": "list", "data": self.models}).encode()
            return await self._send(writer, Behaviour(self.models_status, self.models_body), body)
        if path != "/v1/chat/completions":
            return await self._send(writer, error(404, "Not Found"), b"")
        count = len(self.payloads)
        payload = json.loads(content)
        self.payloads.append(payload)
        behaviour = self.rule(payload) or (self.script.pop(0) if self.script else OK)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(behaviour.wait + self.latency(count))
            completion = self._completion(payload, behaviour, count)
        finally:
            self.in_flight -= 1
        body = json.dumps(behaviour.edit(completion)).encode()
        # Counted before it is sent: the one who gets it may look at once.
        if behaviour.sent >= 1.0 and behaviour.status == 200 and behaviour.body is None and completion["choices"]:
            self.served += [choice["message"]["content"] for choice in completion["choices"]]
            self.tokens_in += completion["usage"]["prompt_tokens"]
            self.tokens_out += completion["usage"]["completion_tokens"]
        return await self._send(writer, behaviour, body)

    def _completion(self, payload: dict[str, Any], behaviour: Behaviour, count: int) -> dict[str, Any]:
        wanted = payload.get("n", 1)
        prompt = prompt_text(payload)
        texts = [
            self.answer(prompt) if self.answer else f"answer {count} choice {index} of {prompt}"
            for index in range(wanted if behaviour.choices is None else min(wanted, behaviour.choices))
        ]
        return {
            "object": "chat.completion",
            "model": payload["model"],
            "choices": [
                {"index": index, "message": {"role": "assistant", "content": text}, "finish_reason": behaviour.finish}
                for index, text in enumerate(texts)
            ],
            "usage": {
                "prompt_tokens": len(prompt.split()),
                "completion_tokens": sum(len(text.split()) for text in texts),
            },
        }

    async def _send(self, writer: asyncio.StreamWriter, behaviour: Behaviour, usual: bytes) -> bool:
        body = usual if behaviour.body is None else behaviour.body
        lines = [f"HTTP/1.1 {behaviour.status} Said", "content-type: application/json", f"content-length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in behaviour.headers.items()]
        message = "\r\n".join([*lines, "", ""]).encode() + body
        if behaviour.sent >= 1.0:
            writer.write(message)
            await writer.drain()
            return True
        if behaviour.sent > 0:
            writer.write(message[: len(message) - len(body) + int(len(body) * behaviour.sent)])
            await writer.drain()
            await asyncio.sleep(0.05)  # let it arrive before the connection breaks
        if behaviour.reset:
            connection: socket.socket = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False


def prompt_text(payload: Mapping[str, Any]) -> str:
    """The texts of a request's messages, as `Prompt.text` joins them."""
    texts = []
    for message in payload["messages"]:
        content = message["content"]
        texts.append(content if isinstance(content, str) else content[0]["text"])
    return "\n\n".join(texts)
