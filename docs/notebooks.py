"""Executes the notebooks: each script of docs/notebooks/, in jupytext's percent format, gives an .ipynb beside it.

    python docs/notebooks.py [SCRIPT …]          execute, and write what differs
    python docs/notebooks.py --check [SCRIPT …]  execute, and compare with what the notebooks show

An .ipynb holds what the cells gave, but no time of execution, no path of this machine and no random id. Durations and
the time in the name of a run are not compared, and neither are pictures. A notebook starts in its own folder, needs no
network, and opens no port.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import jupytext
import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "notebooks"
LONGEST = 600
"""Seconds that a cell may take."""
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"},
}
ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")
VARYING = {
    re.compile(r"\b\d+(?:[.,]\d+)? ?(?:µs|ms|s|seconds?|min|minutes?)\b"): "… s",
    re.compile(r"\b20\d\d-?\d\d-?\d\d[-T_ ]\d\d[:-]?\d\d[:-]?\d\d(?:\.\d+)?\b"): "…",
}
"""Parts that differ from one execution to the next, and what stands for them in a comparison."""


def executed(script: Path) -> NotebookNode:
    """The notebook of a script, with what its cells give now.

    Raises:
        CellExecutionError: a cell fails.
    """
    notebook = jupytext.read(script, fmt="py:percent")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        work = folder / "tmp"  # below it lies whatever a notebook puts into folders of its own
        work.mkdir()
        # Sockets with names: the kernel needs no network, not even that of the machine with itself.
        kernel = AsyncKernelManager(
            kernel_name="python3",
            kernel_spec_manager=KernelSpecManager(kernel_dirs=[]),
            transport="ipc",
            connection_file=str(folder / "kernel.json"),
        )
        surroundings = {**os.environ, "TMPDIR": str(work), "IPYTHONDIR": str(folder / "ipython")}
        client = NotebookClient(notebook, km=kernel, timeout=LONGEST, record_timing=False)
        client.execute(cleanup_kc=True, cwd=str(script.resolve().parent), env=surroundings)
        _settle(notebook, work)
    return notebook


def _settle(notebook: NotebookNode, work: Path) -> None:
    """Take out of a notebook what belongs to this execution and this machine."""
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for number, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{number}", nbformat.from_dict({})
        for output in cell.get("outputs", []):
            if "metadata" in output:
                output.metadata = nbformat.from_dict({})
            data = output.get("data", {})
            if {"text/html", "image/svg+xml", "image/png", "image/jpeg"} & data.keys():
                data.pop("text/plain", None)  # an object's plain form beside a form that is made for readers
            for place, key in _texts(output):
                place[key] = _settled(place[key], work)


def _settled(text: str, work: Path) -> str:
    for folder in (re.escape(str(work)) + r"(?:/tmp\w+)?", re.escape(str(ROOT)), re.escape(sys.prefix)):
        text = re.sub(rf"{folder}(?:/|\b)", "", text)
    text = re.sub(r"\bipykernel_\d+/\d+\.py:\d+: ", "", text)
    return ADDRESS.sub("0x…", text)


def _texts(output: NotebookNode) -> Iterator[tuple[NotebookNode, str]]:
    """The places of an output that hold text."""
    if "text" in output:
        yield output, "text"
    yield from ((output.data, kind) for kind in output.get("data", {}) if kind.startswith("text/"))


def compared(notebook: NotebookNode) -> list[str]:
    """The text of a notebook in lines, without what differs from one execution to the next."""
    lines = []
    for cell in notebook.cells:
        lines += [f"[{cell.cell_type}]", *cell.source.splitlines()]
        for output in cell.get("outputs", []):
            for place, key in _texts(output):
                text = place[key]
                for varying, instead in VARYING.items():
                    text = varying.sub(instead, text)
                lines += [f"[{key}]", *text.splitlines()]
    return lines


def pictures(notebook: NotebookNode) -> list[str]:
    """The pictures of a notebook."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [data for each in outputs for kind, data in each.get("data", {}).items() if kind.startswith("image/")]


def renew(script: Path, *, check: bool) -> str:
    """Execute a script, and write its notebook or compare it. Returns what is wrong; "" if nothing is."""
    target = script.with_suffix(".ipynb")
    try:
        found = executed(script)
    except CellExecutionError as error:
        return f"{script.name}: a cell fails\n{error}"
    before = nbformat.read(target, as_version=4) if target.exists() else None
    changed = before is None or compared(before) != compared(found)
    if check and changed:
        old = compared(before) if before is not None else []
        shown = difflib.unified_diff(old, compared(found), target.name, "now", lineterm="")
        return "\n".join([f"{target.name} shows something else: run python docs/notebooks.py", *shown])
    if not check and (changed or before is None or pictures(before) != pictures(found)):
        nbformat.write(found, target)
    return ""


def main() -> int:
    """Writes or checks; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", metavar="SCRIPT", nargs="*", type=Path, help="by default all of docs/notebooks/")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a notebook differs")
    given = parser.parse_args()
    wrong = [renew(script, check=given.check) for script in given.scripts or sorted(FOLDER.glob("*.py"))]
    for each in filter(None, wrong):
        print(each, file=sys.stderr)
    return int(any(wrong))


if __name__ == "__main__":
    sys.exit(main())
