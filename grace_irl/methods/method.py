"""The class `Method`: one way of recovering a reward."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grace_irl.config import Config
from grace_irl.evaluate.evaluation import Evaluator
from grace_irl.methods.account import Account, Curves, Figures
from grace_irl.settings import Section

if TYPE_CHECKING:
    from pathlib import Path

    from grace_irl.demos.labels import Problem
    from grace_irl.demos.trajectory import Metadata, Trajectory
    from grace_irl.propose.material import Workbench
    from grace_irl.propose.protocol import Following, Proposer
    from grace_irl.propose.rendering import Operator
    from grace_irl.search.protocol import Search
    from grace_irl.search.ranks import Scored


@dataclass(frozen=True)
class Panel:
    """A section of the report that a method adds.

    Attributes:
        title: heading of the section.
        parts: paragraphs (`str`), tables (`Figures`) and charts (`Curves`), in order. The report escapes every text for
            HTML.
    """

    title: str
    parts: Sequence[str | Figures | Curves]


@dataclass(frozen=True)
class Needs:
    """Requirements of a method's runs.

    Attributes:
        demonstrations: whether runs need expert trajectories and negative states.
    """

    demonstrations: bool = True


@dataclass(frozen=True)
class Phase:
    """A phase of a run: consecutive requests with one operator.

    Attributes:
        operator: name of the operator, for example "initialise" or "mutate".
        programs: number of requests. Each request is for one program.
        together: maximum number of consecutive requests that one call of a model may answer.
        parents, ancestors: typical numbers of parents and of ancestors that a request names. Requests with the operator
            "initialise" name none.
    """

    operator: str
    programs: int
    together: int
    parents: int = 1
    ancestors: int = 0


@dataclass(frozen=True)
class Course:
    """A forecast of a run's requests, for cost estimates and the progress display.

    Attributes:
        typical, most: phases of a typical run and of the longest run.
        typically, at_most: descriptions of these two runs.
        generations: number of generations of the longest run.
        opinions: operators of follow-up calls about each valid program. Such a call returns a text, for example a
            description.
    """

    typical: tuple[Phase, ...]
    most: tuple[Phase, ...]
    typically: str
    at_most: str
    generations: int
    opinions: tuple[str, ...] = ()


def _no_operators(config: Config) -> Mapping[str, Operator]:  # noqa: ARG001
    return {}


def repairs_of(config: Config) -> Following:
    """The rule that requests repairs of invalid programs, as often as the settings allow."""
    from grace_irl.propose.protocol import repairs

    # A replay repeats the repairs of the recorded run, so it needs no limit.
    most = 10**9 if config.proposer.name == "replay" else config.model.repairs if config.model.repair else 0
    return repairs(most)


def _vectors(config: Config) -> Metadata:  # noqa: ARG001
    from grace_irl.demos.trajectory import Metadata

    return Metadata("vector")


def _may_resume(config: Config, folder: Path) -> None:
    pass


def _no_examples(config: Config) -> Sequence[Trajectory]:  # noqa: ARG001
    return ()


def _no_panels(best: Scored | None, others: Sequence[Scored], config: Config) -> Sequence[Panel]:  # noqa: ARG001
    return ()


@dataclass(frozen=True)
class Method:
    """A way of recovering a reward, as one object.

    `--help` imports the modules of all methods. To keep `--help` fast, these modules should import NumPy, searches and
    evaluators only within functions.

    Attributes:
        name: value of `--method`.
        summary: one line for the help text.
        search: function that creates the search from the settings of a run.
        evaluator: function that checks the data, before the run writes any file. It returns a second function, which
            creates the evaluator of the run from a `Workbench` (data, sandbox and cache of rewards).
        account: presentation of evaluations, in text and in JSON.
        operators: function from settings to the operators by name. An operator writes the prompt for a request or for a
            follow-up call. The proposer "synthesis" needs no prompts, and uses only the operators' names.
        following: function from settings to the rule for follow-up calls after a first answer. The default rule
            requests repairs of invalid programs.
        panels: function that returns sections of the report. Its arguments are the best program (None if there is
            none), all programs of the run (with evaluations, in the order of their requests), and the run's settings.
        needs: requirements of a run.
        sections: classes of the method's own settings, by section name (`grace_irl.settings`). A subclass of
            `grace_irl.config.SearchConfig` must have the name `search`, and a subclass of `StopConfig` the name `stop`.
            Such a subclass adds settings or changes defaults.
        reads: prefixes of the optional settings that this method reads, a subset of `grace_irl.runs.config.OPTIONAL`.
            `fit` refuses values for the other optional settings.
        width: function from settings to the number of first requests, which name no parents. A run can start from at
            most this number of programs (`--start-from`). A run ends after twice this number of answers in a row
            without a program.
        waits: function from settings to whether the search waits for results before it draws parents from them. If not,
            the default of `search.lag` is at most `width`: with hundreds of requests in flight, most would name no
            parents, or those of the first results alone.
        course: function from settings to the forecast of a run's requests. It returns None if there is no forecast.
        states: function from settings to facts about the states, for runs without demonstrations.
        examples: function from settings to trajectories of the environment in which programs are judged. Exported files
            name the form of their states and actions; () for the form of the demonstrations.
        resumes: function that raises InputError if the run in a folder must not go on with these settings.
        with_task: the form of this method for runs with a task (`--task`), in which trained policies judge programs;
            None if the method has one form. Both forms have the same name, search and sections.
        writer: function from the data and the settings to a proposer that works without a model, for runs with
            `--proposer synthesis`. If `writer` is None, such runs use the synthesiser, which composes programs from
            demonstrations.
    """

    name: str
    summary: str
    search: Callable[[Config], Search]
    evaluator: Callable[[Problem, Config], Callable[[Workbench], Evaluator]]
    account: Account = field(default_factory=Account)
    operators: Callable[[Config], Mapping[str, Operator]] = _no_operators
    following: Callable[[Config], Following] = repairs_of
    panels: Callable[[Scored | None, Sequence[Scored], Config], Sequence[Panel]] = _no_panels
    needs: Needs = field(default_factory=Needs)
    sections: Mapping[str, type[Section]] = field(default_factory=dict)
    reads: tuple[str, ...] = ()
    width: Callable[[Config], int] = lambda _: 20
    waits: Callable[[Config], bool] = lambda _: True
    course: Callable[[Config], Course | None] = lambda _: None
    states: Callable[[Config], Metadata] = _vectors
    examples: Callable[[Config], Sequence[Trajectory]] = _no_examples
    resumes: Callable[[Config, Path], None] = _may_resume
    writer: Callable[[Problem, Config], Proposer] | None = None
    with_task: Method | None = None
