"""The outcome of an input: data that later stages can use, or one line; anything else is wrong."""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fuzzing import settings


class WrongError(Exception):
    """An input was neither read nor refused as it should be."""


def require(holds: bool, what: str) -> None:
    """Refuses what a reader let through.

    Raises:
        WrongError: it does not hold.
    """
    if not holds:
        raise WrongError(what)


def demonstrations(path: Path) -> None:
    """Loads a set and does with it what `fit` does first."""
    from grace_irl.demos import load

    _checked(load([path]))


def screens(path: Path) -> None:
    """Loads screens, whatever their roles."""
    from grace_irl.demos import load

    _checked(load([path], role="negative"))


def _checked(found: Any) -> None:
    """Refuses a set that later stages refuse: a reader lets nothing through that cannot be used."""
    from grace_irl.errors import InputError

    require(len(found) > 0, "a set of nothing")
    try:
        for item in found:
            _demonstration(item)
        _stages(found)
    except InputError as error:
        raise WrongError(f"read, and refused afterwards: {error}") from error


def _demonstration(item: Any) -> None:
    trajectory = item.trajectory
    for text in (trajectory.extra_info, item.task, trajectory.source, item.role):
        require(isinstance(text, str), f"a text that is {type(text).__name__}")
        text.encode()
    require(item.role in ("expert", "negative") and item.split in (None, "train", "held_out"), "role or split")
    require(len(trajectory.states) > 0, "no state")
    for name, part in trajectory.state_kind.parts(trajectory.states).items():
        texts = "S" if trajectory.kind == "ui" else "S" if trajectory.kind == "record" else ""
        require(part.dtype.kind in f"fiu{texts}", "states of another type")
        require(0 not in part.shape, f"nothing in a state, or in its part {name!r}")
        if part.dtype.kind == "f":
            require(bool(np.isfinite(part).all()), "states that are not finite")
    if trajectory.kind == "ui":
        _screens(trajectory)
    if trajectory.actions is not None:
        require(trajectory.actions.dtype.kind in "biuf", "actions that are no numbers")
        require(bool(np.isfinite(trajectory.actions.astype(np.float64)).all()), "actions that are not finite")
    for values in (trajectory.rewards, trajectory.log_probs):
        if values is not None:
            require(values.dtype == np.float64 and values.shape == (trajectory.num_steps,), "rewards of another shape")
            require(bool(np.isfinite(values).all()), "rewards or log-probabilities that are not finite")
    require(isinstance(trajectory.terminated, bool) and isinstance(trajectory.truncated, bool), "ends that are no bool")
    goals = item.goals
    require(goals is None or all(isinstance(goal, int) for goal in goals), "goals that are no whole numbers")


def _stages(found: Any) -> None:
    """The steps after loading: a summary, labels, rows of the store, now and then a file."""
    from grace_irl.demos import save
    from grace_irl.demos.label_rule import RuleEvidence
    from grace_irl.demos.labels import label
    from grace_irl.demos.split import split
    from grace_irl.demos.summary import DemosSummary
    from grace_irl.errors import InputError
    from grace_irl.runs.record import trajectory_rows

    summary = DemosSummary("", (), found.metadata, evidence=RuleEvidence(found.metadata.kind, ()))
    for item in found:
        summary.add(item)
    json.dumps(summary.to_json()).encode()
    problem = label(found, found.metadata.label if found.metadata.label in ("all", "last") else "all")
    rows = trajectory_rows(problem)
    for rule in ("last", "goal"):
        try:
            label(found, rule)
        except InputError:
            continue
    if zlib.crc32(rows[0].digest.encode()) % 16 == 0:
        with suppress(InputError):
            split(found, 0.25, 0)
        with suppress(InputError):
            save(found, Path(f"{found[0].trajectory.source.partition(':')[0]}.out.parquet"))


def _screens(trajectory: Any) -> None:
    from grace_irl.states.texts import text
    from grace_irl.states.ui import markup
    from grace_irl.states.ui.screen import Screen

    _pictures(trajectory)
    for state in trajectory.states:
        root = markup.parse(bytes(state))
        require(markup.write(root) == text(state), "a state that is not in the one spelling")
        screen = Screen.of(root)
        whole = len(screen.nodes) == sum(1 for _ in root.iter("node")) and isinstance(screen.package, str)
        require(whole, "a screen with other nodes than its state")


def _pictures(trajectory: Any) -> None:
    """Reads all pictures; one that cannot be had is refused in one line, as a file is."""
    from grace_irl.demos.screenshots import media_type
    from grace_irl.errors import InputError

    for screenshot in trajectory.screenshots:
        try:
            if screenshot is not None:
                media_type(screenshot.read(), "")
        except InputError as error:
            message = str(error)
            require(message.isprintable() and "expected" in message, f"not one line that says so: {message[:300]!a}")


def recipe(path: Path) -> None:
    """Reads a recipe and chooses by it from a set."""
    from grace_irl.demos.conditions import Funnel
    from grace_irl.demos.select_recipe import read_select_recipe

    found = read_select_recipe(path)
    for one in found.into(path.parent / "out"):
        one.out.encode()
        require("\0" not in one.out, "a name with a NUL")
        funnel = Funnel(one.conditions)
        for item in settings.known():
            if not one.conditions.package and not one.conditions.not_package:
                funnel.passes(item)
        funnel.emptied_by()


def collecting(path: Path) -> None:
    """Reads a recipe of files to collect."""
    from grace_irl.rl.recipe import read_recipe

    for each in read_recipe(path):
        _typed(each)


def goals(path: Path) -> None:
    """Reads goal states and marks experts by them."""
    from grace_irl.demos.goals import load_goals, save_goals
    from grace_irl.demos.labels import label

    found = load_goals(path)
    label(settings.known(), "goal", goals=found)
    save_goals(path, found, settings.known())
    own = {digest: tuple(sorted(set(found[digest]))) for digest in settings.digests() if digest in found}
    require(load_goals(path) == own, "other goals after writing")


def config(path: Path) -> None:
    """Reads the configuration of a run, writes it and reads it again."""
    from grace_irl.runs.config import resolve, to_toml

    found = resolve(path)
    path.write_text(to_toml(found), encoding="utf-8")
    require(resolve(path) == found, "another configuration after writing")


def recording(path: Path) -> None:
    """Reads a recording and asks it for all answers."""
    from grace_irl.runs.recording import opened_recording, recorded_config

    recorded_config(path)
    found = opened_recording(path)
    for said in found.goals():
        _typed(said)
    for index in range(2):
        if (answer := found.proposal(index)) is not None:
            _typed(answer)
    for each in (*found.trainings.trainings, *found.trainings.failures):
        _typed(each)
        each.require_sound()


def reward(path: Path) -> None:
    """Reads a reward file without running it."""
    from grace_irl import load_reward
    from grace_irl.programs.export import export_source, program_of

    found = load_reward(path)
    require(bool(np.isfinite([found.scale, found.offset]).all()), "a calibration that is not finite")
    require(found.threshold is None or bool(np.isfinite(found.threshold)), "a threshold that is not finite")
    program = program_of(found.source)
    export_source(program, title="t", facts=[("a", "b")], scale=1.0, offset=0.0).encode()
    program.encode()


def database(folder: Path) -> None:
    """Reads every table of a run, and what is made of them."""
    from grace_irl.runs.budget import Prices, spending
    from grace_irl.runs.provenance import reuse
    from grace_irl.runs.run import best_record, history, opened

    with opened(folder) as (store, _):
        store.meta("label")
        rows: list[Iterable[object]] = [
            store.trajectories(),
            store.goals(),
            store.fates(),
            store.told().values(),
            store.functions(),
        ]
        rows += [[each for *_, each in store.proposals()], [store.proposal(0)]]
        for row in (row for table in rows for row in table if row is not None):
            _typed(row)
        store.requests()
        store.get("p0", ["d"])
        store.events()
        spending(store, Prices(0.0, 0.0))
        for record in store.records().values():
            _typed(record)
        history(store)
        reuse(store)
        if store.meta("best") in store.records():  # elsewhere there is no valid program yet
            best_record(store, folder)


def round_(path: Path) -> None:
    """Reads a round of an expansion."""
    from grace_irl.runs.expand.round import became, read_round, share

    done = read_round(path)
    require(done is not None, "no round")
    _typed(done)
    became(done)
    share(done)


def scramble(path: Path) -> None:
    """Reads the map of a scrambled set, and scrambles by it."""
    from grace_irl.demos.scramble import ScrambleMap

    found = ScrambleMap.load(path)
    found.save(path)
    require(ScrambleMap.load(path).words == found.words, "another map after it was written")


def comparison(folder: Path) -> None:
    """Reads the folder of a comparison and writes its tables."""
    from grace_irl.compare.folder import ComparisonFolder, read_curve, read_result
    from grace_irl.compare.plot import Line, plot
    from grace_irl.compare.settings import read_settings, tuned
    from grace_irl.compare.standings import Oracle, standings
    from grace_irl.compare.table import csv_text, markdown

    found = read_settings(folder)
    for method in found.comparison.methods:
        tuned(found.comparison, method)
    place = ComparisonFolder(folder)
    read = [read_result(place.job(method, 0).result) for method in ("grace", "ppo-true")]
    results = [result for result in read if result is not None]
    for result in results:
        _typed(result)
    stands = standings(results, ("grace", "ppo-true"), Oracle())
    csv_text(results)
    markdown(found, stands, (), results)
    lines = [Line(name, [read_curve(place.job(name, 0).curve("A-v0"))]) for name in ("grace", "ppo-true")]
    plot("A-v0", lines).encode()


def saved(path: Path) -> None:
    """Loads a policy and lets it act once."""
    from grace_irl.rl.trained import load_policy

    policy = load_policy(path)
    space = policy.network.observation_space
    policy.act(np.zeros((1, *(space.shape or ())), space.dtype), deterministic=True)


def checkpoint(path: Path) -> None:
    """Reads the checkpoint of a training."""
    from grace_irl.rl.ppo import read_checkpoint

    found = read_checkpoint(path, "i")
    require(found is not None, "no checkpoint")
    for point in found.curve:
        _typed(point)


def stable_baselines(path: Path) -> None:
    """Opens a checkpoint of Stable-Baselines3 and lets it act once."""
    from gymnasium.spaces import Box, Discrete

    from grace_irl.rl.checkpoint import CheckpointPolicy

    class Environment:
        action_space = Discrete(3)
        observation_space = Box(-np.inf, np.inf, (2,), np.float64)

    policy = CheckpointPolicy(path)
    policy.reset(Environment(), 0)
    policy.act(np.zeros(2))


def commanded(arguments: list[str]) -> None:
    """Runs a command, which must end well or with exit code 2 and one line."""
    from grace_irl.cli import main

    out, said = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(said):
        code = main(arguments)
    line = said.getvalue()
    require(code == 0 or (code == 2 and line.count("\n") == 1), f"{arguments[:2]}: exit code {code}, {line[:200]!a}")


@cache
def _adapter(kind: type) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _typed(record: Any) -> None:
    """Refuses a record whose fields are not of the types that it declares, or texts that cannot be written."""
    from pydantic import ValidationError

    try:
        _adapter(type(record)).validate_json(json.dumps(_plain(record)).encode(), strict=True)
    except ValidationError as error:
        raise WrongError(f"{type(record).__name__}: {str(error.errors()[0])[:200]}") from error
    except UnicodeEncodeError as error:
        raise WrongError(f"{type(record).__name__}: text that is not Unicode") from error


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value
