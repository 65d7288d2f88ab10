"""Texts and tables about how well a reward separates expert from negative states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grace_irl.evaluate.evaluation import Evaluation, shown
from grace_irl.evaluate.separation import BEST_HERE, EpisodeMetrics, Measurement, Metrics, Separation
from grace_irl.methods.account import Account, Calibrated, Column, Figures

HEAD = ("by state", "fitness", "auc", "accuracy", "separated", "positive", "negative")


def metrics_figures(rows: Sequence[tuple[str, Metrics | None]], title: str = "") -> Figures:
    """A table of metrics with a row for each name. If a name has no metrics, the cells of its row are "-"."""
    return Figures(HEAD, tuple(_row(name, metrics) for name, metrics in rows), title)


def episode_figures(rows: Sequence[tuple[str, Metrics | None]], title: str = "") -> Figures | None:
    """A table of metrics over episodes, with a row for each name that has such metrics; None without such metrics."""
    known = [(name, metrics.episodes) for name, metrics in rows if metrics is not None and metrics.episodes is not None]
    if not known:
        return None
    ranked = any(episodes.outranks is not None for _, episodes in known)
    names = ("outranks", "rank correlation") if ranked else ("hit", "early", "false")
    return Figures(
        ("by episode", *names, "experts", "negatives"),
        tuple(
            (name, *(_cell(each) for each in (_ranks if ranked else _shares)(episodes)), *_counts(episodes))
            for name, episodes in known
        ),
        title,
    )


def episode_line(metrics: Metrics | None) -> str:
    """A line that explains the columns of `episode_figures`; "" without metrics over episodes."""
    episodes = metrics.episodes if metrics is not None else None
    if episodes is None:
        return ""
    if episodes.outranks is not None:
        ranks = "outranks: probability that an expert episode has a higher mean reward than a negative one"
        returns = "rank correlation: of an episode's sum of rewards with its true return"
        return f"{ranks}; {returns}; [95 % interval over episodes]"
    return (
        "hit: experts paid at their goal; early: experts paid before it; false: negative episodes paid anywhere; "
        "[95 % interval over episodes]"
    )


def _shares(episodes: EpisodeMetrics) -> tuple[Measurement | None, ...]:
    return episodes.hit, episodes.early, episodes.false


def _ranks(episodes: EpisodeMetrics) -> tuple[Measurement | None, ...]:
    return episodes.outranks, episodes.correlation


def _counts(episodes: EpisodeMetrics) -> tuple[str, str]:
    return str(episodes.experts), str(episodes.negatives)


def _cell(estimate: Measurement | None) -> str:
    return "-" if estimate is None else f"{estimate.value:.3f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def accuracy_line(threshold: float | None) -> str:
    """A line about the threshold at which the accuracies are measured.

    Args:
        threshold: the threshold; None in runs of older versions, which fitted one threshold to training data and
            another one to held-out data.
    """
    if threshold is None:
        return f"accuracy: {BEST_HERE}, one for training and one for held-out data (an older version made the run)"
    return f"accuracy: a reward > {threshold:.6g} counts as an expert's, the best threshold on training data"


class SeparationAccount(Account):
    """Texts and tables about the discriminator's metrics on training and held-out data (docs/fitness.md)."""

    score = "fitness"
    columns = (
        Column("accuracy", "accuracy"),
        Column("held_out_accuracy", "held out", "held_out"),
        Column("auc", "auc"),
        Column("monotonicity", "rising", digits=2),
    )
    progress = columns[:2]
    curves = (Column("accuracy", "training"), Column("held_out_accuracy", "held out"))
    drawn = "accuracy"
    note = "At most 0; a reward that knows nothing has −1.386."

    def headline(self, evaluation: Evaluation) -> str:
        """See `Account`."""
        metrics = evaluation.metrics
        text = f"best fitness {shown(evaluation.score)}, accuracy {metrics.get('accuracy', 0.0):.4f}"
        if "held_out_accuracy" not in metrics:
            return text
        held_out = metrics.get("held_out_fitness", float("-inf"))
        return f"{text} (held out {metrics['held_out_accuracy']:.4f}, fitness {shown(held_out)})"

    def brief(self, evaluation: Evaluation) -> str:
        """See `Account`."""
        return f"best accuracy {evaluation.metrics.get('accuracy', 0.0):.4f}"

    def verdict(self, evaluation: Evaluation) -> str:
        """See `Account`."""
        found = Separation.of(evaluation)
        if found is None:
            return "No valid reward was found."
        if found.held_out is None:
            return f"On its training data, {_judged(found.train)}. No held-out figures test it."
        return f"On held-out data, unseen by the search, {_judged(found.held_out)}."

    def figures(self, evaluation: Evaluation) -> list[Figures]:
        """See `Account`. First a table by episode, then a table by state over all tasks, then one by state per task."""
        found = Separation.of(evaluation)
        if found is None:
            return []
        by_episode = figures_by_episode(found)
        return [*([by_episode] if by_episode else []), *map(metrics_figures, _sides(found))]

    def remarks(self, evaluation: Evaluation) -> list[str]:
        """See `Account`."""
        found = Separation.of(evaluation)
        if found is None:
            return []
        return [line for line in (episode_line(found.train), accuracy_line(found.threshold)) if line]

    def details(self, evaluation: Evaluation) -> list[str]:
        """See `Account`."""
        tau = evaluation.metrics.get("monotonicity")
        rising = [] if tau is None else [f"monotonicity: {tau:.4f} (Kendall's tau along expert trajectories, mean)"]
        return [*self.remarks(evaluation), *rising]

    def cautions(self, evaluation: Evaluation) -> list[str]:
        """See `Account`. Only runs of older versions have a caution: `accuracy_line(None)`."""
        found = Separation.of(evaluation)
        old = found is not None and found.held_out is not None and found.threshold is None
        return [accuracy_line(None)] if old else []

    def values(self, evaluation: Evaluation) -> dict[str, object]:
        """See `Account`.

        The values are the metrics on training and held-out data (overall and per task), the monotonicity, the
        calibration and the threshold.
        """
        found = Separation.of(evaluation)
        return {
            "fitness": evaluation.score,
            "train": found and found.train,
            "held_out": found and found.held_out,
            "tasks": found.tasks if found else {},
            "monotonicity": found and found.monotonicity,
            "scale": found.scale if found else 1.0,
            "offset": found.offset if found else 0.0,
            "threshold": found and found.threshold,
        }

    def facts(self, evaluation: Evaluation, settings: Mapping[str, object]) -> list[tuple[str, str]]:
        """See `Account`."""
        found = Separation.of(evaluation)
        if found is None:
            return []
        calibrated = "calibrated" if settings.get("fitness.calibrate") else "not calibrated"
        told = f"{shown(evaluation.score)} on training data ({calibrated}, log pi {settings.get('fitness.log_pi')})"
        known = found.threshold is not None
        return [
            ("fitness", told),
            *_paid(found),
            ("train", _said(found.train)),
            ("held out", _said(found.held_out, "" if known else f" ({BEST_HERE})")),
            ("monotonicity", _rising(found.monotonicity)),
        ]

    def carried(self, evaluation: Evaluation) -> list[tuple[str, str]]:
        """See `Account`."""
        found = Separation.of(evaluation)
        if found is None:
            return []
        lines = [("calibration", f"scale {found.scale:.6g}, offset {found.offset:.6g}")]
        if found.threshold is not None:
            lines.append(("threshold", f"{found.threshold:.6g}, best on training data (accuracies are measured at it)"))
        return lines

    def calibrated(self, evaluation: Evaluation) -> Calibrated | None:
        """See `Account`."""
        found = Separation.of(evaluation)
        return None if found is None else Calibrated(found.scale, found.offset, found.threshold)


def figures_by_episode(found: Separation, title: str = "") -> Figures | None:
    """The table of metrics over episodes, overall and per task; None without such metrics, as in older runs."""
    return episode_figures([row for rows in _sides(found) for row in rows], title)


def _sides(found: Separation) -> list[list[tuple[str, Metrics | None]]]:
    """Rows of name and metrics, for training and held-out data: overall, and per task if there are several tasks."""
    sides: list[list[tuple[str, Metrics | None]]] = [[("train", found.train), ("held out", found.held_out)]]
    for name, (train, held_out) in found.tasks.items() if len(found.tasks) > 1 else ():
        sides.append([(f"{name}, train", train), (f"{name}, held out", held_out)])
    return sides


def _row(name: str, metrics: Metrics | None) -> tuple[str, ...]:
    if metrics is None:
        return (name, *["-"] * (len(HEAD) - 1))
    return (
        name,
        shown(metrics.fitness),
        f"{metrics.auc:.4f}",
        f"{metrics.accuracy:.4f}",
        "yes" if metrics.separated else "no",
        str(metrics.experts),
        str(metrics.negatives),
    )


def _judged(metrics: Metrics) -> str:
    """A text about the metrics of a reward, first over episodes if such metrics are known, then over states."""
    episodes = metrics.episodes
    if episodes is None:
        return f"the reward {_parts(metrics)}"
    experts = f"{episodes.experts} expert episode{'' if episodes.experts == 1 else 's'}"
    negatives = f"{episodes.negatives} negative one{'' if episodes.negatives == 1 else 's'}"
    if episodes.outranks is not None:
        more = f"an expert episode outranks a negative one with probability {_cell(episodes.outranks)}"
        return f"{more} by its mean reward ({experts}, {negatives}). By state, the reward {_parts(metrics)}"
    if episodes.hit is None or episodes.early is None:
        return f"the reward {_parts(metrics)}"
    hit, early = (round(each.value * episodes.experts) for each in (episodes.hit, episodes.early))
    told = f"the reward pays {hit} of {experts} at the goal and {early} before it"
    if episodes.false is not None:
        told += f", and {round(episodes.false.value * episodes.negatives)} of {negatives}"
    return f"{told}. By state, it {_parts(metrics)}"


def _parts(metrics: Metrics) -> str:
    counted = f"{states(metrics.experts, 'positive')} from {states(metrics.negatives, 'negative')}"
    if metrics.separated:
        apart = f"separates {counted}: each positive state has a higher reward than every negative state"
        if metrics.accuracy == 1:
            return apart
        return (
            f"{apart}. At the threshold that is best on training data its balanced accuracy is {metrics.accuracy:.4f}"
        )
    return (
        f"tells {counted} with a balanced accuracy of {metrics.accuracy:.4f} (0.5 is chance), but does not separate "
        f"them; a positive state outranks a negative one with probability {metrics.auc:.4f}"
    )


def states(count: int, name: str) -> str:
    """A number of states as text, such as "1 positive state"."""
    return f"{count:,} {name} state{'' if count == 1 else 's'}"


def _paid(found: Separation) -> list[tuple[str, str]]:
    """Metrics over episodes as pairs of name and text. Each text covers training and held-out data."""
    sides = [("train", found.train.episodes), ("held-out", found.held_out.episodes if found.held_out else None)]
    known = [(side, episodes) for side, episodes in sides if episodes is not None]
    lines = []
    for name, role, told in (
        ("hit", "experts", "expert episodes paid at the goal"),
        ("early", "experts", "expert episodes paid before the goal"),
        ("false", "negatives", "negative episodes paid anywhere"),
    ):
        cells = [
            f"{round(share.value * getattr(episodes, role))} of {getattr(episodes, role)} {side}"
            for side, episodes in known
            if (share := getattr(episodes, name)) is not None
        ]
        lines += [(name, f"{', '.join(cells)} {told}")] if cells else []
    for name, title, told in (
        ("outranks", "outranks", "an expert episode has a higher mean reward than a negative one"),
        ("correlation", "correlation", "Spearman, sums of rewards against true returns of episodes"),
    ):
        cells = [f"{_cell(rank)} {side}" for side, episodes in known if (rank := getattr(episodes, name)) is not None]
        lines += [(title, f"{', '.join(cells)} ({told})")] if cells else []
    return lines


def _rising(tau: float | None) -> str:
    if tau is None:
        return "none (no expert trajectory has two states)"
    return f"{tau:.4f} (mean Kendall tau of reward against time along expert trajectories)"


def _said(metrics: Metrics | None, accuracy_at: str = "") -> str:
    if metrics is None:
        return "none"
    separated = "separated" if metrics.separated else "not separated"
    return (
        f"accuracy {metrics.accuracy:.4f}{accuracy_at}, auc {metrics.auc:.4f}, {separated}, "
        f"fitness {shown(metrics.fitness)} ({metrics.experts} positive, {metrics.negatives} negative states)"
    )
