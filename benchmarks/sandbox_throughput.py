"""The cost of the sandbox: programs/s against a fresh Python per program, states/s against exec, attacks that got out.

Everything is measured in this run, on this machine; the ratios are what holds elsewhere, as far as the cores are free:
a program passes through three processes, each of which waits for its turn where others work. Exits with 1 where a goal
is missed.

    python benchmarks/sandbox_throughput.py [--json]
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from grace_irl.demos.trajectory import Trajectory
from grace_irl.programs.contract import ALLOWED_MODULES
from grace_irl.sandbox import Limits, Sandbox, open_sandbox
from grace_irl.sandbox.host import ENVIRONMENT
from grace_irl.sandbox.job import JobMemory
from grace_irl.sandbox.packing import pack
from grace_irl.sandbox.pool import ZygotePool
from grace_irl.states import as_state

SMALL_STATES = 1_000
LARGE_STATES = 200_000
STEPS = 50
ROUNDS = 5
PROGRAMS_GOAL = 50.0  # times the programs per second of a fresh Python that gives the same service
STATES_GOAL = 0.9  # of the states per second of exec in this process
MODULES = ALLOWED_MODULES - {"__future__"}
ROOT = Path(__file__).resolve().parent.parent

TRIVIAL = """
class Reward:
    def __init__(self, extra_info=None):
        pass

    def reward_fn(self, state):
        return float(state[0, 0, 0])
"""

REALISTIC = '''
import numpy as np


class Reward:
    """Reaching the object that the instruction names, with a term that grows on the way there."""

    COLORS = {"red": 0, "green": 1, "blue": 2, "purple": 3, "yellow": 4, "grey": 5}
    KINDS = {"door": 4, "key": 5, "ball": 6, "box": 7}

    def __init__(self, extra_info=None):
        words = (extra_info or "").split()
        self.color = next((self.COLORS[word] for word in words if word in self.COLORS), None)
        self.kind = next((self.KINDS[word] for word in words if word in self.KINDS), 6)
        self.best = None

    def reward_fn(self, state):
        kinds, colors = state[:, :, 0], state[:, :, 1]
        agent = np.argwhere(kinds == 10)
        wanted = kinds == self.kind
        if self.color is not None:
            wanted &= colors == self.color
        targets = np.argwhere(wanted)
        if len(agent) == 0 or len(targets) == 0:
            return 0.0
        distance = int(np.abs(targets - agent[0]).sum(axis=1).min())
        self.best = distance if self.best is None else min(self.best, distance)
        return 1.0 if distance == 1 else 1.0 / (1.0 + distance) - 0.01 * (distance - self.best)
'''

FRESH = """
import sys
import numpy as np
states = np.load(sys.argv[1])
namespace = {}
exec(open(sys.argv[2]).read(), namespace)
rewards = []
for start in range(0, len(states), int(sys.argv[3])):
    reward = namespace["Reward"]("")
    rewards += [float(reward.reward_fn(state)) for state in states[start : start + int(sys.argv[3])]]
sys.stdout.write(repr(sum(rewards)))
"""


WALLS = """
import json, os, sys, types
folder, options = sys.argv[1], json.loads(sys.argv[2])
sys.path[:] = [*sys.path, *options["path"]]
for name in ("grace_irl", "grace_irl.sandbox", "grace_irl.programs", "grace_irl.demos"):
    package = sys.modules[name] = types.ModuleType(name)
    package.__path__ = [os.path.join(folder, *name.split(".")[1:])]
from grace_irl.sandbox.child import run_batch
from grace_irl.sandbox.ending import address_space
from grace_irl.sandbox.lockdown import Lockdown
from grace_irl.sandbox.preload import preload
preload()
lockdown = Lockdown()
lockdown.prepare_zygote()
run_batch(lockdown, options["request"], options["fds"], address_space())
"""


def grids(count: int, seed: int = 0) -> list[Trajectory]:
    """Random 8x8x3 grids with one agent each, in trajectories of `STEPS` states."""
    random = np.random.default_rng(seed)
    states = random.integers(0, 8, (count, 8, 8, 3)).astype(np.uint8)
    rows, columns = random.integers(0, 8, (2, count))
    states[np.arange(count), rows, columns, 0] = 10
    words = ("red", "green", "blue", "purple", "yellow", "grey")
    return [
        Trajectory(states[start : start + STEPS], extra_info=f"go to the {words[start // STEPS % 6]} ball")
        for start in range(0, count, STEPS)
    ]


def in_process(source: str, trajectories: list[Trajectory]) -> list[NDArray[np.float64]]:
    """The same contract without walls: a fresh module per trajectory, a copy of each state."""
    code, rewards = compile(source, "reward.py", "exec"), []
    for trajectory in trajectories:
        namespace: dict[str, Any] = {}
        exec(code, namespace)
        reward = namespace["Reward"](trajectory.extra_info)
        rewards.append(np.array([float(reward.reward_fn(as_state(s))) for s in trajectory.states]))
    return rewards


class Cost(NamedTuple):
    """Items a second, and milliseconds of CPU an item (of all processes; it hardly depends on what else runs)."""

    rate: float
    cpu_ms: float


def cost(work: Callable[[], object], count: int, sandbox: ZygotePool) -> Cost:
    """Do `count` items of work."""
    spent, started = cpu_s(sandbox), time.perf_counter()
    work()
    return Cost(count / (time.perf_counter() - started), (cpu_s(sandbox) - spent) / count * 1000)


def cpu_s(sandbox: ZygotePool) -> float:
    """CPU seconds of this process, of the programs it waited for, and of the zygotes with theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = time.process_time() + usage.ru_utime + usage.ru_stime
    for pid in sandbox.pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return total


def programs_per_second(sandbox: ZygotePool) -> dict[str, Cost]:
    """Small programs over 1,000 states, each source a new one; medians of rounds in which all take turns.

    A fresh Python is measured three times: with numpy, which is what this program needs; with all modules that a
    program may import; and with the checks and layers of the pool, which is the same service without zygotes.
    """
    trajectories = grids(SMALL_STATES)
    handle, order = sandbox.put(trajectories), range(len(trajectories))
    numbers = itertools.count()

    def one(_: int) -> None:
        outcome = sandbox.run(f"{TRIVIAL}\nNUMBER = {next(numbers)}\n", handle, order)
        assert outcome.status == "ok", outcome

    def at_once(work: Callable[[int], None], count: int) -> None:
        with ThreadPoolExecutor(sandbox.workers) as threads:
            list(threads.map(work, range(count)))

    with tempfile.TemporaryDirectory() as folder:
        states, program = Path(folder, "states.npy"), Path(folder, "reward.py")
        np.save(states, np.concatenate([trajectory.states for trajectory in trajectories]))
        program.write_text(TRIVIAL)
        arguments = [str(states), str(program), str(STEPS)]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}

        def fresh(modules: str) -> Callable[[int], None]:
            command = [sys.executable, "-c", modules + FRESH, *arguments]
            return lambda _: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment) and None

        needed, allowed = fresh(""), fresh(f"import {', '.join([*sorted(MODULES), 'lxml.etree'])}\n")
        behind_walls = walled(trajectories, sandbox)
        jobs: dict[str, tuple[Callable[[], object], int]] = {
            "pool": (lambda: at_once(one, 120), 120),
            "one worker": (lambda: [one(0) for _ in range(60)], 60),
            "in process, no walls": (lambda: [in_process(TRIVIAL, trajectories) for _ in range(40)], 40),
            "fresh python, numpy": (lambda: [needed(0) for _ in range(5)], 5),
            "the same, a core each": (lambda: at_once(needed, 8), 8),
            "fresh python, all modules": (lambda: [allowed(0) for _ in range(3)], 3),
            "fresh python, same walls": (lambda: [behind_walls(0) for _ in range(3)], 3),
        }
        jobs["pool"][0]()  # both zygotes map the states and are warm
        rounds = [{name: cost(*job, sandbox) for name, job in jobs.items()} for _ in range(ROUNDS)]
    sandbox.drop(handle)
    return {
        name: Cost(*(statistics.median(values) for values in zip(*(round_[name] for round_ in rounds), strict=True)))
        for name in jobs
    }


def walled(trajectories: list[Trajectory], sandbox: ZygotePool) -> Callable[[int], None]:
    """The pool's work for a program, by a new interpreter: the same modules, checks and layers, no zygote."""
    package = pack(trajectories)
    limits = Limits()
    request = {"layers": sandbox.layers, "checks": True, "cpu_s": limits.cpu_s, "memory_mb": limits.memory_mb}
    everything = np.arange(len(trajectories))

    def one(_: int) -> None:
        parcel = package.parcel(everything)
        job = JobMemory(TRIVIAL.encode(), len(trajectories), None, int(package.lengths.sum()))
        fds = (job.fd, parcel)
        options = json.dumps({"path": sys.path, "fds": fds, "request": request})
        command = [sys.executable, "-S", "-s", "-P", "-c", WALLS, str(ROOT / "grace_irl"), options]
        subprocess.run(command, check=True, env=ENVIRONMENT, pass_fds=fds)
        assert job.answer()[0] == "ok", job.answer()
        job.close()
        os.close(parcel)

    return one


def states_per_second(sandbox: Sandbox) -> dict[str, float]:
    """A realistic reward over 200,000 grid states: batch mode against exec in this process, alternating."""
    trajectories = grids(LARGE_STATES)
    handle, order = sandbox.put(trajectories), range(len(trajectories))
    limits = Limits(wall_s=300, cpu_s=300)
    ratios, boxed, bare = [], [], []
    for _ in range(3):
        started = time.perf_counter()
        expected = in_process(REALISTIC, trajectories)
        middle = time.perf_counter()
        outcome = sandbox.run(REALISTIC, handle, order, limits=limits)
        ended = time.perf_counter()
        assert outcome.status == "ok", outcome.message
        assert all(np.array_equal(a, b) for a, b in zip(expected, outcome.rewards, strict=True))
        bare.append(LARGE_STATES / (middle - started))
        boxed.append(LARGE_STATES / (ended - middle))
        ratios.append(boxed[-1] / bare[-1])
    part = range(len(order) // 20)
    started = time.perf_counter()
    outcome = sandbox.run(REALISTIC, handle, part, mode="strict", limits=limits)
    strict = len(part) * STEPS / (time.perf_counter() - started)
    assert outcome.status == "ok", outcome.message
    sandbox.drop(handle)
    return {
        "in process": statistics.median(bare),
        "sandbox": statistics.median(boxed),
        "ratio": statistics.median(ratios),
        "strict": strict,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    parser.add_argument("--no-attacks", action="store_true", help="leave the hostile suite out")
    options = parser.parse_args()
    with open_sandbox() as sandbox:
        print(f"tier {sandbox.tier}, {sandbox.workers} workers, load {os.getloadavg()[0]:.1f}")
        programs = programs_per_second(sandbox)
        print(f"\nprograms/s, trivial reward over {SMALL_STATES:,} states of 8x8x3, {ROUNDS} rounds")
        pool = programs["pool"]
        for name, found in programs.items():
            line = f"  {name:<26} {found.rate:8.1f}/s {found.cpu_ms:7.2f} ms of CPU"
            if "fresh" in name or "core" in name:
                times, less = pool.rate / found.rate, found.cpu_ms / pool.cpu_ms
                line += f"   pool: {times:5.1f} times as fast, {less:5.1f} times less CPU"
            print(line)
        ratio = pool.rate / programs["fresh python, same walls"].rate
        print(f"  pool / one worker                        {pool.rate / programs['one worker'].rate:6.2f}")
        print(f"  pool / fresh python that imports numpy   {pool.rate / programs['fresh python, numpy'].rate:6.1f}")
        print(f"  pool / fresh python of the same service  {ratio:6.1f}   (goal: at least {PROGRAMS_GOAL:g})")
        states = states_per_second(sandbox)
        print(f"\nstates/s, realistic grid reward over {LARGE_STATES:,} states")
        for name, value in states.items():
            if name != "ratio":
                print(f"  {name:<26} {value:9.0f}")
        print(f"  sandbox / in process       {states['ratio']:9.3f}   (goal: at least {STATES_GOAL:g})")
    missed = []
    if ratio < PROGRAMS_GOAL:
        missed.append(f"{ratio:.1f} times a fresh Python is less than {PROGRAMS_GOAL:g}")
    if states["ratio"] < STATES_GOAL:
        missed.append(f"{states['ratio']:.2f} of the states per second in process is less than {STATES_GOAL:g}")
    answer: dict[str, object] = {
        "programs": {name: found._asdict() for name, found in programs.items()},
        "pool_over": {name: pool.rate / found.rate for name, found in programs.items() if name != "pool"},
        "states_per_s": states,
        "states_ratio": states["ratio"],
    }
    if not options.no_attacks:
        from tests.hostile.referee import referee_all

        attacks, escapes = referee_all()
        answer |= {"attacks": attacks, "escapes": escapes}
        print(f"\nhostile suite: {attacks} attacks executed, {len(escapes)} escaped (expected 0) {escapes or ''}")
        if escapes:
            missed.append(f"{len(escapes)} attacks got out")
    for goal in missed:
        print(f"goal missed: {goal}")
    if options.json:
        print(json.dumps(answer | {"missed": missed}))
    if missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
