"""The dialect of one server: found out by its refusals, remembered, so that each is met once."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from grace_irl.propose.client.errors import CallFailure, Kind, refuses_system_role, rejected_parameters
from grace_irl.propose.protocol import Completion, Finish, Prompt

SchemaForm = Literal["json_schema", "json_object"]  # OpenAI's and vLLM's; llama.cpp's
DROPPABLE = {"temperature", "n", "response_format", "max_tokens", "max_completion_tokens"}


@dataclass
class Dialect:
    """Grows while a run goes on; all calls of a client share it.

    Attributes:
        left_out: sampling parameters that the server refuses.
        tokens_name: of the limit on an answer's tokens (newer models of OpenAI want another).
        most_choices: answers that one request may ask for; None while more were never refused.
        schema_form: how a schema is sent.
        schema_works: whether a schema was ever accepted.
        system_role: False if the model's template has none: the system text then opens the user's.
        short_answers: responses in a row with fewer answers than requested.
    """

    left_out: set[str] = field(default_factory=set)
    tokens_name: str = "max_tokens"
    most_choices: int | None = None
    schema_form: SchemaForm = "json_schema"
    schema_works: bool = False
    system_role: bool = True
    short_answers: int = 0

    def payload(
        self,
        prompt: Prompt,
        *,
        model: str,
        temperature: float,
        max_tokens: int,
        n: int,
        schema: Mapping[str, object] | None,
    ) -> dict[str, Any]:
        """A request's body; the schema is that of answers, None for the format "code"."""
        wanted: dict[str, Any] = {
            "model": model,
            "messages": self.messages(prompt),
            "temperature": temperature,
            self.tokens_name: max_tokens,
        }
        if n > 1:
            wanted["n"] = n
        if schema:
            named = {"json_schema": {"name": "answer", "strict": True, "schema": schema}}
            form = named if self.schema_form == "json_schema" else {"schema": schema}
            wanted["response_format"] = {"type": self.schema_form, **form}
        return {name: value for name, value in wanted.items() if name not in self.left_out}

    def accepted(self, payload: Mapping[str, Any], choices: int) -> None:
        """Learns from a response: how many answers came, and that a schema was taken."""
        if "response_format" in payload:
            self.schema_works = True
        asked = payload.get("n", 1)
        if asked == 1:
            return
        # Once may be an accident; a server that returns fewer twice running (llama.cpp's: one) is taken at its word.
        self.short_answers = self.short_answers + 1 if choices < asked else 0
        if self.short_answers > 1:
            self.most_choices = max(1, choices)

    def learn(self, failure: CallFailure, payload: Mapping[str, Any], times: int) -> list[str]:
        """Learns from a refusal of this payload, the `times`-th of its kind; returns what is new, for people."""
        news: list[str] = []
        if self.system_role and payload["messages"][0]["role"] == "system" and refuses_system_role(failure):
            self.system_role = False
            news.append("the model has no place for a system text: it goes before the question from now on")
        named = rejected_parameters(failure, DROPPABLE & set(payload))
        if payload.get("response_format", {}).get("type") == "json_schema" and not self.schema_works:
            # llama.cpp's server refuses OpenAI's form with status 500, and one such error may have another cause.
            refused = "response_format" in named or (failure.kind == "server error" and times > 1)
            if refused and self.schema_form == "json_schema":  # else another call has learnt it meanwhile
                self.schema_form = "json_object"
                news.append("the server does not take a schema in OpenAI's form: llama.cpp's is tried")
            named.discard("response_format")
        for name in sorted(named - self.left_out):
            news += self._without(name)
        return news

    def _without(self, name: str) -> list[str]:
        if name == "n":
            if self.most_choices == 1:
                return []
            self.most_choices = 1
            return ["the server gives one answer a request: several are asked for one by one from now on"]
        if name == "max_tokens":
            if self.tokens_name != name:
                return []
            self.tokens_name = "max_completion_tokens"
            return ["the server does not take max_tokens: max_completion_tokens is sent from now on"]
        self.left_out.add(name)
        return [f"the server does not take {name}: it is left out from now on"]

    def messages(self, prompt: Prompt) -> list[dict[str, Any]]:
        """Text as text; images, if there are any, as data addresses behind it."""
        text = prompt.user if self.system_role or not prompt.system else f"{prompt.system}\n\n{prompt.user}"
        content: str | list[dict[str, Any]] = text
        if prompt.images:
            content = [{"type": "text", "text": text}]
            content += [{"type": "image_url", "image_url": {"url": _data_url(image)}} for image in prompt.images]
        user = {"role": "user", "content": content}
        if self.system_role and prompt.system:
            return [{"role": "system", "content": prompt.system}, user]
        return [user]


def _data_url(image: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(image).decode('ascii')}"


def answers(body: bytes, most: int, seconds: float) -> tuple[Completion, ...]:
    """The choices of a chat completion, at most `most`, in the server's order of indices.

    The prompt's tokens and the seconds go to the first of them, so that sums count once; the completion's tokens,
    which servers only sum, are shared out by the length of the texts.

    Raises:
        CallFailure: for a body that is empty or malformed, one that holds an error, and one without choices.
    """
    if not body.strip():
        raise CallFailure("empty body", "an empty body", status=200)
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise CallFailure("malformed body", "a body that is no JSON", status=200) from None
    if not isinstance(found, dict):
        raise CallFailure("malformed body", "a body that is no JSON object", status=200)
    if found.get("error"):
        raise _reported(found["error"])
    choices = found.get("choices")
    if not isinstance(choices, list) or not all(isinstance(one, dict) for one in choices):
        raise CallFailure("malformed body", "a body without a list of choices", status=200)
    if not choices:
        raise CallFailure("no answer", "a body with no choice in it", status=200)
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


def _reported(error: object) -> CallFailure:
    """An error that came with status 200, as some gateways and older servers send it; its own code says more."""
    body = error if isinstance(error, dict) else {"message": str(error)}
    code = body.get("code")
    status = code if isinstance(code, int) and 400 <= code < 600 else 200
    kind: Kind = "busy" if status == 429 else "rejected" if 400 <= status < 500 else "server error"
    return CallFailure(kind, f"error {code or ''}".strip(), status=status, said=str(body.get("message", "")), body=body)


def _text(choice: Mapping[str, Any]) -> tuple[str, Finish]:
    message = choice.get("message")
    if not isinstance(message, dict):
        raise CallFailure("malformed body", "a choice without a message", status=200)
    content = message.get("content")
    if isinstance(content, list):  # parts, as some gateways send them
        content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    if content is not None and not isinstance(content, str):
        raise CallFailure("malformed body", "a message whose content is no text", status=200)
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
