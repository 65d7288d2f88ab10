"""From the bytes of a response to answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from grace_irl.propose.client.failure import Failure, Kind
from grace_irl.propose.completion import Completion, Finish


def answers(body: bytes, most: int, seconds: float) -> tuple[Completion, ...]:
    """The choices of a chat completion, at most `most`, in the server's order of indices.

    The prompt's tokens and the seconds go to the first of them, so that sums count once; the completion's tokens,
    which servers only sum, are shared out by the length of the texts.

    Raises:
        Failure: for a body that is empty or malformed, one that holds an error, and one without choices.
    """
    if not body.strip():
        raise Failure("empty body", "an empty body", status=200)
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise Failure("malformed body", "a body that is no JSON", status=200) from None
    if not isinstance(found, dict):
        raise Failure("malformed body", "a body that is no JSON object", status=200)
    if found.get("error"):
        raise _reported(found["error"])
    choices = found.get("choices")
    if not isinstance(choices, list) or not all(isinstance(one, dict) for one in choices):
        raise Failure("malformed body", "a body without a list of choices", status=200)
    if not choices:
        raise Failure("no answer", "a body with no choice in it", status=200)
    if all(isinstance(one.get("index"), int) for one in choices):
        choices = sorted(choices, key=lambda one: int(one["index"]))
    texts = [_text(one) for one in choices[:most]]
    usage = found.get("usage") if isinstance(found.get("usage"), dict) else {}
    shares = shared_out(_count(usage, "completion_tokens"), [len(text) for text, _ in texts])
    return tuple(
        Completion(
            text=text,
            finish=finish,
            tokens_in=_count(usage, "prompt_tokens") if place == 0 else 0,
            tokens_out=shares[place],
            seconds=seconds if place == 0 else 0.0,
        )
        for place, (text, finish) in enumerate(texts)
    )


def shared_out(total: int, weights: Sequence[int]) -> list[int]:
    """`total` in whole parts proportional to the weights (each counted as one more, so that none weighs nothing)."""
    whole, before, sums = sum(weights) + len(weights), 0, 0
    parts = []
    for weight in weights:
        sums += weight + 1
        upto = round(total * sums / whole)
        parts.append(upto - before)
        before = upto
    return parts


def _reported(error: object) -> Failure:
    """An error that came with status 200, as some gateways and older servers send it; its own code says more."""
    body = error if isinstance(error, dict) else {"message": str(error)}
    code = body.get("code")
    status = code if isinstance(code, int) and 400 <= code < 600 else 200
    kind: Kind = "busy" if status == 429 else "rejected" if 400 <= status < 500 else "server error"
    return Failure(kind, f"error {code or ''}".strip(), status=status, said=str(body.get("message", "")), body=body)


def _text(choice: Mapping[str, Any]) -> tuple[str, Finish]:
    message = choice.get("message")
    if not isinstance(message, dict):
        raise Failure("malformed body", "a choice without a message", status=200)
    content = message.get("content")
    if isinstance(content, list):  # parts, as some gateways send them
        content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    if content is not None and not isinstance(content, str):
        raise Failure("malformed body", "a message whose content is no text", status=200)
    # A JSON escape can hold half of a surrogate pair, which no file and no database takes.
    text = (content or "").encode("utf-8", "replace").decode("utf-8")
    refusal = message.get("refusal")
    reason = choice.get("finish_reason")
    if isinstance(refusal, str) and refusal:
        return text or refusal.encode("utf-8", "replace").decode("utf-8"), "refusal"
    if reason == "content_filter":
        return text, "refusal"
    return text, "length" if reason == "length" else "stop"


def _count(usage: object, name: str) -> int:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
