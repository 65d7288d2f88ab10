"""Programs of vectors that keep something between states, each in another place.

The first number of a state goes into every reward, and so does what was kept: a place that one episode shares with
another shows in the numbers.
"""

from __future__ import annotations

_PLAIN = """{head}

class Reward:
    {body}

    def __init__(self, extra_info=None):
        self.word = extra_info
        {init}

    def reward_fn(self, state):
        {step}
"""


def _program(step: str, *, head: str = "", body: str = "pass", init: str = "pass") -> str:
    parts = {"head": head, "body": body.replace("\n", "\n    "), "init": init.replace("\n", "\n        ")}
    return _PLAIN.format(step=step.replace("\n", "\n        "), **parts)


KEEPING = {
    "a global number": _program("global N\nN += 1\nreturn N + 100 * float(state[0]) + len(self.word)", head="N = 0"),
    "a global list": _program("SEEN.append(float(state[0]))\nreturn sum(SEEN) + len(SEEN)", head="SEEN = []"),
    "a global dict, by instruction": _program(
        "SEEN.setdefault(self.word, []).append(1)\nreturn len(SEEN) * 100 + len(SEEN[self.word])", head="SEEN = {}"
    ),
    "a class attribute": _program("Reward.seen += 1\nreturn Reward.seen + float(state[0])", body="seen = 0"),
    "a class attribute's list": _program(
        "self.seen.append(1)\nreturn len(self.seen) + float(state[0])", body="seen = []"
    ),
    "how many objects there were": _program(
        "return Reward.made + 10 * float(state[0])", body="made = 0", init="Reward.made += 1"
    ),
    "another class's attribute": _program(
        "Counter.n += float(state[0])\nreturn Counter.n", head="class Counter:\n    n = 0.0\n"
    ),
    "a closure": _program(
        "return COUNT(float(state[0]))",
        head="def counter():\n    seen = []\n    def count(x):\n        seen.append(x)\n"
        "        return len(seen) + sum(seen)\n    return count\n\nCOUNT = counter()",
    ),
    "a default argument": _program(
        "return note(float(state[0]))",
        head="def note(x, seen=[]):\n    seen.append(x)\n    return len(seen) + sum(seen)\n",
    ),
    "a cache of a function": _program(
        "before = tell.cache_info().currsize\ntell(float(state[0]))\nreturn before",
        head="from functools import lru_cache\n\n@lru_cache(maxsize=None)\ndef tell(x):\n    return x\n",
    ),
    "a generator of the module": _program(
        "return next(NUMBERS) + float(state[0])", head="import itertools\nNUMBERS = itertools.count()"
    ),
    "random": _program("return random.random() + float(state[0])", head="import random"),
    "numpy's random": _program("return np.random.normal() + float(state[0])", head="import numpy as np"),
    "random as the module begins": _program(
        "return START + random.gauss(0, 1) * float(state[0])", head="import random\nSTART = random.random()"
    ),
    "random as the object begins": _program(
        "return self.start + np.random.rand() * float(state[0])",
        head="import numpy as np",
        init="self.start = np.random.rand()",
    ),
    "random that a program seeds itself": _program(
        "return random.random() + np.random.rand()",
        head="import random\nimport numpy as np",
        init="random.seed(len(self.word))\nnp.random.seed(len(self.word))",
    ),
    "a generator that nobody names random": _program(
        "return NormalDist(0, 1).samples(1)[0] + float(state[0])", head="from statistics import NormalDist"
    ),
    "random where it is asked for words, too": _program(
        "return random.random() + float(state[0])",
        head="import random",
        body="def debug_fn(self, state):\n    return str(random.random())\n\n"
        "def terms_fn(self, state):\n    return {'drawn': random.random()}",
    ),
    "random and a global": _program(
        "SEEN.append(random.random() + np.random.rand())\nreturn sum(SEEN) * float(state[0])",
        head="import random\nimport numpy as np\nSEEN = []",
    ),
    "a dataclass's counter": """
from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Reward:
    word: str = ""
    seen: list[float] = field(default_factory=list)
    total: int = 0

    def reward_fn(self, state):
        self.seen.append(float(state[0]))
        self.total += 1
        return sum(self.seen) * self.total + len(self.word)
""",
}
"""By what they keep."""
