"""The method `rf-agent` (Gao et al. 2026): Monte Carlo tree search over rewards, with five actions.

Follow-up calls ask for a description of each valid program ("align") and for an opinion on it ("verify").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import field_validator

from grace_irl.config import Config
from grace_irl.methods.either import two_forms
from grace_irl.methods.method import Course, Phase, repairs_of
from grace_irl.methods.search_panels import tree_panel
from grace_irl.search.protocol import Search
from grace_irl.settings import Section, setting

if TYPE_CHECKING:
    from grace_irl.propose.protocol import Following, Step
    from grace_irl.search.protocol import Request, Result


ACTIONS = ("structure", "weights", "crossover", "path", "different")
"""The actions that expand a node of the tree, in the order of the setting `tree.actions`."""
NAMED = {"crossover": (3, 0), "path": (1, 2), "different": (1, 2)}
"""Mean numbers of parents and ancestors of a request, by operator (`TreeSettings.fewest`, `most`); others: 1 and 0."""
OPINIONS = ("align", "verify")
"""Operators of the follow-up calls about each valid program: one asks for a description, the other for an opinion."""


class TreeConfig(Section):
    """Settings of RF-Agent. The defaults are those of the paper, except the number of first programs."""

    panel: ClassVar[str] = "Search"

    programs: int = setting(80, "Programs to ask for.", flag="programs", unit="programs", ge=1)
    first: int = setting(8, "New programs before the first expansion.", flag="first-programs", unit="programs", ge=1)
    actions: str = setting(
        "2,2,2,1,1",
        "Children of an expansion: by structure, weights, crossover, path and different thought.",
        flag="actions",
        pattern=r"^\d+(,\d+){4}$",
    )
    exploration: float = setting(
        0.4, "Lambda at the start, which falls to 0.", flag="exploration", ge=0, le=1000, allow_inf_nan=False
    )
    eta: float = setting(0.7, "Rate at which a node takes over the value of its best child.", flag="eta", ge=0, le=1)
    rule: Literal["uct", "depth-first", "breadth-first", "greedy"] = setting(
        "uct", "Choice of the node to expand: uct, depth-first, breadth-first or greedy.", flag="tree-rule"
    )
    thoughts: bool = setting(
        True, "Ask for a description and an opinion of each program that runs.", flag="thoughts", needs="prompts"
    )
    virtual_loss: bool = setting(
        False, "Begin an expansion before the last one is over. Not the paper's.", flag="virtual-loss"
    )

    @field_validator("actions")
    @classmethod
    def _some(cls, value: str) -> str:
        if not any(map(int, value.split(","))):
            raise ValueError("no children; expected at least one")
        return value


def tree(config: Config) -> Search:
    """Create the search from the settings of a run."""
    from grace_irl.search.tree import TreeSearch, TreeSettings

    own = config.own(TreeConfig)
    counts = tuple(map(int, own.actions.split(",")))
    settings = TreeSettings(
        programs=own.programs,
        first=own.first,
        actions=tuple(zip(ACTIONS, counts, strict=True)),
        exploration=own.exploration,
        eta=own.eta,
        virtual_loss=own.virtual_loss,
        rule=own.rule,
    )
    found: Search = TreeSearch(settings, config.seed)
    return found


def following(config: Config) -> Following:
    """The rule for follow-up calls: repairs of an invalid program, and `OPINIONS` on a valid program."""
    from grace_irl.propose.protocol import Step

    repair, asks = repairs_of(config), config.own(TreeConfig).thoughts

    def follow(request: Request, result: Result, done: Sequence[Step]) -> Step | None:
        valid = result.evaluation is not None and result.evaluation.valid
        if not valid:
            return repair(request, result, done)
        asked = [each.operator for each in done]
        missing = next((name for name in OPINIONS if name not in asked), None)
        return Step(missing, writes=False) if asks and missing else None

    return follow


def course(config: Config) -> Course:
    """The forecast of a run's requests."""
    own = config.own(TreeConfig)
    counts = dict(zip(ACTIONS, map(int, own.actions.split(",")), strict=True))
    width, left = max(sum(counts.values()), 1), max(own.programs - own.first, 0)
    whole, part = divmod(left, width)
    children = (name for name, count in counts.items() for _ in range(count))
    begun = Counter(islice(children, part))  # the last expansion; counts may be huge
    phases = (
        Phase("initialise", min(own.first, own.programs), 1),
        *(
            Phase(name, whole * count + begun[name], 1, *NAMED.get(name, (1, 0)))
            for name, count in counts.items()
            if count
        ),
    )
    opinions = OPINIONS if own.thoughts else ()
    return Course(phases, phases, "all programs", "all programs", 1 + -(-left // width), opinions)


METHOD = two_forms(
    "rf-agent",
    "Monte Carlo tree search with five actions",
    tree,
    ("tree", TreeConfig),
    width=lambda config: min(config.own(TreeConfig).first, config.own(TreeConfig).programs),
    waits=lambda config: not config.own(TreeConfig).virtual_loss,
    course=course,
    following=following,
    more=lambda best, others, _: (tree_panel(best, others),),
)
