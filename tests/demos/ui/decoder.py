"""Reads a shard in another way: by the documents of TFRecord and of protocol buffers, with nothing of the package."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

Fields = dict[int, list["int | bytes"]]


def crc32c(data: bytes) -> int:
    """The Castagnoli checksum, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def mask(crc: int) -> int:
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32


def records(content: bytes) -> Iterator[bytes]:
    """The records of a GZIP TFRecord; short ones have their checksums verified."""
    stream = zlib.decompress(content, wbits=31)
    while stream:
        length, crc = struct.unpack_from("<QI", stream)
        assert mask(crc32c(stream[:8])) == crc
        data, stream = stream[12 : 12 + length], stream[12 + length :]
        if length < 200_000:  # this checksum is slow
            assert struct.unpack_from("<I", stream)[0] == mask(crc32c(data))
        stream = stream[4:]
        yield data


def varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value, shift, place = value | (byte & 127) << shift, shift + 7, place + 1
        if byte < 128:
            return value, place


def fields(data: bytes) -> Fields:
    """The fields of a message by number: whole numbers, and bytes of whatever else."""
    found: Fields = {}
    place = 0
    while place < len(data):
        key, place = varint(data, place)
        value: int | bytes
        if key & 7 == 0:
            value, place = varint(data, place)
        else:
            assert key & 7 == 2
            length, place = varint(data, place)
            value, place = data[place : place + length], place + length
        found.setdefault(key >> 3, []).append(value)
    return found


def features(record: bytes) -> dict[str, list[bytes] | list[int]]:
    """The features of a tf.train.Example."""
    out: dict[str, list[bytes] | list[int]] = {}
    for entry in fields(_bytes(fields(record)[1][0])).get(1, []):
        pair = fields(_bytes(entry))
        kinds = fields(_bytes(pair[2][0]))
        name = _bytes(pair[1][0]).decode()
        (kind,) = kinds
        values = fields(_bytes(kinds[kind][0])).get(1, [])
        assert kind in (1, 3)
        out[name] = [_bytes(value) for value in values] if kind == 1 else _packed(values)
    return out


def _packed(values: list[int | bytes]) -> list[int]:
    numbers: list[int] = []
    for value in values:
        place = 0
        while isinstance(value, bytes) and place < len(value):
            number, place = varint(value, place)
            numbers.append(number)
    return numbers


def _bytes(value: int | bytes) -> bytes:
    assert isinstance(value, bytes)
    return value


def labels(tree: bytes) -> list[list[tuple[str, str, str]]]:
    """Text, class and description of every node of every window of a forest, layer by layer."""
    windows = []
    for window in fields(tree).get(1, []):
        nodes = fields(_bytes(fields(_bytes(window))[11][0])).get(1, [])
        windows.append([tuple(_text(fields(_bytes(node)), number) for number in (7, 3, 4)) for node in nodes])
    return windows  # type: ignore[return-value]


def _text(message: Fields, number: int) -> str:
    return _bytes(message.get(number, [b""])[0]).decode()
