"""Screens as they reach a program: texts, of which equal ones are handed over alike."""

from __future__ import annotations

import numpy as np
import pytest

from grace_irl.demos.trajectory import Trajectory
from grace_irl.sandbox.protocol import DebugRequest, Mode, Sandbox
from grace_irl.states.texts import pack
from tests.sandbox.samples import BOTH, TRANSITION, one

SCREENS = (
    '<hierarchy rotation="0"><node text="Alarm 8:25"/></hierarchy>',
    '<hierarchy rotation="0"><node text="Réveil à 8 h 25 — 起床 😀"/><node text="b"/></hierarchy>',
    '<hierarchy rotation="0"/>',
)

KEPT = {  # what `__init__` sets up, and how a screen gets there
    "an inner list of a copy": ("[[]]", "x = list(self.c); x[0] += [state]"),
    "an inner list of a slice": ("[[]]", "x = self.c[:]; x[0] += [state]"),
    "an inner list of an unpacked list": ("[[]]", "x = [*self.c]; x[0] += [state]"),
    "an inner list of a sum": ("[[]]", "x = self.c + []; x[0] += [state]"),
    "an inner list of a comprehension": ("[[]]", "x = [y for y in self.c]; x[0] += [state]"),
    "an inner list of a sorted copy": ("[[]]", "x = sorted(self.c); x[0] += [state]"),
    "an inner list of a product": ("[[]]", "x = self.c * 1; x[0] += [state]"),
    "an inner list of a dict's copy": ("{0: []}", "x = dict(self.c); x[0] += [state]"),
    "an inner list of an unpacked dict": ("{0: []}", "x = {**self.c}; x[0] += [state]"),
    "an inner list of a dict of it": ("[[]]", "x = {0: self.c[0]}; x[0] += [state]"),
    "an inner list of a pair": ("[[]]", "x = [self.c[0], 1]; x[0] += [state]"),
    "an inner set of a copy": ("[set()]", "x = list(self.c); x[0] |= {len(x[0])}"),
    "an inner list": ("[[]]", "self.c[0].append(state)"),
}

NODES = one("from lxml import etree\nreturn len(etree.fromstring(state)) + len(state) / 1000")


@BOTH
def test_screens_arrive_as_texts(sandbox: Sandbox, mode: Mode) -> None:
    handle = sandbox.put([Trajectory(pack(SCREENS), extra_info="é")])
    source = one(f"assert type(state) is str and state in {SCREENS!r}\nreturn {SCREENS!r}.index(state)")
    outcome = sandbox.run(source, handle, [0], mode=mode)
    assert outcome.status == "ok", outcome
    np.testing.assert_array_equal(outcome.rewards[0], [0, 1, 2])


@BOTH
@pytest.mark.parametrize(
    "body",
    [
        "import xml.etree.ElementTree as ET\nreturn len(ET.fromstring(state).findall('.//node'))",
        "from lxml import etree\nreturn etree.fromstring(state).xpath('count(//node)')",
        "from lxml import etree\nreturn len(etree.fromstring(state.encode(), etree.XMLParser(recover=True)))",
        "import lxml.html\nreturn len(lxml.html.fromstring(state).xpath('//node'))",
        "from lxml import objectify\nreturn objectify.fromstring(state).countchildren()",
        "from xml.dom import minidom\nreturn len(minidom.parseString(state).getElementsByTagName('node'))",
        "import re\nreturn len(re.findall('<node', state))",
    ],
)
def test_every_usual_way_to_read_them(sandbox: Sandbox, mode: Mode, body: str) -> None:
    handle = sandbox.put([Trajectory(pack(SCREENS))])
    outcome = sandbox.run(one(body), handle, [0], mode=mode)
    assert outcome.status == "ok", outcome
    np.testing.assert_array_equal(outcome.rewards[0], [1, 2, 0])


@BOTH
def test_equal_screens_in_many_trajectories(sandbox: Sandbox, mode: Mode) -> None:
    a, b, c = SCREENS
    together = [[a, b, a], [c], [b, b, c, a], [a]]
    handle = sandbox.put([Trajectory(pack(screens)) for screens in together])
    order = [2, 0, 3, 3, 1]
    outcome = sandbox.run(NODES, handle, order, mode=mode)
    assert outcome.status == "ok", outcome
    nodes = {a: 1, b: 2, c: 0}
    for index, rewards in zip(order, outcome.rewards, strict=True):
        expected = [nodes[screen] + len(screen) / 1000 for screen in together[index]]
        np.testing.assert_array_equal(rewards, expected)


@BOTH
def test_a_file_that_stores_them_wider_hands_over_the_same(sandbox: Sandbox, mode: Mode) -> None:
    narrow = pack(SCREENS)
    handle = sandbox.put([Trajectory(narrow), Trajectory(narrow.astype("S5000")), Trajectory(narrow[::-1])])
    source = one("return float(len(state) * 1000 + sum(map(ord, state)) % 1000)")
    outcome = sandbox.run(source, handle, [2, 1, 0], mode=mode)
    assert outcome.status == "ok", outcome
    np.testing.assert_array_equal(outcome.rewards[1], outcome.rewards[2])
    np.testing.assert_array_equal(outcome.rewards[0][::-1], outcome.rewards[2])


@BOTH
def test_a_screen_longer_than_a_pipe(sandbox: Sandbox, mode: Mode) -> None:
    wide = f'<hierarchy rotation="0"><node text="{"long " * 60_000}"/></hierarchy>'
    handle = sandbox.put([Trajectory(pack([SCREENS[0], wide, SCREENS[2]]))])
    outcome = sandbox.run(one("return float(len(state))"), handle, [0, 0], mode=mode)
    assert outcome.status == "ok", outcome
    np.testing.assert_array_equal(outcome.rewards[1], [len(SCREENS[0]), len(wide), len(SCREENS[2])])


@BOTH
def test_what_a_program_remembers_of_screens(sandbox: Sandbox, mode: Mode) -> None:
    source = (
        "class Reward:\n    def __init__(self, extra_info=None):\n        self.seen = []\n\n"
        "    def reward_fn(self, state):\n        self.seen.append(state)\n        return self.seen.count(state)\n"
    )
    handle = sandbox.put([Trajectory(pack([SCREENS[i] for i in (0, 1, 0, 0, 1)]))])
    outcome = sandbox.run(source, handle, [0, 0], mode=mode)
    np.testing.assert_array_equal(outcome.rewards, [[1, 1, 2, 3, 2]] * 2)


@BOTH
@pytest.mark.parametrize("name", KEPT)
def test_a_program_with_a_memory_sees_every_screen(sandbox: Sandbox, mode: Mode, name: str) -> None:
    begin, keep = KEPT[name]
    source = (
        f"class Reward:\n    def __init__(self, extra_info=None):\n        self.c = {begin}\n\n"
        f"    def reward_fn(self, state):\n        {keep}\n        return len(self.c[0])\n"
    )
    handle = sandbox.put([Trajectory(pack([SCREENS[i] for i in (0, 0, 1, 0, 1, 1)]))])
    outcome = sandbox.run(source, handle, [0, 0], mode=mode)
    np.testing.assert_array_equal(outcome.rewards, [[1, 2, 3, 4, 5, 6]] * 2)


@BOTH
def test_debug_texts_of_screens(sandbox: Sandbox, mode: Mode) -> None:
    source = (
        "class Reward:\n    def reward_fn(self, state):\n        return 0.0\n\n"
        "    def debug_fn(self, state):\n        return f'{type(state).__name__} {len(state)}'\n"
    )
    handle = sandbox.put([Trajectory(pack(SCREENS)), Trajectory(pack(SCREENS[:1]))])
    wanted = [DebugRequest(1, 2), DebugRequest(0, 0)]
    outcome = sandbox.run(source, handle, [1, 0], mode=mode, debug=wanted)
    assert outcome.debug == (f"str {len(SCREENS[2])}", f"str {len(SCREENS[0])}")


def test_sets_of_screens_are_compared_as_lists_of_texts(sandbox: Sandbox) -> None:
    source = one("return 0.0") + (
        "\n\ndef debug(expert_states, negative_states):\n"
        "    return f'{[len(s) for s in expert_states]} {[type(s).__name__ for s in negative_states]}'\n"
    )
    handle = sandbox.put([Trajectory(pack(SCREENS)), Trajectory(pack(SCREENS[:1]))])
    outcome = sandbox.debug_sets(source, handle, [(0, 2), (0, 0)], [(1, 0)])
    assert outcome.debug == (f"[{len(SCREENS[2])}, {len(SCREENS[0])}] ['str']",)


@BOTH
def test_screens_come_without_actions(sandbox: Sandbox, mode: Mode) -> None:
    handle = sandbox.put([Trajectory(pack(SCREENS), actions=np.zeros(2))])
    outcome = sandbox.run(TRANSITION, handle, [0], mode=mode)
    assert outcome.status == "contract"
    assert "the data holds states only" in outcome.message
