"""Client of model servers that use OpenAI's chat protocol: vLLM, llama.cpp, hosted services (docs/models.md)."""

from grace_irl.propose.client.chat import ChatClient
from grace_irl.propose.client.errors import CallFailed, ContextOverflow, ServerGone
from grace_irl.propose.client.settings import ChatSettings

__all__ = ["CallFailed", "ChatClient", "ChatSettings", "ContextOverflow", "ServerGone"]
