"""Coroutines run from plain functions, wherever those are called."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine in an event loop of its own; in a thread where the caller runs one already (a notebook).

    Ctrl-C cancels it, waits until it has put its things away, and is raised: in both cases.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="event-loop", daemon=True)
    thread.start()
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
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
