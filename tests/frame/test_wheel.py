"""The wheel, built from the source distribution of a copy of the tree: what commands read and write is in it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.frame.tree import ROOT, files

NEEDED = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")


def built(kind: str, tree: Path, out: Path) -> Path:
    """What the build backend makes of a tree."""
    build = f"import sys; from setuptools.build_meta import {kind} as build; print(build(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", build, out], cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built wheel. The build writes beside its sources, so it gets copies."""
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("wheel")
    sources = [path for name in ("grace_irl", "baselines", "datasets") for path in files(ROOT / name)]
    for path in [*sources, *(ROOT / name for name in NEEDED)]:
        target = tree / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    shutil.unpack_archive(built("build_sdist", tree, out), out)
    (unpacked,) = filter(Path.is_dir, out.iterdir())
    return built("build_wheel", unpacked, out)


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    ours = {path.relative_to(ROOT).as_posix() for path in files(ROOT / "grace_irl")}
    ours |= {path.relative_to(ROOT / "baselines").as_posix() for path in files(ROOT / "baselines")}
    assert not ours - held
    tops = {"grace_irl", "grace_irl_baselines", wheel.name.split("-py3")[0] + ".dist-info"}
    assert {name.split("/")[0] for name in held} == tops


@pytest.mark.slow
def test_an_installed_wheel_offers_the_baselines(wheel: Path, tmp_path: Path) -> None:
    """Its entry points name them; without imitation, one line says how to install it."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    asked = "load_method('ppo-true'); load_method('gail')"
    code = f"from grace_irl.rl.method import load_method, offered; print(*offered()); {asked}"
    blocked = "import sys; sys.path.insert(0, 'installed'); sys.modules['imitation'] = None"
    done = subprocess.run(
        [
            sys.executable,
            "-S",
            "-c",
            f"{blocked}; sys.path += {[p for p in sys.path if 'site-packages' in p]!r}; {code}",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["airl", "bc", "gail", "ppo-true"]
    assert "pip install --no-deps imitation==1.0.1" in done.stderr.splitlines()[-1]


def test_an_installed_wheel_writes_the_example(wheel: Path, tmp_path: Path) -> None:
    """From the installed files alone, with no checkout around."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    code = "import sys, grace_irl.cli; print(grace_irl.__file__); sys.exit(grace_irl.cli.main(['example', 'set']))"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, 'installed'); {code}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path / "installed"))
    shipped = ROOT / "datasets" / "babyai-go-to-obj"
    assert {path.name: path.read_bytes() for path in (tmp_path / "set").iterdir()} == {
        path.name: path.read_bytes() for path in shipped.iterdir()
    }
