"""Environments of the user's own, by the name of a function."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from grace_irl.demos.trajectory import Metadata
from grace_irl.errors import InputError
from grace_irl.rl.collect import collect
from grace_irl.rl.environments import is_adapter, make

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "custom_environment.py"

FILE = """
import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

class Plain(gymnasium.Env):
    def __init__(self, shape=(3,), dtype=np.float32):
        self.observation_space = Box(0, 9, shape, dtype)
        self.action_space = Discrete(2)
        self.mission = "wait"
        self.buffer = np.zeros(shape, dtype)
    def reset(self, *, seed=None, options=None):
        self.buffer[...] = 0
        return self.buffer, {}
    def step(self, action):
        self.buffer += 1
        return self.buffer, 0.0, False, False, {}

def vector():
    return Plain()

def grid():
    return Plain((2, 4, 3), np.uint8)

def picture():
    return Plain((4, 6, 1), np.uint8)

def channels():
    return Plain((4, 4, 2), np.uint8)

class Noise(Plain):
    def step(self, action):
        self.buffer[0] = np.arange(self.buffer[0].size).reshape(self.buffer[0].shape) % 256
        return super().step(action)
    def reset(self, *, seed=None, options=None):
        found = super().reset(seed=seed)
        self.step(0)
        return found

def noise():
    return Noise((20, 20, 3), np.uint8)

def broken():
    raise RuntimeError("no licence")

def number():
    return 3

thing = 5
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "own.py"
    path.write_text(FILE)
    return str(path)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.b:make", True),
        ("folder/own.py:make_it", True),
        ("C:\\own.py:make", True),
        ("Hopper-v5", False),
        ("package:Name-v0", False),
        ("package.module:", False),
        (":make", False),
    ],
)
def test_names_of_functions_are_told_from_ids(name: str, expected: bool) -> None:
    assert is_adapter(name) == expected


@pytest.mark.parametrize(
    ("function", "kind", "shape"),
    [("vector", "vector", (3,)), ("grid", "grid", (2, 4, 3)), ("picture", "image", (4, 6, 1))],
)
def test_observations_that_are_states_need_no_view(file: str, function: str, kind: str, shape: tuple[int, ...]) -> None:
    found = collect(f"{file}:{function}", "random", 2, "negative", max_steps=4)
    assert found.metadata == Metadata(kind, (), f"{file}:{function}", kind)  # type: ignore[arg-type]
    for item in found:
        assert item.trajectory.states.shape == (5, *shape)
        assert item.trajectory.states.reshape(5, -1)[:, 0].tolist() == [0, 1, 2, 3, 4]  # copies, not the buffer
        assert item.trajectory.extra_info == "wait"
        assert item.trajectory.truncated


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("{file}:absent", "no function absent"),
        ("{file}:thing", "no function thing"),
        ("{file}:broken", r"broken\(\) raised RuntimeError: no licence"),
        ("{file}:number", "gave a int; expected package.module:function"),
        ("{file}:channels", "expected vectors"),
        ("{file}x.py:make", "no file"),
        ("no_such_package_here:make", "does not import: ModuleNotFoundError"),
    ],
)
def test_what_cannot_be_used_is_one_line(file: str, name: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        make(name.format(file=file))
    assert "\n" not in str(caught.value)


def test_a_space_that_fits_grids_and_images_is_told_by_values_or_by_name(file: str) -> None:
    assert make(f"{file}:noise")[1].metadata.kind == "image"
    assert make(f"{file}:noise", kind="grid")[1].metadata.kind == "grid"
    assert make(f"{file}:grid")[1].metadata.kind == "grid"
    assert make(f"{file}:grid", kind="image")[1].metadata.kind == "image"
    assert make(f"{file}:grid", kind="vector")[1].metadata.kind == "grid"


def test_modules_are_imported_by_name(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(file).parent))
    environment, view = make("own:vector", max_steps=2)
    environment.reset()
    assert [environment.step(0)[3] for _ in range(2)] == [False, True]
    assert view.metadata.environment == "own:vector"
    sys.modules.pop("own")


@pytest.mark.parametrize(("limit", "own"), [(5, 64), (100, 100)])
def test_a_level_s_own_limit_is_raised_if_it_is_shorter(limit: int, own: int) -> None:
    pytest.importorskip("minigrid")
    environment, _ = make("BabyAI-GoToObj-v0", max_steps=limit)
    for seed in range(2):
        environment.reset(seed=seed)
        assert [environment.step(0)[3] for _ in range(limit)] == [False] * (limit - 1) + [True]
        assert environment.unwrapped.max_steps == own  # the reward of a success depends on it


def test_a_view_made_of_functions() -> None:
    environment, view = make(f"{EXAMPLE}:corridor")
    observation, _ = environment.reset(seed=1)
    state = view.state(environment, observation)
    assert view.metadata.fields == ("me", "door")
    np.testing.assert_array_equal(state, [environment.me, environment.door])
    assert view.has_goal
    assert view.success(True, 1.0)
    assert not view.success(False, 0.0)
    assert view.instruction(environment) == ""


@pytest.mark.slow
def test_the_example_learns(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("stable_baselines3")
    spec = importlib.util.spec_from_file_location("custom_environment", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["custom_environment"] = module
    spec.loader.exec_module(module)
    assert module.main() > 0.95
    assert "on the recovered reward" in capsys.readouterr().out


def test_files_of_two_folders_may_import_files_of_the_same_name(tmp_path: Path) -> None:
    own = "import gymnasium\nfrom length_of_episodes import MOST\n\n\ndef make():\n"
    for most in (3, 7):
        folder = tmp_path / str(most)
        folder.mkdir()
        (folder / "length_of_episodes.py").write_text(f"MOST = {most}\n")
        (folder / "own.py").write_text(f"{own}    return gymnasium.make('CartPole-v1', max_episode_steps=MOST)\n")
    for most in (3, 7, 3):
        environment, _ = make(f"{tmp_path / str(most) / 'own.py'}:make")
        assert environment.get_wrapper_attr("_max_episode_steps") == most
        environment.close()


def test_packages_of_two_folders_may_have_the_same_name_and_other_imports_stay(tmp_path: Path) -> None:
    """Also packages without __init__.py; a helper that no other folder has stays."""
    own = "import gymnasium\nfrom world.most import MOST\nfrom world.late import late\nimport {alone}\n\n\n"
    own += "def make():\n    import {alone}\n"
    own += "    return gymnasium.make('CartPole-v1', max_episode_steps=late(MOST))\n"
    for most in (3, 7):
        folder = tmp_path / str(most)
        (folder / "world").mkdir(parents=True)
        (folder / "world" / "most.py").write_text(f"MOST = {most}\n")
        (folder / "world" / "late.py").write_text(f"def late(most):\n    return most + {most}\n")
        (folder / f"alone_{most}.py").write_text("")
        (folder / "own.py").write_text(own.replace("{alone}", f"alone_{most}"))
    for most in (3, 7, 3):
        environment, _ = make(f"{tmp_path / str(most) / 'own.py'}:make")
        assert environment.get_wrapper_attr("_max_episode_steps") == 2 * most
        environment.close()
    assert {"alone_3", "alone_7"} <= set(sys.modules)


def test_what_is_installed_below_a_folder_is_not_forgotten(tmp_path: Path) -> None:
    """A virtual environment may lie there, with a module of a name that the other folder has, too."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        own = "import gymnasium\n\n\ndef make():\n    return gymnasium.make('CartPole-v1')\n"
        (tmp_path / name / "own.py").write_text(own)
    installed = tmp_path / "first" / "site-packages"
    installed.mkdir()
    for folder in (installed, tmp_path / "second"):
        (folder / "installed_thing.py").write_text("")
    sys.path.append(str(installed))
    try:
        thing = importlib.import_module("installed_thing")
        for name in ("first", "second"):
            make(f"{tmp_path / name / 'own.py'}:make")[0].close()
        assert sys.modules["installed_thing"] is thing
    finally:
        sys.path.remove(str(installed))
        sys.modules.pop("installed_thing", None)


def test_a_file_may_import_another_of_its_folder(tmp_path: Path) -> None:
    """A file that is called like an installed package hides nothing, and the folder does not stay on the path."""
    before = [*sys.path]
    (tmp_path / "beside_the_pole.py").write_text("NAME = 'CartPole-v1'\n")
    (tmp_path / "numpy.py").write_text("raise RuntimeError('hidden')\n")
    own = "import gymnasium\nimport numpy\nfrom beside_the_pole import NAME\n\n\ndef make():\n"
    (tmp_path / "own.py").write_text(f"{own}    assert numpy.zeros(1).size\n    return gymnasium.make(NAME)\n")
    environment, _ = make(f"{tmp_path / 'own.py'}:make")
    environment.close()
    assert sys.path == before
