"""Functions that copy files and folders of demonstrations, one trajectory at a time.

A copy has another format, or scrambled states: random replacements remove the meaning of values and words.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grace_irl.atomic import require_new
from grace_irl.demos.files import SUFFIX, Format, SetOfFiles, expand, open_writer, passed_over
from grace_irl.demos.foreign.columns import Columns
from grace_irl.demos.header import Header, merge, role_of
from grace_irl.demos.memory import Memory
from grace_irl.demos.scramble import ScrambleMap
from grace_irl.demos.screenshots import Keep
from grace_irl.demos.source import Source
from grace_irl.demos.trajectory import Demonstration, LabelRule, Metadata, Role
from grace_irl.errors import InputError

MAP_NAME = "scramble.json"


@dataclass(frozen=True)
class Stated:
    """Facts from the user that replace the facts in a file. None keeps the fact in the file.

    Attributes:
        role: role of every episode.
        task: task of every episode.
        environment: Gymnasium id.
        label: label rule of the data.
        fields: names of a vector's components.
        usual_fields: names of the components that vectors of the environment have, if the user gives none.
        kind: name of the states' kind, such as "grid". The shape and dtype of the states must allow this kind.
    """

    role: Role | None = None
    task: str | None = None
    environment: str | None = None
    label: LabelRule | None = None
    fields: tuple[str, ...] | None = None
    usual_fields: tuple[str, ...] = ()
    kind: str | None = None


@dataclass(frozen=True)
class Copied:
    """A record of one copied file.

    Attributes:
        source: file that was read.
        path: file that was written.
        trajectories: number of trajectories.
        states: number of states.
        notes: lines about how the file was read, such as what was left out.
    """

    source: str
    path: str
    trajectories: int
    states: int
    notes: tuple[str, ...] = ()


def convert(
    source: str | Path,
    target: str | Path,
    format: Format | None = None,
    stated: Stated | None = None,
    screenshots: Keep = "embed",
    columns: Columns = Columns(),
    *,
    force: bool = False,
) -> list[Copied]:
    """Copy demonstrations to another format, with one trajectory in memory at a time.

    The copy of a folder is a folder. The files in the copy keep their names, except for the suffixes.

    Args:
        source: file, folder or Minari id.
        target: file or Minari id; a folder if the source is a folder.
        format: format of the written files. None derives it from the target's suffix, or means Parquet if the target
            is a folder.
        stated: facts for the metadata of the written files.
        screenshots: whether the written files embed screenshots, refer to them or leave them out.
        columns: the user's choice of columns, for tables.
        force: whether to overwrite files.

    Raises:
        InputError: data that cannot be used, a target that cannot be written, or a file to write that exists already
            while `force` is false. No file has been written in the last case.
    """
    pairs, stated = _targets([source], target, format), stated or Stated()
    _require_new(pairs, force=force)
    files = SetOfFiles([each for each, _ in pairs], stated.kind or "", restated=True, columns=columns)
    copied = [_copy(each, *pair, format, stated, None, screenshots) for each, pair in zip(files, pairs, strict=True)]
    return _with_passed_over(copied, [source])


def scramble(
    sources: Sequence[str | Path],
    target: str | Path,
    seed: int,
    map_path: str | Path | None = None,
    kind: str = "",
    columns: Columns = Columns(),
    *,
    force: bool = False,
) -> tuple[list[Copied], Path]:
    """Write scrambled copies of files or folders, and one scramble map with all replacements.

    Args:
        sources: files, folders or Minari ids.
        target: folder of the copies. For a single source file, the target may also be a file.
        seed: seed of a new scramble map.
        map_path: file of an existing scramble map; None draws a new map.
        kind: name of the states' kind, such as "grid", if the files state none; "" chooses by the values of the states.
        columns: the user's choice of columns, for tables.
        force: whether to overwrite files. The map in `map_path` may always be written again, with its new words.

    Returns:
        A record of each copy, and the path of the scramble map. The map is `scramble.json` in a target folder, or
        `NAME.scramble.json` beside a target file `NAME.parquet`.

    Raises:
        InputError: data that cannot be used, a scramble map for another kind of state, or a file to write that exists
            already while `force` is false. No file has been written in the last case.
    """
    pairs, file = _targets(sources, target, None), Path(target)
    _require_new(pairs, force=force)
    alone = [Path(path) for _, path in pairs] == [file]
    place = file.with_name(f"{file.stem}.scramble.json") if alone else file / MAP_NAME
    if place.is_file() and not force and (map_path is None or os.path.realpath(place) != os.path.realpath(map_path)):
        raise InputError(
            f"{place}: exists already, the map of earlier copies; expected a new file: use it again with --map, choose "
            "another DST, or overwrite it with --force"
        )
    files = SetOfFiles([each for each, _ in pairs], kind, columns=columns)
    if map_path is not None:
        table = ScrambleMap.load(Path(map_path))
    elif seed < 0:
        raise InputError(f"--seed {seed}; expected 0 or more")
    else:
        like = files.opened(0)
        table = ScrambleMap.draw(seed, _first(like, pairs[0][0]).trajectory, like.header.metadata.fields)
    first, copied = files.opened(0).header, []
    for each, pair in zip(files, pairs, strict=True):
        merge([first, each.header], [str(pairs[0][0]), str(pair[0])])  # the map is for the components of the first file
        copied.append(_copy(table.ordered(each), *pair, None, Stated(), table))
    table.save(place)
    return _with_passed_over(copied, sources), place


def _with_passed_over(copied: list[Copied], sources: Sequence[str | Path]) -> list[Copied]:
    """The records of all copies. The last record also has notes on data in the folders that were not copied."""
    last = copied[-1]
    return [*copied[:-1], replace(last, notes=(*last.notes, *passed_over(sources)))]


def _targets(
    sources: Sequence[str | Path], target: str | Path, format: Format | None
) -> list[tuple[str | Path, str | Path]]:
    """Pairs of source file and target file.

    If there is one source file and `target` is no folder, the copy gets the path `target`. Otherwise, copies go into
    the folder `target`.
    """
    files = [(source, file) for source in sources for file in expand(source)]
    if len(sources) == 1 and files == [(sources[0], sources[0])]:
        if not Path(target).is_dir():
            return [(sources[0], target)]
        files = [(sources[0], Path(sources[0]))]
    folder = Path(target)
    if folder.suffix in SUFFIX.values() or folder.is_file():
        raise InputError(f"{target}: a file, for {len(files)} files; expected a folder")
    if format in ("minari", "minari-arrow"):
        raise InputError(
            f"{target}: a folder of files in one Minari dataset; expected one file: convert them one by one"
        )
    suffix = SUFFIX[format or "parquet"]
    pairs: list[tuple[str | Path, str | Path]] = []
    for source, file in files:
        # Files of different source folders may share a name, so each source folder gets its own target subfolder.
        inner = Path(source).name if len(sources) > 1 and source != file else "."
        pairs.append((file, folder / inner / (Path(file).stem + suffix)))
    twice = {str(path) for _, path in pairs if sum(path == other for _, other in pairs) > 1}
    if twice:
        raise InputError(f"{target}: two of the files would become {min(twice)}; expected different names: rename one")
    return pairs


def _require_new(pairs: Sequence[tuple[str | Path, str | Path]], *, force: bool) -> None:
    """Check all target files before any of them is written."""
    for source, target in pairs:
        if os.path.realpath(source) == os.path.realpath(target):
            raise InputError(f"{target}: source and target are the same; expected another name")
        require_new(Path(target), force=force)


def _copy(
    opened: Source,
    source: str | Path,
    target: str | Path,
    format: Format | None,
    stated: Stated,
    table: ScrambleMap | None,
    screenshots: Keep = "embed",
) -> Copied:
    header = _restated(opened.header, stated)
    role = stated.role or role_of(opened.header, source)
    if header.metadata.fields != opened.header.metadata.fields:
        _require_names(next(iter(opened.demonstrations(role, Memory().empty))), source, header.metadata)
    metadata = table.metadata(header.metadata) if table else header.metadata
    trajectories = states = experts = unmarked = 0
    with open_writer(target, metadata, format, screenshots) as writer:
        for demonstration in opened.demonstrations(role, Memory().empty):
            copy = demonstration if stated.task is None else replace(demonstration, task=stated.task)
            writer.add(table.apply(copy) if table else copy)
            trajectories, states = trajectories + 1, states + len(demonstration.trajectory.states)
            experts += copy.role == "expert"
            unmarked += copy.role == "expert" and copy.goals is None
    notes = header.notes
    if stated.label == "goal" and unmarked:
        notes += (
            f"no goal states are marked in {unmarked} of {experts} expert trajectories: fit needs --goals FILE, or "
            "a model or a person to ask for them (--llm-url, --proposer manual)",
        )
    return Copied(str(source), str(target), trajectories, states, notes)


def _restated(header: Header, stated: Stated) -> Header:
    fields = stated.fields
    if fields is None and stated.usual_fields and header.metadata.state_kind.named_fields:
        fields = stated.usual_fields
    about = {"environment": stated.environment, "label": stated.label, "fields": fields}
    changed = {name: value for name, value in about.items() if value is not None}
    return replace(header, metadata=replace(header.metadata, **changed))  # type: ignore[arg-type]


def _require_names(first: Demonstration, source: str | Path, metadata: Metadata) -> None:
    """Check that stated names of a vector's components fit the states, before the file is written.

    Raises:
        InputError: the states are not vectors, or have another number of components.
    """
    if not metadata.state_kind.named_fields:
        raise InputError(
            f"{source}: names of fields for {metadata.state_kind.plural}; expected vectors: leave --fields out"
        )
    try:
        metadata.state_kind.check_fields(first.trajectory.states, metadata.fields, str(source))
    except InputError as error:
        raise InputError(f"{error}: correct --fields, or the --env that names them") from None


def _first(source: Source, path: str | Path) -> Demonstration:
    return next(iter(source.demonstrations(role_of(source.header, path), Memory().empty)))
