"""`grace-irl show`: the programs and progress of a run, and what happened to each candidate program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from grace_irl.cli.console import console, plain_table, print_json, print_source, say, table_of
from grace_irl.cli.follow import follow_to_the_end
from grace_irl.cli.rounds import show_rounds
from grace_irl.errors import InputError
from grace_irl.evaluate.evaluation import Evaluation, shown
from grace_irl.methods.account import Account
from grace_irl.methods.registry import method_of
from grace_irl.programs.library import Usage
from grace_irl.runs.auditing import stored_audit
from grace_irl.runs.budget import Prices, Spending, kinds, spending
from grace_irl.runs.expand.expansion import is_expansion
from grace_irl.runs.folder import RunPaths
from grace_irl.runs.front import front_figures, front_of
from grace_irl.runs.provenance import Reuse, lineage, reuse
from grace_irl.runs.record import Record, candidate
from grace_irl.runs.rest import stored_rest
from grace_irl.runs.run import Generation, history, opened, require_single
from grace_irl.runs.store import FateRow, Store
from grace_irl.search.ranks import ranked

SHOWN_FATES, SHOWN_EVENTS = 20, 5


def show(
    run: Annotated[Path, typer.Argument(help="The folder of a run; a live one will do.")],
    program: Annotated[
        str | None,
        typer.Option("--program", metavar="ID", help="One program: its source, score, lineage and fates."),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="How many of the best programs to list.")] = 10,
    fates: Annotated[bool, typer.Option("--fates", help="Every candidate's fate, not only the last ones.")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Follow the run until it ends, then show it.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object as the last line.")] = False,
) -> None:
    """Show a run: its best programs, its progress, and the fate of each candidate.

    Example: grace-irl show runs/my-run --follow
    """
    if follow:
        follow_to_the_end(run)
    if is_expansion(run):
        if program is not None or fates:
            require_single(run)
        show_rounds(run, as_json=as_json)
        return
    with opened(run) as (store, config):
        if program is not None:
            _show_program(store, run, program, method_of(config).account, as_json=as_json)
        else:
            prices = Prices(config.model.price_in, config.model.price_out)
            _show_run(store, run, prices, method_of(config).account, top=top, all_fates=fates, as_json=as_json)


def find(store: Store, folder: Path, prefix: str) -> Record:
    """The program whose id starts with a prefix.

    Raises:
        InputError: no id or several ids start with the prefix.
    """
    found = [record for name, record in store.records().items() if name.startswith(prefix)]
    if len(found) != 1:
        raise InputError(
            f"{folder}: {len(found)} programs have an id that starts with {prefix!r}; "
            f"expected one: see the ids with: grace-irl show {RunPaths(folder).quoted}"
        )
    return found[0]


def _show_program(store: Store, run: Path, prefix: str, account: Account, *, as_json: bool) -> None:
    record = find(store, run, prefix)
    own = [row for row in store.fates() if row.fate.program_id == record.program.id]
    proposal = store.proposal(record.index)
    ancestors = lineage(record, store.records())
    if as_json:
        print_json(
            {
                "program": record.program,
                "evaluation": {**_outcome(record.evaluation), **account.values(record.evaluation)},
                "fates": [_fate_object(row) for row in own],
                "lineage": ancestors,
                "reasoning": proposal.reasoning if proposal else "",
            }
        )
        return
    out = console()
    print_source(out, record.program.source)
    evaluation = record.evaluation
    if evaluation.valid and evaluation.complete:
        for figures in account.figures(evaluation):
            out.print(table_of(figures))
        for remark in account.details(evaluation):
            say(remark)
    if evaluation.message:
        say(f"{evaluation.status}: {evaluation.message}")
    if evaluation.traceback:
        out.print(evaluation.traceback)
    if proposal and proposal.reasoning:
        out.print(f"reasoning: {proposal.reasoning}")
    say(f"lineage: {' <- '.join(ancestors)}")
    out.print(_fates_table(own))


def _show_run(
    store: Store, run: Path, prices: Prices, account: Account, *, top: int, all_fates: bool, as_json: bool
) -> None:
    records, rows, best = store.records(), store.fates(), store.meta("best")
    last = {row.fate.program_id: row.fate for row in rows if row.fate.verdict != "duplicate"}
    kept = [
        record
        for name, record in records.items()
        if name == best or (name in last and last[name].verdict == "kept")  # validation may choose a dropped program
    ]
    places = {scored.program.id: place for place, scored in enumerate(ranked(map(candidate, kept)))}
    kept.sort(key=lambda record: (record.program.id != best, places[record.program.id]))
    generations = history(store)
    told = store.told()
    verdicts = Counter(row.fate.verdict for row in rows)
    failures = [entry for entry in told.values() if entry.failure]
    events = store.events()
    front = front_of(store, records)
    spent, reused, audit, rest = spending(store, prices), reuse(store), stored_audit(store), stored_rest(store)
    if as_json:
        print_json(
            {
                "run": str(run),
                "best": best or None,
                "calls": len(told),
                "programs": len(records),
                "seconds": store.seconds(),
                "verdicts": dict(verdicts),
                "population": [_record_object(record, account) for record in kept],
                "label": store.meta("label"),
                "label_reason": store.meta("label_reason"),
                "goals": goals_found(store),
                "front": front,
                "rest": rest,
                "contrast": audit and audit.contrast,
                "warnings": audit.warnings if audit else (),
                "generations": [_generation_object(each, account) for each in generations],
                "fates": [_fate_object(row) for row in rows],
                "failures": [{"index": entry.index, "failure": entry.failure} for entry in failures],
                "failure_kinds": kinds(entry.failure for entry in failures),
                "spent": {**vars(spent), "per_call": spent.per_call()},
                "functions": len(reused.functions),
                "shared_functions": [_usage_object(use) for use in reused.shared],
                "events": [{"time": time, "kind": kind, "detail": detail} for time, kind, detail in events],
            }
        )
        return
    out = console()
    out.print(_programs_table(kept[:top], best, account))
    if len(front) > 1:
        out.print(table_of(front_figures(front)))
    for remark in remarks_of(kept[:top], account):
        say(remark)
    if (reason := store.meta("label_reason")) and store.trajectories():
        say(f"label rule {store.meta('label')}: {reason}")
    if found := goals_found(store):
        cost = prices.cost(found["tokens_in"], found["tokens_out"])
        say(goals_line(found, RunPaths(run).goals, cost))
    if rest is not None:
        say(rest.line)
    for warning in audit.warnings if audit else ():
        say(warning.line)
    out.print(_generations_table(generations, account))
    if reused.shared:
        out.print(_library_table(reused, top))
    out.print(_fates_table(rows if all_fates else rows[-SHOWN_FATES:]))
    counted = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    say(f"fates: {counted or 'none yet'}; {len(failures)} answers without a program")
    followed = [answer.failure for _, attempt, answer in store.proposals() if attempt and answer.failure]
    by_kind = kinds(entry.failure for entry in failures)
    if by_kind:
        say(f"  by kind: {', '.join(f'{count} {kind}' for kind, count in by_kind.items())}")
    if followed:
        which = ", ".join(f"{count} {kind}" for kind, count in kinds(followed).items())
        say(f"  besides, {len(followed)} follow-up answers, such as repairs, without a program: {which}")
    for reason, count in Counter(entry.failure for entry in failures).most_common(3):
        say(f"  {count} times: {reason}")
    if spent.calls:
        say(_spent(spent))
    notes = [event for event in events if event[1] == "note"]
    others = [event for event in events if event[1] != "note"]
    if len(notes) > SHOWN_EVENTS:
        say(f"{len(notes)} notes, the last {SHOWN_EVENTS} of them (--json has all):")
    for time, kind, detail in sorted(notes[-SHOWN_EVENTS:] + others[-3:], key=events.index):
        say(f"{time}  {kind}: {detail}")


def _spent(spent: Spending) -> str:
    """One line with the totals of a run's spending, and the means per call."""
    each = spent.per_call()
    words = [f"{spent.calls} calls brought {spent.answers} answers"]
    if spent.tokens_in or spent.tokens_out:
        per = f"{each['tokens_in']:.0f} + {each['tokens_out']:.0f} per call"
        words.append(f"{spent.tokens_in} tokens in, {spent.tokens_out} out ({per})")
    if spent.cost:
        words.append(f"cost {spent.cost:.4g} ({each['cost']:.4g} per call)")
    words.append(f"{spent.seconds:.1f} s of calls ({each['seconds']:.1f} per call)")
    return "; ".join(words)


def remarks_of(records: Sequence[Record], account: Account) -> list[str]:
    """Remarks of an account on programs. If a remark does not hold for all of them, it names its programs."""
    found: dict[str, list[str]] = {}
    for record in records:
        for remark in dict.fromkeys(account.cautions(record.evaluation)):
            found.setdefault(remark, []).append(record.program.id)
    return [
        remark if len(names) == len(records) else f"{', '.join(names)}: {remark}" for remark, names in found.items()
    ]


def _programs_table(records: list[Record], best: str, account: Account) -> Table:
    names = ("program", account.score, *(each.title for each in account.columns), "bits", "made by", "candidate")
    table = plain_table(*names, title="best programs (* the best)")
    for record in records:
        table.add_row(
            f"{record.program.id} *" if record.program.id == best else record.program.id,
            shown(record.evaluation.score),
            *(each.cell(record.evaluation.metrics) for each in account.columns),
            str(record.program.size),
            record.program.operator,
            str(record.index),
        )
    return table


def _generations_table(generations: list[Generation], account: Account) -> Table:
    counted = ("answers", "kept", "dropped", "invalid", "duplicate", "repaired", "failed", "new functions", "reused")
    named = (f"best {account.score}", *(each.title for each in account.progress))
    table = plain_table("", *named, *counted, title="generations", numbers=True)
    for row in generations:
        fates = (row.kept, row.dropped, row.invalid, row.duplicate, row.repaired)
        counts = (row.calls, *fates, row.failed, row.new_functions, row.reused_functions)
        cells = (each.cell(row.metrics) for each in account.progress)
        table.add_row(str(row.number), shown(row.score), *cells, *map(str, counts))
    return table


def _library_table(reused: Reuse, top: int) -> Table:
    title = (
        f"functions that programs share: {len(reused.shared)} of {len(reused.functions)} (export --library writes them)"
    )
    table = plain_table("function", "valid programs", "programs", "called at", "best in", "first in", title=title)
    for use in reused.shared[:top]:
        counts = map(str, (use.valid, use.programs, use.calls))
        table.add_row(_short(use.known.name), *counts, use.best, use.known.program)
    return table


def _fates_table(rows: list[FateRow]) -> Table:
    table = plain_table("generation", "program", "verdict", "why", title="fates")
    for row in rows:
        table.add_row(str(row.generation), row.fate.program_id, row.fate.verdict, _short(row.fate.reason))
    return table


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 120 else f"{words[:119]}…"


def _record_object(record: Record, account: Account) -> dict[str, Any]:
    return {
        "program": record.program.id,
        "candidate": record.index,
        "operator": record.program.operator,
        "parents": record.program.parents,
        "size": record.program.size,
        **account.values(record.evaluation),
    }


def _generation_object(row: Generation, account: Account) -> dict[str, Any]:
    counted = {name: value for name, value in vars(row).items() if name not in ("score", "metrics")}
    named = {each.name: row.metrics.get(each.metric) for each in account.progress}
    return {**counted, account.score: row.score, **named}


def _outcome(evaluation: Evaluation) -> dict[str, Any]:
    """The fields of an evaluation that are common to all methods, as a JSON object."""
    names = ("status", "message", "traceback", "seconds", "complete")
    return {name: getattr(evaluation, name) for name in names} | {"metrics": dict(evaluation.metrics)}


def _usage_object(use: Usage) -> dict[str, Any]:
    return {
        "name": use.known.name,
        "digest": use.known.digest,
        "programs": use.programs,
        "valid": use.valid,
        "calls": use.calls,
        "best": use.best,
        "first": use.known.program,
    }


def _fate_object(row: FateRow) -> dict[str, Any]:
    fate = row.fate
    return {
        "generation": row.generation,
        "candidate": row.index,
        "program": fate.program_id,
        "verdict": fate.verdict,
        "reason": fate.reason,
    }


def goals_found(store: Store) -> dict[str, Any]:
    """Numbers of goal states, calls and tokens in a run, as a JSON object; {} if the run needed no goal states.

    Answers about trajectories outside the run's sample do not count.
    """
    own = {row.digest for row in store.trajectories()}
    answers = [answer for answer in store.goals() if answer.digest in own]
    if not answers:
        return {}
    last = {answer.digest: answer for answer in answers if answer.indices is not None}
    return {
        "trajectories": len({answer.digest for answer in answers}),
        "known": len(last),
        "with_goals": sum(bool(answer.indices) for answer in last.values()),
        "states": sum(len(answer.indices or ()) for answer in last.values()),
        "by": dict(Counter(answer.origin for answer in last.values())),
        "calls": sum(answer.origin == "model" for answer in answers),
        "tokens": sum(answer.tokens_in + answer.tokens_out for answer in answers),
        "tokens_in": sum(answer.tokens_in for answer in answers),
        "tokens_out": sum(answer.tokens_out for answer in answers),
        "seconds": sum(answer.seconds for answer in answers),
    }


def goals_line(found: dict[str, Any], path: Path, cost: float = 0.0) -> str:
    """One line with the figures of `goals_found`, and with the cost of the calls."""
    by = ", ".join(f"{count} by {origin}" for origin, count in found["by"].items())
    text = (
        f"goal states: {found['states']} in {found['with_goals']} of {found['trajectories']} expert trajectories "
        f"({by or 'none answered yet'})"
    )
    if found["calls"]:
        text += f", {found['calls']} calls, {found['tokens']} tokens" + (f", cost {cost:.4g}" if cost else "")
    return f"{text}; see {path}"
