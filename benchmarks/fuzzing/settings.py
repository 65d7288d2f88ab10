"""Files of settings in TOML that are nearly right: recipes, goal states, configurations of runs and of comparisons."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from fuzzing import mutations as m
from fuzzing.draw import Draw, change

_TOKEN = re.compile(r'"[^"]*"|[\w.+-]+|[\[\]{}=,#]|\n')
_VALUES = (
    *("1", "-1", "0", "0.5", "1.5", "nan", "-inf", "1e999", "9" * 30, "9" * 5000, "true", '"none"', '""', '"a"', "[]"),
    *(
        "{}",
        "[1]",
        '["a", 1]',
        "1979-05-27",
        "07:32:00",
        "1979-05-27T00:32:00-99:99",
        '"""\n"""',
        "'\\'",
        "0x_1",
        "[[]]",
    ),
    *("{a = {b = 1}}", "[" * 80 + "]" * 80, "[" * 4000, '"\\uD800"', '"\\u0000"', '"\\u001b[2J"', "+1", "1_000"),
    *('"last"', '"goal"', '"expert"', '"held_out"', "0.999", "1000000000", "1e-320", '"../a"', '"/etc/a.parquet"'),
)
_LINES = (
    *("[a.b.c]", "[[file]]", "[data", "a.b.c = 1", "x = 1", "[search]", "seed = 1", "file = 1", "[[data]]", "\0", "\r"),
    *("# \x1b[2J", "[" + "a." * 3000 + "a]", "a." * 3000 + "a = 1", "a = " + "{b=" * 1500, "[file]", "seed = true"),
)
RECIPE = """seed = 3
label = "last"
[[file]]
out = "expert.parquet"
role = "expert"
from_role = "expert"
task = "a"
goal = "set (an )?alarm"
min_states = 1
max_states = 20
success = true
[[file]]
out = "sub/negative.parquet"
role = "negative"
not_goal = "^b+$"
sample = 2
held_out = 0.5
package = ["com.*", "a[b-d]?"]
not_package = ["x"]
from_task = "a"
"""
COLLECT = """[[file]]
out = "expert.parquet"
env = "CartPole-v1"
policy = "random"
role = "expert"
episodes = 3
seed = 1
max_steps = 10
keep_successes = false
task = "balance"
kind = "vector"
"""
_PATTERNS = (
    *(
        "(",
        "a{99999999999}",
        "[[a]",
        "(?P<a>",
        "(?i",
        "\\",
        "*",
        "(" * 3000,
        "a" * 9999,
        "(?<!a+)",
        "[a-",
        "\\N{x}",
        "(?a)é",
    ),
    *(
        "[a--b]",
        "(?L)a",
        "x{2,1}",
        "(a)(?P=b)",
        "\\g<1>",
        "(?(9)a)",
        "|" * 500,
        "(?:a{1000}){1000}",
        "[z-a]",
        "^$",
        "é",
    ),
)


@cache
def _whole() -> tuple[str, str, str]:
    """The configuration of a run, of a comparison, and goal states, as this project writes them."""
    from grace_irl.compare.settings import Comparison
    from grace_irl.config import Config
    from grace_irl.runs.config import to_toml

    config = Config.model_validate({"data": {"demos": ("a.parquet", "b.npz")}, "search": {"samples": 2}})
    comparison = Comparison(tuned=("airl.demo_batch_size=512", "gail.x=[1, 2]"), transfer=("A-v0",))
    goals = "# a; task b; 3 states\n" + "\n".join(f"{digest} = [3, 11]" for digest in digests())
    return to_toml(config), to_toml(comparison), goals + "\n"


@cache
def known() -> Any:
    """A set of demonstrations that settings are applied to: four episodes, two of them of experts."""
    import numpy as np

    from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory

    def item(number: int, role: Any) -> Any:
        states = np.arange(24.0).reshape(12, 2) + number
        return Demonstration(Trajectory(states, extra_info="set an alarm", rewards=np.ones(11)), role, "a")

    items = tuple(item(number, "expert" if number < 2 else "negative") for number in range(4))
    return Demonstrations(Metadata("vector", label="all"), items)


def digests() -> list[str]:
    """Of its experts."""
    return [item.trajectory.digest for item in known() if item.role == "expert"]


def toml(rng: Draw, text: str) -> bytes:
    """A file of settings with tokens, values, lines or bytes changed."""
    for _ in rng.rounds():
        text = _changed(rng, text)
    data = text.encode("utf-8", "surrogatepass")
    if rng.random() < 0.04:
        data = m.encoded(rng, text)
        rng.changed()
    return m.in_bytes(rng, data) if rng.may(0.06) else data


@change
def _changed(rng: Draw, text: str) -> str:
    kind = rng.randrange(8)
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    if kind < 4:
        found = [number for number, line in enumerate(lines) if " = " in line]
        if found:
            at = rng.choice(found)
            name = lines[at].partition(" = ")[0]
            if name in ("goal", "not_goal") and rng.random() < 0.6:
                lines[at] = f"{name} = {json.dumps(rng.choice(_PATTERNS))}"
            else:
                lines[at] = f"{name} = {rng.choice(_VALUES)}"
        return "\n".join(lines)
    if kind == 4:
        return "\n".join([*lines[:at], rng.choice((*_LINES, *lines)), *lines[at:]])
    if kind == 5:
        return "\n".join(lines[:at] + lines[at + 1 :])
    if kind == 6:
        other = rng.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
        return "\n".join(lines)
    return m.in_text(rng, text, _TOKEN)


def recipe(rng: Draw, folder: Path) -> Path:
    """A recipe of selections."""
    return _file(rng, folder / "recipe.toml", RECIPE)


def collecting(rng: Draw, folder: Path) -> Path:
    """A recipe of files to collect."""
    return _file(rng, folder / "recipe.toml", COLLECT)


def goals(rng: Draw, folder: Path) -> Path:
    """A file of goal states."""
    return _file(rng, folder / "goals.toml", _whole()[2])


def config(rng: Draw, folder: Path) -> Path:
    """The configuration of a run: all of it, or a few settings."""
    text = _whole()[0] if rng.random() < 0.5 else 'seed = 3\nmethod = "grace"\n[search]\npopulation = 9\nlag = "none"\n'
    return _file(rng, folder / "config.toml", text)


def comparison(rng: Draw) -> tuple[bytes, bytes]:
    """Both files of settings of a comparison."""
    own, fit = _whole()[1], _whole()[0]
    if rng.random() < 0.5:
        return toml(rng, own), fit.encode()
    return own.encode(), toml(rng, fit) if rng.random() < 0.5 else fit.encode()


def _file(rng: Draw, path: Path, text: str) -> Path:
    path.write_bytes(toml(rng, text))
    return path
