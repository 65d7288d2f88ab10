"""Screens in Parquet: texts that repeat are stored once, and whatever is there is checked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.demos import iter_trajectories, load, save
from grace_irl.demos.parquet.source import HEAVY_ROWS
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.errors import InputError
from grace_irl.states.texts import pack, text
from grace_irl.states.ui import markup
from tests.demos.conftest import screen
from tests.demos.equality import assert_same

SETS = st.lists(st.lists(st.lists(st.text(max_size=8), max_size=3), min_size=1, max_size=5), min_size=1, max_size=4)


def made(*trajectories: list[str]) -> Demonstrations:
    items = (Demonstration(Trajectory(pack(screens), extra_info="go"), "expert") for screens in trajectories)
    return Demonstrations(Metadata("ui", view="uiautomator"), tuple(items))


def of_others(path: Path, column: pa.Array, *, episodes: list[int] | None = None) -> Path:
    pq.write_table(pa.table({"episode": episodes or [0] * len(column), "state": column}), path)
    return path


@settings(max_examples=50)
@given(SETS)
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, sets: list[list[list[str]]]) -> None:
    path = tmp_path_factory.mktemp("set") / "set.parquet"
    whole = made(*([screen(*texts) for texts in trajectory] for trajectory in sets))
    save(whole, path)
    assert_same(load([path]), whole)


def test_the_digest_knows_nothing_of_padding() -> None:
    narrow = Trajectory(pack([screen("a"), screen("b")]))
    wide = replace(narrow, states=narrow.states.astype("S9999"))
    assert narrow.digest == wide.digest
    others = (pack([screen("b"), screen("a")]), pack([screen("a"), screen("a")]), pack([screen("a")]))
    assert len({narrow.digest, *(Trajectory(states).digest for states in others)}) == 4


def test_screens_that_repeat_cost_little(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    screens = [screen(random.bytes(30_000).hex()) for _ in range(4)]
    once, often = tmp_path / "once.parquet", tmp_path / "often.parquet"
    save(made(screens), once)
    save(made(*[screens * 5] * 20), often)
    assert often.stat().st_size < 1.1 * once.stat().st_size
    for column in range(pq.read_metadata(often).num_columns):
        about = pq.read_metadata(often).row_group(0).column(column)
        assert about.path_in_schema != "state" or about.has_dictionary_page
    found = load([often])
    assert len(found) == 20
    assert text(found[19].trajectory.states[19]) == screens[3]


def test_across_batches(tmp_path: Path) -> None:
    """Episodes that begin and end within batches, span several of them, and end with one."""
    lengths = (HEAVY_ROWS, 7, 2 * HEAVY_ROWS + 5, HEAVY_ROWS - 12, 1)
    whole = made(*([screen(f"{episode} {step % 9}") for step in range(n)] for episode, n in enumerate(lengths)))
    save(whole, tmp_path / "set.parquet")
    assert_same(load([tmp_path / "set.parquet"]), whole)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_texts_of_other_tools(kind: pa.DataType, tmp_path: Path) -> None:
    """A column of texts is one of screens; their spelling becomes the one that states have."""
    odd = '<?xml version="1.0" encoding="UTF-8"?>\n<hierarchy rotation=\'0\'>\n  <node text="a"  />\n</hierarchy>\n'
    path = of_others(tmp_path / "expert.parquet", pa.array([odd, screen("b"), odd], kind), episodes=[3, 3, 1])
    found = load([path])
    assert found.metadata == Metadata("ui", view="uiautomator")
    plain = '<hierarchy rotation="0"><node text="a"/></hierarchy>'
    assert [text(state) for item in found for state in item.trajectory.states] == [plain, screen("b"), plain]
    assert [item.trajectory.digest for item in iter_trajectories(path)] == [item.trajectory.digest for item in found]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ("", "not well-formed XML"),
        ("no XML", "not well-formed XML"),
        ("<hierarchy><node>", "not well-formed XML"),
        ("<html/>", "root <html>"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><hierarchy/>', "DOCTYPE"),
        ("<hierarchy>" + "<node>" * 9999 + "</node>" * 9999 + "</hierarchy>", "nested deeper than"),
    ],
)
def test_what_is_no_screen(found: str, said: str, tmp_path: Path) -> None:
    path = of_others(tmp_path / "expert.parquet", pa.array([screen("a"), found]))
    for read in (lambda: load([path]), lambda: list(iter_trajectories(path))):
        with pytest.raises(InputError, match=said) as caught:
            read()
        assert str(caught.value).startswith(f"{path}: episode 0, step 1: ")
        assert "\n" not in str(caught.value)


def test_texts_that_are_not_utf8(tmp_path: Path) -> None:
    offsets = pa.py_buffer(np.array([0, 2], np.int32))
    path = of_others(
        tmp_path / "expert.parquet", pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff\xfe")])
    )
    with pytest.raises(InputError, match=r"expert\.parquet: .*not UTF-8"):
        load([path])
    broken = Trajectory(np.array([b"<hierarchy/>", b"\xff"]), source="the odd one")
    whole = Demonstrations(Metadata("ui"), (Demonstration(broken, "expert"),))
    with pytest.raises(InputError, match="the odd one: a text that is not UTF-8"):
        save(whole, tmp_path / "set.parquet")
    assert not (tmp_path / "set.parquet").exists()


def test_a_state_that_is_null(tmp_path: Path) -> None:
    path = of_others(tmp_path / "expert.parquet", pa.array([screen("a"), None]))
    with pytest.raises(InputError, match="null"):
        load([path])


def test_each_text_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(made(*([screen(str(n % 3)) for n in range(40)] for _ in range(30))), tmp_path / "set.parquet")
    parsed = []
    parse = markup.parse
    monkeypatch.setattr(markup, "parse", lambda data, where="": parsed.append(data) or parse(data, where))
    assert len(load([tmp_path / "set.parquet"])) == 30
    assert len(parsed) == 3
