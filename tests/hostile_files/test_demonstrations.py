"""Demonstrations and recipes: what they name is data; code runs only if this command's own flags name it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from grace_irl.cli import main
from grace_irl.demos import load, save
from grace_irl.rl.matching import environment_for
from tests.fakes.data import vector_set
from tests.hostile_files.traps import Trap, line, trap

pytest.importorskip("gymnasium", reason="needs the extra rl")

Capture = pytest.CaptureFixture[str]


def named(folder: Path, environment: str, name: str = "set.parquet") -> Path:
    """Demonstrations that say where they are from."""
    found = vector_set(noise=0.05)
    save(replace(found, metadata=replace(found.metadata, environment=environment)), folder / name)
    return folder / name


def module(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Trap:
    """A module that leaves a mark when it is imported."""
    found = trap(folder)
    monkeypatch.syspath_prepend(str(folder))
    return found


@pytest.mark.parametrize("form", ["{file}", "evil:Name-v0", "evil:make"])
@pytest.mark.parametrize("suffix", [".parquet", ".npz"])
def test_metadata_import_nothing(
    form: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    evil = module(tmp_path, monkeypatch)
    name = form.format(file=evil.name)
    data = named(tmp_path, name, f"set{suffix}")
    out = ["--demos", str(data), "--out", str(tmp_path / "out")]
    for command in (["fit", "--expand", "1"], ["compare", "--methods", "bc", "--seeds", "1"]):
        assert main([*command, *out]) == 2
        assert "runs code of their choice; expected a registered Gymnasium id there, or, if you" in line(capsys)
        assert not (tmp_path / "out").exists()
    assert not evil.sprung


@pytest.mark.parametrize("form", ["{file}", "evil:make"])
def test_what_the_users_flags_name_is_imported(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the traps work."""
    evil = module(tmp_path, monkeypatch)
    monkeypatch.delitem(__import__("sys").modules, "evil", raising=False)
    data = named(tmp_path, form.format(file=evil.name))
    command = ["fit", "--expand", "1", "--demos", str(data), "--out", str(tmp_path / "out")]
    assert main([*command, "--env", form.format(file=evil.name)]) == 2
    assert evil.sprung


def test_a_registered_id_may_stand_in_metadata(tmp_path: Path) -> None:
    data = load([str(named(tmp_path, "Pendulum-v1"))])
    environment, _ = environment_for(data)()
    environment.close()


def recipe(folder: Path, **changes: object) -> Path:
    """A recipe for `collect`, nearly right."""
    keys = {"out": "a.parquet", "env": "Pendulum-v1", "policy": "random", "role": "negative", "episodes": 1} | changes
    lines = [f"{key} = {value!r}" for key, value in keys.items()]
    (folder / "recipe.toml").write_text("\n".join(["[[file]]", *lines]) + "\n")
    return folder / "recipe.toml"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"out": "../up.parquet"}, "expected the name of a file in the set's folder"),
        ({"out": "../.."}, "expected the name of a file in the set's folder"),
        ({"out": "/tmp/absolute.parquet"}, "expected the name of a file in the set's folder"),
        ({"out": "mujoco/hopper/expert-v0"}, "expected a file that ends in .parquet or .npz"),
        ({"out": ".bashrc"}, "expected a file that ends in .parquet or .npz"),
        ({"policy": "../private.zip"}, "expected bot, random or a file beside the recipe"),
        ({"policy": "/etc/passwd"}, "expected bot, random or a file beside the recipe"),
        ({"env": "evil.py:make"}, "runs code of the recipe's choice"),
        ({"env": "evil:Name-v0"}, "runs code of the recipe's choice"),
    ],
)
def test_a_recipe_writes_in_its_folder_and_imports_nothing(
    change: dict[str, object], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    evil = module(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "set").mkdir()
    before = sorted(tmp_path.iterdir())
    assert main(["collect", "--recipe", str(recipe(tmp_path / "set", **change))]) == 2
    assert said in line(capsys)
    assert not evil.sprung
    assert sorted(tmp_path.iterdir()) == before
    assert [each.name for each in (tmp_path / "set").iterdir()] == ["recipe.toml"]


@pytest.mark.parametrize("change", [{"out": "sub/a.parquet"}, {"policy": "sub/a.zip"}])
def test_a_recipe_follows_no_link_out_of_its_folder(change: dict[str, object], tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.zip").write_text("")
    (tmp_path / "set" / "sub").symlink_to(tmp_path / "elsewhere")
    assert main(["collect", "--recipe", str(recipe(tmp_path / "set", **change))]) == 2
    assert "a link out of its folder" in line(capsys)
    assert [each.name for each in (tmp_path / "elsewhere").iterdir()] == ["a.zip"]


def test_a_recipe_overwrites_nothing_unasked(tmp_path: Path, capsys: Capture) -> None:
    path = recipe(tmp_path)
    (tmp_path / "a.parquet").write_text("the user's own")
    assert main(["collect", "--recipe", str(path)]) == 2
    assert "a.parquet: exists already" in line(capsys)
    assert (tmp_path / "a.parquet").read_text() == "the user's own"
    assert main(["collect", "--recipe", str(path), "--force"]) == 0
    assert len(load([str(tmp_path / "a.parquet")])) == 1


@pytest.mark.parametrize("out", ["../up.parquet", "../..", "/tmp/absolute.parquet", ""])
def test_a_recipe_of_a_selection_writes_in_its_folder(out: str, tmp_path: Path, capsys: Capture) -> None:
    data = named(tmp_path, "")
    path = tmp_path / "recipe.toml"
    path.write_text(f'[[file]]\nout = "{out}"\nrole = "expert"\n')
    command = ["demos", "select", "--recipe", str(path), "--from", str(data), "--out", str(tmp_path / "chosen")]
    assert main(command) == 2
    assert "expected the name of a file in the set's folder" in line(capsys)
    assert not (tmp_path / "chosen").exists()
