"""Coroutines run from plain functions."""

from __future__ import annotations

import asyncio
import signal
import threading

import pytest

from grace_irl.runs.loop import run_to_end


async def answer() -> str:
    await asyncio.sleep(0)
    return threading.current_thread().name


async def from_a_notebook() -> str:
    return run_to_end(answer())


def test_without_a_loop_it_stays_in_the_thread() -> None:
    assert run_to_end(answer()) == threading.current_thread().name


def test_inside_a_loop_it_takes_another_thread() -> None:
    assert asyncio.run(from_a_notebook()) == "event-loop"


def test_an_error_of_the_work_follows_no_other() -> None:
    async def broken() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken") as error:
        run_to_end(broken())
    assert error.value.__context__ is None


@pytest.mark.parametrize("caller", ["function", "notebook", "coroutine"])
def test_ctrl_c_cancels_what_goes_on(caller: str) -> None:
    """The work would never end by itself; it is told to, and has put its things away when Ctrl-C is raised."""
    put_away = threading.Event()

    async def endless() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            put_away.set()

    async def cell() -> None:
        run_to_end(endless())

    def work() -> None:
        if caller == "notebook":  # Jupyter runs its loop so
            asyncio.new_event_loop().run_until_complete(cell())
        elif caller == "coroutine":  # asyncio.run takes the first Ctrl-C for itself, and cancels the coroutine
            asyncio.run(cell())
        else:
            run_to_end(endless())

    # What the terminal sends is SIGINT; an alarm that is handled in the same way needs no second thread.
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert put_away.is_set()
