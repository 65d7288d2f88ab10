"""The Monte Carlo tree search of RF-Agent (section 4.2 and appendices C and G of its paper).

Each node of the tree is a valid program. The search picks a leaf by an upper confidence bound and requests children of
it, by several actions. The children's scores change the values of the nodes above them.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from grace_irl.evaluate.evaluation import shown
from grace_irl.search.protocol import Fate, Request, Result, Wait
from grace_irl.search.ranks import Scored
from grace_irl.search.tried import Tried

Rule = Literal["uct", "depth-first", "breadth-first", "greedy"]
NUMBER = re.compile(r"\[\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*\]")


@dataclass(frozen=True)
class TreeSettings:
    """Settings of the tree search, with the defaults of RF-Agent's appendix C. The paper does not give `first`.

    Attributes:
        programs: maximum number of requests, including those for initial nodes and those that bring no valid program.
        first: number of requests for initial nodes, the children of the virtual root.
        actions: operators of an expansion, in order, each with its number of requests. "crossover", "path" and
            "different" show further nodes beside the parent; all other operators show the parent only.
        exploration: weight of the exploration term at the start (lambda_0). The weight falls to 0 with the requests.
        eta: share of the best child's value in the new value of its parent.
        fewest: minimum number of nodes that "crossover", "path" or "different" shows, including the parent.
        most: maximum number of these nodes. Each request draws its number uniformly.
        virtual_loss: whether the next expansion may begin before all results of the last one have arrived.
        rule: the choice of the leaf to expand. "uct" follows the paper; the others serve ablations (`TreeSearch`).
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
        q: value of the node. It is the score until the node's first children change it.
        visits: 1 for the node itself, the visits of its children, and 1 for each expansion without a valid child.
        opinion: the model's own assessment of the program before its training, from -1 to 1; 0 if there is none.
        depth: number of steps from the virtual root, from 1.
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
    """A node while the search runs. The virtual root has no id.

    Attributes:
        order: sort key by which programs rank: higher score, then smaller size, then earlier request.
        fruitless: number of complete expansions without a valid child.
        pending: number of requested children, here and below, whose expansion is not complete.
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
        """Visits, with those of pending expansions."""
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
        """Count the visits anew from those of the children."""
        own = 1 if self.name else 0  # the virtual root has no program that a visit could train
        self.visits = own + self.fruitless + sum(child.visits for child in self.children)


@dataclass
class _Expansion:
    """The requests for children of one vertex.

    Attributes:
        missing: number of results that have not arrived.
        found: number of valid programs so far.
    """

    vertex: _Vertex
    requests: int
    missing: int
    found: int = 0


class TreeSearch:
    """A tree search in expansions, which is the search of RF-Agent.

    The first expansion requests the initial nodes, children of a virtual root. If none of its programs is valid, the
    search requests initial nodes again. Each later expansion walks from the root down to a leaf, at each step to the
    child of the highest bound (`uct`), and requests children of that leaf by `TreeSettings.actions`. Then `ask` returns
    `Wait` until all results have arrived, and the nodes from the leaf up to the root get new values (`backed_up`).

    The virtual loss lets expansions overlap. A pending expansion then adds its number of requests to the visits of the
    nodes on its way, which leads the next walk elsewhere.

    The rules other than "uct" choose among all leaves. They prefer leaves with the fewest expansions, and among them:

    - "depth-first": the deepest leaf; of several, the one of the highest score;
    - "breadth-first": the leaf nearest to the root; of several, the one of the highest score;
    - "greedy": the leaf of the highest score.

    An expansion draws all its random numbers at its first request, and only `ask` draws any. So, without a virtual
    loss, the number of requests in flight changes nothing.
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
        """Ids of all valid programs. Higher score first, then smaller size, then the earlier request."""
        return tuple(vertex.name for vertex in sorted(self._vertices, key=lambda vertex: vertex.order))

    @property
    def generation(self) -> int:
        """Number of complete expansions. The initial nodes are the first one, once one of them is valid."""
        return self._generation

    @property
    def nodes(self) -> tuple[TreeNode, ...]:
        """The nodes of the tree in order of their requests.

        The nodes above those of an incomplete expansion still have their old values and visits.
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
        """Choose a leaf and draw the requests for its children, as far as the budget goes."""
        parent = self._leaf() if self._vertices else self._root
        operators = [name for name, count in self._settings.actions for _ in range(count)]
        if parent is self._root:
            operators = ["initialise"] * self._settings.first
        operators = operators[: self._settings.programs - self._asked]
        requests = [self._draw(self._asked + place, name, parent) for place, name in enumerate(operators)]
        for vertex in parent.upward():
            vertex.pending += len(requests)
        self._open.append(_Expansion(parent, len(requests), len(requests)))
        self._planned.extend(requests)

    def _leaf(self) -> _Vertex:
        if self._settings.rule != "uct":
            return self._first_leaf(self._settings.rule)
        # The budget counts initial nodes, so the weight counts them too, unlike t in the paper's algorithm 1.
        weight = decayed(self._settings.exploration, self._asked, self._settings.programs)
        # The paper does not say over which nodes Q is normalised: here over all nodes, with their current values.
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
        """Draw different nodes other than the parent, each with a chance proportional to 1 / its rank by score."""
        order = sorted(self._vertices, key=lambda vertex: vertex.order)
        ranks = [(1 / rank, vertex) for rank, vertex in enumerate(order, start=1) if vertex is not parent]
        chance = np.array([weight for weight, _ in ranks])
        places = self._rng.choice(len(ranks), min(number, len(ranks)), replace=False, p=chance / chance.sum())
        return [ranks[place][1] for place in places]

    def _strangers(self, parent: _Vertex, number: int) -> list[_Vertex]:
        """Draw different nodes uniformly from all branches but the parent's; from the parent's if there is no other."""
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
        """Take a complete expansion into the visits and values of the nodes above it.

        The paper does not say what follows an expansion without a valid child. Here it counts as one visit, so that the
        search does not stay at a leaf whose children all fail, and changes no value.
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
        share: share of the node's opinion among those of its siblings (`shares`).
        parent_visits: visits of its parent.
        low, high: lowest and highest value in the tree. If they are equal, the value of the node adds nothing.
        weight: weight of the exploration (`decayed`).
    """
    span = high / 2 - low / 2  # halves, so that the difference of two huge values does not overflow
    value = (q / 2 - low / 2) / span if span > 0 else 0.0
    return value + weight * (math.sqrt(2 * math.log(parent_visits + 1) / visits) + share)


def shares(opinions: Sequence[float]) -> list[float]:
    """The softmax of the opinions on siblings."""
    powers = [math.exp(each) for each in opinions]
    return [power / sum(powers) for power in powers]


def decayed(initial: float, asked: int, programs: int) -> float:
    """The weight of the exploration: `initial` before the first of `programs` requests, 0 after the last one."""
    return initial * (programs - asked) / programs


def backed_up(q: float, children: Sequence[float], eta: float) -> float:
    """The value of a node after an expansion at it or below it (equation 3 of RF-Agent)."""
    best = max(children)
    return q if best == q else (1 - eta) * q + eta * best  # `uct` would enlarge rounding errors of equal values


def opinion(text: str) -> float:
    """The last number in square brackets, cut to the range from -1 to 1; 0 if there is none."""
    found = NUMBER.findall(text.replace("\N{MINUS SIGN}", "-"))
    return min(max(float(found[-1]), -1.0), 1.0) if found else 0.0
