# ruff: noqa: E501  (programs in one line each)
"""Programs that remember something from state to state, each in another way."""

from __future__ import annotations

from tests.programs.forgetful import method

COUNT = "return float(self.n)"
REMEMBERS = {
    "a counter": method("self.n += 1\n" + COUNT, init="self.n = 0"),
    "a list": method("self.seen.append(state)\nreturn float(len(self.seen))", init="self.seen = []"),
    "a list by another name": method(
        "seen = self.seen\nseen.append(state)\nreturn float(len(seen))", init="self.seen = []"
    ),
    "a list added to in place": method(
        "seen = self.seen\nseen += [state]\nreturn float(len(seen))", init="self.seen = []"
    ),
    "a list in a loop": method(
        "for seen in (self.seen,):\n    seen.append(1)\nreturn float(len(self.seen))", init="self.seen = []"
    ),
    "a list in a comprehension": method(
        "[s.append(1) for s in [self.seen]]\nreturn len(self.seen)", init="self.seen = []"
    ),
    "a list in a tuple": method("a, b = self.seen, 1\na.append(1)\nreturn len(a)", init="self.seen = []"),
    "a list through a helper": method(
        "self.note(self.seen)\nreturn len(self.seen)",
        init="self.seen = []",
        also="    def note(self, xs):\n        xs.append(1)",
    ),
    "a list or a new one": method("seen = self.seen or []\nseen.append(1)\nreturn len(seen)", init="self.seen = [0]"),
    "a method that is handed about": method(
        "list(map(self.seen.append, [1]))\nreturn len(self.seen)", init="self.seen = []"
    ),
    "a method that is kept": method(
        "self.note(1)\nreturn len(self.seen)", init="self.seen = []\nself.note = self.seen.append"
    ),
    "a dict cache": method(
        "if state not in self.cache:\n    self.cache[state] = len(self.cache)\nreturn self.cache[state]",
        init="self.cache = {}",
    ),
    "setdefault": method("return self.cache.setdefault(state, len(self.cache))", init="self.cache = {}"),
    "a default dict that is looked at": method(
        "self.d[state]\nreturn len(self.d)", "from collections import defaultdict", "self.d = defaultdict(int)"
    ),
    "a default dict from a helper": method(
        "self.d[state]\nreturn len(self.d)",
        "from collections import defaultdict",
        "self.d = self.made()",
        "    def made(self):\n        return defaultdict(int)\n    def debug_fn(self, state):\n        return str(self.made())",
    ),
    "a global": method("global N\nN += 1\nreturn N", "N = 0"),
    "a global list": method("SEEN.append(1)\nreturn len(SEEN)", "SEEN = []"),
    "a global item": method("SEEN['n'] = SEEN.get('n', 0) + 1\nreturn SEEN['n']", "SEEN = {}"),
    "a class attribute": method("Reward.n += 1\nreturn Reward.n", also="    n = 0"),
    "a class attribute's list": method("self.seen.append(1)\nreturn len(self.seen)", also="    seen = []"),
    "a class by its object": method("type(self).n += 1\nreturn self.n", also="    n = 0"),
    "a default argument": method(
        "return self.note(state)",
        also="    def note(self, state, seen=[]):\n        seen.append(1)\n        return len(seen)",
    ),
    "a default argument of reward_fn": "class Reward:\n    def reward_fn(self, state, seen=[]):\n        seen.append(1)\n        return len(seen)\n",
    "a closure": method(
        "return self.count()", init="n = [0]\ndef count():\n    n[0] += 1\n    return n[0]\nself.count = count"
    ),
    "a nonlocal closure": method(
        "return self.count()", init="n = 0\ndef count():\n    nonlocal n\n    n += 1\n    return n\nself.count = count"
    ),
    "a lambda": method("return self.count()", init="seen = []\nself.count = lambda: seen.append(1) or len(seen)"),
    "a factory": method(
        "return COUNT()",
        "def counter():\n    seen = []\n    def count():\n        seen.append(1)\n        return len(seen)\n    return count\n\nCOUNT = counter()",
    ),
    "setattr": method("setattr(self, 'n', self.n + 1)\n" + COUNT, init="self.n = 0"),
    "__dict__": method("self.__dict__['n'] = self.n + 1\n" + COUNT, init="self.n = 0"),
    "__setattr__": method("object.__setattr__(self, 'n', self.n + 1)\n" + COUNT, init="self.n = 0"),
    "__init__ again": method(
        "self.__init__('')\nreturn len(Reward.seen)", init="Reward.seen.append(1)", also="    seen = []"
    ),
    "a new object that counts": method("Reward()\nreturn len(SEEN)", "SEEN = []", "SEEN.append(1)"),
    "a helper that counts its objects": method(
        "Node()\nreturn len(SEEN)", "SEEN = []\n\nclass Node:\n    def __init__(self):\n        SEEN.append(1)"
    ),
    "an attribute of a function": method("note.n += 1\nreturn note.n", "def note():\n    pass\nnote.n = 0"),
    "an iterator": method("return next(self.it)", init="self.it = iter(range(100))"),
    "an iterator in a loop": method("for x in self.it:\n    return x\nreturn 0", init="self.it = iter(range(100))"),
    "an iterator that is summed": method("return sum(self.it)", init="self.it = map(int, '123')"),
    "an iterator from a helper": method(
        "return sum(self.it)",
        init="self.it = self.made()",
        also="    def made(self):\n        return (n for n in range(9))",
    ),
    "an iterator in a list": method("return sum(self.its[0])", init="self.its = [iter(range(9))]"),
    "an iterator of elements": method("return len(list(self.it))", "import re", "self.it = re.finditer('a', 'aaa')"),
    "a count": method("return next(self.count)", "import itertools", "self.count = itertools.count()"),
    "a generator": method("return next(GEN)", "def numbers():\n    yield from range(100)\n\nGEN = numbers()"),
    "a cache": method(
        "return self.n(state)",
        "from functools import lru_cache",
        also="    @lru_cache\n    def n(self, state):\n        return len(state)",
    ),
    "a partial": method(
        "self.note(1)\nreturn len(self.seen)",
        "from functools import partial",
        "self.seen = []\nself.note = partial(list.append, self.seen)",
    ),
    "random numbers": method("return random.random()", "import random"),
    "random numbers by name": method("return random()", "from random import random"),
    "numpy's random numbers": method("return np.random.rand()", "import numpy as np"),
    "a seeded generator": method("return self.r.random()", "import numpy as np", "self.r = np.random.default_rng(0)"),
    "the time": method("return datetime.now().microsecond", "from datetime import datetime"),
    "an array": method("self.a[0] += 1\nreturn self.a[0]", "import numpy as np", "self.a = np.zeros(1)"),
    "an array that is written to": method(
        "np.exp(1.0, self.a)\nreturn self.a[0]", "import numpy as np", "self.a = np.zeros(1)"
    ),
    "an array by name": method(
        "np.add(self.a, 1, out=self.a)\nreturn self.a[0]", "import numpy as np", "self.a = np.zeros(1)"
    ),
    "a tree": method(
        "etree.SubElement(self.root, 'n')\nreturn len(self.root)",
        "from lxml import etree",
        "self.root = etree.fromstring('<a/>')",
    ),
    "a tree that is changed": method(
        "self.root.replace(self.root[0], etree.fromstring(state))\nreturn len(self.root[0])",
        "from lxml import etree",
        "self.root = etree.fromstring('<a><b/></a>')",
    ),
    "a tree from a helper": method(
        "self.root.replace(self.root[0], self.parse(state))\nreturn len(self.root[0])",
        "from lxml import etree",
        "self.root = self.parse('<a><b/></a>')",
        "    def parse(self, text):\n        return etree.fromstring(text)",
    ),
    "a property": method(
        "return self.next_number",
        also="    n = 0\n    @property\n    def next_number(self):\n        self.n += 1\n        return self.n",
    ),
    "an operator": method(
        "self.box + 1\nreturn len(SEEN)",
        "SEEN = []\n\nclass Box:\n    def __add__(self, other):\n        SEEN.append(1)",
        "self.box = Box()",
    ),
    "an operator that gives away": method(
        "x = self.box + 1\nx.append(1)\nreturn len(SEEN)",
        "SEEN = []\n\nclass Box:\n    def __add__(self, other):\n        return SEEN",
        "self.box = Box()",
    ),
    "a helper that both call": method(
        "self.note()\n" + COUNT, init="self.n = 0\nself.note()", also="    def note(self):\n        self.n = self.n + 1"
    ),
    "a helper that is handed about": method(
        "self.f()\n" + COUNT,
        init="self.n = 0\nself.f = self.note\nself.note()",
        also="    def note(self):\n        self.n = self.n + 1",
    ),
    "a helper by its name": method(
        "getattr(self, 'note')()\n" + COUNT,
        init="self.n = 0\nself.note()",
        also="    def note(self):\n        self.n = self.n + 1",
    ),
    "debug_fn": method(
        "return float(self.n)",
        init="self.n = 0",
        also="    def debug_fn(self, state):\n        self.n += 1\n        return ''",
    ),
    "a subclass": method("self.append(1)\nreturn len(self)").replace("class Reward:", "class Reward(list):"),
    "a metaclass": method("return 0.0").replace("class Reward:", "class Reward(metaclass=type):"),
    "a class in a function": method("class A:\n    SEEN.append(1)\nreturn len(SEEN)", "SEEN = []"),
    "a builtin by another's name": method(
        "return float(setattr(self, 'n', 1) or 0)", "def f(setattr):\n    return setattr"
    ),
    "an enumerator": method(
        "for i, x in self.pairs:\n    return i\nreturn -1", init="self.pairs = enumerate('abcdefgh')"
    ),
    "a zip in a tuple": method("return len(list(self.t[1]))", init="self.t = 1, zip('ab', 'cd')"),
    "an annotation": method("def f(x: SEEN.append(1)): pass\nreturn len(SEEN)", "SEEN = []"),
    "a sum that begins with a list": method(
        "x = sum([], self.seen)\nx += [1]\nreturn len(self.seen)", init="self.seen = []"
    ),
    "a with": method("with self.lock:\n    return 0.0", init="self.lock = None"),
    "a match": method("match state:\n    case str():\n        self.n = 1\nreturn 0.0"),
    "print to an object": method(
        "print(1, file=self.log)\nreturn len(SEEN)",
        "SEEN = []\n\nclass Log:\n    def write(self, text):\n        SEEN.append(text)",
        "self.log = Log()",
    ),
    "an item that is deleted": method("del self.left[0]\nreturn len(self.left)", init="self.left = list(range(99))"),
    "a loop into self": method("for self.n in range(self.n + 2):\n    pass\n" + COUNT, init="self.n = 0"),
    "a walrus": method("(seen := self.seen).append(1)\nreturn len(seen)", init="self.seen = []"),
    "an exception": method(
        "try:\n    raise ValueError(self.seen)\nexcept ValueError as e:\n    e.args[0].append(1)\nreturn len(self.seen)",
        init="self.seen = []",
    ),
}
