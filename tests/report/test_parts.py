"""The parts of a report: words for figures, learning curves, numbers, and the room that states take."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.config import Config, DataConfig
from grace_irl.demos.trajectory import Demonstrations, Metadata, Trajectory
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.evaluate.metrics import ranking
from grace_irl.evaluate.separation import Metrics, Separation
from grace_irl.methods.account import Account, Column
from grace_irl.methods.separated import SeparationAccount
from grace_irl.report.data import Data, Valued, read, read_curve, trainings
from grace_irl.report.evidence import gather
from grace_irl.report.gallery import Gallery
from grace_irl.report.page import digits, fixed, highlighted, line, number, share
from grace_irl.report.plots import ScoreStep, searches, verdicts
from grace_irl.report.verdict import cautions, sentence, warnings
from grace_irl.runs.expand.round import Round
from grace_irl.runs.record import TrajectoryRow
from grace_irl.runs.store import FateRow, Store
from grace_irl.search.protocol import Fate


def valued(values: list[float], positive: list[bool], *, split: str = "train", name: str = "") -> Valued:
    role = "expert" if any(positive) else "negative"
    row = TrajectoryRow(name or f"{values}", role, "default", split, len(values), sum(positive), "file")
    return Valued(row, np.array(values), np.array(positive))


def metrics(accuracy: float, *, separated: bool = False, experts: int = 9) -> Metrics:
    return Metrics(-0.5, accuracy, accuracy, separated, experts, 9)


EMPTY = gather([])


def test_demonstrations_without_a_trajectory_stand_for_the_files_too() -> None:
    config = Config(data=DataConfig(demos=("absent",)))
    data = read(config, [], own=False, given=Demonstrations(Metadata("vector"), ()))
    assert (data.metadata, data.trouble) == (Metadata("vector"), "")


def test_a_run_without_demonstrations_misses_none() -> None:
    assert read(Config(), []).trouble == read(Config(), [], own=False).trouble == ""


@pytest.mark.parametrize(
    ("train", "held_out", "words"),
    [
        (metrics(1.0, separated=True), None, ["No data was held out"]),
        (metrics(1.0, separated=True), metrics(1.0, separated=True), []),
        (metrics(1.0, separated=True), metrics(0.8), ["Accuracy falls from 1.0000", "held-out ones are not"]),
        (metrics(1.0, separated=True), metrics(1.0, separated=True, experts=2), ["Only 2 positive states held out"]),
        (metrics(0.9), metrics(0.9), ["are not separated: of all states, held-out ones included, 0 positive"]),
    ],
)
def test_warnings(train: Metrics, held_out: Metrics | None, words: list[str]) -> None:
    found = warnings(Separation(train, held_out, threshold=0.5), EMPTY)
    assert len(found) == len(words)
    assert all(word in each for word, each in zip(words, found, strict=True))


def test_the_verdict_is_of_held_out_data_where_there_is_some() -> None:
    verdict = SeparationAccount().verdict
    separated = Separation(metrics(0.7), metrics(1.0, separated=True, experts=1)).evaluation()
    assert verdict(separated).startswith(
        "On held-out data, unseen by the search, the reward separates 1 positive state"
    )
    assert "balanced accuracy of 0.7000 (0.5 is chance)" in verdict(Separation(metrics(0.7)).evaluation())


def test_names_of_figures_keep_their_capitals() -> None:
    class Named(Account):
        score = drawn = "mean AUC"
        columns = curves = (Column("auc", "AUC"),)

    evaluation = Evaluation("ok", score=0.5, metrics={"auc": 0.5})
    assert Named().verdict(evaluation) == "Best mean AUC 0.5, AUC 0.5000."
    charts = searches([ScoreStep(1, 0.5, evaluation.metrics)], Named())
    assert [each.title for each in charts] == ["Mean AUC of the best program"] * 2


def test_the_chart_of_scores_shows_low_scores_as_they_are() -> None:
    (found,) = searches([ScoreStep(1, -148.4, {}), ScoreStep(2, -90.0, {}), ScoreStep(3, -6.0, {})], Account())
    heights = [float(height) for height in re.findall(r'cy="([\d.]+)"', found.drawing)]
    assert heights[0] > heights[1] > heights[2]


def test_each_candidate_counts_once_and_like_reasons_are_one() -> None:
    one, two, three = "76c49cce60cfd978", "4fb5a9d52ec02832", "4012345678901234"
    fates = [
        Fate(one, "kept", "the fittest of niche (12, 3)"),
        Fate(two, "kept", "the fittest of niche (12, 3)"),
        Fate(one, "dropped", f"{two} is fitter in niche (12, 3)"),
        Fate(three, "kept", "the fittest of niche (1, 3)"),
        Fate(two, "dropped", f"{three} is fitter in niche (12, 3)"),
        Fate(three, "duplicate", "the same program was tried before"),
        Fate(three, "duplicate", "the same program was tried before"),
    ]
    store = SimpleNamespace(fates=lambda: [FateRow(index, 0, fate) for index, fate in enumerate(fates)])
    found = {each.name: (each.count, each.reasons) for each in verdicts(cast("Store", store))}
    assert found == {
        "dropped": (2, (("… is fitter in niche (…, …)", 2),)),
        "duplicate": (2, (("the same program was tried before", 2),)),
        "kept": (1, (("the fittest of niche (…, …)", 1),)),
    }


def test_a_sentence_keeps_its_capitals() -> None:
    assert sentence("outside the sample: AUC 0.9 on BabyAI") == "Outside the sample: AUC 0.9 on BabyAI."


def test_cautions() -> None:
    rounds = [Round(0), Round(1, rollouts=9, alike=2, changed=False), Round(2, changed=False, stalled=True, shaped="x")]
    found = cautions(rounds)
    assert [each[:8] for each in found] == ["Round 1:", "Round 2:"]
    assert "2 of 9 rollouts look like an expert's" in found[0]
    assert "stalled: reshaped" in found[1]


@given(
    st.lists(
        st.tuples(st.lists(st.integers(-3, 3), min_size=1, max_size=5), st.booleans(), st.booleans()),
        min_size=1,
        max_size=6,
    )
)
def test_mistakes_are_counted_as_the_accuracy_counts_them(rows: list[tuple[list[int], bool, bool]]) -> None:
    items = [
        valued(list(map(float, values)), [expert] * len(values), split="held_out" if held_out else "train", name=str(n))
        for n, (values, expert, held_out) in enumerate(rows)
    ]
    evidence = gather(items)
    train = [each for each in items if each.row.split == "train"]
    positive = np.concatenate([each.positive for each in train]) if train else np.zeros(0, bool)
    assert sum(group.states for group in evidence.groups) == sum(len(each.values) for each in items)
    if not positive.any() or positive.all():
        assert evidence.threshold is None
        assert evidence.mistakes == (0, 0)
        return
    values = np.concatenate([each.values for each in train])
    right = {group.positive: group.right for group in evidence.groups if group.side == "training"}
    balanced = (right[True] + right[False]) / 2  # type: ignore[operator]
    assert balanced == pytest.approx(ranking(values, positive).accuracy)
    wrong = sum(shot.wrong for shot in (*evidence.low, *evidence.high))
    assert (wrong > 0) == (sum(evidence.mistakes) > 0)
    for shots, sign in ((evidence.low, 1), (evidence.high, -1)):
        worths = [sign * shot.value for shot in shots]
        assert worths == sorted(worths)


def test_states_beyond_the_room_are_left_out_and_counted() -> None:
    rng = np.random.default_rng(0)
    items, trajectories = [], {}
    for expert in (True, False):
        trajectory = Trajectory(rng.integers(0, 9, (6, 8, 8, 3)))
        row = TrajectoryRow(trajectory.digest, "expert" if expert else "negative", "default", "train", 6, 0, "")
        items.append(Valued(row, rng.random(6), np.full(6, expert)))
        trajectories[trajectory.digest] = trajectory
    evidence = gather(items)
    everything = Gallery(Data(Metadata("grid"), trajectories), evidence)
    size = len(everything.drawing(evidence.low[0]) or "")
    few = Gallery(Data(Metadata("grid"), trajectories), evidence, limit=2 * size)
    shown = [few.drawing(shot) is not None for shot in (*evidence.low, *evidence.high)]
    assert 1 <= sum(shown) <= 2
    assert few.left_out == len(shown) - sum(shown)
    assert everything.left_out == 0


def test_curves_that_are_not_whole_are_none(tmp_path: Path) -> None:
    look = {"steps": 5, "mean": 1.0, "success": None, "paid": 2}
    for text in ("", "[", "{}x", '{"steps": 1}', "[1]", '[{"steps": 1}]', json.dumps([{**look, "mean": "x"}]), "null"):
        (tmp_path / "curve.json").write_text(text)
        assert read_curve(tmp_path / "curve.json") == ()
    (tmp_path / "curve.json").write_text(json.dumps([look, {**look, "more": []}]))
    assert len(read_curve(tmp_path / "curve.json")) == 2


def test_a_training_says_on_which_reward(tmp_path: Path) -> None:
    for place in (1, 2, 10):
        folder = tmp_path / "rounds" / str(place) / "training"
        folder.mkdir(parents=True)
        (folder / "curve.json").write_text(json.dumps([{"steps": 5, "mean": 1.0, "success": 0.5, "paid": 2}]))
    rounds = [
        Round(1, trained_on="rounds/0/run/reward.py"),
        Round(2, trained_on="rounds/1/shaping/reward.py"),
    ]
    names = [each.name for each in trainings(tmp_path, rounds)]
    assert names == ["round 1, reward of round 0", "round 2, reshaped reward of round 1", "round 10"]


def test_numbers() -> None:
    assert [number(value) for value in (None, float("nan"), 0.0, -0.0, -1.5, 12345.678, float("-inf"))] == [
        *("–", "–", "0", "0", "−1.5", "1.235e+04", "−inf")
    ]
    assert [fixed(value, 2) for value in (None, -1.004, 1e12, 1234.5, -0.001)] == [
        *("–", "−1.00", "1e+12", "1,234.50", "0.00")
    ]
    assert [share(value) for value in (None, 1.0, 0.99999, 0.0)] == ["–", "100 %", "99.99 %", "0.00 %"]
    assert [digits(spread) for spread in (0.0, 1.0, 0.05, 400.0, 1e9, 1e-12)] == [4, 2, 4, 0, 0, 8]


@given(st.text())
def test_a_line_is_one_line_that_hides_nothing(text: str) -> None:
    found = line(text)
    assert found.isprintable()
    assert len(found) <= 401


@given(st.text())
def test_source_is_escaped_whatever_it_is(source: str) -> None:
    from lxml import html

    tree = html.fromstring(f"<pre>{highlighted(source)}</pre>")
    assert {element.tag for element in tree.iter()} <= {"pre", "span"}
    assert all(letter.isprintable() or letter in "\n\t" for letter in tree.text_content())


def test_source_stays_what_it_is() -> None:
    source = "def größe(x):\r\n\treturn 'a\u202eb' < 1  # ☃\n"
    text = str(highlighted(source))
    assert "größe" in text
    assert "\\u202e" in text
    assert "\u202e" not in text
    assert "&lt;" in text
