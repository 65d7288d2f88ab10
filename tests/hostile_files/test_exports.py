"""Exported files: no program breaks one, forges its calibration, or says more in it than its own words."""

from __future__ import annotations

import ast
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from grace_irl import load_reward
from grace_irl.cli import main
from grace_irl.demos import save
from grace_irl.programs.export import calibration_of, export_source, program_of, threshold_of
from grace_irl.programs.library import Known, Usage, library_source
from grace_irl.programs.program import Program
from tests.fakes.data import vector_set

BODY = "class Reward:\n    def reward_fn(self, state):\n        return state[0]\n"
FORGED = "\nSCALE = 999.0\nOFFSET = 7.0\nTHRESHOLD = 9.0\n"
SPARE = "\nCALIBRATION_SCALE = 999.0\nCALIBRATION_OFFSET = 7.0\nCALIBRATION_THRESHOLD = 9.0\n"
FOOTER = "\n# The discriminator that was fitted: D(s) = sigmoid(SCALE * reward + OFFSET - log pi).\nSCALE = 999.0\n"
LEVEL = "# A reward above it counts as an expert's: the threshold of the best balanced accuracy on the training data.\n"
FOOTER += f"OFFSET = 7.0\n{LEVEL}THRESHOLD = 9.0\n\n\ndef discriminator_logit(reward, log_pi=0.0):\n    return 999.0\n"
Capture = pytest.CaptureFixture[str]


def exported(
    source: str, facts: tuple[tuple[str, str], ...] = (("fitness", "-0.5"),), threshold: float | None = 0.25
) -> str:
    return export_source(source, title="A title.", facts=facts, scale=2.5, offset=-1.0, threshold=threshold)


def compiles(text: str) -> bool:
    try:
        compile(text.encode(), "reward.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def calibration_when_run(text: str) -> float:
    """Logit of reward 1 by the file's own function, whatever it is called."""
    space: dict[str, object] = {}
    exec(compile(text, "reward.py", "exec", dont_inherit=True), space)
    logit = [value for name, value in space.items() if name.startswith(("discriminator_logit", "calibrated_logit"))][-1]
    assert callable(logit)
    return float(logit(1.0))


@pytest.mark.parametrize(
    "head",
    [
        f"NOTE = '''{FORGED}'''\n",
        f"NOTE = '''{SPARE}'''\n",
        f"NOTE = '''{FOOTER}'''\n",
        f"'''A docstring.{SPARE}'''\n",
        FORGED,
        SPARE,
        FORGED + SPARE,
        FORGED + SPARE + "CALIBRATION_SCALE_2 = 9.0\nCALIBRATION_OFFSET_2 = 9.0\n",
        FOOTER,
        "SCALE = 999.0\nCALIBRATION_OFFSET = 7.0\n",
        "\uff33\uff23\uff21\uff2c\uff25 = 999.0\nOFFSET = 7.0\n",  # Python reads the wide letters as SCALE
        "if True:\n    SCALE = 999.0\n    OFFSET = 7.0\n",
        "def discriminator_logit(reward):\n    SCALE = 999.0\n    OFFSET = 7.0\n",
        "SCALE = 999.0; OFFSET = 7.0\n",
        "(SCALE) = 999.0\n(OFFSET) = 7.0\n",
        f"{LEVEL}THRESHOLD = 9.0\n",
        f"NOTE = '''\n{LEVEL}THRESHOLD = 9.0\n'''\n",
    ],
)
@pytest.mark.parametrize("behind", [False, True])
def test_a_program_forges_no_calibration(head: str, behind: bool, tmp_path: Path) -> None:
    source = BODY + head if behind else head + BODY
    text = exported(source)
    assert calibration_of(text) == (2.5, -1.0)
    assert threshold_of(text) == 0.25
    assert threshold_of(exported(source, threshold=None)) is None
    (tmp_path / "reward.py").write_text(text)
    loaded = load_reward(tmp_path / "reward.py")
    assert (loaded.scale, loaded.offset, loaded.threshold) == (2.5, -1.0, 0.25)
    assert calibration_when_run(text) == 1.5


@pytest.mark.parametrize("line", [f"X = '''{FORGED}'''\n", f"X = '''{FOOTER}'''\n", f"'''{FOOTER}'''\n"])
def test_a_string_of_a_file_is_no_calibration(line: str, tmp_path: Path) -> None:
    (tmp_path / "reward.py").write_text(line + BODY)
    loaded = load_reward(tmp_path / "reward.py")
    assert (loaded.scale, loaded.offset, loaded.threshold) == (1.0, 0.0, None)


def test_names_of_a_program_stay_its_own() -> None:
    source = "\uff33\uff23\uff21\uff2c\uff25 = 10.0\n" + BODY.replace("state[0]", "state[0] * SCALE")
    space: dict[str, type] = {}
    exec(compile(exported(source), "reward.py", "exec", dont_inherit=True), space)
    assert space["Reward"]().reward_fn([2.0]) == 20.0


@pytest.mark.parametrize(
    "doc",
    [
        '("A docstring.")',
        '(("A docstring."))',
        '("A "\n "docstring.")',
        '(\n# why\n"A docstring."  # why\n)',
        '"A " "docstring."',
        '"A " \\\n"docstring."',
        "('''A docstring.''')",
        'r"A docstring."',
        '("A docstring.");',
        '("A docstring."); ',
        '"A docstring." ; # why',
        '"A docstring."  # why',
        '"A docstring." \\\n',
        '"A docstring." \\\n ; \\\n',
        '\\\n"A docstring."',
    ],
)
@pytest.mark.parametrize(
    "before", ["", "# why\n", "\n\n", "# -*- coding: latin-1 -*-\n", "#!/usr/bin/python\n# \u00e9\n"]
)
def test_a_docstring_goes_up_wherever_it_stands(doc: str, before: str) -> None:
    source = f"{before}{doc}\nfrom __future__ import annotations\n{BODY}"
    if doc.endswith("\\\n"):
        source = f"{before}{doc}from __future__ import annotations\n{BODY}" if ";" in doc else source
    tree = ast.parse(source)
    assert ast.get_docstring(tree) == "A docstring."
    text = exported(source)
    assert compiles(text)
    again = ast.parse(text)
    assert (ast.get_docstring(again) or "").endswith("A docstring.")
    assert [ast.dump(node) for node in again.body[1 : len(tree.body)]] == [ast.dump(node) for node in tree.body[1:]]
    assert ast.dump(ast.parse(program_of(text))) == ast.dump(tree)


PIECES = st.sampled_from(
    [
        *("# a comment\n", "\n", "   \n", "# -*- coding: latin-1 -*-\n", "\\\n", " \\\n", "#\\\n"),
        *('"a"\n', "('b')\n", '("c"\n"d")\n', "'''e\n\nf'''\n", '"g"; ', '("h");', '"i" \\\n', "b'j'\n", "f'k'\n"),
        *('"l"  # m\n', "u'n'\n", "('o') ;\n", '("p" + "q")\n', '("r",)\n', '"s".strip()\n', "'t' 'u'\n", "'\\\\'\n"),
        *("from __future__ import annotations\n", "from __future__ import annotations; ", "import math\n", "x = 1\n"),
        *(
            "from __future__ import (\n    division,  # v\n)\n",
            "x = 1; y = 2\n",
            "class Reward: pass\n",
            "x = (1,\n2)\n",
        ),
        *("if 1:\n    x = 2\n", "'''\n# The discriminator that was fitted\n'''\n", "SCALE = 2.0\n", "OFFSET = 1.0\n"),
        *("x = 3 \\\n\n", "x = 4", "# end", "pass \\\n", "  # indented\n", "\t\n", "def f():\n\treturn '''\n'''\n"),
    ]
)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@settings(max_examples=400, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.lists(PIECES, max_size=7).map("".join))
def test_what_compiles_still_does_when_it_is_exported(source: str) -> None:
    assume(compiles("# coding: utf-8\n" + source))
    text = exported(source)
    assert compiles(text), text
    assert calibration_of(text) == (2.5, -1.0)
    assert threshold_of(text) == 0.25
    own, again = ast.parse(source), ast.parse(program_of(text))
    if ast.get_docstring(own) is not None:
        own.body.pop(0)
    if ast.get_docstring(again) is not None:
        again.body.pop(0)
    assert ast.dump(again) == ast.dump(own)


@given(
    st.lists(st.tuples(st.sampled_from(["demos", "lineage"]), st.text(max_size=40)), max_size=4), st.text(max_size=40)
)
def test_facts_and_words_stay_in_the_docstring(facts: list[tuple[str, str]], words: str) -> None:
    source = f"{words!r}\n{BODY}"
    assume(compiles(source))
    text = exported(source, tuple(facts))
    tree = ast.parse(text)
    assert [type(node).__name__ for node in tree.body] == [
        "Expr",
        "ClassDef",
        "Assign",
        "Assign",
        "Assign",
        "FunctionDef",
    ]
    head = text[: text.index("\nclass Reward")]
    assert all(sign.isprintable() or sign == "\n" for sign in head)
    assert text.count('"""') == 4


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exports")
    save(vector_set(10, 10, 20), folder / "set.parquet")
    quick = ["--set", "search.generations=0", "--max-calls", "3", "--workers", "1"]
    assert main(["fit", "--demos", str(folder / "set.parquet"), "--out", str(folder / "run"), *quick, "--json"]) == 0
    return folder


def changed(folder: Path, sql: str, *values: object) -> Path:
    """The run, with its database as somebody else left it."""
    with closing(sqlite3.connect(folder / "run" / "run.db")) as database:
        database.execute(sql, values)
        database.commit()
    return folder / "run"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("class Reward:\n    def reward_fn(self, state): return 1.0 # \u202e\n", "RIGHT-TO-LEFT OVERRIDE"),
        ("class Reward:\n    def reward_fn(self, state): return 1.0 # \x1b[2J\n", "U+001B"),
        ("class Reward:\n    def reward_fn(self, state): return (1.0\n", "'(' was never closed"),
        ("class Reward:\n    '''", "unterminated"),
        ("(" * 5000, "too many nested parentheses"),
    ],
)
def test_an_export_is_written_whole_and_sound_or_not_at_all(
    source: str, words: str, made: Path, tmp_path: Path, capsys: Capture
) -> None:
    run = changed(made, "UPDATE programs SET source = ?", source)
    capsys.readouterr()
    assert main(["export", str(run), "--out", str(tmp_path / "reward.py")]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert said.rstrip("\n").isprintable()
    assert not list(tmp_path.iterdir())


def test_names_in_a_library_stay_in_their_comments() -> None:
    """A name that holds a line end would write a line of its own."""
    hostile = 'near"""\nprint(1)\r\u2028print(2)\u202e\\'
    known = Known("0" * 16, f"Reward.{hostile}", f"a{hostile}", "def near(self, x):\n    return x")
    usage = Usage(known, 2, 2, 4, f"b{hostile}")
    programs = {known.program: Program(known.program, BODY, 9)}
    scores = {usage.best: f"fitness {hostile}"}
    text = library_source([usage], programs, scores, title=f"Shared. {hostile}", facts=[hostile])
    assert [type(node).__name__ for node in ast.parse(text).body] == ["Expr", "ImportFrom", "FunctionDef"]
    assert all(sign.isprintable() or sign == "\n" for sign in text)
