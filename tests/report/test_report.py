"""The report of a run says what the run stored, and shows the states that matter."""

from __future__ import annotations

import base64
import io
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import html

from grace_irl.cli import main
from grace_irl.demos import load, save
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.errors import GraceError, InputError
from grace_irl.evaluate.separation import Separation
from grace_irl.report.write import GO_ON, UNSHOWN, report, write_report
from grace_irl.runs.run import best_record, opened
from grace_irl.runs.score import score
from grace_irl.states.texts import pack
from tests.fakes.scripted_proposer import ScriptedProposer
from tests.propose.screens import asking, things
from tests.report.conftest import SHIPPED, Given, fitted, program, vectors
from tests.report.pages import page, said, table, warnings
from tests.runs import expansions

Image = pytest.importorskip("PIL.Image")

TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:+]+|[\d,.]+ s\b")


def stored(run: Path) -> Any:
    with opened(run) as (store, _):
        return best_record(store, run)


def test_a_grid_run(grid_run: Path, tmp_path: Path) -> None:
    tree, best = page(grid_run, tmp_path / "report.html"), stored(grid_run)
    assert said(tree.find(".//h1")) == "Reward from datasets/babyai-go-to-obj"
    held_out = Separation.of(best.evaluation).held_out
    assert table(tree, "How the reward tells")[2][2:4] == [f"{held_out.auc:.4f}", f"{held_out.accuracy:.4f}"]
    assert "def reward_fn(self, state):" in said(tree.xpath("//pre[contains(@class, 'source')]")[0])
    assert [row[1:5] for row in table(tree, "Data")[1:]] == [["22", "22", "1,549", "22"], ["8", "8", "567", "8"]]
    facts = dict(table(tree, "How it was made"))
    assert facts["method"] == "grace, seed 0, log pi constant"
    assert facts["version"].startswith("grace-irl 0.1.0")
    assert facts["positive states"].startswith("the last state of each expert trajectory")
    cards = tree.xpath("//section[starts-with(@class, 'card')]")
    assert len(cards) == 8 + 4 * 3
    assert all(len(card.xpath(".//div[@class='grid']/svg//rect")) >= 8 for card in cards)
    assert "told: “go to" in said(cards[0])
    assert table(tree, "Lineage")[1][0] == best.program.id
    # Squares of the grid: the two commonest are named in the legend, too.
    assert "1 0 0" in {said(each) for each in tree.xpath("//ul[@class='legend']/li")}


def test_one_far_reward_does_not_round_the_others(tmp_path: Path) -> None:
    demos = vectors(tmp_path / "set.parquet")
    least = min(float(np.asarray(each.trajectory.states)[:, 1].min()) for each in load([demos]))
    source = program(f"-1e5 if state[1] <= {least!r} else state[1] / 1e4")
    tree = page(fitted(tmp_path / "run", demos, Given(source)), tmp_path / "report.html")
    rows = table(tree, "Rewards by label")[1:]
    assert any("−100,000" in row for row in rows)
    for row in rows:
        assert len({*row[2:7]}) == 5


@pytest.mark.slow
def test_swaps_are_shown_with_their_instruction(tmp_path: Path) -> None:
    pytest.importorskip("minigrid")
    # Pays the ends of experts' episodes under any instruction, so swaps are the negatives that are valued highest.
    experts = load([str(SHIPPED)]).select(role="expert")
    known = program(f"float(state.tolist() in {[np.asarray(each.trajectory.states)[-1].tolist() for each in experts]})")
    tree = page(fitted(tmp_path / "run", SHIPPED, Given(known), **{"data.swaps": True}), tmp_path / "report.html")
    assert not [each for each in warnings(tree) if each.startswith("States are not all shown")]
    cards = [each for each in tree.xpath("//section[contains(@class, 'card')]") if "negative (a swap)" in said(each)]
    assert cards
    for card in cards:
        assert "told: “go to the" in said(card)
        assert card.xpath(".//svg")


def test_the_figures_are_those_of_scoring_again(vector_run: Path, tmp_path: Path) -> None:
    tree = page(vector_run, tmp_path / "report.html")
    again = score(vector_run / "reward.py", load([vector_run.parent / "set.parquet"]), workers=1, allow_weak=True)
    groups = {row[0]: row for row in table(tree, "Rewards by label")[1:]}
    assert set(groups) == {
        f"{label}, {side}" for label in ("positive", "negative") for side in ("training", "held out")
    }
    expert = next(role for role in again.roles if role.group == "expert, positive")
    numbers = [float(groups[f"positive, {side}"][2].replace("−", "-")) for side in ("training", "held out")]
    assert min(numbers) == pytest.approx(expert.least, abs=5e-3)
    assert sum(int(row[1]) for row in groups.values()) == sum(role.states for role in again.roles)
    assert len(table(tree, "Generations")) > 1
    assert table(tree, "What became of candidates")[0] == ["fate", "candidates", "why"]


def test_vectors_stand_beside_what_their_fields_are_like(vector_run: Path, tmp_path: Path) -> None:
    tree = page(vector_run, tmp_path / "report.html")
    head, *rows = table(tree, "Positive states that are valued lowest")
    assert head == ["field", "positive, mean", "±", "negative, mean", "±", "1", "2", "3", "4"]
    assert [row[0] for row in rows] == ["[0] x", "[1] height", "[2] speed"]
    demos = load([vector_run.parent / "set.parquet"])
    with opened(vector_run) as (store, _):
        train = {row.digest for row in store.trajectories() if row.split == "train"}
    experts = [each.trajectory for each in demos if each.role == "expert" and each.trajectory.digest in train]
    states = np.concatenate([each.states for each in experts])
    assert float(rows[1][1].replace("−", "-")) == pytest.approx(states[:, 1].mean(), abs=6e-4)
    values = [value for row in demos for value in row.trajectory.states[:, 1].round(3)]
    assert all(float(cell.replace("−", "-")) in values for cell in rows[1][5:])


def test_mistakes_are_the_worst_ones_and_say_so(vector_run: Path, tmp_path: Path) -> None:
    tree, best = page(vector_run, tmp_path / "report.html"), stored(vector_run)
    with opened(vector_run) as (store, _):
        rows = store.trajectories()
        rewards = store.get(best.program.id, [row.digest for row in rows])
    negatives = np.concatenate([rewards[row.digest] for row in rows if row.role == "negative"])
    cards = tree.xpath("//h3[starts-with(., 'Negative states')]/following-sibling::div[1]/section")
    shown = [float(said(card.find(".//p[@class='value']")).replace("−", "-")) for card in cards]
    assert shown[0] == pytest.approx(negatives.max(), rel=1e-3)
    assert shown == sorted(shown, reverse=True)
    assert all("wrong side" in said(card) for card in cards)
    assert any("are not separated" in each for each in warnings(tree))


def test_real_screens_are_outlines_beside_drawings(android_run: Path, tmp_path: Path) -> None:
    tree = page(android_run, tmp_path / "report.html")
    (goal,) = tree.xpath("//h3[starts-with(., 'Positive states')]/following-sibling::div[1]/section")
    changes = said(goal.xpath(".//pre")[0])
    assert "CheckBox* 'S' #day_button_6 desc 'Saturday': unchecked -> checked" in changes
    assert "'8:25\\u200aAM' #digital_clock desc=text" in said(goal.xpath(".//details")[0])
    assert (tmp_path / "report.html").stat().st_size < 5_000_000
    for image in tree.iter("img"):
        kind, _, data = image.get("src").partition(",")
        assert kind == "data:image/png;base64"
        decoded = Image.open(io.BytesIO(base64.b64decode(data)))
        assert decoded.size == (int(image.get("width")), int(image.get("height")))
        assert image.get("alt").startswith("Drawing of the screen")
    assert any("No episode was held out" in each for each in warnings(tree))


@pytest.fixture
def screens(tmp_path: Path) -> Path:
    """A folder of dumps with a screenshot for the goal."""
    for role, last in (("expert", 7), ("negative", 3)):
        for number in range(2):
            folder = tmp_path / "demos" / f"{role}-{number}"
            (folder / "screenshots").mkdir(parents=True)
            for step, screen in enumerate(
                [things({"a": (number, False)}), asking("a", "7"), things({"a": (last, True)})]
            ):
                (folder / f"step_{step}.xml").write_text(screen)
            (folder / "task.json").write_text(f'{{"task": "warm a to {last}"}}')
            Image.new("RGB", (60, 90), "#123456").save(folder / "screenshots" / "step_2.png")
    return tmp_path / "demos"


def of_screens(screens: Path, folder: Path) -> Path:
    flags: dict[str, Any] = {"data.label": "last", "data.held_out": 0.0}
    for side in ("demos", "negatives"):
        flags[f"data.{side}"] = tuple(map(str, screens.glob("expert-*" if side == "demos" else "negative-*")))
    return fitted(folder, screens, Given(program("float('7\\u200a' in state)")), **flags)


def test_a_screenshot_is_shown_where_the_data_has_one(screens: Path, tmp_path: Path) -> None:
    run = of_screens(screens, tmp_path / "run")
    tree = page(run, tmp_path / "report.html")
    card = tree.xpath("//section[starts-with(@class, 'card')][.//h4[contains(., 'State 3 of 3')]]")[0]
    data = card.find(".//img").get("src").partition(",")[2]
    assert Image.open(io.BytesIO(base64.b64decode(data))).getpixel((30, 45)) == (18, 52, 86)
    assert [said(each) for each in card.xpath(".//img/following-sibling::p")] == ["screenshot", "drawing"]
    first = tree.xpath("//section[starts-with(@class, 'card')][.//h4[contains(., 'State 1 of 3')]]")[0]
    assert [said(each) for each in first.xpath(".//img/following-sibling::p")] == ["drawing"]


def test_a_screenshot_that_is_damaged_is_said(screens: Path, tmp_path: Path) -> None:
    for shot in screens.rglob("step_2.png"):
        shot.write_bytes(shot.read_bytes()[:60])
    tree = page(of_screens(screens, tmp_path / "run"), tmp_path / "report.html")
    card = tree.xpath("//section[starts-with(@class, 'card')][.//h4[contains(., 'State 3 of 3')]]")[0]
    assert "no picture: " in said(card)
    assert "cannot be decoded" in said(card)
    assert len(card.xpath(".//img")) == 1


def test_data_that_moved_away(vector_run: Path, tmp_path: Path) -> None:
    here = page(vector_run, tmp_path / "here.html")
    moved = (vector_run.parent / "set.parquet").rename(tmp_path / "moved.parquet")
    try:
        tree = page(vector_run, tmp_path / "report.html")
    finally:
        moved.rename(vector_run.parent / "set.parquet")
    (warning,) = [each for each in warnings(tree) if each.startswith("States are not all shown")]
    assert "set.parquet" in warning
    for caption in ("Rewards by label", "How the reward tells"):
        assert table(tree, caption) == table(here, caption)
    assert len(tree.xpath("//svg")) == len(here.xpath("//svg"))
    with pytest.raises(AssertionError):
        table(tree, "Positive states that are valued lowest")


def test_data_that_is_another_now(vector_run: Path, tmp_path: Path) -> None:
    vectors(tmp_path / "set.parquet", experts=3, seed=0)
    other = load([str(tmp_path / "set.parquet")])
    (warning,) = [each for each in warnings(page(vector_run, tmp_path / "r.html", other)) if each.startswith("States")]
    assert re.search(r"\d+ of 12 different trajectories are no longer in the demonstrations", warning)


def test_two_same_runs_have_the_same_page_but_for_times(tmp_path: Path) -> None:
    demos = vectors(tmp_path / "set.parquet")
    pages = [TIME.sub("", report(fitted(tmp_path / name, demos, ScriptedProposer()))) for name in "ab"]
    assert pages[0] == pages[1]
    assert report(tmp_path / "a") == report(tmp_path / "a")


def test_a_run_without_a_valid_program_says_why(tmp_path: Path) -> None:
    demos = vectors(tmp_path / "set.parquet")
    with pytest.raises(GraceError):
        fitted(
            tmp_path / "run",
            demos,
            Given(program("1 / 0")),
        )
    tree = page(tmp_path / "run", tmp_path / "report.html")
    assert said(tree.xpath("//p[@class='lead']")[0]) == "No valid reward was found."
    assert warnings(tree) == ["There is no valid program: see below why candidates failed."]
    assert "ZeroDivisionError" in str(table(tree, "What became of candidates"))
    assert not tree.xpath("//pre")
    assert "Data" in said(tree)


def test_a_run_that_was_interrupted_before_its_first_answer_says_so(tmp_path: Path) -> None:
    class Interrupts:
        async def propose(self, *_: Any) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(tmp_path / "run", vectors(tmp_path / "set.parquet"), Interrupts())
    tree = page(tmp_path / "run", tmp_path / "report.html")
    assert said(tree.xpath("//p[@class='lead']")[0]) == "No program has been tried yet."
    assert warnings(tree) == [GO_ON]
    with pytest.raises(AssertionError, match="no table"):
        table(tree, "What became of candidates")


def test_a_run_of_one_program_and_one_state(tmp_path: Path) -> None:
    items = [
        Demonstration(Trajectory(np.full((1, 2), float(role == "expert"))), role)  # type: ignore[arg-type]
        for role in ("expert", "negative")
    ]
    save(Demonstrations(Metadata("vector"), tuple(items)), tmp_path / "set.parquet")
    source = program("5.0")
    flags = {"stop.max_calls": 1, "data.held_out": 0.0}
    tree = page(fitted(tmp_path / "run", tmp_path / "set.parquet", Given(source), **flags), tmp_path / "report.html")
    assert "The reward is the same for every state." in warnings(tree)
    assert not tree.xpath("//h3[. = 'Rewards along trajectories']")


def test_a_reward_of_transitions_has_no_value_at_the_first_state(tmp_path: Path) -> None:
    demos = tmp_path / "set.parquet"
    items = vectors_with_actions()
    save(items, demos)
    source = program("float(next_state[1])", "state, action, next_state")
    tree = page(fitted(tmp_path / "run", demos, Given(source), **{"data.held_out": 0.0}), tmp_path / "report.html")
    counts = [int(row[1]) for row in table(tree, "Rewards by label")[1:]]
    assert counts == [6 * 11, 6 * 11]
    assert "State 1 of" not in said(tree)


def vectors_with_actions() -> Demonstrations:
    from tests.fakes.data import vector_set

    return vector_set(actions=True)


def test_a_reward_that_counts_is_found_out(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    items = [
        Demonstration(Trajectory(rng.normal(size=(length, 2))), role)
        for role, length in (("expert", 12), ("negative", 5))
        for _ in range(4)
    ]
    save(Demonstrations(Metadata("vector", label="last"), tuple(items)), tmp_path / "set.parquet")
    source = """
class Reward:
    def __init__(self, extra_info=None): self.n = 0
    def reward_fn(self, state):
        self.n += 1
        return float(self.n)
"""
    run = fitted(tmp_path / "run", tmp_path / "set.parquet", Given(source))
    assert any(
        "by the step, the length or the instruction" in each for each in warnings(page(run, tmp_path / "r.html"))
    )


def test_goal_states_are_those_that_were_marked(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    items = [
        Demonstration(Trajectory(rng.normal(size=(8, 2))), role, goals=(3, 7) if role == "expert" else None)  # type: ignore[arg-type]
        for role in ("expert", "negative")
        for _ in range(3)
    ]
    save(Demonstrations(Metadata("vector"), tuple(items)), tmp_path / "set.parquet")
    flags = {"data.held_out": 0.0, "data.label": "goal"}
    run = fitted(tmp_path / "run", tmp_path / "set.parquet", Given(program("float(state[0])")), **flags)
    tree = page(run, tmp_path / "report.html")
    assert [row[:2] for row in table(tree, "Rewards by label")[1:]] == [
        ["positive, training", "6"],
        ["negative, training", "42"],
    ]
    cards = tree.xpath("//h3[starts-with(., 'Positive states')]/following-sibling::div[1]/section/h4")
    assert {said(card).partition("State ")[2] for card in cards} == {"4 of 8", "8 of 8"}  # counted from 1


def test_an_expansion(expansion: Path, tmp_path: Path) -> None:
    tree = page(expansion, tmp_path / "report.html")
    head, *rows = table(tree, "Rounds")
    assert head[:4] == ["round", "steps", "rollouts", "like experts"]
    assert [row[0] for row in rows] == ["0", "1", "2"]
    assert "rounds that are complete: 2;" in said(tree.xpath("//p[@class='kicker']")[0])
    assert [row[5] for row in rows] == ["searched", "searched", "kept"]
    figures = tree.xpath("//section[@aria-labelledby='rounds']//figure")
    assert [said(each.find("figcaption")).partition(".")[0] for each in figures] == [
        "True return of the policy",
        "Paid in training by the recovered reward",
    ]
    assert [len(each.xpath(".//path[starts-with(@class, 'line')]")) for each in figures] == [2, 2]
    keys = [said(each) for each in figures[0].xpath(".//div[@class='keys']/span")]
    assert keys == ["round 1, reward of round 0", "round 2, reward of round 1"]
    assert "< 3.5" in said(tree.xpath("//pre[contains(@class, 'source')]")[0])


def test_an_expansion_has_its_own_rollouts_beside_demonstrations_of_the_user(
    expansion: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The user names the demonstrations: by a file, or as an object in memory. A damaged file of rollouts is no end."""
    copy, named = tmp_path / "run", tmp_path / "set.parquet"
    shutil.copytree(expansion, copy)
    save(expansions.demonstrations("all"), named)
    command = ["report", str(copy), "--demos", str(named)]
    assert main(command) == 0
    assert capsys.readouterr().err == ""
    assert UNSHOWN not in (copy / "report.html").read_text()
    write_report(copy, tmp_path / "memory.html", expansions.demonstrations("all"))
    assert UNSHOWN not in (tmp_path / "memory.html").read_text()
    (copy / "rounds" / "1" / "rollouts.parquet").write_text("damaged")
    assert main(command) == 0
    assert capsys.readouterr().err.startswith("grace-irl: some states of the run are not in --demos")


def test_an_expansion_whose_curves_are_missing_or_damaged(expansion: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(expansion, copy)
    (copy / "rounds" / "1" / "training" / "curve.json").unlink()
    (copy / "rounds" / "2" / "training" / "curve.json").write_text('[{"steps": 1, "mean": NaN}]')
    tree = page(copy, tmp_path / "report.html")
    assert "No training has left a learning curve yet." in said(tree)


def test_what_is_no_run_is_one_line(tmp_path: Path) -> None:
    for folder, message in (("nothing", "no such folder"), ("empty", "no run.db in it"), ("compared", "a comparison;")):
        if folder != "nothing":
            (tmp_path / folder).mkdir()
        if folder == "compared":
            (tmp_path / folder / "compare.toml").write_text("")
        with pytest.raises(InputError, match=message) as caught:
            write_report(tmp_path / folder)
        assert "\n" not in str(caught.value)
        assert not (tmp_path / folder / "report.html").exists()
    (tmp_path / "compared" / "jobs" / "random-3" / "fit").mkdir(parents=True)
    with pytest.raises(InputError, match="compared/jobs/random-3/fit:"):
        write_report(tmp_path / "compared")


def test_words_of_any_script_stay(tmp_path: Path) -> None:
    screen = '<hierarchy><node text="目標 ☃ ñ" class="a.TextView" bounds="[0,0][9,9]"/></hierarchy>'
    other = '<hierarchy><node text="x" class="a.TextView" bounds="[0,0][9,9]"/></hierarchy>'
    items = [
        Demonstration(Trajectory(pack([text, text]), extra_info="größer als Ω"), role, "задача")
        for role, text in (("expert", screen), ("negative", other))
    ]
    save(Demonstrations(Metadata("ui"), tuple(items)), tmp_path / "set.parquet")
    source = "# ☃\n" + program("float('☃' in state)")
    run = fitted(tmp_path / "run", tmp_path / "set.parquet", Given(source), **{"data.held_out": 0.0})
    text = report(run)
    for word in ("目標 ☃ ñ", "größer als Ω", "задача", "# ☃"):
        assert word in html.fromstring(text).text_content()
