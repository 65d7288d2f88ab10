"""Estimates of a run's calls, tokens and cost (`--estimate`). An estimate calls no model and writes no file."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from grace_irl.config import Config, ModelConfig, StopConfig
from grace_irl.demos.label_rule import RuleChoice
from grace_irl.demos.labels import Problem
from grace_irl.errors import GraceError, InputError
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.evaluate.separation import Metrics, Separation
from grace_irl.methods.method import Course, Phase
from grace_irl.methods.registry import method_of, task_named
from grace_irl.methods.trained import plan_of
from grace_irl.programs.program import Program
from grace_irl.propose.client import ChatClient
from grace_irl.propose.material import Workbench
from grace_irl.propose.prompter import Prompter
from grace_irl.propose.protocol import Parent, Prompt
from grace_irl.propose.tokens import cut, estimate
from grace_irl.runs import proposers
from grace_irl.runs.beginnings import programs_of
from grace_irl.runs.budget import Prices
from grace_irl.runs.config import flat, is_read
from grace_irl.runs.loading import new_labelling
from grace_irl.runs.loop import run_to_end
from grace_irl.sandbox.protocol import Sandbox
from grace_irl.search.protocol import Request

# Assumed number of tokens in an answer. 34 recorded answers of a large model on BabyAI had at least 930 tokens, and
# the median was 1,378.
ANSWER = 1_200
OPINION = 220  # assumed number of tokens in a follow-up answer without a program: the median of 91 answers
REPAIRS = 0.25  # share of programs that need one repair, in a typical run
DRAWN = 5  # number of prompts per operator that are built to measure their sizes
PATIENCE, TIMEOUT = 0.0, 10.0  # seconds to wait for a lost server, and for the server's answer about its model
COMPONENTS, VALUES = 6, 10  # components of a made-up program, and evaluations of its training
FIRST = "initialise"  # the operator whose prompts have no parent program
# Made-up error message in the repair prompt. An estimate builds this prompt to measure the prompt's size.
FAULT = "runtime: IndexError: index 7 is out of bounds for axis 0 with size 7"


@dataclass(frozen=True)
class PromptSize:
    """Estimated number of tokens in the prompts of one operator.

    Attributes:
        typical: mean over a few built prompts.
        most: maximum that the prompt budget and the model's context allow. If a built prompt is longer, this is the
            size of the longest built prompt.
        guess: whether the prompts were built around a made-up program with made-up mistakes.
    """

    typical: int
    most: int
    guess: bool


@dataclass(frozen=True)
class Total:
    """Calls, tokens and cost of a whole run.

    Attributes:
        programs: number of requested programs.
        calls: number of calls of the model, including repairs.
        repairs: number of calls that request a repair.
        tokens_in, tokens_out: input and output tokens. A prompt counts once per call, even for several answers.
        cost: cost of the tokens by `model.price_in` and `model.price_out`.
    """

    programs: int
    calls: int
    repairs: int
    tokens_in: int
    tokens_out: int
    cost: float

    @property
    def tokens(self) -> int:
        """Input and output tokens."""
        return self.tokens_in + self.tokens_out


@dataclass(frozen=True)
class Cap:
    """A configured limit, with the expected use by the run.

    Attributes:
        name: flag of the limit without its leading dashes, for example "max-tokens".
        limit: the configured limit.
        typical, most: expected use in a typical run and in the longest run, in the unit of the limit.
    """

    name: str
    limit: float
    typical: float
    most: float


@dataclass(frozen=True)
class Estimate:
    """The estimate of a run.

    Attributes:
        proposer: "llm" or "manual"; another name if no model is asked, and policies judge programs.
        model: the model's name; "" if unknown.
        samples: number of answers per call.
        prompts: sizes of prompts, by operator.
        answer_typical, answer_most: number of tokens in a typical answer, and in the longest one.
        typical, most: totals of a typical run, and of the longest run.
        caps: the configured limits.
        assumptions: assumptions behind the figures, one line each.
        notes: further information for the user, one line each.
        label: the rule that decides which expert states are positive, with the reason for the rule.
        judged: whether demonstrations judge programs, so that the rule matters.
    """

    proposer: str
    model: str
    samples: int
    prompts: dict[str, PromptSize]
    answer_typical: int
    answer_most: int
    typical: Total
    most: Total
    caps: tuple[Cap, ...]
    assumptions: tuple[str, ...]
    notes: tuple[str, ...]
    label: RuleChoice
    judged: bool


def estimated(config: Config) -> Estimate:
    """Estimate the cost of a run with this configuration.

    The demonstrations are loaded. The only requests to a server are for its model's name and context length.

    Raises:
        InputError: settings or data that cannot be used, prompts that are too long, or a proposer without a model.
    """
    config = proposers.settled(config)
    name, model, tasked = config.proposer.name, config.model, bool(task_named(config))
    course = method_of(config).course(config)
    if name not in ("llm", "manual"):
        proposers.kind(name)
        if course is not None and tasked and not flat(config).get("policy.recorded_scores"):
            return _without_model(config, course)
        raise InputError(
            f"--estimate with proposer {name!r}, which asks no model: no tokens, no cost; "
            "expected --llm-url URL, --proposer llm (no server is needed) or --proposer manual"
        )
    if course is None:
        raise InputError(
            f"--estimate with method {config.method!r}, which gives no number of programs; "
            "expected --max-calls to bound the run instead"
        )
    labelling = new_labelling(config)
    notes: list[str] = []
    if labelling.silent:
        count = len(labelling.silent)
        notes.append(
            f"goal states of {count} expert trajectories are asked of the model first; these calls are not counted"
        )
    if config.expand.rounds:
        notes.append(
            f"the first search alone is counted; each of the {config.expand.rounds} rounds may search once more"
        )
    served, context = _server(config.model, notes) if name == "llm" else ("", None)
    room = None if context is None else proposers.chat_settings(model).room(context)
    if model.answer_format == "auto":
        notes.append(
            "answer format auto: a run tests first if the server answers well in JSON; prompts for code are counted"
        )
    prompts = _sizes(labelling.problem(), config, room, course)
    typical_answer = min(ANSWER, model.answer_tokens)
    typical = _total(config, prompts, course.typical, course.opinions, typical_answer, most=False)
    most = _total(config, prompts, course.most, course.opinions, model.answer_tokens, most=True)
    if tasked:
        notes.append(
            f"trainings are not part of these figures: {_trainings(config, typical.programs)} (a program that fails in "
            "training, and is repaired, trains again)"
        )
    return Estimate(
        proposer=name,
        model=served or model.name,
        samples=config.search.samples or 1,
        prompts=prompts,
        answer_typical=typical_answer,
        answer_most=model.answer_tokens,
        typical=typical,
        most=most,
        caps=_caps(config.stop, typical, most, 1 + config.expand.rounds),
        assumptions=_assumptions(config, course),
        notes=tuple(notes),
        label=labelling.choice,
        judged=method_of(config).needs.demonstrations,
    )


def _without_model(config: Config, course: Course) -> Estimate:
    """The estimate of a run with a task and without a model: its programs and their trainings."""
    typical, most = (sum(each.programs for each in phases) for phases in (course.typical, course.most))
    usual, longest = (Total(count, 0, 0, 0, 0, 0.0) for count in (typical, most))
    return Estimate(
        proposer=config.proposer.name,
        model="",
        samples=1,
        prompts={},
        answer_typical=0,
        answer_most=0,
        typical=usual,
        most=longest,
        caps=_caps(config.stop, usual, longest, 1),
        assumptions=(f"typical: {course.typically}", f"at most: {course.at_most}"),
        notes=(
            f"no model is asked: no tokens, no cost; {_trainings(config, typical)}",
            *((f"at most {_trainings(config, most)}",) if most > typical else ()),
        ),
        label=RuleChoice("all", "a task judges programs"),
        judged=False,
    )


def _server(model: ModelConfig, notes: list[str]) -> tuple[str, int | None]:
    """Ask the server for its model's name and context length in tokens. Return "" and None for unknown values.

    If a value is unknown, the reason is appended to `notes`.
    """
    if not model.url:
        notes.append("no server was asked (no --llm-url): the model's context is not known")
        return "", None
    settings = replace(proposers.chat_settings(model), patience=PATIENCE, timeout=TIMEOUT)

    async def asked() -> tuple[str, int | None]:
        async with ChatClient(settings) as client:
            return client.model, await client.context_length()

    try:
        name, context = run_to_end(asked())
    except GraceError as error:
        notes.append(f"the server was not reached, the model's context is not known: {error}")
        return "", None
    if context is None:
        notes.append("the server does not report the model's context length")
    return name, context


def _sizes(problem: Problem, config: Config, room: int | None, course: Course) -> dict[str, PromptSize]:
    """Build prompts for each operator, and measure their sizes.

    Args:
        problem: the labelled demonstrations.
        config: the configuration of the run.
        room: maximum number of prompt tokens that the model's context allows; None if unknown.
        course: the forecast of the run's requests.
    """
    settings = proposers.prompt_settings(config)
    # Only the debug functions of the parent program run for a prompt. The made-up parent has none, so no sandbox is
    # needed.
    problem = proposers.as_shown(config, problem)
    bench = Workbench(problem, cast(Sandbox, None), config.seed)
    prompter = Prompter(bench, settings, "json" if config.model.answer_format == "json" else "code", room)
    most = settings.budget.total if room is None else min(settings.budget.total, room)
    parent = _made_up(problem, trained=bool(task_named(config)))
    bench.rewards.put(parent.program.id, _one_wrong_each(problem))
    failed = Parent(parent.program, Evaluation("runtime", FAULT, f"Traceback (most recent call last):\n{FAULT}"))
    built: dict[str, list[Prompt]] = {}
    for phase in (*course.most, *(Phase(name, 0, 1) for name in course.opinions)):
        parents, ancestors = (0, 0) if phase.operator == FIRST else (phase.parents, phase.ancestors)
        asked = [Request(n, phase.operator, ("",) * parents, n, ancestors=("",) * ancestors) for n in range(DRAWN)]
        built[phase.operator] = [prompter.write(each, [parent] * (parents + ancestors)) for each in asked]
    if config.model.repair:
        built["repair"] = [prompter.repair(Request(0, "mutate"), failed)]
    return {
        name: PromptSize(_mean(prompts), max(most, *(_size(prompt) for prompt in prompts)), name != FIRST)
        for name, prompts in built.items()
    }


def _made_up(problem: Problem, *, trained: bool) -> Parent:
    """A made-up parent program of typical length.

    Args:
        problem: the labelled demonstrations.
        trained: whether trained policies judge programs. The program then has `COMPONENTS` components and the course of
            a training.
    """
    line = "        score = score + float(state.sum() > 0)\n"
    source = "class Reward:\n    def reward_fn(self, state):\n        score = 0.0\n" + line * ANSWER
    if trained:
        course = {"values": [0.123] * VALUES, "max": 0.123, "mean": 0.123, "min": 0.123}
        evidence: dict[str, Any] = {
            "policy": {"runs": [{"curve": [{"score": 0.123, "length": 123.0}] * VALUES}]},
            "components": {f"component {number}": course for number in range(COMPONENTS)},
        }
        return Parent(Program("", cut(source, ANSWER), 0), Evaluation("ok", score=-0.5, evidence=evidence))
    positive = sum(int(item.positive.sum()) for item in problem.train)
    states = sum(len(item.positive) for item in problem.train)
    metrics = Metrics(-0.5, 0.75, 0.75, False, positive, states - positive)
    evaluation = Separation(metrics, monotonicity=0.0).evaluation()
    return Parent(Program("", cut(source, ANSWER), 0), evaluation)


def _one_wrong_each(problem: Problem) -> dict[str, NDArray[np.float64]]:
    """Made-up rewards by trajectory digest, with the wrong value for the middle state of each trajectory.

    The right value is 1 for positive and 0 for other states.
    """
    rewards = {}
    for item in problem.train:
        values = item.positive.astype(np.float64)
        middle = len(values) // 2
        values[middle] = 1 - values[middle]
        rewards[item.trajectory.digest] = values
    return rewards


def _trainings(config: Config, programs: int) -> str:
    """The environment steps of all trainings of a run with a task, in words."""
    programs = min(programs, config.stop.max_calls or programs)
    steps = sum(each.evaluated_at[-1] for each in plan_of(config).trainings.values())  # whole rollouts
    return f"{programs:,} programs with {steps:,} environment steps each, {programs * steps:,} in all"


def _total(
    config: Config,
    prompts: dict[str, PromptSize],
    phases: Sequence[Phase],
    opinions: Sequence[str],
    answer: int,
    *,
    most: bool,
) -> Total:
    """Calls, tokens and cost of a run with these phases.

    Args:
        config: the configuration of the run.
        prompts: sizes of prompts, by operator.
        phases: forecast of the run's requests, for example 20 with "initialise", then 300 with "mutate".
        opinions: operators of follow-up calls that return a text instead of a program. For each program, there is one
            call per operator.
        answer: number of tokens in one answer.
        most: whether to assume the longest prompts, the largest number of repairs of every program, and no synthesised
            programs.
    """
    samples, left = config.search.samples or 1, config.stop.max_calls or math.inf
    asked = []
    for phase in phases:
        asked.append(replace(phase, programs=int(min(phase.programs, left))))
        left -= asked[-1].programs
    total = sum(each.programs for each in asked)
    given = len(programs_of(config.proposer.start_from, method_of(config).width(config)))
    given += 0 if most else config.proposer.seed_synthesis
    # Programs from `start_from` and from the synthesiser answer requests that name no parent (see `Seeded`). These
    # requests need no calls of the model.
    for place, phase in reversed([*enumerate(asked)]):
        if phase.operator in (FIRST, "plan"):
            asked[place] = replace(phase, programs=max(phase.programs - given, 0))
            given = max(given - phase.programs, 0)
    calls: Counter[str] = Counter()
    for phase in asked:
        whole, part = divmod(phase.programs, phase.together)
        calls[phase.operator] += whole * math.ceil(phase.together / samples) + math.ceil(part / samples)
    written = sum(each.programs for each in asked)
    sent_back = config.model.repairs if config.model.repair else 0
    # Given programs get opinions, too, and repairs if they fail.
    calls["repair"] = repairs = sent_back * total if most else round(REPAIRS * written) if sent_back else 0
    calls.update(dict.fromkeys(opinions, total))
    tokens_in = sum(count * _of(prompts, name, most=most) for name, count in calls.items() if count)
    tokens_out = (written + repairs) * answer + total * len(opinions) * (answer if most else min(OPINION, answer))
    prices = Prices(config.model.price_in, config.model.price_out)
    return Total(total, calls.total(), repairs, tokens_in, tokens_out, prices.cost(tokens_in, tokens_out))


def _of(prompts: dict[str, PromptSize], name: str, *, most: bool) -> int:
    return prompts[name].most if most else prompts[name].typical


def _caps(stop: StopConfig, typical: Total, most: Total, searches: int) -> tuple[Cap, ...]:
    """The limits of a run. Those of tokens and cost count all searches of an expansion."""
    rows = (
        ("max-calls", stop.max_calls, typical.programs, most.programs),
        ("max-tokens", stop.max_tokens, typical.tokens, searches * most.tokens),
        ("max-cost", stop.max_cost, typical.cost, searches * most.cost),
    )
    return tuple(Cap(name, limit, usual, high) for name, limit, usual, high in rows if limit is not None)


def _assumptions(config: Config, course: Course) -> tuple[str, ...]:
    accurate = is_read("stop.target_accuracy", config.method, task_named(config))
    sooner = "a run that reaches its target accuracy ends sooner; one that keeps improving ends later"
    lines = [
        f"typical: {course.typically}; answers of {min(ANSWER, config.model.answer_tokens)} tokens",
        sooner if accurate else "only a stop rule, such as max-calls, ends a run before its last program",
        f"at most: {course.at_most}, every prompt and every answer as long as allowed",
        "the prompt of a call counts once; a server that gives one answer at a time counts the prompt for each answer",
    ]
    if config.model.repair:
        lines[0] += f", one program in {1 / REPAIRS:g} sent back once"
        often = "once" if config.model.repairs == 1 else f"{config.model.repairs} times"
        lines[2] += f", every program sent back {often}"
    if config.stop.max_calls is not None:
        lines.append(f"max-calls ends either run after {config.stop.max_calls} programs")
    rounds = [[each for each in phases if each.operator != FIRST] for phases in (course.typical, course.most)]
    if config.stop.plateau is not None and rounds[0] == rounds[1]:
        lines.append(f"plateau may end either run sooner: {config.stop.plateau} generations without improvement")
    return tuple(lines)


def _size(prompt: Prompt) -> int:
    return estimate(prompt.system) + estimate(prompt.user)


def _mean(prompts: Sequence[Prompt]) -> int:
    return round(sum(map(_size, prompts)) / len(prompts))
