"""Helpers of requests: sizes, limits and idempotency keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from google.protobuf.message import Message

from ._pb import gateway_pb2 as pb
from .errors import InvalidError

MAX_MESSAGE = 8 << 20
OVERHEAD = 64  # bounds what a frame adds to a request, in bytes
MAX_VALUES = 200_000 - 16  # of a request: a node counts texts, bytes and messages
MAX_FRAME_BYTES = 2 * MAX_VALUES  # a frame has no more values, because each takes two bytes


def check_max_message(size: int) -> int:
    if not 64 << 10 <= size <= 1 << 30:
        raise InvalidError(f"max_message {size}, want 64 KiB to 1 GiB")
    return size


def check_size(request: Message, most: int) -> None:
    """Raise InvalidError for a request that the node would refuse by ending the link."""
    size = request.ByteSize() + OVERHEAD
    if size > most:
        raise InvalidError(f"request of {size} bytes, the limit is max_message, {most}")
    if size > MAX_FRAME_BYTES and values_of(request) > MAX_VALUES:
        raise InvalidError(f"request of more than {MAX_VALUES:,} values")


def values_of(value: Any) -> int:
    """Return how many texts, bytes and messages there are in a value of a message."""
    if isinstance(value, (str, bytes)):
        return 1
    if isinstance(value, Message):
        return 1 + sum(values_of(each) for _, each in value.ListFields())
    if isinstance(value, Mapping):  # of texts
        return 3 * len(value)
    return sum(map(values_of, value)) if isinstance(value, Sequence) else 0


def set_key(request: pb.ScheduleRequest, id: str | None, key: str) -> None:
    """Set the idempotency key. The node then makes an id, so that repeated calls are equal."""
    if key:
        request.key = key
        request.id = id or ""


def check_limit(limit: int | None) -> int | None:
    if limit is not None and limit < 0:
        raise InvalidError(f"limit {limit}, want at least 0")
    return limit


def chunks(messages: Sequence[Any], most: int, most_bytes: int) -> Iterable[list[Any]]:
    """Split messages into lists that fit into one request each."""
    chunk: list[Any] = []
    size = count = 0
    dense = sum(m.ByteSize() for m in messages) > MAX_FRAME_BYTES  # else there are not too many values
    for m in messages:
        of, values = m.ByteSize() + 16, values_of(m) if dense else 0
        if chunk and (len(chunk) == most or size + of > most_bytes or count + values > MAX_VALUES):
            yield chunk
            chunk, size, count = [], 0, 0
        chunk.append(m)
        size += of
        count += values
    if chunk:
        yield chunk
