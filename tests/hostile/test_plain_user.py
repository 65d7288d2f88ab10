"""The hostile suites as a plain user: what holds for root, who gives rights away first, holds without any to give."""

from __future__ import annotations

import os

import pytest

from tests.frame.tree import ROOT
from tests.hostile.plain_user import plain_user

FOLDERS = [name for name in ("tests/hostile", "tests/hostile_files") if (ROOT / name).is_dir()]
SAME = (
    *("huge_*", "fuzzing", "databases", "nearly_right", "claims"),  # data of gigabytes, at random, or nearly right
    *("text", "console", "exports", "sources", "records", "comparisons", "demonstrations"),  # what files say
)
"""Files of tests that have the same result for every user: no owner and no right of a file plays a part."""
NOT_AGAIN = ("-m", "not slow", *(word for name in SAME for word in ("--ignore-glob", f"*/test_{name}.py")))

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="this is a plain user's run already")


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_hostile_programs_and_files_reach_nothing_as_a_plain_user(folder: str) -> None:
    with plain_user() as user:
        if not user.may_read_the_project():
            pytest.skip("a plain user may not read this folder or the packages")
        done = user.test([folder, *NOT_AGAIN])
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    assert " passed" in done.stdout
