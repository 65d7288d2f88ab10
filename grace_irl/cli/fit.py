"""`grace-irl fit`: from demonstrations to a reward file."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rich.table import Table

from grace_irl.api import SETTINGS
from grace_irl.cli import fit_options as options
from grace_irl.cli.console import accuracy_line, console, metrics_object, metrics_table, print_json, print_source, say
from grace_irl.cli.fit_options import DEFAULTS
from grace_irl.cli.memory import MaxMemory
from grace_irl.cli.progress import FitProgress, rounds_table
from grace_irl.cli.report import report_of_fit
from grace_irl.errors import InputError
from grace_irl.runs import fit as fits
from grace_irl.runs import proposers
from grace_irl.runs.acting import worded
from grace_irl.runs.estimate import Cap, Estimate, Total, estimated
from grace_irl.runs.expand import expansion
from grace_irl.runs.folder import RunPaths
from grace_irl.runs.recording import recorded_config
from grace_irl.runs.run import Interrupted, Run


def print_estimate(estimate: Estimate, *, as_json: bool) -> None:
    """Tables for people, one object for programs."""
    if as_json:
        print_json(vars(estimate) | {name: _object(getattr(estimate, name)) for name in ("typical", "most")})
        return
    out = console()
    say(f"proposer {estimate.proposer}, model {estimate.model or 'not known'}")
    out.print(_prompts(estimate))
    out.print(_totals(estimate))
    for cap in estimate.caps:
        say(_cap(cap))
    for line in (*estimate.assumptions, *estimate.notes):
        say(f"- {line}")


def _object(total: Total) -> dict[str, object]:
    return vars(total) | {"tokens": total.tokens}


def _prompts(estimate: Estimate) -> Table:
    table = Table(title="tokens of one call", title_justify="left", box=None, pad_edge=False)
    for name in ("", "typical", "at most"):
        table.add_column(name, justify="right" if name else "left")
    for name, size in estimate.prompts.items():
        table.add_row(f"prompt, {name}{' (a guess)' if size.guess else ''}", str(size.typical), str(size.most))
    answers = f"each of {estimate.samples} answers" if estimate.samples > 1 else "answer"
    table.add_row(f"{answers} (a guess)", str(estimate.answer_typical), str(estimate.answer_most))
    return table


def _totals(estimate: Estimate) -> Table:
    table = Table(title="the whole run", title_justify="left", box=None, pad_edge=False)
    for name in ("", "programs", "calls", "of them repairs", "tokens in", "tokens out", "cost"):
        table.add_column(name, justify="right" if name else "left")
    for name, total in (("typical", estimate.typical), ("at most", estimate.most)):
        counts = (total.programs, total.calls, total.repairs, total.tokens_in, total.tokens_out)
        table.add_row(name, *map(str, counts), f"{total.cost:.4g}" if total.cost else "no prices given")
    return table


def _cap(cap: Cap) -> str:
    """A cap beside what the run takes of it."""
    if cap.most <= cap.limit:
        said = f"never reached (at most {cap.most:.4g})"
    elif cap.typical <= cap.limit:
        said = f"a typical run takes {cap.typical / cap.limit:.0%} of it, the longest would be ended by it"
    else:
        said = f"ends a typical run after {cap.limit / cap.typical:.0%} of it"
    return f"--{cap.name} {cap.limit:.10g}: {said}"


def fit(
    demos: options.Demos = None,
    negatives: options.Negatives = None,
    label: options.Label = None,
    goals: options.Goals = None,
    held_out: options.HeldOut = None,
    field_names: options.FieldNames = None,
    proposer: options.Proposer = None,
    method: options.Method = None,
    population: options.Population = None,
    elite: options.Elite = None,
    generations: options.Generations = None,
    reshape: options.Reshape = None,
    parent_temperature: options.ParentTemperature = None,
    steady: options.Steady = None,
    seed_synthesis: options.SeedSynthesis = None,
    start_from: options.StartFrom = None,
    log_pi: options.LogPi = None,
    calibrate: options.Calibrate = None,
    expand: options.Expand = None,
    env: options.Env = None,
    env_steps: options.EnvSteps = None,
    rollouts: options.Rollouts = None,
    online_reshape: options.OnlineReshape = None,
    trust_reward: options.TrustReward = None,
    llm_url: options.LlmUrl = None,
    model: options.Model = None,
    temperature: options.Temperature = None,
    answer_tokens: options.AnswerTokens = None,
    concurrency: options.Concurrency = None,
    samples_per_call: options.SamplesPerCall = None,
    answer_format: options.AnswerFormat = None,
    repair: options.Repair = None,
    llm_patience: options.LlmPatience = None,
    context: options.Context = None,
    images: options.Images = None,
    max_seconds: options.MaxSeconds = None,
    max_calls: options.MaxCalls = None,
    max_tokens: options.MaxTokens = None,
    max_cost: options.MaxCost = None,
    target_accuracy: options.TargetAccuracy = None,
    plateau: options.Plateau = None,
    workers: options.Workers = None,
    allow_weak_sandbox: options.AllowWeakSandbox = None,
    max_memory: MaxMemory = None,
    seed: options.Seed = None,
    out: options.Out = None,
    resume: options.Resume = None,
    replay: options.Replay = None,
    estimate: options.Estimate = False,
    config: options.ConfigFile = None,
    set_: options.Sets = None,
    as_json: options.AsJson = False,
) -> None:
    """Recover a reward function from demonstrations.

    Writes a run folder (config.toml, run.db, reward.py, report.html) and prints reward.py. Ctrl-C saves; --resume
    goes on.
    """
    given = locals()
    flags: dict[str, object] = {setting: given[name] for name, setting in SETTINGS.items()}
    flags["proposer.name"] = proposer
    flags["proposer.start_from"] = tuple(start_from) if start_from else None
    flags["data.demos"] = tuple(demos) if demos else None
    flags["data.negatives"] = tuple(negatives) if negatives else None
    sets = tuple(set_ or ())
    try:
        if resume is not None:
            own = None if options.mirrored("config", config) else config
            if out is not None or own is not None or replay is not None or estimate:
                raise InputError(
                    "--resume with --out, --config, --replay or --estimate; "
                    "expected one or the other: the run has its own"
                )
            with FitProgress(generations or DEFAULTS.search.generations) as progress:
                parts = fits.Parts(listener=progress, note=progress.note)
                if expansion.is_expansion(resume):
                    run = expansion.resume(resume, flags, sets=sets, parts=parts)
                else:
                    run = fits.resume(resume, flags, sets=sets, parts=parts)
        else:
            resolved = worded(config, sets, flags, recorded_config(replay) if replay else None)
            if not resolved.data.demos:
                raise InputError("no demonstrations; expected --demos PATH…, such as --demos datasets/babyai-go-to-obj")
            if estimate:
                if said := proposers.destination(proposers.settled(resolved)):
                    say(said, err=True)
                print_estimate(estimated(resolved), as_json=as_json)
                return
            with FitProgress(resolved.search.generations) as progress:
                parts = fits.Parts(listener=progress, note=progress.note)
                if resolved.expand.rounds:
                    run = expansion.start(resolved, out, parts)
                else:
                    run = fits.start(resolved, out, parts)
    except Interrupted as interrupted:
        _leave(interrupted)
    _print(run, report_of_fit(run.folder), as_json=as_json)


def _print(run: Run, report: Path | None, *, as_json: bool) -> None:
    out = console()
    best = run.best
    if not as_json or out.is_terminal:
        print_source(out, run.reward_path.read_text(encoding="utf-8"))
        out.print(metrics_table([("train", best.train), ("held out", best.held_out)]))
        for name, (train, held_out) in best.evaluation.tasks.items() if len(best.evaluation.tasks) > 1 else ():
            out.print(metrics_table([(f"{name}, train", train), (f"{name}, held out", held_out)]))
        say(accuracy_line(best.evaluation.threshold))
        tried = f"{run.programs} programs in {run.calls} answers, generations complete: {run.generations}"
        if run.tokens:
            tried += f", {run.tokens} tokens" + (f" for {run.cost:.4g}" if run.cost else "")
        say(f"{tried}, {run.seconds:.1f} s of search; ended by {run.reason}")
        if run.rounds:
            out.print(rounds_table(run.rounds))
        say(f"reward: {run.reward_path}")
        if run.favourite is not None:
            say(f"policy: {run.folder / run.favourite.policy} (of these, the reward likes it best)")
        if report is not None:
            say(f"report: {report}")
    if as_json:
        print_json(
            {
                "run": str(run.folder),
                "reward_path": str(run.reward_path),
                "policy_path": None if run.favourite is None else str(run.folder / run.favourite.policy),
                "report_path": None if report is None else str(report),
                "fitness": best.fitness,
                "train": metrics_object(best.train),
                "held_out": metrics_object(best.held_out),
                "tasks": best.evaluation.tasks,
                "monotonicity": best.evaluation.monotonicity,
                "scale": best.evaluation.scale,
                "offset": best.evaluation.offset,
                "threshold": best.evaluation.threshold,
                "program": best.program.id,
                "programs": run.programs,
                "calls": run.calls,
                "tokens": run.tokens,
                "cost": run.cost,
                "generations": run.generations,
                "seconds": run.seconds,
                "proposer": run.proposer,
                "label": run.label.rule if run.label else "",
                "label_reason": run.label.reason if run.label else "",
                "notes": run.notes,
                "reason": run.reason,
                "rounds": run.rounds,
            }
        )


def _leave(interrupted: Interrupted) -> None:
    """Says what is saved and leaves at once: a thread that still computes would hold the exit up."""
    resume = RunPaths(interrupted.folder).resume
    say(f"grace-irl: interrupted; saved. Go on with: grace-irl fit {resume}", err=True)
    if interrupted.best is not None:
        say(f"best so far: {RunPaths(interrupted.folder).reward}", err=True)
    sys.stderr.flush()
    try:
        report_of_fit(interrupted.folder)
    except KeyboardInterrupt:
        say("grace-irl: no report", err=True)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(130)
