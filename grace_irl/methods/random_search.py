"""The method `random`: programs that are written independently of each other, as a baseline for all other methods."""

from __future__ import annotations

from typing import ClassVar

from grace_irl.config import Config
from grace_irl.methods.either import two_forms
from grace_irl.methods.method import Course, Phase
from grace_irl.search.protocol import COUNTED, Search
from grace_irl.settings import Section, setting


class RandomConfig(Section):
    """Settings of random search."""

    panel: ClassVar[str] = "Search"

    programs: int = setting(32, "Programs to ask for.", flag="programs", unit="programs", ge=1)


def independent(config: Config) -> Search:
    """Create the search from the settings of a run."""
    from grace_irl.search.independent import IndependentSearch, IndependentSettings

    return IndependentSearch(IndependentSettings(config.own(RandomConfig).programs), config.seed)


def course(config: Config) -> Course:
    """The forecast of a run's requests."""
    programs = config.own(RandomConfig).programs
    phases = (Phase("initialise", programs, 1),)
    return Course(phases, phases, "all programs", "all programs", -(-programs // COUNTED))


METHOD = two_forms(
    "random",
    "independent programs",
    independent,
    ("random", RandomConfig),
    width=lambda config: config.own(RandomConfig).programs,
    course=course,
)
