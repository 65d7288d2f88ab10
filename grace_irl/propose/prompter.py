"""From a request to a prompt, within what the model takes."""

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

SPARE = 0.95  # of the context that is left; counting tokens without the model's tokenizer errs by a few per cent
LEAST_CUT = 0.8


@dataclass(frozen=True)
class PromptSettings:
    """Limits and content of prompts.

    Attributes:
        budget: see `PromptBudget`.
        context: text of the user's own, for every prompt; "" for none.
        images: pictures of states go with prompts that show trajectories.
        operators: of the method, by the name that a request or a step carries.
    """

    budget: PromptBudget = field(default_factory=PromptBudget)
    context: str = ""
    images: bool = False
    operators: Mapping[str, Operator] = field(default_factory=dict)


class Prompter:
    """Writes the prompts of a run. What a prompt holds depends on the request and its parents alone.

    Args:
        bench: the data and the sandbox.
        settings: what prompts may hold.
        answer_format: how programs are to be answered.
        room: most tokens of a prompt that the model takes, if that is known.

    Attributes:
        version: counts how often prompts were made shorter.
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
        """The prompt of a request.

        Raises:
            InputError: the prompt cannot be made short enough, or no prompt has this operator's name.
        """
        operators = self._settings.operators
        if request.operator not in operators:
            raise InputError(f"operator {request.operator!r} has no prompt; expected one of {', '.join(operators)}")
        operator = operators[request.operator]
        return operator(self._briefing, material(self._bench, self._briefing, request, parents, operator))

    def follow(self, step: Step, request: Request, parents: Sequence[Parent], version: Parent) -> Prompt:
        """The prompt of a further call about a program: its material is the program, then the request's parents.

        Raises:
            InputError: the prompt cannot be made short enough, or no prompt has this operator's name.
        """
        if step.operator == "repair":
            return self.repair(request, version)
        return self.write(replace(request, operator=step.operator), (version, *parents))

    def repair(self, request: Request, failed: Parent) -> Prompt:
        """The prompt that sends a program back.

        Raises:
            InputError: the prompt cannot be made short enough.
        """
        evidence = Material(seed=request.seed, source=failed.program.source, evaluation=failed.evaluation)
        return COMMON["repair"](self._briefing, evidence)

    def clean(self, item: Labelled) -> Prompt:
        """The prompt that asks for the goal states of a trajectory, whatever its split: it asks for labels.

        Raises:
            InputError: the prompt cannot be made short enough.
        """
        return COMMON["clean"](self._briefing, Material(trajectories=(item,)))

    def shrink(self, prompt: Prompt, limit: int | None, found: int | None) -> None:
        """Makes later prompts shorter than this one.

        Args:
            prompt: the one that did not fit.
            limit: tokens that the model takes; None if the server does not say.
            found: tokens that it counted.

        Raises:
            InputError: what never varies already fills the smaller budget.
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
