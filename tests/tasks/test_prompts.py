"""Prompts of models and people in runs with a task, and what becomes of the answers."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="grace-irl[rl] is not installed")

import grace_irl
from grace_irl.cli import main
from grace_irl.demos.labels import Problem
from grace_irl.errors import InputError
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.propose import manual
from grace_irl.propose.briefing import PromptBudget, brief
from grace_irl.propose.material import Material, ParentMaterial
from grace_irl.propose.tokens import estimate
from grace_irl.rl.collect import collect
from grace_irl.runs.run import opened
from grace_irl.tasks.facts import facts_of
from grace_irl.tasks.operators import SHORTEST, SOURCE, operators
from grace_irl.tasks.task import read_task
from tests.fakes.person import Person
from tests.propose.client.server import ChatServer
from tests.tasks.poles import PROGRAM, stored

Capture = pytest.CaptureFixture[str]


@pytest.mark.slow
def test_a_model_reads_the_task_and_the_course_of_components(task: Path, tmp_path: Path) -> None:
    prompts: list[str] = []

    def answer(prompt: str) -> str:
        prompts.append(prompt)
        if "Describe in at most three sentences" in prompt:
            return "It pays for an upright pole."
        if "square brackets" in prompt:
            return "Likely. [0.5]"
        return f"Upright.\n\n```python\n{PROGRAM.format(weight=len(prompts))}```\n"

    with ChatServer(answer=answer) as server:
        run = grace_irl.fit(
            out=tmp_path / "run",
            method="rf-agent",
            llm_url=server.url,
            answer_format="code",
            sets=(
                f"policy.task={task}",
                "tree.programs=3",
                "tree.first=1",
                'tree.actions="1,1,0,0,0"',
                "search.lag=1",
            ),
        )
    assert run.programs == 3
    designs = [
        each for each in prompts if "# Your task\nDesign" in each or "# Your task\nC" in each or "Keep the" in each
    ]
    assert all("A cart shall keep a pole upright." in each and "steps until the pole falls" in each for each in prompts)
    assert "state[1] velocity, state[2] angle" in prompts[0]
    later = next(each for each in designs if "up: " in each)
    assert "Design idea: It pays for an upright pole." in later
    assert "score along training:" in later
    verify = next(each for each in prompts if "square brackets" in each)
    assert PROGRAM.format(weight=1).strip() in verify
    assert "Design idea: It pays for an upright pole." in verify
    assert "score along training" not in verify
    assert not any("recover them from demonstrations" in each for each in prompts)
    with opened(run.folder) as (store, _):
        assert all(each.evaluation.valid for each in store.records().values())


@pytest.mark.slow
def test_a_model_repairs_a_failing_program_by_the_words_of_the_task(task: Path, tmp_path: Path) -> None:
    prompts: list[str] = []

    def answer(prompt: str) -> str:
        prompts.append(prompt)
        source = PROGRAM.format(weight=2) if len(prompts) > 1 else PROGRAM.format(weight="(")
        return f"```python\n{source}```\n"

    with ChatServer(answer=answer) as server:
        run = grace_irl.fit(
            out=tmp_path / "run",
            method="random",
            llm_url=server.url,
            answer_format="code",
            sets=(f"policy.task={task}", "random.programs=1"),
        )
    first, repair = prompts
    assert "A cart shall keep a pole upright." in first
    assert all(part in repair for part in ("A cart shall keep a pole upright.", "self.up = ( *", "line 3"))
    assert "demonstrations" not in repair
    assert run.best.evaluation.valid
    assert "self.up = 2 *" in run.best.source
    with opened(run.folder) as (store, _):
        assert "repaired" in {row.fate.verdict for row in store.fates()}
    recording, again = tmp_path / "answers.jsonl", tmp_path / "again"
    assert main(["export", str(run.folder), "--recording", str(recording)]) == 0
    assert main(["fit", "--replay", str(recording), "--task", str(task), "--out", str(again)]) == 0
    assert stored(again) == stored(run.folder)


@pytest.mark.slow
def test_a_person_repairs_a_failing_program_of_a_task(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manual, "LOOK", 0.02)

    def write(before: int) -> str:
        return f"```python\n{PROGRAM.format(weight=2 if before else '(')}```\n"

    with Person(tmp_path / "run" / "manual", write=write) as person:
        run = grace_irl.fit(
            out=tmp_path / "run",
            method="random",
            proposer="manual",
            sets=(f"policy.task={task}", "random.programs=1"),
        )
    assert person.answered == ["0000", "0000-repair"]
    assert all(part in person.prompts[1] for part in ("A cart shall keep a pole upright.", "self.up = ( *", "line 3"))
    assert "self.up = 2 *" in run.best.source
    with opened(run.folder) as (store, _):
        assert [row.fate.verdict for row in store.fates()] == ["repaired", "kept"]


@pytest.mark.slow
def test_a_search_starts_from_the_exported_reward_of_a_task(task: Path, tmp_path: Path) -> None:
    """A model sees the program, and nothing of the file's header."""
    prompts: list[str] = []

    def answer(prompt: str) -> str:
        prompts.append(prompt)
        return f"```python\n{PROGRAM.format(weight=7)}```\n"

    shared = (f"policy.task={task}", "model.repair=false")
    first = grace_irl.fit(out=tmp_path / "first", method="random", sets=(shared[0], "random.programs=1"))
    with ChatServer(answer=answer) as server:
        run = grace_irl.fit(
            out=tmp_path / "second",
            method="policy-evolution",
            llm_url=server.url,
            answer_format="code",
            start_from=[str(first.reward_path)],
            population=2,
            elite=1,
            generations=1,
            sets=(*shared, "search.lag=1"),
        )
    assert stored(run.folder)[0][0] == stored(first.folder)[0][0]
    shown = [each for each in prompts if first.best.source.strip().splitlines()[-1] in each]
    assert shown
    assert not any("grace-irl" in each or str(tmp_path) in each for each in prompts)


@pytest.mark.slow
def test_a_model_reads_figures_of_demonstrations_beside_the_task(task: Path, tmp_path: Path) -> None:
    prompts: list[str] = []

    def answer(prompt: str) -> str:
        prompts.append(prompt)
        return f"```python\n{PROGRAM.format(weight=2)}```\n"

    experts = collect("CartPole-v1", "random", 4, "expert", 0)
    with ChatServer(answer=answer) as server:
        grace_irl.fit(
            experts=[each.trajectory for each in experts],
            out=tmp_path / "run",
            method="random",
            llm_url=server.url,
            answer_format="code",
            sets=(f"policy.task={task}", "random.programs=1"),
        )
    (prompt,) = prompts
    assert "A cart shall keep a pole upright." in prompt
    figures = prompt.split("# Demonstrations\n")[1].split("# Your task")[0]
    steps = [each.trajectory.num_steps for each in experts]
    assert figures.startswith(f"4 expert episodes of {min(steps)} to {max(steps)} steps.\n")
    assert "all states against the last ones" in figures
    angles = np.concatenate([each.trajectory.states[:, 2] for each in experts])
    (row,) = (line for line in figures.splitlines() if line.startswith("[2] angle: "))
    assert float(row.partition(": ")[2].partition(",")[0]) == pytest.approx(angles.mean(), abs=0.001)
    assert "debug" not in prompt
    assert "A state is a numpy array of float64 with shape (4,). Fields: state[0] x, " in prompt
    assert "action is a whole number from 0 to 1." in prompt


@pytest.mark.slow
def test_a_model_reads_the_instructions_of_demonstrations_of_several_tasks(task: Path, tmp_path: Path) -> None:
    """They are one set beside the task: figures of all, and each instruction once; no task of theirs is named."""
    prompts: list[str] = []

    def answer(prompt: str) -> str:
        prompts.append(prompt)
        return f"```python\n{PROGRAM.format(weight=2)}```\n"

    found = collect("CartPole-v1", "random", 4, "expert", 0)
    items = tuple(
        replace(
            one,
            task=f"secret-{place % 2}",
            trajectory=replace(one.trajectory, extra_info=f"stand {'left' if place % 2 else 'right'}"),
        )
        for place, one in enumerate(found)
    )
    with ChatServer(answer=answer) as server:
        run = grace_irl.fit(
            demos=replace(found, items=items),
            task=task,
            method="random",
            programs=1,
            llm_url=server.url,
            answer_format="code",
            out=tmp_path / "run",
        )
    assert run.programs == 1
    (prompt,) = prompts
    figures = prompt.split("# Demonstrations\n")[1].split("# Your task")[0]
    assert figures.startswith("4 expert episodes of ")
    assert (figures.count("stand left"), figures.count("stand right")) == (1, 1)
    assert "secret" not in prompt


LONG = "class Reward:\n" + "    x = 1  # a long program\n" * 900


@pytest.mark.parametrize("operator", ["verify", "align", "repair", "reflect"])
def test_a_long_program_is_shown_whole_where_there_is_room(operator: str) -> None:
    """An opinion about half a program is none, and a repair of half a program loses the rest."""
    task = read_task("reacher")
    failed = Evaluation("runtime", "it fails") if operator == "repair" else Evaluation("ok", score=1.0)
    material = Material(parents=(ParentMaterial(LONG, failed),), source=LONG, evaluation=failed)
    prompt = operators(task, facts_of(task))[operator](brief(Problem(task.metadata, "all", ())), material)
    assert LONG.strip() in prompt.user
    assert estimate(LONG) > 2 * SOURCE


def test_several_long_programs_share_the_room() -> None:
    task = read_task("reacher")
    known = operators(task, facts_of(task))["crossover"]
    programs = tuple(ParentMaterial(f"# {name}\n{LONG}", Evaluation("ok", score=1.0)) for name in "abcd")
    problem = Problem(task.metadata, "all", ())

    def shown(total: int) -> tuple[list[str], int]:
        prompt = known(brief(problem, budget=PromptBudget(total=total)), Material(parents=programs))
        assert estimate(prompt.system) + estimate(prompt.user) <= total
        return re.findall(r"^# ([a-d])$", prompt.user, re.MULTILINE), prompt.user.count("left out]")

    assert shown(50_000) == (["a", "b", "c", "d"], 0)
    assert shown(24_000) == (["a", "b", "c", "d"], 4)
    assert shown(7_000) == (["a", "b"], 2)
    assert shown(5_000) == (["a"], 1)


def test_short_prompts_hold_short_programs_or_are_refused() -> None:
    task = read_task("reacher")
    program = ParentMaterial(LONG, Evaluation("ok", score=1.0))
    short, fits = ParentMaterial(program.source[:4_000], program.evaluation), 0
    problem, known = Problem(task.metadata, "all", ()), operators(task, facts_of(task))

    def tokens(total: int, parent: ParentMaterial = program) -> int:
        prompt = known["reflect"](brief(problem, budget=PromptBudget(total=total)), Material(parents=(parent,)))
        assert ("left out]" in prompt.user) == (total < fits)
        return estimate(prompt.system) + estimate(prompt.user)

    whole = fits = tokens(24_000)
    assert SHORTEST < tokens(3_000) <= 3_000 < whole
    fits = tokens(24_000, short) + 5
    assert tokens(fits, short) == fits - 5  # a prompt that fits shows the whole program
    assert SHORTEST < tokens(fits - 500, short) <= fits - 500
    with pytest.raises(InputError, match=r"a prompt of task reacher needs about \d+ tokens; expected at most 500:"):
        tokens(500)
