"""Files in the shell: tables and arrays in the shapes that everybody has."""

import json
import re

import numpy as np
import pytest

from .robot import COLUMNS, flat, names_a_column, pays_experts, rows, said, shell, write_states, write_wide


def test_a_wide_csv(here, experts, negatives):
    """Fit CSV files with a column for each number, and read which columns were taken for what."""
    write_wide(here / "expert.csv", experts)
    write_wide(here / "negative.csv", negatives)
    done = shell("fit", "--demos", "expert.csv", "--negatives", "negative.csv", "--out", "run")
    assert done.returncode == 0, said(done)
    assert "episode" in said(done)
    assert all(name in done.stderr for name in COLUMNS)  # the guess is said aloud, beside the program on stdout
    assert names_a_column((here / "run/reward.py").read_text())
    assert pays_experts(here / "run/reward.py", experts, negatives)


def test_experts_beside_negatives(here, experts, negatives):
    """Name the experts' table by `--experts`, whatever the files are called."""
    write_wide(here / "monday.parquet", experts)
    write_wide(here / "tuesday.parquet", negatives)
    done = shell("fit", "--experts", "monday.parquet", "--negatives", "tuesday.parquet", "--out", "run")
    assert done.returncode == 0, said(done)
    assert pays_experts(here / "run/reward.py", experts, negatives)


def test_json_lines(here, experts, negatives):
    """Fit logs with a JSON object for each state."""
    for name, episodes in (("expert", experts), ("negative", negatives)):
        (here / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows(episodes)))
    done = shell("fit", "--demos", "expert.jsonl", "negative.jsonl", "--out", "run")
    assert done.returncode == 0, said(done)
    assert pays_experts(here / "run/reward.py", experts, negatives)


def test_hdf5_of_d4rl(here, experts, negatives):
    """Fit two HDF5 files in D4RL's layout."""
    h5py = pytest.importorskip("h5py")
    for name, episodes in (("expert", experts), ("random", negatives)):
        with h5py.File(here / f"{name}.hdf5", "w") as file:
            for key, array in flat(episodes).items():
                file[key] = array
    done = shell("fit", "--demos", "expert.hdf5", "--negatives", "random.hdf5", "--out", "run")
    assert done.returncode == 0, said(done)
    assert pays_experts(here / "run/reward.py", experts, negatives)


def test_a_label_column(here, experts, negatives):
    """Fit one file whose `label` column tells experts from negatives."""
    labels = [kind for kind, each in (("expert", experts), ("negative", negatives)) for one in each for _ in one]
    write_states(here / "all.parquet", experts + negatives, label=labels)
    done = shell("fit", "--demos", "all.parquet", "--out", "run")
    if done.returncode == 0:
        assert pays_experts(here / "run/reward.py", experts, negatives)
    else:
        assert done.returncode == 2
        assert "label" in said(done).replace(str(here), "").replace("--label", "")


def test_inspecting_somebody_elses_file(here, experts):
    """Inspect an npz file of unknown layout and role, and read which command takes it."""
    np.savez(here / "walks.npz", **flat(experts))
    done = shell("demos", "inspect", "walks.npz")
    assert done.returncode == 0, said(done)
    assert "observations" in said(done)
    assert "grace-irl fit" in said(done) or "grace-irl demos convert" in said(done)
    assert "--experts walks.npz" in said(done) or "--role" in said(done)


def test_roles_said_aloud(here, experts, negatives):
    """Fit files whose names begin with their roles, and read that the names decided."""
    write_states(here / "expert_monday.parquet", experts)
    write_states(here / "negative_monday.parquet", negatives)
    done = shell("fit", "--demos", "expert_monday.parquet", "negative_monday.parquet", "--out", "run")
    assert done.returncode == 0, said(done)
    lines = [line for line in said(done).splitlines() if "expert_monday" in line]
    assert any(re.search(r"\bname\b", line) for line in lines)


def test_naming_the_fields(here, experts):
    """Name the numbers of a vector on conversion, and see the names in the copy."""
    write_states(here / "expert.parquet", experts)
    done = shell(
        "demos", "convert", "expert.parquet", "named.parquet", "--role", "expert", "--fields", "across,height,speed"
    )
    assert done.returncode == 0, said(done)
    assert "height" in said(shell("demos", "inspect", "named.parquet"))
