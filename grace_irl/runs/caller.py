"""Objects that a caller brings to a run, and lines for the user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from grace_irl.demos.trajectory import Demonstrations
from grace_irl.propose.protocol import Proposer
from grace_irl.runs.engine import Snapshot
from grace_irl.runs.folder import RunPaths
from grace_irl.runs.store import Store
from grace_irl.sandbox.protocol import Sandbox
from grace_irl.work import Workplace


@dataclass(frozen=True)
class Parts:
    """Objects of the caller that replace configured parts of a run, and callbacks.

    Attributes:
        demonstrations: demonstrations in place of the files that `config.data` names.
        proposer: proposer in place of the configured proposer.
        sandbox: open sandbox in place of a new one.
        listener: callback that gets a snapshot of the run after each answer and after each result.
        note: callback for lines to the user, for example about a lost server.
        whole: folder of the expansion or comparison that contains the run; None for a separate run. Messages tell the
            user to resume this folder instead of the run's folder.
        reason: reason for the label rule, if an expansion or comparison has chosen the rule; else "".
        rest: whether to test the result on the trajectories that a sample left out.
        workplace: place where the run does its heavy work.
        spent: tokens and cost of the earlier searches of the expansion that contains the run. The limits of tokens and
            cost count them, too.
        device: torch device of an expansion's trainings (`grace_irl.rl.learning.make_learner`).
    """

    demonstrations: Demonstrations | None = None
    proposer: Proposer | None = None
    sandbox: Sandbox | None = None
    listener: Callable[[Snapshot], None] | None = None
    note: Callable[[str], None] | None = None
    whole: Path | None = None
    reason: str = ""
    rest: bool = True
    workplace: Workplace = field(default_factory=Workplace)
    spent: tuple[int, float] = (0, 0.0)
    device: str = "auto"

    def again(self, folder: Path) -> str:
        """The arguments that resume a run with this folder, or the expansion or comparison that contains the run."""
        return RunPaths(self.whole or folder).resume


def notes_of(store: Store, parts: Parts) -> Callable[[str], None]:
    """Return a function that stores a line as an event of the run, and shows it to the user."""

    def note(text: str) -> None:
        store.add_event("note", text)
        if parts.note is not None:
            parts.note(text)

    return note
