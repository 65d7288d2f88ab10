"""Versions of a program that pay for progress toward the goal as well as for the goal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grace_irl.demos.labels import Problem
from grace_irl.propose.protocol import Proposal
from grace_irl.states.grid import GRID
from grace_irl.synthesis.grid.meaning import Outline
from grace_irl.synthesis.grid.perception import Agent, find_agent
from grace_irl.synthesis.grid.progress import shapings
from grace_irl.synthesis.grid.recovery import recover
from grace_irl.synthesis.grid.source import write_program

FOREIGN = "cannot reshape: the program is not one that the synthesiser writes for what happens on grids"
RESHAPED = (GRID.name,)
"""Kinds whose programs can be reshaped."""

UNSEEN = "cannot reshape: the program does not know which cell the agent is in"


def why_not(problem: Problem) -> str:
    """The kind of states whose rewards cannot be reshaped, if those for this data cannot; else ""."""
    kind = problem.metadata.state_kind
    if kind.name not in RESHAPED:
        return kind.plural
    return "grids labelled 'all'" if problem.rule == "all" else ""


class Reshaper:
    """Reads a program from its text, so that it may come from another run, and writes it with progress.

    If the text does not show which way the agent heads, the training data does.

    Args:
        problem: labelled demonstrations.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._agent: Agent | None = None
        self._looked = False

    def reshape(self, source: str, version: int) -> Proposal:
        """This version of a program; the same for the same program, version and training data."""
        if kind := why_not(self._problem):
            return Proposal("", failure=f"cannot reshape rewards for {kind}")
        found = recover(source)
        if found is None:
            return Proposal("", failure=FOREIGN)
        outline = self._with_heading(found.outline)
        agent = outline.perception.agent
        if agent is None:
            return Proposal("", failure=UNSEEN)
        known = [one for one in shapings(headed=agent.heading_channel is not None) if one != found.shaping]
        if version >= len(known):
            return Proposal("", failure=f"cannot reshape further: {len(known)} versions are all there are")
        shaping = known[version]
        about = f"{shaping.near:g} at most for progress, by {shaping.form}; 1.0 where {found.happens}."
        return Proposal(write_program(outline, found.happens, shaping), reasoning=about)

    def _with_heading(self, outline: Outline) -> Outline:
        """The outline, with the heading of the same agent in the training data if the program has none."""
        agent = outline.perception.agent
        if agent is None or agent.heading_channel is not None:
            return outline
        if not self._looked:
            states = [np.asarray(item.trajectory.states, dtype=np.int64) for item in self._problem.train]
            self._agent, self._looked = find_agent(states), True
        seen = self._agent
        if seen is None or (seen.channel, seen.code) != (agent.channel, agent.code):
            return outline
        return replace(outline, perception=replace(outline.perception, agent=seen))
