"""Recipes of selections."""

from __future__ import annotations

from pathlib import Path

import pytest

from grace_irl.demos.conditions import Conditions
from grace_irl.demos.select import Selection
from grace_irl.demos.select_recipe import read_select_recipe
from grace_irl.errors import InputError

RECIPE = """
seed = 7
label = "last"
[[file]]
out = "timer.parquet"
goal = 'timer'
package = ["*.deskclock"]
success = true
min_states = 2
role = "expert"
task = "set timer"
sample = 12
held_out = 0.2
[[file]]
out = "negative.parquet"
not_package = ["*clock*"]
not_goal = "clock"
from_role = "expert"
"""


def test_a_recipe(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE)
    recipe = read_select_recipe(path)
    assert (recipe.seed, recipe.label) == (7, "last")
    first, second = recipe.into("set")
    asked = Conditions(goal="timer", package=("*.deskclock",), success=True, min_states=2)
    assert first == Selection(str(Path("set", "timer.parquet")), asked, "expert", "set timer", 12, 0.2)
    assert second.conditions == Conditions(not_package=("*clock*",), not_goal="clock", from_role="expert")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "keys none; expected [[file]] tables, seed, label, nothing else"),
        ("[[file]]", "file 1: out = ''; expected the name of a file in the set's folder"),
        ("seed = -1\n[[file]]\nout = 'a.parquet'", "seed = -1; expected a whole number"),
        ("seed = true\n[[file]]\nout = 'a.parquet'", "seed = True; expected a whole number"),
        ("label = 'best'\n[[file]]\nout = 'a.parquet'", "label = 'best'; expected one of all, last, goal"),
        ("label = []\n[[file]]\nout = 'a.parquet'", "label = []; expected one of all, last, goal"),
        ("sed = 1\n[[file]]\nout = 'a.parquet'", "keys sed, file; expected [[file]] tables"),
        ("file = [1]", "file 1: 1; expected a table"),
        ("[[file]]\nout = '../a.parquet'", "expected the name of a file in the set's folder"),
        ("[[file]]\nout = '/tmp/a.parquet'", "expected the name of a file in the set's folder"),
        ("[[file]]\nout = 'a'\ngaol = 'x'", "file 1: gaol = 'x'; did you mean goal? expected the keys out (str)"),
        ("[[file]]\nout = 'a'\npackage = 'x'", "package = 'x'; expected the keys"),
        ("[[file]]\nout = 'a'\npackage = [1]", "package = [1]; expected the keys"),
        ("[[file]]\nout = 'a'\nsample = 1.5", "sample = 1.5; expected the keys"),
        ("[[file]]\nout = 'a'\nsample = true", "sample = True; expected the keys"),
        ("[[file]]\nout = 'a'\nrole = 'boss'", "file 1: role 'boss'; expected 'expert' or 'negative'"),
        ("[[file]]\nout = 'a'\n[[file]]\nout = 'b'\ngoal = '('", "file 2: --goal '(': no regular expression"),
        ("[[file]", "not TOML"),
    ],
)
def test_recipes_that_cannot_be(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_select_recipe(path)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
