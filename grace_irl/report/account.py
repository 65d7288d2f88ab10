"""Facts about a run for the head of its report: data, proposer of the programs, cost and ending."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grace_irl.config import Config
from grace_irl.methods.registry import method_of, task_named
from grace_irl.propose.briefing import neutral_names
from grace_irl.report.evidence import SIDES
from grace_irl.report.task import task_facts
from grace_irl.runs.budget import Prices, Spending, spending
from grace_irl.runs.config import flat
from grace_irl.runs.provenance import data_digest, short
from grace_irl.runs.record import TrajectoryRow
from grace_irl.runs.store import Store

RULES = {
    "all": "every state of an expert",
    "last": "the last state of each expert trajectory",
    "goal": "the goal states of expert trajectories",
}
"""Descriptions of the positive states, by label rule."""


@dataclass(frozen=True)
class Part:
    """The training, validation or held-out data.

    Attributes:
        side: name of the split, as in `SIDES`.
        experts, negatives, swaps: number of expert trajectories, of negative ones, and of swaps (`--swaps`).
        states, positives: number of all states, and of positive states.
        digest: one digest for all trajectories of this part.
    """

    side: str
    experts: int
    negatives: int
    swaps: int
    states: int
    positives: int
    digest: str


@dataclass(frozen=True)
class RunAccount:
    """The facts at the head of a report.

    Attributes:
        title: heading of the report, with the task or the names of the demonstrations.
        parts: training, validation and held-out data.
        facts: further facts as pairs of name and value.
        ending: a phrase about the end of the run, or about a run that has not ended.
        notes: messages to the user during the run, as pairs of time and text.
    """

    title: str
    parts: tuple[Part, ...]
    facts: tuple[tuple[str, str], ...]
    ending: str
    notes: tuple[tuple[str, str], ...]


NOTES = 20  # maximum number of messages in `RunAccount.notes`; earlier messages are omitted


def account(store: Store, config: Config, environment: str) -> RunAccount:
    """The facts of a run.

    Args:
        store, config: database and configuration of the run.
        environment: name of the environment of the demonstrations; "" if unknown.
    """
    events = store.events()
    spent = spending(store, Prices(config.model.price_in, config.model.price_out))
    return RunAccount(
        title=_title(config),
        parts=tuple(_parts(store.trajectories())),
        facts=tuple(_facts(store, config, spent, environment, events)),
        ending=_ending(events),
        notes=_notes(events)[-NOTES:],
    )


def _notes(events: Sequence[tuple[str, str, str]]) -> tuple[tuple[str, str], ...]:
    """Messages with the time of the first one of each. A run that is resumed repeats those about its beginning."""
    times: dict[str, list[str]] = {}
    for time, kind, detail in events:
        if kind == "note":
            times.setdefault(detail, []).append(time)
    return tuple(
        (found[0], f"{detail} ({len(found)} times)" if found[1:] else detail) for detail, found in times.items()
    )


def _title(config: Config) -> str:
    if task := task_named(config):
        return f"Reward for task {Path(task).stem}"
    named = [short(name) for name in config.data.files]
    told = ", ".join(named[:3]) + (f" and {len(named) - 3} more" if len(named) > 3 else "")
    return f"Reward from {told or 'demonstrations given by a program'}"


def _parts(rows: Sequence[TrajectoryRow]) -> list[Part]:
    found = []
    for name, side in SIDES.items():
        own = [row for row in rows if row.split == name]
        if own:
            experts, swaps = sum(row.role == "expert" for row in own), sum(row.swap for row in own)
            states, positives = sum(row.states for row in own), sum(row.positives for row in own)
            digest = data_digest(row.digest for row in own)
            found.append(Part(side, experts, len(own) - experts - swaps, swaps, states, positives, digest))
    return found


def _facts(
    store: Store, config: Config, spent: Spending, environment: str, events: Sequence[tuple[str, str, str]]
) -> list[tuple[str, str]]:
    told, rule, reason = store.told(), store.meta("label"), store.meta("label_reason")
    model = f", model {config.model.name}" if config.model.name else ""
    log_pi = flat(config).get("fitness.log_pi") if method_of(config).needs.demonstrations else ""
    facts = [
        *(task_facts(store.folder, config) if task_named(config) else [("environment", environment)]),
        ("tasks", _tasks(store.trajectories(), prompted=config.proposer.name in ("llm", "manual"))),
        (
            "positive states",
            f"{RULES.get(rule, rule)} (label rule {rule}{f': {reason}' if reason else ''})"
            if rule and store.trajectories()
            else "",
        ),
        ("proposer", f"{config.proposer.name}{model}"),
        ("method", f"{config.method}, seed {config.seed}{f', log pi {log_pi}' if log_pi else ''}"),
        ("tried", f"{len(store.records()):,} programs in {len(told):,} answers"),
        ("search", f"{store.seconds():,.1f} s"),
        ("model calls", _calls(spent)),
        ("cost", f"{spent.cost:,.4g}" if spent.cost else ""),
        ("version", next((detail for _, kind, detail in events if kind == "started"), "")),
        ("begun", events[0][0] if events else ""),
        ("last event", events[-1][0] if events else ""),
    ]
    return [(name, value) for name, value in facts if value]


def _tasks(rows: Sequence[TrajectoryRow], *, prompted: bool) -> str:
    """The names of the tasks, as text. If prompts use neutral names, these are added: `GoToObj (task A in prompts)`."""
    names = neutral_names(row.task for row in sorted(rows, key=lambda row: row.split != "train"))
    if [*names] == ["default"]:
        return ""
    lettered = prompted and len(names) > 1
    return ", ".join(f"{task} (task {names[task]} in prompts)" if lettered else task for task in sorted(names))


def _calls(spent: Spending) -> str:
    if not spent.tokens_in + spent.tokens_out:
        return ""
    tokens = f"{spent.tokens_in:,} tokens in, {spent.tokens_out:,} out"
    return f"{spent.calls:,}, {tokens}, {spent.seconds:,.0f} s of calls"


def _ending(events: Sequence[tuple[str, str, str]]) -> str:
    """The state of the run, from the last event that is not a note."""
    kind, detail = next(((kind, detail) for _, kind, detail in reversed(events) if kind != "note"), ("", ""))
    if kind == "stopped":
        return f"ended by {detail}"
    if kind in ("interrupted", "failed"):
        return f"{kind}: {detail}"
    return "has not ended: it is under way, or was broken off"
