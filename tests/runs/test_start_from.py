"""Runs that begin with programs which exist already."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from grace_irl.cli import main
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.errors import InputError
from grace_irl.programs.export import program_of
from grace_irl.programs.parts import Reads
from grace_irl.propose.given import Given, GivenProgram
from grace_irl.rewards.file import load_reward
from grace_irl.runs.auditing import stored_audit
from grace_irl.runs.beginnings import programs_of
from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.fit import resume, start
from grace_irl.runs.recording import recorded_config
from grace_irl.runs.run import Run, opened
from grace_irl.states.record import RecordStates
from tests.fakes.data import vector_set
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.fakes.scripted_proposer import ScriptedProposer

SHORT = {"search.population": 5, "search.elite": 2, "search.generations": 1}
CONSTANT = "class Reward:\n    def __init__(self, extra_info=None): pass\n    def reward_fn(self, state): return 4.0\n"


def run_in(folder: Path, **flags: object) -> Run:
    parts = Parts(vector_set(noise=0.05), ScriptedProposer(), InProcessSandbox())
    return start(resolve(flags={**SHORT, **flags}), folder, parts)


def first_sources(run: Run) -> list[tuple[str, str]]:
    with opened(run.folder) as (store, _):
        return [(proposal.source, proposal.reasoning) for _, _, proposal in store.proposals()][:5]


def test_given_files_are_tried_first_and_the_rest_is_proposed(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CONSTANT)
    run = run_in(tmp_path / "run", **{"proposer.start_from": (str(tmp_path / "mine.py"),)})
    sources = first_sources(run)
    assert sources[0] == (CONSTANT, f"given: {tmp_path / 'mine.py'}")
    assert not any(reasoning.startswith("given") for _, reasoning in sources[1:])
    plain = run_in(tmp_path / "plain")
    assert sources[1:] == first_sources(plain)[1:]


def test_a_given_program_that_fails_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CONSTANT.replace("return 4.0", "return state[99]"))
    (tmp_path / "good.py").write_text(CONSTANT)
    run = run_in(tmp_path / "run", **{"proposer.start_from": (str(tmp_path / "mine.py"), str(tmp_path / "good.py"))})
    (line,) = [note for note in run.notes if note.startswith("--start-from")]
    assert line.startswith(f"--start-from {tmp_path / 'mine.py'}: its program fails here, so nothing began with it (")
    assert "IndexError" in line
    again = resume(run.folder, parts=Parts(vector_set(noise=0.05), ScriptedProposer(), InProcessSandbox()))
    assert [note for note in again.notes if note.startswith("--start-from")] == [line]


@pytest.mark.parametrize("seeded", [False, True])
def test_the_synthesiser_begins_with_its_best_program_behind_given_ones(seeded: bool, tmp_path: Path) -> None:
    mine = [tmp_path / f"{number}.py" for number in range(2)]
    for number, path in enumerate(mine):
        path.write_text(CONSTANT.replace("4.0", f"{number}.0"))
    flags: dict[str, object] = {**SHORT, "search.generations": 0, "proposer.name": "synthesis"}
    data = vector_set(noise=0.05)
    plain = start(resolve(flags=flags), tmp_path / "plain", Parts(data, sandbox=InProcessSandbox()))
    flags["proposer.start_from"] = tuple(map(str, mine))
    if seeded:
        flags |= {"proposer.name": "manual", "proposer.seed_synthesis": 2, "stop.max_calls": 4}
    begun = start(resolve(flags=flags), tmp_path / "begun", Parts(data, sandbox=InProcessSandbox()))
    assert [source for source, _ in first_sources(begun)][2:4] == [source for source, _ in first_sources(plain)][:2]


def test_the_best_of_a_run_come_first_best_first_and_score_as_they_did(tmp_path: Path) -> None:
    one = run_in(tmp_path / "one")
    two = run_in(tmp_path / "two", **{"proposer.start_from": (str(one.folder),)})
    assert first_sources(two)[0][0] == one.best.source
    assert len({source for source, _ in first_sources(two)}) == 5
    with opened(one.folder) as (first, _), opened(two.folder) as (second, _):
        before, after = first.records(), second.records()
    shared = set(before) & set(after)
    assert one.best.program.id in shared
    assert all(after[name].evaluation.score == before[name].evaluation.score for name in shared)
    assert two.best.fitness >= one.best.fitness


def test_the_best_of_a_run_is_first_though_another_has_a_higher_score(tmp_path: Path) -> None:
    one = run_in(tmp_path / "one")
    with opened(one.folder) as (store, _):
        other = next(
            name for name, each in store.records().items() if each.evaluation.valid and name != one.best.program.id
        )
        store.set_meta("best", other)
    (given, *_) = programs_of((str(one.folder),), 3)
    assert given.origin == f"{one.folder}: {other}"


@pytest.mark.parametrize("method", ["forge", "eureka", "map-elites"])
def test_every_method_tries_given_programs_first(method: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(CONSTANT)
    flags = {"method": method, "proposer.start_from": (str(tmp_path / "a.py"),), "stop.max_calls": 3}
    parts = Parts(vector_set(noise=0.05), ScriptedProposer(), InProcessSandbox())
    run = start(resolve(flags=flags), tmp_path / "run", parts)
    assert first_sources(run)[0][0] == CONSTANT


def test_a_reward_that_fit_wrote_is_the_program_that_it_was(tmp_path: Path) -> None:
    one = run_in(tmp_path / "one")
    two = run_in(tmp_path / "two", **{"proposer.start_from": (str(one.reward_path),)})
    assert first_sources(two)[0][0] == one.best.source
    exported = one.reward_path.read_text()
    assert "SCALE" not in program_of(exported)
    assert program_of(CONSTANT) == CONSTANT
    again = run_in(tmp_path / "three", **{"proposer.start_from": (str(two.reward_path),)})
    assert again.reward_path.read_text().count("def discriminator_logit") == 1


def test_resuming_needs_the_programs_only_until_they_are_told(tmp_path: Path) -> None:
    one = run_in(tmp_path / "one")
    flags = {"proposer.start_from": (str(one.folder),), "stop.max_calls": 3, "stop.target_accuracy": None}
    stopped = run_in(tmp_path / "two", **flags)
    assert stopped.calls == 3
    parts = Parts(vector_set(noise=0.05), ScriptedProposer(), InProcessSandbox())
    one.folder.rename(tmp_path / "moved")  # run.db has the programs
    done = resume(stopped.folder, {"stop.max_calls": 10}, parts=parts)
    (tmp_path / "moved").rename(one.folder)
    whole = run_in(tmp_path / "whole", **{**flags, "stop.max_calls": 10})
    assert (done.best.program.id, done.calls) == (whole.best.program.id, whole.calls)


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (("absent.py",), "No such file"),
        ((".",), "run.db"),
        (("a.py",) * 6, "6 paths, and the first population has 5 programs"),
    ],
)
def test_what_cannot_begin_a_run_is_refused_before_anything_is_written(
    paths: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(CONSTANT)
    with pytest.raises(InputError, match=said):
        run_in(tmp_path / "run", **{"proposer.start_from": paths})
    assert not (tmp_path / "run").exists()


def test_every_path_gets_a_place(tmp_path: Path) -> None:
    one = run_in(tmp_path / "one")
    (tmp_path / "a.py").write_text(CONSTANT)
    given = programs_of((str(one.folder), str(tmp_path / "a.py")), 3)
    assert [program.origin.split(":")[0] for program in given] == [str(one.folder)] * 2 + [str(tmp_path / "a.py")]


def test_the_command_and_the_synthesiser_take_them_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demos = str(Path(__file__).parents[2] / "datasets" / "babyai-go-to-obj")
    mine = tmp_path / "mine.py"
    mine.write_text(CONSTANT)
    arguments = ["fit", "--demos", demos, "--start-from", str(mine), "--max-calls", "3", "--out", str(tmp_path / "run")]
    assert main([*arguments, "--workers", "1"]) == 0
    with opened(tmp_path / "run") as (store, config):
        proposals = [proposal for _, _, proposal in store.proposals()]
    assert config.proposer.start_from == (str(mine),)
    assert proposals[0].source == CONSTANT
    assert "reward_fn" in proposals[1].source
    capsys.readouterr()
    assert main(["fit", "--replay", str(tmp_path / "run"), "--out", str(tmp_path / "again"), "--workers", "1"]) == 0
    assert main(["fit", "--demos", demos, "--start-from", str(tmp_path / "none.py")]) == 2


def named(order: tuple[int, ...], names: tuple[str, ...] = ("x", "y", "z")) -> Demonstrations:
    """`vector_set` with its components in another order."""
    found = vector_set(noise=0.05)
    items = [
        replace(each, trajectory=replace(each.trajectory, states=each.trajectory.states[:, order])) for each in found
    ]
    about = replace(found.metadata, fields=tuple(names[place] for place in order))
    return replace(found, metadata=about, items=tuple(items))


@pytest.mark.parametrize(
    ("order", "names", "said"),
    [((2, 0, 1), ("x", "y", "z"), "in this order: choose it with --state-columns"), ((0, 1, 2), ("a", "b", "c"), "of")],
)
@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_program_that_reads_other_components_is_refused(
    kind: str, order: tuple[int, ...], names: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    config = resolve(flags=SHORT)
    one = start(config, tmp_path / "one", Parts(named((0, 1, 2)), ScriptedProposer(), InProcessSandbox()))
    given = {"proposer.start_from": (str(one.folder if kind == "folder" else one.reward_path),)}
    config = resolve(flags={**SHORT, **given})
    start(config, tmp_path / "two", Parts(named((0, 1, 2)), ScriptedProposer(), InProcessSandbox()))
    with pytest.raises(InputError, match=f"reads x, y, z, and the demonstrations have .*; expected components {said}"):
        start(config, tmp_path / "three", Parts(named(order, names), ScriptedProposer(), InProcessSandbox()))
    assert not (tmp_path / "three").exists()


def test_held_out_episodes_that_an_earlier_run_was_trained_on_are_no_test(tmp_path: Path) -> None:
    demos = str(Path(__file__).parents[2] / "datasets" / "babyai-go-to-obj")
    words = ["fit", "--demos", demos, "--max-calls", "3", "--workers", "1", "--held-out", "0.3"]
    begin = ["--start-from", str(tmp_path / "one")]
    for name, more in {"one": [], "same": begin, "other": [*begin, "--seed", "5"]}.items():
        assert main([*words, *more, "--out", str(tmp_path / name)]) == 0
    codes = {}
    for name in ("one", "same", "other"):
        with opened(tmp_path / name) as (store, _):
            audit = stored_audit(store)
            assert audit is not None
            codes[name] = [each for each in audit.warnings if each.code == "held-out-seen"]
    assert not codes["one"]
    assert not codes["same"]
    assert f"held-out episodes were training data of {tmp_path / 'one'}" in codes["other"][0].found


def test_a_folder_of_an_expansion_names_its_last_run(tmp_path: Path) -> None:
    for number in (0, 1, 10):
        (tmp_path / "rounds" / str(number) / "run").mkdir(parents=True)
        if number < 10:
            (tmp_path / "rounds" / str(number) / "run" / "reward.py").touch()
    with pytest.raises(InputError, match=r"an expansion; expected one of its runs, such as .*rounds/1/run"):
        programs_of((str(tmp_path),), 3)
    with pytest.raises(InputError, match=r"an expansion; expected one of its runs, such as .*rounds/1/run"):
        recorded_config(tmp_path)


def recorded(*names: str) -> Demonstrations:
    """Records of the parts with these names, each of two numbers."""
    items = tuple(
        Demonstration(Trajectory(RecordStates({name: np.full((4, 2), sign * size) for name in names})), role)
        for role, sign in (("expert", 1.0), ("negative", -1.0))
        for size in (1, 2, 3)
    )
    return Demonstrations(Metadata("record", label="all"), items)


def test_programs_for_other_parts_or_another_kind_are_refused(tmp_path: Path) -> None:
    program = CONSTANT.replace("4.0", 'float(state["arm"][0] > 0)')

    def run_on(demonstrations: Demonstrations, place: Path, begin: Path) -> Run:
        proposer = Given([GivenProgram(program, "here")])
        flags = {"proposer.start_from": (str(begin),), "search.population": 2, "search.elite": 1}
        return start(resolve(flags={**SHORT, **flags}), place, Parts(demonstrations, proposer, InProcessSandbox()))

    (tmp_path / "plain.py").write_text(program)
    first = run_on(recorded("arm", "goal"), tmp_path / "first", tmp_path / "plain.py")
    assert load_reward(first.reward_path).reads == Reads("record", {"arm": (2,), "goal": (2,)})
    for given in (first.reward_path, first.folder):
        told = f"--start-from {given}.*: demonstrations: no part 'goal'; expected it .* as the reward reads it: choose"
        with pytest.raises(InputError, match=told):
            run_on(recorded("arm", "hand"), tmp_path / "second", given)
        with pytest.raises(InputError, match="demonstrations: vectors; expected records, as the reward reads them"):
            run_on(vector_set(), tmp_path / "second", given)
        assert not (tmp_path / "second").exists()
    assert run_on(recorded("arm", "goal", "more"), tmp_path / "third", first.folder).best.evaluation.valid
