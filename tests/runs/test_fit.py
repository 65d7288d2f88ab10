"""Runs as folders: what is written, what is refused, what a resume may change."""

from __future__ import annotations

import ast
import asyncio
import errno
import os
import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import grace_irl
from grace_irl.cli.show import find
from grace_irl.demos import save
from grace_irl.errors import GraceError, InputError
from grace_irl.propose.protocol import Parent, Proposal, SizeFigures
from grace_irl.runs import front
from grace_irl.runs.auditing import stored_audit
from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.database import PRAGMAS
from grace_irl.runs.fit import resume, start
from grace_irl.runs.folder import RunLock, RunPaths
from grace_irl.runs.front import stored_sizes
from grace_irl.runs.run import Interrupted, Run, best_record, opened
from grace_irl.runs.schema import FORMAT
from grace_irl.runs.score import score
from grace_irl.runs.store import Store
from grace_irl.search.protocol import Request
from tests.fakes.data import vector_set
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.fakes.scripted_proposer import SOURCE, ScriptedProposer

SHORT = {"search.population": 5, "search.elite": 2, "search.generations": 3}


def run_in(folder: Path, **flags: object) -> Run:
    parts = Parts(vector_set(noise=0.05), ScriptedProposer(), InProcessSandbox())
    return start(resolve(flags={**SHORT, **flags}), folder, parts)


def test_a_run_folder_holds_what_it_should(tmp_path: Path) -> None:
    run = run_in(tmp_path / "runs" / "one")
    names = {entry.name for entry in run.folder.iterdir()}
    assert {"config.toml", "run.db", "reward.py", "lock"} <= names
    assert not any(name.startswith(".") for name in names)
    assert [entry.name for entry in (tmp_path / "runs").iterdir()] == ["one"]
    assert resolve(run.folder / "config.toml").search.population == 5
    assert run.best.train.accuracy > 0.5
    assert run.programs >= 5
    assert run.seconds > 0
    with opened(run.folder) as (store, _):
        assert store.seconds() == run.seconds
        assert best_record(store, run.folder).program == run.best.program
        assert [kind for _, kind, _ in store.events()] == ["started", "note", "stopped"]


@pytest.mark.parametrize(("mask", "mode"), [(0o077, 0o700), (0o027, 0o750), (0o022, 0o755)])
def test_a_run_folder_follows_the_umask(tmp_path: Path, mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        run_in(tmp_path / "run")
    finally:
        os.umask(before)
    assert (tmp_path / "run").stat().st_mode & 0o777 == mode


def test_the_reward_file_stands_alone_and_tells_where_it_comes_from(tmp_path: Path) -> None:
    run = run_in(tmp_path / "run")
    text = run.reward_path.read_text()
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert imports == []
    said = ast.get_docstring(ast.parse(text)) or ""
    for part in (
        "fitness:",
        "train:",
        "held out:",
        "train data:",
        "held out data:",
        "seed 0",
        run.best.program.id,
    ):
        assert part in said
    assert grace_irl.__version__ in said
    loaded = grace_irl.load_reward(run.reward_path)
    assert (loaded.scale, loaded.offset) == (run.best.separation.scale, run.best.separation.offset)


def test_the_exported_file_scores_as_the_run_says(tmp_path: Path) -> None:
    run = run_in(tmp_path / "run")
    with opened(run.folder) as (store, _):
        train = {row.digest for row in store.trajectories() if row.split == "train"}
    everything = vector_set(noise=0.05)
    for wanted, expected in ((True, run.best.train), (False, run.best.held_out)):
        items = tuple(item for item in everything if (item.trajectory.digest in train) == wanted)
        found = score(run.reward_path, replace(everything, items=items), sandbox=InProcessSandbox())
        assert found.metrics == expected
        assert found.calibration == "file"


def test_an_easy_problem_ends_after_the_first_generation(tmp_path: Path) -> None:
    class Knows(ScriptedProposer):
        async def propose(self, request, parents):  # type: ignore[no-untyped-def]
            answer = await super().propose(request, parents)
            if request.index == 2:
                return Proposal(answer.source.split("class")[0] + KNOWN)
            return answer

    found = start(
        resolve(flags=SHORT),
        tmp_path / "run",
        Parts(vector_set(), Knows(troubles=False), InProcessSandbox()),
    )
    assert found.reason.startswith("target_accuracy")
    assert (found.generations, found.calls) == (1, 5)
    assert found.best.held_out is not None
    assert found.best.held_out.accuracy == 1.0


KNOWN = """class Reward:
    def __init__(self, extra_info=None):
        pass

    def reward_fn(self, state):
        return float(state[1] > 0.37)
"""


def test_a_folder_that_exists_is_refused_untouched(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "note").write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        run_in(folder)
    assert [entry.name for entry in folder.iterdir()] == ["note"]
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="exists already"):
        run_in(tmp_path / "file")


@pytest.mark.parametrize("name", ["file/run", "file/a/run", "x" * 300])
def test_a_place_where_no_folder_can_be_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match=r"no folder can be made there .*choose another"):
        run_in(tmp_path / name)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_place_that_lets_nobody_write_is_refused_before_the_data_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda place, mode: False)  # root may write nearly everywhere
    with pytest.raises(InputError, match="cannot be written to"):
        start(resolve(flags={"data.demos": ("absent.parquet",)}), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_at_the_start_names_the_folder_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grace_irl.runs.database.PRAGMAS", (*PRAGMAS, "max_page_count=5"))
    with pytest.raises(GraceError, match=f"^{tmp_path}/run/run.db: database or disk is full; expected"):
        run_in(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_path_is_not_the_folder_where_we_stand(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a path is empty"):
        start(resolve(flags={"data.demos": ("",)}), tmp_path / "run")


def test_an_empty_folder_will_do(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    assert run_in(tmp_path / "run").reward_path.exists()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"method": "other"}, "method 'other' is unknown"),
        ({"fitness.log_pi": "recorded"}, "no recorded log-probabilities"),
        ({"data.label": "goal"}, "no goal states are marked"),
    ],
)
def test_bad_settings_leave_nothing_behind(tmp_path: Path, flags: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        run_in(tmp_path / "run", **flags)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_proposer_names_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected one of .*synthesis"):
        start(resolve(flags={"proposer.name": "oracle"}), tmp_path / "run", Parts(vector_set()))
    assert list(tmp_path.iterdir()) == []


def test_experts_alone_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="negative"):
        start(resolve(), tmp_path / "run", Parts(vector_set().select(role="expert")))
    assert list(tmp_path.iterdir()) == []


def test_no_valid_program_is_an_error_that_says_where_to_look(tmp_path: Path) -> None:
    class Useless:
        async def propose(self, request, _parents):  # type: ignore[no-untyped-def]
            return Proposal(f"class Reward: x = {request.index}")

    folder = tmp_path / "my run"
    with pytest.raises(GraceError, match="grace-irl show") as caught:
        start(
            resolve(flags={**SHORT, "search.generations": 0}),
            folder,
            Parts(vector_set(), Useless(), InProcessSandbox()),
        )
    assert caught.value.exit_code == 1
    advice = f"see why with: grace-irl show '{folder}'"
    assert str(caught.value).endswith(advice)
    with opened(folder) as (store, _), pytest.raises(GraceError, match=f"{advice}$"):
        best_record(store, folder)
    with opened(folder) as (store, _), pytest.raises(InputError, match=f"grace-irl show '{folder}'$"):
        find(store, folder, "")


def resumed(folder: Path, flags: dict[str, object] | None = None, **more: object) -> Run:
    parts = Parts(vector_set(noise=0.05), ScriptedProposer(), InProcessSandbox())
    return resume(folder, flags, parts=replace(parts, **more))  # type: ignore[arg-type]


def test_a_resume_may_lengthen_a_run(tmp_path: Path) -> None:
    short = run_in(tmp_path / "a", **{"stop.max_calls": 12})
    assert short.calls == 12
    longer = resumed(tmp_path / "a", {"stop.max_calls": None, "search.generations": 4, "stop.plateau": 50})
    assert longer.calls == 12  # a flag that is not given changes nothing
    longer = resumed(tmp_path / "a", {"stop.max_calls": 1000, "search.generations": 4, "stop.plateau": 50})
    whole = run_in(tmp_path / "b", **{"search.generations": 4, "stop.plateau": 50})
    assert longer.calls == whole.calls
    assert longer.best.program == whole.best.program
    assert resolve(tmp_path / "a" / "config.toml").search.generations == 4


@pytest.mark.parametrize(("words", "kept"), [("", False), ("3 terms", True)])
def test_a_resumed_run_shows_nothing_about_an_earlier_best_program(words: str, kept: bool, tmp_path: Path) -> None:
    """Figures of sizes by folds stay: they depend on the data alone, and no best program changes them."""

    class Improving(ScriptedProposer):
        """Its first program rewards nothing, later ones separate, and then Ctrl-C is pressed."""

        async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
            if request.index > 4:
                raise KeyboardInterrupt
            return Proposal(SOURCE.format(index=1, threshold=request.index / 10 if request.index else 99.0))

    one = {"search.population": 1, "search.elite": 0, "search.lag": 1}
    first = start(
        resolve(flags={**one, "search.generations": 0}),
        tmp_path / "run",
        Parts(vector_set(noise=0.05), Improving(), InProcessSandbox()),
    )
    assert first.warnings
    with opened(first.folder) as (store, _):
        assert stored_audit(store) == first.audit
        store.keep(front.KEY, (SizeFigures(words, first.best.program.id, 0.9, 0.0, 0.1, chosen=True),))
    with pytest.raises(Interrupted) as stopped:
        resumed(first.folder, {"search.generations": 5}, proposer=Improving())
    assert stopped.value.best is not None
    assert stopped.value.best.program != first.best.program
    with opened(first.folder) as (store, _):
        assert stored_audit(store) is None
        assert (stored_sizes(store) is not None) is kept


def test_ctrl_c_between_the_folder_and_the_search_names_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("grace_irl.runs.fit.create", pressed)
        with pytest.raises(KeyboardInterrupt) as nothing:
            run_in(tmp_path / "run")
        assert not isinstance(nothing.value, Interrupted)
        patched.undo()
        patched.setattr("grace_irl.runs.fit.labelled", pressed)
        for begin in (run_in, resumed):
            with pytest.raises(Interrupted) as stopped:
                begin(tmp_path / "run")
            assert stopped.value.folder == tmp_path / "run"
    assert resumed(tmp_path / "run").best.program == run_in(tmp_path / "whole").best.program


@pytest.mark.parametrize("flags", [{"seed": 3}, {"search.population": 9}, {"data.label": "last"}])
def test_a_resume_may_not_make_it_another_run(tmp_path: Path, flags: dict[str, object]) -> None:
    run_in(tmp_path / "run")
    before = (tmp_path / "run" / "config.toml").read_text()
    with pytest.raises(InputError, match=next(iter(flags))):
        resumed(tmp_path / "run", flags)
    assert (tmp_path / "run" / "config.toml").read_text() == before


def test_a_resume_needs_the_same_data(tmp_path: Path) -> None:
    run_in(tmp_path / "run")
    with pytest.raises(InputError, match=r"not those that the run began with \(\d+ of \d+ trajectories are missing, "):
        resumed(tmp_path / "run", demonstrations=vector_set(noise=0.05, seed=1))
    same = vector_set(noise=0.05)
    with pytest.raises(InputError, match="in another order; expected the same order: give them in the order of the"):
        resumed(tmp_path / "run", demonstrations=replace(same, items=same.items[::-1]))


def test_a_resume_needs_the_callers_own_proposer(tmp_path: Path) -> None:
    run_in(tmp_path / "run")
    with pytest.raises(InputError, match=r"a proposer of the caller's own, ScriptedProposer; expected it again: .*fit"):
        resumed(tmp_path / "run", proposer=None)


class Full(ScriptedProposer):
    """Its disk is full at the third request."""

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        if request.index == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return await super().propose(request, parents)


def test_a_full_disk_says_how_to_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(GraceError) as caught:
        start(resolve(flags=SHORT), folder, Parts(vector_set(noise=0.05), Full(), InProcessSandbox()))
    assert str(caught.value) == (
        f"{folder}: No space left on device; expected a disk with room that this user may write to; "
        f"what was done is saved: go on with --resume {folder}"
    )
    assert caught.value.exit_code == 1
    with opened(folder) as (store, _):
        assert next(store.proposals())[0] == 0


def test_an_interruption_can_be_pickled(tmp_path: Path) -> None:
    best = run_in(tmp_path / "run").best
    again = pickle.loads(pickle.dumps(Interrupted(tmp_path, best)))
    assert (again.folder, again.best.source, str(again)) == (tmp_path, best.source, str(Interrupted(tmp_path, None)))


def test_what_cannot_be_resumed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        resumed(tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="expected the folder of a run"):
        resumed(tmp_path / "empty")
    assert list((tmp_path / "empty").iterdir()) == []
    run_in(tmp_path / "run")
    with (
        RunLock(RunPaths(tmp_path / "run").lock),
        pytest.raises(InputError, match="being worked on by process"),
    ):
        resumed(tmp_path / "run")
    store = Store(tmp_path / "run" / "run.db")
    store.set_meta("format", str(FORMAT + 1))
    store.close()
    with pytest.raises(InputError, match=f"format {FORMAT + 1}"):
        resumed(tmp_path / "run")


def test_fit_works_inside_a_running_event_loop(tmp_path: Path) -> None:
    async def notebook() -> Run:
        return run_in(tmp_path / "run")

    assert asyncio.run(notebook()).best.train.accuracy > 0.5


def test_paths_are_kept_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save(vector_set(noise=0.05), "set.parquet")
    config = resolve(flags={**SHORT, "data.demos": ("set.parquet",)})
    start(config, Path("run"), Parts(proposer=ScriptedProposer(), sandbox=InProcessSandbox()))
    assert resolve(Path("run/config.toml")).data.demos == (str(tmp_path / "set.parquet"),)
    monkeypatch.chdir("/")
    again = resume(tmp_path / "run", parts=Parts(proposer=ScriptedProposer(), sandbox=InProcessSandbox()))
    assert again.best.train.accuracy > 0.5


def test_scoring_says_what_is_wrong_with_a_file(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("class Reward:\n    def reward_fn(self, state: return 1")
    with pytest.raises(GraceError, match="line 2"):
        score(broken, vector_set(), sandbox=InProcessSandbox())
    failing = tmp_path / "failing.py"
    failing.write_text(KNOWN.replace("state[1]", "state[9]"))
    with pytest.raises(GraceError, match="runtime: IndexError"):
        score(failing, vector_set(), sandbox=InProcessSandbox())
    with pytest.raises(InputError, match=r"absent\.py"):
        score(tmp_path / "absent.py", vector_set(), sandbox=InProcessSandbox())


def test_scores_by_role(tmp_path: Path) -> None:
    file = tmp_path / "known.py"
    file.write_text(KNOWN)
    found = score(file, vector_set(3, 2, 4), rule="last", sandbox=InProcessSandbox())
    assert found.calibration == "fitted"
    assert [(role.group, role.trajectories, role.states, role.mean) for role in found.roles] == [
        ("expert, positive", 3, 3, 1.0),
        ("expert, other", 3, 9, 1.0),
        ("negative", 2, 8, 0.0),
    ]
    raw = score(file, vector_set(3, 2, 4), calibration="none", sandbox=InProcessSandbox())
    assert raw.metrics.fitness == pytest.approx(-np.log1p(np.exp(-1)) + np.log(0.5))
