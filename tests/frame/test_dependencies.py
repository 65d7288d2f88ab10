"""The locks hold what pyproject.toml asks for and no more; the package imports what it declares, and no more."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions, requires
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.frame.tree import ROOT, files

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
IMITATION = "imitation==1.0.1"
"""What `make test`, and a user, install beside the extra `baselines`, without its own requirements."""
OF_TASKS = ("flappy-bird-gymnasium==0.4.0", "box2d==2.3.10")
"""What two of the shipped tasks need, and `make test` installs without their own requirements."""
LINE = re.compile(r"^(?P<name>[a-z0-9][a-z0-9-]*)==(?P<version>[0-9][0-9a-z.]*)( ; [^\\]+)?(?P<hashed> \\)?$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")
# Needed without being imported: MuJoCo's environments come with gymnasium and step its exact version.
NOT_IMPORTED = {"mujoco"}
TOOLS = {"mypy", "pytest-xdist", "ruff"}  # run by the Makefile
OF_THE_SITE = {"mkdocs-material": "material", "mkdocstrings": "mkdocstrings", "pymdown-extensions": "pymdownx."}
"""Plugins that mkdocs.yml names, each with its word for them."""
ROOMS_OF_EXTRAS = {
    "minari": ("grace_irl/demos/minari",),
    "h5py": ("grace_irl/demos/hdf5.py",),
    "ray": ("grace_irl/work/cluster.py", "grace_irl/sandbox/cluster.py"),
    "pandas": ("grace_irl/notebook.py", "grace_irl/runs/run.py", "grace_irl/api.py"),
    "gymnasium": (
        "grace_irl/demos/minari",
        "grace_irl/rl/",
        "grace_irl/rewards/",
        "grace_irl/states/",
        "grace_irl/tasks/",
    ),
    "minigrid": ("grace_irl/rl/",),
    "stable-baselines3": ("grace_irl/rl/", "grace_irl/rewards/"),
    "torch": ("grace_irl/rl/",),
    "openai": ("grace_irl/propose/client/",),
    "pillow": ("grace_irl/propose/pictures.py", "grace_irl/states/ui/drawing.py", "grace_irl/demos/ui/picture.py"),
    "protobuf": ("grace_irl/demos/ui/", "grace_irl/demos/tfrecord.py", "grace_irl/demos/foreign/rlds.py"),
    "google-crc32c": ("grace_irl/demos/tfrecord.py",),
    "pyyaml": ("grace_irl/demos/ui/",),
}


def lines_of(name: str) -> list[str]:
    return (ROOT / "requirements" / f"{name}.lock").read_text().splitlines()


def lock(name: str) -> dict[str, str]:
    found = [match for match in map(LINE.match, lines_of(name)) if match]
    return {match["name"]: match["version"] for match in found}


def asked(requirements: list[str]) -> dict[str, Requirement]:
    parsed = [Requirement(line) for line in requirements]
    return {canonicalize_name(one.name): one for one in parsed}


def everything() -> list[str]:
    """Requirements of the project with the extra `all`, its own extras spelled out."""
    extras = Requirement(EXTRAS["all"][0]).extras
    return [*PROJECT["dependencies"], *(line for extra in sorted(extras) for line in EXTRAS[extra])]


def overrides() -> dict[str, Requirement]:
    """What stands in the place of a requirement of `imitation`, by name; a marker that never holds: nothing."""
    lines = (ROOT / "requirements" / "baselines.override").read_text().splitlines()
    return asked([line for line in lines if not line.startswith("#")])


def closure(requirements: list[str], instead: dict[str, Requirement] | None = None) -> set[str]:
    """What the installed packages ask for, from these on; not what torch asks for, which differs by machine."""
    seen: set[tuple[str, str]] = set()
    todo = [Requirement(line) for line in requirements]
    while todo:
        one = todo.pop()
        name = canonicalize_name(one.name)
        for extra in ["", *one.extras]:
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            more = [Requirement(line) for line in (requires(name) or [])] if name != "torch" else []
            more = [(instead or {}).get(canonicalize_name(each.name), each) for each in more]
            todo += [each for each in more if each.marker is None or each.marker.evaluate({"extra": extra})]
    return {name for name, _ in seen}


@cache
def imported(folder: str) -> dict[str, set[str]]:
    """Distributions that the Python files of a folder import, anywhere in them, and the files."""
    distributions = packages_distributions()
    found: dict[str, set[str]] = {}
    for path in files(ROOT / folder, ".py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names = [node.module]
            for top in {name.partition(".")[0] for name in names} - sys.stdlib_module_names:
                # Of the distributions that share a top-level name, the one of that name.
                homes = sorted(map(canonicalize_name, distributions.get(top, [top])))
                name = canonicalize_name(top) if canonicalize_name(top) in homes else homes[0]
                found.setdefault(name, set()).add(path.relative_to(ROOT).as_posix())
    return found


@pytest.mark.parametrize("name", ["core", "full", "torch", "baselines"])
def test_a_lock_is_exact_and_names_no_address(name: str) -> None:
    lines = lines_of(name)
    assert lines
    assert not [line for line in lines if not LINE.match(line) and not HASH.match(line)]
    assert len(lock(name)) == sum(not HASH.match(line) for line in lines)


@pytest.mark.parametrize("name", ["core", "full", "baselines"])
def test_every_pin_has_the_hashes_of_its_files(name: str) -> None:
    """pip refuses a file that has none of them, and the whole lock where a pin has no hash."""
    lines = lines_of(name)
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        assert line.endswith(" \\") == bool(HASH.match(following)), line
        assert line.endswith(" \\") or HASH.match(line), line


def test_torch_is_the_only_pin_without_hashes() -> None:
    """Its file differs between machines with and without a GPU (requirements/README.md)."""
    assert not [line for line in lines_of("torch") if HASH.match(line)]
    assert lock("torch").keys() == {"torch"}


def test_the_makefile_checks_hashes_wherever_a_lock_has_them() -> None:
    installed = [line for line in (ROOT / "Makefile").read_text().splitlines() if re.search(r"PIP\) .*-r ", line)]
    assert len(installed) >= 4
    for line in installed:
        assert ("--require-hashes" in line) == ("torch.lock" not in line), line


def test_the_core_is_part_of_the_whole() -> None:
    assert lock("core").items() <= lock("full").items()


def test_torch_and_its_packages_are_apart() -> None:
    assert not [name for name in lock("full") if re.match(r"torch$|triton|nvidia-|cuda-", name)]


@pytest.mark.parametrize("name", ["core", "full"])
def test_a_lock_is_what_the_project_asks_for(name: str) -> None:
    wanted = asked(PROJECT["dependencies"] if name == "core" else everything())
    pins = lock(name) | (lock("torch") if name == "full" else {})
    assert not [f"{one} is pinned {pins.get(key)}" for key, one in wanted.items() if not satisfied(one, pins.get(key))]
    build = asked(tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"])
    assert all(satisfied(one, pins.get(key)) for key, one in build.items())


def test_the_baselines_lock_holds_what_the_full_one_does_not() -> None:
    """Both are installed with --no-deps into one environment, so that neither may undo the other."""
    assert not set(lock("baselines")) & (set(lock("full")) | {"torch"})
    wanted = asked([*EXTRAS["baselines"], IMITATION, *OF_TASKS])
    pins = {**lock("full"), **lock("torch"), **lock("baselines")}
    assert str(wanted.pop("grace-irl").extras) == "{'rl'}"
    assert not [f"{one} is pinned {pins.get(key)}" for key, one in wanted.items() if not satisfied(one, pins.get(key))]
    needed = closure([*EXTRAS["baselines"], IMITATION, *OF_TASKS], overrides())
    assert not needed - set(pins) - {"grace-irl"}
    assert not set(lock("baselines")) - needed


def test_an_override_undoes_a_requirement_and_is_needed() -> None:
    lines = [line for name in ("flappy-bird-gymnasium", "imitation") for line in requires(name) or []]
    wanted = asked([line for line in lines if "extra" not in line])
    pins = {**lock("full"), **lock("baselines")}
    for name, one in overrides().items():
        assert name in wanted
        if one.marker is None:
            assert satisfied(one, pins.get(name))
            assert not satisfied(wanted[name], pins.get(name))
        else:
            assert not one.marker.evaluate()
    assert not [name for name in wanted if name not in {**pins, **lock("torch")} and name not in overrides()]


def test_what_is_installed_without_its_requirements_never_binds_the_core() -> None:
    declared = [*PROJECT["dependencies"], *(line for lines in EXTRAS.values() for line in lines)]
    assert not {"imitation", "flappy-bird-gymnasium", "box2d"} & {*asked(declared), *imported("grace_irl")}
    makefile = (ROOT / "Makefile").read_text()
    assert f"NO_DEPS := {' '.join((IMITATION, *OF_TASKS))}\n" in makefile


def satisfied(one: Requirement, pin: str | None) -> bool:
    return pin is not None and one.specifier.contains(Version(pin))


@pytest.mark.parametrize("name", ["core", "full"])
def test_a_lock_is_complete_and_holds_nothing_else(name: str) -> None:
    """It is installed with --no-deps, so nothing else would add what it misses."""
    needed = closure(PROJECT["dependencies"] if name == "core" else everything())
    assert not needed - set(lock(name)) - {"torch"}
    apart = closure([f"{one}" for one in requires("torch") or [] if "extra" not in one]) if name == "full" else set()
    assert not set(lock(name)) - needed - apart - {"setuptools"}


def test_every_import_is_declared_where_it_belongs() -> None:
    core, wrong = asked(PROJECT["dependencies"]), []
    for name, places in imported("grace_irl").items():
        if name in core or name == "grace-irl":
            continue
        allowed = ROOMS_OF_EXTRAS.get(name, ())
        wrong += [f"{place} imports {name}" for place in places if not place.startswith(allowed or "-")]
    assert not wrong
    assert set(asked(EXTRAS["minari"])) == {"minari", "h5py", "gymnasium"}
    assert set(asked(EXTRAS["llm"])) == {"openai", "pillow"}
    assert set(asked(EXTRAS["android"])) == {"protobuf", "google-crc32c", "pyyaml", "pillow"}
    assert set(asked(EXTRAS["rlds"])) == {"protobuf", "google-crc32c"}
    assert set(asked(EXTRAS["pandas"])) == {"pandas"}
    assert set(asked(EXTRAS["rl"])) == {"gymnasium", "minigrid", "mujoco", "stable-baselines3", "torch"}


def test_the_baselines_import_what_they_declare() -> None:
    found = set(imported("baselines")) - {"grace-irl", "grace-irl-baselines"}
    declared = set(asked([*EXTRAS["baselines"], IMITATION])) - {"grace-irl"}
    of_rl = set(asked([*EXTRAS["rl"], *PROJECT["dependencies"]]))
    assert found <= declared | of_rl
    through_imitation = {"tensorboard", "tqdm"}
    assert declared - found == through_imitation


def test_nothing_is_declared_that_nothing_imports() -> None:
    package = set(imported("grace_irl"))
    extras = [line for name in ("minari", "rl", "llm", "android", "pandas") for line in EXTRAS[name]]
    declared = set(asked([*PROJECT["dependencies"], *extras]))
    assert not declared - package - NOT_IMPORTED
    around = set(imported("tests")) | set(imported("benchmarks"))
    assert not set(asked(EXTRAS["dev"])) - around - TOOLS


def test_the_tools_of_the_site_are_what_it_uses() -> None:
    declared, imports = set(asked(EXTRAS["docs"])), set(imported("docs"))
    assert {"mkdocs", "nbformat", "jupytext", "nbclient", "jupyter-client"} <= imports & declared
    assert declared - imports == {"ipykernel", *OF_THE_SITE}
    settings = (ROOT / "mkdocs.yml").read_text()
    assert all(word in settings for word in OF_THE_SITE.values())


CORE_ONLY = """
import importlib, pkgutil, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import grace_irl
count, learning = 0, []
for module in pkgutil.walk_packages(grace_irl.__path__, "grace_irl."):
    if module.name.endswith("_pb2"):
        continue  # generated; what needs them imports them
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        training = module.name.startswith(("grace_irl.rl.", "grace_irl.rewards.", "grace_irl.tasks."))
        if not training or error.name.partition(".")[0] not in SIMULATORS:
            raise
        learning.append(module.name)
    count += 1
for name in grace_irl.__all__:
    getattr(grace_irl, name)
print(count, *learning)
"""


# Of the room of environments, what other rooms and `compare` import before they know whether there is a simulator.
WITHOUT_SIMULATORS = {"collect", "environments", "episodes", "evaluation", "method", "methods", "recipe", "views"}


def test_every_module_imports_with_the_core_alone() -> None:
    """Simulators, torch and Minari are imported by the calls that need them, and by modules that only those import."""
    core = {*lock("core"), "grace-irl"}
    blocked = {
        top
        for top, homes in packages_distributions().items()
        if not core.intersection(map(canonicalize_name, homes)) and top not in sys.stdlib_module_names
    }
    assert {"torch", "gymnasium", "minari", "pytest"} <= blocked
    simulators = {"torch", "gymnasium", "stable_baselines3", "minigrid"}
    done = subprocess.run(
        [sys.executable, "-c", f"BLOCKED, SIMULATORS = {sorted(blocked)!r}, {simulators!r}\n{CORE_ONLY}"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    count, *learning = done.stdout.split()
    assert not {name.removeprefix("grace_irl.rl.") for name in learning} & WITHOUT_SIMULATORS
    generated = list(files(ROOT / "grace_irl", "_pb2.py"))
    # The walk does not enter a package that it cannot import.
    closed = [ROOT.joinpath(*name.split(".")) for name in learning]
    modules = [
        path for path in files(ROOT / "grace_irl", ".py") if path.name == "__init__.py" or path.parent not in closed
    ]
    assert int(count) == len(modules) - len(generated) - 1  # the package itself
