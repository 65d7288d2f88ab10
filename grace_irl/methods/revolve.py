"""The method `revolve` (Hazra et al. 2025): populations on islands, with mutation, crossover and migration.

In the paper, people compare policies, and the fitness comes from these comparisons. In this package, the fitness is the
score of trained policies on a task. In runs without a task, it is the fitness of method `grace`.
"""

from __future__ import annotations

from typing import ClassVar

from grace_irl.config import Config
from grace_irl.methods.either import two_forms
from grace_irl.methods.method import Course, Phase
from grace_irl.search.protocol import Search
from grace_irl.settings import Section, setting


class RevolveConfig(Section):
    """Settings of REvolve."""

    panel: ClassVar[str] = "Search"

    programs: int = setting(80, "Programs to ask for.", flag="programs", unit="programs", ge=1)
    islands: int = setting(4, "Islands.", flag="islands", ge=1)
    size: int = setting(8, "Programs that an island keeps.", flag="island-programs", unit="programs", ge=2)
    crossover: float = setting(0.5, "Chance of crossover; else mutation.", flag="crossover", ge=0, le=1)
    migration: float = setting(
        0.3, "Chance that a program moves to another island after a generation.", flag="migration", ge=0, le=1
    )


def islands(config: Config) -> Search:
    """Create the search from the settings of a run."""
    from grace_irl.search.islands import IslandSearch, IslandSettings

    own = config.own(RevolveConfig)
    settings = IslandSettings(
        islands=own.islands,
        size=own.size,
        programs=own.programs,
        crossover=own.crossover,
        migration=own.migration,
    )
    found: Search = IslandSearch(settings, config.seed)
    return found


def _first(config: Config) -> int:
    """The number of programs of the first generation, which fills one half of each island."""
    own = config.own(RevolveConfig)
    return min(own.programs, own.islands * -(-own.size // 2))


def course(config: Config) -> Course:
    """The forecast of a run's requests."""
    own = config.own(RevolveConfig)
    first = _first(config)
    crossed = round((own.programs - first) * own.crossover)
    phases = (
        Phase("initialise", first, 1),
        Phase("crossover", crossed, 1, parents=2),
        Phase("mutate", own.programs - first - crossed, 1),
    )
    return Course(phases, phases, "all programs", "all programs", -(-own.programs // first))


METHOD = two_forms(
    "revolve",
    "islands with mutation and crossover",
    islands,
    ("revolve", RevolveConfig),
    width=_first,
    course=course,
)
