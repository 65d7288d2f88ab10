"""Audits of programs that the tests write, in a sandbox within the process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from grace_irl.audit.contrast import Judge
from grace_irl.audit.warning import Audit, RewardWarning
from grace_irl.demos.labels import Problem, label
from grace_irl.demos.split import split
from grace_irl.demos.trajectory import Demonstration, Demonstrations, LabelRule, Metadata, Role, Trajectory
from grace_irl.evaluate.evaluator import DiscriminatorEvaluator
from grace_irl.evaluate.separation import Separation
from grace_irl.programs.program import Program
from grace_irl.propose.material import Workbench
from grace_irl.runs.auditing import audited
from grace_irl.runs.record import Record
from tests.fakes.in_process_sandbox import InProcessSandbox

HEAD = "class Reward:\n    def __init__(self, extra_info=None):\n        self.text, self.step = extra_info, -1\n"


def program(body: str) -> Program:
    """A program whose `reward_fn` has this body. It knows `self.text`, `self.step` and `state`."""
    lines = "".join(f"        {line}\n" for line in ("self.step += 1", *body.split("\n")))
    source = f"{HEAD}\n    def reward_fn(self, state):\n{lines}"
    return replace(InProcessSandbox().inspect(source).program(source), size=10)


def examined(
    demonstrations: Demonstrations,
    body: str,
    rule: LabelRule = "last",
    held_out: float = 0.25,
    judge: Judge | None = lambda _, texts, __: [None] * len(texts),
) -> Audit:
    """The audit of a program. By default no simulator can judge instructions."""
    problem: Problem = label(split(demonstrations, held_out, 0), rule)
    with InProcessSandbox() as sandbox:
        best = program(body)
        found = DiscriminatorEvaluator(problem, sandbox).evaluate([best])[0]
        assert Separation.of(found) is not None, found.message
        audit = audited(Workbench(problem, sandbox), Record(best, found, 0), judge)
    assert audit is not None
    return audit


def codes(audit: Audit) -> set[str]:
    """The codes of the warnings."""
    return {warning.code for warning in audit.warnings}


def warned(audit: Audit, code: str) -> RewardWarning:
    """The warning with this code."""
    found = [warning for warning in audit.warnings if warning.code == code]
    assert found, f"no warning {code!r} among {sorted(codes(audit))}"
    return found[0]


Episode = Callable[[np.random.Generator, Role], Trajectory]


def drawn(episode: Episode, count: int = 24, seed: int = 0, **about: object) -> Demonstrations:
    """So many experts and so many negatives."""
    rng = np.random.default_rng(seed)
    roles: Sequence[Role] = ("expert", "negative")
    items = tuple(Demonstration(episode(rng, role), role) for role in roles for _ in range(count))
    return Demonstrations(Metadata("vector", **about), items)  # type: ignore[arg-type]
