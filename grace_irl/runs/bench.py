"""The workbench of a run: its labelled demonstrations, its sandbox and a cache of rewards."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from grace_irl.config import Config
from grace_irl.demos.labels import Problem
from grace_irl.methods.registry import method_of
from grace_irl.propose.material import Workbench
from grace_irl.runs import labelling as labellings
from grace_irl.runs import proposers
from grace_irl.runs.budget import Budget, Prices
from grace_irl.runs.caller import Parts, notes_of
from grace_irl.runs.labelling import Labelling
from grace_irl.runs.sandbox import limits_of
from grace_irl.runs.store import Store
from grace_irl.sandbox.protocol import Sandbox


def labelled(
    folder: Path, config: Config, labelling: Labelling, sandbox: Sandbox, store: Store, parts: Parts
) -> Workbench:
    """The workbench of a run: its labelled demonstrations, its sandbox and a cache of rewards.

    If goal states of expert trajectories are unknown, a model or a person names them first.

    Raises:
        InputError: no positive states, or no negative states.
        GraceError: unusable answers about goal states, or a lost server. All answers are saved.
        Interrupted: Ctrl-C. All answers are saved.
    """
    limits = limits_of(config.sandbox)
    note, again = notes_of(store, parts), parts.again(folder)

    def bench(problem: Problem) -> Workbench:
        return Workbench(
            proposers.as_shown(config, problem), sandbox, config.seed, limits, store, folder, note, parts.workplace
        )

    if labelling.silent:
        note(f"goal states: asking about {len(labelling.silent)} expert trajectories, held-out ones among them")
        asking = proposers.asking(config, bench(labelling.problem()))
        if asking is not None:
            limit = partial(_limit_of_tokens, config)
            labelling = labellings.ask(labelling, asking, folder, store, config.search.lag or 1, again, limit)
    judges = method_of(config).needs.demonstrations
    return bench(labellings.settled(labelling, folder, store, note, again, judges=judges))


def _limit_of_tokens(config: Config, tokens_in: int, tokens_out: int) -> str:
    """The stop rule that these numbers of input and output tokens break, in words; "" for none."""
    cost = Prices(config.model.price_in, config.model.price_out).cost(tokens_in, tokens_out)
    return Budget(config.stop).may_call(tokens_in + tokens_out, cost, 0.0)
