"""A server as who answers prompts."""

from __future__ import annotations

from grace_irl.propose.chat import Question
from grace_irl.propose.client import ChatClient
from grace_irl.propose.completion import Completion
from grace_irl.propose.prompt import AnswerFormat


class Served:
    """Obeys `Chat` with a client of an OpenAI-compatible server."""

    def __init__(self, client: ChatClient) -> None:
        self.client = client

    async def answer_format(self) -> AnswerFormat:
        """See `Chat`."""
        return await self.client.detect_format()

    async def room(self) -> int | None:
        """See `Chat`."""
        length = await self.client.context_length()
        return None if length is None else max(1, length - self.client.settings.max_tokens)

    async def ask(self, question: Question) -> tuple[Completion, ...]:
        """See `Chat`.

        No seed is sent: a served model does not repeat itself to the bit anyway (batches differ), a run is repeated by
        its recording, and vLLM 0.32 on a CPU dies of a seed beside a prompt that it reads in chunks.
        """
        return await self.client.complete(question.prompt, question.n, schema=question.schema)

    async def close(self) -> None:
        """See `Chat`."""
        await self.client.close()
