"""The meaning of a failure for the run: an error for its user, or nothing where another try may help."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grace_irl.errors import GraceError, InputError
from grace_irl.propose.client.catalogue import Catalogue
from grace_irl.propose.client.errors import CallFailed, ServerGone
from grace_irl.propose.client.failure import Failure
from grace_irl.propose.client.rejection import unknown_model


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

    def quote(self, failure: Failure) -> str:
        """What happened, with the server's words where there are any."""
        return self.shown(f"{failure.message}: {failure.said}" if failure.said else failure.message)

    def at_first_contact(self, failure: Failure) -> GraceError:
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

    def final(self, failure: Failure, model: str, catalogue: Catalogue) -> GraceError | None:
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

    def too_busy(self, failure: Failure, patience: float) -> ServerGone:
        """For a server that is there and takes no work."""
        return ServerGone(
            f"the server has been too busy for the {patience:g} s of --llm-patience ({self.quote(failure)}); "
            "resume the run later, or ask less at once with --concurrency"
        )

    def _elsewhere(self, failure: Failure) -> InputError:
        return InputError(
            f"the server at {self.url} sends its callers elsewhere ({self.quote(failure)}); prompts and keys go to the "
            "server that you name and to no other: expected the other's address with --llm-url"
        )

    def _refused_key(self, failure: Failure) -> InputError:
        found = "refuses the key" if self.has_key else "wants a key, and none is set"
        return InputError(
            f"the server {found} ({self.quote(failure)}); expected a valid one in the environment variable "
            "GRACE_IRL_API_KEY or OPENAI_API_KEY"
        )
