"""The configuration of a run: frozen, complete, written beside the run as `config.toml`."""

from __future__ import annotations

import json
import reprlib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from grace_irl.errors import InputError
from grace_irl.toml import read_toml

MOST_STEPS = 10**12  # environment steps of a training: what lies beyond is a slip


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DataConfig(_Section):
    """What is fitted.

    Attributes:
        demos: files, folders and Minari ids, roles from the files.
        negatives: more of them, all negative.
        label: which expert states are positive; "" takes the rule that fits the data (`demos.label_rule`).
        goals: a file of goal states, for the label "goal"; "" takes the data's own marks, and a model is asked for
            what nobody marked.
        held_out: share of trajectories held out, per task and role; 0 holds out none.
        field_names: who writes programs reads the names of a vector's fields; else they are x0, x1, … to it, so that it
            cannot know them by heart.
    """

    demos: tuple[str, ...] = ()
    negatives: tuple[str, ...] = ()
    label: Literal["", "all", "last", "goal"] = ""
    goals: str = ""
    held_out: float = Field(default=0.25, ge=0, lt=1)
    field_names: bool = True


class SearchConfig(_Section):
    """GRACE's table 6, and how far asking may run ahead of telling.

    Attributes:
        population: programs kept.
        elite: of those, how many always survive; half of the population at most.
        generations: rounds of mutation after the first population.
        include_expert: chance that a mutation is shown an expert trajectory.
        incorrect_only: chance that it is shown incorrect states only.
        expert_only: chance that it is shown expert states only.
        parent_temperature: T of exp(f / T), with which parents are drawn: 1 is the paper's; near 0 the best program
            alone is mutated.
        steady: never wait for a generation to be told (results enter the population one by one).
        samples: programs asked for in one call of a model (the server's `n`). None: 4 with a served model, else 1.
        reshape: after the search so many versions of the best program are asked for whose reward rises more steadily
            along expert trajectories; kept only where accuracy does not fall.
        lag: request i is asked only when result i - lag has been told: requests in flight at most. None: 8, or
            with a served model four times the programs that it writes at once, so that one slow answer leaves no gap.
    """

    population: int = Field(default=20, ge=1)
    elite: int = Field(default=4, ge=0)
    generations: int = Field(default=100, ge=0)
    include_expert: float = Field(default=0.25, ge=0, le=1)
    incorrect_only: float = Field(default=0.5, ge=0, le=1)
    expert_only: float = Field(default=0.75, ge=0, le=1)
    parent_temperature: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    steady: bool = False
    reshape: int = Field(default=0, ge=0)
    samples: int | None = Field(default=None, ge=1)
    lag: int | None = Field(default=None, ge=1)


class FitnessConfig(_Section):
    """The discriminator (docs/fitness.md).

    Attributes:
        log_pi: "constant", "uniform", "recorded" or "cloned".
        calibrate: fit a scale and an offset.
    """

    log_pi: Literal["constant", "uniform", "recorded", "cloned"] = "constant"
    calibrate: bool = True


class StopConfig(_Section):
    """When a run ends, besides its generations; None: never for that reason.

    Attributes:
        max_calls: proposals asked for.
        max_seconds: wall seconds of search, over all sittings.
        max_tokens: tokens in and out.
        max_cost: what the model's tokens cost, by `model.price_in` and `model.price_out`.
        target_accuracy: train accuracy at which to stop, once expert and negative states are also separated
            (at 1.0).
        plateau: generations without improvement.
    """

    max_calls: int | None = Field(default=None, ge=1)
    max_seconds: float | None = Field(default=None, gt=0)
    max_tokens: int | None = Field(default=None, ge=1)
    max_cost: float | None = Field(default=None, gt=0)
    target_accuracy: float | None = Field(default=1.0, ge=0.5, le=1)
    plateau: int | None = Field(default=15, ge=1)


class ProposerConfig(_Section):
    """Who writes the programs.

    Attributes:
        name: a registered proposer; "" is "llm" where `model.url` is given, else "synthesis".
        seed_synthesis: so many of the first programs come from the synthesiser, whoever writes the others.
        start_from: reward files and folders of runs whose programs are tried first, whoever writes the others.
        recording: for "replay": the folder of a run, or a recording exported from one.
    """

    name: str = ""
    seed_synthesis: int = Field(default=0, ge=0)
    start_from: tuple[str, ...] = ()
    recording: str = ""


class ModelConfig(_Section):
    """The model that writes programs, and how it is asked (docs/models.md).

    Attributes:
        url: of an OpenAI-compatible server.
        name: as the server names the model; "" takes the only one that it serves.
        temperature: of sampling.
        answer_tokens: most tokens of one answer.
        concurrency: most calls in flight.
        answer_format: "code", "json", or "auto": found out once, when the run begins.
        repair: a program that fails is sent back once with what went wrong.
        patience: seconds to wait for a server that went away, before the run stops.
        timeout: seconds of one call.
        prompt_tokens: most tokens of a prompt; less where the server tells of a smaller context.
        prompt_scale: share of what a prompt would have otherwise; 0.25 asks for prompts of a quarter of the tokens.
        context: a file of text that goes into every prompt: what the user knows and the data do not say.
        images: pictures of states go with prompts, for a model that sees.
        price_in, price_out: of a million tokens, in any currency; 0 counts no cost.
    """

    url: str = ""
    name: str = ""
    temperature: float = Field(default=0.8, ge=0, le=10)
    answer_tokens: int = Field(default=4096, ge=1)
    concurrency: int = Field(default=32, ge=1, le=1000)
    answer_format: Literal["auto", "code", "json"] = "auto"
    repair: bool = True
    patience: float = Field(default=600.0, ge=0)
    timeout: float = Field(default=600.0, gt=0)
    prompt_tokens: int = Field(default=24_000, ge=500)
    prompt_scale: float = Field(default=1.0, gt=0, le=1)
    context: str = ""
    images: bool = False
    price_in: float = Field(default=0.0, ge=0)
    price_out: float = Field(default=0.0, ge=0)


class ExpandConfig(_Section):
    """Whether a policy that is trained on the reward gives new negatives, round after round (docs/expansion.md).

    Attributes:
        rounds: M; 0: the search ends with the demonstrations.
        env: a Gymnasium id, or package.module:make; "" takes the demonstrations' own.
        steps: N, environment steps of all rounds together.
        growth: how many times the steps of the round before it each round takes; 1: all as many (GRACE's N / M).
            Above 1, holes in the reward are found early, and most steps are left for learning from what was mended.
        episodes: rollouts that each round adds at most.
        enough: the reward stays as it is where its accuracy on a round's new negatives is at least this, and its
            discriminator gives the right answer such a chance: a fitness of at least 2 log `enough`. For what a
            threshold separates, but the discriminator is unsure of, a policy is still paid.
        alike: a rollout whose states a classifier tells from the expert's with at most this chance is not called
            negative (0.5: not at all).
        form: in which the policy gets the reward: "raw", "logit" of the discriminator, its "probability", or that made
            "soft" (`grace_irl.rewards.scale`). "auto" is "soft" where all expert states are positive: it is above 0
            everywhere, so that ending an episode early, which experts do not, never pays. Where only goal states are,
            it is "raw", or for a reshaped reward "progress": paid is how far the reward has risen since the state
            before (`grace_irl.rewards.scale`).
        reshape: versions of the best program that are asked for where learning stalls on a reward that tells rollouts
            from experts; the next round trains a new policy on the one that rises most steadily. 0: none. Only where
            the rule is "last" or "goal".
        carry: whether a policy goes on with the next round's reward where that is another one: of the rounds' policies
            the one that it likes best (`grace_irl.runs.expand.round`). "auto": where actions are continuous; a
            policy of discrete actions is sure of itself by then, and explores no more.
        trust: the reward runs in this process, and not in the sandbox, while a policy is trained on it.
    """

    rounds: int = Field(default=0, ge=0, le=10_000)
    env: str = ""
    steps: int = Field(default=100_000, ge=1, le=MOST_STEPS)
    growth: float = Field(default=1.0, ge=1, le=10)
    episodes: int = Field(default=20, ge=1)
    enough: float = Field(default=0.99, gt=0.5, le=1)
    alike: float = Field(default=0.6, ge=0.5, le=1)
    form: Literal["auto", "raw", "logit", "probability", "soft", "progress"] = "auto"
    reshape: int = Field(default=3, ge=0)
    carry: Literal["auto", "always", "never"] = "auto"
    trust: bool = False


class SandboxConfig(_Section):
    """Where programs run.

    Attributes:
        workers: runs at once; None: one per core.
        allow_weak: run even where this machine cannot confine programs.
        wall_s, cpu_s: seconds one run may take, besides 5 ms and 1 ms per state.
        memory_mb: memory one run may take beyond the worker's own, MiB.
    """

    workers: int | None = Field(default=None, ge=1)
    allow_weak: bool = False
    wall_s: float = Field(default=10.0, gt=0)
    cpu_s: float = Field(default=10.0, gt=0)
    memory_mb: int = Field(default=512, ge=1)


class Config(_Section):
    """A whole run.

    Attributes:
        method: a preset of `grace_irl.methods`.
        seed: of everything random: split, search, proposer.
    """

    method: str = "grace"
    seed: int = Field(default=0, ge=0)
    data: DataConfig = DataConfig()
    search: SearchConfig = SearchConfig()
    fitness: FitnessConfig = FitnessConfig()
    stop: StopConfig = StopConfig()
    proposer: ProposerConfig = ProposerConfig()
    model: ModelConfig = ModelConfig()
    expand: ExpandConfig = ExpandConfig()
    sandbox: SandboxConfig = SandboxConfig()


def resolve(
    file: Path | None = None,
    sets: Iterable[str] = (),
    flags: Mapping[str, object] | None = None,
    base: Config | None = None,
) -> Config:
    """Defaults, or `base`, overridden by a TOML file, then by `a.b=value` settings, then by flags.

    Args:
        file: a TOML file of the shape of `config.toml`.
        sets: `section.key=value`, the value as in TOML; what is no TOML value is taken as text; "none"
            unsets.
        flags: from `section.key` to a value; None means that the flag was not given.

    Raises:
        InputError: an unknown key, a value that does not fit, a file that cannot be read.
    """
    tree: dict[str, Any] = {} if base is None else base.model_dump()
    if file is not None:
        _merge(tree, read_toml(file, "a TOML file of settings, such as a run's config.toml"))
    for text in sets:
        key, found, value = text.partition("=")
        if not found:
            raise InputError(f"--set {text!r}: no '='; expected section.key=value, such as search.population=40")
        _put(tree, key.strip(), parsed(value.strip()))
    for key, flag in (flags or {}).items():
        if flag is not None:
            _put(tree, key, flag)
    try:
        return Config.model_validate(tree)
    except ValidationError as error:
        raise InputError(_said(error)) from None


def flat(config: Config) -> dict[str, object]:
    """Every setting by its name, `section.key`."""
    found: dict[str, object] = {}
    for key, value in config.model_dump().items():
        found |= {f"{key}.{name}": entry for name, entry in value.items()} if isinstance(value, dict) else {key: value}
    return found


def with_settings(config: Config, changes: Mapping[str, object]) -> Config:
    """The configuration with other values, by `section.key`."""
    tree = config.model_dump()
    for key, value in changes.items():
        _put(tree, key, value)
    return Config.model_validate(tree) if changes else config


def to_toml(config: BaseModel) -> str:
    """Settings as TOML, which has no null: what is None is written as "none"."""
    top, tables = [], []
    for key, value in config.model_dump().items():
        if isinstance(value, dict):
            tables.append(f"\n[{key}]")
            tables += [_line(name, entry) for name, entry in value.items()]
        else:
            top.append(_line(key, value))
    return "\n".join([*top, *tables]) + "\n"


def _line(key: str, value: object) -> str:
    if value is None:
        return f'{key} = "none"'
    return f"{key} = {_literal(value)}"


def _literal(value: object) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_literal(entry) for entry in value) + "]"
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for DEL, which TOML wants escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def _merge(tree: dict[str, Any], other: Mapping[str, Any]) -> None:
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(tree.setdefault(key, {}), dict):
            _merge(tree[key], value)
        else:
            tree[key] = None if value == "none" else value


def _put(tree: dict[str, Any], key: str, value: object) -> None:
    *sections, name = key.split(".")
    for section in sections:
        tree = tree.setdefault(section, {})
        if not isinstance(tree, dict):
            raise InputError(f"setting {key!r}: {section!r} is not a section; expected section.key")
    tree[name] = value


def parsed(text: str) -> object:
    """A value as in TOML; what is none is taken as text, and "none" as None."""
    if text.lower() == "none":
        return None
    try:
        return tomllib.loads(f"v = {text}")["v"]
    except (ValueError, RecursionError):  # besides what is no TOML, a number of more digits than Python takes
        return text


def _said(error: ValidationError) -> str:
    """The first problem, in one line."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])[:120] or "configuration"
    if first["type"] == "extra_forbidden":
        return f"setting {key!r} is unknown; expected one of {', '.join(_known(str(first['loc'][0])))}"
    return f"setting {key!r} is {reprlib.repr(first['input'])}; expected another value: {first['msg'][:200]}"


def _known(section: str) -> list[str]:
    """The settings of a section; where there is no such section, all sections."""
    values = Config().model_dump()
    own = values.get(section)
    return [f"{section}.{key}" for key in own] if isinstance(own, dict) else list(values)
