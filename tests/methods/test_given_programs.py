"""Programs of `--start-from` may be as many as a method's requests that name no parents."""

from itertools import takewhile

import pytest

from grace_irl.errors import InputError
from grace_irl.methods.method import Method
from grace_irl.methods.registry import METHODS
from grace_irl.runs.config import resolve
from grace_irl.testing.searches import drive
from tests.search.replies import by_index

FORMS = {
    f"{name}-{place}": form
    for name, method in METHODS.items()
    for place, form in enumerate((method, method.with_task))
    if form is not None
}


@pytest.mark.parametrize("name", FORMS)
def test_a_run_may_start_from_as_many_programs_as_name_no_parents(name: str) -> None:
    form: Method = FORMS[name]
    config = resolve(flags={"method": form.name})
    search, reply = form.search(config), by_index(lambda index: -1 / (index + 1))
    first = [*takewhile(lambda request: not request.parents, drive(search, reply, most=40).requests)]
    assert len(first) == form.width(config)
    assert [request.index for request in first] == [*range(len(first))]


@pytest.mark.parametrize(
    ("name", "sets"),
    [
        ("rf-agent", ["tree.programs=2", "tree.first=4"]),
        ("rf-agent", ["tree.programs=4", "tree.first=2"]),
        ("map-elites", ["map_elites.programs=2", "map_elites.first=4"]),
    ],
)
def test_a_search_of_fewer_programs_than_first_ones_begins_with_fewer(name: str, sets: list[str]) -> None:
    config = resolve(sets=sets, flags={"method": name})
    search, reply = METHODS[name].search(config), by_index(lambda index: -1 / (index + 1))
    first = [*takewhile(lambda request: not request.parents, drive(search, reply, most=40).requests)]
    assert METHODS[name].width(config) == len(first) == 2


def test_a_tree_without_children_is_refused() -> None:
    with pytest.raises(InputError, match=r"tree.actions.*no children; expected at least one"):
        resolve(flags={"method": "rf-agent", "tree.actions": "0,0,0,0,0"})
