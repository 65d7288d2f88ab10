"""The writer of a run's prompts. It turns a search's request into a prompt that fits into the model's context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from grace_irl.demos.labels import Labelled
from grace_irl.errors import InputError
from grace_irl.propose.briefing import Briefing, PromptBudget, brief
from grace_irl.propose.feedback import material
from grace_irl.propose.material import Material, Workbench
from grace_irl.propose.protocol import AnswerFormat, Parent, Prompt, Step
from grace_irl.propose.rendering import COMMON, Operator
from grace_irl.propose.tokens import estimate
from grace_irl.search.protocol import Request

SPARE = 0.95  # usable share of the context, since token estimates err by a few per cent
LEAST_CUT = 0.8  # maximum length of the next prompt relative to a prompt that did not fit


@dataclass(frozen=True)
class PromptSettings:
    """Limits and content of prompts.

    Attributes:
        budget: limits in tokens.
        context: the user's own text, for every prompt; "" for none.
        images: whether prompts with trajectories include pictures of states.
        operators: functions of the search method that write prompts, by operator name, such as "mutate". Its "repair",
            if it has one, replaces that of `COMMON`.
        most_requests: maximum number of requests that the search of the run makes; None for no limit. A call to the
            model asks for no answers to requests beyond this number.
    """

    budget: PromptBudget = field(default_factory=PromptBudget)
    context: str = ""
    images: bool = False
    operators: Mapping[str, Operator] = field(default_factory=dict)
    most_requests: int | None = None


class Prompter:
    """The writer of a run's prompts. Between calls of `shrink`, a prompt depends only on the request and its parents.

    Args:
        bench: data and sandbox of the run.
        settings: limits and content of prompts.
        answer_format: the requested format of programs.
        room: maximum tokens of a prompt for this model; None if unknown.

    Attributes:
        version: number of calls to `shrink`, which makes later prompts shorter.
    """

    def __init__(
        self, bench: Workbench, settings: PromptSettings, answer_format: AnswerFormat, room: int | None = None
    ) -> None:
        self._bench = bench
        self._settings = settings
        self._answer_format = answer_format
        self.version = 0
        total = settings.budget.total
        self._briefing = self._brief(total if room is None else min(total, int(SPARE * room)))

    def write(self, request: Request, parents: Sequence[Parent]) -> Prompt:
        """Write the prompt of a request.

        Raises:
            InputError: the prompt cannot be made short enough, or the request's operator has no prompt.
        """
        operators = self._settings.operators
        if request.operator not in operators:
            raise InputError(f"operator {request.operator!r} has no prompt; expected one of {', '.join(operators)}")
        operator = operators[request.operator]
        return operator(self._briefing, material(self._bench, self._briefing, request, parents, operator))

    def follow(self, step: Step, request: Request, parents: Sequence[Parent], version: Parent) -> Prompt:
        """Write the prompt of a follow-up call about a program, such as a repair.

        Args:
            step: the follow-up call.
            request: the request that the program answers.
            parents: parents of the request. The prompt can show them.
            version: the current version of the program.

        Raises:
            InputError: the prompt cannot be made short enough, or the operator of `step` has no prompt.
        """
        if step.operator == "repair":
            return self.repair(request, version)
        return self.write(replace(request, operator=step.operator), (version, *parents))

    def repair(self, request: Request, failed: Parent) -> Prompt:
        """Write the prompt that requests a repair of an invalid program.

        Raises:
            InputError: the prompt cannot be made short enough.
        """
        evidence = Material(seed=request.seed, source=failed.program.source, evaluation=failed.evaluation)
        return self._settings.operators.get("repair", COMMON["repair"])(self._briefing, evidence)

    def clean(self, item: Labelled) -> Prompt:
        """Write the prompt that requests the goal states of an expert trajectory of any split.

        Raises:
            InputError: the prompt cannot be made short enough.
        """
        return COMMON["clean"](self._briefing, Material(trajectories=(item,)))

    def shrink(self, prompt: Prompt, limit: int | None, found: int | None) -> None:
        """Make later prompts shorter than a prompt that did not fit.

        Args:
            prompt: the prompt that did not fit.
            limit: the model's context in tokens; None if the server does not report it.
            found: tokens of the prompt as counted by the server; None if unknown.
        """
        self.version += 1
        share = min(LEAST_CUT, SPARE * limit / found) if limit and found else LEAST_CUT
        size = min(self._briefing.budget.total, estimate(prompt.system) + estimate(prompt.user))
        self._briefing = self._brief(max(1, int(size * share)))

    def _brief(self, total: int) -> Briefing:
        return brief(
            self._bench.problem,
            answer_format=self._answer_format,
            context=self._settings.context,
            budget=replace(self._settings.budget, total=total),
            images=self._settings.images,
        )
