# ruff: noqa: E501  (programs in one line each)
"""What counts as memory. A program that is said to have none gives equal states equal rewards, whatever came before."""

from __future__ import annotations

import ast
import types
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.programs.stateless import memory_of

STATES = tuple(f'<hierarchy><node text="{text}"/><node/></hierarchy>' for text in ("8:25", "9:00", "a b"))

HELPERS = """
import re
from typing import Optional
from lxml import etree

DAYS = {"mon": 0, "tue": 1}
TIME = re.compile(r"(\\d+):(\\d+)")


def minutes(text: str) -> Optional[int]:
    found = TIME.search(text)
    if not found:
        return None
    hour, minute = map(int, found.groups())
    return hour * 60 + minute


class Node:
    def __init__(self, element):
        self.text = element.get("text", "")
        self.checked = element.get("checked") == "true"


class Reward:
    def __init__(self, extra_info=None):
        self.words = [word.lower() for word in (extra_info or "").split()]
        self._read()

    def _read(self):
        self.days = set()
        for word in self.words:
            if word in DAYS:
                self.days.add(word)

    def reward_fn(self, state):
        try:
            root = etree.fromstring(state)
        except etree.XMLSyntaxError:
            return 0.0
        score, seen = 0.0, []
        for element in root.iter("node"):
            node = Node(element)
            if node.checked and minutes(node.text) == 505:
                score += 1.0
            seen.append(node)
        counts = {}
        for node in seen:
            counts[node.text] = counts.get(node.text, 0) + 1
        first = next((node for node in seen if node.checked), None)
        best = max((self.value(node) for node in sorted(seen, key=lambda node: node.text)), default=0.0)
        return score + best + (first is not None) + len(counts)

    def value(self, node) -> float:
        return float(any(day in node.text.lower() for day in self.days))

    def debug_fn(self, state):
        return f"{sorted(self.days)} {len(state)}"


def debug(expert_states, negative_states):
    return str(len(expert_states))
"""

ELEMENT_TREE = '''
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict


class Reward:
    """Of the words on the screen."""

    def __init__(self, extra_info=""):
        self.target = extra_info

    def reward_fn(self, state: str) -> float:
        groups = defaultdict(int)
        for text in self._texts(ET.fromstring(state)):
            groups[text] += 1
        stack = list(groups)
        while stack:
            stack.pop()
        return float(Counter(groups).total()) + (self.target in state)

    def _texts(self, root):
        return [node.attrib.get("text", "") for node in root.iter("node")]
'''


def method(body: str, before: str = "", init: str = "pass", also: str = "") -> str:
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    set_up = "\n".join(f"        {line}" for line in init.splitlines())
    return (
        f"{before}\n\nclass Reward:\n    def __init__(self, extra_info=None):\n{set_up}\n\n"
        f"    def reward_fn(self, state):\n{lines}\n{also}\n"
    )


FORGETS = {
    "helpers": HELPERS,
    "xml.etree": ELEMENT_TREE,
    "text only": method("return float('8:25' in state)"),
    "an xpath": method(
        "return self.find(etree.fromstring(state))",
        "from lxml import etree",
        "self.find = etree.XPath('count(//node)')",
    ),
    "a static helper": method(
        "return self.size(state)", also="    @staticmethod\n    def size(text):\n        return len(text)"
    ),
    "recursion": method(
        "return depth(etree.fromstring(state))",
        "from lxml import etree\n\ndef depth(node):\n    return 1 + max((depth(child) for child in node), default=0)",
    ),
    "numpy on numbers": method("return float(np.clip(len(state) / 100, 0, 1))", "import numpy as np"),
    "a parser that is kept": method(
        "return len(etree.fromstring(state, self.parser))",
        "from lxml import etree",
        "self.parser = etree.XMLParser(recover=True)",
    ),
}

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


@pytest.mark.parametrize("name", FORGETS)
def test_usual_programs_have_none(name: str) -> None:
    assert memory_of(ast.parse(FORGETS[name])) == ""
    assert forgets(FORGETS[name], STATES * 3)


@pytest.mark.parametrize("name", REMEMBERS)
def test_memory_is_found(name: str) -> None:
    assert memory_of(ast.parse(REMEMBERS[name])) != ""


def rewards(source: str, states: tuple[str, ...]) -> list[Any]:
    module = types.ModuleType("reward")
    exec(compile(source, "reward.py", "exec"), module.__dict__)
    reward = module.Reward("mon 8:25")
    found: list[Any] = []
    for state in states:
        try:
            found.append(reward.reward_fn(state))
        except Exception as error:
            found.append(type(error).__name__)
    return found


def forgets(source: str, states: tuple[str, ...]) -> bool:
    """Whether every state has the reward that it has alone."""
    return rewards(source, states) == [rewards(source, (state,))[0] for state in states]


PLACES = ("self.a", "self.b", "SHARED", "Reward.c", "local", "other", "param")
VALUES = (
    *(
        "[]",
        "[0]",
        "{}",
        "set()",
        "0",
        "0.0",
        "''",
        "self.a",
        "self.b",
        "SHARED",
        "local",
        "other",
        "param",
        "Reward.c",
    ),
    *(
        "list(self.a)",
        "self.a or []",
        "iter([1, 2])",
        "zip([1], [2])",
        "len(state)",
        "dict(x=self.b)",
        "(self.a, 1)[0]",
    ),
    *("self.a.append", "self.give", "(lambda: SHARED)", "make(self.a)", "self.give()", "[x for x in [self.a]][0]"),
)
CHANGES = (
    *("{place} = {value}", "{place} += [1]", "{place} += 1", "{place}.append(1)", "{place}[0] = 1", "{place}['k'] = 1"),
    *("{place}.update(k=len({place}))", "{place}.add(len({place}))", "{place}()", "next({place})", "list({place})"),
    *(
        "for x in [{place}]: x.append(1)",
        "x = {place}; x += [2]",
        "make({place}).append(1)",
        "{place}.setdefault('q', []).append(1)",
    ),
    *(
        "{place}, y = {value}, 1",
        "del {place}[0]",
        "setattr(self, 'a', {value})",
        "[x for x in {place}]",
        "sum({place})",
    ),
    *(
        "def inner(): {place}.append(1)\n    inner()",
        "f = lambda: {place}.append(1)\n    f()",
        "{place}.sort()",
        "Reward.c = {value}",
    ),
)

statements = st.builds(
    lambda template, place, value: template.format(place=place, value=value),
    st.sampled_from(CHANGES),
    st.sampled_from(PLACES),
    st.sampled_from(VALUES),
)
blocks = st.lists(statements, max_size=3)


def assembled(init: list[str], helper: list[str], body: list[str], calls: bool) -> str:
    """A program of such statements, each of which may fail without ending it."""

    def guarded(lines: list[str], depth: int) -> str:
        pad = "    " * depth
        text = "".join(
            f"{pad}try:\n{pad}    "
            + line.replace("\n    ", f"\n{pad}    ")
            + f"\n{pad}except Exception:\n{pad}    pass\n"
            for line in lines
        )
        return text + f"{pad}pass\n"

    look = "len(str([self.a, self.b, SHARED, Reward.c, local, other, param]))"
    return (
        "SHARED = []\n\ndef make(x):\n    return x\n\nclass Reward:\n    c = []\n"
        "    def __init__(self, extra_info=None):\n        self.a = []\n        self.b = {}\n"
        "        local = []\n        other = {}\n        param = []\n"
        f"{guarded(init, 2)}        self.assist([], 'x')\n"
        "    def give(self):\n        return self.a\n"
        "    def assist(self, param, state):\n        local = []\n        other = {}\n"
        f"{guarded(helper, 2)}        return 0\n"
        "    def reward_fn(self, state, param=[]):\n        local = []\n        other = {}\n"
        f"{guarded(body, 2)}" + ("        self.assist(param, state)\n" if calls else "") + f"        return {look}\n"
    )


@settings(max_examples=400, deadline=None)
@given(blocks, blocks, blocks, st.booleans())
def test_what_is_said_to_forget_forgets(init: list[str], helper: list[str], body: list[str], calls: bool) -> None:
    source = assembled(init, helper, body, calls)
    try:
        tree = ast.parse(source)
        compile(source, "reward.py", "exec")
    except SyntaxError:
        return
    if memory_of(tree) == "":
        assert forgets(source, (*STATES, *STATES, *STATES[::-1])), source


def test_deep_sources_are_in_doubt() -> None:
    deep = "return " + "-" * 50 + "1.0"
    assert memory_of(ast.parse(method(deep))) == ""


def test_the_programs_above_are_not_all_in_doubt() -> None:
    """Otherwise the test before says nothing."""
    for init, body in ((["self.a.append(1)"], ["local.append(1)"]), (["self.b['x'] = SHARED"], ["other['k'] = 1"])):
        assert memory_of(ast.parse(assembled(init, [], body, True))) == ""
