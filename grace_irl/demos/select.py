"""Selection of demonstrations by conditions, and copies of the selected demonstrations in new files.

One trajectory is in memory at a time.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from grace_irl.demos.conditions import Conditions, Funnel
from grace_irl.demos.files import Format, SetOfFiles, expand_all, open_writer
from grace_irl.demos.foreign.columns import Columns
from grace_irl.demos.header import Header, merge, role_of
from grace_irl.demos.label_rule import rule_of
from grace_irl.demos.memory import Memory
from grace_irl.demos.screenshots import Keep
from grace_irl.demos.source import Source
from grace_irl.demos.trajectory import Demonstration, LabelRule, Metadata, Role, Split
from grace_irl.errors import InputError


@dataclass(frozen=True)
class Selection:
    """A selection: the settings of one output file.

    Attributes:
        out: file to write, or a Minari id.
        conditions: conditions on each demonstration.
        role: new role of all chosen demonstrations; None keeps the role from the source.
        task: new task name of all chosen demonstrations; None keeps the task from the source.
        sample: maximum number of trajectories. If more match, a random sample is drawn. None sets no maximum.
        held_out: share of the trajectories to hold out, drawn at random; None keeps the splits from the source.

    Raises:
        InputError: a sample below 1, or a share outside the open range from 0 to 1.
    """

    out: str
    conditions: Conditions = field(default_factory=Conditions)
    role: Role | None = None
    task: str | None = None
    sample: int | None = None
    held_out: float | None = None

    def __post_init__(self) -> None:
        if self.sample is not None and self.sample < 1:
            raise InputError(f"--sample {self.sample}; expected at least 1")
        if self.held_out is not None and not 0 < self.held_out < 1:
            raise InputError(f"--held-out {self.held_out}; expected a share above 0 and below 1, such as 0.2")


class Match(NamedTuple):
    """A demonstration that meets the conditions.

    Attributes:
        file: index of the demonstration's file in the list of source files.
        number: index of the demonstration in the file.
        digest: digest of the trajectory.
        states: number of states.
    """

    file: int
    number: int
    digest: str
    states: int


@dataclass(frozen=True)
class Selected:
    """The result of a selection: the chosen trajectories.

    Attributes:
        selection: settings of the selection.
        funnel: number of demonstrations left after each condition.
        taken: number of matching trajectories that an earlier selection has already chosen.
        free: number of matching trajectories that no earlier selection has chosen.
        matches: chosen trajectories, in the order of the sources. Their number is below `free` if a sample was drawn.
        held_out: digests of the held-out trajectories; None if the splits from the sources are kept.
    """

    selection: Selection
    funnel: Funnel
    taken: int
    free: int
    matches: tuple[Match, ...]
    held_out: frozenset[str] | None

    @property
    def states(self) -> int:
        """Number of states in all chosen trajectories."""
        return sum(match.states for match in self.matches)

    @property
    def number_held_out(self) -> int:
        """Number of chosen trajectories in `held_out`; 0 if the splits from the sources are kept."""
        return sum(match.digest in (self.held_out or ()) for match in self.matches)

    @property
    def missing(self) -> int:
        """Number of trajectories that the selection lacks to reach its sample size; 0 without a sample size."""
        return max((self.selection.sample or 0) - len(self.matches), 0)

    def side(self, digest: str, stated: Split | None) -> Split | None:
        """The split of a chosen trajectory in the output file.

        Args:
            digest: digest of the trajectory.
            stated: split that the source gives, or None.
        """
        if self.held_out is None:
            return stated
        return "held_out" if digest in self.held_out else "train"


class Selector:
    """A runner that applies selections to files, folders and Minari ids.

    Sources are read twice: first to find matching trajectories, then to write them. So memory holds one trajectory at a
    time, and a few bytes per match. The choice depends on the content of the trajectories and on the seed, not on the
    order of files. Equal trajectories (same states, actions and instruction) never go into different files: after a
    selection has chosen a trajectory, later selections cannot choose an equal trajectory.

    Args:
        paths: the sources: files, folders and Minari ids.
        selections: settings of each output file.
        seed: seed of samples and of held-out shares.
        label: label rule of the chosen data; None keeps the rule from the sources.
        kind: name of the states' kind, such as "grid", if the files state none; "" chooses by the values of the states.
        columns: the user's choice of columns, for tables.
        progress: function that is called before each reading of a file, with the name of the file.

    Raises:
        InputError: no paths, a negative seed, two selections with one output file, an output file that is also a
            source, or data that cannot be used.
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        selections: Sequence[Selection],
        seed: int = 0,
        *,
        label: LabelRule | None = None,
        kind: str = "",
        columns: Columns = Columns(),
        progress: Callable[[str], None] | None = None,
    ) -> None:
        if seed < 0:
            raise InputError(f"--seed {seed}; expected 0 or more")
        self._files = expand_all(paths)
        if not self._files:
            raise InputError("nothing to choose from; expected files, folders or Minari ids: name them with --from")
        self._selections = tuple(selections)
        self._seed = seed
        self._label = label
        self._progress = progress or (lambda _: None)
        outs = [str(selection.out) for selection in selections]
        places = Counter(map(os.path.realpath, outs))
        twice = next((out for out in outs if places[os.path.realpath(out)] > 1), None)
        if twice is not None:
            raise InputError(f"{twice}: two selections for one file; expected a file for each: rename one")
        sources = {os.path.realpath(file) for file in self._files}
        clash = next((out for out in outs if os.path.realpath(out) in sources), None)
        if clash is not None:
            raise InputError(f"{clash}: source and target are the same; expected another name")
        self._set = SetOfFiles(self._files, kind, columns=columns)
        self._headers: dict[int, Header] = {}

    def choose(self) -> tuple[Selected, ...]:
        """Choose the trajectories of each selection without writing them.

        Raises:
            InputError: data that cannot be used, or a held-out share of trajectories that are all equal.
        """
        funnels = [Funnel(selection.conditions) for selection in self._selections]
        found: list[list[Match]] = [[] for _ in funnels]
        for place, _ in enumerate(self._files):
            for number, item in self._read(place):
                for funnel, matches in zip(funnels, found, strict=True):
                    if funnel.passes(item):
                        trajectory = item.trajectory
                        matches.append(Match(place, number, trajectory.digest, len(trajectory.states)))
        self._metadata()
        taken: set[str] = set()
        chosen = []
        for selection, funnel, matches in zip(self._selections, funnels, found, strict=True):
            free = [match for match in matches if match.digest not in taken]
            kept = free
            if selection.sample is not None and len(free) > selection.sample:
                kept = sorted(sorted(free, key=self._key("sample"))[: selection.sample])
            held_out = None if selection.held_out is None or not kept else self._held_out(selection, kept)
            chosen.append(Selected(selection, funnel, len(matches) - len(free), len(free), tuple(kept), held_out))
            taken |= {match.digest for match in kept}
        return tuple(chosen)

    def write(self, chosen: Sequence[Selected], format: Format | None = None, screenshots: Keep = "embed") -> None:
        """Write the chosen trajectories to their files.

        Args:
            chosen: result of `choose`.
            format: format of the files; None derives it from each file name.
            screenshots: whether the files embed screenshots, refer to them or leave them out.

        Raises:
            InputError: a selection without trajectories, a file that cannot be written, or a source that changed.
        """
        for one in chosen:
            if not one.matches:
                raise InputError(empty(one))
        wanted: dict[int, dict[int, tuple[Selected, str, int]]] = {}
        for writer, one in enumerate(chosen):
            for match in one.matches:
                wanted.setdefault(match.file, {})[match.number] = one, match.digest, writer
        metadata = self._metadata()
        with ExitStack() as stack:
            writers = [
                stack.enter_context(open_writer(one.selection.out, metadata, format, screenshots)) for one in chosen
            ]
            for place, numbers in sorted(wanted.items()):
                left = set(numbers)
                for number, item in self._read(place):
                    if number not in left:
                        continue
                    one, digest, writer = numbers[number]
                    if item.trajectory.digest != digest:
                        break
                    writers[writer].add(_restated(item, one))
                    left.discard(number)
                    if not left:
                        break
                if left:
                    raise InputError(
                        f"{self._files[place]}: changed while it was read; expected the same twice: run it again"
                    )

    def _read(self, place: int) -> Iterator[tuple[int, Demonstration]]:
        file = self._files[place]
        self._progress(str(file))
        source = self._set.opened(place)
        self._headers[place] = source.header
        return enumerate(source.demonstrations(self._role(source, file), Memory().empty))

    def _metadata(self) -> Metadata:
        """The common metadata of all sources. All sources must have been read before."""
        headers = [self._headers[place] for place in range(len(self._files))]
        metadata = merge(headers, [str(file) for file in self._files])
        experts = (header for header in headers if header.role != "negative")
        rules = {rule_of(header.metadata, [part.name for part in header.parts]) for header in experts}
        # A source's environment may imply a label rule. If the environments differ, merge() drops them. If all of them
        # imply the same rule, the rule is kept here.
        agreed = rules.pop() if len(rules) == 1 and not metadata.environment else ""
        return replace(metadata, label=self._label or metadata.label or agreed)

    def _role(self, opened: Source, file: str | Path) -> Role | None:
        """The role of all episodes of a file, or None if each episode has its own role.

        For a file without any role, every selection must set a new role and have no condition on roles. The result is
        then a placeholder that has no effect.

        Raises:
            InputError: the file gives no role, and a selection needs the role.
        """
        given = [selection.role for selection in self._selections if selection.conditions.from_role is None]
        try:
            return role_of(opened.header, file, "name it by --role, without --from-role")
        except InputError:
            if None in given or len(given) < len(self._selections):
                raise
            return given[0]

    def _key(self, what: str) -> Callable[[Match], tuple[bytes, int, int]]:
        """A sort key for a random order of trajectories. Equal trajectories keep their order in the sources.

        Args:
            what: purpose of the order, such as "sample". Each purpose gets a different order.
        """

        def key(match: Match) -> tuple[bytes, int, int]:
            drawn = hashlib.sha256(f"{self._seed} {what} {match.digest}".encode()).digest()
            return drawn, match.file, match.number

        return key

    def _held_out(self, selection: Selection, kept: Sequence[Match]) -> frozenset[str]:
        """Digests of the trajectories to hold out: at least one and never all. Equal trajectories stay together."""
        counts = Counter(match.digest for match in kept)
        if len(counts) < 2:
            raise InputError(
                f"{selection.out}: --held-out {selection.held_out} of {len(kept)} equal trajectories; expected at "
                "least two that differ: choose more, or state no share"
            )
        wanted = min(max(round((selection.held_out or 0) * len(kept)), 1), len(kept) - 1)
        order = list(dict.fromkeys(match.digest for match in sorted(kept, key=self._key("held out"))))
        held: set[str] = set()
        size = 0
        for digest in order:
            if size + counts[digest] <= wanted:
                held.add(digest)
                size += counts[digest]
        return frozenset(held or {min(order, key=counts.__getitem__)})


def empty(chosen: Selected) -> str:
    """A one-line message with the reason why a selection chose nothing."""
    why = chosen.funnel.emptied_by()
    if not why:
        why = f"all {chosen.taken} that meet its conditions are in the file of an earlier selection"
    return f"{chosen.selection.out}: nothing is chosen ({why}); expected at least one trajectory: change that"


def _restated(item: Demonstration, chosen: Selected) -> Demonstration:
    selection = chosen.selection
    return replace(
        item,
        role=selection.role or item.role,
        task=item.task if selection.task is None else selection.task,
        split=chosen.side(item.trajectory.digest, item.split),
    )
