"""The size of a model, before it is loaded."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

QUANTISED = re.compile(r"\b(?:awq|gptq|fp8|int[48]|w[48]a(?:8|16)|bnb|4bit|8bit|nvfp4|mxfp4|gguf)\b", re.IGNORECASE)
_PARAMETERS = re.compile(r"(?<![\w.])(?:(\d+)x)?(\d+(?:\.\d+)?)(b|m)(?![a-z])", re.IGNORECASE)


@dataclass(frozen=True)
class Weights:
    """Of one model.

    Attributes:
        gib: in memory as they are stored, or in 16 bits a parameter where only the name tells; None if nothing does.
        quantised: whether they already are.
        context: most tokens that the model was made for; None if nothing tells.
    """

    gib: float | None
    quantised: bool
    context: int | None


def weights(model: str) -> Weights:
    """Read from a folder in Hugging Face's form; guessed from a name such as Qwen2.5-Coder-7B."""
    folder = Path(model).expanduser()
    if not folder.is_dir():
        return Weights(_of_name(model), bool(QUANTISED.search(model.replace("_", "-"))), None)
    config = _config(folder / "config.json")
    files = [*folder.glob("*.safetensors")] or [*folder.glob("*.bin")]
    text: Any = config.get("text_config") if isinstance(config.get("text_config"), dict) else config
    context = text.get("max_position_embeddings")
    return Weights(
        sum(file.stat().st_size for file in files) / 2**30 if files else None,
        bool(config.get("quantization_config")),
        context if isinstance(context, int) and context > 0 else None,
    )


def _of_name(model: str) -> float | None:
    found = _PARAMETERS.findall(model.rpartition("/")[2])
    if not found:
        return None
    # Of several numbers the first is the whole: Qwen3-30B-A3B has 30 billion, of which 3 are active.
    experts, number, unit = found[0]
    parameters = float(number) * int(experts or 1) * (1e9 if unit.lower() == "b" else 1e6)
    return parameters * 2 / 2**30


def _config(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
