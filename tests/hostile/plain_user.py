"""Runs folders of tests again as a user that owns nothing, where this process is root.

python -m tests.hostile.plain_user tests/hostile tests/hostile_files -m slow
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.frame.tree import ROOT

NOBODY = 65534
NEEDED = "import numpy, pytest, grace_irl, tests.hostile"
_NOT_NEEDED = shutil.ignore_patterns("site-packages", "test", "idlelib", "ensurepip", "tkinter")


class PlainUser:
    """A user with a home folder, a folder for temporary files, and an interpreter that it may run.

    Args:
        folder: where these are made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.chmod(0o755)
        for name in ("home", "tmp"):
            (folder / name).mkdir()
            os.chown(folder / name, NOBODY, NOBODY)
        self._python = sys.executable
        if self.run("-c", NEEDED).returncode != 0:  # such as one in the home folder of root
            self._python = self._copied_interpreter()

    def may_read_the_project(self) -> bool:
        return self.run("-c", NEEDED).returncode == 0

    def test(self, arguments: Sequence[str], capture: bool = True) -> subprocess.CompletedProcess[str]:
        """Pytest with these arguments: folders, files and options."""
        return self.run("-m", "pytest", "-p", "no:cacheprovider", "-q", *arguments, capture=capture)

    def run(self, *arguments: str, capture: bool = True) -> subprocess.CompletedProcess[str]:
        """The interpreter with these arguments, in the project's folder."""
        path = [str(ROOT), str(ROOT / "baselines"), *(entry for entry in sys.path if entry.endswith("-packages"))]
        environment = {
            "PATH": os.defpath,
            "HOME": str(self._folder / "home"),
            "TMPDIR": str(self._folder / "tmp"),
            "PYTHONPATH": os.pathsep.join(path),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        try:
            return subprocess.run(
                [self._python, *arguments],
                cwd=ROOT,
                env=environment,
                user=NOBODY,
                group=NOBODY,
                extra_groups=[],
                capture_output=capture,
                text=True,
                check=False,
            )
        except PermissionError as error:
            return subprocess.CompletedProcess(arguments, 126, "", str(error))

    def _copied_interpreter(self) -> str:
        """Python without its packages, where anyone may run it."""
        real = Path(os.path.realpath(sys.executable))
        library = Path(os.__file__).parent
        shutil.copytree(library, self._folder / library.relative_to(sys.base_prefix), ignore=_NOT_NEEDED)
        for shared in (real.parent.parent / "lib").glob("libpython*.so*"):
            shutil.copy(shared, self._folder / "lib" / shared.name)
        (self._folder / "bin").mkdir()
        copy = Path(shutil.copy(real, self._folder / "bin" / real.name))
        # It looks for its library where it was built for, and would take the operating system's in its place.
        there, here = str(real.parent.parent / "lib").encode(), b"$ORIGIN/../lib"
        if len(there) >= len(here):
            copy.write_bytes(copy.read_bytes().replace(there + b"\0", here.ljust(len(there), b"\0") + b"\0"))
        return str(copy)


@contextmanager
def plain_user() -> Iterator[PlainUser]:
    """A plain user, whose folder is removed afterwards. For root only."""
    folder = Path(tempfile.mkdtemp(prefix="grace-irl-plain-"))
    try:
        yield PlainUser(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """Exit status of pytest, or 2 where nobody could run it."""
    if os.geteuid() != 0:
        print("only root can become another user; expected a plain user's own run: python -m pytest", file=sys.stderr)
        return 2
    with plain_user() as user:
        if not user.may_read_the_project():
            print(f"a plain user may not read {ROOT} or its packages", file=sys.stderr)
            return 2
        return user.test(sys.argv[1:] or ["tests/hostile"], capture=False).returncode


if __name__ == "__main__":
    sys.exit(main())
