"""Completion as a shell asks for it: bash itself runs the script that the command prints."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grace_irl.cli import main
from grace_irl.cli.completion import SHELLS

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")


def completed(folder: Path, *words: str) -> list[str]:
    """What bash offers for the last of these words."""
    program = folder / "grace-irl"
    program.write_text(f"#!{sys.executable}\nimport sys\nfrom grace_irl.cli import main\nsys.exit(main())\n")
    program.chmod(0o755)
    script = (
        'eval "$(grace-irl --show-completion bash)"\n'
        'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))\n'
        '_grace_irl_completion grace-irl "" ""\nprintf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script, "bash", "grace-irl", *words],
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout.split()


@needs_bash
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("comp",), "compare"),
        (("fit", "--dem"), "--demos"),
        (("fit", "--method", "rf-agent", "--tree-r"), "--tree-rule"),
        (("fit", "--config", "not-there.toml", "--see"), "--seed"),
        (("fit", "--replay", "not-there.jsonl", "--see"), "--seed"),
        (("demos", "insp"), "inspect"),
    ],
)
def test_bash_offers_commands_and_flags(words: tuple[str, ...], offered: str, tmp_path: Path) -> None:
    assert offered in completed(tmp_path, *words)


@needs_bash
def test_inside_a_quotation_bash_is_left_to_complete_paths(tmp_path: Path) -> None:
    assert completed(tmp_path, "show", "'an open quo") == []


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_has_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--show-completion", shell]) == 0
    assert "_GRACE_IRL_COMPLETE" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--show-completion", "--install-completion"])
def test_another_shell_is_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([option, "tcsh"]) == 2
    assert capsys.readouterr().err == f"grace-irl: {option} tcsh; expected one of bash, zsh, fish\n"


def test_it_is_installed_in_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".bashrc").write_text("alias mine=yours\n")
    assert main(["--install-completion", "bash"]) == 0
    script = tmp_path / capsys.readouterr().out.partition(":")[0]
    assert "_GRACE_IRL_COMPLETE" in script.read_text()
    rc = (tmp_path / ".bashrc").read_text()
    assert rc.startswith("alias mine=yours\n")
    assert str(script) in rc
