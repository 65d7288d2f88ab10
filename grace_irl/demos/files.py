"""Functions that open, load and save demonstrations. They detect the format and the role of each demo file.

A demo file is a file with demonstrations, or a folder that is one data set or one episode.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

from grace_irl.contents import require_inside
from grace_irl.demos import tfrecord
from grace_irl.demos.components import source_in_order
from grace_irl.demos.foreign.columns import Columns
from grace_irl.demos.formats import (
    ARRAYS,
    CARDS,
    PICKLES,
    TABLES,
    TEXTS,
    endings,
    open_source,
    others,
    reader_of_folder,
    require_readable,
    require_utf8,
)
from grace_irl.demos.header import Header, require_whole, role_of
from grace_irl.demos.kind_rule import choose_kind, with_kind
from grace_irl.demos.memory import Memory, enough_memory, limited
from grace_irl.demos.minari.source import dataset_folder
from grace_irl.demos.opened import OpenSet
from grace_irl.demos.screenshots import Keep
from grace_irl.demos.source import SetWriter, Source
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role
from grace_irl.demos.ui.episode import is_episode
from grace_irl.demos.ui.texts import TASK
from grace_irl.errors import InputError
from grace_irl.states import kind_named
from grace_irl.states.kind import KindChoice, States
from grace_irl.states.vector import VECTOR

Format = Literal["parquet", "npz", "imitation", "minari", "minari-arrow", "androidcontrol"]
"""Formats for writing. `imitation` is an npz file in the layout of the library imitation. `minari` and `minari-arrow`
are Minari datasets in HDF5 and in arrow. `androidcontrol` is a TFRecord file."""

SUFFIX: dict[Format, str] = {
    "parquet": ".parquet",
    "npz": ".npz",
    "imitation": ".npz",
    "androidcontrol": tfrecord.SUFFIX,
}
"""Suffix of the file name by format."""

DEEPEST = 5
"""Maximum depth of the subfolders in which `expand` searches for demonstrations."""


def expand(path: str | Path) -> list[str | Path]:
    """The demo files at a path, sorted by name.

    If the path is a demo file or a Minari id, the result is this path. For any other folder, the result is the demo
    files in the folder.

    Text files (`TEXTS`) are included only if the folder has no other demonstrations. There is one exception: if the
    name of a table begins with a role, as in "negative.csv", all tables of its format are included. If the folder has
    no demonstrations at all, `expand` searches its subfolders.

    Raises:
        InputError: an empty path, a folder without demonstrations, or a folder with a link to a file outside it.
    """
    if str(path) == "":  # probably an unset shell variable; Path("") would be the current folder
        raise InputError("a path is empty; expected a file, a folder or a Minari id: check how it is given")
    folder = Path(path)
    if folder.is_dir():
        require_readable(folder)
    if not _is_searched(folder):
        return [path]
    files, _ = _inside([folder])
    if not files:
        raise InputError(
            f"{path}: no demonstrations in this folder; expected {', '.join(endings())} files, Minari datasets or "
            "folders of screens"
        )
    for file in files:
        require_inside(file, folder)
    return list(files)


def expand_all(paths: Sequence[str | Path]) -> list[str | Path]:
    """The demo files at several paths (`expand`). A file that several paths name occurs once."""
    files = (file for path in paths for file in expand(path))
    # Unlike Path.resolve, os.path.realpath raises no error for links in a loop.
    return list({os.path.realpath(file): file for file in reversed([*files])}.values())[::-1]


def passed_over(paths: Sequence[str | Path]) -> tuple[str, ...]:
    """Lines for the user about data that `expand` leaves out: one line for each of `paths` with such data.

    JSON and YAML files beside other demonstrations describe the set, so they do not count as data
    (docs/demonstrations.md).

    Args:
        paths: files, folders and Minari ids. Only folders can have such data.
    """
    lines = []
    for path in paths:
        if not _is_searched(Path(path)):
            continue
        _, others = _inside([Path(path)])
        counts = Counter(filter(None, map(_sort_of_data, others)))
        folders = counts.pop(_EMPTY, 0)
        said = [f"{count} {end}" for end, count in counts.items()]
        said += [f"{folders} folder{'s' if folders > 1 else ''} without screens"] if folders else []
        cure = "if these are demonstrations, name them, or move them to a folder of their own"
        lines += [f"{path}: passed over: {', '.join(said)}; {cure}"] if said else []
    return tuple(lines)


_EMPTY = "folder without screens"


def _sort_of_data(file: Path) -> str:
    """The ending of a file with demonstrations; `_EMPTY` for an episode's folder without screens; else ""."""
    if file.is_dir():
        return _EMPTY if (file / TASK).is_file() and not is_episode(file) else ""
    end = next((end for end in endings() if file.name.lower().endswith(end)), "")
    return "" if end in CARDS else end


def _is_searched(folder: Path) -> bool:
    """Whether a path is a folder whose files are read one by one, because it is neither a data set nor an episode."""
    return folder.is_dir() and not (dataset_folder(folder) or is_episode(folder) or reader_of_folder(folder))


def _inside(folders: Sequence[Path], depth: int = 0) -> tuple[list[Path], list[Path]]:
    """Two lists: the demo files in the folders, and all files and folders beside them. Each is sorted by name.

    If the folders have no demo files, this function searches their subfolders, level by level.
    """
    inside = [file for folder in folders for file in sorted(folder.iterdir()) if not file.name.startswith(".")]
    known = {*ARRAYS, *PICKLES, *others()}
    tables = {_format_of_table(file) for file in inside if file.name.startswith(get_args(Role))} - {""}
    files = [
        file
        for file in inside
        if file.suffix.lower() in known
        or _is_minari(file)
        or _format_of_table(file) in tables
        or is_episode(file)
        or tfrecord.is_in_folder(file)
        or reader_of_folder(file)
    ]
    files = files or [file for file in inside if file.name.lower().endswith(TEXTS)]
    deeper = [file for file in inside if file.is_dir() and not file.is_symlink()]
    if not files and deeper and depth < DEEPEST:
        return _inside(deeper, depth + 1)
    read = set(files)
    return files, [file for file in inside if file not in read]


def _format_of_table(file: Path) -> str:
    """The reader of a text file with a table, as in `TABLES`; "" for any other file."""
    return next((reader for end, reader in TABLES.items() if file.name.lower().endswith(end)), "")


def _is_minari(file: Path) -> bool:
    return file.is_dir() and dataset_folder(file.absolute()) is not None


def load(
    paths: Sequence[str | Path],
    negatives: Sequence[str | Path] = (),
    *,
    experts: Sequence[str | Path] = (),
    role: Role | None = None,
    kind: str = "",
    columns: Columns = Columns(),
    max_memory: int | str | None = None,
    sample: str | None = None,
) -> Demonstrations:
    """Read files, folders and Minari ids as one set.

    Args:
        paths: files, folders and Minari ids. The role of a file comes from its metadata, else from its name, which must
            then start with "expert" or "negative".
        negatives: more paths. All their trajectories are negative, even if the files state another role.
        experts: more paths. All their trajectories are expert trajectories, even if the files state another role.
        role: role of all trajectories in `paths`, even if the files state another role; None uses the files' roles.
        kind: name of the states' kind, such as "grid", if the files state none. With "", `choose_kind` decides by the
            values of the states.
        columns: the user's choice of columns, for tables.
        max_memory: memory limit of the set, in bytes or as a size such as `4G`. None uses the option
            `--max-memory` or the environment variable GRACE_IRL_MAX_MEMORY, else 80 % of the available memory.
        sample: maximum size of a random sample to load, such as "400M" (`OpenSet.sampled`). "" draws a sample only if
            the set exceeds the memory limit. None loads the whole set, and refuses a set that exceeds the limit.

    Raises:
        InputError: data that cannot be used; see `open_set`.
    """
    with limited(max_memory):
        found = open_set(paths, negatives, experts=experts, role=role, kind=kind, columns=columns)
        return found.all() if sample is None else found.sampled(sample)


def open_set(
    paths: Sequence[str | Path],
    negatives: Sequence[str | Path] = (),
    *,
    experts: Sequence[str | Path] = (),
    role: Role | None = None,
    kind: str = "",
    columns: Columns = Columns(),
) -> OpenSet:
    """Open files, folders and Minari ids as one set. Trajectories are read later. `load` explains the arguments.

    Raises:
        InputError: data that cannot be used; see `open_source`, `expand` and `OpenSet`.
    """
    if any(isinstance(each, str | Path) for each in (paths, negatives, experts)):
        raise TypeError("load() takes lists of paths: load([path])")
    wanted = with_roles(((experts, "expert"), (negatives, "negative"), (paths, role)))
    if not wanted:
        raise InputError("no demonstrations named; expected at least one file, folder or Minari id")
    memory = Memory()
    sources = [(open_source(path, memory, kind, columns), known) for path, known in wanted]
    return OpenSet(sources, kind, memory, passed_over([*experts, *paths, *negatives]))


def with_roles(named: Sequence[tuple[Sequence[str | Path], Role | None]]) -> list[tuple[str | Path, Role | None]]:
    """Pairs of a demo file (`expand`) and its role, each file once. Experts come first, negatives last.

    If a file is named once with a role and once without (for example through its folder), the named role counts.

    Args:
        named: pairs of several paths and the role of all their trajectories. The role None uses the roles in the files.

    Raises:
        InputError: a file that is named with both roles.
    """
    found: dict[str, tuple[str | Path, Role | None]] = {}
    for paths, role in sorted(named, key=lambda each: each[1] is None):
        for file in expand_all(paths):
            _, before = found.setdefault(os.path.realpath(file), (file, role))
            if role and before != role:
                raise InputError(
                    f"{file}: named as {before} and as {role}; expected one role for a file: name it once, or select "
                    "its episodes into two files with `grace-irl demos select`"
                )
    return sorted(found.values(), key=lambda each: ("expert", None, "negative").index(each[1]))


class SetOfFiles:
    """The files of a set. Each file is opened on demand. The set has one kind of states and one order of components.

    Args:
        files: demo files, Minari folders and Minari ids.
        kind: name of the states' kind, such as "grid", if the files state none; "" chooses by the values of the states.
        restated: whether `kind` also replaces a kind that a file states, if the states fit both kinds by shape and
            dtype.
        columns: the user's choice of columns, for tables.
    """

    def __init__(
        self, files: Sequence[str | Path], kind: str = "", *, restated: bool = False, columns: Columns = Columns()
    ) -> None:
        if kind:
            kind_named(kind)
        self.files = tuple(files)
        self._kind, self._restated, self._columns = kind, restated, columns

    def __iter__(self) -> Iterator[Source]:
        before: Header | None = None
        for place, file in enumerate(self.files):
            source = self.opened(place)
            if before is not None:
                require_whole([before, source.header], [str(self.files[place - 1]), str(file)])
            before = source.header
            yield source

    def opened(self, place: int) -> Source:
        """Open one file as a source with its own memory limit.

        Args:
            place: index of the file.

        Raises:
            InputError: see `open_source` and `choose_kind`.
        """
        source = self._opened(place)
        if source.header.kinds or self._kind:
            source.header = with_kind(source.header, self.choice)
        return source_in_order(source, self._order) if len(self.files) > 1 else source

    def demonstrations(self, place: int, role: Role | None) -> Iterator[Demonstration]:
        """The demonstrations of a file, one at a time.

        Args:
            place: index of the file.
            role: role of every demonstration; None uses the file's role.
        """
        source = self.opened(place)
        with enough_memory(self.files[place]):
            yield from source.demonstrations(role or role_of(source.header, self.files[place]), Memory().empty)

    @cached_property
    def choice(self) -> KindChoice | None:
        """The kind chosen for all states; None if there is no choice (see `choose_kind`)."""
        headers = [self._opened(place).header for place in range(len(self.files))]
        return choose_kind(headers, self.files, self._states, self._kind)

    @cached_property
    def _order(self) -> tuple[str, ...]:
        """Names of the components of vectors, in the order of the first file that has names; () if none has."""
        headers = (self._opened(place).header for place in range(len(self.files)))
        return next((header.metadata.fields for header in headers if header.metadata.fields), ())

    def _opened(self, place: int) -> Source:
        source = open_source(self.files[place], None, self._kind, self._columns)
        if self._restated and self._kind in source.header.rivals:
            source.header = replace(source.header, kinds=source.header.rivals)
        return source

    def _states(self, place: int) -> Iterator[States]:
        found = self._opened(place).demonstrations("expert", Memory().empty)
        return (item.trajectory.states for item in found)


def iter_trajectories(
    path: str | Path, *, role: Role | None = None, kind: str = "", columns: Columns = Columns()
) -> Iterator[Demonstration]:
    """The demonstrations of a file, folder or Minari id, one at a time, for data larger than memory.

    Args:
        path: file, folder or Minari id.
        role: role of every demonstration; None uses the files' roles.
        kind: name of the states' kind, such as "grid", if the files state none; "" chooses by the values of the states.
        columns: the user's choice of columns, for tables.
    """
    files = SetOfFiles(expand(path), kind, columns=columns)
    for place in range(len(files.files)):
        yield from files.demonstrations(place, role)


def open_writer(
    path: str | Path, metadata: Metadata, format: Format | None = None, screenshots: Keep = "embed"
) -> SetWriter:
    """A writer for one file or Minari dataset.

    Args:
        path: path of the file, or a Minari id.
        metadata: metadata of the set.
        format: format of the file. None derives it from the suffix; a path that ends in `-vN` is a Minari id.
        screenshots: whether the file embeds screenshots, refers to them or leaves them out.

    Raises:
        InputError: an unknown format, or a path that does not match the format.
    """
    require_utf8(path)
    is_shard = tfrecord.is_name(path)
    if format in SUFFIX and Path(path).suffix != SUFFIX[format] and not (format == "androidcontrol" and is_shard):
        raise InputError(f"{path}: not a name for format {format}; expected one that ends in {SUFFIX[format]}")
    name = format or {".parquet": "parquet", ".npz": "npz"}.get(Path(path).suffix)
    if name is None and is_shard:
        name = "androidcontrol"
    if name is None and re.search(r"-v\d+$", str(path)):
        name = "minari"
    if name == "parquet":
        from grace_irl.demos.parquet.writer import ParquetWriter

        return ParquetWriter(Path(path), metadata, screenshots)
    if name in ("npz", "imitation"):
        from grace_irl.demos.npz.writer import NpzWriter

        return NpzWriter(Path(path), metadata, imitation=name == "imitation")
    if name in ("minari", "minari-arrow"):
        from grace_irl.demos.minari.writer import MinariWriter

        return MinariWriter(str(path), metadata, "arrow" if name == "minari-arrow" else "hdf5")
    if name == "androidcontrol":
        from grace_irl.demos.ui.androidcontrol import AndroidControlWriter

        return AndroidControlWriter(Path(path), metadata, screenshots)
    raise InputError(
        f"{path}: unknown format {name or Path(path).suffix!r}; expected a path ending in .parquet, .npz, "
        f"{tfrecord.SUFFIX} or -vN (Minari), or --format with one of {', '.join(get_args(Format))}"
    )


def require_writable(path: str | Path, format: Format | None = None) -> None:
    """Check that a set can be written, before the work to make it, such as to play its episodes.

    Raises:
        InputError: a path that does not match the format, or a place where no file can be written.
    """
    open_writer(path, Metadata(VECTOR.name), format).require_writable()


def save(
    demonstrations: Demonstrations, path: str | Path, format: Format | None = None, screenshots: Keep = "embed"
) -> None:
    """Write a set to one file or Minari dataset, atomically.

    Args:
        demonstrations: the set.
        path: path of the file, or a Minari id.
        format: format of the file. None derives it from the suffix; a path that ends in `-vN` is a Minari id.
        screenshots: whether the file embeds screenshots, refers to them or leaves them out.

    Raises:
        InputError: an empty set, or data that the format cannot hold.
    """
    with open_writer(path, demonstrations.metadata, format, screenshots) as writer:
        for demonstration in demonstrations:
            writer.add(demonstration)
