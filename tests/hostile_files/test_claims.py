"""Arrays and pages that say something else of themselves than they are."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.hostile_files.refusal import refused


def claims(path: Path, name: str, header: dict[str, Any], data: bytes, size: int | None = None) -> None:
    """An npz whose array says something else of itself than it is."""
    text = repr(header).encode().ljust(118) + b"\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for other, array in (("observations", np.zeros((4, 2))), ("episode_lengths", np.array([4]))):
            if other != name:
                buffer = io.BytesIO()
                np.save(buffer, array)
                archive.writestr(f"{other}.npy", buffer.getvalue())
        archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data)
    if size is not None:
        content = path.read_bytes()
        place = content.rindex(f"{name}.npy".encode()) - 46 + 24  # the size in the directory
        path.write_bytes(content[:place] + struct.pack("<I", size) + content[place + 4 :])


@pytest.mark.parametrize("name", ["observations", "episode_lengths"])
@pytest.mark.parametrize("shape", [(10**15, 2), (4, 10**12), (10**30,), (-4, -2), (4, 2, 2)])
def test_an_npz_that_lies_of_its_shape(
    shape: tuple[int, ...], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "expert.npz"
    claims(path, name, {"descr": "<f8", "fortran_order": False, "shape": shape}, bytes(64))
    refused(capsys, ["demos", "inspect", str(path)], name, "is damaged")


def test_an_npz_that_lies_of_its_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "expert.npz"
    shape = (1 << 27, 2)
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    claims(path, "observations", header, bytes(64), (1 << 31) + 128)
    refused(capsys, ["demos", "inspect", str(path)], "observations", "cannot be packed into")


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_an_npz_in_another_compression(method: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "expert.npz"
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, array in (("observations", np.zeros((1000, 2))), ("episode_lengths", np.array([1000]))):
            buffer = io.BytesIO()
            np.save(buffer, array)
            archive.writestr(f"{name}.npy", buffer.getvalue())
    refused(capsys, ["demos", "inspect", str(path)], "compressed by a method that numpy does not use")


def test_a_parquet_file_that_lies_of_its_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page's own number of values is what Arrow allocates by."""
    path = tmp_path / "expert.parquet"
    states = pa.array([[0.0] * 2] * 3, pa.list_(pa.float64()))
    table = pa.table({"episode": [0, 0, 0], "state": states})
    pq.write_table(table, path, compression="none", use_dictionary=False, write_statistics=False, store_schema=False)
    column = pq.ParquetFile(path).metadata.row_group(0).column(1)
    content = bytearray(path.read_bytes())
    header = content.index(b"\x2c\x15\x0c", column.data_page_offset)  # the header of the data, and 6 as a varint
    content[header + 2] = 0x7E  # 63
    path.write_bytes(bytes(content))
    refused(capsys, ["demos", "inspect", str(path)], "pages of 63 values, and 6 in the footer")
