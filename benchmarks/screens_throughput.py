"""The sandbox's cost in scoring screens: a typical program over a thousand screens of 100 KB, beside the parses that
it cannot do without.

In each round the program runs once in the sandbox and the bare `lxml.etree.fromstring` calls once in this process, one
right after the other; the figure is the median over the rounds of the ratio of the two. Screens are those of a recorded
episode, enlarged with distinct texts, or made up where there is none. Exits with 1 where the ratio is above the limit.

    python benchmarks/screens_throughput.py                    # about a minute
    python benchmarks/screens_throughput.py --screens 200 --rounds 3 --episode FOLDER
"""

from __future__ import annotations

import argparse
import copy
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from lxml import etree

from grace_irl.demos.trajectory import Trajectory
from grace_irl.sandbox import Limits, Sandbox, open_sandbox
from grace_irl.states.texts import pack
from grace_irl.states.ui import markup

EPISODE = Path(__file__).parents[2] / "shared" / "data" / "android" / "alarm_episode" / "hierarchy"
SIZE = 100_000
LENGTH = 20
"""States of a trajectory."""

CLOCK = "com.google.android.deskclock"

LIMIT = 1.5
LIMITS = Limits(wall_s=300.0, cpu_s=300.0)

PROGRAM = """
import re
from lxml import etree


class Reward:
    def __init__(self, extra_info=None):
        found = re.search(r"\\d{1,2}:\\d{2}", extra_info or "")
        self.time = found.group(0) if found else ""

    def reward_fn(self, state):
        root = etree.fromstring(state)
        switches = root.xpath("//node[@class='android.widget.Switch' and @checked='true']")
        clocks = root.xpath("//node[@resource-id='com.google.android.deskclock:id/digital_clock']")
        shown = any(self.time in node.get("text", "") for node in clocks)
        return float(shown) + 0.1 * len(switches)
"""


def originals(folder: Path) -> list[etree._Element]:
    """The trees of recorded screens, or one that is made up."""
    if folder.is_dir():
        return [markup.parse(file.read_bytes(), str(file)) for file in sorted(folder.glob("*.xml"))]
    root = markup.hierarchy()
    parent = root
    for number in range(100):
        values = {"text": f"Alarm {number}:25", "class": "android.widget.Switch", "checkable": True}
        identity = {"resource-id": f"{CLOCK}:id/digital_clock", "package": CLOCK}
        node = markup.add(parent, {**values, **identity, "bounds": f"[0,{number}][1080,{number + 60}]"})
        parent = node if number % 4 else root
    return [root]


def enlarged(trees: list[etree._Element], number: int, size: int) -> str:
    """A screen of at least `size` bytes: windows of recorded ones, in whose texts the number is."""
    root, part = markup.hierarchy(), 0
    length = 0
    while length < size:
        window = copy.deepcopy(trees[(number + part) % len(trees)])
        for node in window.iter("node"):
            if node.get("text"):
                node.set("text", f"{node.get('text')} {number}")
        length += len(markup.write(window))
        root.extend(window)
        part += 1
    return markup.write(root)


def trajectories(screens: list[str]) -> list[Trajectory]:
    """So many screens, `LENGTH` in a trajectory."""
    parts = [screens[start : start + LENGTH] for start in range(0, len(screens), LENGTH)]
    return [Trajectory(pack(part), extra_info="Set an alarm for 8:25") for part in parts]


class Spent(NamedTuple):
    """Seconds of wall and of CPU time, those of the sandbox's children among the latter."""

    wall_s: float
    cpu_s: float


def spent(work: Callable[[], float]) -> Spent:
    """Cost of work that reports the CPU time of other processes."""
    wall, cpu = time.perf_counter(), time.process_time()
    others = work()
    return Spent(time.perf_counter() - wall, time.process_time() - cpu + others)


def parse(screens: list[str]) -> float:
    """The parses that the program cannot do without."""
    for screen in screens:
        etree.fromstring(screen)
    return 0.0


def run(sandbox: Sandbox, source: str, handle: int, count: int) -> float:
    """One scoring of the set, and its CPU time; the program must work."""
    outcome = sandbox.run(source, handle, range(-(-count // LENGTH)), limits=LIMITS)
    if outcome.status != "ok":
        raise SystemExit(f"{outcome.status}: {outcome.message}")
    return outcome.cpu_s


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--screens", type=int, default=1000, help="states of a set (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds (default: %(default)s)")
    parser.add_argument("--episode", type=Path, default=EPISODE, help="folder of uiautomator dumps")
    options = parser.parse_args()
    trees = originals(options.episode)
    screens = [enlarged(trees, number, SIZE) for number in range(options.screens)]
    size = statistics.mean(len(screen.encode()) for screen in screens)
    ratios, cpu_ratios = [], []
    with open_sandbox(workers=1) as sandbox:
        started = time.perf_counter()
        different = sandbox.put(trajectories(screens))
        put_s = time.perf_counter() - started
        print(f"{len(screens)} screens of {size / 1000:.0f} KB, handed over in {put_s:.2f} s, once for all programs")
        for _ in range(options.rounds):
            bare = spent(lambda: parse(screens))
            scored = spent(lambda: run(sandbox, PROGRAM, different, len(screens)))
            ratios.append(scored.wall_s / bare.wall_s)
            cpu_ratios.append(scored.cpu_s / bare.cpu_s)
            print(f"  parses {bare.wall_s:6.2f} s   sandbox {scored.wall_s:6.2f} s   ratio {ratios[-1]:.2f} ", end="")
            print(f"(CPU {cpu_ratios[-1]:.2f})")
    ratio = statistics.median(ratios)
    print(f"scoring takes {ratio:.2f} times the bare parses (CPU {statistics.median(cpu_ratios):.2f}; at most {LIMIT})")
    return 0 if ratio <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
