"""Structure-aware fuzzing of the readers of screens: a set of demonstrations or one clear line, and nothing else.

Inputs are files that are nearly right (`fuzzing/formats.py`): dumps in XML, alone and in folders with task files; JSON
histories and trees; element lists; YAML records; shards of AndroidControl with right checksums around wrong contents;
Parquet with screens. An input may be read, and then every state must be XML in the one spelling and a `Screen`; or be
refused with an `InputError` of one printable line. Anything else is a failure: another exception, a warning, a crash, a
hang, more than 512 MiB or 5 s for one input. Failures are told with the command that makes each of them again, and the
exit code is then 1. "messages" counts the different reasons for refusals.

    python benchmarks/reader_fuzzing.py [--inputs 200000] [--seed 0] [--jobs 2]
    python benchmarks/reader_fuzzing.py --only xml:1234        # one input, with its traceback
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

from fuzzing.formats import READERS

OUT = Path("out/fuzzing")
BATCH = 2500
SECONDS = 5.0
MIB = 512
HANG = 300
"""Seconds that a batch may take in all."""


class WrongError(Exception):
    """An input was neither read nor refused as it should be."""


def main() -> int:
    """Runs the inputs, prints what became of them and says whether all were read or refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=200_000, help="number of inputs in all (default: 200000)")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs (default: 0)")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (default: 2)")
    parser.add_argument("--only", metavar="READER:NUMBER", help="one input, which is kept in out/fuzzing/")
    parser.add_argument("--batch", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.batch:
        return batch(args.seed, *json.loads(args.batch))
    if args.only:
        return only(args.seed, args.only)
    began = time.monotonic()
    totals: dict[str, Counter[str]] = {name: Counter() for name in READERS}
    failures: list[str] = []
    with ThreadPoolExecutor(args.jobs) as pool:
        for name, counts, failed in pool.map(lambda part: run(args.seed, *part), parts(args.inputs)):
            totals[name] += counts
            failures += failed
    print(
        f"{'reader':<10}{'inputs':>9}{'read':>9}{'refused':>9}{'wrong':>7}{'messages':>10}{'slowest s':>11}{'MiB':>6}"
    )
    for name, counts in totals.items():
        done = counts["read"] + counts["refused"] + counts["wrong"]
        different = sum(key.startswith("message ") for key in counts)
        slowest, memory = counts["slowest"] / 1000, counts["memory"] / 1024
        row = f"{name:<10}{done:>9}{counts['read']:>9}{counts['refused']:>9}{counts['wrong']:>7}{different:>10}"
        print(f"{row}{slowest:>11.2f}{memory:>6.0f}")
    inputs = sum(c["read"] + c["refused"] + c["wrong"] for c in totals.values())
    print(f"{inputs:,} inputs in {time.monotonic() - began:.0f} s")
    for line in failures[:20]:
        print(line, file=sys.stderr)
    if failures:
        print(f"{len(failures)} inputs were neither read nor refused in one line", file=sys.stderr)
    return 1 if failures else 0


def parts(inputs: int) -> Iterator[tuple[str, int, int]]:
    """Batches of inputs by reader, in their shares."""
    for name, (_, share) in READERS.items():
        stop = max(1, inputs * share // 100)
        for start in range(0, stop, BATCH):
            yield name, start, min(stop, start + BATCH)


def run(seed: int, name: str, start: int, stop: int) -> tuple[str, Counter[str], list[str]]:
    """One batch, each process going on behind the input that the one before did not survive."""
    counts: Counter[str] = Counter()
    failures: list[str] = []
    todo = [(start, stop)]
    while todo:
        start, stop = todo.pop()
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / part for part in ("at", "found")]
            command = [sys.executable, __file__, "--seed", str(seed), "--batch"]
            try:
                done = subprocess.run(
                    [*command, json.dumps([name, start, stop, *map(str, files)])], capture_output=True, timeout=HANG
                )
                died = f"exit code {done.returncode} {done.stderr[-200:]!a}" if done.returncode else ""
            except subprocess.TimeoutExpired:
                died = f"no end after {HANG} s"
            if died:
                at = int(files[0].read_text()) if files[0].exists() else start
                counts["wrong"] += 1
                failures.append(f"{name}:{at}: {died}; {again(seed, name, at)}")
                todo += [part for part in ((start, at), (at + 1, stop)) if part[0] < part[1]]
                continue
            found = json.loads(files[1].read_text())
        failures += found["failures"]
        for key, value in found["counts"].items():
            counts[key] = max(counts[key], value) if key in ("slowest", "memory") else counts[key] + value
    return name, counts, failures


def batch(seed: int, name: str, start: int, stop: int, at: str, result: str) -> int:
    """Runs inputs in this process; the file `at` has the number of the one at hand, `result` what became of all."""
    counts: Counter[str] = Counter()
    failures: list[str] = []
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
    with tempfile.TemporaryDirectory() as root:
        for number in range(start, stop):
            Path(at).write_text(str(number))
            folder = Path(root) / "input"
            folder.mkdir()
            path = READERS[name][0](Random(f"{seed}:{name}:{number}"), folder)
            before, began = _peak(), time.process_time()
            try:
                what, reason = outcome(path)
                if _peak() - before > MIB * 1024:
                    raise WrongError(f"{(_peak() - before) // 1024} MiB for one input")
                if time.process_time() - began > SECONDS:
                    raise WrongError(f"{time.process_time() - began:.1f} s for one input")
            except Exception as error:
                counts["wrong"] += 1
                line = " ".join(f"{type(error).__name__}: {error}".split())[:200]
                failures.append(f"{name}:{number}: {line!a}; {again(seed, name, number)}")
            else:
                counts[what] += 1
                if len(counts) < 500:
                    counts[f"message {reason}"] += 1
            counts["slowest"] = max(counts["slowest"], int((time.process_time() - began) * 1000))
            counts["memory"] = max(counts["memory"], _peak() - before)
            shutil.rmtree(folder)
    Path(result).write_text(json.dumps({"counts": counts, "failures": failures}))
    return 0


def outcome(path: Path) -> tuple[str, str]:
    """What becomes of an input: "read" or "refused", and of a refusal the kind of reason.

    Raises:
        Exception: anything else.
    """
    from grace_irl.demos import load
    from grace_irl.demos.screens import text
    from grace_irl.demos.ui import markup
    from grace_irl.demos.ui.screen import Screen
    from grace_irl.errors import InputError

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = load([path], role="negative")
        except InputError as error:
            message = str(error)
            short = message.replace(str(path), "")
            if not message.isprintable() or len(short) > 1000:
                raise WrongError(f"not one printable line: {message[:300]!a}") from error
            if "expected" not in message and ";" not in message:
                raise WrongError(f"says neither what was expected nor what to do: {message!a}") from error
            return "refused", " ".join(word for word in short.split() if word.isalpha())[:60]
        for item in found:
            item.trajectory.extra_info.encode()
            item.task.encode()
            _pictures(item.trajectory)
            for state in item.trajectory.states if item.trajectory.kind == "ui" else ():
                root = markup.parse(bytes(state))
                if markup.write(root) != text(state):
                    raise WrongError("a state that is not in the one spelling")
                screen = Screen.of(root)
                if len(screen.nodes) != sum(1 for _ in root.iter("node")) or not isinstance(screen.package, str):
                    raise WrongError("a screen with other nodes than its state")
    return "read", ""


def _pictures(trajectory: Any) -> None:
    """Reads all pictures; one that cannot be had is refused in one line, as a file is.

    Raises:
        Exception: anything else.
    """
    from grace_irl.demos.screenshots import media_type
    from grace_irl.errors import InputError

    for screenshot in trajectory.screenshots:
        try:
            if screenshot is not None:
                media_type(screenshot.read(), "")
        except InputError as error:
            message = str(error)
            if not message.isprintable() or "expected" not in message:
                raise WrongError(f"not one line that says what was expected: {message[:300]!a}") from error


def only(seed: int, which: str) -> int:
    """One input, kept and read with its traceback."""
    name, _, number = which.partition(":")
    folder = OUT / f"{name}-{number}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    path = READERS[name][0](Random(f"{seed}:{name}:{number}"), folder)
    print(f"made {path}")
    try:
        print(*outcome(path))
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
