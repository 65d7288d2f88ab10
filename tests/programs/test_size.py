"""The size of programs: what counts, and what does not."""

from __future__ import annotations

import ast

import pytest

from grace_irl.programs.size import description_length

PLAIN = """
class Reward:
    def __init__(self, extra_info=None):
        self.extra_info = extra_info

    def reward_fn(self, state):
        return {expression}
"""


def size(source: str) -> int:
    return description_length(ast.parse(source))


def of(expression: str) -> int:
    return size(PLAIN.format(expression=expression))


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [
        ("state[0]", "state[0] + state[1]"),
        ("2.5 * state[0]", "2.51 * state[0]"),
        ("2.5 * state[0]", "2.5 * state[0] * (state[1] > 3)"),
        ("1.0", "0.12345678901"),
        ("float('ab' in state)", "float('abcdefgh' in state)"),
        ("state[0]", "[1.25, 2.5, 3.75, 4.125][int(state[0])]"),
    ],
)
def test_terms_conditions_constants_and_texts_count(smaller: str, larger: str) -> None:
    assert of(smaller) < of(larger)


def test_a_table_counts_by_its_length() -> None:
    tables = [of(f"{[i / 8 for i in range(count)]}[0]") for count in (10, 20, 40)]
    assert tables[2] - tables[1] == pytest.approx(2 * (tables[1] - tables[0]), rel=0.35)


@pytest.mark.parametrize(
    "more",
    [
        '    """A docstring of the class, and a long one at that."""\n',
        "    # a comment\n",
        "\n    def debug_fn(self, state):\n        return 'a long text that nobody reads ' * 20\n",
    ],
)
def test_what_the_reward_does_not_read_counts_nothing(more: str) -> None:
    plain = PLAIN.format(expression="state[0]")
    assert size(plain + more) == size(plain)
    assert size(plain + "\n\ndef unused(x):\n    return [x * 3.14159] * 100\n") == size(plain)


def test_a_function_that_the_reward_calls_counts() -> None:
    called = PLAIN.format(expression="near(state)") + "\n\ndef near(x):\n    return x[0] * 3.14159\n"
    assert size(called) > of("near(state)") + 20


@pytest.mark.parametrize(
    "more",
    [
        "class V:\n    def __init__(self, x): self.x = x\n    def __sub__(self, other): return {}\n",
        "class V(list):\n    def other(self): return {}\nname = getattr(V(), 'other')\n",
    ],
)
def test_what_operators_and_getattr_reach_counts(more: str) -> None:
    plain = PLAIN.format(expression="V(state) - 1")
    assert size(plain + more.format("self.x * 1.2345 + 6.789")) > size(plain + more.format("0")) + 20


def test_names_count_by_their_number_and_not_by_their_letters() -> None:
    assert size("x = 1\ny = x") == size("a_very_long_name_indeed = 1\nanother_one = a_very_long_name_indeed")


def test_the_same_text_again_costs_little() -> None:
    once, twice = of("state['a long name of a field']"), of("state['a long name of a field'] * 1")
    again = of("state['a long name of a field'] * state['a long name of a field']")
    other = of("state['a long name of a field'] * state['another long name, too']")
    assert once < twice < again < other


@pytest.mark.parametrize("source", ["", "x = 0x" + "f" * 5000, "x = 1e400", "x = 3j", "x = ..."])
def test_odd_sources_have_a_size(source: str) -> None:
    assert 0 <= size(source) < 10**6
