"""Helpers of requests: sizes, limits and idempotency keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ._pb import gateway_pb2 as pb
from .errors import InvalidError


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
    size = 0
    for m in messages:
        of = m.ByteSize() + 16
        if chunk and (len(chunk) == most or size + of > most_bytes):
            yield chunk
            chunk, size = [], 0
        chunk.append(m)
        size += of
    if chunk:
        yield chunk
