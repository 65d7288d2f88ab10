"""Archives of arrays (npz) that are nearly right: plain ones, and those of the `imitation` library."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuzzing import mutations as m
from fuzzing.draw import Draw, change
from fuzzing.screens import written

Arrays = dict[str, NDArray[Any]]

NAMES = (
    *("observations", "actions", "episode_lengths", "rewards", "log_probs", "terminals", "next_observations"),
    *("final_observations", "instructions", "tasks", "roles", "splits", "terminated", "truncated", "terminal"),
    *("obs", "acts", "indices", "rews", "infos", "grace_irl", "", "a/b", "../a", "\x1b[2J", "é"),
)
_DTYPES = (
    *("f2", "f4", ">f8", "g", "c16", "?", "i1", "u1", ">i4", "u8", "U1", "U300", "S3", "S0", "U0", "M8[s]", "m8[D]"),
    *("V4", "O", "f8,i4", "(2,)f4", "u2", "G", "i8"),
)
_HEADERS = (
    *("{}", "[]", "{'descr': '<f8'}", "'a'", "(" * 3000, "{'descr': 'O', 'fortran_order': False, 'shape': (1,)}"),
    *("{'descr': '<f8', 'fortran_order': 1, 'shape': (4, 2)}", "{'descr': [], 'fortran_order': False, 'shape': (4,)}"),
    *("{'descr': '<f8', 'fortran_order': True, 'shape': (4, 2)}", "\xff\xfe", "", "{'descr': '<f8', 'shape': ()}"),
    "{'descr': [('a', 'O')], 'fortran_order': False, 'shape': (2,)}",
    "{'descr': ('<f8', (2,)), 'fortran_order': False, 'shape': (4,)}",
    "{'descr': '|V0', 'fortran_order': False, 'shape': (4, 2)}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 2), 'extra': 1}",
)
_SHAPES = (
    "(4,)",
    "()",
    "(4, 0)",
    "(0, 2)",
    "(-1, 2)",
    "(4, -2)",
    "(4, 2, 1, 1, 1)",
    "(4611686018427387904, 2)",
    "(4.0,)",
)
_SHAPES += (
    "(True, 2)",
    "(4, 70368744177664)",
    "(9223372036854775808,)",
    "(4, 2, 2, 3)",
    "[4, 2]",
    "4",
    "(" + "1," * 70 + ")",
)
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


def plain(rng: Draw) -> Arrays:
    """Two episodes of two steps: observations, actions and whatever else may go with them."""
    rows, states = 4, _states(rng, 6)
    ends = states[[2, 5]]
    arrays: Arrays = {"observations": states[[0, 1, 3, 4]], "episode_lengths": np.array([2, 2])}
    optional: Arrays = {
        "actions": rng.choice((np.arange(rows), np.ones((rows, 2), np.float32))),
        "rewards": np.ones(rows),
        "log_probs": -np.ones(rows, np.float32),
        "terminals": np.array([False, True, False, False]),
        "instructions": np.array(["set", "an alarm"]),
        "tasks": np.array(["a", "b"]),
        "roles": np.array(["expert", "negative"]),
        "splits": np.array(["train", ""]),
        "terminated": np.array([True, False]),
        "truncated": np.array([False, True]),
    }
    following = rng.choice(({}, {"final_observations": ends}, {"next_observations": states[[1, 2, 4, 5]]}))
    arrays |= {name: values for name, values in optional.items() if rng.random() < 0.7} | following
    return arrays


def imitation(rng: Draw) -> Arrays:
    """The same in the layout of `imitation.data.serialize`."""
    arrays: Arrays = {
        "obs": _states(rng, 6),
        "acts": np.arange(4),
        "indices": np.array([2]),
        "terminal": np.array([True, False]),
        "infos": np.full(4, "{}"),
    }
    optional: Arrays = {"rews": np.ones(4), "roles": np.array(["expert", "negative"]), "tasks": np.array(["a", "b"])}
    return arrays | {name: values for name, values in optional.items() if rng.random() < 0.7}


def npz(rng: Draw, folder: Path) -> Path:
    """An archive with changes in its arrays, in the headers of arrays, in its metadata and in the container."""
    arrays = plain(rng) if rng.random() < 0.6 else imitation(rng)
    states = arrays["obs" if "obs" in arrays else "observations"]
    if rng.random() < 0.4:
        kind = "vector" if states.ndim == 2 else "grid"
        about: Any = {"kind": kind, "format": 1, "role": rng.choice(("expert", "mixed", None)), "shape": []}
        about |= {"fields": ["a", "b"] if kind == "vector" else [], "tasks": ["a"], "label": "all", "dtype": "float64"}
        for _ in range(2):
            about = m.in_value(rng, about) if rng.random() < 0.2 else about
        arrays["grace_irl"] = np.array(written(rng, about).decode("utf-8", "replace").replace("\0", ""))
    members: list[tuple[str, bytes]] | None = None
    for _ in rng.rounds():
        kind = rng.randrange(10)
        if kind < 7:
            _change_array(rng, arrays)
        else:
            members = _change_header(rng, members or _members(arrays))
    data = _container(rng, members or _members(arrays))
    path = folder / "expert_a.npz"
    path.write_bytes(m.in_bytes(rng, data) if rng.may(0.12) else data)
    return path


def _states(rng: Draw, count: int) -> NDArray[Any]:
    if rng.random() < 0.6:
        return np.arange(2.0 * count).reshape(count, 2).astype(rng.choice(("f8", "f4", "i8")))
    return np.arange(6 * count).reshape(count, 1, 2, 3).astype(rng.choice(("u1", "i8", "i2")))


@change
def _change_array(rng: Draw, arrays: Arrays) -> None:
    """Drops, renames, casts, shapes anew, cuts or lengthens an array, or changes a value in it."""
    name = rng.choice(list(arrays))
    values = arrays[name]
    kind = rng.randrange(9)
    try:
        if kind == 0:
            del arrays[name]
        elif kind == 1:
            arrays[rng.choice(NAMES)] = values
        elif kind == 2:
            arrays[name] = values.astype(rng.choice(_DTYPES))
        elif kind == 3:
            shapes = (values.T, values[..., None], values.ravel(), values[None], np.array(values.flat[0]), values[:0])
            arrays[name] = rng.choice((*shapes, np.asfortranarray(values), values.reshape(-1, 1), values[..., :0]))
        elif kind == 4:
            arrays[name] = rng.choice((values[:-1], values[1:], np.concatenate([values, values[-1:]]), values[::-1]))
        elif kind < 7:
            odd: Any = rng.choice((*m.NUMBERS, -2, 2, 3, 5, 2**62))
            changed = values.astype("U40" if values.dtype.kind == "U" else values.dtype, copy=True)
            changed.flat[rng.randrange(changed.size)] = rng.choice(m.TEXTS) if values.dtype.kind == "U" else odd
            arrays[name] = changed
        elif kind == 7:
            arrays[name] = np.full_like(values, rng.choice((0, 1, -1, 255)))
        else:
            arrays[name] = np.array(rng.choice(("expert", 3, [], [[]], [1, 2, 3], [True], ["a"], b"ab", None, 2.5)))
    except (ValueError, TypeError, OverflowError, IndexError):  # what this array cannot be
        arrays[name] = np.array([m.scalar(rng)], object).astype("U20")


def _members(arrays: Arrays) -> list[tuple[str, bytes]]:
    return [(f"{name}.npy", _npy(values)) for name, values in arrays.items()]


def _npy(values: NDArray[Any]) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, values, allow_pickle=True)
    return stream.getvalue()


@change
def _change_header(rng: Draw, members: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """A header of an array that claims something else than lies behind it."""
    at = rng.randrange(len(members))
    name, data = members[at]
    length = struct.unpack("<H", data[8:10])[0] if len(data) > 10 else 0
    header, body = data[10 : 10 + length].decode("latin-1"), data[10 + length :]
    version = data[6:8]
    kind = rng.randrange(6)
    if kind == 0:
        header = rng.choice(_HEADERS)
    elif kind == 1 and "'shape': " in header:
        header = header[: header.index("'shape': ") + 9] + rng.choice(_SHAPES) + ", }\n"
    elif kind == 2:
        header = header.replace("'<f8'", repr(rng.choice(_DTYPES))).replace("False", rng.choice(("True", "None", "2")))
    elif kind == 3:
        version = rng.choice((b"\2\0", b"\3\0", b"\1\1", b"\xff\xff"))
    elif kind == 4:
        body = rng.choice((body[:-1], body * 2, b"", body + b"\0" * 64))
    else:
        members[at] = name, m.in_bytes(rng, data)
        return members
    text = header.encode("latin-1", "replace")[:65535]
    claimed = len(text) if rng.random() < 0.9 else rng.choice((0, 1, 65535))
    size = struct.pack("<I" if version[:1] in (b"\2", b"\3") and rng.random() < 0.8 else "<H", claimed)
    members[at] = name, b"\x93NUMPY" + version + size + text + body
    return members


def _container(rng: Draw, members: list[tuple[str, bytes]]) -> bytes:
    """The archive, at times with members twice, of another compression, or with fields that lie."""
    if members and rng.changed(0.03):
        members = [*members, rng.choice((members[0], ("a.txt", b"a"), ("observations", b""), ("x/", b"")))]
    stream = io.BytesIO()
    method = rng.choice(_METHODS) if rng.random() < 0.1 else zipfile.ZIP_STORED
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name) if method == 0 else name, data)
    data = stream.getvalue()
    if members and rng.changed(0.05):  # a field of a member's entry: flags, method, sum, sizes, place
        entry = bytearray(data)
        at = data.rfind(b"PK\1\2") if rng.random() < 0.7 else data.find(b"PK\3\4")
        first = 8 if data[at : at + 4] == b"PK\1\2" else 6
        place = at + first + rng.randrange(36 if first == 8 else 22)
        entry[place] = rng.choice((0, 1, 8, 14, 99, 255, entry[place] ^ 1))
        data = bytes(entry)
    return data
