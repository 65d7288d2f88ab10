"""TFRecord files: checksums, damage, and which file is one."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.demos import tfrecord
from grace_irl.errors import InputError
from tests.demos.ui import decoder

pytest.importorskip("google_crc32c")

RECORDS = [b"\x0a\x05hello", b"", b"\x0a" + bytes(range(256)) * 10]


def written(path: Path, records: list[bytes] = RECORDS, zipped: bool = True) -> Path:
    with gzip.open(path, "wb") if zipped else path.open("wb") as stream:
        for record in records:
            tfrecord.write_record(stream, record)  # type: ignore[arg-type]
    return path


def refused(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        list(tfrecord.read_records(path))
    message = str(caught.value)
    assert message.startswith(f"{path}: record ")
    assert "\n" not in message
    assert "expected" in message
    return message


@pytest.mark.parametrize("zipped", [True, False])
def test_round_trip(zipped: bool, tmp_path: Path) -> None:
    assert list(tfrecord.read_records(written(tmp_path / "x", zipped=zipped))) == RECORDS


def test_another_reader_finds_the_same(tmp_path: Path) -> None:
    assert list(decoder.records(written(tmp_path / "x").read_bytes())) == RECORDS


def test_the_checksum_is_castagnolis() -> None:
    assert tfrecord.checksum(b"123456789") == 0xE3069283  # the check value of the CRC catalogue
    assert tfrecord.checksum(b"6789", tfrecord.checksum(b"12345")) == 0xE3069283
    assert tfrecord.masked(0xE3069283) == decoder.mask(0xE3069283)


@given(st.binary(max_size=300))
def test_checksums_agree_with_another_way_to_make_them(data: bytes) -> None:
    assert tfrecord.checksum(data) == decoder.crc32c(data)


@pytest.mark.parametrize("zipped", [True, False])
def test_every_cut_is_found(zipped: bool, tmp_path: Path) -> None:
    """At the end of a record a file that is not zipped has just fewer of them."""
    content = written(tmp_path / "whole", zipped=zipped).read_bytes()
    ends = {16 + len(RECORDS[0]), 32 + len(RECORDS[0])}
    path = tmp_path / "cut"
    for length in [*range(3, len(content), 7), *ends]:
        path.write_bytes(content[:length])
        if not zipped and length in ends:
            assert len(list(tfrecord.read_records(path))) < len(RECORDS)
        else:
            refused(path)


@pytest.mark.parametrize("place", [*range(12 + len(RECORDS[0]) + 4 + 16), 100, 2000])
def test_every_flipped_bit_is_found(place: int, tmp_path: Path) -> None:
    content = bytearray(written(tmp_path / "whole", zipped=False).read_bytes())
    for bit in (1, 128):
        content[place] ^= bit
        (tmp_path / "flipped").write_bytes(content)
        assert "checksum" in refused(tmp_path / "flipped")
        content[place] ^= bit


def test_damage_in_the_gzip_data(tmp_path: Path) -> None:
    content = gzip.compress(written(tmp_path / "whole", zipped=False).read_bytes())
    for place in range(10, len(content)):  # behind the header
        changed = bytearray(content)
        changed[place] ^= 0x55
        (tmp_path / "changed").write_bytes(changed)
        refused(tmp_path / "changed")


def test_an_absurd_length_takes_no_memory(tmp_path: Path) -> None:
    def header(length: int) -> bytes:
        start = struct.pack("<Q", length)
        return start + struct.pack("<I", tfrecord.masked(tfrecord.checksum(start)))

    path = tmp_path / "x.tfrecord"
    path.write_bytes(header(2**62) + b"\x0a")
    assert "record 0: 4,611,686,018,427,387,904 bytes; expected at most 268,435,456" in refused(path)
    path.write_bytes(header(tfrecord.MAX_RECORD) + b"\x0a")
    assert "record 0: 1 of 268,435,456 bytes" in refused(path)


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        list(tfrecord.read_records(tmp_path / "gone"))


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("android_control-00000-of-00020", lambda: b"", True),  # a name that says so, whatever is wrong with it
        ("x.tfrecord", lambda: b"", True),
        ("x.tfrecords.gz", lambda: b"junk", True),
        ("x.TFRecord.GZ", lambda: b"junk", True),
        ("x", lambda: b"", False),
        ("x", lambda: b"\x1f\x8b", False),
        ("x", lambda: gzip.compress(b"{}"), False),
        ("x", lambda: gzip.compress(struct.pack("<QI", 9, 0) + b"\x0a"), True),
        ("x.gz", lambda: gzip.compress(struct.pack("<QI", 9, 0) + b"\x0a"), True),
        ("x.bin", lambda: struct.pack("<QI", 9, 0) + b"\x0a", True),
        ("x", lambda: struct.pack("<QI", 2**60, 0) + b"\x0a", False),
        ("x", lambda: b"a plain text that is longer than a header", False),
        ("x-of-y", lambda: b"a plain text that is longer than a header", False),
    ],
)
def test_which_file_is_one(name: str, content: Callable[[], bytes], expected: bool, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content())
    assert tfrecord.is_tfrecord(tmp_path / name) == expected


def test_gzip_in_capitals_is_one_in_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "x.GZ"
    path.write_bytes(gzip.compress(struct.pack("<QI", 9, 0) + b"\x0a"))
    assert tfrecord.is_in_folder(path)


def test_a_folder_is_none(tmp_path: Path) -> None:
    (tmp_path / "x.tfrecord").mkdir()
    assert not tfrecord.is_tfrecord(tmp_path / "x.tfrecord")
    assert not tfrecord.is_in_folder(tmp_path / "x.tfrecord")
