"""Sessions: programs that behave, programs that do not, and what is left of them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from grace_irl.errors import GraceError, InputError
from grace_irl.rewards.runner import SandboxedRunner
from grace_irl.sandbox import open_sandbox
from grace_irl.sandbox import session as sessions
from grace_irl.sandbox.pool import ZygotePool
from grace_irl.sandbox.session import Begin, RewardSession, SessionLimits
from grace_irl.states.grid import GRID
from grace_irl.states.kind import PartLayout
from grace_irl.states.layout import StateLayout
from grace_irl.states.vector import VECTOR
from tests.sandbox.samples import COUNTER, TRANSITION, one


@pytest.fixture(scope="module")
def pool() -> Iterator[ZygotePool]:
    with open_sandbox(workers=1) as pool:
        yield pool


FLOATS = StateLayout(VECTOR, [PartLayout("", "<f8", (2,))])


def begin(slot: int = 0, value: float = 0.0, text: str = "") -> Begin:
    return Begin(slot, np.array([value, 0.0]), text)


def opened(pool: ZygotePool, source: str, **options: object) -> RewardSession:
    return RewardSession(source, "reward.py", FLOATS, pool=pool, **options)  # type: ignore[arg-type]


def later(body: str) -> str:
    """A program that behaves on the first state, and then does `body`."""
    return one(f"if state[0] == 0:\n    return 0.0\n{body}")


def test_slots_hold_episodes_apart(pool: ZygotePool) -> None:
    with opened(pool, COUNTER) as session:
        assert session.turn((), None, (), [begin(0, text="ab"), begin(7)]).rewards.tolist() == []
        states = np.array([[0.25, 0], [0.5, 0]])
        assert session.turn((0, 7), None, states, [begin(7, text="a")]).rewards.tolist() == [202.25, 2.5]
        assert session.turn((7, 0), None, states).rewards.tolist() == [102.25, 203.5]


def test_many_large_states_go_through(pool: ZygotePool) -> None:
    """Far more than a pipe holds at once, in both directions."""
    source = one("return float(state.sum())")
    layout = StateLayout(GRID, [PartLayout("", "|u1", (40, 40, 3))])
    with RewardSession(source, "reward.py", layout, pool=pool) as session:
        states = np.random.default_rng(0).integers(0, 9, (500, 40, 40, 3), dtype=np.uint8)
        session.turn((), None, (), [Begin(slot, state, "") for slot, state in enumerate(states)])
        rewards = session.turn(range(len(states)), None, states).rewards
        np.testing.assert_array_equal(rewards, states.sum(axis=(1, 2, 3)))


def test_many_large_turns_go_through_before_anyone_reads_their_answers(pool: ZygotePool) -> None:
    """Both pipes are full again and again, with states in one direction and components in the other."""
    source = one("return float(state.sum())").rstrip() + (
        "\n    def terms_fn(self, state):\n        return {f'a long name {n:040}': n for n in range(60)}\n"
    )
    layout = StateLayout(GRID, [PartLayout("", "|u1", (40, 40, 3))])
    with RewardSession(source, "reward.py", layout, pool=pool, terms=True) as session:
        states = np.random.default_rng(0).integers(0, 9, (100, 20, 40, 40, 3), dtype=np.uint8)
        session.post((), None, (), [Begin(slot, state, "") for slot, state in enumerate(states[0])])
        for each in states:
            session.post(range(20), None, each)
        answers = session.settle()
    assert answers[0].rewards.tolist() == []
    np.testing.assert_array_equal([each.rewards for each in answers[1:]], states.sum(axis=(2, 3, 4)))
    assert {len(terms) for each in answers[1:] for terms in each.terms} == {60}


def test_a_turn_among_posted_ones_is_refused(pool: ZygotePool) -> None:
    with opened(pool, COUNTER) as session:
        session.post((), None, (), [begin()])
        with pytest.raises(ValueError, match="a turn after 1 posted ones"):
            session.turn((0,), None, np.ones((1, 2)))
        assert len(session.settle()) == 1
        assert session.turn((0,), None, np.ones((1, 2))).rewards.tolist() == [3.0]


def test_actions_reach_programs_that_take_them(pool: ZygotePool) -> None:
    vector = "class Reward:\n    def reward_fn(self, s, a, n):\n        return float(a[0] * 10 + a[1] + len(a))\n"
    with opened(pool, TRANSITION) as session:
        assert session.takes_action
        session.turn((), None, (), [begin(), begin(1, 5.0)])
        reached = np.array([[1.0, 0], [7.0, 0]])
        assert session.turn((0, 1), np.array([1, 2]), reached).rewards.tolist() == [11, 22]
        assert session.turn((0, 1), np.array([0, 0]), reached).rewards.tolist() == [0, 0]
    with opened(pool, vector) as session:
        session.turn((), None, (), [begin()])
        assert session.turn((0,), np.array([[1, 2]], np.float32), np.zeros((1, 2))).rewards.tolist() == [14]


@pytest.mark.parametrize(
    ("actions", "said"), [(None, "none"), (np.zeros(3), r"shape \(3,\)"), (np.zeros((1, 2, 2)), r"shape \(1, 2, 2\)")]
)
def test_actions_that_cannot_be_handed_over_are_bad_input(pool: ZygotePool, actions: object, said: str) -> None:
    with opened(pool, TRANSITION) as session:
        session.turn((), None, (), [begin()])
        with pytest.raises(InputError, match=f"reward.py: actions: .*{said}"):
            session.turn((0,), actions, np.zeros((1, 2)))  # type: ignore[arg-type]
        assert session.turn((0,), np.ones(1), np.ones((1, 2))).rewards.tolist() == [11]


def test_components_come_by_name(pool: ZygotePool) -> None:
    source = COUNTER + "\n    def terms_fn(self, state):\n        return {'n\\x1b[31m': self.n, 'first': state[0]}\n"
    with opened(pool, source, terms=True) as session:
        session.turn((), None, (), [begin()])
        assert session.turn((0,), None, np.ones((1, 2))).terms == ({"n": 2.0, "first": 1.0},)
    with opened(pool, COUNTER, terms=True) as session:
        session.turn((), None, (), [begin()])
        assert session.turn((0,), None, np.ones((1, 2))).terms == ({},)


@pytest.mark.parametrize(
    "said",
    [
        '[{"a": NaN}]',
        '[{"a": Infinity}]',
        '[{"a": 1e999}]',
        '[{"a": "nan"}]',
        '[{"a": true}]',
        '[{"a": null}]',
        "[[1]]",
        "[{}, {}]",
        "{}",
        "[" + "{" + ", ".join(f'"{n}": 1' for n in range(65)) + "}]",
        "[{" + f'"a": {10**400}' + "}]",
    ],
)
def test_components_that_are_forged_are_one_line(pool: ZygotePool, said: str) -> None:
    answer = f"np.float64(5).tobytes() + {said.encode()!r}"
    forged = f"data = {answer}\nos.write(4, b'\\x01' + len(data).to_bytes(4, 'little') + data)"
    with opened(pool, later(f"import os\n{forged}\nreturn 1.0"), terms=True, checks=False) as session:
        session.turn((), None, (), [begin()])
        with pytest.raises(GraceError, match=r"^reward\.py: (nonfinite: terms_fn: 'a' is (nan|inf)|killed: answered)"):
            session.turn((0,), None, np.ones((1, 2)))


def play(session: RewardSession, turns: int) -> None:
    for _ in range(turns):
        session.turn((0,), None, np.ones((1, 2)))
        time.sleep(0.01)  # what a program writes too much has time to arrive


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that has closed its pipes, and goes on, is given one second to end."""
    monkeypatch.setattr(sessions, "_END_S", 1.0)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("while True: pass", "timeout: no answer within 1 s"),
        ("import time\ntime.sleep(60)", "timeout: no answer within 1 s"),
        ("import os\nos._exit(3)", "killed: left with exit code 3"),
        ("import os\nos._exit(0)", "killed: ended before the session was over"),
        ("raise SystemExit", "killed: SystemExit"),
        ("import ctypes\nctypes.string_at(0)", "killed: died by signal SIGSEGV"),
        ("return float(len(' ' * 10**10))", "memory: MemoryError"),
        ("return float(len(np.ones(10**9)))", "memory"),
        ("return float('nan')", "nonfinite: reward nan"),
        ("return -float('inf')", "nonfinite: reward -inf"),
        ("return None", "type: reward_fn returned NoneType"),
        ("raise ValueError('a\\x1b[31m\\nb')", "runtime: ValueError: a"),
        ("import os\nos.write(4, b'\\xff' * 100)\nreturn 1.0", "killed: answered outside the protocol"),
        ("import os\nos.write(4, b'\\x01' + b'\\xff' * 4)\nreturn 1.0", "killed: answered outside the protocol"),
        ("import os\nos.write(4, b'\\x01\\x00\\x00\\x00\\x00')\nreturn 1.0", "killed: answered outside the protocol"),
        ("import os\nos.close(4)\nreturn 1.0", "killed"),
        ("import os\nos.close(3)\nos.close(4)\nwhile True: pass", "killed|timeout"),
        ("import os\nos.read(3, 1)\nreturn 1.0", "killed|timeout"),
    ],
)
def test_whatever_a_program_does_is_one_line(pool: ZygotePool, body: str, message: str) -> None:
    limits = SessionLimits(turn_s=1.0, memory_mb=256)
    session = opened(pool, later(body), limits=limits, checks=False)
    session.turn((), None, (), [begin()])
    start = time.monotonic()
    with pytest.raises(GraceError, match=f"^reward.py: ({message})") as caught:
        play(session, 3)
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert time.monotonic() - start < 60
    with pytest.raises(GraceError, match="the sandbox session is closed"):
        session.turn((0,), None, np.ones((1, 2)))


def post(session: RewardSession, turns: int) -> None:
    for _ in range(turns):
        session.post((0,), None, np.ones((1, 2)))
    session.settle()


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("while True: pass", "timeout: no answer within 1 s"),
        ("import os\nos._exit(3)", "killed: left with exit code 3"),
        ("raise ValueError('a')", "runtime: ValueError: a"),
        ("return float('nan')", "nonfinite: reward nan"),
        ("import os\nwhile True: os.write(4, b'\\x01' + bytes(4))", "killed: answered outside the protocol"),
        ("import os\nwhile True: os.write(4, bytes(5000))", "killed: answered outside the protocol"),
        ("import os\nos.write(4, b'\\x01\\xff\\xff\\xff\\x00')\nwhile True: os.write(4, b'x' * 60000)", "killed"),
        ("import os\nos.close(4)\nreturn 1.0", "killed"),
        ("import os\nos.close(3)\nos.close(4)\nwhile True: pass", "killed|timeout"),
    ],
)
def test_whatever_a_program_does_in_posted_turns_is_one_line(pool: ZygotePool, body: str, message: str) -> None:
    session = opened(pool, later(body), limits=SessionLimits(turn_s=1.0, memory_mb=256), checks=False)
    session.post((), None, (), [begin()])
    with pytest.raises(GraceError, match=f"^reward.py: ({message})") as caught:
        post(session, 20_000)  # more than the pipes hold
    assert "\n" not in str(caught.value)
    with pytest.raises(GraceError, match="the sandbox session is closed"):
        session.post((0,), None, np.ones((1, 2)))
    with pytest.raises(GraceError, match="the sandbox session is closed"):
        session.settle()


def test_a_slow_program_has_the_time_of_each_turn(pool: ZygotePool) -> None:
    """Six posted turns of 0.4 seconds, which take more than the limit of one turn together."""
    slow = later("import time\ntime.sleep(0.4)\nreturn 1.0")
    with opened(pool, slow, limits=SessionLimits(turn_s=1.5), checks=False) as session:
        session.post((), None, (), [begin()])
        for _ in range(6):
            session.post((0,), None, np.ones((1, 2)))
        assert [each.rewards.tolist() for each in session.settle()] == [[], *[[1.0]] * 6]


def test_an_answer_written_ahead_ends_the_session(pool: ZygotePool) -> None:
    """A whole answer before the real one: the real one is then left over, and nobody takes it for the next."""
    forged = "b'\\x01\\x08\\x00\\x00\\x00' + np.float64(5).tobytes()"
    session = opened(pool, later(f"import os\nos.write(4, {forged})\nreturn 1.0"), checks=False)
    session.turn((), None, (), [begin()])
    assert session.turn((0,), None, np.ones((1, 2))).rewards.tolist() == [5]  # a program may say what it likes
    with pytest.raises(GraceError, match="answered outside the protocol"):
        play(session, 50)


@pytest.mark.parametrize(
    ("body", "worked"),
    [
        ("open('/etc/passwd')", False),
        ("import socket\nsocket.socket()", False),
        ("import os\nos.fork()", False),
        ("import os\nos.stat('/')", False),
        ("import os\nos.dup(3)", False),
        ("sum(range(10))", True),
    ],
)
def test_the_layers_hold_in_a_session(pool: ZygotePool, body: str, worked: bool) -> None:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    with opened(
        pool, one(f"try:\n{lines}\n    return 1.0\nexcept Exception:\n    return 0.0"), checks=False
    ) as session:
        session.turn((), None, (), [begin()])
        assert session.turn((0,), None, np.ones((1, 2))).rewards.tolist() == [float(worked)]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (one("import os\nreturn 1"), "rejected: line"),
        ("def :", "syntax"),
        ("x = 1", "contract"),
        (COUNTER.replace("self.n = 0", "self.n = 1 / 0"), "init: ZeroDivisionError"),
    ],
)
def test_sources_that_cannot_run_are_said_to(pool: ZygotePool, source: str, message: str) -> None:
    with pytest.raises(GraceError, match=f"reward.py: {message}"):
        opened(pool, source).turn((), None, (), [begin()])


def test_a_first_state_that_a_program_cannot_read_is_no_fault_of_its_init(pool: ZygotePool) -> None:
    with pytest.raises(GraceError, match=r"reward\.py: runtime: IndexError"):
        opened(pool, one("return float(state[7])")).turn((), None, (), [begin()])


def test_a_start_that_takes_too_long_names_its_own_limit(pool: ZygotePool, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = f"SLOW = sum(range(10_000_000))\n{COUNTER}"  # it answers long after the limit, however busy the machine is
    monkeypatch.setattr(sessions, "_START_S", 2e-5)
    with pytest.raises(GraceError, match="no answer within 2e-05 s: the time limit of the start"):
        opened(pool, slow, limits=SessionLimits(turn_s=1e-5))


def test_nothing_is_left_of_a_session(pool: ZygotePool) -> None:
    session = opened(pool, COUNTER)
    session.turn((), None, (), [begin()])
    children = Path(f"/proc/{session.pid}/task/{session.pid}/children")
    if not children.exists():
        pytest.skip("this kernel does not list children")
    (child,) = map(int, children.read_text().split())
    before = len(os.listdir("/proc/self/fd"))
    session.close()
    session.close()
    assert len(os.listdir("/proc/self/fd")) < before
    for pid in (session.pid, child):
        status = Path(f"/proc/{pid}/stat")
        give_up = time.monotonic() + 10
        while status.exists() and status.read_text().split()[2] != "Z" and time.monotonic() < give_up:
            time.sleep(0.01)
        assert not status.exists() or status.read_text().split()[2] == "Z"


def test_states_of_another_shape_or_type_are_bad_input(pool: ZygotePool) -> None:
    with opened(pool, COUNTER) as session:
        session.turn((), None, (), [begin()])
        with pytest.raises(InputError, match=r"shape \(3,\); expected \(2,\)"):
            session.turn((0,), None, np.zeros((1, 3)))
        assert session.turn((0,), None, np.zeros((1, 2))).rewards.tolist() == [2]  # nothing was sent
    runner = SandboxedRunner(COUNTER, "reward.py")
    with pytest.raises(InputError, match=r"a state that is <U1 of shape \(2,\); expected numbers \(n,\), integers"):
        runner.turn((), None, (), [Begin(0, np.array(["a", "b"]), "")])
