"""The method `map-elites` (Mouret and Clune 2015).

The search keeps the fittest program of each niche. A niche is a cell of a grid over two properties of a program:

- The rows are ranges of the program's size in bits, between powers of two.
- In a run with a task, the columns are numbers of components of the reward. Otherwise, the columns are ranges of
  monotonicity, which measures how steadily the reward rises along expert trajectories.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from grace_irl.config import Config, PlateauConfig
from grace_irl.methods.account import Figures
from grace_irl.methods.either import two_forms
from grace_irl.methods.method import Course, Panel, Phase
from grace_irl.methods.search_panels import number
from grace_irl.methods.trained import PolicyConfig
from grace_irl.search.protocol import COUNTED, Fate, Request, Result, Search
from grace_irl.search.ranks import Scored, merit, winners
from grace_irl.settings import Section, setting

Niche = tuple[int, int]


class MapElitesSettings(Section):
    """Settings of MAP-Elites."""

    panel: ClassVar[str] = "Search"

    programs: int = setting(400, "Programs to ask for.", flag="programs", ge=1)
    first: int = setting(20, "New programs before mutation begins.", flag="first-programs", ge=1)
    steps: int = setting(
        5,
        "Columns of the map. A column is a range of how steadily rewards rise; with --task, a number of components.",
        flag="niches",
        ge=1,
        le=100,
    )


class MapElites:
    """A search with an archive of one program per niche. It draws parents uniformly from the archive.

    Each result updates the archive at once, so `ask` never waits for results (`grace_irl.search.protocol.Wait`), and
    the parents depend on the number of requests in flight (`search.lag`).

    Args:
        settings: settings of the search.
        samples: maximum number of identical requests in a row. A model answers them in one call.
        seed: seed of all random choices. Only `ask` makes random choices.
    """

    def __init__(self, settings: MapElitesSettings, samples: int, seed: int) -> None:
        self._settings = settings
        self._samples = samples
        self._random = random.Random(seed)
        self._archive: dict[Niche, Scored] = {}
        self._seen: set[str] = set()
        self._asked = 0
        self._same: Request | None = None

    def ask(self) -> Request | None:
        """Return the next request, or None after `settings.programs` requests."""
        if self._asked >= self._settings.programs:
            return None
        sample = 0 if self._same is None else (self._same.sample + 1) % self._same.samples
        if sample == 0 or self._same is None:
            left = [end - self._asked for end in (self._settings.first, self._settings.programs) if end > self._asked]
            samples = min(self._samples, *left)
            elites = [self._archive[niche] for niche in sorted(self._archive)]
            filling = self._asked < self._settings.first or not elites
            parents = () if filling else (self._random.choice(elites).program.id,)
            seed = self._random.randrange(2**62)
            self._same = Request(self._asked, "mutate" if parents else "initialise", parents, seed, samples=samples)
        self._same = replace(self._same, index=self._asked, sample=sample)
        self._asked += 1
        return self._same

    def tell(self, result: Result) -> list[Fate]:
        """Add a program to the archive if it is the fittest of its niche. Return the new decisions on programs."""
        program, evaluation = result.program, result.evaluation
        if program is None or evaluation is None:
            return []
        if program.id in self._seen:
            return [Fate(program.id, "duplicate", "the same program was tried before")]
        self._seen.add(program.id)
        if not evaluation.valid or not math.isfinite(evaluation.score):
            return [Fate(program.id, "invalid", f"{evaluation.status}: {evaluation.message}")]
        new = Scored(program, evaluation, result.request.index)
        niche = self.niche(new)
        old = self._archive.get(niche)
        if old is not None and merit(new) <= merit(old):
            return [Fate(program.id, "dropped", f"niche {niche} has {old.program.id}, which is not less fit")]
        self._archive[niche] = new
        displaced = [] if old is None else [Fate(old.program.id, "dropped", f"{program.id} is fitter in niche {niche}")]
        return [Fate(program.id, "kept", f"the fittest of niche {niche}"), *displaced]

    @property
    def best(self) -> tuple[str, ...]:
        """Ids of the programs in the archive, best first (`ranks.winners`)."""
        return tuple(each.program.id for each in winners(self._archive.values()))

    def niche(self, scored: Scored) -> Niche:
        """The niche of a program: its row and column in the map."""
        return niche_of(scored, self._settings.steps)


def niche_of(scored: Scored, steps: int) -> Niche:
    """The niche of a program in a map of `steps` columns: its row and column.

    The row is the number of binary digits of the program's size: programs of 64 to 127 bits share row 7.
    """
    parts = scored.evaluation.evidence.get("components")
    if parts is None:
        tau = scored.evaluation.metrics.get("monotonicity", 0.0)  # Kendall's tau of reward against time, from -1 to 1
        return scored.program.size.bit_length(), min(int((tau + 1) / 2 * steps), steps - 1)
    return scored.program.size.bit_length(), min(len(parts), steps) - 1 if parts else 0


def map_panel(others: Sequence[Scored], steps: int, *, by_parts: bool) -> Panel:
    """The section of the report with the best score in each niche of a grid of `steps` columns.

    `by_parts` says whether columns are numbers of components, as in a run with a task.
    """
    best: dict[Niche, float] = {}
    for each in others:
        if each.evaluation.valid:
            niche = niche_of(each, steps)
            best[niche] = max(best.get(niche, each.evaluation.score), each.evaluation.score)
    rows = [
        (
            f"{1 << bits - 1 if bits else 0} to {(1 << bits) - 1}",
            *(number(best.get((bits, column))) for column in range(steps)),
        )
        for bits in sorted({bits for bits, _ in best})
    ]
    if by_parts:
        head = ("size in bits", *(f"{column + 1} component{'s' if column else ''}" for column in range(steps)))
        told = "number of the reward's components; programs with more are in the last column"
    else:
        head = ("size in bits", *(f"tau from {2 * column / steps - 1:.1f}" for column in range(steps)))
        told = "Kendall's tau of the reward against time along expert trajectories"
    text = f"Best score of each niche. Rows: size of the program. Columns ({steps}): {told}."
    return Panel("Map", (text, Figures(head, tuple(rows))))


def _search(config: Config) -> Search:
    return MapElites(config.own(MapElitesSettings), config.search.samples or 1, config.seed)


def _panel(others: Sequence[Scored], config: Config) -> Panel:
    return map_panel(others, config.own(MapElitesSettings).steps, by_parts=bool(config.own(PolicyConfig).task))


def _width(config: Config) -> int:
    settings = config.own(MapElitesSettings)
    return min(settings.first, settings.programs)


def _course(config: Config) -> Course:
    settings, plateau = config.own(MapElitesSettings), config.stop.plateau
    first = min(settings.first, settings.programs)
    left = settings.programs - first
    usual = left if plateau is None else min(left, plateau * COUNTED)
    stopped = f"; the run ends after {usual} mutations without improvement (plateau)" if usual < left else ""
    return Course(
        typical=(Phase("initialise", first, first), Phase("mutate", usual, max(usual, 1))),
        most=(Phase("initialise", first, first), Phase("mutate", left, max(left, 1))),
        typically=f"{first} new programs, then mutations{stopped}",
        at_most=f"all {settings.programs} programs",
        generations=-(-settings.programs // COUNTED),
    )


METHOD = two_forms(
    "map-elites",
    "the fittest program of each niche",
    _search,
    ("map_elites", MapElitesSettings),
    width=_width,
    waits=lambda _: False,
    course=_course,
    stop=PlateauConfig,
    reads=("search.samples",),
    more=lambda _, others, config: (_panel(others, config),),
)
