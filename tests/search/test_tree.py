"""RF-Agent's tree search as a pure state machine."""

from __future__ import annotations

import itertools
import math
import sys
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.evaluate.evaluation import Bar, Evaluation
from grace_irl.programs.program import Program
from grace_irl.search.protocol import Request, Result, Wait
from grace_irl.search.tree import Rule, TreeNode, TreeSearch, TreeSettings, backed_up, decayed, opinion, shares, uct
from grace_irl.testing.searches import Drive, Reply, drive

TWO = (("structure", 2),)
"""The actions of a small expansion."""
QUANTILES = {2: 13.82, 3: 16.27, 11: 31.26}
"""Values that a chi-square of so many degrees of freedom exceeds with a chance of 0.001."""


def answer(request: Request, score: float, verify: str | None = None, size: int = 10, name: str = "") -> Result:
    program = Program(name or f"p{request.index}", "", size, request.operator, request.parents)
    notes = {} if verify is None else {"verify": verify}
    return Result(request, program, Evaluation("ok", score=score), notes=notes)


def broken(request: Request) -> Result:
    return Result(request, Program(f"p{request.index}", "", 10), Evaluation("runtime", "ZeroDivisionError"))


def table(scores: Sequence[float | None], opinions: Sequence[float] = (), rest: float | None = -5.0) -> Reply:
    """Answers by the index of a request. None is a program that fails."""

    def reply(request: Request, _: Bar) -> Result:
        score = scores[request.index] if request.index < len(scores) else rest
        verify = f"[{opinions[request.index]}]" if request.index < len(opinions) else None
        return broken(request) if score is None else answer(request, score, verify)

    return reply


def expanded(found: Drive) -> list[str]:
    """The node of each expansion in turn, for expansions that ask the same number of times."""
    return [parent for parent, _ in itertools.groupby(r.parents[0] for r in found.requests if r.parents)]


def by_id(search: TreeSearch) -> dict[str, TreeNode]:
    return {node.program_id: node for node in search.nodes}


def chi_square(counts: Counter[tuple[str, ...]], chances: dict[tuple[str, ...], float]) -> float:
    assert sum(chances.values()) == pytest.approx(1)
    assert set(counts) <= set(chances)
    whole = counts.total()
    return sum((counts[key] - whole * chance) ** 2 / (whole * chance) for key, chance in chances.items())


def wide(operator: str, k: int | tuple[int, int], reply: Reply, first: int, seed: int = 0) -> list[Request]:
    """The requests of expansions of the same node, each with many children: 2,700 draws."""
    fewest, most = (k, k) if isinstance(k, int) else k
    settings = TreeSettings(first + 900, first, ((operator, 900),), fewest=fewest, most=most)
    seeds = range(3 * seed, 3 * seed + 3)
    return [r for each in seeds for r in drive(TreeSearch(settings, each), reply, 900).requests[first:]]


def test_the_bound_is_that_of_the_paper() -> None:
    exploration = math.sqrt(2 * math.log(12) / 3)
    assert uct(0.5, 3, 0.25, 11, -1.0, 2.0, 0.3) == pytest.approx(0.5 + 0.3 * (exploration + 0.25))
    assert uct(0.5, 3, 0.25, 11, -1.0, 2.0, 0.0) == pytest.approx(0.5)
    assert uct(7.0, 1, 0.5, 0, 7.0, 7.0, 1.0) == 0.5  # equal values and no visit of the parent
    most = sys.float_info.max
    assert uct(most, 1, 0.0, 0, -most, most, 1.0) == 1.0
    assert uct(0.0, 1, 0.0, 0, -most, most, 1.0) == 0.5


def test_opinions_share_one() -> None:
    assert shares([0.0, 0.0, 0.0, 0.0]) == [0.25] * 4
    one, other = shares([1.0, -1.0])
    assert one / other == pytest.approx(math.exp(2))
    assert one + other == pytest.approx(1)


def test_the_weight_of_exploration_falls_to_nothing() -> None:
    assert [decayed(0.4, asked, 80) for asked in (0, 20, 40, 80)] == pytest.approx([0.4, 0.3, 0.2, 0.0])


def test_a_value_moves_towards_its_best_child() -> None:
    assert backed_up(1.0, [0.5, 2.0, -3.0], 0.7) == pytest.approx(0.3 * 1.0 + 0.7 * 2.0)
    assert backed_up(1.0, [-2.0], 0.0) == 1.0
    assert backed_up(1.0, [-2.0], 1.0) == -2.0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0.0),
        ("no number", 0.0),
        ("0.7", 0.0),
        ("The range is [-1, 1].", 0.0),
        ("[0.5]", 0.5),
        ("At first [0.9], but in the end: **[ -0.25 ]**.", -0.25),
        ("[0.5] as in [1a]", 0.5),
        ("[\N{MINUS SIGN}0.5]", -0.5),
        ("[7]", 1.0),
        ("[-1e400]", -1.0),
        ("[.5]", 0.5),
        ("[1.]", 1.0),
        ("[nan] [inf]", 0.0),
        ("It reads state[8]; I would say [0.2]", 0.2),
        ("[0.2], because it reads state[8], f(x)[0] and rows[1][0]", 0.2),
        ("It waits. [-0.6]\n\n```python\nlow = [1]\n```\n", -0.6),
        ("It waits. [-0.6]\n```python\nlow = [1]", -0.6),
        ("It waits. [-0.6]\n  ~~~\n  low = [1]\n  ~~~", -0.6),
        ("It reads state[8]; I would say 0.2", 0.0),
        ("It waits.\n\n```\n[-0.4]\n```", -0.4),
        ("```[0.4]```", 0.4),
        ("It waits.\n```\n[0.4]", 0.4),
        ("verdict[0.4]", 0.4),
        ("__[0.4]__", 0.4),
        ("\N{CJK UNIFIED IDEOGRAPH-4E3A}[1]", 1.0),
    ],
)
def test_an_opinion_is_the_last_number_in_brackets(text: str, value: float) -> None:
    assert opinion(text) == value


def test_an_expansion_asks_by_the_actions_in_order() -> None:
    found = drive(TreeSearch(TreeSettings(programs=8 + 8 * 3 + 5), 0), table([], rest=0.5))
    operators = [r.operator for r in found.requests]
    assert operators[:8] == ["initialise"] * 8
    # The first expansion has other nodes to show, so no request falls back.
    eight = ["structure"] * 2 + ["weights"] * 2 + ["crossover"] * 2 + ["path"] + ["different"]
    assert operators[8:] == eight * 3 + eight[:5]
    for start in range(8, len(operators), 8):
        assert len({r.parents[0] for r in found.requests[start : start + 8]}) == 1
    assert len({r.seed for r in found.requests}) == len(found.requests)
    assert {r.samples for r in found.requests} == {1}


def test_counts_beyond_the_budget_take_no_memory() -> None:
    settings = TreeSettings(programs=6, first=2, actions=(("weights", 10**12),))
    found = drive(TreeSearch(settings, 0), table([], rest=0.5))
    assert [r.operator for r in found.requests] == ["initialise"] * 2 + ["weights"] * 4
    found = drive(TreeSearch(TreeSettings(programs=3, first=10**12), 0), table([], rest=0.5))
    assert [r.operator for r in found.requests] == ["initialise"] * 3


def test_values_and_visits_of_a_tree_by_hand() -> None:
    settings = TreeSettings(programs=9, first=3, actions=TWO)
    search = TreeSearch(settings, 0)
    #                                 p0   p1   p2   p3   p4    p5   p6    p7    p8
    found = drive(search, table([0.0, 1.0, 0.5, 2.0, 0.5, -1.0, 3.0, None, 2.5]))
    assert expanded(found) == ["p1", "p3", "p6"]
    q3 = 0.3 * 2.0 + 0.7 * 3.0
    q1 = 0.3 * (0.3 * 1.0 + 0.7 * 2.0) + 0.7 * q3
    q6 = 0.3 * 3.0 + 0.7 * 2.5
    q3 = 0.3 * q3 + 0.7 * q6
    q1 = 0.3 * q1 + 0.7 * q3
    assert [(n.program_id, n.parent, n.depth, n.visits) for n in search.nodes] == [
        ("p0", "", 1, 1),
        ("p1", "", 1, 6),
        ("p2", "", 1, 1),
        ("p3", "p1", 2, 4),
        ("p4", "p1", 2, 1),
        ("p5", "p3", 3, 1),
        ("p6", "p3", 3, 2),
        ("p8", "p6", 4, 1),
    ]
    assert [n.q for n in search.nodes] == pytest.approx([0.0, q1, 0.5, q3, 0.5, -1.0, q6, 2.5])
    assert [n.score for n in search.nodes] == [0.0, 1.0, 0.5, 2.0, 0.5, -1.0, 3.0, 2.5]
    assert {n.action for n in search.nodes} == {"initialise", "structure"}
    assert search.best == ("p6", "p8", "p3", "p1", "p2", "p4", "p0", "p5")
    assert search.generation == 4


@pytest.mark.parametrize("failed", [0, 3])
@pytest.mark.parametrize(("score", "second"), [(0.71, 3), (0.725, 1)])
def test_the_virtual_root_has_no_visits_of_its_own(score: float, second: int, failed: int) -> None:
    """After one expansion the root has five visits, whether or not the first initial nodes failed.

    With six, the second initial node would be next for both scores.
    """
    programs = failed + 7
    settings = TreeSettings(programs=programs, first=3, actions=TWO, exploration=0.35 * programs / 2)
    gap = 0.35 * math.sqrt(2 * math.log(6)) * (1 - 1 / math.sqrt(3))
    assert 1 - 0.725 < gap < 1 - 0.71 < 0.35 * math.sqrt(2 * math.log(7)) * (1 - 1 / math.sqrt(3))
    found = drive(TreeSearch(settings, 0), table([*([None] * failed), 1.0, score, 0.0, 1.0, 1.0]))
    assert expanded(found) == [f"p{failed}", f"p{failed + second}"]


def reference(settings: TreeSettings, scores: Sequence[float | None], opinions: Sequence[float]) -> list[str]:
    """The nodes that the paper's algorithm expands, from plain dictionaries. The root is ""."""
    width = sum(count for _, count in settings.actions)
    value: dict[str, float] = {}
    visits = {"": 0}
    children: dict[str, list[str]] = {"": []}
    parent_of: dict[str, str] = {}
    chosen: list[str] = []
    asked = 0
    while asked < settings.programs:
        here, size = "", settings.first
        if children[""]:
            low, high = min(value.values()), max(value.values())
            weight = settings.exploration * (1 - asked / settings.programs)
            while children[here]:
                powers = {c: math.exp(opinions[int(c[1:])]) for c in children[here]}
                bounds = {
                    c: ((value[c] - low) / (high - low) if high > low else 0)
                    + weight * (2 * math.log(visits[here] + 1) / visits[c]) ** 0.5
                    + weight * powers[c] / sum(powers.values())
                    for c in children[here]
                }
                here = max(bounds, key=lambda c: bounds[c])
            size = width
            chosen.append(here)
        indices = range(asked, min(asked + size, settings.programs))
        asked = indices.stop
        born = [f"p{index}" for index in indices if scores[index] is not None]
        for name in born:
            value[name], visits[name], children[name] = float(scores[int(name[1:])] or 0), 1, []
            children[here].append(name)
            parent_of[name] = here
        added = len(born) if born else int(here != "")
        while True:
            visits[here] += added
            if here == "":
                break
            if born:
                value[here] = (1 - settings.eta) * value[here] + settings.eta * max(value[c] for c in children[here])
            here = parent_of[here]
    return chosen


@given(st.data(), st.integers(1, 5), st.sampled_from([0.0, 0.4, 2.0]))
def test_the_search_expands_what_the_algorithm_expands(data: st.DataObject, first: int, exploration: float) -> None:
    programs = 31
    one = st.one_of(st.none(), st.sampled_from([-1.0, 0.0, 0.25, 0.5, 0.7, 1.0]))
    scores = data.draw(st.lists(one, min_size=programs, max_size=programs))
    opinions = data.draw(st.lists(st.sampled_from([-1.0, -0.3, 0.4, 1.0]), min_size=programs, max_size=programs))
    settings = TreeSettings(programs=programs, first=first, actions=(("weights", 3),), exploration=exploration)
    search = TreeSearch(settings, 0)
    found = drive(search, table(scores, opinions))
    chosen = [r.parents[0] for r in found.requests if r.parents]
    expected = reference(settings, scores, opinions)
    assert chosen == [name for name in expected for _ in range(3)][: len(chosen)]
    assert len(chosen) > 3 * (len(expected) - 1)


@pytest.mark.parametrize("seed", range(3))
def test_elites_are_drawn_by_reciprocal_rank(seed: int) -> None:
    # p1 ranks second. Opinions make it the parent, so the others have ranks 1, 3, 4 and 5.
    reply = table([0.0, 0.99, 0.2, 1.0, 0.1], [-1, 1, -1, -1, -1])
    weights = {"p3": 1.0, "p2": 1 / 3, "p4": 1 / 4, "p0": 1 / 5}
    whole = sum(weights.values())
    requests = wide("crossover", 2, reply, 5, seed)
    assert {r.parents[0] for r in requests} == {"p1"}
    chances: dict[tuple[str, ...], float] = {(name,): weight / whole for name, weight in weights.items()}
    assert chi_square(Counter(r.parents[1:] for r in requests), chances) < QUANTILES[3]
    pairs: dict[tuple[str, ...], float] = {
        (a, b): weights[a] / whole * weights[b] / (whole - weights[a]) for a, b in itertools.permutations(weights, 2)
    }
    requests = wide("crossover", 3, reply, 5, seed)
    assert chi_square(Counter(r.parents[1:] for r in requests), pairs) < QUANTILES[11]


def test_the_number_of_nodes_shown_is_uniform() -> None:
    for operator in ("crossover", "different"):
        requests = wide(operator, (2, 4), table([0.4, 0.3, 0.2, 0.1, 0.0, -1.0]), 6)
        lengths: Counter[tuple[str, ...]] = Counter((str(len(r.parents) + len(r.ancestors)),) for r in requests)
        assert chi_square(lengths, {(str(n),): 1 / 3 for n in (2, 3, 4)}) < QUANTILES[2]
        assert all(len({*r.parents, *r.ancestors}) == len(r.parents) + len(r.ancestors) for r in requests)


def test_a_crossover_takes_as_many_elites_as_there_are() -> None:
    requests = wide("crossover", 4, table([0.5, 0.4]), 2)
    assert {r.parents for r in requests} == {("p0", "p1")}
    assert {r.ancestors for r in requests} == {()}


def test_a_path_shows_the_nodes_above_nearest_first() -> None:
    # One child for each expansion, each better than the one before: a chain.
    for k in (2, 3, 4):
        settings = TreeSettings(programs=8, first=1, actions=(("path", 1),), fewest=k, most=k)
        found = drive(TreeSearch(settings, 0), lambda request, _: answer(request, request.index))
        assert [r.parents for r in found.requests[1:]] == [(f"p{n}",) for n in range(7)]
        above = [tuple(f"p{n}" for n in range(place - 1, -1, -1))[: k - 1] for place in range(7)]
        assert [r.ancestors for r in found.requests[1:]] == above
        assert above[0] == ()  # the virtual root is no node to show
    assert above[6] == ("p5", "p4", "p3")


def test_different_thoughts_come_uniformly_from_other_branches() -> None:
    settings = TreeSettings(programs=200, first=4, actions=(("different", 2),), fewest=2, most=2)
    search = TreeSearch(settings, 0)
    # Scores rise along one branch, so all nodes but three belong to the parent's branch.
    found = drive(search, table([0.4, 0.3, 0.2, 0.1], rest=0.5))
    branch = {"": "", **{n.program_id: n.program_id for n in search.nodes if not n.parent}}
    for node in search.nodes:
        branch.setdefault(node.program_id, branch[node.parent])
    later = [r for r in found.requests if r.parents]
    assert {r.operator for r in later} == {"different"}
    assert all(branch[other] != branch[r.parents[0]] for r in later for other in r.ancestors)
    first = wide("different", 2, table([0.4, 0.3, 0.2, 0.1]), 4)
    chances: dict[tuple[str, ...], float] = {(f"p{n}",): 1 / 3 for n in (1, 2, 3)}
    assert chi_square(Counter(r.ancestors for r in first), chances) < QUANTILES[2]


def test_different_thoughts_of_an_only_branch() -> None:
    settings = TreeSettings(programs=9, first=1, actions=(("different", 1), ("crossover", 1)))
    search = TreeSearch(settings, 0)
    found = drive(search, table([], rest=0.5))
    # At first the parent is the only node, and later all others stand below the same initial node.
    assert [r.operator for r in found.requests[1:]] == ["structure"] * 2 + ["different", "crossover"] * 3
    for request in found.requests[3::2]:
        assert request.ancestors
        assert request.parents[0] not in request.ancestors


def random_score(request: Request, _: Bar) -> Result:
    if request.seed % 7 == 0:
        return broken(request) if request.seed % 2 else Result(request, failure="no answer")
    score = request.seed % 1000 / 1000
    return answer(request, score, f"[{request.seed % 21 / 10 - 1}]")


@given(st.integers(0, 30), st.integers(2, 9), st.sampled_from(["uct", "depth-first", "breadth-first", "greedy"]))
def test_the_lag_changes_nothing(seed: int, lag: int, rule: Rule) -> None:
    settings = TreeSettings(programs=45, rule=rule)
    one, other = TreeSearch(settings, seed), TreeSearch(settings, seed)
    assert drive(one, random_score, 1) == drive(other, random_score, lag)
    assert one.nodes == other.nodes


def test_a_search_that_hears_everything_again_asks_the_same() -> None:
    settings = TreeSettings(programs=60)
    search = TreeSearch(settings, 3)
    before = drive(search, random_score, 8, most=37)
    again = TreeSearch(settings, 3)
    told = {result.request.index: result for result in before.results}
    after = drive(again, lambda request, bar: told.get(request.index) or random_score(request, bar), 8)
    assert after.requests[: len(before.requests)] == before.requests
    assert after == drive(TreeSearch(settings, 3), random_score, 8)


def test_it_waits_for_its_expansion() -> None:
    search = TreeSearch(TreeSettings(programs=20, first=2, actions=TWO), 0)
    first, second = search.ask(), search.ask()
    assert isinstance(first, Request)
    assert isinstance(second, Request)
    assert isinstance(search.ask(), Wait)
    search.tell(answer(first, 0.1))
    assert isinstance(search.ask(), Wait)
    assert [node.program_id for node in search.nodes] == ["p0"]
    search.tell(answer(second, 0.2))
    third = search.ask()
    assert isinstance(third, Request)
    assert third.parents == ("p1",)


@pytest.mark.parametrize("score", [0.0, 0.1, -0.3, 1 / 3, 123.456])
def test_equal_scores(score: float) -> None:
    search = TreeSearch(TreeSettings(programs=24, first=3, actions=(("weights", 3),)), 0)
    sizes = [9, 5, 5, *([7] * 21)]
    found = drive(search, lambda request, _: answer(request, score, size=sizes[request.index]))
    assert expanded(found)[:3] == ["p0", "p1", "p2"]  # the least visited first, then the earlier
    assert {n.q for n in search.nodes} == {score}
    assert search.best[:3] == ("p1", "p2", "p3")
    assert search.best[-1] == "p0"


def test_negative_and_huge_scores() -> None:
    most = sys.float_info.max
    for scores in ([-3.0, -1.0, -2.0], [-most, most, 0.0], [-most, -most / 2, -most * 0.9], [0.0, 5e-324, 0.0]):
        search = TreeSearch(TreeSettings(programs=40, first=3), 0)
        found = drive(search, table(scores, rest=min(scores)))
        assert found.requests[3].parents[0] == "p1" or max(scores) == 5e-324
        assert all(math.isfinite(n.q) for n in search.nodes)
        assert search.best[0] == "p1"


def test_a_search_without_nodes_to_ask_for_is_refused() -> None:
    for settings in (TreeSettings(first=0), TreeSettings(actions=())):
        with pytest.raises(ValueError, match="at least one initial node and one action"):
            TreeSearch(settings, 0)


def test_opinions_are_read_from_notes() -> None:
    search = TreeSearch(TreeSettings(programs=3, first=3), 0)
    drive(search, lambda request, _: answer(request, 0.1, [None, "so: [0.5]", "[-4]"][request.index]))
    assert [n.opinion for n in search.nodes] == [0.0, 0.5, -1.0]
