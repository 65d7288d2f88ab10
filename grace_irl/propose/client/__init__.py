"""Client of servers with OpenAI's chat protocol: vLLM, llama.cpp, hosted ones (docs/models.md)."""

from grace_irl.propose.client.chat import ChatClient
from grace_irl.propose.client.errors import CallFailed, ContextOverflow, ServerGone
from grace_irl.propose.client.settings import ChatSettings

__all__ = ["CallFailed", "ChatClient", "ChatSettings", "ContextOverflow", "ServerGone"]
