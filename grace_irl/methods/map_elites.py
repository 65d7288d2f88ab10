"""The method `map-elites` (Mouret and Clune 2015) with the discriminator's fitness. It trains no policy.

The search keeps the fittest program of each niche. A niche is a cell of a grid over two properties of a program. The
first is its size in bits, in bins of powers of two. The second is its monotonicity: how steadily its
reward rises along expert trajectories.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import ClassVar

from grace_irl.config import Config
from grace_irl.methods.grace import FitnessConfig, discriminator, operators
from grace_irl.methods.method import Course, Method, Phase
from grace_irl.methods.separated import SeparationAccount
from grace_irl.search.protocol import COUNTED, Fate, Request, Result, Search
from grace_irl.search.ranks import Scored, merit, winners
from grace_irl.settings import Section, setting

Niche = tuple[int, int]


class MapElitesSettings(Section):
    """Settings of MAP-Elites."""

    panel: ClassVar[str] = "Search"

    programs: int = setting(400, "Programs to ask for.", flag="programs", ge=1)
    first: int = setting(20, "New programs before mutation begins.", flag="first-programs", ge=1)
    steps: int = setting(5, "Number of niches by how steadily the reward rises.", flag="niches", ge=1, le=100)


class MapElites:
    """A search with an archive of one program per niche. It draws parents uniformly from the archive.

    Each result updates the archive at once. So `ask` never returns `Wait`, which other searches use to get more results
    before their next request.

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
            samples = min(self._samples, self._settings.programs - self._asked)
            elites = [self._archive[niche] for niche in sorted(self._archive)]
            filling = self._asked < self._settings.first or not elites
            parents = () if filling else (self._random.choice(elites).program.id,)
            seed = self._random.randrange(2**62)
            self._same = Request(self._asked, "mutate" if parents else "initialise", parents, seed, samples=samples)
        self._same = replace(self._same, index=self._asked, sample=sample)
        self._asked += 1
        return self._same

    def tell(self, result: Result) -> list[Fate]:
        """Add a program to the archive if it is the fittest of its niche. Return the fates that change."""
        program, evaluation = result.program, result.evaluation
        if program is None or evaluation is None:
            return []
        if program.id in self._seen:
            return [Fate(program.id, "duplicate", "the same program was tried before")]
        self._seen.add(program.id)
        if not evaluation.valid:
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
        """The niche of a program: the bit length of its size, and the bin of its monotonicity."""
        tau = scored.evaluation.metrics.get("monotonicity", 0.0)  # Kendall's tau of reward against time, from -1 to 1
        steps = self._settings.steps
        return scored.program.size.bit_length(), min(int((tau + 1) / 2 * steps), steps - 1)


def _search(config: Config) -> Search:
    return MapElites(config.own(MapElitesSettings), config.search.samples or 1, config.seed)


def _width(config: Config) -> int:
    return config.own(MapElitesSettings).first


def _course(config: Config) -> Course:
    settings, plateau = config.own(MapElitesSettings), config.stop.plateau
    first = min(settings.first, settings.programs)
    left = settings.programs - first
    usual = left if plateau is None else min(left, plateau * COUNTED)
    stopped = f", of which {usual} without improvement end the run (plateau)" if usual < left else ""
    return Course(
        typical=(Phase("initialise", first, first), Phase("mutate", usual, max(usual, 1))),
        most=(Phase("initialise", first, first), Phase("mutate", left, max(left, 1))),
        typically=f"{first} new programs, then mutations{stopped}",
        at_most=f"all {settings.programs} programs",
        generations=settings.programs // COUNTED,
    )


METHOD = Method(
    name="map-elites",
    summary="the fittest program of each niche of size and steadiness, on the discriminator's fitness",
    search=_search,
    evaluator=discriminator,
    account=SeparationAccount(),
    operators=operators,
    sections={"map_elites": MapElitesSettings, "fitness": FitnessConfig},
    reads=("stop.target_accuracy", "data."),
    width=_width,
    course=_course,
)
