"""A program: source text, identity and lineage."""

from __future__ import annotations

from dataclasses import dataclass

from grace_irl.programs.definition import Definition


@dataclass(frozen=True)
class Program:
    """A reward program.

    Attributes:
        id: hash of the normalised syntax tree (16 hex digits), computed where the source is parsed: in the
            sandbox.
        source: Python text that defines `class Reward` (docs/contract.md).
        nodes: size of the syntax tree; the shorter of two equals wins.
        operator: what made it ("initialise", "mutate", …).
        parents: ids of the programs it was made from.
        prior: how plausible its proposer finds it, log-probability relative to the proposer's best, nats; 0 without
            an opinion. Decides what few demonstrations leave open.
        functions: its functions and classes, found where the source is parsed.
    """

    id: str
    source: str
    nodes: int
    operator: str = "initialise"
    parents: tuple[str, ...] = ()
    prior: float = 0.0
    functions: tuple[Definition, ...] = ()
