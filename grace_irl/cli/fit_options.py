"""The options of `grace-irl fit`, one type each: flag, help, default, mirror in the environment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from grace_irl.runs.config import Config

DATA, SEARCH, MODEL, EXPANSION, STOP, RUN = "Data", "Search", "Model", "Expansion", "Stop rules", "Run"
DEFAULTS = Config()
_SEARCH, _MODEL, _STOP = DEFAULTS.search, DEFAULTS.model, DEFAULTS.stop


def _option(name: str, help: str, default: object, panel: str, metavar: str | None = None) -> Any:
    """An option whose default shows in help, and lives in `Config`: None means that it was not given."""
    shown = "none" if default is None else str(default)
    return typer.Option(
        f"--{name}", help=help, show_default=shown, envvar=_mirror(name), rich_help_panel=panel, metavar=metavar
    )


def _switch(name: str, help: str, default: bool, panel: str) -> Any:
    return typer.Option(
        f"--{name}/--no-{name}",
        help=help,
        show_default=name if default else f"no-{name}",
        envvar=_mirror(name),
        rich_help_panel=panel,
    )


def mirrored(name: str, value: object) -> bool:
    """Whether a value is only that of the option's variable: it is meant for other commands, too."""
    return value is not None and os.environ.get(_mirror(name)) == str(value)


def _mirror(name: str) -> str:
    return f"GRACE_IRL_{name.upper().replace('-', '_')}"


Demos = Annotated[
    list[str] | None,
    typer.Option(
        "--demos",
        metavar="PATH…",
        help="Files, folders or Minari ids, roles from the files; repeatable. "
        "Example: --demos datasets/babyai-go-to-obj",
        rich_help_panel=DATA,
    ),
]
Negatives = Annotated[
    list[str] | None,
    typer.Option(
        "--negatives",
        metavar="PATH…",
        help="More of them, negative whatever they say; repeatable.",
        rich_help_panel=DATA,
    ),
]
Label = Annotated[
    str | None, _option("label", "Positive expert states: all, last, goal.", "by the data, else all", DATA)
]
Goals = Annotated[
    str | None,
    _option(
        "goals",
        "Goal states for --label goal, by hand or from a run's goals.toml; a model is asked for what it leaves out.",
        "the data's marks, else a model is asked",
        DATA,
        "FILE",
    ),
]
HeldOut = Annotated[
    float | None,
    _option("held-out", "Share of trajectories held out, 0 to 1; 0: none.", DEFAULTS.data.held_out, DATA),
]
FieldNames = Annotated[
    bool | None,
    _switch(
        "field-names",
        "Whether who writes programs reads the names of a vector's fields; a model may know them by heart.",
        DEFAULTS.data.field_names,
        DATA,
    ),
]

Proposer = Annotated[
    str | None,
    _option(
        "proposer",
        "Who writes programs: synthesis (no model), llm (--llm-url), manual (prompt files for a person).",
        "llm with --llm-url, else synthesis",
        SEARCH,
    ),
]
Method = Annotated[str | None, _option("method", "Preset.", DEFAULTS.method, SEARCH)]
Population = Annotated[int | None, _option("population", "Programs kept.", _SEARCH.population, SEARCH)]
Elite = Annotated[int | None, _option("elite", "Best programs that always survive.", _SEARCH.elite, SEARCH)]
Generations = Annotated[int | None, _option("generations", "Rounds of mutation at most.", _SEARCH.generations, SEARCH)]
Reshape = Annotated[
    int | None,
    _option(
        "reshape",
        "After the search, versions asked for of the best program that rise steadily along expert trajectories; "
        "kept only where accuracy does not fall.",
        _SEARCH.reshape,
        SEARCH,
    ),
]
ParentTemperature = Annotated[
    float | None,
    _option(
        "parent-temperature",
        "T of exp(fitness / T), by which parents are drawn; 1 is the paper's, near 0 mutates the best alone.",
        _SEARCH.parent_temperature,
        SEARCH,
    ),
]
Steady = Annotated[
    bool | None,
    _switch("steady", "Let results enter the population one by one: keeps a server busy.", _SEARCH.steady, SEARCH),
]
SeedSynthesis = Annotated[
    int | None,
    _option(
        "seed-synthesis",
        "So many of the first programs come from the synthesiser.",
        DEFAULTS.proposer.seed_synthesis,
        SEARCH,
    ),
]
StartFrom = Annotated[
    list[str] | None,
    typer.Option(
        "--start-from",
        metavar="PATH…",
        help="Reward files, or folders of runs (their best programs), that are tried first; repeatable.",
        rich_help_panel=SEARCH,
    ),
]
LogPi = Annotated[
    str | None,
    _option("log-pi", "pi in the discriminator: constant, uniform, recorded, cloned.", DEFAULTS.fitness.log_pi, SEARCH),
]
Calibrate = Annotated[
    bool | None,
    _switch(
        "calibrate",
        "Fit a scale and an offset to the reward, or take it as it comes.",
        DEFAULTS.fitness.calibrate,
        SEARCH,
    ),
]

Expand = Annotated[
    int | None,
    _option(
        "expand",
        "Rounds in which PPO learns from the reward, its rollouts become negatives, and the search goes on.",
        DEFAULTS.expand.rounds,
        EXPANSION,
    ),
]
Env = Annotated[
    str | None, _option("env", "Where PPO learns: a Gymnasium id.", "the demonstrations' own", EXPANSION, "ID")
]
EnvSteps = Annotated[
    int | None, _option("env-steps", "Environment steps of all rounds together.", DEFAULTS.expand.steps, EXPANSION)
]
Rollouts = Annotated[
    int | None, _option("rollouts", "Episodes that a round adds at most.", DEFAULTS.expand.episodes, EXPANSION)
]
OnlineReshape = Annotated[
    int | None,
    _option(
        "online-reshape",
        "Where learning stalls, versions asked for of the reward that rise steadily towards the goal; the next round "
        "learns from the best of them. 0: none.",
        DEFAULTS.expand.reshape,
        EXPANSION,
    ),
]
TrustReward = Annotated[
    bool | None,
    _switch(
        "trust-reward",
        "Run the reward in this process while PPO learns, not in the sandbox: faster.",
        DEFAULTS.expand.trust,
        EXPANSION,
    ),
]

LlmUrl = Annotated[
    str | None,
    _option(
        "llm-url",
        "An OpenAI-compatible server; its key, if it wants one, comes from GRACE_IRL_API_KEY or OPENAI_API_KEY. "
        "Example: --llm-url http://127.0.0.1:8000",
        None,
        MODEL,
        "URL",
    ),
]
Model = Annotated[
    str | None, _option("model", "The model, as the server names it.", "the one that it serves", MODEL, "NAME")
]
Temperature = Annotated[float | None, _option("temperature", "Of sampling.", _MODEL.temperature, MODEL)]
AnswerTokens = Annotated[
    int | None, _option("answer-tokens", "Most tokens of one answer.", _MODEL.answer_tokens, MODEL)
]
Concurrency = Annotated[int | None, _option("concurrency", "Most calls in flight.", _MODEL.concurrency, MODEL)]
SamplesPerCall = Annotated[
    int | None,
    _option("samples-per-call", "Programs asked for in one call (the server's n).", "4 with a server, else 1", MODEL),
]
AnswerFormat = Annotated[
    str | None,
    _option("answer-format", "code, json, or auto: found out once per run.", _MODEL.answer_format, MODEL),
]
Repair = Annotated[
    bool | None, _switch("repair", "Send a program that fails back once, with its traceback.", _MODEL.repair, MODEL)
]
LlmPatience = Annotated[
    float | None,
    _option("llm-patience", "Seconds to wait for a server that went away.", _MODEL.patience, MODEL),
]
Context = Annotated[
    str | None,
    _option("context", "A text file for every prompt: what you know and the data do not say.", None, MODEL, "FILE"),
]
Images = Annotated[
    bool | None,
    _switch("images", "Send pictures of grids and screens as well, to a model that sees.", _MODEL.images, MODEL),
]

MaxSeconds = Annotated[
    float | None, _option("max-seconds", "Wall seconds of search, over all sittings.", _STOP.max_seconds, STOP)
]
MaxCalls = Annotated[int | None, _option("max-calls", "Programs asked for.", _STOP.max_calls, STOP)]
MaxTokens = Annotated[
    int | None, _option("max-tokens", "Tokens in and out, in all (of one answer: --answer-tokens).", None, STOP)
]
MaxCost = Annotated[
    float | None,
    _option("max-cost", "Cost of the tokens, by model.price_in and model.price_out (per million).", None, STOP),
]
TargetAccuracy = Annotated[
    float | None,
    _option("target-accuracy", "Train accuracy at which to stop, 0.5 to 1.", _STOP.target_accuracy, STOP),
]
Plateau = Annotated[int | None, _option("plateau", "Generations without improvement.", _STOP.plateau, STOP)]

Workers = Annotated[int | None, _option("workers", "Sandbox workers.", "one per core", RUN)]
AllowWeakSandbox = Annotated[
    bool | None,
    typer.Option(
        "--allow-weak-sandbox",
        help="Run programs even where this machine cannot confine them (see grace-irl doctor).",
        show_default="off",
        envvar=_mirror("allow-weak-sandbox"),
        rich_help_panel=RUN,
    ),
]
Seed = Annotated[int | None, _option("seed", "Seed of the split, the search and the proposer.", DEFAULTS.seed, RUN)]
Out = Annotated[Path | None, _option("out", "The run's folder, new.", "runs/<set>-<time>", RUN)]
Resume = Annotated[
    Path | None,
    typer.Option(
        "--resume", metavar="RUN", help="Go on with this run, in place of beginning a new one.", rich_help_panel=RUN
    ),
]
Replay = Annotated[
    Path | None,
    typer.Option(
        "--replay",
        metavar="RUN",
        help="A new run with the settings and the answers of this one (or of a recording made by export): no model.",
        rich_help_panel=RUN,
    ),
]
Estimate = Annotated[
    bool,
    typer.Option(
        "--estimate",
        help="Only say what such a run will ask of a model: calls, tokens, cost. Writes nothing; no model answers.",
        rich_help_panel=RUN,
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="A TOML file of settings, such as a run's config.toml. Precedence: file < --set < flags.",
        envvar=_mirror("config"),
        rich_help_panel=RUN,
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="SECTION.KEY=VALUE",
        help="One setting, such as search.lag=4; repeatable.",
        rich_help_panel=RUN,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object as the last line.", rich_help_panel=RUN)]
