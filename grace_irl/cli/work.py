"""`grace-irl work`: work on jobs that another process has written into a shared folder."""

from __future__ import annotations

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer

from grace_irl.cli.console import print_json, say
from grace_irl.errors import GraceError, InputError
from grace_irl.work.folder import free_jobs, freed, jobs_of, work_on
from grace_irl.work.stored import LATEST_S, Pulses, StoredJob


def work(
    folder: Annotated[Path, typer.Argument(help="Folder of a job, or one with such folders, shared by all machines.")],
    workers: Annotated[int, typer.Option(help="Number of jobs in parallel.", min=1)] = 1,
    wait: Annotated[
        float,
        typer.Option(help="Seconds to wait for the folder and for jobs before the first and after the last.", min=0),
    ] = 0.0,
    index: Annotated[
        int | None,
        typer.Option(help="Work on one job only, by its place from 0: the number of an array's task.", min=0),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object as the last line.")] = False,
) -> None:
    """Work on jobs of `fit` and `compare` from a shared folder.

    Several of these commands, on any machines, share the jobs of one folder. A job that has ended is never done again.
    The command ends when no job is left and no fit or compare waits for results. SIGTERM also ends the command, and
    frees its jobs for others.

    Example: grace-irl work /shared/jobs --workers 8
    """
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    until = time.monotonic() + wait
    while not folder.is_dir() and time.monotonic() < until and not stop.wait(LATEST_S):
        pass  # the fit or the comparison that makes the folder may begin later
    there = [] if stop.is_set() else jobs_of(folder)
    before = [job for job in there if job.done]
    if index is not None and index >= len(there) and not stop.is_set():
        expected = f"a number from 0 to {len(there) - 1}" if there else "a folder with jobs"
        raise InputError(f"--index {index}: {folder} holds {_jobs(len(there))}; expected {expected}")
    ended: list[str] = []
    pulses = Pulses()
    refused: set[str] = set()

    def tell(job: StoredJob) -> str:
        said = work_on(job, stop, pulses)
        if said.startswith("refused") and said not in refused:
            refused.add(said)
            say(f"grace-irl: {said.removeprefix('refused: ')}", err=True)
        if said == "done" or said.startswith("failed"):
            ended.append(said)
            say(f"{job.folder}: {said}")
        return said

    def work_through() -> None:
        for job in free_jobs(folder, wait, stop, pulses):
            tell(job)

    if index is not None and not stop.is_set():
        free = freed(there[index], stop) and tell(there[index]) != "taken"
        if not free and not stop.is_set():
            raise GraceError(
                f"{there[index].folder}: another worker works on it; expected a job without one: wait for it, or end it"
            )
    else:
        with ThreadPoolExecutor(workers) as threads:
            for each in [threads.submit(work_through) for _ in range(workers)]:
                each.result()
    failed = sum(said != "done" for said in ended)
    left = [job for job in jobs_of(folder) if not job.done] if stop.is_set() and folder.is_dir() else []
    if as_json:
        print_json({"done": len(ended) - failed, "failed": failed, "left": len(left), "before": len(before)})
    elif ended or not refused:
        say(_said(len(ended) - failed, failed, before))
    if stop.is_set():
        say(f"grace-irl: stopped; {_jobs(len(left))} {'is' if len(left) == 1 else 'are'} left", err=True)
        raise typer.Exit(130)
    if failed or any(job.failed for job in before):
        raise typer.Exit(1)
    if refused and not ended:
        raise typer.Exit(2)


def _said(done: int, failed: int, before: list[StoredJob]) -> str:
    if done or failed:
        return f"{_jobs(done)} done" + (f", {failed} failed" if failed else "")
    if not before:
        return "nothing to do: no job has been written"
    said = f"nothing to do: {_jobs(len(before))} {'has' if len(before) == 1 else 'have'} ended before"
    wrong = sum(job.failed for job in before)
    return f"{said}, {wrong} of them failed (delete its done.json to try again)" if wrong else said


def _jobs(count: int) -> str:
    return f"{count} job{'' if count == 1 else 's'}"
