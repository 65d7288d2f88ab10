"""Checks that a user's settings of searches have an effect on a comparison."""

from __future__ import annotations

from collections.abc import Mapping

from grace_irl.compare.settings import ORACLE, OURS, TASK, Settings
from grace_irl.errors import InputError
from grace_irl.runs.config import flat
from grace_irl.runs.effects import require_effect

OVERRULED = {"expand.env": "--env", "expand.steps": "--steps", "seed": "--seeds", TASK: "--task"}
"""Keys of settings that a comparison determines for its searches, each with the flag of `compare` to use instead."""
OF_TRAINING = ("expand.form", "expand.trust")
"""Settings of a search that affect every training on the found reward, also without expansion."""
OF_SEARCH = ("search.", "fitness.", "stop.", "proposer.start_from")
"""Prefixes of the settings of `grace` that have no effect if a reward file replaces the search."""


def require_effect_on_searches(settings: Settings, given: Mapping[str, str]) -> None:
    """Refuse settings of searches that have no effect on this comparison.

    In a comparison without a search, only the settings in `OVERRULED` and a reward file are refused, because
    `--resume --methods` may add a search later. A reward file has an effect only if `grace` is compared.

    Args:
        settings: settings of the comparison.
        given: settings of searches that the user gave: a map from each setting's key to the user's flag, variable or
            `--set` key (`grace_irl.runs.effects.words`).

    Raises:
        InputError: a given setting has no effect.
    """
    for key, flag in OVERRULED.items():
        if key in given:
            raise InputError(f"{given[key]} has no effect in a comparison; expected {flag}")
    searches = settings.searches
    if settings.comparison.reward and OURS not in settings.comparison.methods:
        raise InputError(
            f"--reward {settings.comparison.reward}: no effect with the methods "
            f"{', '.join(settings.comparison.methods)}; expected {OURS} among the --methods, which trains on it"
        )
    form = settings.fit.expand.form
    if "expand.form" in given and searches and all(each.expand.form != form for each in searches.values()):
        raise InputError(
            f"{given['expand.form']}: no effect, since policies that train on them as they are judge the rewards of "
            f"{', '.join(searches)}; expected no form"
        )
    imitators = set(settings.comparison.methods) - {ORACLE, *searches}
    read = ("data.",) if imitators and OURS not in searches else ()
    left = {key: how for key, how in given.items() if key not in OF_TRAINING and not key.startswith(read)}
    idle = {
        key: how
        for key, how in left.items()
        if searches and all(_refusal(settings, name, {key: how}) is not None for name in searches)
    }
    if idle:
        raise next(error for name in searches if (error := _refusal(settings, name, idle)) is not None)


def _refusal(settings: Settings, name: str, given: Mapping[str, str]) -> InputError | None:
    """The error about given settings that have no effect on one search; None if all have an effect."""
    config = settings.search(name)
    if name == OURS and settings.comparison.reward:
        idle = [how for key, how in given.items() if key.startswith(OF_SEARCH)]
        if idle:
            return InputError(
                f"{', '.join(idle)}: no effect, since --reward takes the place of the search; expected one of both"
            )
    foreign = [how for key, how in given.items() if key not in flat(config)]
    if foreign:
        return InputError(f"{', '.join(foreign)}: no effect with the methods {', '.join(settings.comparison.methods)}")
    try:
        require_effect(config, given)
    except InputError as error:
        return error
    return None
