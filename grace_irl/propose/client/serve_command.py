"""The `vllm serve` command, with options for a machine and a model. `grace-irl serve` runs it."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

QUANTISED = re.compile(
    r"\b(?:awq|gptq|fp8|int[48]|w[48]a(?:8|16)|bnb|4bit|8bit|nvfp4|mxfp4|q[2-8]|gguf)\b", re.IGNORECASE
)
_WHOLE = re.compile(r"\b(?:bf16|fp16|f16)\b", re.IGNORECASE)
_PARAMETERS = re.compile(r"(?<![\w.])(?:(\d+)x)?(\d+(?:\.\d+)?)(b|m)(?![a-z])", re.IGNORECASE)


@dataclass(frozen=True)
class ModelWeights:
    """Size, quantisation and maximum context of a model.

    Attributes:
        gib: size of the weights in GiB; None if unknown. If the model is a folder, this is the size of the stored
            files. Otherwise the size is estimated from the model's name, which gives the number of parameters and the
            bits of each.
        quantised: whether the stored weights are quantised.
        context: the model's maximum context in tokens; None if unknown.
    """

    gib: float | None
    quantised: bool
    context: int | None


def weights(model: str) -> ModelWeights:
    """Read a model's size from its folder in Hugging Face's form, or guess it from a name such as Qwen2.5-Coder-7B."""
    folder = Path(model).expanduser()
    if not folder.is_dir():
        bits = _bits(model)
        return ModelWeights(_of_name(model, bits), bits < 16, None)
    config = _config(folder / "config.json")
    files = [*folder.glob("*.safetensors")] or [*folder.glob("*.bin")]
    text: Any = config.get("text_config") if isinstance(config.get("text_config"), dict) else config
    context = text.get("max_position_embeddings")
    return ModelWeights(
        sum(file.stat().st_size for file in files) / 2**30 if files else None,
        bool(config.get("quantization_config")),
        context if isinstance(context, int) and context > 0 else None,
    )


def _bits(model: str) -> int:
    """The bits of each parameter, as a model's name gives them. A quantisation without a number, such as AWQ, has 4."""
    name = model.replace("_", "-")
    words = "".join(QUANTISED.findall(name))
    usual = 4 if words and not _WHOLE.search(name) else 16
    return next((int(letter) for letter in words if letter in "2345678"), usual)


def _of_name(model: str, bits: int) -> float | None:
    found = _PARAMETERS.findall(model.rpartition("/")[2])
    if not found:
        return None
    # The first of several numbers is the total: Qwen3-30B-A3B has 30 billion parameters, of which 3 are active.
    experts, number, unit = found[0]
    parameters = float(number) * int(experts or 1) * (1e9 if unit.lower() == "b" else 1e6)
    return parameters * bits / 8 / 2**30


def _config(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


QUERY = ("nvidia-smi", "--query-gpu=name,memory.total,compute_cap", "--format=csv,noheader,nounits")


@dataclass(frozen=True)
class Gpu:
    """One graphics card.

    Attributes:
        name: the driver's name of the card.
        gib: memory in GiB.
        capability: CUDA compute capability; 0 if unknown.
    """

    name: str
    gib: float
    capability: float = 0.0


@dataclass(frozen=True)
class Machine:
    """A machine that runs a server.

    Attributes:
        gpus: graphics cards that the server may use.
        gib: main memory in GiB.
    """

    gpus: tuple[Gpu, ...]
    gib: float

    def __str__(self) -> str:
        if not self.gpus:
            return f"no GPU, {self.gib:.0f} GiB of memory"
        first = self.gpus[0]
        return f"{len(self.gpus)} x {first.name}, {first.gib:.0f} GiB each"


def this_machine(environment: Mapping[str, str] = os.environ) -> Machine:
    """Find this machine's graphics cards and memory.

    The cards are those that nvidia-smi lists and CUDA_VISIBLE_DEVICES does not hide. Without nvidia-smi there are none.
    """
    try:
        told = subprocess.run(QUERY, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        told = ""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return Machine(visible(parsed(told), environment.get("CUDA_VISIBLE_DEVICES")), memory)


def parsed(told: str) -> tuple[Gpu, ...]:
    """Parse nvidia-smi's output. Each line has the name, the memory in MiB and the compute capability of one card."""
    gpus = []
    for line in told.splitlines():
        fields = [field.strip() for field in line.rsplit(",", 2)]
        try:
            gpus.append(Gpu(fields[0], float(fields[1]) / 1024, float(fields[2])))
        except (IndexError, ValueError):
            continue  # a value such as "[N/A]", or a line without a card
    return tuple(gpus)


def visible(gpus: tuple[Gpu, ...], chosen: str | None) -> tuple[Gpu, ...]:
    """The cards that CUDA_VISIBLE_DEVICES selects.

    Args:
        gpus: all cards.
        chosen: value of the variable, a list of entries separated by commas; None to select all cards. An entry is the
            number of a card, from 0, or a UUID such as "GPU-8932f937". `QUERY` returns no UUIDs, so a UUID at
            position n of the list, from 0, selects card n. An entry that selects no card ends the list.
    """
    if chosen is None:
        return gpus
    left: list[Gpu] = []
    for place, word in enumerate(chosen.split(",")):
        if word.strip().isdecimal():
            number = int(word)
        elif word.strip().startswith(("GPU-", "MIG-")):
            number = place
        else:
            break
        if number >= len(gpus):
            break
        left.append(gpus[number])
    return tuple(left)


UTILISATION = 0.9
"""Share of a card's memory that vLLM uses. vLLM's own default leaves less to other processes."""

SPARE = 2.0
"""Memory on each card, in GiB, for activations and CUDA graphs, in addition to the weights and the KV cache."""

CONTEXTS = ((8.0, 32768), (4.0, 16384), (0.0, 8192))
"""Choices of the context length by the memory that the weights leave free, each a pair (GiB, tokens).

For example, if the weights leave at least 8 GiB free, a context of 32,768 tokens fits.

For comparison, a prompt with 8 expert and 8 negative trajectories takes up to about 10,000 tokens."""

CPU_CONTEXT = 16384  # maximum context on a CPU, in tokens

FP8 = 7.5
"""Minimum compute capability of a card for 8-bit weights with vLLM's own kernels, without another package."""

STRUCTURED = {"backend": "xgrammar", "disable_any_whitespace": True}
"""vLLM's options for answers by JSON schema.

Without `disable_any_whitespace`, a weak model fills JSON with white space up to the token limit. The option requires an
explicit backend."""


@dataclass(frozen=True)
class ServeCommand:
    """The command that starts a server.

    Attributes:
        arguments: the program and its arguments.
        environment: environment variables that are added to the existing ones.
        model: the model's name on the server.
        url: address of the server.
        notes: explanations of the chosen options.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    model: str
    url: str
    notes: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        """The command as typed into a shell."""
        assignments = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        return " ".join([*assignments, shlex.join(self.arguments)])

    @property
    def fit(self) -> str:
        """The grace-irl command that fits a reward with this server."""
        return shlex.join(["grace-irl", "fit", "--demos", "DEMOS", "--llm-url", self.url, "--model", self.model])


def serve_command(
    model: str,
    machine: Machine,
    size: ModelWeights,
    *,
    vllm: str = "vllm",
    host: str = "127.0.0.1",
    port: int = 8000,
    max_model_len: int | None = None,
    quantization: str = "",
    extra: Sequence[str] = (),
) -> ServeCommand:
    """Choose the options of `vllm serve`.

    The options suit prompts with a long common beginning and many answers, some of which follow a JSON schema.

    Args:
        model: a folder, or a name that vLLM can download.
        machine: the machine that runs the server.
        size: size of the model.
        vllm: path of vLLM's program.
        host, port: address of the server.
        max_model_len: context in tokens; by default as long as the machine's memory allows.
        quantization: vLLM's name of a quantisation; by default "fp8" if 16-bit weights do not fit.
        extra: further arguments of `vllm serve`, which override the chosen ones.
    """
    folder = Path(model).expanduser()
    name = folder.resolve().name if folder.is_dir() else model
    place = _on_cards(machine, size) if machine.gpus else _on_cpu(machine, size)
    length = str(max_model_len) if max_model_len else place.context
    chosen = quantization or place.quantization
    arguments = [vllm, "serve", str(folder) if folder.is_dir() else model]
    arguments += ["--served-model-name", name, "--host", host, "--port", str(port)]
    arguments += ["--max-model-len", length, "--enable-prefix-caching"]
    arguments += ["--structured-outputs-config", json.dumps(STRUCTURED, separators=(",", ":"))]
    arguments += ["--quantization", chosen] if chosen else []
    arguments += [*place.arguments, "--disable-uvicorn-access-log", *extra]
    local = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    environment = {"VLLM_NO_USAGE_STATS": "1", **place.environment}
    return ServeCommand(tuple(arguments), environment, name, f"http://{local}:{port}", place.notes)


@dataclass(frozen=True)
class _Place:
    """The options that depend on the machine."""

    context: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    quantization: str = ""
    notes: tuple[str, ...] = ()


def _on_cards(machine: Machine, size: ModelWeights) -> _Place:
    """Choose options for graphics cards.

    The number of cards is the smallest power of two with room for the weights, or the largest possible power of two if
    the machine has too few cards. With a power of two, vLLM can divide attention heads evenly.
    """
    card = min(machine.gpus, key=lambda gpu: gpu.gib)
    usable = card.gib * UTILISATION - SPARE
    needed = size.gib or 0.0
    cards, quantization, notes = 1, "", []
    while needed > 0.8 * usable * cards and cards * 2 <= len(machine.gpus):
        cards *= 2
    if needed > 0.8 * usable * cards and not size.quantised and card.capability >= FP8:
        quantization, needed = "fp8", needed / 2
        notes.append(f"16-bit weights ({needed * 2:.0f} GiB) do not fit: they are kept in 8 bits")
    if needed > 0.95 * usable * cards:
        notes.append(
            f"the weights take about {needed:.0f} GiB, and the cards have {usable * cards:.0f} GiB for them: "
            "a smaller model, or one that is stored in 4 bits, will do better"
        )
    if size.gib is None:
        notes.append("the model's size is unknown, so its weights are not quantised")
    left = usable * cards - needed
    fits = next((tokens for gib, tokens in CONTEXTS if left >= gib), CONTEXTS[-1][1])
    # The maximum context of a model is unknown before its download. With "auto", vLLM finds the context that fits.
    context = str(min(fits, size.context)) if size.context else "auto"
    arguments = ["--gpu-memory-utilization", f"{UTILISATION:g}"]
    arguments += ["--tensor-parallel-size", str(cards)] if cards > 1 else []
    return _Place(context, tuple(arguments), {}, quantization, tuple(notes))


def _on_cpu(machine: Machine, size: ModelWeights) -> _Place:
    """Choose options for a CPU: 16-bit weights, and a KV cache of a quarter of the remaining memory, 1 to 16 GiB."""
    needed = size.gib or 0.0
    cache = max(1, min(16, int((machine.gib - needed) / 4)))
    notes = ["no GPU found: a model on a CPU is for trying things out (a few tokens a second and stream)"]
    if needed > 0.7 * machine.gib:
        notes.append(f"the weights take about {needed:.0f} GiB of {machine.gib:.0f}: a smaller model will do better")
    return _Place(
        str(min(CPU_CONTEXT, size.context)) if size.context else "auto",
        ("--dtype", "bfloat16", "--enforce-eager"),
        {"VLLM_CPU_KVCACHE_SPACE": str(cache)},
        notes=tuple(notes),
    )
