"""Images through files, the sandbox, scrambling, prompts, pictures, environments and whole runs."""

from __future__ import annotations

import base64
import io
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import grace_irl
from grace_irl.cli import main
from grace_irl.demos import load, save
from grace_irl.demos.files import Format
from grace_irl.demos.labels import label
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.errors import InputError
from grace_irl.propose.views.registry import view_of
from grace_irl.sandbox import open_sandbox
from grace_irl.states import as_state, pixels
from grace_irl.states.grid import GRID
from grace_irl.states.image import IMAGE
from grace_irl.states.record import RecordStates
from tests.propose.client import server as behaviours
from tests.propose.client.server import ChatServer
from tests.runs.goal_world import CLEANING
from tests.states.pictures import REACHED, Ball, balls, picture

Image = pytest.importorskip("PIL.Image")

LOOKS = """
import numpy as np


class Reward:
    def reward_fn(self, state):
        assert type(state) is np.ndarray and state.dtype == np.int64 and state.ndim == 3, state.dtype
        lowest = int((state[:, :, 0] - state[:, :, 1]).min())
        state[:] = 0  # a copy of its own
        return lowest
"""

WRONG = REACHED.replace("rows.mean() > 17 and", "rows.mean() > 17 or")


@pytest.fixture(autouse=True)
def _minari_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))


def digests(found: Demonstrations) -> list[str]:
    return [item.trajectory.digest for item in found]


def other(channels: int, kind: str = "image") -> Demonstrations:
    rng = np.random.default_rng(channels)
    made = [rng.integers(0, 256, (5, 12, 10, channels), dtype=np.uint8) for _ in range(3)]
    return Demonstrations(
        Metadata(kind, label="last"), tuple(Demonstration(Trajectory(each, kind=kind), "expert") for each in made)
    )


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize(
    ("name", "format"), [("set.parquet", None), ("set.npz", None), ("set-v0", "minari"), ("set-v0", "minari-arrow")]
)
def test_files_hold_images(name: str, format: Format | None, channels: int, tmp_path: Path) -> None:
    if format is not None:
        pytest.importorskip("minari")
    wanted = other(channels)
    save(wanted, tmp_path / name, format)
    found = load([tmp_path / name])
    assert found.metadata.kind == "image"
    assert digests(found) == digests(wanted)
    assert found[0].trajectory.states.dtype == np.uint8
    assert found[0].trajectory.states.shape == (5, 12, 10, channels)


def test_commands_on_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(balls(), tmp_path / "set.parquet")
    assert main(["demos", "convert", str(tmp_path / "set.parquet"), str(tmp_path / "set.npz")]) == 0
    assert digests(load([tmp_path / "set.npz"])) == digests(balls())
    select = ["demos", "select", "--from", str(tmp_path / "set.npz"), "--from-role", "expert", "--held-out", "0.5"]
    assert main([*select, "--out", str(tmp_path / "some.parquet")]) == 0
    some = load([tmp_path / "some.parquet"])
    assert some.metadata.kind == "image"
    assert [item.split for item in some].count("held_out") == 3
    capsys.readouterr()
    pictures = ["--images", str(tmp_path / "pictures")]
    assert main(["demos", "inspect", str(tmp_path / "set.parquet"), *pictures]) == 0
    said = capsys.readouterr().out
    assert "states are images: set.parquet states it" in " ".join(said.split())
    assert "red" in said
    assert sorted(path.name for path in (tmp_path / "pictures").iterdir())[0].startswith("expert-0")
    shown = [line for line in said.splitlines() if any(shade in line for shade in "#%@+=*")]
    assert len(shown) >= 5  # rows of characters


def test_sides_may_differ_and_channels_may_not(tmp_path: Path) -> None:
    small, large = (np.full((2, side, side + 1, 3), side, np.uint8) for side in (6, 9))
    items = tuple(Demonstration(Trajectory(each, kind="image"), "expert") for each in (small, large))
    save(Demonstrations(Metadata("image"), items), tmp_path / "set.parquet")
    assert [item.trajectory.states.shape[1:] for item in load([tmp_path / "set.parquet"])] == [(6, 7, 3), (9, 10, 3)]
    grey = Demonstration(Trajectory(small[..., :1], kind="image"), "expert")
    with pytest.raises(InputError, match=r"images of 1 channels, but of 3 in the first trajectory"):
        Demonstrations(Metadata("image"), (*items, grey))
    for states in (small[..., :2], small.astype(np.float32), small.transpose(0, 3, 1, 2)):
        with pytest.raises(InputError, match=r"expected bytes \(T\+1, h, w, 1, 3 or 4\)"):
            Trajectory(states, kind="image")


def test_memory_is_asked_for(tmp_path: Path) -> None:
    states = np.random.default_rng(0).integers(0, 255, (40, 84, 84, 3), dtype=np.uint8)
    item = Demonstration(Trajectory(states, kind="image"), "expert")
    for name in ("set.parquet", "set.npz"):
        save(Demonstrations(Metadata("image"), (item,)), tmp_path / name)
        with pytest.raises(InputError, match=r"needs .* of memory"):
            load([tmp_path / name], max_memory="400K")
        assert len(load([tmp_path / name], max_memory="16M")) == 1


@pytest.mark.parametrize("mode", ["batch", "strict"])
def test_programs_get_wide_copies(mode: str) -> None:
    trajectories = [item.trajectory for item in balls()]
    with open_sandbox(workers=1) as sandbox:
        outcome = sandbox.run(LOOKS, sandbox.put(trajectories), range(len(trajectories)), mode=mode)  # type: ignore[arg-type]
    assert (outcome.status, outcome.message) == ("ok", "")
    assert {reward for rewards in outcome.rewards for reward in rewards} == {-130.0}  # and not 126, as bytes have it


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_a_state_is_handed_alike_whatever_its_kind(channels: int) -> None:
    state = other(channels)[0].trajectory.states[0]
    handed = as_state(state)
    assert handed.dtype == np.int64
    assert handed.shape == state.shape
    if channels == 3:
        np.testing.assert_array_equal(GRID.as_state(state), IMAGE.as_state(state))


def test_a_scrambled_copy_keeps_what_is_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(balls(), tmp_path / "set.parquet")
    scramble = ["demos", "scramble", str(tmp_path / "set.parquet")]
    assert main([*scramble, str(tmp_path / "copy.parquet"), "--seed", "3"]) == 0
    again = [*scramble, str(tmp_path / "again.npz"), "--map", str(tmp_path / "copy.scramble.json")]
    assert main(again) == 0
    copy = load([tmp_path / "copy.parquet"])
    assert copy.metadata.kind == load([tmp_path / "again.npz"]).metadata.kind == "image"
    assert digests(copy) == digests(load([tmp_path / "again.npz"])) != digests(balls())
    for one, mine in zip(copy, balls(), strict=True):
        assert one.trajectory.extra_info != mine.trajectory.extra_info
        for channel in range(3):
            counts = [
                sorted(np.unique(each.trajectory.states[..., channel], return_counts=True)[1].tolist())
                for each in (one, mine)
            ]
            assert counts[0] == counts[1]
    about = json.loads((tmp_path / "copy.scramble.json").read_text())
    assert about["kind"] == "image"
    assert about["transpose"] or any(about["flip"])
    save(other(1), tmp_path / "grey.parquet")
    capsys.readouterr()
    grey = ["demos", "scramble", str(tmp_path / "grey.parquet"), str(tmp_path / "no.parquet")]
    assert main([*grey, "--map", str(tmp_path / "copy.scramble.json")]) == 2
    assert "states of 1 channels; expected 3, for which the map was made" in capsys.readouterr().err
    assert not (tmp_path / "no.parquet").exists()


def test_prompts_without_pictures_say_shape_and_colours() -> None:
    problem = label(balls(), "last")
    view = view_of(problem.train, balls().metadata)
    assert "numpy array of int64 with shape (h, w, 3)" in view.about
    assert "20 x 20" in view.about
    legend = view.legend(2000)
    assert re.search(r"~?\(16,176,48\) \d\.\d%", legend)
    assert re.search(r"Positive states: mean of each channel .*\d", legend)
    first, second = picture(2, 3), picture(6, 3)
    assert "(200,20,30) 16 in rows 2..5, columns 3..6" in view.state(first)
    assert "(30,160,40) 36 in rows 14..19, columns 14..19" in view.state(first)
    assert re.search(r"~\(\d+,\d+,\d+\) \d+ in rows 0", view.state(first))
    noise = np.random.default_rng(0).integers(0, 256, first.shape, dtype=np.uint8)
    assert "more colours" in view.state(noise)
    assert view.change(first, first) == "no change"
    assert re.fullmatch(r"now \(200,20,30\) 16 in rows 6..9, columns 3..6; ~.*", view.change(first, second))
    assert view.change(first, noise).endswith(f"more colours {view.change(first, noise).split()[-1]}")
    flat = np.zeros((20, 20, 3), np.uint8)
    dot = flat.copy()
    dot[4, 5] = 9
    assert view.change(flat, dot) == "now (9,9,9) 1 in rows 4..4, columns 5..5"
    coarser = view.coarser
    assert coarser is not None
    assert coarser is view.coarser
    assert coarser.legend(2000) == legend
    assert len(coarser.state(noise)) < len(view.state(noise))


def test_the_synthesiser_has_no_words_for_pixels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(balls(), tmp_path / "set.parquet")
    command = ["fit", "--demos", str(tmp_path / "set.parquet"), "--out", str(tmp_path / "run")]
    for more in ([], ["--proposer", "manual", "--seed-synthesis", "2"]):
        assert main([*command, *more]) == 2
        said = capsys.readouterr().err
        assert "the synthesiser cannot read images" in said
        assert "--llm-url" in said
        assert len(said.strip().splitlines()) == 1
        assert not (tmp_path / "run").exists()


def model(prompt: str) -> str:
    """Knows the goal states of balls, and answers the second program request rightly."""
    if CLEANING in prompt:
        found = re.search(r"Trajectory 1: (\d+) states", prompt)
        assert found is not None
        return f"The ball is in the corner.\n\ntrajectory 1: {found[1]}"
    source = REACHED if zlib.crc32(prompt.encode()) % 3 else WRONG
    return f"A ball.\n\n```python\n{source}```\n"


def fitted(folder: Path, demos: Path, server: ChatServer, *more: str) -> None:
    few = ["--population", "4", "--elite", "2", "--generations", "1", "--answer-format", "code", "--workers", "1"]
    command = ["fit", "--demos", str(demos), "--llm-url", server.url, "--out", str(folder), *few, *more]
    assert main(command) == 0


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["last", "goal"])
def test_a_model_that_sees_recovers_the_reward(rule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(
        tmp_path / "expert.npz",
        observations=np.concatenate([item.trajectory.states for item in balls().select(role="expert")]),
        episode_lengths=[len(item.trajectory.states) for item in balls().select(role="expert")],
    )
    save(balls().select(role="negative"), tmp_path / "negative.parquet")
    with ChatServer(answer=model) as server:
        demos = ["--demos", str(tmp_path / "negative.parquet")]
        fitted(tmp_path / "run", tmp_path / "expert.npz", server, *demos, "--label", rule, "--images")
        prompts = [(behaviours.prompt_text(each), json.dumps(each)) for each in server.payloads]
    said = capsys.readouterr()
    assert "states are images: negative.parquet states it" in said.out + said.err
    with_pictures = [raw for text, raw in prompts if "# Pictures" in text]
    assert len(with_pictures) == len(prompts)
    assert any(CLEANING in text for text, _ in prompts) == (rule == "goal")
    files = re.findall(r"data:image/png;base64,([A-Za-z0-9+/=]+)", with_pictures[0])
    (tmp_path / "shown.png").write_bytes(base64.b64decode(files[0]))
    with Image.open(tmp_path / "shown.png") as image:
        assert image.size == (500, 500)  # 25 pixels for each of 20
        corner = image.convert("RGB").getpixel((499, 499))
    assert corner in ((200, 20, 30), (30, 160, 40))
    score = ["score", str(tmp_path / "run" / "reward.py"), "--demos", str(tmp_path / "expert.npz"), "--json"]
    assert main([*score, "--negatives", str(tmp_path / "negative.parquet"), "--label", "last"]) == 0
    about = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert about["accuracy"] == 1.0
    assert about["kind"] == "states are images: negative.parquet states it"
    page = (tmp_path / "run" / "report.html").read_text()
    assert "data:image/png;base64," in page
    assert 'aria-label="the image of state' in page


@pytest.mark.slow
def test_a_model_sees_the_scrambled_pictures(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("set.parquet", "copy.parquet")]
    save(balls(), tmp_path / "set.parquet")
    assert main(["demos", "scramble", *paths, "--seed", "3"]) == 0
    copy = load([tmp_path / "copy.parquet"])
    ends = [item.trajectory.states[-1] for item in copy.select(role="expert")]
    others = np.concatenate([item.trajectory.states for item in copy.select(role="negative")])
    same = np.logical_and.reduce([end == ends[0] for end in ends]) & ~(others == ends[0]).any(axis=0)
    row, column, channel = (int(places[0]) for places in np.nonzero(same))
    code = int(ends[0][row, column, channel])
    source = f"""class Reward:
    def reward_fn(self, state):
        return float(state[{row}, {column}, {channel}] == {code})
"""
    with ChatServer(answer=lambda prompt: f"A pixel.\n\n```python\n{source}```\n") as server:
        fitted(tmp_path / "run", tmp_path / "copy.parquet", server, "--images")
        sent = [json.dumps(each) for each in server.payloads]
    told = [item.trajectory.extra_info for item in balls()]
    assert told[0]
    assert not any(words in prompt for words in told for prompt in sent)
    colours = set()
    for found in re.findall(r"data:image/png;base64,([A-Za-z0-9+/=]+)", sent[0]):
        with Image.open(io.BytesIO(base64.b64decode(found))) as image:
            colours |= {colour for _, colour in image.convert("RGB").getcolors(1 << 24)}
    stated = {tuple(pixel) for item in copy for pixel in item.trajectory.states.reshape(-1, 3).tolist()}
    plain = {tuple(pixel) for item in balls() for pixel in item.trajectory.states.reshape(-1, 3).tolist()}
    assert len(colours & stated) > 20
    assert len(colours & plain) < len(colours & stated) / 4
    score = ["score", str(tmp_path / "run" / "reward.py"), "--demos", str(tmp_path / "copy.parquet")]
    assert main(score) == 0


def test_a_kind_does_not_change_on_resume(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(balls(), tmp_path / "set.parquet")
    with ChatServer(answer=model) as server:
        fitted(tmp_path / "run", tmp_path / "set.parquet", server)
        capsys.readouterr()
        assert main(["fit", "--resume", str(tmp_path / "run"), "--generations", "2", "--kind", "grid"]) == 2
    said = capsys.readouterr().err
    assert len(said.strip().splitlines()) == 1
    assert "data.kind" in said


def test_a_run_goes_on_is_replayed_and_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(balls(), tmp_path / "set.parquet")
    with ChatServer(answer=model) as server:
        fitted(tmp_path / "run", tmp_path / "set.parquet", server)
        assert not any("# Pictures" in behaviours.prompt_text(each) for each in server.payloads)
        resume = ["fit", "--resume", str(tmp_path / "run"), "--generations", "2"]
        assert main(resume) == 0
    assert main(["fit", "--replay", str(tmp_path / "run"), "--out", str(tmp_path / "again")]) == 0
    rewards = [(tmp_path / name / "reward.py").read_text() for name in ("run", "again")]
    programs = [text[text.index("class Reward") :] for text in rewards]
    assert programs[0] == programs[1]
    assert main(["export", str(tmp_path / "run"), "--recording", str(tmp_path / "recording.jsonl")]) in (0, 2)
    capsys.readouterr()


def test_wrapped_environments_pay_what_the_sandbox_pays(tmp_path: Path) -> None:
    import gymnasium

    (tmp_path / "reward.py").write_text(REACHED)
    trusted, alone = (grace_irl.load_reward(tmp_path / "reward.py", trust=trust) for trust in (True, False))
    assert trusted("").reward_fn(picture(16, 16)) == 1.0
    assert trusted("").reward_fn(picture(3, 16)) == 0.0
    wrapped = [alone.wrap(Ball()), trusted.wrap(Ball())]
    paid: list[list[float]] = []
    for environment in wrapped:
        environment.reset(seed=0)
        paid.append([float(environment.step(action)[1]) for action in (0, 1, 0, 1, 0, 1, 0, 1)])
        environment.close()
    assert paid[0] == paid[1]
    assert paid[0][0] == 0.0
    assert paid[0][-1] == 1.0
    several = alone.wrap_vec(gymnasium.vector.SyncVectorEnv([Ball] * 2))
    several.reset(seed=0)
    assert several.step(np.zeros(2, np.int64))[1].tolist() == [0.0, 0.0]
    several.close()


def test_collect_decides_by_what_it_saw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environment = f"{Path(__file__).parent / 'pictures.py'}:make"
    collect = ["collect", "--env", environment, "--policy", "random", "--episodes", "3", "--role", "negative"]
    assert main([*collect, "--out", str(tmp_path / "negative.parquet")]) == 0
    assert "states are images: at least" in " ".join(capsys.readouterr().out.split())
    assert load([tmp_path / "negative.parquet"]).metadata.kind == "image"
    assert main([*collect, "--out", str(tmp_path / "negative-grid.parquet"), "--kind", "grid"]) == 0
    assert load([tmp_path / "negative-grid.parquet"]).metadata.kind == "grid"


def test_records_show_their_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = picture(1, 1), picture(9, 9)[..., :1]
    states = RecordStates({"pixels": np.stack([one, one]), "wrist": np.stack([two, two]), "x": np.zeros((2, 1))})
    bare = RecordStates({"x": np.zeros((2, 1)), "y": np.ones(2)})
    for name, each in (("set", states), ("bare", bare)):
        save(
            Demonstrations(Metadata("record"), (Demonstration(Trajectory(each), "expert"),)),
            tmp_path / f"{name}.parquet",
        )
    inspect = ["demos", "inspect", str(tmp_path / "set.parquet"), "--images", str(tmp_path / "pictures")]
    assert main(inspect) == 0
    with Image.open(tmp_path / "pictures" / "expert-0.png") as image:
        assert image.size == (1008, 500)
        assert image.convert("RGB").getpixel((50, 50)) == (200, 20, 30)
    capsys.readouterr()
    assert main(["demos", "inspect", str(tmp_path / "bare.parquet"), "--images", str(tmp_path / "none")]) == 2
    assert "no part of these records is an image" in capsys.readouterr().err


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_a_png_file_shows_every_pixel(channels: int) -> None:
    image = other(channels)[0].trajectory.states[0]
    with Image.open(io.BytesIO(pixels.png(image))) as found:
        shown = np.asarray(found)
    np.testing.assert_array_equal(shown.reshape(image.shape), image)


def test_large_images_are_shown_smaller() -> None:
    image = np.zeros((301, 200, 3), np.uint8)
    image[:150] = 100
    small = pixels.reduced(image, 100, 100)
    assert small.shape == (76, 50, 3)
    assert small[0, 0].tolist() == [100] * 3
    assert small[-1, -1].tolist() == [0] * 3
    assert small[37, 0].tolist() == [50] * 3  # rows 148 to 151
    assert pixels.enlarged(small, 512).shape == (456, 300, 3)


def test_a_long_film_is_written_and_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.parquet as pq

    monkeypatch.setattr("grace_irl.demos.parquet.writer.NUMBERS", 10_000)
    monkeypatch.setattr("grace_irl.demos.parquet.source.HEAVY_NUMBERS", 5_000)
    film = np.random.default_rng(0).integers(0, 256, (101, 20, 20, 3), dtype=np.uint8)
    items = tuple(
        Demonstration(Trajectory(each, np.arange(len(each) - 1), terminated=True, kind="image"), "expert")
        for each in (film, film[:3])
    )
    save(Demonstrations(Metadata("image"), items), tmp_path / "set.parquet")
    assert pq.ParquetFile(tmp_path / "set.parquet").metadata.num_row_groups == 13  # of eight states, but the last
    found = load([tmp_path / "set.parquet"])
    assert digests(found) == [item.trajectory.digest for item in items]
    assert [item.trajectory.terminated for item in found] == [True, True]


@pytest.mark.parametrize(
    ("states", "said"),
    [
        (np.zeros((4, 3, 32, 32), np.uint8), "expected the channels last"),
        (np.zeros((4, 1, 32, 32), np.float32), "expected the channels last"),
        (np.zeros((4, 32, 32, 3), np.float32), r"expected integers: .* np.uint8\(np.round\(255 \* states\)\)"),
        (np.zeros((4, 8, 8, 2), np.int64), r"expected integers of shape \(T\+1, h, w, 3\), or pictures"),
    ],
)
def test_pictures_in_another_form_are_told_how_to_become_bytes(states: NDArray[Any], said: str) -> None:
    with pytest.raises(InputError, match=f"here: grid states are .*; {said}"):
        GRID.check(states, "here")
