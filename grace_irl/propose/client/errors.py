"""Errors of the client of a model server, and functions that find the reason of a refusal in the server's message."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from grace_irl.errors import GraceError
from grace_irl.propose.protocol import Completion


class ServerGone(GraceError):  # noqa: N818  the name says what happened
    """The server cannot be used for now. A run that has begun can be resumed later.

    The server was away, too busy or failing at every request for longer than `ChatSettings.patience`. Or the account
    has no credit left.
    """


class CallFailed(GraceError):  # noqa: N818  the name says what happened
    """A call failed permanently, although the server works. The caller may continue with other calls.

    Attributes:
        answers: the call's answers that have arrived. A call may send several requests, of which some may succeed.
        ending: the error that ends the run, if it stopped the call after some answers had arrived. The caller first
            keeps the answers, which are paid for, and then raises this error. None if the caller may continue.
    """

    def __init__(self, message: str, answers: tuple[Completion, ...] = (), ending: GraceError | None = None) -> None:
        super().__init__(message)
        self.answers = answers
        self.ending = ending


class ContextOverflow(GraceError):  # noqa: N818  the name says what happened
    """A prompt leaves no room for an answer in the model's context. The prompt must be shortened.

    Attributes:
        limit: the model's context in tokens; None if the server does not report it.
        prompt_tokens: lower bound on the prompt's tokens; None if the server does not report it.
    """

    def __init__(self, limit: int | None, prompt_tokens: int | None) -> None:
        found = f"{prompt_tokens} tokens or more" if prompt_tokens else "more"
        expected = f"{limit} tokens" if limit else "the model's context"
        super().__init__(
            f"a prompt of {found}, beside the room for an answer, does not fit into {expected}; "
            "show the model less, ask for shorter answers, or serve it with a longer context"
        )
        self.limit = limit
        self.prompt_tokens = prompt_tokens


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

LONGEST = 10_000  # maximum characters of a server's message that are kept
# A proxy that reaches no server sends one of these statuses (520 and above: Cloudflare). A busy server may, too.
AWAY = (502, 503, 520, 521, 522, 523)
BROKE = (502, 520)  # statuses in `AWAY` that a proxy sends if the server breaks down during a request
OVERLOADED = 529  # Anthropic's status for a busy server


@dataclass(eq=False)
class CallFailure(Exception):  # noqa: N818  a failed request is no defect
    """The failure of one HTTP request. The client repeats the request, or raises another error for the caller.

    Attributes:
        kind: kind of failure, which decides what the client does.
        message: a short description for the user.
        status: HTTP status; 0 without a response.
        said: the server's own message, cut to `LONGEST` characters.
        body: the error object of the response; None or {} if the response has none.
        retry_after: seconds that the server asks the client to wait; 0 if it gives no time.
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
        """Whether the server may be away: there is no connection, or a proxy reaches no server."""
        return (self.kind == "connection" and self.status == 0) or self.status in AWAY

    @property
    def busy(self) -> bool:
        """Whether the server may be present but too busy for a request."""
        return self.kind == "busy" or self.status in (*AWAY, OVERLOADED)

    @property
    def code(self) -> str:
        """The error's code and type in the response, as one text."""
        body = self.body or {}
        return f"{body.get('code', '')} {body.get('type', '')}".strip()


# Patterns for the model's context in tokens, in the messages of different servers.
_LIMIT = (
    # OpenAI, vLLM: "This model's maximum context length is 8192 tokens. However, …"
    r"maximum context length (?:is|of) (\d+)",
    # vLLM: "longer than the maximum model length of 8192"; "cannot be greater than max_model_len=8192"
    r"maximum model length of (\d+)",
    r"max_model_len=(\d+)",
    # vLLM: "exceeds model's maximum context length (8192)"; SGLang: "the model's context length (8192 tokens)"
    # llama.cpp: "the request exceeds the available context size (4096 tokens)"
    r"context (?:length|size) \((\d+)",
    # vLLM: "You passed 9000 input tokens and …. However, the model's context length is only 8192 tokens"
    r"context length is only (\d+) tokens",
    # Mistral: "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"
    r"model with (\d+) maximum context length",
    # llama-cpp-python: "Requested tokens (2285) exceed context window of 2048"
    r"context window of (\d+)",
    # Anthropic: "prompt is too long: 210000 tokens > 200000 maximum"
    r"tokens > (\d+) maximum",
    # Anthropic: "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"
    r"context limit: \d+ \+ \d+ > (\d+)",
    # TGI: "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3500 `inputs` tokens and 1024 `max_new_tokens`"
    r"`max_new_tokens` must be <= (\d+)",
    r"`inputs` must have less than (\d+) tokens",
    # Gemini: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
    r"maximum number of tokens allowed \(?(\d+)",
    # OpenAI: "Input tokens exceed the configured limit of 272000 tokens."
    r"configured limit of (\d+) tokens",
)
# Patterns for the number of tokens of the prompt.
_PROMPT = (
    # vLLM: "your prompt contains at least 8193 input tokens", "your request has 30 input tokens"
    r"(?:contains|contains at least|has) (\d+) input tokens",
    r"[Ii]nput length \((\d+)\)",
    # OpenAI: "you requested 9000 tokens (1000 in the messages, 8000 in the completion)"
    r"(\d+) in the messages",
    r"messages resulted in (\d+) tokens",
    r"prompt \(length (\d+)\)",
    r"Requested tokens \((\d+)\)",
    r"too long: (\d+) tokens",
    r"(\d+) tokens from the input messages",  # SGLang
    r"[Ii]nput \((\d+) tokens\)",
    r"(\d+) of text input",  # OpenRouter: "about 140000 tokens (135904 of text input, 4096 in the output)"
    r"passed (\d+) input tokens",
    r"Prompt contains (\d+) tokens",
    r"context limit: (\d+) \+",
    r"Given: (\d+)",
    r"input token count \((\d+)\)",
)
_OVERFLOW = re.compile(
    r"context[_ ](?:length|size|window|limit\b)|maximum (?:model|context) length|max_model_len|prompt is too long"
    r"|`inputs` (?:tokens \+|must have less)|input token count\b.*\bexceeds|exceed the configured limit of",
    re.IGNORECASE,
)
# Groq, with status 413, and OpenAI, with 429: "Request too large for `x` … on tokens per minute (TPM): Limit 6000,
# Requested 7432, please reduce your message size". No wait helps. The server counts `max_tokens` with the prompt.
_TOO_LARGE = re.compile(r"Request too large for .*: Limit (\d+), Requested (\d+)", re.DOTALL)
# Patterns for the maximum tokens of an answer.
_ANSWER = (
    # OpenAI: "max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you"
    r"supports at most (\d+) completion tokens",
    # Anthropic: "max_tokens: 9000 > 8192, which is the maximum allowed number of output tokens"
    r"max_tokens: \d+ > (\d+), which is the maximum",
    # DeepSeek: "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"
    r"range of max_(?:completion_)?tokens is \[\d+, ?(\d+)\]",
    # Groq: "`max_tokens` must be less than or equal to `8192`"
    r"max_(?:completion_)?tokens\W{1,3}must be less than or equal to \W?(\d+)",
)
_ROLE = re.compile(r"system role|system message|roles must alternate|only user and assistant roles", re.IGNORECASE)
_MODEL = re.compile(
    # vLLM, OpenAI: "The model `x` does not exist"; DeepSeek: "Model Not Exist"; Gemini: "models/x is not found for API"
    r"\bmodels?\b.{0,80}\bnot (?:exist|found)\b|model_not_found"
    # LiteLLM: "Invalid model name passed in model=x"; Mistral: "Invalid model: x"; OpenRouter: "x is not a valid model"
    r"|\binvalid model(?: name\b|:)|\bunknown model\b|\bnot a valid model\b"
    # Anthropic: "model: x", Azure: "The API deployment for this resource does not exist"
    r"|not_found_error model:|DeploymentNotFound",
    re.IGNORECASE,
)

_FLAGGED = re.compile(r"\bmoderation\b|\bflagged\b", re.IGNORECASE)
_KEY = re.compile(r"\bAPI key (?:not valid|expired|is invalid)|\b(?:invalid|incorrect) API key\b", re.IGNORECASE)
# Servers that have nothing at the path say nothing, or: "Not Found", "404 page not found", "Invalid URL (POST /chat)".
_NOWHERE = re.compile(r"^\W*$|\bnot found\W*$|\binvalid url\b|^\s*<", re.IGNORECASE)


def overflow(failure: CallFailure, max_tokens: int = 0) -> ContextOverflow | None:
    """Return the error for a request that exceeds the model's context; None for any other failure.

    An account's limit of tokens per minute counts as the context if it is too low for the request.

    Args:
        failure: the refusal.
        max_tokens: maximum tokens of an answer in the request.
    """
    body = failure.body or {}
    if failure.status in (413, 429) and (found := _TOO_LARGE.search(failure.said)):
        return ContextOverflow(int(found[1]), max(int(found[2]) - max_tokens, 1))
    if failure.status not in (400, 413, 422, 500) or longest_answer(failure):
        return None
    # llama.cpp answers with status 400 or 500, depending on its version. `body` has both numbers of tokens.
    if "exceed_context_size" not in failure.code and not (
        failure.status != 500 and _OVERFLOW.search(f"{failure.code} {failure.said}")
    ):
        return None
    limit, prompt = body.get("n_ctx"), body.get("n_prompt_tokens")
    return ContextOverflow(
        limit if isinstance(limit, int) else _first(_LIMIT, failure.said),
        prompt if isinstance(prompt, int) else _first(_PROMPT, failure.said),
    )


def longest_answer(failure: CallFailure) -> int | None:
    """The maximum tokens of an answer, from a refusal that names it; None for any other failure."""
    return _first(_ANSWER, failure.said) if failure.status in (400, 422) else None


def rejected_parameters(failure: CallFailure, sent: set[str]) -> set[str]:
    """Find the parameters that a refusal names, in its field `param` or in its message.

    Args:
        failure: the refusal.
        sent: names of the optional parameters in the request.
    """
    if failure.status not in (400, 422):
        return set()
    named = (failure.body or {}).get("param")
    if isinstance(named, str) and named.split(".")[0] in sent:
        return {named.split(".")[0]}
    return {name for name in sent if _names(name, failure.said)}


def refuses_system_role(failure: CallFailure) -> bool:
    """Whether the failure says that the model accepts no system message."""
    return failure.status in (400, 422, 500) and bool(_ROLE.search(failure.said))


def unknown_model(failure: CallFailure) -> bool:
    """Whether the failure says that the server does not know the model's name."""
    return failure.status in (400, 404) and bool(_MODEL.search(f"{failure.code} {failure.said}"))


def declined(failure: CallFailure) -> bool:
    """Whether a filter in front of the model declined the prompt (Azure: status 400, OpenRouter: 403)."""
    if failure.status == 403:
        return bool(_FLAGGED.search(failure.said))
    return failure.status == 400 and any(word in failure.code for word in ("content_filter", "content_policy"))


def refused_key(failure: CallFailure) -> bool:
    """Whether the server refuses the key, or wants one (Gemini uses status 400 for a wrong key)."""
    return failure.status in (401, 403) or (failure.status == 400 and bool(_KEY.search(failure.said)))


def no_such_path(failure: CallFailure) -> bool:
    """Whether the server has nothing at the address of chat completions.

    If the message of a status 404 is about something else than the address, the cause is another one, such as an
    unknown model.
    """
    return failure.status == 405 or (failure.status == 404 and bool(_NOWHERE.search(failure.said)))


def _names(name: str, text: str) -> bool:
    word = re.escape(name)
    if len(name) > 1:
        return re.search(rf"(?<![A-Za-z_]){word}(?![A-Za-z_])", text) is not None
    # A letter such as "n" appears in many texts, so it must be in quotation marks or before a word such as "must".
    return (
        re.search(rf"['\"`]{word}['\"`]|(?:^|[Pp]arameter[ =]|: ){word} (?:must|is|should|>|value)", text) is not None
    )


def _first(patterns: tuple[str, ...], text: str) -> int | None:
    for pattern in patterns:
        found = re.search(pattern, text)
        if found:
            return int(found[1])
    return None
