"""The spending of a run's answers: calls, tokens, cost, seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from grace_irl.runs.budget import Prices
from grace_irl.runs.store import Store


@dataclass(frozen=True)
class Spending:
    """Sums over every answer that was kept, repairs and answers not told yet included.

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
    """What the answers of a run took so far."""
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
    """How often answers failed, by kind: what stands before the first colon ("length", "refusal", "no_class", …)."""
    return dict(Counter(failure.partition(":")[0] for failure in failures).most_common())
