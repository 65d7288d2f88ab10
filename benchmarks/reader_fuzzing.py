"""Structure-aware fuzzing of all readers of files that nobody vouches for: data or one clear line, and nothing else.

Inputs are files that are right, or a few changes from right (`fuzzing/`): demonstrations in every format, recipes, goal
states, configurations, recordings, databases of runs, rounds, comparisons, reward files and policies. An input may be
read, and what it gives must then serve what comes next; or be refused with an `InputError` of one printable line.
Anything else is a failure: another exception, a warning, a crash, a hang, more than 512 MiB or 5 s for one input. Every
20th input also goes through the command line, which must end with exit code 0 or 2. Failures are printed with the
command that makes each of them again, and the exit code is then 1.

"near" is the share of inputs that are valid or one change from valid, "messages" counts the different reasons for
refusals, and what follows the table are the lines of readers that no input reached. What was done is kept in --out: the
same command goes on where it was interrupted, as long as the code is the same.

    python benchmarks/reader_fuzzing.py [--inputs 1000000] [--seed 0] [--jobs 2]
    python benchmarks/reader_fuzzing.py --only npz:1234        # one input, with its traceback
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from fuzzing import lines
from fuzzing.draw import Draw
from fuzzing.judges import WrongError, commanded
from fuzzing.readers import READERS, Reader, modules

ROOT = Path(__file__).parents[1]
OUT = Path("out/fuzzing")
BATCH = 2000
SECONDS = 5.0
MIB = 512
HANG = 60
"""Seconds that an input may take by the clock; a process that takes longer is ended."""
TRACED = 8
COMMANDED = 20
"""One input in this number is watched line by line, and given to the command line, too."""

Part = tuple[str, int, int]
"""A reader and the numbers of its inputs."""


@dataclass
class Found:
    """Outcomes of inputs.

    Attributes:
        counts: by reader: inputs read, refused and wrong, and what they took.
        failures: a line for each.
        left: lines of readers that none of them reached.
    """

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    left: lines.Lines | None = None

    def add(self, about: dict[str, Any]) -> None:
        """Takes what a process found."""
        for name, counts in about["counts"].items():
            mine = self.counts.setdefault(name, Counter())
            for key, value in counts.items():
                mine[key] = max(mine[key], value) if key in ("slowest", "memory") else mine[key] + value
        self.failures += about["failures"]
        left = {file: set(numbers) for file, numbers in about["left"].items()}
        if left:
            self.left = {file: numbers & (self.left or left)[file] for file, numbers in left.items()}

    def inputs(self, name: str) -> int:
        """The number of inputs of a reader."""
        counts = self.counts.get(name, Counter())
        return counts["read"] + counts["refused"] + counts["wrong"]

    def table(self) -> Iterator[str]:
        """A line for each reader."""
        yield (
            f"{'reader':<18}{'inputs':>9}{'near':>7}{'read':>9}{'refused':>9}{'wrong':>7}{'messages':>10}"
            f"{'slowest s':>11}{'MiB':>6}"
        )
        for name in self.counts:
            counts, done = self.counts[name], self.inputs(name)
            different = sum(key.startswith("message ") for key in counts)
            near = f"{100 * counts['near'] / max(done, 1):.0f} %"
            row = f"{name:<18}{done:>9}{near:>7}{counts['read']:>9}{counts['refused']:>9}{counts['wrong']:>7}"
            yield f"{row}{different:>10}{counts['slowest'] / 1000:>11.2f}{counts['memory'] / 1024:>6.0f}"


def main() -> int:
    """Runs the inputs, prints what became of them and says whether all were read or refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="number of inputs in all (default: 1000000)")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs (default: 0)")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (default: 2)")
    parser.add_argument(
        "--readers", nargs="+", metavar="READER", choices=READERS, default=list(READERS), help="some of them only"
    )
    parser.add_argument("--out", type=Path, default=OUT, help=f"folder of what was done (default: {OUT})")
    parser.add_argument("--only", metavar="READER:NUMBER", help="one input, which is kept in --out")
    parser.add_argument("--batch", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.batch:
        return batch(args.seed, *json.loads(args.batch))
    if args.only:
        return only(args.seed, args.only, args.out)
    found, began = Found(), time.monotonic()
    with progress(args.out, f"{args.seed} {args.inputs} {args.readers}") as kept:
        done = [json.loads(line) for line in kept.read().splitlines() if line.endswith("}")]
        for about in done:
            found.add(about)
        todo = [batch for batch in batches(args.inputs, args.readers) if batch not in [each["parts"] for each in done]]
        if done:
            print(f"{len(done)} batches were done before, {len(todo)} are left")
        with ThreadPoolExecutor(args.jobs) as pool:
            for about in pool.map(lambda parts: run(args.seed, parts), todo):
                kept.write(json.dumps(about) + "\n")
                kept.flush()
                found.add(about)
    print(*found.table(), sep="\n")
    print(f"{sum(map(found.inputs, found.counts)):,} inputs, the last of them in {time.monotonic() - began:.0f} s")
    print("lines that no input reached:")
    print(*lines.told(found.left or {}, lines.functions(modules())), sep="\n")
    for line in found.failures[:40]:
        print(line, file=sys.stderr)
    if found.failures:
        print(f"{len(found.failures)} inputs were neither read nor refused in one line", file=sys.stderr)
    return 1 if found.failures else 0


def progress(out: Path, what: str) -> TextIO:
    """The file in which batches are kept, at its beginning; another one for other inputs or other code."""
    digest = hashlib.sha256(what.encode())
    for path in sorted(chain((ROOT / "grace_irl").rglob("*.py"), (ROOT / "benchmarks" / "fuzzing").glob("*.py"))):
        digest.update(path.read_bytes())
    out.mkdir(parents=True, exist_ok=True)
    file = (out / f"{digest.hexdigest()[:16]}.jsonl").open("a+", encoding="utf-8")
    file.seek(0)
    return file


def batches(inputs: int, names: Sequence[str]) -> Iterator[list[list[Any]]]:
    """Batches of inputs: each of one reader, or of several that have few; all readers in turn."""
    yield from sorted(_batches(inputs, names), key=lambda parts: parts[0][1] / READERS[parts[0][0]].share)


def _batches(inputs: int, names: Sequence[str]) -> Iterator[list[list[Any]]]:
    whole = sum(READERS[name].share for name in names)
    gathered: list[list[Any]] = []
    for name in names:
        stop = max(1, inputs * READERS[name].share // whole)
        for start in range(0, stop, BATCH):
            gathered.append([name, start, min(stop, start + BATCH)])
            if sum(end - begin for _, begin, end in gathered) >= BATCH:
                yield gathered
                gathered = []
    if gathered:
        yield gathered


def run(seed: int, parts: list[list[Any]]) -> dict[str, Any]:
    """One batch, each process going on behind the input that the one before did not survive."""
    found = Found()
    todo: list[list[Any]] = list(parts)
    while todo:
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / part for part in ("at", "found")]
            command = [sys.executable, __file__, "--seed", str(seed), "--batch", json.dumps([todo, *map(str, files)])]
            done = subprocess.run(command, capture_output=True)
            if done.returncode == 0:
                found.add(json.loads(files[1].read_text()))
                break
            name, number = json.loads(files[0].read_text()) if files[0].exists() else todo[0][:2]
            kept = json.loads(files[1].read_text()) if files[1].exists() else {"next": todo[0][:2]}
            if "counts" in kept:  # what was found some inputs before it
                found.add(kept)
        died = "no end" if done.returncode == -signal.SIGALRM else f"exit code {done.returncode}"
        found.add({"counts": {name: {"wrong": 1}}, "failures": [], "left": {}})
        found.failures.append(f"{name}:{number}: {died} {done.stderr[-200:]!a}; {again(seed, name, number)}")
        todo = list(_rest(todo, kept["next"], [name, number]))
    left = {file: sorted(numbers) for file, numbers in (found.left or {}).items()}
    return {"parts": parts, "counts": found.counts, "failures": found.failures, "left": left}


def _rest(todo: list[list[Any]], following: list[Any], died: list[Any]) -> Iterator[list[Any]]:
    """The rest of batches: from the first input without a result on, without the one that the process died of."""
    begun = False
    for name, start, stop in todo:
        first = following[1] if name == following[0] and start <= following[1] < stop else start
        begun = begun or first != start or [name, start] == following
        if begun:
            cut = [died[1], died[1] + 1] if name == died[0] and first <= died[1] < stop else [stop, stop]
            yield from ([name, begin, end] for begin, end in ((first, cut[0]), (cut[1], stop)) if begin < end)


def batch(seed: int, parts: Sequence[Part], at: str, result: str) -> int:
    """Runs inputs in this process; the file `at` has the one at hand, `result` what became of those before it."""
    counts: dict[str, Counter[str]] = {}
    failures: list[str] = []
    tracer = lines.Tracer(lines.functions(modules()))
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
    with tempfile.TemporaryDirectory(dir=_fast()) as root, Path(at).open("w") as place:
        for name, start, stop in parts:
            own = counts.setdefault(name, Counter())
            for number in range(start, stop):
                place.seek(0)
                place.write(json.dumps([name, number]) + " " * 9)
                place.flush()
                if number % 50 == 0:  # for those behind a crash
                    _keep(result, counts, failures, tracer, [name, number])
                failures += _input(seed, name, number, Path(root) / "input", own, tracer)
    _keep(result, counts, failures, tracer, None)
    return 0


def _input(seed: int, name: str, number: int, folder: Path, counts: Counter[str], tracer: lines.Tracer) -> list[str]:
    """Makes one input, reads it, counts what became of it; the failure, if it is one."""
    reader, rng = READERS[name], Draw(f"{seed}:{name}:{number}")
    folder.mkdir()
    before, began = _peak(), time.process_time()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # what hangs may do so in code that no exception reaches
    signal.alarm(HANG)
    failures: list[str] = []
    try:
        path = reader.make(rng, folder)
        before, began = _peak(), time.process_time()
        with tracer if number % TRACED == 0 else nullcontext():
            what, reason = outcome(reader, path, command=number % COMMANDED == 1)
        if _peak() - before > MIB * 1024:
            raise WrongError(f"{(_peak() - before) // 1024} MiB for one input")
        if time.process_time() - began > SECONDS:
            raise WrongError(f"{time.process_time() - began:.1f} s for one input")
    except Exception as error:
        counts["wrong"] += 1
        counts[f"kind {type(error).__name__}"] += 1
        line = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        failures.append(f"{name}:{number}: {line!a}; {again(seed, name, number)}")
    else:
        counts[what] += 1
        if len(counts) < 500:
            counts[f"message {reason}"] += 1
    signal.alarm(0)
    counts["near"] += rng.changes <= 1
    counts["slowest"] = max(counts["slowest"], int((time.process_time() - began) * 1000))
    counts["memory"] = max(counts["memory"], _peak() - before)
    shutil.rmtree(folder)
    return failures


def _keep(
    result: str, counts: dict[str, Counter[str]], failures: list[str], tracer: lines.Tracer, following: list[Any] | None
) -> None:
    left = {file: sorted(numbers) for file, numbers in tracer.left().items()}
    about = json.dumps({"counts": counts, "failures": failures, "left": left, "next": following})
    Path(f"{result}.part").write_text(about)
    Path(f"{result}.part").replace(result)


def _fast() -> str | None:
    """A folder in memory, if there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def outcome(reader: Reader, path: Path, *, command: bool = False) -> tuple[str, str]:
    """The outcome of an input: "read" or "refused", and of a refusal the kind of reason.

    Args:
        reader: of the input.
        path: of it.
        command: give it to the command line, too.

    Raises:
        Exception: anything else.
    """
    from grace_irl.errors import InputError

    result = "read", ""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        if command and reader.command is not None:
            commanded(reader.command(path))
        try:
            reader.judge(path)
        except InputError as error:
            message = str(error)
            short = message.replace(str(path), "")
            if not message.isprintable() or len(short) > 1000:
                raise WrongError(f"not one printable line: {message[:300]!a}") from error
            if "expected" not in message and ";" not in message:
                raise WrongError(f"says neither what was expected nor what to do: {message!a}") from error
            result = "refused", " ".join(word for word in short.split() if word.isalpha())[:60]
    if warned:
        raise WrongError(f"a warning: {warned[0].message}")
    return result


def only(seed: int, which: str, out: Path) -> int:
    """One input, kept and read with its traceback."""
    name, _, number = which.partition(":")
    folder = out / f"{name}-{number}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rng = Draw(f"{seed}:{name}:{number}")
    path = READERS[name].make(rng, folder)
    print(f"made {path}, {rng.changes} changes from a valid one")
    try:
        print(*outcome(READERS[name], path, command=int(number) % COMMANDED == 1))
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def again(seed: int, name: str, number: int) -> str:
    """The command that makes an input again."""
    return f"again: python benchmarks/reader_fuzzing.py --seed {seed} --only {name}:{number}"


def _peak() -> int:
    """Most memory that this process has ever had, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    sys.exit(main())
