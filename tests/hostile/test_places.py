"""Places that a program may find on its machine: no folder of it, no user, no name, no command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from grace_irl.errors import GraceError
from grace_irl.sandbox.protocol import Mode
from grace_irl.sandbox.session import Begin, RewardSession
from grace_irl.states.layout import StateLayout
from grace_irl.states.vector import VECTOR
from tests.frame.tree import ROOT
from tests.hostile.referee import Contest

COLLECT = '''
import gc, sys, types

PLACES = [bytes.fromhex(text).decode() for text in """@PLACES@""".split()]


def told():
    """Every text that is reached from the modules and the frames at hand, and that names one of the places."""
    found, seen = [], []
    todo = [("sys.modules", sys.modules)]
    frame = sys._getframe()
    while frame is not None:
        todo.append((frame.f_code.co_name + "()", frame.f_code))
        frame = frame.f_back
    known = {id(PLACES), id(found), id(seen), id(todo)}
    while todo:
        where, value = todo.pop()
        if id(value) in known:
            continue
        known.add(id(value))
        seen.append(value)  # so that no other value gets its number
        if isinstance(value, bytes):
            value = value.decode("latin-1")
        if isinstance(value, str):
            if any(place in value for place in PLACES):
                found.append(where[-60:] + ": " + value[:80])
        elif isinstance(value, dict):
            for name, each in [*dict.items(value)]:
                todo.append((where + ".", name))
                todo.append((where + "." + str(name)[:20] if isinstance(name, str) else where, each))
        else:
            todo.extend((where + "/" + type(value).__name__, each) for each in gc.get_referents(value))
            if isinstance(value, types.CodeType):
                todo.append((where, value.co_filename))
                todo.append((where, value.co_consts))
    if len(seen) < 20000:
        found.append("looked at no more than " + str(len(seen)))
    return found
'''

LOOK = (
    COLLECT
    + """
class Reward:
    def reward_fn(self, state):
        found = told()
        if found:
            raise ValueError(" ".join(found[:8]))
        return 0.0
"""
)

COMMAND_LINE = """
import sys

class Reward:
    def reward_fn(self, state):
        if any(sys.orig_argv) or any(sys.argv) or sys.executable:
            raise ValueError(repr((sys.orig_argv, sys.argv, sys.executable)))
        return 0.0
"""

HOST_NAME = """
import sys

class Reward:
    def reward_fn(self, state):
        module = sys.modules.get("platform")
        return float(module is not None and module._uname_cache is not None)
"""

IMPORTED_IN_VAIN = (
    "from numpy import nothing_of_this_name\n\nclass Reward:\n    def reward_fn(self, state):\n        return 0.0\n"
)


def places() -> list[str]:
    """Folders whose names say who runs this, and where."""
    found = {str(ROOT), str(Path.home()), sys.prefix, sys.base_prefix, *sys.path}
    real = {os.path.realpath(each) for each in found if each}
    return sorted({*found, *real} - {"", "/", "/root", "/usr", "/usr/local", "/nonexistent", os.curdir})


def looking(source: str) -> str:
    # as numbers, so that the program's own text does not name them
    return source.replace("@PLACES@", " ".join(place.encode().hex() for place in places()))


@pytest.fixture(scope="module")
def contest() -> Iterator[Contest]:
    contest = Contest()
    yield contest
    contest.close()


@pytest.mark.parametrize("mode", ["batch", "strict"])
@pytest.mark.parametrize("source", [LOOK, COMMAND_LINE, HOST_NAME], ids=["modules", "command line", "host name"])
def test_nothing_that_a_program_reaches_names_a_place(contest: Contest, source: str, mode: Mode) -> None:
    outcome = contest.pool.run(looking(source), contest.handle, [0], mode=mode, checks=False)
    assert (outcome.status, outcome.message) == ("ok", "")
    assert not outcome.rewards[0].any()


def test_nothing_names_a_place_in_a_session(contest: Contest) -> None:
    state = contest.trajectories[0].states[0]
    source = looking(LOOK)
    with RewardSession(source, "reward.py", StateLayout.of(VECTOR, state), pool=contest.pool, checks=False) as session:
        session.turn((), None, (), [Begin(0, state, "")])


@pytest.mark.parametrize("mode", ["batch", "strict"])
def test_messages_name_no_place(contest: Contest, mode: Mode) -> None:
    outcome = contest.pool.run(IMPORTED_IN_VAIN, contest.handle, [0], mode=mode)
    assert "nothing_of_this_name" in outcome.message
    assert not [place for place in places() if place in outcome.message + outcome.traceback]


def test_messages_of_a_session_name_no_place(contest: Contest) -> None:
    state = contest.trajectories[0].states[0]
    session = RewardSession(IMPORTED_IN_VAIN, "reward.py", StateLayout.of(VECTOR, state), pool=contest.pool)
    with session, pytest.raises(GraceError, match="nothing_of_this_name") as caught:
        session.turn((), None, (), [Begin(0, state, "")])
    assert not [place for place in places() if place in str(caught.value)]
