"""Scrambled screens: nothing reads as before, and what hangs together still does."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from grace_irl.demos import load, save
from grace_irl.demos.convert import scramble
from grace_irl.demos.scramble import ScrambleMap
from grace_irl.demos.screenshots import FileScreenshot
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.states.screen import TRUTHS, disguised, in_other_words
from grace_irl.states.texts import pack, text
from grace_irl.states.ui import markup
from tests.demos.ui import data


def screen(**values: object) -> str:
    root = markup.hierarchy(1)
    inner = markup.add(root, {"class": "android.widget.FrameLayout", "NAF": True, "bounds": "[0,0][1080,99]"})
    markup.add(inner, values)
    return markup.write(root)


def made(*states: str, instruction: str = "") -> Demonstration:
    shot = (FileScreenshot(Path("a.png")),) * len(states)
    return Demonstration(Trajectory(pack(states), extra_info=instruction, screenshots=shot), "expert")


def test_words_agree_in_all_places_and_spellings() -> None:
    words = {"set": "x", "alarm": "bodiga", "the": "y", "tab": "zulo", "am": "reto", "for": "q"}
    put = in_other_words("Set the alarm FOR 8:25 AM: alarm_tab, alarmTab", words.__getitem__)
    assert put == "X y bodiga Q 8:25 RETO: bodiga_zulo, bodigaZulo"


def test_marks_belong_to_their_word() -> None:
    """The vowels of Hindi are marks, and so are accents of their own."""
    met: list[str] = []

    def word(old: str) -> str:
        met.append(old)
        return "zulo"

    said = "चालू करें 8:25, हिन्दी_alarm, cafe\u0301s, größer, ตั้งปลุก"
    assert in_other_words(said, word) == "zulo zulo 8:25, zulo_zulo, zulozulo, zulozulozulo, zulo"
    assert met == ["चालू", "करें", "हिन्दी", "alarm", "cafe\u0301", "s", "gr", "öß", "er", "ตั้งปลุก"]


def test_what_stays_and_what_does_not() -> None:
    state = screen(
        text="true 8:25 AM", checked=True, **{"resource-id": "com.clock:id/alarm", "content-desc": "Alarm 12"}
    )
    item = made(state, state, instruction="Set an Alarm for 8:25")
    table = ScrambleMap.draw(3, item.trajectory)
    copy = table.apply(item)
    (found,) = {text(each) for each in copy.trajectory.states}
    old, new = markup.parse(state), markup.parse(found)
    word = table.words
    for one, other in zip(old.iter(), new.iter(), strict=True):
        assert list(one.attrib) == list(other.attrib)
        for name in ("bounds", "checked", "index", "NAF", "rotation"):
            assert one.get(name) == other.get(name)
    node = list(new.iter("node"))[1]
    assert node.get("text") == f"{word['true']} 8:25 {word['am'].upper()}"
    assert node.get("content-desc") == f"{word['alarm'].capitalize()} 12"
    assert node.get("resource-id") == f"{word['com']}.{word['clock']}:{word['id']}/{word['alarm']}"
    assert word["alarm"].capitalize() in copy.trajectory.extra_info
    assert copy.trajectory.extra_info.endswith("8:25")
    assert copy.trajectory.screenshots == ()
    assert len(set(word.values())) == len(word)
    assert not set(word) & set(word.values())


def test_a_map_serves_again(tmp_path: Path) -> None:
    state = screen(text="Set an alarm")
    whole = Demonstrations(Metadata("ui", view="uiautomator"), (made(state, instruction="alarm"),))
    save(whole, tmp_path / "a.parquet", screenshots="none")
    _, place = scramble([tmp_path / "a.parquet"], tmp_path / "b.parquet", 5)
    scramble([tmp_path / "a.parquet"], tmp_path / "c.parquet", 0, place)
    first, second = load([tmp_path / "b.parquet"]), load([tmp_path / "c.parquet"])
    assert first[0].trajectory.digest == second[0].trajectory.digest
    assert first.metadata.view == "scrambled"
    assert ScrambleMap.load(place).kind == "ui"


@data.needs_android
def test_nothing_of_a_recorded_episode_can_be_read() -> None:
    table = ScrambleMap.draw(0, made(screen(text="Alarm")).trajectory)
    files = data.DUMPS
    for file in files:
        state = markup.write(markup.parse(file.read_bytes(), str(file)))
        found = disguised(state, table._word)
        values = [value for node in markup.parse(found).iter("node") for value in node.attrib.values()]
        words = {word.lower() for value in values for word in re.findall("[A-Za-z]+", value)} - set(TRUTHS)
        assert words
        assert not words & set(table.words)
        assert len(markup.parse(found).xpath("//node")) == len(markup.parse(state).xpath("//node"))
    assert len({disguised(f.read_text(), table._word) for f in files}) == len({f.read_text() for f in files})


def test_what_was_done_in_words_is_left_out() -> None:
    item = made(screen(text="Alarm"), screen(text="8:25"))
    said = {"action_texts": ('{"app_name": "Clock"}',), "step_instructions": ("tap Alarm",)}
    item = replace(item, trajectory=replace(item.trajectory, **said))
    copy = ScrambleMap.draw(3, item.trajectory).apply(item).trajectory
    assert (copy.action_texts, copy.step_instructions, copy.screenshots) == ((), (), ())
