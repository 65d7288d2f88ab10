"""The stop rules of a run, and its spending: calls, tokens and cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from grace_irl.config import StopConfig
from grace_irl.runs.store import Store


@dataclass(frozen=True)
class Progress:
    """State of a run after a result.

    Attributes:
        calls: number of results that the search has received.
        tokens: number of input and output tokens of these results.
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
        fruitless: the run ends after this number of results in a row without a program, or after half this number of
            results in a row for which the proposer had no new program (`Progress.exhausted`); None for no limit.
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

    def _limits(self, progress: Progress) -> str:
        """The reason to stop if a limit is reached, else "". A run at a limit does not wait for requests in flight."""
        rules = self._rules
        if progress.calls >= _limit(rules.max_calls):
            return f"max_calls: {progress.calls} proposals"
        if progress.tokens >= _limit(rules.max_tokens):
            return f"max_tokens: {progress.tokens} tokens"
        if progress.cost >= _limit(rules.max_cost):
            return f"max_cost: {progress.cost:.4g}"
        return f"max_seconds: {progress.seconds:.2f} s" if progress.seconds >= _limit(rules.max_seconds) else ""

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
    """Totals over all stored answers, including repairs and answers whose requests have no result yet.

    Attributes:
        answers: number of answers.
        calls: number of calls. One call may give several answers. The input tokens and the duration of the call are
            stored with the first answer.
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
    tokens_in, tokens_out = sum(row[0] for row in rows), sum(row[1] for row in rows)
    return Spending(
        answers=len(rows),
        calls=sum(row[0] > 0 or row[2] > 0 for row in rows),
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost=prices.cost(tokens_in, tokens_out),
        seconds=sum(row[2] for row in rows),
    )


def kinds(failures: Iterable[str]) -> dict[str, int]:
    """Count failures by kind. The kind is the text before the first colon, for example "length" or "refusal"."""
    return dict(Counter(failure.partition(":")[0] for failure in failures).most_common())
