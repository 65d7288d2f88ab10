"""Construction of a run's proposer from the configuration.

A proposer is a source of programs, for example the synthesiser or a served language model. If the user gives programs
to the run, the proposer of the run brings these first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from grace_irl.config import Config, ModelConfig, ProposerConfig
from grace_irl.demos.labels import Problem
from grace_irl.errors import InputError
from grace_irl.methods.registry import method_of, task_named
from grace_irl.propose.briefing import PromptBudget
from grace_irl.propose.client import ChatClient, ChatSettings
from grace_irl.propose.client.settings import key_variable, origin
from grace_irl.propose.given import Given, GivenProgram, InThread, Replay, Seeded
from grace_irl.propose.goals import GoalAnswer
from grace_irl.propose.llm import Asking, LlmProposer
from grace_irl.propose.manual import Manual
from grace_irl.propose.material import Workbench
from grace_irl.propose.pictures import require_pictures
from grace_irl.propose.prompter import PromptSettings
from grace_irl.propose.protocol import Chat, Proposer
from grace_irl.runs.config import is_read
from grace_irl.runs.effects import author_of
from grace_irl.runs.folder import RunPaths
from grace_irl.runs.loop import run_to_end
from grace_irl.runs.recording import opened_recording

VALIDATION = 0.25  # default share of training trajectories for validation, if the proposer has a chat (`Kind.chat`)
SERVED_SAMPLES = 4  # default number of programs that one call of a served model requests
# LAG is the default number of requests in flight, for example for the synthesiser and for replays. For a served model,
# the default is CALLS_AHEAD * (parallel calls) * (programs per call), so that the server is never idle. For a person,
# it is the number of first requests (`Method.width`), and for others at most this number if the search does not wait
# (`Method.waits`).
LAG, CALLS_AHEAD = 8, 4

Note = Callable[[str], None]  # callback that shows the user one line


@dataclass(frozen=True)
class Kind:
    """A kind of proposer, selected by name in a configuration.

    Attributes:
        summary: one line for the help text.
        check: function that checks, before a run writes any file, that the proposer can work with its server, its file
            or the data. It returns the configuration with the values that the check found, for example the model's
            name, or raises InputError. Its last argument is a callback that shows the user one line.
        make: function that makes the proposer.
        chat: function that makes the chat: the model or the person that answers prompts. None for a proposer without
            prompts.
    """

    summary: str
    check: Callable[[Config, Problem, Note], Config]
    make: Callable[[Config, Workbench], Proposer]
    chat: Callable[[Config, Workbench], Chat] | None = None


def _can_synthesise(config: Config, problem: Problem) -> Config:
    if method_of(config).writer is not None:
        _synthesis(config, problem)
        return config
    from grace_irl.synthesis.reshaper import why_not
    from grace_irl.synthesis.synthesiser import require_words

    require_words(problem)
    kind, course = why_not(problem), method_of(config).course(config)
    versions = [each.programs for each in course.most if each.operator == "reshape"] if course else []
    if versions and kind:
        raise InputError(
            f"--reshape {versions[0]} with proposer 'synthesis', which cannot reshape rewards for {kind}; "
            "expected a model: give --llm-url or --proposer manual, or leave --reshape out"
        )
    _synthesis(config, problem)
    return config


def _synthesis(config: Config, problem: Problem, first: int = 0) -> Proposer:
    """The synthesiser, or the method's own writer.

    Others answer the requests with an index below `first`. The writers of methods do not count requests.
    """
    own = method_of(config).writer
    if own is not None:
        return own(problem, config)
    from grace_irl.synthesis import Synthesiser

    return InThread(Synthesiser(problem, config.seed, first))


def _can_draft(config: Config, problem: Problem) -> Config:
    _drafts(config, problem)
    return config


def _drafts(config: Config, problem: Problem) -> Proposer:
    from grace_irl.synthesis.drafts import drafter

    if not problem.items:
        raise InputError("--proposer drafts without demonstrations; expected --demos PATH…")
    return InThread(drafter(problem, config.seed))


def _has_server(config: Config, problem: Problem, note: Note) -> Config:
    """Ask the server for its model and for an answer format that works. Return the configuration with both."""
    model = config.model
    if not model.url:
        raise InputError(
            "proposer 'llm' without a server; expected --llm-url, such as http://127.0.0.1:8000, or OPENAI_BASE_URL"
        )
    _can_prompt(config, problem)

    async def found() -> Config:
        async with ChatClient(chat_settings(model), note) as client:
            name, form = await client.check()
        return config.model_copy(update={"model": model.model_copy(update={"name": name, "answer_format": form})})

    return run_to_end(found())


def _served(config: Config, bench: Workbench) -> Chat:
    return ChatClient(chat_settings(config.model), bench.note, limit=bench.limit)


def _llm(config: Config, bench: Workbench) -> Proposer:
    return LlmProposer(_served(config, bench), bench, prompt_settings(config))


def chat_settings(model: ModelConfig) -> ChatSettings:
    """The model's settings in the form that the chat client takes."""
    return ChatSettings(
        url=model.url,
        model=model.name,
        temperature=model.temperature,
        max_tokens=model.answer_tokens,
        concurrency=model.concurrency,
        patience=model.patience,
        timeout=model.timeout,
        answer_format=model.answer_format,
    )


def prompt_settings(config: Config) -> PromptSettings:
    """Settings of prompts: token budget, the user's context, pictures and operators.

    Raises:
        InputError: the file of --context cannot be read.
    """
    model, context = config.model, ""
    if model.context:
        try:
            context = Path(model.context).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            said = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise InputError(f"{model.context}: {said}; expected a text file for --context") from None
    budget = PromptBudget(total=model.prompt_tokens, scale=model.prompt_scale)
    return PromptSettings(budget, context, model.images, method_of(config).operators(config), config.stop.max_calls)


def _can_prompt(config: Config, problem: Problem) -> Config:
    if config.model.images:
        require_pictures(problem)
    prompt_settings(config)
    return config


def _by_hand(config: Config, bench: Workbench) -> Chat:
    form = "code" if config.model.answer_format == "auto" else config.model.answer_format
    return Manual(RunPaths(bench.folder).manual, bench.note, form)


def _manual(config: Config, bench: Workbench) -> Proposer:
    return LlmProposer(_by_hand(config, bench), bench, prompt_settings(config))


def _has_recording(config: Config) -> Config:
    if not config.proposer.recording:
        raise InputError("proposer 'replay' without a recording; expected --replay with a run or an exported recording")
    opened_recording(Path(config.proposer.recording)).close()
    return config


def _replay(config: Config, bench: Workbench) -> Proposer:
    del bench
    path = Path(config.proposer.recording)
    return Replay(opened_recording(path), str(path))


PROPOSERS: dict[str, Kind] = {
    "synthesis": Kind(
        "programs found in the data, without a model",
        lambda config, problem, _: _can_synthesise(config, problem),
        lambda config, bench: _synthesis(config, bench.problem),
    ),
    "drafts": Kind(
        "parts drawn without a look at labels, to compare searches",
        lambda config, problem, _: _can_draft(config, problem),
        lambda config, bench: _drafts(config, bench.problem),
    ),
    "llm": Kind("a model behind an OpenAI-compatible server (--llm-url)", _has_server, _llm, _served),
    "manual": Kind(
        "a person: prompt files out, answer files in",
        lambda config, problem, _: _can_prompt(config, problem),
        _manual,
        _by_hand,
    ),
    "replay": Kind("the answers of a recorded run (--replay)", lambda config, *_: _has_recording(config), _replay),
}


def checked(config: Config, problem: Problem, note: Note = lambda _: None) -> Config:
    """Check the proposer of a configuration. Return the configuration with values that the check found.

    Args:
        config: a configuration that `settled` returned.
        problem: the labelled demonstrations.
        note: callback that shows the user one line.

    Raises:
        InputError: an unknown proposer, or a proposer that lacks something, for example a server.
    """
    found, model, problem = kind(config.proposer.name), config.model, as_shown(config, problem)
    if found.chat is not None and config.stop.max_cost is not None and not (model.price_in or model.price_out):
        raise InputError(
            f"--max-cost {config.stop.max_cost:g} without prices: no cost would ever be counted; expected "
            "--set model.price_in=… or model.price_out=…, of a million tokens"
        )
    own = method_of(config).writer is not None
    seeded = config.proposer.seed_synthesis > 0 and config.proposer.name != "replay"
    if seeded and own:
        _synthesis(config, problem)
    elif seeded:
        from grace_irl.synthesis.synthesiser import require_words

        require_words(problem)
    if not problem.items and not own and (config.proposer.name == "synthesis" or config.proposer.seed_synthesis):
        raise InputError(
            "no demonstrations, in which the synthesiser finds its programs; expected --demos PATH…, or a model alone: "
            "--llm-url URL or --proposer manual"
        )
    return found.check(config, problem, note)


def as_shown(config: Config, problem: Problem) -> Problem:
    """The labelled demonstrations for the proposer, without field names if `data.field_names` is False.

    Raises:
        InputError: `data.field_names` is False, but programs need the names of the states' parts.
    """
    if config.data.field_names:
        return problem
    if problem.metadata.state_kind.has_parts:
        raise InputError(
            f"--no-field-names: {problem.metadata.state_kind.plural} are dicts, and programs need the names of their "
            "parts; expected vectors: scramble the demonstrations instead (grace-irl demos scramble)"
        )
    return replace(problem, metadata=replace(problem.metadata, fields=()))


def unread(config: Config, problem: Problem) -> str:
    """One line for the user about the parts of states that the proposer does not read; "" if it reads everything."""
    if kind(config.proposer.name).chat is not None or method_of(config).writer is not None:
        return ""
    from grace_irl.synthesis.synthesiser import unread as unread_by_synthesiser

    return unread_by_synthesiser(problem)


def recorded_goals(proposer: ProposerConfig) -> tuple[GoalAnswer, ...]:
    """Answers about goal states from the recording that the run replays; () without a replay."""
    if proposer.name != "replay" or not proposer.recording:
        return ()
    with closing(opened_recording(Path(proposer.recording))) as recording:
        return tuple(recording.goals())


def asking(config: Config, bench: Workbench) -> Asking | None:
    """The chat of the configured proposer, with the run's data and the settings of prompts; None without a chat.

    Args:
        config: a configuration that `checked` returned.
        bench: the run's data, sandbox and cache of rewards.
    """
    chat = kind(config.proposer.name).chat
    return None if chat is None else Asking(chat(config, bench), bench, prompt_settings(config))


def proposer(
    config: Config, bench: Workbench, given: Sequence[GivenProgram], brought: Proposer | None = None
) -> Proposer:
    """The proposer of a run: the configured proposer, or `brought`.

    Before the programs of this proposer, the run gets the `given` programs, then `proposer.seed_synthesis` synthesised
    programs. A replay adds no such programs, because its recording already includes them.

    Args:
        config: a configuration that `checked` returned.
        bench: the run's data, sandbox and cache of rewards.
        given: the programs with which the run begins (`beginnings.given_of`).
        brought: the caller's own proposer, or None. With such a proposer, the run gets no synthesised programs.
    """
    name, first = config.proposer.name, len(given)
    if brought is None and name == "synthesis":
        made = _synthesis(config, bench.problem, first)
    else:
        made = brought or kind(name).make(config, bench)
    if name == "replay":
        return made
    count = config.proposer.seed_synthesis
    if count and brought is None and name != "synthesis":
        made = Seeded(_synthesis(config, bench.problem, first), made, first + count)
    return Seeded(Given(given), made, first) if given else made


def kind(name: str) -> Kind:
    """The kind of proposer with this name.

    Raises:
        InputError: an unknown name.
    """
    if name not in PROPOSERS:
        raise InputError(f"proposer {name!r} is unknown; expected one of {', '.join(sorted(PROPOSERS))}")
    return PROPOSERS[name]


def destination(config: Config) -> str:
    """One line for the user: the server that gets the prompts, and the environment variable with its key.

    The result is "" if no server gets prompts.
    """
    if config.proposer.name != "llm" or not config.model.url:
        return ""
    variable = key_variable()
    key = f"with the key in {variable}" if variable else "without a key"
    return f"prompts go to {origin(config.model.url)}, {key}"


def settled(config: Config) -> Config:
    """The configuration with defaults for `proposer.name`, `search.samples`, `search.lag` and `data.validation`.

    Values that the user gave stay unchanged, with one exception: `search.samples` becomes None if the method does not
    read it. `search.samples` is the number of programs per call, and `search.lag` the number of requests in flight.
    `data.validation` becomes `VALIDATION` if the proposer has a chat (`Kind.chat`), else 0. If the method needs no
    demonstrations, `data.validation` stays None.
    """
    data, proposer, search, model = config.data, config.proposer, config.search, config.model
    name = author_of(config)
    found = PROPOSERS.get(name)  # None for a caller's own proposer
    validation = data.validation
    if validation is None and method_of(config).needs.demonstrations:
        validation = VALIDATION if found is not None and found.chat is not None else 0.0
    several = is_read("search.samples", config.method, task_named(config))
    samples = (search.samples or (SERVED_SAMPLES if name == "llm" else 1)) if several else None
    method = method_of(config)
    width, served = method.width(config), CALLS_AHEAD * model.concurrency * (samples or 1)
    ahead = width if name == "manual" else served if name == "llm" else LAG
    lag = search.lag or (ahead if method.waits(config) else min(ahead, width))
    return config.model_copy(
        update={
            "data": data.model_copy(update={"validation": validation}),
            "proposer": proposer.model_copy(update={"name": name}),
            "search": search.model_copy(update={"samples": samples, "lag": lag}),
        }
    )
