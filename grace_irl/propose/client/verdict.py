"""The meaning of a failure for the run: an error for its user, or nothing where another try may help."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grace_irl.errors import GraceError, InputError
from grace_irl.programs.parsing import parse
from grace_irl.propose.chat import Completion
from grace_irl.propose.client.errors import CallFailed, CallFailure, ServerGone
from grace_irl.propose.client.rejection import unknown_model
from grace_irl.propose.protocol import Prompt


@dataclass(frozen=True)
class Catalogue:
    """What /v1/models says; empty for a server that does not list its models.

    Attributes:
        models: each has an "id".
    """

    models: Sequence[Mapping[str, Any]] = ()

    @property
    def names(self) -> list[str]:
        """Of the models, in the server's order."""
        return [str(one["id"]) for one in self.models]

    def chosen(self, wanted: str) -> str:
        """The model to ask: the wanted one, or for "" the only one.

        Raises:
            InputError: for one that the server does not have, and for "" where it has several or none.
        """
        if not wanted:
            if len(self.names) != 1:
                found = f"{len(self.names)} models ({_shown(self.names)})"
                raise InputError(f"the server has {found}; expected one: name it with --model")
            return self.names[0]
        if self.models and self._entry(wanted) is None:
            raise self.unknown(wanted)
        return wanted

    def unknown(self, wanted: str) -> InputError:
        """The error for a model that the server does not have."""
        return InputError(f"the server has no model {wanted!r}; it has: {_shown(self.names)}; correct --model")

    def context_length(self, model: str) -> int | None:
        """The model's context in tokens, where the server tells it."""
        entry = self._entry(model) or {}
        inner = entry.get("meta")
        # vLLM's name, the one of several hosted servers, and llama.cpp's
        found = [entry.get("max_model_len"), entry.get("context_length")]
        found += [inner.get("n_ctx")] if isinstance(inner, dict) else []
        return next((value for value in found if isinstance(value, int) and value > 1), None)

    def _entry(self, name: str) -> Mapping[str, Any] | None:
        # Ollama lists a tag that may be left out.
        return next((one for one in self.models if one["id"] in (name, f"{name}:latest")), None)


def _shown(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name)[1:-1][:80] for name in names[:20])
    return (f"{shown}, …" if len(names) > 20 else shown) or "none that it lists"


@dataclass(frozen=True)
class Judge:
    """Knows what the messages have to name.

    Attributes:
        url: of the server.
        has_key: whether a key was sent.
        shown: makes the server's words fit to be shown.
    """

    url: str
    has_key: bool
    shown: Callable[[str], str]

    def quote(self, failure: CallFailure) -> str:
        """What happened, with the server's words where there are any."""
        return self.shown(f"{failure.message}: {failure.said}" if failure.said else failure.message)

    def at_first_contact(self, failure: CallFailure) -> GraceError:
        """For a list of models that did not come."""
        if failure.kind in ("connection", "time-out"):
            return InputError(
                f"no server at {self.url}: {self.quote(failure)}; expected one that speaks OpenAI's protocol "
                "(grace-irl serve starts one), or correct --llm-url"
            )
        if failure.status in (401, 403):
            return self._refused_key(failure)
        if 300 <= failure.status < 400:
            return self._elsewhere(failure)
        if failure.kind == "web page":
            return InputError(
                f"{self.url} answers with a web page; expected a server that speaks OpenAI's protocol: "
                "correct --llm-url"
            )
        return InputError(
            f"the server at {self.url} does not list its models ({self.quote(failure)}); "
            "name one with --model, or correct --llm-url"
        )

    def final(self, failure: CallFailure, model: str, catalogue: Catalogue) -> GraceError | None:
        """For a request of a run: the error where another try would change nothing."""
        if failure.status in (401, 403):
            return self._refused_key(failure)
        if 300 <= failure.status < 400:
            return self._elsewhere(failure)
        if failure.status == 402 or "insufficient_quota" in failure.code:
            return ServerGone(f"the server says that the account has nothing left ({self.quote(failure)})")
        if unknown_model(failure):
            return catalogue.unknown(model)
        if failure.status in (404, 405):
            return InputError(f"no chat completions at {self.url} ({self.quote(failure)}); correct --llm-url")
        if failure.kind == "rejected":
            return CallFailed(f"the server refuses the request ({self.quote(failure)})", failure.kind)
        return None

    def too_busy(self, failure: CallFailure, patience: float) -> ServerGone:
        """For a server that is there and takes no work."""
        return ServerGone(
            f"the server has been too busy for the {patience:g} s of --llm-patience ({self.quote(failure)}); "
            "resume the run later, or ask less at once with --concurrency"
        )

    def _elsewhere(self, failure: CallFailure) -> InputError:
        return InputError(
            f"the server at {self.url} sends its callers elsewhere ({self.quote(failure)}); prompts and keys go to the "
            "server that you name and to no other: expected the other's address with --llm-url"
        )

    def _refused_key(self, failure: CallFailure) -> InputError:
        found = "refuses the key" if self.has_key else "wants a key, and none is set"
        return InputError(
            f"the server {found} ({self.quote(failure)}); expected a valid one in the environment variable "
            "GRACE_IRL_API_KEY or OPENAI_API_KEY"
        )


CODE = "reward_class_code"  # a field of `ANSWER_SCHEMA`

SAMPLES = 4
"""At the run's temperature. All must pass: a format that breaks one program in ten costs more than it brings."""

MAX_TOKENS = 800  # the copy takes about 250

PROGRAM = r'''import re


class Reward:
    """Counts "words" and 'lines'."""

    def __init__(self, extra_info=None):
        self.wanted = re.findall(r"\b[\w']+\b", extra_info or "")
        self.separator = "\t|\n"

    def reward_fn(self, state):
        text = f"{state!r}".replace("\\", "/").replace('"', "'")
        lines = text.split("\n")
        return float(sum(word in line for line in lines for word in self.wanted))
'''
"""What breaks in a JSON string: line breaks, both quotation marks, backslashes of both kinds, indentation."""

PROMPT = Prompt(
    system="You copy Python code exactly.",
    user=(
        f"Copy this program, unchanged, into the field {CODE} of a JSON object. "
        f'Write "copied" into its field reasoning.\n\n```python\n{PROGRAM}```\n'
    ),
)


def passed(answer: Completion) -> bool:
    """Whether the answer holds the same program (the same syntax tree)."""
    if answer.finish != "stop":
        return False
    try:
        copied = json.loads(answer.text)[CODE]
        return ast.dump(parse(copied)) == ast.dump(parse(PROGRAM))
    except (ValueError, TypeError, KeyError, SyntaxError, RecursionError, MemoryError):
        return False
