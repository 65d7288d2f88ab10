"""The models that a server lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grace_irl.errors import InputError


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
