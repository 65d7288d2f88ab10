"""The dialect of a server: the form of requests that the server accepts. The client learns it from refusals."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from grace_irl.propose.client.errors import CallFailure, Kind, longest_answer, refuses_system_role, rejected_parameters
from grace_irl.propose.protocol import Completion, Finish, Prompt

SchemaForm = Literal["json_schema", "json_object"]  # llama.cpp uses "json_object", other servers "json_schema"
# Parameters that the client can leave out or replace if the server refuses them.
DROPPABLE = {"temperature", "n", "response_format", "max_tokens", "max_completion_tokens"}


@dataclass
class Dialect:
    """Known restrictions of a server. All calls of a client share one instance and update it.

    Attributes:
        left_out: sampling parameters that the server refuses.
        tokens_name: parameter for the maximum tokens of an answer; "max_completion_tokens" for newer OpenAI models.
        most_tokens: maximum tokens of an answer; None if no limit is known.
        most_choices: maximum number of answers to one request; None if no limit is known.
        schema_form: form in which a schema is sent.
        schema_works: whether the server ever accepted a schema.
        system_role: whether the model accepts a system message. If not, the system text is the beginning of the user
            message.
        short_answers: number of responses in a row with fewer answers than requested.
    """

    left_out: set[str] = field(default_factory=set)
    tokens_name: str = "max_tokens"
    most_tokens: int | None = None
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
        """Build the body of a request. `schema` is the JSON schema of the answers; None if they are not JSON."""
        wanted: dict[str, Any] = {
            "model": model,
            "messages": self.messages(prompt),
            "temperature": temperature,
            self.tokens_name: min(max_tokens, self.most_tokens or max_tokens),
        }
        if n > 1:
            wanted["n"] = n
        if schema:
            named = {"json_schema": {"name": "answer", "strict": True, "schema": schema}}
            form = named if self.schema_form == "json_schema" else {"schema": schema}
            wanted["response_format"] = {"type": self.schema_form, **form}
        return {name: value for name, value in wanted.items() if name not in self.left_out}

    def accepted(self, payload: Mapping[str, Any], choices: int) -> None:
        """Update the dialect from a successful response.

        Args:
            payload: the body of the request.
            choices: number of answers in the response.
        """
        if "response_format" in payload:
            self.schema_works = True
        asked = payload.get("n", 1)
        if asked == 1:
            return
        # One response with too few answers may be an accident. After two such responses in a row, the number of answers
        # in the second becomes the limit. llama.cpp returns one answer to each request.
        self.short_answers = self.short_answers + 1 if choices < asked else 0
        if self.short_answers > 1:
            self.most_choices = max(1, choices)

    def learn(self, failure: CallFailure, payload: Mapping[str, Any], times: int) -> list[str]:
        """Update the dialect from a refused payload. Return notes for the user about new facts.

        Args:
            failure: the refusal.
            payload: the body of the refused request.
            times: number of failures of this kind so far for this request, including this one.
        """
        news: list[str] = []
        if self.system_role and payload["messages"][0]["role"] == "system" and refuses_system_role(failure):
            self.system_role = False
            news.append("the model accepts no system message: its text opens the user message from now on")
        most = longest_answer(failure)
        if most is not None:  # the server accepts the parameter that this message names, but not its value
            known = self.most_tokens
            self.most_tokens = min(most, known or most)
            if self.most_tokens != known:
                news.append(f"the model writes answers of at most {most} tokens")
            return news
        named = rejected_parameters(failure, DROPPABLE & set(payload))
        if payload.get("response_format", {}).get("type") == "json_schema" and not self.schema_works:
            # llama.cpp refuses OpenAI's form with status 500. A single error 500 may have another cause.
            refused = "response_format" in named or (failure.kind == "server error" and not failure.busy and times > 1)
            if refused and self.schema_form == "json_schema":  # otherwise another call has already changed it
                self.schema_form = "json_object"
                news.append("the server does not accept a schema in OpenAI's form: llama.cpp's form is tried")
            named.discard("response_format")
        for name in sorted(named - self.left_out):
            news += self._without(name)
        return news

    def _without(self, name: str) -> list[str]:
        if name == "n":
            if self.most_choices == 1:
                return []
            self.most_choices = 1
            return ["the server returns one answer per request: several answers take several requests from now on"]
        if name == "max_tokens":
            if self.tokens_name != name:
                return []
            self.tokens_name = "max_completion_tokens"
            return ["the server does not accept max_tokens: max_completion_tokens is sent from now on"]
        self.left_out.add(name)
        return [f"the server does not accept {name}: it is left out from now on"]

    def messages(self, prompt: Prompt) -> list[dict[str, Any]]:
        """The messages of a request. Images follow the text as data URLs."""
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
    """Read the answers in the body of a response, at most `most`, ordered by index.

    Only the first answer has the number of the prompt's tokens and the seconds of the request, so that sums over
    answers are right. Servers report only the total number of tokens of all answers. This total is divided among the
    answers in proportion to the lengths of their texts.

    Raises:
        CallFailure: the body is empty or malformed, contains an error, or has no answers.
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
    # OpenRouter and vLLM send what there is of an answer if the model fails in the middle of it.
    broken = [one for one in choices if one.get("finish_reason") == "error"]
    if len(broken) == len(choices):
        said = _reported(broken[0].get("error") or "").said
        # Each attempt costs tokens, and only attempts at a busy server have no maximum number. So the failure has
        # status 200, even if the error's code is that of a busy server, such as 503.
        raise CallFailure("server error", "an answer that ends in an error", status=200, said=said)
    choices = [one for one in choices if one.get("finish_reason") != "error"]
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
    """Divide `total` into one integer for each weight, about proportional to the weight plus 1.

    So even a weight of 0 has a share.
    """
    whole, before, sums = sum(weights) + len(weights), 0, 0
    parts = []
    for weight in weights:
        sums += weight + 1
        upto = round(total * sums / whole)
        parts.append(upto - before)
        before = upto
    return parts


def _reported(error: object) -> CallFailure:
    """Make the failure for a response that has status 200 but contains an error.

    Some gateways and older servers send such responses. The error's code gives the kind of failure.
    """
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
    if isinstance(content, list):  # some gateways send a list of parts
        content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    if content is not None and not isinstance(content, str):
        raise CallFailure("malformed body", "a message whose content is no text", status=200)
    # Escapes in JSON can contain one half of a surrogate pair, which files and databases refuse.
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
    if isinstance(value, float):  # some gateways send 12.0
        value = int(value) if value.is_integer() else 0
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
