"""Refusal of settings that the user gives although they have no effect in the run.

A setting may declare a need, for example "a model" (`grace_irl.settings.setting`). In a run that does not meet this
need, the setting has no effect. `NEEDS` lists all needs. A setting also has no effect if the run's method does not read
it (`Method.reads`).

The user gives settings by flags, environment variables, keywords, `--set`, or a settings file. A value in a file counts
as given only if it differs from the default, because a file that a run wrote contains every setting.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from grace_irl.config import Config
from grace_irl.errors import InputError
from grace_irl.methods.registry import task_named
from grace_irl.runs.config import flat, is_read, method_named, resolve
from grace_irl.settings import declared


@dataclass(frozen=True)
class Need:
    """A condition that a run must meet for a setting to have an effect.

    Attributes:
        met: function that returns whether the condition holds. Its arguments are a configuration and the author. The
            author is the name of the proposer, or "" for a proposer object of the caller.
        lacks: words for messages if the condition does not hold, such as "no model". They follow "this run has".
        expected: flags with which the user can meet the condition, for messages.
        by_author: whether the condition depends on the author.
    """

    met: Callable[[Config, str], bool]
    lacks: str
    expected: str
    by_author: bool = True


def author_of(config: Config) -> str:
    """The name of the proposer. By default it is "llm" if there is a server, else "synthesis"."""
    return config.proposer.name or ("llm" if config.model.url else "synthesis")


def require_alone(**others: object) -> None:
    """Refuse flags for new runs beside `--resume`, because the resumed run has its own values.

    Args:
        others: values of the other flags. None and False stand for a flag that is not given.

    Raises:
        InputError: a flag is given.
    """
    given = [f"--{name}" for name, value in others.items() if value is not None and value is not False]
    if given:
        raise InputError(f"--resume with {', '.join(given)}; expected one or the other: the run has its own")


def _asks_model(config: Config, author: str) -> bool:
    """Whether a model writes programs.

    An expansion consists of several searches. If the first search replays a recording, a model may write the programs
    of the later searches, because the recording has no answers for them.
    """
    return author == "llm" or (author == "replay" and config.expand.rounds > 0 and bool(config.model.url))


def _prompts(config: Config, author: str) -> bool:
    return _asks_model(config, author) or author not in ("", "synthesis", "drafts", "replay")


def _counts_tokens(_: Config, author: str) -> bool:
    return author not in ("synthesis", "drafts")  # an estimate counts tokens for a person (`manual`), too


def _priced(config: Config, author: str) -> bool:
    return _counts_tokens(config, author) and config.model.price_in + config.model.price_out > 0


MODEL = "--llm-url URL"
NEEDS = {
    "a model": Need(_asks_model, "no model", MODEL),
    "prompts": Need(_prompts, "no prompts", f"{MODEL} or --proposer manual"),
    "tokens": Need(_counts_tokens, "no model", MODEL),
    "prices": Need(_priced, "no model with a price", "a model and --price-in or --price-out"),
    "another author": Need(
        lambda _, author: author not in ("", "synthesis", "replay"),
        "no other author than the synthesiser",
        f"{MODEL} or --proposer manual",
    ),
    "new answers": Need(lambda _, author: author != "replay", "no new answers", "no --replay"),
    "replay": Need(lambda _, author: author == "replay", "no recording to replay", "--replay RUN"),
    "goals": Need(lambda config, _: config.data.label not in ("all", "last"), "no goal labels", "--label goal", False),
    "a task": Need(lambda config, _: bool(task_named(config)), "no task", "--task FILE", False),
    "no task": Need(
        lambda config, _: not task_named(config),
        "a task, so that trained policies judge programs",
        "no --task",
        False,
    ),
    "expansion": Need(lambda config, _: config.expand.rounds > 0, "no expansion", "--expand M", False),
}


SETTLED = ("search.samples", "data.validation")
"""Settings for which a run writes the value that it chose, so that a value in its file need not be the user's."""


def words(config: Config, file: Path | None, sets: Iterable[str], flags: Mapping[str, object] | None) -> dict[str, str]:
    """The settings that the user gives, by key. Each value names the flag, variable, `--set` key or file of origin.

    Two kinds of settings do not count as given: those without a value, as by `--set search.samples=none`, and those of
    `SETTLED` in a file of another method, if the method of this run does not read them.
    """
    known, now, found = declared(type(config)), flat(config), dict[str, str]()
    if file is not None:
        own = resolve(file)
        values = flat(own)
        found = {
            key: f"{key} in {file}" for key, each in known.items() if values.get(key, each.default) != each.default
        }
        for key in SETTLED if method_named(file) else ():
            if is_read(key, own.method, task_named(own)) and not is_read(key, config.method, task_named(config)):
                found.pop(key, None)
    found |= {key: f"--set {key}" for key in (text.partition("=")[0].strip() for text in sets)}
    for key, value in (flags or {}).items():
        if value is not None and key in known:
            variable = known[key].variable
            found[key] = variable if _holds(variable, value) else f"--{known[key].flag}"
    unset = {key for key, each in known.items() if now[key] is None and each.default is None}
    return {key: how for key, how in found.items() if key not in unset}


def _holds(variable: str, value: object) -> bool:
    """Whether an environment variable holds this value. If not, a flag gave the value."""
    if variable not in os.environ:
        return False
    text = os.path.expanduser(os.environ[variable])
    if isinstance(value, bool):
        return value == (text.lower() in _TRUE)
    if isinstance(value, int | float):
        with suppress(ValueError):
            return float(text) == value
        return False
    return text == " ".join(map(str, value if isinstance(value, tuple | list) else [value]))


_TRUE = ("1", "true", "t", "yes", "y", "on")


def changed(began: Config, config: Config, sets: Iterable[str], flags: Mapping[str, object] | None) -> dict[str, str]:
    """The result of `words`, but only for settings whose values differ from the values at the start of the run.

    So the user may repeat a value from the start of the run, even if the setting has no effect.

    Args:
        began: the configuration that the run began with.
        config: the configuration now.
        sets: texts of the form `section.key=value` (`--set`).
        flags: values by `section.key`; None for a flag that is not given.
    """
    before, now = flat(began), flat(config)
    return {key: how for key, how in words(config, None, sets, flags).items() if now.get(key) != before.get(key)}


def require_effect(config: Config, given: Mapping[str, str], author: str | None = None) -> None:
    """Refuse settings that have no effect in this run.

    Args:
        config: the configuration of the run.
        given: settings that the user gives, as `words` returns them.
        author: name of the proposer; "" for a proposer object of the caller; None for the result of `author_of`.

    Raises:
        InputError: a setting without effect. The message names all settings with the same need.
    """
    known, task = declared(type(config)), task_named(config)
    unread = {key: how for key, how in given.items() if not is_read(key, config.method, task)}
    if unread:
        other_form = bool(task) and all(is_read(key, config.method, "") for key in unread)
        with_what = "a task" if other_form else f"method {config.method!r}"
        raise InputError(
            f"{', '.join(unread.values())}: no effect with {with_what}; expected "
            f"{'no --task' if other_form else 'another --method'}, or "
            f"{'this setting' if len(unread) == 1 else 'these settings'} left out"
        )
    author = author_of(config) if author is None else author
    if config.proposer.recording and author != "replay" and "proposer.recording" not in given:
        raise InputError(
            f"--replay beside --proposer {author or 'of your own'}; expected one or the other: a replay takes the "
            "recorded answers"
        )
    needs = {key: known[key].needs.split(", ") for key in given if key in known}
    for name, need in NEEDS.items():
        idle = [given[key] for key, needed in needs.items() if name in needed]
        if idle and not need.met(config, author):
            who = f"proposer {author!r}" if author else "a proposer of the caller's own"
            because = f" ({who})" if need.by_author else ""
            expected = need.expected
            if config.model.url:  # the user gave a server already, but the proposer does not use it
                expected = expected.replace(MODEL, "no --replay" if author == "replay" else "--proposer llm")
            raise InputError(
                f"{', '.join(idle)}: no effect, since this run has {need.lacks}{because}; expected {expected}, or "
                f"{'this setting' if len(idle) == 1 else 'these settings'} left out"
            )
