"""Contents that a source may have, and what reading it tells."""

from __future__ import annotations

import pytest

from grace_irl.sandbox.job import inspection
from grace_irl.sandbox.protocol import Mode, Sandbox
from tests.sandbox.samples import BOTH, TRANSITION, one, vectors


@BOTH
def test_what_models_write_is_allowed(sandbox: Sandbox, mode: Mode) -> None:
    source = '''
"""A reward."""
from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

import numpy as np
from lxml import etree


class Phase(Enum):
    FAR = 1
    NEAR = 2


@dataclass
class Memory:
    best: float = math.inf
    seen: dict[str, int] = field(default_factory=lambda: defaultdict(int))


@lru_cache(maxsize=None)
def scale(n: int) -> float:
    return 1.0 / (1 + n)


class Base:
    def _value(self, state: np.ndarray) -> float:
        return float(np.linalg.norm(state))


class Reward(Base):
    STEP = 0.5

    def __init__(self, extra_info: str | None = None) -> None:
        self.memory = Memory()
        self._words = re.findall(r"\\\\w+", extra_info or "")
        self.base = 1

    def reward_fn(self, state) -> float:
        value = self._value(state)
        self.memory.best = min(self.memory.best, value)
        self.memory.seen["x"] += 1
        match self.memory.seen["x"]:
            case 1:
                phase = Phase.FAR
            case _:
                phase = Phase.NEAR
        print("value", value)
        total = self.__class__.STEP * scale(len(self._words)) * phase.value
        total += len(etree.fromstring("<a><b/></a>").xpath("//b")) + self.base
        return total


if __name__ == "__main__":
    print(Reward().reward_fn(np.zeros(3)))
'''
    outcome = sandbox.run(source, sandbox.put(vectors()), [0, 1], mode=mode)
    assert outcome.status == "ok", outcome


@BOTH
def test_what_loads_lazily_still_works(sandbox: Sandbox, mode: Mode) -> None:
    source = one(
        "import datetime, random, statistics, decimal, difflib, unicodedata, json\n"
        "datetime.datetime.strptime('2020-01-02', '%Y-%m-%d').strftime('%A')\n"
        "np.random.default_rng(1).normal(size=3); np.fft.fft(state); np.ma.masked_array(state).mean()\n"
        "np.polynomial.Polynomial([1, 2])(3); np.polyfit([1, 2, 3], [1, 2, 3], 1); np.linalg.eig(np.eye(2))\n"
        "np.char.upper(['a']); 'bücher.example'.encode('idna'); str(state); repr(np.array(['a', 1.5], dtype=object))\n"
        "statistics.median([1, 2]); decimal.Decimal('1.5').sqrt(); difflib.get_close_matches('a', ['ab'])\n"
        "json.loads(json.dumps({'a': [1.5, None]})); unicodedata.name('a'); np.einsum('i,i->', state, state)\n"
        "np.histogram(state, bins=3); np.quantile(state, 0.3); np.unique(state); np.pad(state, 1)\n"
        "np.datetime64('2020-01-01'); np.interp(0.5, [0, 1], [0, 1]); 'x'.encode('utf-16'); f'{1.5:,.2f}'\n"
        "np.lib.stride_tricks.sliding_window_view(state, 2); np.vectorize(float)(state)\n"
        "return 1"
    )
    outcome = sandbox.run(source, sandbox.put(vectors()), [0], mode=mode)
    assert outcome.status == "ok", outcome


@BOTH
def test_prints_go_nowhere(sandbox: Sandbox, mode: Mode, capfd: pytest.CaptureFixture[str]) -> None:
    source = one("import warnings\nprint('x' * 100000, flush=True)\nwarnings.warn('loud')\nreturn 1")
    assert sandbox.run(source, sandbox.put(vectors()), [0], mode=mode).status == "ok"
    assert capfd.readouterr() == ("", "")


def test_inspection(sandbox: Sandbox) -> None:
    source = 'class Reward:\n    """Says why."""\n    def reward_fn(self, state):\n        return 1.0  # always\n'
    found = sandbox.inspect(source)
    assert (found.problems, found.takes_action) == ((), False)
    assert [function.name for function in found.functions] == ["Reward", "Reward.reward_fn"]
    assert len(found.id) == 16
    plain = sandbox.inspect("class Reward:\n  def reward_fn(self,state):\n    return 1.0\n")
    assert plain == found
    assert sandbox.inspect(TRANSITION).takes_action


def test_inspection_executes_nothing(sandbox: Sandbox) -> None:
    found = sandbox.inspect("while True: pass\nclass Reward:\n    def reward_fn(self, s):\n        return 1\n")
    assert found.problems == ()


@pytest.mark.parametrize(
    "source",
    ["def f(:", "\0", "x = " + "(" * 5000, "x = " + "-" * 60_000 + "1", "\ud800", "x" * 70_000, "a." * 20_000 + "b"],
)  # fmt: skip
def test_inspection_of_what_does_not_parse(sandbox: Sandbox, source: str) -> None:
    found = sandbox.inspect(source)
    assert found.problems
    assert len(found.id) == 16
    assert sandbox.run(source, sandbox.put(vectors()), [0]).status in ("syntax", "rejected", "contract", "killed")


@pytest.mark.parametrize("size", ["Infinity", "-Infinity", "NaN", "1e999", '"x"', "null", "[]", "9" * 5_000])
def test_an_inspection_that_is_forged_is_none(size: str) -> None:
    assert inspection('{"id": "x", "functions": [], "problems": [], "takes_action": true, "size": 1}') is not None
    forged = f'{{"id": "x", "functions": [], "problems": [], "takes_action": true, "size": {size}}}'
    assert inspection(forged) is None
