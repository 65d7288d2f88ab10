"""The Monte Carlo tree search of RF-Agent (section 4.2 and appendices C and G of its paper).

Each node of the tree is a valid program. The search picks a leaf by an upper confidence bound and requests children of
this leaf by several actions. The children's scores change the values of the nodes above them.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

import numpy as np

from grace_irl.evaluate.evaluation import shown
from grace_irl.search.protocol import Fate, Request, Result, Wait
from grace_irl.search.ranks import Scored
from grace_irl.search.tried import Tried

Rule = Literal["uct", "depth-first", "breadth-first", "greedy"]

# Parts of an opinion: a number in square brackets; what looks like one but is code, an index behind a name or a fenced
# block; and a number in brackets alone in its line.
NUMBER = re.compile(r"\[\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*\]")
INDEX = re.compile(r"(?<=[A-Za-z0-9_\])])\[\s*-?\d+\s*\]")
FENCED = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)", re.DOTALL | re.MULTILINE)
ALONE = re.compile(rf"^\W*{NUMBER.pattern}\W*$", re.MULTILINE)


@dataclass(frozen=True)
class TreeSettings:
    """Settings of the tree search, with the defaults of RF-Agent's appendix C. The paper does not give `first`.

    Attributes:
        programs: maximum number of requests, including requests for initial nodes and requests without valid program.
        first: number of requests for initial nodes, the children of the virtual root.
        actions: operators of an expansion, in order, each with its number of requests. "crossover", "path" and
            "different" show further nodes beside the parent; all other operators show the parent only.
        exploration: weight of the exploration term at the start (lambda_0). The weight falls linearly to 0.
        eta: share of the best child's value in the parent's new value.
        fewest: minimum number of nodes that "crossover", "path" or "different" shows, including the parent.
        most: maximum number of nodes that these operators show. For each request, the number of nodes is drawn
            uniformly from `fewest` to `most`.
        virtual_loss: whether an expansion may begin before all results of earlier expansions have arrived.
        rule: the choice of the leaf to expand. "uct" follows the paper. `TreeSearch` describes the other rules.
    """

    programs: int = 80
    first: int = 8
    actions: tuple[tuple[str, int], ...] = (
        ("structure", 2),
        ("weights", 2),
        ("crossover", 2),
        ("path", 1),
        ("different", 1),
    )
    exploration: float = 0.4
    eta: float = 0.7
    fewest: int = 2
    most: int = 4
    virtual_loss: bool = False
    rule: Rule = "uct"


@dataclass(frozen=True)
class TreeNode:
    """A node of the tree at one moment.

    Attributes:
        program_id: id of the node's program.
        parent: id of the parent's program; "" if the parent is the virtual root.
        action: operator of the request that the program answers.
        score: score of the program.
        q: value of the node. It equals the score before the node's first expansion.
        visits: 1 for the node, plus the visits of its children, plus 1 for each expansion of the node without a valid
            child.
        opinion: the model's own assessment of the program, made without its score, from -1 to 1; 0 if there is none.
        depth: number of steps from the virtual root; 1 for an initial node.
    """

    program_id: str
    parent: str
    action: str
    score: float
    q: float
    visits: int
    opinion: float
    depth: int


@dataclass(eq=False)
class _Vertex:
    """A node while the search runs.

    Attributes:
        name: id of the node's program; "" for the virtual root.
        order: sort key of the program: higher score first, then smaller size, then earlier request.
        fruitless: number of complete expansions without a valid child.
        pending: number of requested children in incomplete expansions of this vertex and of all vertices below it.
    """

    name: str = ""
    parent: _Vertex | None = None
    action: str = ""
    order: tuple[float, int, int] = (0.0, 0, 0)
    opinion: float = 0.0
    depth: int = 0
    q: float = 0.0
    visits: int = 0
    fruitless: int = 0
    pending: int = 0
    children: list[_Vertex] = field(default_factory=list)

    @property
    def seen(self) -> int:
        """The sum of `visits` and `pending`."""
        return self.visits + self.pending

    @property
    def branch(self) -> _Vertex:
        """The initial node at or above this vertex."""
        return next(vertex for vertex in self.upward() if vertex.depth == 1)

    def upward(self) -> Iterator[_Vertex]:
        """Yield this vertex, its parent and so on, up to the virtual root."""
        here: _Vertex | None = self
        while here is not None:
            yield here
            here = here.parent

    def count(self) -> None:
        """Update `visits` from the visits of the children."""
        own = 1 if self.name else 0  # the virtual root has no program and no visit of its own
        self.visits = own + self.fruitless + sum(child.visits for child in self.children)


@dataclass
class _Expansion:
    """The requests for children of one vertex.

    Attributes:
        vertex: the leaf, or the virtual root, whose children are requested.
        requests: number of requests.
        missing: number of results that have not arrived.
        found: number of new valid programs so far.
    """

    vertex: _Vertex
    requests: int
    missing: int
    found: int = 0


class TreeSearch:
    """The tree search of RF-Agent. It grows the tree in expansions.

    The first expansion requests the initial nodes, children of a virtual root. If no program is valid, the search
    requests initial nodes again. Each later expansion walks from the root down to a leaf, at each step to the child
    with the highest bound (`uct`). Then it requests children of the leaf by `TreeSettings.actions`. `ask` returns
    `Wait` until all results have arrived. Then the leaf and the nodes above it get new values (`backed_up`).

    With a virtual loss, expansions overlap. A pending expansion then counts its requests as visits of the leaf and of
    all nodes above it, so that the next walk tends to another leaf.

    The rules other than "uct" choose among the leaves with the fewest visits, counting pending requests as visits:

    - "depth-first": the deepest leaf. Ties go to the highest score.
    - "breadth-first": the leaf nearest to the root. Ties go to the highest score.
    - "greedy": the leaf with the highest score.

    Only `ask` draws random numbers. At the first request of an expansion, it draws the random numbers for the whole
    expansion. So, without a virtual loss, the search does not depend on the number of requests in flight.
    """

    def __init__(self, settings: TreeSettings, seed: int) -> None:
        if settings.first < 1 or sum(count for _, count in settings.actions) < 1:
            raise ValueError(f"expected at least one initial node and one action, found {settings}")
        self._settings = settings
        self._rng = np.random.default_rng(seed)
        self._root = _Vertex()
        self._vertices: list[_Vertex] = []  # in order of their requests, without the root
        self._planned: deque[Request] = deque()  # requests of the current expansion that `ask` has not returned yet
        self._open: deque[_Expansion] = deque()  # expansions without all their results
        self._tried = Tried()
        self._asked = 0
        self._generation = 0

    @property
    def best(self) -> tuple[str, ...]:
        """Ids of all valid programs, highest score first. Ties go to the smaller size, then the earlier request."""
        return tuple(vertex.name for vertex in sorted(self._vertices, key=lambda vertex: vertex.order))

    @property
    def generation(self) -> int:
        """Number of complete expansions. The expansion of the root counts only if an initial node is valid."""
        return self._generation

    @property
    def nodes(self) -> tuple[TreeNode, ...]:
        """The nodes of the tree in order of their requests.

        During an expansion, the nodes above the new nodes still have their old values and visits.
        """
        return tuple(
            TreeNode(v.name, v.parent.name, v.action, -v.order[0], v.q, v.visits, v.opinion, v.depth)
            for v in self._vertices
            if v.parent is not None
        )

    def ask(self) -> Request | Wait | None:
        """Return the next request, `Wait` if results are missing, or None after `settings.programs` requests."""
        if self._asked >= self._settings.programs:
            return None
        if not self._planned:
            if self._open and not (self._settings.virtual_loss and self._generation):
                return Wait()
            self._plan()
        self._asked += 1
        return self._planned.popleft()

    def _plan(self) -> None:
        """Choose a leaf, or the root of an empty tree, and draw the requests for its children.

        All requests of the search together are at most `settings.programs`.
        """
        parent = self._leaf() if self._vertices else self._root
        actions = (("initialise", self._settings.first),) if parent is self._root else self._settings.actions
        listed = (name for name, count in actions for _ in range(count))
        operators = islice(listed, self._settings.programs - self._asked)  # counts may be huge
        requests = [self._draw(self._asked + place, name, parent) for place, name in enumerate(operators)]
        for vertex in parent.upward():
            vertex.pending += len(requests)
        self._open.append(_Expansion(parent, len(requests), len(requests)))
        self._planned.extend(requests)

    def _leaf(self) -> _Vertex:
        if self._settings.rule != "uct":
            return self._first_leaf(self._settings.rule)
        # `settings.programs` includes the requests for initial nodes, so the weight counts them, too. The counter t of
        # the paper's algorithm 1 does not count them.
        weight = decayed(self._settings.exploration, self._asked, self._settings.programs)
        # The paper does not say over which nodes the value Q is normalised. This search uses all nodes.
        values = [vertex.q for vertex in self._vertices]
        low, high = min(values), max(values)
        here = self._root
        while here.children:
            parts = shares([child.opinion for child in here.children])
            bounds = [
                uct(child.q, child.seen, part, here.seen, low, high, weight)
                for child, part in zip(here.children, parts, strict=True)
            ]
            here = here.children[bounds.index(max(bounds))]  # of equal bounds, the earliest child
        return here

    def _first_leaf(self, rule: Rule) -> _Vertex:
        depth = {"depth-first": -1, "breadth-first": 1, "greedy": 0}[rule]
        leaves = (vertex for vertex in self._vertices if not vertex.children)
        return min(leaves, key=lambda leaf: (leaf.seen, depth * leaf.depth, leaf.order))

    def _draw(self, index: int, operator: str, parent: _Vertex) -> Request:
        """Draw a request for a child. Without other nodes, "structure" replaces "crossover" and "different"."""
        if parent is self._root:
            return Request(index, operator, seed=self._seed())
        if operator in ("crossover", "different") and len(self._vertices) == 1:
            operator = "structure"
        elites: list[_Vertex] = []
        others: list[_Vertex] = []
        if operator in ("crossover", "path", "different"):
            more = int(self._rng.integers(self._settings.fewest, self._settings.most + 1)) - 1
            if operator == "crossover":
                elites = self._elites(parent, more)
            elif operator == "path":
                others = [vertex for vertex in parent.upward() if vertex.name][1:][:more]
            else:
                others = self._strangers(parent, more)
        parents = (parent.name, *(vertex.name for vertex in elites))
        return Request(index, operator, parents, self._seed(), ancestors=tuple(vertex.name for vertex in others))

    def _seed(self) -> int:
        return int(self._rng.integers(2**62))

    def _elites(self, parent: _Vertex, number: int) -> list[_Vertex]:
        """Draw distinct nodes other than the parent. The chance of a node is proportional to 1 / rank by score."""
        order = sorted(self._vertices, key=lambda vertex: vertex.order)
        ranks = [(1 / rank, vertex) for rank, vertex in enumerate(order, start=1) if vertex is not parent]
        chance = np.array([weight for weight, _ in ranks])
        places = self._rng.choice(len(ranks), min(number, len(ranks)), replace=False, p=chance / chance.sum())
        return [ranks[place][1] for place in places]

    def _strangers(self, parent: _Vertex, number: int) -> list[_Vertex]:
        """Draw distinct nodes uniformly from the other branches. If there are none, draw from the parent's branch."""
        pool = [vertex for vertex in self._vertices if vertex.branch is not parent.branch]
        pool = pool or [vertex for vertex in self._vertices if vertex is not parent]
        return [pool[place] for place in self._rng.choice(len(pool), min(number, len(pool)), replace=False)]

    def tell(self, result: Result) -> list[Fate]:
        """Process a result. Return the fate of its program: "kept" if it becomes a node of the tree."""
        expansion = self._open[0]
        fates = self._take(result, expansion)
        expansion.missing -= 1
        if not expansion.missing:
            self._back_up(self._open.popleft())
        return fates

    def _take(self, result: Result, expansion: _Expansion) -> list[Fate]:
        taken = self._tried.take(result)
        if not isinstance(taken, Scored):
            return [taken] if taken is not None else []
        program, score = taken.program, taken.evaluation.score
        parent, request = expansion.vertex, result.request
        order = (-score, program.size, request.index)
        verdict = opinion(result.notes.get("verify", ""))
        vertex = _Vertex(program.id, parent, request.operator, order, verdict, parent.depth + 1, score, visits=1)
        expansion.found += 1
        parent.children.append(vertex)
        self._vertices.append(vertex)
        return [Fate(program.id, "kept", f"a node at depth {vertex.depth}: score {shown(score)}")]

    def _back_up(self, expansion: _Expansion) -> None:
        """Update the visits and values of the leaf and the nodes above it after a complete expansion.

        The paper does not say what follows an expansion without a valid child. Here such an expansion changes no value
        and counts as one visit, so that the search does not stay at a leaf whose children all fail.
        """
        start, found = expansion.vertex, expansion.found
        start.fruitless += start is not self._root and found == 0
        for vertex in start.upward():
            vertex.pending -= expansion.requests
            vertex.count()
            if found and vertex is not self._root:
                vertex.q = backed_up(vertex.q, [child.q for child in vertex.children], self._settings.eta)
        self._generation += start is not self._root or found > 0


def uct(q: float, visits: int, share: float, parent_visits: int, low: float, high: float, weight: float) -> float:
    """The upper confidence bound of a node (equation 2 of RF-Agent).

    Args:
        q: value of the node.
        visits: visits of the node, at least 1.
        share: the node's share in the softmax over its own opinion and its siblings' opinions (`shares`).
        parent_visits: visits of the node's parent.
        low, high: lowest and highest value in the tree. If they are equal, `q` has no effect.
        weight: weight of the exploration (`decayed`).
    """
    span = high / 2 - low / 2  # halves, so that the difference of two huge values does not overflow
    value = (q / 2 - low / 2) / span if span > 0 else 0.0
    return value + weight * (math.sqrt(2 * math.log(parent_visits + 1) / visits) + share)


def shares(opinions: Sequence[float]) -> list[float]:
    """The softmax over the opinions of all children of one node, one share per child."""
    powers = [math.exp(each) for each in opinions]
    return [power / sum(powers) for power in powers]


def decayed(initial: float, asked: int, programs: int) -> float:
    """The weight of the exploration, which falls linearly from `initial` to 0 as `asked` grows from 0 to `programs`."""
    return initial * (programs - asked) / programs


def backed_up(q: float, children: Sequence[float], eta: float) -> float:
    """The value of a node after an expansion of the node or of a node below it (equation 3 of RF-Agent)."""
    best = max(children)
    return q if best == q else (1 - eta) * q + eta * best  # avoids a rounding error, which `uct` would enlarge


def opinion(text: str) -> float:
    """The last number in square brackets in a text, clipped to the range from -1 to 1; 0 if there is none.

    Code does not count: neither fenced blocks, unless the number stands alone on its line, nor indices (`state[8]`).
    """
    text = text.replace("\N{MINUS SIGN}", "-")
    found = NUMBER.findall(INDEX.sub("", FENCED.sub("", text))) or ALONE.findall(text)
    return min(max(float(found[-1]), -1.0), 1.0) if found else 0.0
