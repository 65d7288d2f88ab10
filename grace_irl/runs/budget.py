"""Stop rules: each an object, all checked in one place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from grace_irl.runs.store import Store


@dataclass(frozen=True)
class Progress:
    """State of a run after a result.

    Attributes:
        calls: proposals whose results the search has.
        tokens: in and out.
        cost: of those tokens.
        seconds: of search, over all sittings.
        generation: generations complete.
        generation_ended: this result completed one.
        best: metrics of the best program; {} without one.
        stale: generations complete since the best last improved.
        fruitless: answers in a row that were no program.
        exhausted: of those, answers in a row of a proposer with nothing new.
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
    """Price of a million tokens, in any currency."""

    tokens_in: float = 0.0
    tokens_out: float = 0.0

    def cost(self, tokens_in: int, tokens_out: int) -> float:
        """The cost of tokens."""
        return (tokens_in * self.tokens_in + tokens_out * self.tokens_out) / 1e6


class StopRule(Protocol):
    """A reason to stop."""

    def check(self, progress: Progress) -> str:
        """The reason to stop now, in a few words; "" to go on."""
        ...


@dataclass(frozen=True)
class MaxCalls:
    """Stops after a number of proposals."""

    limit: int

    def check(self, progress: Progress) -> str:
        """See `StopRule`."""
        return f"max_calls: {progress.calls} proposals" if progress.calls >= self.limit else ""


@dataclass(frozen=True)
class MaxTokens:
    """Stops after a number of tokens; answers in flight are lost."""

    limit: int

    def check(self, progress: Progress) -> str:
        """See `StopRule`."""
        return f"max_tokens: {progress.tokens} tokens" if progress.tokens >= self.limit else ""


@dataclass(frozen=True)
class MaxCost:
    """Stops after tokens of this cost; answers in flight are lost."""

    limit: float

    def check(self, progress: Progress) -> str:
        """See `StopRule`."""
        return f"max_cost: {progress.cost:.4g}" if progress.cost >= self.limit else ""


@dataclass(frozen=True)
class MaxSeconds:
    """Stops after a number of seconds of search."""

    limit: float

    def check(self, progress: Progress) -> str:
        """See `StopRule`."""
        return f"max_seconds: {progress.seconds:.2f} s" if progress.seconds >= self.limit else ""


@dataclass(frozen=True)
class TargetAccuracy:
    """Stops at the end of a generation whose best program reaches this train accuracy.

    A target of 1.0 also asks that expert and negative states be separated.
    """

    target: float

    def check(self, progress: Progress) -> str:
        """See `StopRule`."""
        best = progress.best
        if not progress.generation_ended or best.get("accuracy", 0.0) < self.target:
            return ""
        if self.target >= 1.0 and not best.get("separated"):
            return ""
        return f"target_accuracy: {best['accuracy']:.4g} on training data"


@dataclass(frozen=True)
class Plateau:
    """Stops after a number of generations without improvement."""

    generations: int

    def check(self, progress: Progress) -> str:
        """See `StopRule`."""
        reached = progress.generation_ended and progress.stale >= self.generations
        return f"plateau: {progress.stale} generations without improvement" if reached else ""


@dataclass(frozen=True)
class Fruitless:
    """Stops after a number of answers in a row that are no program, or half as many of a proposer with nothing new."""

    answers: int

    def check(self, progress: Progress) -> str:
        """See `StopRule`."""
        if 2 * progress.exhausted >= self.answers:
            return f"exhausted: the proposer has nothing new ({progress.exhausted} answers in a row)"
        return f"no program in {progress.fruitless} answers in a row" if progress.fruitless >= self.answers else ""


class Budget:
    """All stop rules of a run, checked in one place."""

    def __init__(self, rules: Sequence[StopRule]) -> None:
        self._rules = tuple(rules)
        self._calls = min((rule.limit for rule in self._rules if isinstance(rule, MaxCalls)), default=None)
        self._seconds = min((rule.limit for rule in self._rules if isinstance(rule, MaxSeconds)), default=None)

    def may_ask(self, asked: int) -> bool:
        """Whether the search may ask for one more proposal, after `asked` of them."""
        return self._calls is None or asked < self._calls

    def seconds_left(self, seconds: float) -> float | None:
        """Seconds to wait for a result when `seconds` are over; None without a limit."""
        return None if self._seconds is None else max(0.0, self._seconds - seconds)

    def check(self, progress: Progress) -> str:
        """The first reason to stop, or ""."""
        return next((reason for rule in self._rules if (reason := rule.check(progress))), "")

    def spent(self, progress: Progress) -> bool:
        """Whether a rule is met that ends everything, not only the search for better programs."""
        return any(rule.check(progress) for rule in self._rules if not isinstance(rule, TargetAccuracy | Plateau))


def budget(
    *,
    max_calls: int | None = None,
    max_seconds: float | None = None,
    max_tokens: int | None = None,
    max_cost: float | None = None,
    target_accuracy: float | None = None,
    plateau: int | None = None,
    fruitless: int | None = None,
) -> Budget:
    """A budget of the rules that are given."""
    rules: list[StopRule] = []
    # The user's own goals come before what ran out, so that the reason shown is the best news.
    if target_accuracy is not None:
        rules.append(TargetAccuracy(target_accuracy))
    if max_calls is not None:
        rules.append(MaxCalls(max_calls))
    if max_tokens is not None:
        rules.append(MaxTokens(max_tokens))
    if max_cost is not None:
        rules.append(MaxCost(max_cost))
    if max_seconds is not None:
        rules.append(MaxSeconds(max_seconds))
    if plateau is not None:
        rules.append(Plateau(plateau))
    if fruitless is not None:
        rules.append(Fruitless(fruitless))
    return Budget(rules)


@dataclass(frozen=True)
class Spending:
    """Sums over every answer that was kept, repairs and answers in flight included.

    Attributes:
        answers: of the proposer.
        calls: answers that carry the tokens or the seconds of a call; one call may bring several answers.
        tokens_in, tokens_out: as the server counted them.
        cost: of those tokens.
        seconds: of those calls, added up (not wall time: calls overlap).
    """

    answers: int
    calls: int
    tokens_in: int
    tokens_out: int
    cost: float
    seconds: float

    def per_call(self) -> dict[str, float]:
        """Means: tokens_in, tokens_out, cost, seconds; empty without a call."""
        names = ("tokens_in", "tokens_out", "cost", "seconds") if self.calls else ()
        return {name: getattr(self, name) / self.calls for name in names}


def spending(store: Store, prices: Prices) -> Spending:
    """Cost of the answers of a run so far."""
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
    """The number of failed answers by kind: the text before the first colon ("length", "refusal", "no_class", …)."""
    return dict(Counter(failure.partition(":")[0] for failure in failures).most_common())
