"""Reader for the record batches of Arrow streams.

The reader refuses columns that are not plain (`_is_plain`), so the batches take no more memory than the stream.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pyarrow as pa

from grace_irl.errors import InputError


def batches_of(data: pa.Buffer, where: str) -> Iterator[pa.RecordBatch]:
    """The record batches of an Arrow stream, in order.

    Args:
        data: the stream, in memory. Do not pass a memory map: with a damaged file, reads could go past the file's end.
        where: name of the file, for error messages.

    Raises:
        InputError: an empty stream, two columns with the same name, a compressed column, a dictionary, or another
            column that is not plain.
        pa.ArrowException: a damaged stream or column.
    """
    messages = pa.ipc.MessageReader.open_stream(pa.BufferReader(data))
    try:
        schema = pa.ipc.read_schema(next(messages))
    except StopIteration:
        raise InputError(f"{where}: an empty Arrow stream; expected a schema and rows: write it again") from None
    if len(set(schema.names)) < len(schema.names):
        raise InputError(f"{where}: two columns of one name; expected one of each: write it again")
    for field in schema:
        if not _is_plain(field.type):
            raise InputError(
                f"{where}: a column of {str(field.type)[:80]}; expected numbers, texts, or lists: write it again"
            )
    for message in messages:
        try:
            unpacks = message.type != "record batch" or is_compressed(bytes(message.metadata))
        except struct.error as error:
            raise pa.ArrowInvalid(f"damaged message: {error}") from None
        if unpacks:
            raise InputError(
                f"{where}: a compressed column or a dictionary, which may unpack to any size; expected plain columns: "
                "write it again without"
            )
        batch = pa.ipc.read_record_batch(message, schema)
        batch.validate(full=True)
        yield batch


def _is_plain(kind: pa.DataType) -> bool:
    """Whether a column type is plain: numbers, booleans, texts, byte strings, and lists and structs of plain types.

    In a column of another type, such as nulls, run-end encoded values, string views or lists of the fixed size 0, few
    bytes of the stream may stand for many values.
    """
    if pa.types.is_struct(kind):
        return kind.num_fields > 0 and all(_is_plain(kind.field(place).type) for place in range(kind.num_fields))
    if pa.types.is_fixed_size_list(kind):
        return kind.list_size > 0 and _is_plain(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _is_plain(kind.value_type)
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    return any(holds(kind) for holds in (*texts, *numbers))


def is_compressed(metadata: bytes) -> bool:
    """Whether the body of a record batch is compressed.

    Args:
        metadata: metadata of the Arrow message with the batch, as a FlatBuffer (arrow/format/Message.fbs).
    """
    header = _field(metadata, struct.unpack_from("<I", metadata)[0], 2)
    batch = header + struct.unpack_from("<I", metadata, header)[0]
    return _field(metadata, batch, 3) != 0


def _field(data: bytes, table: int, number: int) -> int:
    """Offset of a field in a FlatBuffer's table; 0 if the field is absent.

    Args:
        data: the FlatBuffer.
        table: offset of the table.
        number: number of the field in the table's schema, from 0.
    """
    fields = table - struct.unpack_from("<i", data, table)[0]
    size = struct.unpack_from("<H", data, fields)[0]
    place = 4 + 2 * number
    offset = struct.unpack_from("<H", data, fields + place)[0] if place < size else 0
    return table + offset if offset else 0
