"""The protocol of a method: everything that tells one way of recovering a reward from another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grace_irl.config import Config
from grace_irl.evaluate.evaluation import Evaluation, Evaluator
from grace_irl.methods.account import Account, Figures
from grace_irl.settings import Section

if TYPE_CHECKING:
    from grace_irl.demos.labels import Problem
    from grace_irl.propose.material import Workbench
    from grace_irl.propose.protocol import Following
    from grace_irl.propose.rendering import Operator
    from grace_irl.search.protocol import Search


@dataclass(frozen=True)
class Panel:
    """A section of the report that a method adds.

    Attributes:
        title: its heading.
        parts: paragraphs and tables, in order. The report escapes every text.
    """

    title: str
    parts: Sequence[str | Figures]


@dataclass(frozen=True)
class Needs:
    """Requirements of a method's runs.

    Attributes:
        demonstrations: expert trajectories, and negative states.
    """

    demonstrations: bool = True


@dataclass(frozen=True)
class Phase:
    """Requests of one operator, one after the other.

    Attributes:
        operator: its name; "initialise" has no parent.
        programs: how many.
        together: how many in a row may share calls of a model; the next ones share others.
    """

    operator: str
    programs: int
    together: int


@dataclass(frozen=True)
class Course:
    """The programs that a run asks for, for estimates and the display of progress.

    Attributes:
        typical, most: phases of a run as it usually goes, and of the longest one.
        typically, at_most: the same in words.
        generations: of the longest run, as its search counts them.
    """

    typical: tuple[Phase, ...]
    most: tuple[Phase, ...]
    typically: str
    at_most: str
    generations: int


def _no_operators() -> Mapping[str, Operator]:
    return {}


def _repairs(config: Config) -> Following:
    from grace_irl.propose.protocol import repairs

    # A recording holds every call of its run: it decides when the steps end.
    most = 10**9 if config.proposer.name == "replay" else config.model.repairs if config.model.repair else 0
    return repairs(most)


def _no_panels(best: Evaluation | None, others: Sequence[Evaluation]) -> Sequence[Panel]:  # noqa: ARG001
    return ()


@dataclass(frozen=True)
class Method:
    """A way of recovering a reward, as one object.

    Its module is read for help texts, so that it imports what is heavy (NumPy, searches, evaluators) within functions.

    Attributes:
        name: as in `--method`.
        summary: one line for help.
        search: from the settings of a run to its search.
        evaluator: from data and settings to a function that opens the evaluator on a workbench. It checks first:
            nothing is written before it returns.
        account: how its evaluations read, to people and in JSON.
        operators: prompts by the name that a request or a step carries; the synthesiser reads the names alone.
        following: which further calls follow a first answer; by default a program that fails is sent back.
        panels: sections of the report, from the best program's evaluation (or None) and from all.
        needs: what a run cannot do without.
        sections: its own settings by the name of their section (`grace_irl.settings`). A class that extends
            `grace_irl.config.SearchConfig` takes the name `search`.
        reads: sections and settings of every run that this method reads, of those that some methods do not
            (`grace_irl.runs.config.OPTIONAL`). `fit` refuses a user who sets another of these.
        width: how many programs it works with at once: those that a run may begin with, and as many fruitless answers
            as end it twice.
        course: the programs that a run asks for; by default nobody knows.
    """

    name: str
    summary: str
    search: Callable[[Config], Search]
    evaluator: Callable[[Problem, Config], Callable[[Workbench], Evaluator]]
    account: Account = field(default_factory=Account)
    operators: Callable[[], Mapping[str, Operator]] = _no_operators
    following: Callable[[Config], Following] = _repairs
    panels: Callable[[Evaluation | None, Sequence[Evaluation]], Sequence[Panel]] = _no_panels
    needs: Needs = field(default_factory=Needs)
    sections: Mapping[str, type[Section]] = field(default_factory=dict)
    reads: tuple[str, ...] = ()
    width: Callable[[Config], int] = lambda _: 20
    course: Callable[[Config], Course | None] = lambda _: None
