"""The resources of a machine for a model."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

QUERY = ("nvidia-smi", "--query-gpu=name,memory.total,compute_cap", "--format=csv,noheader,nounits")


@dataclass(frozen=True)
class Gpu:
    """One card.

    Attributes:
        name: as its driver says it.
        gib: its memory.
        capability: CUDA compute capability; 0 where it is not told.
    """

    name: str
    gib: float
    capability: float = 0.0


@dataclass(frozen=True)
class Machine:
    """Cards that a server may use, and main memory in GiB."""

    gpus: tuple[Gpu, ...]
    gib: float

    def __str__(self) -> str:
        if not self.gpus:
            return f"no GPU, {self.gib:.0f} GiB of memory"
        first = self.gpus[0]
        return f"{len(self.gpus)} x {first.name}, {first.gib:.0f} GiB each"


def this_machine(environment: Mapping[str, str] = os.environ) -> Machine:
    """Found through nvidia-smi, where there is one, and the kernel; CUDA_VISIBLE_DEVICES hides cards."""
    try:
        told = subprocess.run(QUERY, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        told = ""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return Machine(visible(parsed(told), environment.get("CUDA_VISIBLE_DEVICES")), memory)


def parsed(told: str) -> tuple[Gpu, ...]:
    """Cards in nvidia-smi's words: one line each, name, MiB, compute capability."""
    gpus = []
    for line in told.splitlines():
        fields = [field.strip() for field in line.rsplit(",", 2)]
        try:
            gpus.append(Gpu(fields[0], float(fields[1]) / 1024, float(fields[2])))
        except (IndexError, ValueError):
            continue  # "[N/A]", or no card at all
    return tuple(gpus)


def visible(gpus: tuple[Gpu, ...], chosen: str | None) -> tuple[Gpu, ...]:
    """The cards that CUDA_VISIBLE_DEVICES leaves: numbers up to the first that is none; a name counts as a card."""
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
