"""The result of scoring a program."""

from __future__ import annotations

from dataclasses import dataclass, field

EQUAL = 1e-9  # fitness within this is equal: optimisers and the calibration's bound leave no less

BEST_HERE = "best threshold on these data"
"""What is said of an accuracy at no threshold that was known before."""


@dataclass(frozen=True)
class Metrics:
    """How well rewards tell expert from negative states, on one split (docs/fitness.md, "Metrics").

    Attributes:
        fitness: E_{s in S_e}[log D(s)] + E_{s in S_n}[log(1 - D(s))], nats, at most 0 (GRACE eq. 4.1).
        auc: probability that a random expert state outranks a random negative one, ties one half.
        accuracy: balanced accuracy at a threshold on the reward: the one that is best on the training data, on
            held-out data and for each task, too (`Evaluation.threshold`).
        separated: the smallest expert value exceeds the largest negative one.
        experts: number of positive states.
        negatives: number of negative states.

    Over several tasks `fitness` is the mean over tasks, so that a task with many states does not drown the
    others, while `auc`, `accuracy` and `separated` look at all states together: one threshold must serve
    every task.
    """

    fitness: float
    auc: float
    accuracy: float
    separated: bool
    experts: int
    negatives: int


@dataclass(frozen=True)
class Evaluation:
    """The score of one program.

    Attributes:
        status: "ok", or why the program is invalid (a sandbox `Status`).
        message: one line for a person; "" when ok.
        traceback: the program's own traceback, for a repair.
        fitness: overall train fitness; -inf when invalid. Searches rank by this.
        scale, offset: the calibration `D = sigmoid(scale * r + offset - log pi)`; 1 and 0 without
            calibration.
        threshold: of the best accuracy on training data, over all tasks: a state counts as an expert's where its
            reward, as the program gives it, is above. None without metrics, and of a run that an older version made:
            its accuracies are each at the best threshold on their own data.
        train, held_out: metrics over all tasks; held_out is None where there is no held-out data.
        tasks: per task, the same pair.
        monotonicity: mean Kendall tau of reward against time along expert trajectories, or None.
        seconds: wall time of the evaluation.
        complete: False where the evaluation stopped early, because the program could no longer reach the
            floor that it was asked to reach: `fitness` is then an upper bound (below that floor), and there
            are no metrics.
    """

    status: str
    message: str = ""
    traceback: str = ""
    fitness: float = float("-inf")
    scale: float = 1.0
    offset: float = 0.0
    threshold: float | None = None
    train: Metrics | None = None
    held_out: Metrics | None = None
    tasks: dict[str, tuple[Metrics, Metrics | None]] = field(default_factory=dict)
    monotonicity: float | None = None
    seconds: float = 0.0
    complete: bool = True

    @property
    def valid(self) -> bool:
        """Whether the program gave a finite number for every state."""
        return self.status == "ok"


def shown(fitness: float) -> str:
    """A fitness for people: what is equal to 0 is 0."""
    return "0" if abs(fitness) <= EQUAL else f"{fitness:.5g}"
