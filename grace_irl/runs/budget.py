"""The stop rules of a run, and its spending: calls, tokens and cost."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from grace_irl.config import StopConfig
from grace_irl.propose.protocol import Proposal
from grace_irl.runs.store import Store


@dataclass(frozen=True)
class Progress:
    """State of a run after a result.

    Attributes:
        calls: number of results that the search has received.
        tokens: number of input and output tokens of all answers (`Spending`).
        cost: cost of these tokens (`Prices`).
        seconds: search time in seconds, including the time before a resume.
        generation: number of complete generations.
        generation_ended: whether this result completed a generation.
        best: metrics of the best program; {} without one.
        stale: number of complete generations since the best program last improved.
        fruitless: number of latest results in a row without a program.
        exhausted: number of latest results in a row for which the proposer had no new program.
    """

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    generation: int = 0
    generation_ended: bool = False
    best: Mapping[str, float] = field(default_factory=dict)
    stale: int = 0
    fruitless: int = 0
    exhausted: int = 0


@dataclass(frozen=True)
class Prices:
    """Prices of a million input and output tokens, in any currency."""

    tokens_in: float = 0.0
    tokens_out: float = 0.0

    def cost(self, tokens_in: int, tokens_out: int) -> float:
        """The cost of input and output tokens."""
        return (tokens_in * self.tokens_in + tokens_out * self.tokens_out) / 1e6


class Budget:
    """All stop rules of a run.

    Args:
        rules: the user's stop rules.
        fruitless: number of results in a row without a program after which the run ends; None for no limit. The run
            also ends after half this number of results in a row for which the proposer had no new program
            (`Progress.exhausted`).
    """

    def __init__(self, rules: StopConfig, fruitless: int | None = None) -> None:
        self._rules = rules
        self._fruitless = math.inf if fruitless is None else fruitless

    def may_ask(self, asked: int) -> bool:
        """Whether the search may request another program, after `asked` requests."""
        return asked < _limit(self._rules.max_calls)

    def seconds_left(self, seconds: float) -> float | None:
        """The number of seconds left after `seconds` of search; None without a limit."""
        most = self._rules.max_seconds
        return None if most is None else max(0.0, most - seconds)

    def check(self, progress: Progress) -> str:
        """The reason to stop, in a few words; "" if the run may continue."""
        # The target comes first: a run that reaches its target and a limit at the same time reports the target.
        reasons = (self._target(progress), self._limits(progress), self._plateau(progress), self._hopeless(progress))
        return next(filter(None, reasons), "")

    def spent(self, progress: Progress) -> bool:
        """Whether the whole run must end, because a limit is reached or the proposer brings no programs.

        The other stop rules end only the current stage of the search. Another stage, such as reshaping, may follow.
        """
        return bool(self._limits(progress) or self._hopeless(progress))

    def may_call(self, tokens: int, cost: float, seconds: float) -> str:
        """The reason why no further call may be made; "" if one may.

        After a limit is reached, the run still uses its stored answers and the answers to calls in flight. It ends at
        the first request that needs another call. So its results do not depend on the order in which answers arrive.

        Args:
            tokens, cost: spending of the run so far.
            seconds: search time so far.
        """
        rules = self._rules
        if tokens >= _limit(rules.max_tokens):
            return f"max_tokens: {tokens} tokens"
        if cost >= _limit(rules.max_cost):
            return f"max_cost: {cost:.4g}"
        return self._time(seconds)

    def _limits(self, progress: Progress) -> str:
        """The reason to stop if a limit is reached, else "". A run at a limit does not wait for requests in flight."""
        if progress.calls >= _limit(self._rules.max_calls):
            return f"max_calls: {progress.calls} proposals"
        return self._time(progress.seconds)

    def _time(self, seconds: float) -> str:
        return f"max_seconds: {seconds:.2f} s" if seconds >= _limit(self._rules.max_seconds) else ""

    def _target(self, progress: Progress) -> str:
        """The reason to stop if the best program of a complete generation reaches the target accuracy, else "".

        A target of 1.0 also requires that every positive state has a higher reward than every negative state.
        """
        target, best = _limit(self._rules.target_accuracy), progress.best
        if not progress.generation_ended or best.get("accuracy", 0.0) < target:
            return ""
        if target >= 1.0 and not best.get("separated"):
            return ""
        return f"target_accuracy: {best['accuracy']:.4g} on training data"

    def _plateau(self, progress: Progress) -> str:
        reached = progress.generation_ended and progress.stale >= _limit(self._rules.plateau)
        return f"plateau: {progress.stale} generations without improvement" if reached else ""

    def _hopeless(self, progress: Progress) -> str:
        if 2 * progress.exhausted >= self._fruitless:
            return f"exhausted: the proposer has nothing new ({progress.exhausted} answers in a row)"
        return f"no program in {progress.fruitless} answers in a row" if progress.fruitless >= self._fruitless else ""


def _limit(value: float | None) -> float:
    return math.inf if value is None else value


@dataclass(frozen=True)
class Spending:
    """Totals over all stored answers: answers to requests, with or without a result yet, and to follow-up calls, and
    a model's answers about goal states.

    Attributes:
        answers: number of answers.
        calls: number of calls. If one call gave several answers, its input tokens and its duration are stored with the
            first of these answers only.
        tokens_in, tokens_out: input and output tokens, as the server counted them.
        cost: cost of these tokens.
        seconds: sum of the durations of all calls. It may exceed the wall time, because calls overlap.
    """

    answers: int
    calls: int
    tokens_in: int
    tokens_out: int
    cost: float
    seconds: float

    def per_call(self) -> dict[str, float]:
        """Means of tokens_in, tokens_out, cost and seconds per call; empty without a call."""
        names = ("tokens_in", "tokens_out", "cost", "seconds") if self.calls else ()
        return {name: getattr(self, name) / self.calls for name in names}


def spending(store: Store, prices: Prices) -> Spending:
    """Add up the spending of a run so far."""
    rows = store.spent()
    rows += [(one.tokens_in, one.tokens_out, one.seconds) for one in store.goals() if one.origin == "model"]
    tokens_in, tokens_out = sum(row[0] for row in rows), sum(row[1] for row in rows)
    return Spending(
        answers=len(rows),
        calls=sum(row[0] > 0 or row[2] > 0 for row in rows),
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost=prices.cost(tokens_in, tokens_out),
        seconds=sum(row[2] for row in rows),
    )


class Meter:
    """The spending and the search time of a run in progress.

    The meter also puts the answers to requests into the store. Answers about goal states are stored elsewhere
    (`labelling.ask`).

    Args:
        store: the database of the run.
        budget: the stop rules of the run.
        prices: the prices of tokens.
        spent: tokens and cost of the earlier searches of an expansion, which count, too.

    Attributes:
        budget: the stop rules.
        tokens, cost: spending so far, in all sittings (`engine.Live` says what a sitting is).
        on_answer: callback for each stored answer.
    """

    def __init__(
        self, store: Store, budget: Budget, prices: Prices = Prices(), spent: tuple[int, float] = (0, 0.0)
    ) -> None:
        self._store = store
        self._prices = prices
        self.budget = budget
        found = spending(store, prices)
        self.tokens, self.cost = spent[0] + found.tokens_in + found.tokens_out, spent[1] + found.cost
        self.on_answer: Callable[[Proposal], None] = lambda _: None
        self._earlier, self._started = store.seconds(), time.monotonic()

    @property
    def seconds(self) -> float:
        """The search time so far, in seconds, in all sittings."""
        return self._earlier + time.monotonic() - self._started

    def limit(self) -> str:
        """The reason why no further call may be made; "" if one may."""
        return self.budget.may_call(self.tokens, self.cost, self.seconds)

    def keep(self, proposals: Mapping[int, Proposal], attempt: int = 0, step: str = "") -> None:
        """Store the answers of one call. See `Store.add_proposals`."""
        self._store.add_proposals(proposals, attempt, step)
        for each in proposals.values():
            self.tokens += each.tokens_in + each.tokens_out
            self.cost += self._prices.cost(each.tokens_in, each.tokens_out)
            self.on_answer(each)

    def close(self) -> None:
        """Store the search time, when a sitting ends."""
        self._store.set_seconds(self.seconds)


def kinds(failures: Iterable[str]) -> dict[str, int]:
    """Count failures by kind. The kind is the text before the first colon, for example "length" or "refusal"."""
    return dict(Counter(failure.partition(":")[0] for failure in failures).most_common())
