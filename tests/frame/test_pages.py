"""Existence of what pages and sources name: files, commands, flags, settings, variables, modules, extras, headings."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import textwrap
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

from grace_irl.cli.app import COMMANDS, GROUPS, build
from grace_irl.config import Config
from grace_irl.methods.registry import METHODS
from grace_irl.runs.config import flat, resolve, settings_of
from tests.frame.pages import Code, anchors, code, pages
from tests.frame.tree import ROOT, files, texts

FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
FOREIGN = {  # flags of programs that are not ours, and whose they are
    "--dtype": "vllm",
    "--enable-prefix-caching": "vllm",
    "--enforce-eager": "vllm",
    "--structured-outputs-config": "vllm",
    "--tensor-parallel-size": "vllm",
    "--array": "sbatch",
    "--head": "ray",
    "--logdir": "tensorboard",
    "--no-deps": "pip",
    "--require-hashes": "pip",
}
PROGRAM = re.compile(
    r"(?:grace-irl |^|… )?(?P<command>fit|compare|score|export|show|report|collect|work|serve|doctor|demos \w+)\b"
)
SCRIPT = re.compile(r"(?:^|python3? )(?P<path>(?:\w+/)*\w+\.py)\b")
PLACE = re.compile(r"(?<![\w/~$…-])(?<!\w\.)(?P<path>[\w*][\w.*-]*/[\w./*-]*[\w*/])")
MADE = re.compile(r"(?i)reward\.py|library\.py|file\.py|runs/|rounds/|jobs/|out/|RUN/|my|\*/|numpy/")
"""Paths that a user or a run makes, and examples."""
NAMED = re.compile(
    r"(?<![\w/.}{-])((?:docs|benchmarks|examples|datasets|requirements|tests|grace_irl|baselines)/[\w./-]+"
    r"\.(?:md|py|toml|lock|override|parquet))\b"
)
EXAMPLES = {"datasets/expert.parquet", "benchmarks/none.py"}
NO_MODULES = {"grace_irl.baselines", "grace_irl.android_env"}  # a group of entry points, a package of messages
SETTING = re.compile(rf"^(?P<name>(?:{'|'.join(Config.model_fields)})\.\w+)(?:=.*)?$")
DOTTED = re.compile(r"\bgrace_irl(?:\.\w+)+")
VARIABLE = re.compile(r"\bGRACE_IRL_[A-Z_]*[A-Z]\b")
MEMBER = re.compile(
    r"(?P<owner>(?!Reward\b)[A-Z]\w*[a-z]\w*)\.(?P<name>(?!py\b)\w+)|(?P<module>\w+)\.(?P<constant>[A-Z_]{2,})"
)
"""A member of one of our classes, and a constant of a module. `Reward` is the class of a program."""
LINK = re.compile(r"\]\((?!https?:)(?P<page>[^)#\s]*)#(?P<anchor>[^)\s]+)\)")


@cache
def commands() -> dict[str, set[str]]:
    """The flags of every command, by its name."""
    found: dict[str, set[str]] = {}

    def walk(command: Any, name: str) -> None:
        found[name] = {flag for each in command.params for flag in (*each.opts, *each.secondary_opts)} | {"--help"}
        for child, inner in getattr(command, "commands", {}).items():
            walk(inner, f"{name} {child}".strip())

    walk(typer.main.get_command(build([*COMMANDS, *GROUPS])), "")
    found["fit"] |= {f"--{setting.flag}" for name in METHODS for setting in settings_of(name).values()}
    return found


@cache
def scripts() -> dict[str, set[str]]:
    """The flags of every script that has any, by its path."""
    found = {}
    for path in [*files(ROOT / "benchmarks", ".py"), *files(ROOT / "docs", ".py"), *files(ROOT / "examples", ".py")]:
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        named = [call.args for call in calls if getattr(call.func, "attr", "") == "add_argument"]
        flags = {arg.value for args in named for arg in args if isinstance(arg, ast.Constant)}
        found[path.relative_to(ROOT).as_posix()] = flags | {"--help"}
    return found


@cache
def tree() -> set[str]:
    """Every file of the project, and every folder with a slash behind it."""
    paths = [path.relative_to(ROOT) for path in files()]
    return {path.as_posix() for path in paths} | {f"{up.as_posix()}/" for path in paths for up in path.parents}


@cache
def exists(name: str) -> bool:
    """Whether it is a file or folder of the project, by its path or by the end of it."""
    pattern = re.compile(rf"(?:.*/)?{re.escape(name.rstrip('/')).replace(chr(92) + '*', '[^/]*')}/?")
    return any(map(pattern.fullmatch, tree()))


def unknown_flags(each: Code) -> Iterator[str]:
    """Flags that the command or script before them does not have; that nothing has, where they stand alone."""
    if "pip " in each.text or each.text.startswith(("uv ", "warning (")):
        return  # a warning is output, and its advice names flags of several commands
    asked = each.text.split(" #")[0].split(" -- ")[0]
    script, command = SCRIPT.search(asked), PROGRAM.search(asked)
    own = [flags for path, flags in scripts().items() if script and f"/{path}".endswith(f"/{script['path']}")]
    if each.page.as_posix() == "docs/settings.md":
        known = {f"--{setting.flag}" for name in METHODS for setting in settings_of(name).values()}
        known |= {f"--no-{name[2:]}" for name in known} | set.union(*commands().values())
    elif own:
        known = set.union(*own)
    elif command and command["command"] in commands() and (each.language != "span" or command.start() == 0):
        known = commands()[command["command"]]
    else:
        known = set.union(*commands().values(), *scripts().values()) | set(FOREIGN)
    yield from (flag for flag in FLAG.findall(asked) if flag not in known)


CODE = list(code())


@pytest.mark.parametrize(
    "text",
    [
        *("grace-irl fit --demos x --sead 1", "fit --seeds 3", "--sead", "grace-irl demos inspect x --out y"),
        *(
            "benchmarks/progress.py --draws 3",
            "python benchmarks/progress.py --draws 3",
            "grace-irl score r.py --steps 3",
        ),
    ],
)
def test_wrong_flags_are_found(text: str) -> None:
    assert list(unknown_flags(Code(Path("page.md"), 1, text, "span")))


@pytest.mark.parametrize("name", ["benchmarks/none.py", "grid/none.py", "docs/none", "datasets/*/none.toml"])
def test_missing_files_are_found(name: str) -> None:
    assert not exists(name)
    assert exists("grid/evidence.py")
    assert exists("datasets/*/recipe.toml")


def test_flags_exist() -> None:
    assert not [f"{each}: {flag}" for each in CODE for flag in unknown_flags(each)]


def test_commands_exist() -> None:
    called = [(each, match[1]) for each in CODE for match in re.finditer(r"\bgrace-irl ((?:demos )?[a-z]+)", each.text)]
    assert len(called) > 40
    assert not [str(each) for each, name in called if name not in commands()]


def test_files_exist() -> None:
    """Of every path in code: those below a folder of the project, and names that end as files of it do."""
    tops = {path.split("/")[0] for path in tree() if "/" in path}
    missing = []
    for each in CODE:
        for found in PLACE.finditer(each.text):
            if found["path"].split("/")[0] in tops and not exists(found["path"]):
                missing.append(str(each))
        if each.language == "span" and re.fullmatch(r"[\w/]+\.(?:py|lock|override|proto)", each.text):
            missing += [] if MADE.search(each.text) or exists(each.text) else [str(each)]
    assert not missing, "\n".join(missing)


def test_files_that_sources_name_exist() -> None:
    """In comments, docstrings and messages, too."""
    missing = [
        f"{path}: {found[1]}"
        for path, text in texts()
        for found in NAMED.finditer(text)
        if found[1] not in tree() and found[1] not in EXAMPLES and not (ROOT / path).parent.joinpath(found[1]).exists()
    ]
    assert not missing, "\n".join(missing)


def test_settings_exist() -> None:
    named = [(each, match["name"]) for each in CODE if (match := SETTING.match(each.text.removeprefix("--set ")))]
    assert len(named) > 10
    assert not [str(each) for each, name in named if name not in flat(resolve())]


def test_variables_exist() -> None:
    """In the code by their name, or as the mirror of a flag."""
    source = "\n".join(text for path, text in texts(".py") if path.parts[0] in ("grace_irl", "baselines", "tests"))
    flags = {flag[2:].replace("-", "_").upper() for known in commands().values() for flag in known}
    named = [(each, name) for each in CODE for name in VARIABLE.findall(each.text)]
    assert named
    assert not [
        str(each) for each, name in named if f'"{name}"' not in source and name[len("GRACE_IRL_") :] not in flags
    ]


def is_member(found: re.Match[str]) -> bool:
    """Whether a source defines the class, or is the module, and has the name."""
    place, name = found["owner"] or found["module"], found["name"] or found["constant"]
    return any(
        re.search(rf"\b{name}\b", text)
        for path, text in texts(".py")
        if (path.stem == place if found["module"] else re.search(rf"^class {place}\b", text, re.MULTILINE))
    )


@pytest.mark.parametrize("name", ["Budget.negative_events", "statistics.HELPER", "vector.HELPERS", "Nobody.name"])
def test_missing_members_are_found(name: str) -> None:
    assert (found := MEMBER.fullmatch(name))
    assert not is_member(found)


def test_members_exist() -> None:
    named = [(each, found) for each in CODE if each.language == "span" and (found := MEMBER.fullmatch(each.text))]
    assert len(named) > 5
    assert not [str(each) for each, found in named if not is_member(found)]


def test_modules_and_their_names_exist() -> None:
    named = [(each, name) for each in CODE for name in set(DOTTED.findall(each.text)) - NO_MODULES]
    assert named
    for each, name in named:
        assert pkgutil.resolve_name(name), str(each)


def test_python_on_pages_imports_what_there_is() -> None:
    blocks = [
        token for tokens in pages().values() for token in tokens if token.type == "fence" and token.info == "python"
    ]
    assert blocks
    for block in blocks:
        for node in ast.walk(ast.parse(textwrap.dedent(block.content))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("grace_irl"):
                module = importlib.import_module(node.module or "")
                assert all(hasattr(module, alias.name) for alias in node.names), block.content


def test_targets_of_make_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for each in CODE:
        match = re.match(r"make ((?:[a-z]+ ?)+)(?:NAME=(\w+))?", each.text)
        if match:
            assert set(match[1].split()) <= targets, str(each)
            assert not match[2] or f"benchmarks/{match[2]}.py" in tree(), str(each)


def test_extras_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    asked = [(each, name) for each in CODE for name in re.findall(r"(?:grace-irl|\.)\[(\w+)\]", each.text)]
    assert asked
    assert not [str(each) for each, name in asked if name not in extras]


def test_headings_that_links_end_in_exist() -> None:
    for page, text in texts(".md"):
        for link in LINK.finditer(text):
            target = (ROOT / page).parent.joinpath(link["page"]).resolve().relative_to(ROOT) if link["page"] else page
            assert link["anchor"] in anchors(target), f"{page}: {link[0]}"


def test_the_index_lists_every_page_once() -> None:
    listed = re.findall(r"^\| \[([\w-]+\.md)\]\(\1\)", (ROOT / "docs" / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(path.name for path in (ROOT / "docs").glob("*.md") if path.name != "README.md")


def test_the_index_lists_every_command() -> None:
    text = (ROOT / "docs" / "README.md").read_text()
    assert not [name for name in commands() if name not in ("", "demos") and f"grace-irl {name} " not in text]


def test_the_page_on_architecture_lists_every_room() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    assert not [path for path in tree() if re.fullmatch(r"grace_irl/\w+/", path) and f"`{path}`" not in text]


def test_the_readme_is_short() -> None:
    """One screenful of each thing that a visitor asks; the rest stands on pages of docs/."""
    assert len((ROOT / "README.md").read_bytes()) <= 9_000


def test_json_is_missing_from_the_commands_that_the_index_names() -> None:
    silent = {name for name, flags in commands().items() if name not in ("", "demos") and "--json" not in flags}
    assert silent == {"serve", "report"}
    assert "all but `serve` and `report` take `--json`" in (ROOT / "docs" / "README.md").read_text()
