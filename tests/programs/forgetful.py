"""Programs whose rewards depend on the state alone, and the states that show it."""

from __future__ import annotations

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
