"""The load of a model's server in a run: requests in flight at concurrency 32, with answers that take 2 to 20 s.

The server is one of our own over real HTTP that answers after a latency drawn evenly from 2 to 20 s, divided by
--factor (2 by default: 1 to 10 s, so that the script takes a minute and a half; --factor 1 waits in full). Prompts and
evaluations are not made faster, so a shorter latency is the harder case: two cores that nobody else uses keep up to a
factor of 4, with the small demonstrations that are used here.

Both searches wait for their first population, which is five requests. Requests in flight are averaged over time from
the next request to the moment when the last one is sent: from then on nothing is left to ask, and the number can only
fall. The server is looked at every 2 ms. The generational search stands
beside the steady one: it waits for each generation, so that population / samples per call (20 / 4) requests are all
that it can have in flight.

    python benchmarks/server_load.py [--factor 2] [--generations 60] [--json]

Exit code 1 where the steady search averages less than 30.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.fit import start
from tests.fakes.data import vector_set
from tests.propose.client.server import ChatServer

SHORTEST, LONGEST = 2.0, 20.0  # seconds
FIRST = 5  # requests for the first population: 20 programs, four to a request
CONCURRENCY, LEAST = 32, 30.0
LOOK = 0.002
GENERATIONAL = 2  # generations are enough to see the search that waits
PROGRAM = """
class Reward:
    def __init__(self, extra_info=None):
        self.words = (extra_info or "").split()

    def reward_fn(self, state):
        return float(state[{index}] > {threshold})
"""


@dataclass(frozen=True)
class Load:
    """Load of one run on its server.

    Attributes:
        search: "steady" or "generational".
        requests, programs: in all.
        seconds: from the first request after the first population to the last one's sending.
        in_flight: requests in flight, averaged over those seconds.
        most: at one time.
    """

    search: str
    requests: int
    programs: int
    seconds: float
    in_flight: float
    most: int


class Look:
    """Looks at a server until it is stopped."""

    def __init__(self, server: ChatServer) -> None:
        self._server = server
        self._rows: list[tuple[float, int, int]] = []  # time, requests so far, in flight
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Look:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(LOOK):
            self._rows.append((time.monotonic(), len(self._server.payloads), self._server.in_flight))

    def load(self, search: str, programs: int) -> Load:
        """From the first request after the first population to the last one's sending."""
        requests = len(self._server.payloads)
        first = next(n for n, row in enumerate(self._rows) if row[1] > FIRST)
        last = next(n for n, row in enumerate(self._rows) if row[1] == requests)
        rows = self._rows[first : last + 1]
        # Looks are not evenly spaced on a busy machine: each counts for the time until the next.
        area = sum(row[2] * (after[0] - row[0]) for row, after in itertools.pairwise(rows))
        seconds = rows[-1][0] - rows[0][0]
        return Load(search, requests, programs, seconds, area / seconds, self._server.most_in_flight)


def measured(folder: Path, *, steady: bool, factor: float, generations: int) -> Load:
    """One run with latencies of its own seed."""
    numbers = random.Random(0)
    latencies = [numbers.uniform(SHORTEST, LONGEST) / factor for _ in range(100_000)]
    draws = random.Random(1)

    def answer(prompt: str) -> str:
        del prompt
        source = PROGRAM.format(index=draws.randrange(3), threshold=round(draws.gauss(0, 1), 3))
        return f"A threshold.\n\n```python\n{source}```\n"

    with ChatServer(answer=answer, latency=lambda count: latencies[count]) as server:
        flags: dict[str, object] = {
            "search.steady": steady,
            "search.generations": generations,
            "model.url": server.url,
            "model.concurrency": CONCURRENCY,
            "model.answer_format": "code",
        }
        sets = ("stop.target_accuracy=none", "stop.plateau=none")
        with Look(server) as look:
            run = start(resolve(sets=sets, flags=flags), folder, Parts(vector_set(noise=0.05)))
        return look.load("steady" if steady else "generational", run.calls)


def main() -> int:
    """Both searches; 1 where the steady one leaves the server idle."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--factor", type=float, default=2.0, help="latencies are divided by this; 1: 2 to 20 s")
    parser.add_argument("--generations", type=int, default=60, help="of 20 programs each, four to a request")
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    arguments = parser.parse_args()
    loads = []
    with tempfile.TemporaryDirectory() as folder:
        for steady in (True, False):
            generations = arguments.generations if steady else min(arguments.generations, GENERATIONAL)
            name = f"steady-{steady}"
            load = measured(Path(folder) / name, steady=steady, factor=arguments.factor, generations=generations)
            loads.append(load)
            print(
                f"{load.search}: {load.in_flight:.1f} requests in flight, "
                f"{load.most} at most, over {load.seconds:.1f} s; "
                f"{load.requests} requests for {load.programs} programs",
                flush=True,
            )
    shortest, longest = SHORTEST / arguments.factor, LONGEST / arguments.factor
    reached = loads[0].in_flight >= LEAST
    print(
        f"latency {shortest:g} to {longest:g} s (2 to 20 s divided by {arguments.factor:g}), "
        f"concurrency {CONCURRENCY}; expected of the steady search: at least {LEAST:g}: "
        f"{'reached' if reached else 'missed'}"
    )
    if arguments.json:
        answer = {"factor": arguments.factor, "loads": [asdict(load) for load in loads], "reached": reached}
        print(json.dumps(answer))
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
