"""Readers of NumPy files: `.npy` with one array of episodes, and `.npz` archives without `episode_lengths`."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from grace_irl.demos.foreign.flat import KNOWN, flat_source, is_flat
from grace_irl.demos.foreign.objects import source_of
from grace_irl.demos.memory import Memory
from grace_irl.demos.npz.member import DAMAGED, Member
from grace_irl.demos.source import Source
from grace_irl.errors import InputError
from grace_irl.pages import page


def open_npy(file: Path, memory: Memory) -> Source:
    """Open a `.npy` file with one array of shape (episodes, steps, …).

    Raises:
        InputError: a pickle, a damaged file, or an array of fewer than three dimensions.
    """
    memory.require(2 * file.stat().st_size, str(file))
    try:
        # A memory map cannot be larger than the file, even if the file's header gives a larger shape.
        array = np.array(np.load(file, mmap_mode="r", allow_pickle=False))
    except DAMAGED as error:
        if "allow_pickle" in str(error) or "Python objects" in str(error):
            raise InputError(
                f"{file}: an array of Python objects, which is a pickle; a pickle runs whatever code its author put in "
                "it when it is opened, so it is never read; expected an array of numbers: save one for each episode in "
                f"an npz file, or Parquet ({page('demonstrations')})"
            ) from None
        raise InputError(f"{file}: not readable as npy ({error}); expected a whole file: write it again") from None
    return source_of(array, str(file))


def is_foreign(file: Path) -> bool:
    """Whether an npz archive holds flat arrays (`flat.py`) or arrays of episodes.

    The result is False for damaged archives, and for archives in a layout that `demos/npz` reads.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            names = {name.removesuffix(".npy") for name in archive.namelist()}
    except DAMAGED:
        return False
    if names & {"grace_irl", "episode_lengths", "indices"} or any("/" in name for name in names):
        return False
    return is_flat(dict.fromkeys(names)) or all(name not in KNOWN for name in names)


def open_foreign(file: Path, memory: Memory) -> Source:
    """Open an npz archive of flat arrays, of one array per episode, or of a single array with all episodes.

    Raises:
        InputError: pickles, damaged arrays, or arrays whose shapes fit none of these layouts.
    """
    with zipfile.ZipFile(file) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
        if not names:
            inside = ", ".join(archive.namelist()[:6])[:200] or "nothing"
            raise InputError(f"{file}: a zip archive of {inside}; expected npz arrays: unpack it, or export it as CSV")
        flat = is_flat(dict.fromkeys(names))
        # Other arrays beside flat ones are not opened: they may be pickles.
        wanted = {name: Member(archive, name, file, memory) for name in names if not flat or name in KNOWN}
        memory.require(2 * sum(each.nbytes for each in wanted.values()), str(file))
        arrays = {name: each.whole() for name, each in wanted.items()}
    if flat:
        return flat_source(arrays | dict.fromkeys(name for name in names if name not in wanted), str(file))
    if len(arrays) == 1 and next(iter(arrays.values())).ndim >= 3:
        return source_of(next(iter(arrays.values())), str(file))
    episodes = list(arrays.values())
    # All vectors must have the same width. Grids and images may have any size. Only an array of texts may have one
    # dimension.
    forms = {(each.dtype.kind in "US", each.ndim, each.shape[1:] if each.ndim == 2 else ()) for each in episodes}
    if len(forms) > 1 or any(each.ndim < 2 and each.dtype.kind not in "US" for each in episodes):
        said = ", ".join(f"{name} of shape {each.shape}" for name, each in list(arrays.items())[:6])
        raise InputError(
            f"{file}: arrays {said}; expected 'observations' with 'terminals' or 'episode_lengths', or an array of "
            f"states for each episode, all of the same width: rename them ({page('demonstrations')})"
        )
    return source_of(episodes, str(file))
