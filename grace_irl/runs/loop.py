"""The event loop of a run's asynchronous work, also inside a loop that already runs, as in notebooks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import wait
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")
_LOOK_S = 0.2


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a new event loop. If this thread already runs a loop, as in notebooks, use a new thread.

    Ctrl-C cancels the coroutine. After the coroutine's clean-up, this function raises KeyboardInterrupt.
    """
    running = False
    with suppress(RuntimeError):
        running = asyncio.get_running_loop() is not None
    if not running:  # outside of an `except`, so that an error of the work is not chained to the RuntimeError
        return asyncio.run(work)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="event-loop", daemon=True)
    thread.start()
    future = asyncio.run_coroutine_threadsafe(work, loop)
    task = asyncio.current_task()
    before = task.cancelling() if task is not None else 0
    try:
        while not wait([future], _LOOK_S).done:
            # At the first Ctrl-C, the caller's `asyncio.run` only cancels this task. Cancellation takes effect at an
            # `await`, and this loop has none.
            if task is not None and task.cancelling() > before:
                raise KeyboardInterrupt
        return future.result()
    except KeyboardInterrupt:
        ended = threading.Event()
        loop.call_soon_threadsafe(_cancel_all, loop, ended)
        ended.wait()
        raise
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _cancel_all(loop: asyncio.AbstractEventLoop, ended: threading.Event) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    gathered = asyncio.gather(*tasks, return_exceptions=True)
    gathered.add_done_callback(lambda _: ended.set())
