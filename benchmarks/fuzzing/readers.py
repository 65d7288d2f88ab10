"""Every reader of files that nobody vouches for: who makes its inputs, who judges what it gives, where its code is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fuzzing import archives, datasets, foreign, judges, policies, records, screens, settings, tables
from fuzzing.draw import Draw


@dataclass(frozen=True)
class Reader:
    """One reader.

    Attributes:
        make: writes an input into an empty folder and gives its path.
        judge: reads it: InputError, or data that it has checked.
        share: of all inputs, beside the shares of the others.
        modules: where the reader's code is; of each, the functions that do not read.
        command: what to give the command line, now and then, for the same input; None: there is no such command.
    """

    make: Callable[[Draw, Path], Path]
    judge: Callable[[Path], None]
    share: int
    modules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    command: Callable[[Path], list[str]] | None = None


def _inspect(path: Path) -> list[str]:
    return ["demos", "inspect", str(path), "--json"]


def _select(path: Path) -> list[str]:
    return ["demos", "select", "--recipe", str(path), "--from", str(path), "--out", str(path.parent / "out")]


def _goals(path: Path) -> list[str]:
    return ["demos", "inspect", str(DATA / "expert.parquet"), "--goals", str(path)]


def _estimate(path: Path) -> list[str]:
    return ["fit", "--config", str(path), "--demos", str(path), "--out", str(path.parent / "run")]


DATA = Path(__file__).parents[2] / "datasets" / "babyai-go-to-obj"
_D, _U, _F = "grace_irl.demos.", "grace_irl.demos.ui.", "grace_irl.demos.foreign."
_R = "grace_irl.runs."
_SET = {
    f"{_D}files": ("open_writer", "save", "require_roles", "iter_trajectories"),
    f"{_D}header": ("Header.to_json", "HeaderBuilder.__init__", "HeaderBuilder.add", "HeaderBuilder.header", "_common"),
    f"{_D}source": (),
    f"{_D}trajectory": ("Demonstrations.select", "Demonstrations.tasks", "Demonstrations.__getitem__"),
}
_SCREENS = {
    "grace_irl.states.ui.markup": (),
    f"{_U}episode": (),
    f"{_U}fields": (),
    f"{_U}trees": (),
    f"{_U}androidworld": (),
    f"{_U}autodroid": (),
}
_TABLE = {f"{_D}parquet.source": (), f"{_D}parquet.rows": (), f"{_D}parquet.pages": (), f"{_D}parquet.schema": ()}

READERS: dict[str, Reader] = {
    "xml": Reader(screens.xml, judges.screens, 15, _SCREENS, _inspect),
    "json": Reader(screens.json_, judges.screens, 12, {}, _inspect),
    "elements": Reader(screens.elements, judges.screens, 6, {}, _inspect),
    "yaml": Reader(screens.yaml, judges.screens, 5, {}, _inspect),
    "tfrecord": Reader(
        screens.tfrecord,
        judges.screens,
        8,
        {f"{_U}androidcontrol": (), f"{_U}shard": (), f"{_D}tfrecord": ("write_record",), f"{_U}record": ()},
        _inspect,
    ),
    "screen-parquet": Reader(
        tables.screens, judges.screens, 6, {**_TABLE, f"{_D}parquet.screenshots": (), f"{_D}screenshots": ()}, _inspect
    ),
    "parquet": Reader(tables.numbers, judges.demonstrations, 10, _TABLE, _inspect),
    "npz": Reader(
        archives.npz, judges.demonstrations, 14, {f"{_D}npz.source": (), f"{_D}npz.member": (), **_SET}, _inspect
    ),
    "minari-hdf5": Reader(datasets.hdf5, judges.demonstrations, 4, {f"{_D}minari.hdf5": ()}, _inspect),
    "minari-arrow": Reader(datasets.arrow, judges.demonstrations, 4, {}, _inspect),
    "table": Reader(
        foreign.table,
        judges.demonstrations,
        8,
        {f"{_F}table": (), f"{_F}tables": (), f"{_F}episode": ("EpisodesSource.in_order", "parts_of")},
        _inspect,
    ),
    "arrays": Reader(
        foreign.arrays,
        judges.demonstrations,
        6,
        {f"{_F}arrays": (), f"{_F}flat": (), f"{_F}hdf5": (), f"{_D}hdf5": ()},
        _inspect,
    ),
    "imitation": Reader(foreign.imitation, judges.demonstrations, 4, {f"{_F}imitation_folder": ()}, _inspect),
    "lerobot": Reader(foreign.lerobot, judges.demonstrations, 5, {f"{_F}lerobot": (), f"{_F}arrow": ()}, _inspect),
    "rlds": Reader(foreign.rlds, judges.demonstrations, 6, {f"{_F}rlds": ()}, _inspect),
    "folder": Reader(datasets.mixed, judges.demonstrations, 3, {}, _inspect),
    "recipe": Reader(
        settings.recipe,
        judges.recipe,
        4,
        {f"{_D}select_recipe": (), f"{_D}conditions": ("shows", "Conditions.checks")},
        _select,
    ),
    "collecting": Reader(settings.collecting, judges.collecting, 2, {"grace_irl.rl.recipe": ("run_recipe",)}),
    "goals": Reader(settings.goals, judges.goals, 3, {f"{_D}goals": ()}, _goals),
    "config": Reader(settings.config, judges.config, 4, {f"{_R}config": ("parsed", "_put")}, _estimate),
    "recording": Reader(
        records.recording, judges.recording, 4, {f"{_R}recording": ("write_recording", "_without_defaults")}
    ),
    "database": Reader(
        records.database,
        judges.database,
        2,
        {f"{_R}schema": (), f"{_R}record": ("to_text", "plain")},
        lambda path: ["show", str(path), "--json"],
    ),
    "round": Reader(
        records.round_,
        judges.round_,
        2,
        {f"{_R}expand.round": ("write_round",)},
        lambda path: ["show", str(path.parents[2])],
    ),
    "comparison": Reader(
        records.comparison,
        judges.comparison,
        2,
        {
            "grace_irl.compare.settings": ("located", "_path", "_function", "digest_of", "Settings.write"),
            "grace_irl.compare.folder": ("write_result", "Result.ended"),
        },
    ),
    "scramble": Reader(records.scramble, judges.scramble, 1, {}),
    "reward": Reader(records.reward, judges.reward, 2, {"grace_irl.programs.export": ()}),
    "policy": Reader(policies.saved, judges.saved, 1, {"grace_irl.rl.trained": ("TrainedPolicy.save", "_described")}),
    "checkpoint": Reader(policies.checkpoint, judges.checkpoint, 1, {}),
    "stable-baselines": Reader(policies.stable_baselines, judges.stable_baselines, 1, {"grace_irl.rl.checkpoint": ()}),
}
"""By name. Shares follow how much code a reader has, and how long an input takes."""


def modules() -> dict[str, tuple[str, ...]]:
    """Modules of readers, and the functions of each that do not read."""
    found: dict[str, tuple[str, ...]] = {}
    for reader in READERS.values():
        found |= reader.modules
    return found
