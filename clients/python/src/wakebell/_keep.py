"""What handlers keep of their timers while they run."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from . import _values, errors
from ._link import Link
from ._pb import gateway_pb2, wakebell_pb2

_TIMEOUT = 10.0  # how long the node has to store something


class Keeper:
    """Keeps checkpoints, progress and the result of one lease."""

    def __init__(self, link: Link, topic: str, subscriber: str, id: str, delivery: int, *, queue: bool) -> None:
        self._link, self._loop = link, asyncio.get_running_loop()
        self._of: dict[str, Any] = {"topic": topic, "subscriber": subscriber, "id": id, "delivery": delivery}
        self._queue = queue
        self.result: gateway_pb2.Content | None = None

    async def checkpoint(self, body: Any, content_type: str | None) -> None:
        await self._keep(checkpoint=_content(body, content_type))

    async def progress(self, fraction: float, note: str) -> None:
        await self._keep(progress=wakebell_pb2.Progress(fraction=fraction, note=note))

    def set_result(self, value: Any, content_type: str | None) -> None:
        if self._queue:
            raise errors.InvalidError("lease: messages of queues have no results")
        self.result = _content(value, content_type)

    def wait(self, keeping: Coroutine[Any, Any, None]) -> None:
        """Wait in another thread than that of the event loop."""
        asyncio.run_coroutine_threadsafe(keeping, self._loop).result()

    async def _keep(self, **what: Any) -> None:
        await self._link.call("keep", wakebell_pb2.KeepRequest(**self._of, **what), _TIMEOUT)


def _content(value: Any, content_type: str | None) -> gateway_pb2.Content:
    body, of = _values.encode(value, content_type)
    return gateway_pb2.Content(body=body, content_type=of)
