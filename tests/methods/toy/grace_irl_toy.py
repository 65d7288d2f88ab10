"""A toy method: programs in pairs, judged without demonstrations by how near their reward of 0 comes to a number."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from grace_irl.evaluate.evaluation import Bar, Evaluation
from grace_irl.methods.account import Account, Column, Figures
from grace_irl.methods.method import Method, Needs, Panel
from grace_irl.propose.protocol import Following, Prompt, Step
from grace_irl.search.protocol import Fate, Request, Result
from grace_irl.settings import Section, setting

if TYPE_CHECKING:
    from grace_irl.config import Config
    from grace_irl.demos.labels import Problem
    from grace_irl.evaluate.evaluation import Evaluator
    from grace_irl.programs.program import Program
    from grace_irl.propose.briefing import Briefing
    from grace_irl.propose.material import Material, Workbench
    from grace_irl.propose.rendering import Operator
    from grace_irl.search.ranks import Scored


class ToySettings(Section):
    """Settings of the toy."""

    panel: ClassVar[str] = "Search"

    tries: int = setting(6, "Programs to ask for.", flag="tries", ge=1)
    aim: float = setting(3.0, "Number that rewards shall come near.", flag="aim")


class Pairs:
    """Asks for two programs, then for children of the two best."""

    def __init__(self, tries: int, seed: int) -> None:
        self._random = random.Random(seed)
        self._tries, self._asked = tries, 0
        self._scores: dict[str, float] = {}

    def ask(self) -> Request | None:
        """See `Search`."""
        if self._asked >= self._tries:
            return None
        parents = self.best[:2] if len(self._scores) > 1 else ()
        self._asked += 1
        operator, seed = "cross" if parents else "begin", self._random.randrange(2**32)
        return Request(self._asked - 1, operator, parents, seed, ancestors=self.best[2:3] if parents else ())

    def tell(self, result: Result) -> list[Fate]:
        """See `Search`: a program's own opinion of itself breaks ties."""
        if result.program is None or result.evaluation is None or not result.evaluation.valid:
            return []
        opinion = float(result.notes.get("opinion", "0") or 0)
        self._scores.setdefault(result.program.id, result.evaluation.score + opinion / 1000)
        return [Fate(result.program.id, "kept", f"opinion of itself {opinion:g}")]

    @property
    def best(self) -> tuple[str, ...]:
        """See `Search`."""
        return tuple(sorted(self._scores, key=lambda name: (-self._scores[name], name)))


class Nearness:
    """Reads the number that a program returns; needs no demonstrations."""

    def __init__(self, aim: float) -> None:
        self._aim = aim

    def evaluate(self, programs: Sequence[Program], bar: Bar = Bar()) -> list[Evaluation]:
        """See `Evaluator`."""
        del bar
        return [self._evaluate(program.source) for program in programs]

    def verify(self, program: Program) -> str:
        """See `Evaluator`."""
        del program
        return ""

    def close(self) -> None:
        """See `Evaluator`."""

    def _evaluate(self, source: str) -> Evaluation:
        found = re.search(r"return (-?[0-9.]+)", source)
        if found is None:
            return Evaluation("contract", "no number is returned")
        distance = abs(float(found[1]) - self._aim)
        return Evaluation("ok", score=-distance, metrics={"distance": distance}, evidence={"toy": {"number": found[1]}})


def _search(config: Config) -> Pairs:
    return Pairs(config.own(ToySettings).tries, config.seed)


def _evaluator(problem: Problem, config: Config) -> Callable[[Workbench], Evaluator]:
    del problem
    return lambda bench: Nearness(config.own(ToySettings).aim)


def _begin(briefing: Briefing, material: Material) -> Prompt:
    return Prompt(briefing.system, f"BEGIN {material.seed}")


def _cross(briefing: Briefing, material: Material) -> Prompt:
    parents = "\n---\n".join(each.source for each in material.parents)
    return Prompt(briefing.system, f"CROSS {len(material.parents)} {len(material.ancestors)}\n{parents}")


def _opinion(briefing: Briefing, material: Material) -> Prompt:
    return Prompt(briefing.system, f"OPINION\n{material.parents[0].source}")


def _operators(config: Config) -> Mapping[str, Operator]:
    from grace_irl.propose.rendering import Operator

    return {"begin": Operator(_begin), "cross": Operator(_cross), "opinion": Operator(_opinion)}


def _following(config: Config) -> Following:
    del config

    def following(request: Request, result: Result, done: Sequence[Step]) -> Step | None:
        del request
        valid = result.evaluation is not None and result.evaluation.valid
        return Step("opinion", writes=False) if valid and not done else None

    return following


def _panels(best: Scored | None, others: Sequence[Scored], config: Config) -> Sequence[Panel]:
    evidence = [each.evaluation.evidence for each in others]
    numbers = [each["toy"]["number"] for each in evidence if "toy" in each]
    said = "none" if best is None else str(best.evaluation.evidence["toy"]["number"])
    return [
        Panel(
            "Numbers of the toy",
            [
                f"The best returns {said}.",
                Figures(("program", "number"), tuple((f"{n}", each) for n, each in enumerate(numbers))),
            ],
        )
    ]


class ToyAccount(Account):
    """Shows the distance."""

    score = "nearness"
    columns = (Column("distance", "distance"),)
    progress = columns


METHOD = Method(
    name="toy",
    summary="a toy",
    search=_search,
    evaluator=_evaluator,
    account=ToyAccount(),
    operators=_operators,
    following=_following,
    panels=_panels,
    needs=Needs(demonstrations=False),
    sections={"toy": ToySettings},
    width=lambda _: 2,
)
