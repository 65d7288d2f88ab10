"""The method `forge` (FORGE, docs/methods/forge.md).

A planner names single components of a reward. Each component becomes a program, and these programs form a pool. Then
pairs of programs are drawn by score and crossed.

There are two differences from the FORGE paper. One request names and writes one component; in the paper, the planner
first names all components. An invalid component may be sent back to the model for repair; the paper drops it.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from grace_irl.config import Config
from grace_irl.methods.either import two_forms
from grace_irl.methods.method import Course, Phase
from grace_irl.methods.search_panels import pool_panel
from grace_irl.search.protocol import Search
from grace_irl.settings import Section, setting


class ForgeConfig(Section):
    """Settings of FORGE. The paper gives no pool sizes; the defaults are our choice."""

    panel: ClassVar[str] = "Search"

    first: int = setting(16, "Programs of the first pool.", flag="first-programs", unit="programs", ge=1)
    rounds: int = setting(10, "Rounds of crossover, at most.", flag="rounds", ge=0)
    pairs: int = setting(16, "Pairs that are crossed in a round.", flag="pairs", ge=1)
    size: int = setting(16, "Programs that stay in the pool.", flag="pool-programs", unit="programs", ge=2)
    patience: int = setting(
        0, "Rounds without a better program after which the search ends; 0: never.", flag="patience", ge=0
    )
    deeper: int = setting(
        0,
        "Depth by which the deepest program exceeds the best one when the search ends; 0: it does not end so.",
        flag="deeper",
        details="Checked after each round. A program's depth is 1 more than that of its deepest parent. The paper has "
        "such a rule, without a number.",
        ge=0,
    )
    planner: bool = setting(True, "Begin with single components; without, with whole rewards.", flag="planner")
    choice: Literal["score", "uniform"] = setting("score", "Draw of pairs: score or uniform.", flag="pair-choice")


def pool(config: Config) -> Search:
    """Create the search from the settings of a run."""
    from grace_irl.search.pool import PoolSearch, PoolSettings

    own = config.own(ForgeConfig)
    settings = PoolSettings(
        first=own.first,
        rounds=own.rounds,
        pairs=own.pairs,
        size=own.size,
        patience=own.patience or None,
        deeper=own.deeper or None,
        choice=own.choice,
        planner=own.planner,
    )
    found: Search = PoolSearch(settings, config.seed)
    return found


def course(config: Config) -> Course:
    """The forecast of a run's requests."""
    from grace_irl.search.pool import SHOWN

    own = config.own(ForgeConfig)
    earlier = min(own.first // 2, SHOWN)  # programs that a plan shows, on average
    first = Phase("plan", own.first, 1, 0, earlier) if own.planner else Phase("initialise", own.first, 1)
    phases = (first, Phase("crossover", own.rounds * own.pairs, 1, parents=2))
    return Course(phases, phases, "all rounds", "all rounds", own.rounds + 1)


METHOD = two_forms(
    "forge",
    "components of a planner, crossed in pairs",
    pool,
    ("forge", ForgeConfig),
    width=lambda config: config.own(ForgeConfig).first,
    course=course,
    more=lambda _, others, config: (pool_panel(others, config.own(ForgeConfig).size),),
)
