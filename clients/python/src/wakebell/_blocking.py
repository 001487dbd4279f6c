"""The client for blocking code."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar

from . import aio
from . import recurring as r
from . import types as t
from ._requests import MAX_MESSAGE
from .errors import ForkedError, TurnLostError

T = TypeVar("T")


class _Loop:
    """An event loop in a thread, which all blocking clients share."""

    def __init__(self) -> None:
        self.loop, self._process = asyncio.new_event_loop(), os.getpid()
        self._thread = threading.Thread(target=self.loop.run_forever, name="wakebell", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop, and wait for its result."""
        try:
            self._check()
        except BaseException:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:  # KeyboardInterrupt too
            future.cancel()
            raise

    def _check(self) -> None:
        """Raise if the loop cannot run anything while the caller waits."""
        if os.getpid() != self._process:
            raise ForkedError("the client was made before this process was forked: make one after the fork")
        if threading.current_thread() is self._thread:
            raise RuntimeError(
                "a blocking client was called in its own event loop, which would wait for itself: "
                "use a handler that is no coroutine function, or wakebell.aio"
            )


_lock = threading.Lock()
_shared: list[_Loop] = []


def _loop() -> _Loop:
    """Return the loop of this process."""
    with _lock:
        if not _shared:
            _shared.append(_Loop())
        return _shared[0]


def _forget() -> None:
    """Forget the loop in a child process: its thread did not survive the fork."""
    global _lock
    _lock = threading.Lock()  # another thread may have held it
    _shared.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class Subscription:
    """A running subscription. It ends with ``stop``, or when the client is closed."""

    def __init__(self, loop: _Loop, inner: aio.Subscription) -> None:
        self._loop, self._inner = loop, inner

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def wait(self) -> None:
        """Wait until the subscription has ended. Raise why, if it was not stopped."""
        self._loop.run(self._inner.wait())

    def stop(self, timeout: float = 10.0) -> None:
        """End the subscription. Running handlers have ``timeout`` seconds to return.

        ``lost`` of those that go on is set then; after another second their leases are left
        to expire, so that no other handler runs beside them.
        """
        self._loop.run(self._inner.stop(timeout))


class Turn:
    """A turn at a gate, with its fencing token. It lasts until ``release``, or until it is lost.

    Use it as a ``with`` block. The block is not interrupted when the turn is lost: call
    ``check`` before each write, and pass ``fence`` to what the turn protects. A block that
    lost its turn ends with TurnLostError.
    """

    def __init__(self, loop: _Loop, inner: aio.Turn) -> None:
        self._loop, self._inner = loop, inner
        self.gate, self.fence, self.waited = inner.gate, inner.fence, inner.waited

    def __repr__(self) -> str:
        return repr(self._inner)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.release()
        except TurnLostError:
            if error is None:
                raise

    @property
    def lost(self) -> TurnLostError | None:
        """Why the turn ended before it was released. None: it did not."""
        return self._inner.lost

    def check(self) -> None:
        """Raise TurnLostError if the turn is lost."""
        self._inner.check()

    def guard(self, resource: str, timeout: float = 10.0) -> None:
        """Raise FenceStaleError if a newer turn has written the resource."""
        self._loop.run(self._inner.guard(resource, timeout))

    def release(self) -> None:
        """Give the turn back. Raise TurnLostError if it was lost before."""
        self._loop.run(self._inner.release())


class Client:
    """A client of a node for blocking code. It may be used by many threads.

    It does what ``wakebell.aio.Client`` does, which has the documentation of the
    arguments and the methods, in a thread of its own. Handlers run in threads; one that
    is a coroutine function runs in the client's thread and must not block.
    """

    def __init__(
        self,
        address: str,
        *,
        token: str | Callable[[], str] = "",
        tls: bool | t.TLS = False,
        insecure: bool = False,
        timeout: float = 10.0,
        dead_link: float = 5.0,
        turn_ttl: float = 10.0,
        max_message: int = MAX_MESSAGE,
        trace: Callable[[], Mapping[str, str]] | None = None,
    ) -> None:
        self._loop = _loop()

        async def make() -> aio.Client:
            return aio.Client(
                address, token=token, tls=tls, insecure=insecure, timeout=timeout, dead_link=dead_link,
                turn_ttl=turn_ttl, max_message=max_message, trace=trace,
            )  # fmt: skip

        self._inner = self._loop.run(make())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self, timeout: float = 10.0) -> None:
        """Stop the subscriptions, release the turns and end the session."""
        self._loop.run(self._inner.close(timeout))

    def schedule(
        self,
        topic: str,
        body: Any = b"",
        *,
        id: str | None = None,
        at: datetime | None = None,
        delay: t.Duration | None = None,
        debounce: t.Debounce | None = None,
        if_exists: t.Policy | None = None,
        once: t.Duration | None = None,
        expire_after: t.Duration | None = None,
        headers: Mapping[str, str] | None = None,
        correlation_id: str = "",
        content_type: str | None = None,
        key: str | bytes = b"",
        after: Sequence[tuple[str, str]] | None = None,
        open: bool = False,
        part_of: Sequence[tuple[str, str]] = (),
        idempotency_key: str = "",
        timeout: float | None = None,
    ) -> t.Scheduled:
        """Schedule a timer."""
        return self._loop.run(self._inner.schedule(
            topic, body, id=id, at=at, delay=delay, debounce=debounce, if_exists=if_exists, once=once, expire_after=expire_after,
            headers=headers, correlation_id=correlation_id, content_type=content_type, key=key, after=after, open=open,
            part_of=part_of, idempotency_key=idempotency_key, timeout=timeout,
        ))  # fmt: skip

    def schedule_batch(
        self, drafts: Iterable[t.Draft], *, idempotency_key: str = "", timeout: float | None = None
    ) -> list[t.Scheduled]:
        """Schedule many timers."""
        return self._loop.run(self._inner.schedule_batch(drafts, idempotency_key=idempotency_key, timeout=timeout))

    def cancel(
        self, topic: str, *ids: str, idempotency_key: str = "", timeout: float | None = None
    ) -> list[t.Presence]:
        """Remove timers, and return the state of each before."""
        return self._loop.run(self._inner.cancel(topic, *ids, idempotency_key=idempotency_key, timeout=timeout))

    def get(self, topic: str, id: str, *, timeout: float | None = None) -> t.Timer:
        """Return a timer with its body."""
        return self._loop.run(self._inner.get(topic, id, timeout=timeout))

    def list_timers(
        self,
        topic: str,
        *,
        due_before: datetime | None = None,
        running: bool = False,
        after: str = "",
        limit: int | None = None,
        timeout: float | None = None,
    ) -> Iterator[t.Timer]:
        """Yield the timers of a topic, sorted by instant, then by id."""
        return self._iterate(self._inner.list_timers(
            topic, due_before=due_before, running=running, after=after, limit=limit, timeout=timeout
        ))  # fmt: skip

    def _iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        async def following() -> tuple[bool, T | None]:
            try:
                return True, await anext(items)
            except StopAsyncIteration:
                return False, None

        while True:
            more, item = self._loop.run(following())
            if not more:
                return
            yield item  # type: ignore[misc]

    def reschedule(
        self,
        topic: str,
        id: str,
        *,
        at: datetime | None = None,
        delay: t.Duration | None = None,
        timeout: float | None = None,
    ) -> t.Scheduled:
        """Give a timer a new instant."""
        return self._loop.run(self._inner.reschedule(topic, id, at=at, delay=delay, timeout=timeout))

    def run_now(self, topic: str, id: str, *, timeout: float | None = None) -> t.Presence:
        """Make a timer due now, and return its state before."""
        return self._loop.run(self._inner.run_now(topic, id, timeout=timeout))

    def stats(self, topic: str, *, timeout: float | None = None) -> t.Stats:
        """Return the statistics of a topic."""
        return self._loop.run(self._inner.stats(topic, timeout=timeout))

    def report(self, topic: str, id: str, *, timeout: float | None = None) -> t.Report:
        """Return what the handler of a timer has reported."""
        return self._loop.run(self._inner.report(topic, id, timeout=timeout))

    def wait(self, topic: str, id: str, *, timeout: float | None = None) -> t.Ending:
        """Wait until a timer has ended, and return how."""
        return self._loop.run(self._inner.wait(topic, id, timeout=timeout))

    def join(self, topic: str, id: str, *, timeout: float | None = None) -> t.Join:
        """Return the state of the join of a timer."""
        return self._loop.run(self._inner.join(topic, id, timeout=timeout))

    def parts(
        self,
        topic: str,
        id: str,
        *,
        running: bool = False,
        after: str = "",
        limit: int | None = None,
        timeout: float | None = None,
    ) -> Iterator[t.PartEnd]:
        """Yield the parts of the join of a timer."""
        return self._iterate(self._inner.parts(topic, id, running=running, after=after, limit=limit, timeout=timeout))

    def parts_of(self, lease: t.Lease, *, timeout: float | None = None) -> Iterator[t.PartEnd]:
        """Yield the parts of the join of the timer that a handler has."""
        return self._iterate(self._inner.parts_of(lease, timeout=timeout))

    def add_parts(self, topic: str, id: str, *parts: tuple[str, str], timeout: float | None = None) -> None:
        """Add timers that exist to an open join."""
        self._loop.run(self._inner.add_parts(topic, id, *parts, timeout=timeout))

    def close_join(self, topic: str, id: str, *, timeout: float | None = None) -> None:
        """Close a join to further parts."""
        self._loop.run(self._inner.close_join(topic, id, timeout=timeout))

    def cancel_join(self, topic: str, id: str, *, timeout: float | None = None) -> int:
        """Cancel the timer of a join and the parts that have not ended, and return how many these are."""
        return self._loop.run(self._inner.cancel_join(topic, id, timeout=timeout))

    def subscribe(
        self, source: str | t.Queue, handler: aio.Handler, *, name: str, credits: int = 5
    ) -> Subscription:
        """Call ``handler`` for each timer of a topic, or message of a ``Queue``, in threads."""
        inner = self._loop.run(self._inner.subscribe(source, handler, name=name, credits=credits))
        return Subscription(self._loop, inner)

    def publish(
        self, queue: str | t.Queue, body: Any, *, key: str = "", timeout: float | None = None
    ) -> t.Published:
        """Publish a message to a queue."""
        return self._loop.run(self._inner.publish(queue, body, key=key, timeout=timeout))

    def publish_batch(
        self, queue: str | t.Queue, messages: Iterable[t.Message], *, timeout: float | None = None
    ) -> list[t.Published]:
        """Publish messages in their order."""
        return self._loop.run(self._inner.publish_batch(queue, messages, timeout=timeout))

    def turn(self, gate: str, *, wait: bool = True, timeout: float | None = None) -> Turn:
        """Wait for a turn at a gate. Release it, or use it as a ``with`` block."""
        return Turn(self._loop, self._loop.run(self._inner.acquire(gate, wait=wait, timeout=timeout)))

    def guard(self, gate: str, resource: str, fence: int, *, timeout: float | None = None) -> None:
        """Raise FenceStaleError if the resource has seen a newer fencing token."""
        self._loop.run(self._inner.guard(gate, resource, fence, timeout=timeout))

    def put_recurring(self, *schedules: r.Recurring, timeout: float | None = None) -> None:
        """Store recurring schedules. Each replaces the one of its name."""
        self._loop.run(self._inner.put_recurring(*schedules, timeout=timeout))

    def delete_recurring(self, name: str, *, timeout: float | None = None) -> None:
        """Delete a recurring schedule."""
        self._loop.run(self._inner.delete_recurring(name, timeout=timeout))

    def enable_recurring(self, name: str, enabled: bool, *, timeout: float | None = None) -> None:
        """Pause or resume a recurring schedule."""
        self._loop.run(self._inner.enable_recurring(name, enabled, timeout=timeout))

    def run_recurring(self, name: str, *, idempotency_key: str = "", timeout: float | None = None) -> r.Run:
        """Fire a recurring schedule now, once."""
        return self._loop.run(self._inner.run_recurring(name, idempotency_key=idempotency_key, timeout=timeout))

    def get_recurring(self, name: str, *, timeout: float | None = None) -> r.RecurringState:
        """Return a recurring schedule."""
        return self._loop.run(self._inner.get_recurring(name, timeout=timeout))

    def list_recurring(
        self, *, after: str = "", limit: int | None = None, timeout: float | None = None
    ) -> Iterator[r.RecurringState]:
        """Yield the recurring schedules, sorted by name."""
        return self._iterate(self._inner.list_recurring(after=after, limit=limit, timeout=timeout))

    def preview_recurring(self, name: str, count: int = 10, *, timeout: float | None = None) -> list[datetime]:
        """Return the next instants of a recurring schedule."""
        return self._loop.run(self._inner.preview_recurring(name, count, timeout=timeout))
