"""The method `eureka` (Ma et al. 2024): each round improves the best program of the previous round."""

from __future__ import annotations

from typing import ClassVar

from grace_irl.config import Config
from grace_irl.methods.either import two_forms
from grace_irl.methods.method import Course, Phase
from grace_irl.search.protocol import Search
from grace_irl.settings import Section, setting


class EurekaConfig(Section):
    """Settings of Eureka; the defaults are those of its authors."""

    panel: ClassVar[str] = "Search"

    rounds: int = setting(5, "Rounds; the first one asks for new programs.", flag="rounds", ge=1)
    samples: int = setting(16, "Programs of a round.", flag="round-programs", unit="programs", ge=1)
    keep_overall: bool = setting(
        False,
        "Reflect on the best program of all rounds, not of the last one.",
        flag="keep-overall",
        details="The authors' code keeps the best of the last round, even if it is worse than the one before.",
    )


def greedy(config: Config) -> Search:
    """Create the search from the settings of a run."""
    from grace_irl.search.greedy import GreedySearch, GreedySettings

    own = config.own(EurekaConfig)
    found: Search = GreedySearch(GreedySettings(own.rounds, own.samples, own.keep_overall), config.seed)
    return found


def course(config: Config) -> Course:
    """The forecast of a run's requests."""
    own = config.own(EurekaConfig)
    phases = (Phase("initialise", own.samples, 1), Phase("reflect", (own.rounds - 1) * own.samples, 1))
    return Course(phases, phases, "all rounds", "all rounds", own.rounds)


METHOD = two_forms(
    "eureka",
    "best of each round and reflection",
    greedy,
    ("eureka", EurekaConfig),
    width=lambda config: config.own(EurekaConfig).samples,
    course=course,
)
