"""Prompts about earlier versions, and answers that end a line of search: whole runs over real HTTP."""

from __future__ import annotations

import json
import re
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.fit import resume, start
from grace_irl.runs.recording import recorded_config, write_recording
from grace_irl.runs.run import Run, opened
from tests.fakes.data import vector_set
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.fakes.scripted_proposer import SOURCE
from tests.propose.client.server import ChatServer
from tests.runs.test_resume import memory

FLAGS: dict[str, object] = {
    "search.population": 6,
    "search.elite": 2,
    "search.generations": 4,
    "search.samples": 1,
    "search.parent_temperature": 0.2,
    "model.answer_format": "code",
    "stop.target_accuracy": 1.0,
}
TRIED = "# What was tried before"
GIVEN_UP = "It cannot be told from the states: two equal states have different labels."


def versions(prompt: str) -> str:
    """A threshold that depends on the prompt alone, so that the order of calls changes nothing."""
    rng = np.random.default_rng(zlib.crc32(prompt.encode()))
    source = SOURCE.format(index=int(rng.integers(3)), threshold=round(float(rng.normal(0, 1)), 2))
    return f"Threshold {rng.integers(1000)}.\n\n```python\n{source}```\n"


def giving_up(prompt: str) -> str:
    """Gives up every third program that it is shown, for its own reason."""
    shown = prompt.partition("# The program\n")[2].partition("# How it scores")[0]
    return GIVEN_UP if shown and zlib.crc32(shown.encode()) % 3 == 0 else versions(prompt)


def run_with(answer: Callable[[str], str], folder: Path, **flags: object) -> Run:
    with ChatServer(answer=answer) as server:
        config = resolve(flags={**FLAGS, "model.url": server.url, **flags})
        return start(config, folder, Parts(vector_set(noise=0.2), sandbox=InProcessSandbox()))


def prompts(folder: Path) -> dict[int, str]:
    with opened(folder) as (store, _):
        return {index: proposal.prompt for index, attempt, proposal in store.proposals() if not attempt}


def parents(folder: Path) -> dict[int, str]:
    """The first parent of each request that has one, by index."""
    with closing(sqlite3.connect(folder / "run.db")) as database:
        rows = database.execute("SELECT idx, parents FROM requests").fetchall()
    return {index: names[0] for index, listed in rows if (names := json.loads(listed))}


def test_prompts_tell_what_earlier_generations_tried(tmp_path: Path) -> None:
    run = run_with(versions, tmp_path / "run")
    asked, of = prompts(run.folder), parents(run.folder)
    with opened(run.folder) as (store, _):
        reasons = {index: proposal.reasoning for index, attempt, proposal in store.proposals() if not attempt}
    assert len(asked) == 30
    several = 0
    for index, prompt in asked.items():
        first = index // 6 * 6  # of this generation
        earlier = [n for n in range(first) if n in of and of[n] == of.get(index)]
        assert (TRIED in prompt) == bool(earlier)
        section = prompt.partition(TRIED)[2].partition("# Where it is wrong")[0]
        found = re.findall(r"^- .*(Threshold \d+)\.$", section, re.MULTILINE)
        assert found == [reasons[n].rstrip(".") for n in earlier][-len(found) :]
        several += len(found) > 1
    assert several


@pytest.mark.parametrize("answer", [versions, giving_up])
def test_prompts_do_not_depend_on_the_number_in_flight(answer: Callable[[str], str], tmp_path: Path) -> None:
    one, many = (run_with(answer, tmp_path / f"lag-{lag}", **{"search.lag": lag}) for lag in (1, 12))
    assert prompts(one.folder) == prompts(many.folder)


def test_an_answer_that_nothing_can_be_told_ends_its_line(tmp_path: Path) -> None:
    run = run_with(giving_up, tmp_path / "run")
    of = parents(run.folder)
    with opened(run.folder) as (store, _):
        told = store.told()
    ended = {of[index]: index for index, each in sorted(told.items(), reverse=True) if each.failure}
    assert ended
    said = {each.failure for each in told.values() if each.failure}
    assert said == {"untold: it cannot be told from the states: two equal states have different labels."}
    for index, parent in of.items():
        assert parent not in ended or index // 6 <= ended[parent] // 6
    assert len(set(of.values()) - set(ended)) > 0  # other lines go on


@pytest.mark.parametrize("cut", [8, 15])
def test_ended_lines_stay_ended_after_a_resume_and_in_a_replay(cut: int, tmp_path: Path) -> None:
    run = run_with(giving_up, tmp_path / "run")
    part = run_with(giving_up, tmp_path / "part", **{"stop.max_calls": cut, "search.lag": 4})
    with ChatServer(answer=giving_up) as server:
        flags = {"stop.max_calls": 1000, "model.url": server.url}
        resume(part.folder, flags, parts=Parts(vector_set(noise=0.2), sandbox=InProcessSandbox()))
    assert prompts(part.folder) == prompts(run.folder)
    assert memory(part.folder) == memory(run.folder)
    with opened(run.folder) as (store, config):
        write_recording(store, config, tmp_path / "run.jsonl")
    again = start(
        recorded_config(tmp_path / "run.jsonl"),
        tmp_path / "again",
        Parts(vector_set(noise=0.2), sandbox=InProcessSandbox()),
    )
    assert memory(again.folder) == memory(run.folder)
