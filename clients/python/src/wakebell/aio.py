"""The client for asyncio. ``wakebell.Client`` is the same for blocking code."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self


from . import _endings as endings
from . import _values as values
from . import recurring as r
from . import types as t
from ._connect import channel, is_loopback
from ._link import Link
from ._outcome import Handler
from ._pb import gateway_pb2 as pb
from ._pb import endings_pb2, queues_pb2, recurring_pb2
from ._requests import MAX_MESSAGE, check_limit, check_max_message, chunks, set_key
from ._subscriber import Subscription, check_credits
from ._turn import Turn, TurnContext
from ._turn import acquire as acquire_turn
from ._turn import guard as guard_turn
from .errors import ClosedError, InvalidError, NotFoundError, QueueFullError

__all__ = ["Client", "Handler", "Subscription", "Turn"]

_MAX_BATCH, _MAX_BATCH_BYTES = 1000, 4 << 20
_MAX_PUBLISH, _MAX_PUBLISH_BYTES = 500, 1 << 20
_MAX_PAGE = 1000
_MAX_ADDED = 5000


class Client:
    """A client of a node. All its methods belong to one event loop.

    It connects when it is first used, and again whenever the link breaks. Requests are
    sent again then, until their timeout: methods for which this matters say so. Use it as
    an ``async with`` block, or call ``close``.

    Args:
        address: ``host:port`` of the node.
        token: The token, or a function that returns the present one.
        tls: True or a ``TLS`` for a node with TLS. A token is sent without TLS only to
            this host, unless ``insecure`` is set.
        timeout: Seconds for a request, unless the method has another timeout.
        dead_link: Seconds for which the link may be down before requests fail with
            UnavailableError.
        turn_ttl: Seconds for which a turn stays valid without contact to the node, 1 to
            86,400.
        max_message: The largest request in bytes, 64 KiB to 1 GiB: the ``MaxMessage`` of the
            node.
        trace: Returns the current span as headers such as traceparent, for timers and
            messages: the carrier of OpenTelemetry's ``inject``.
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
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise InvalidError(f"address {address!r}, want host:port")
        if not 1 <= turn_ttl <= 86400:
            raise InvalidError(f"turn_ttl {turn_ttl}, want 1 to 86,400 seconds")
        if token and not tls and not insecure and not is_loopback(host):
            raise InvalidError(f"address {address!r} needs tls, because the network could read the token")
        self._timeout, self._turn_ttl, self._trace = timeout, turn_ttl, trace
        self._closing = False
        self._subscriptions: set[Subscription] = set()
        settings = t.TLS() if tls is True else tls or None
        get = (lambda: token) if isinstance(token, str) else token
        self._link = Link(lambda: channel(address, settings), address, get, dead_link, check_max_message(max_message))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self, timeout: float = 10.0) -> None:
        """Stop the subscriptions, release the turns and end the session.

        Running handlers have ``timeout`` seconds to return.
        """
        if self._closing:
            return
        self._closing = True
        await asyncio.gather(*(s.stop(timeout) for s in self._subscriptions))
        await self._link.close()

    async def _call(self, kind: str, request: Any, timeout: float | None) -> Any:
        if self._trace is not None and "trace" in request.DESCRIPTOR.fields_by_name:
            try:
                request.trace.update(self._trace())
            except BaseException as error:  # of the user's function; even SystemExit must not end the loop
                raise InvalidError(f"trace raised {type(error).__name__}, want a mapping of headers") from error
        return await self._link.call(kind, request, self._timeout if timeout is None else timeout)

    def _bytes(self, most: int) -> int:
        """Return how many bytes of a list fit into one request."""
        return min(most, self._link.max_message // 2)

    # Timers

    async def schedule(
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
        """Schedule a timer. The arguments are those of ``Draft``.

        A request that is sent again replaces its own timer; a timer that was due at once
        may be delivered twice. With ``idempotency_key``, up to 256 bytes, a repeated
        request within 24 hours does nothing and returns the first answer; the same
        idempotency key with another request is a ConflictError. ``key`` is the timer's.
        """
        request = values.schedule_request(t.Draft(
            topic=topic, body=body, id=id, at=at, delay=delay, debounce=debounce, if_exists=if_exists, once=once,
            expire_after=expire_after, headers=headers or {}, correlation_id=correlation_id, content_type=content_type, key=key,
            after=after, open=open, part_of=part_of,
        ))  # fmt: skip
        set_key(request, id, idempotency_key)
        return values.scheduled(await self._call("schedule", request, timeout))

    async def schedule_batch(
        self, drafts: Iterable[t.Draft], *, idempotency_key: str = "", timeout: float | None = None
    ) -> list[t.Scheduled]:
        """Schedule many timers, in requests of up to 1,000.

        After an error some of them may be scheduled. Repeating the call is safe. Drafts with
        ``after`` must fit into one request with their parts; larger joins use ``open``,
        ``part_of`` and ``close_join``.
        """
        requests = []
        for d in drafts:
            requests.append(values.schedule_request(d))
            set_key(requests[-1], d.id, idempotency_key)
        done: list[t.Scheduled] = []
        split = list(chunks(requests, _MAX_BATCH, self._bytes(_MAX_BATCH_BYTES)))
        if len(split) > 1 and any(m.after for m in requests):
            raise InvalidError("drafts with after in a batch of more than one request: use open, part_of and close_join")
        for chunk in split:
            part = f"{idempotency_key}#{len(done)}" if idempotency_key else ""
            batch = pb.ScheduleBatchRequest(timers=chunk, key=part)
            answer = await self._call("schedule_batch", batch, timeout)
            done.extend(map(values.scheduled, answer.timers))
        return done

    async def cancel(
        self, topic: str, *ids: str, idempotency_key: str = "", timeout: float | None = None
    ) -> list[t.Presence]:
        """Remove up to 1,000 timers, and return the state of each before.

        Running handlers are cancelled. ``idempotency_key`` is as in ``schedule``.
        """
        answer = await self._call("cancel", pb.CancelRequest(topic=topic, ids=ids, key=idempotency_key), timeout)
        return [t.Presence(p) for p in answer.found]

    async def get(self, topic: str, id: str, *, timeout: float | None = None) -> t.Timer:
        """Return a timer with its body. Errors: NotFoundError."""
        answer = await self._call("get_timer", pb.GetTimerRequest(topic=topic, id=id), timeout)
        return values.timer(topic, answer.timer)

    async def list_timers(
        self,
        topic: str,
        *,
        due_before: datetime | None = None,
        running: bool = False,
        after: str = "",
        limit: int | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[t.Timer]:
        """Yield the timers of a topic, sorted by instant, then by id; at most ``limit``.

        To continue a listing, pass the ``cursor`` of a timer as ``after``. With
        ``running``, only timers with a running handler are listed. ``timeout`` is for
        each page.
        """
        left = check_limit(limit)
        while left != 0:
            request = pb.ListTimersRequest(
                topic=topic, running=running, after=after, due_before=values.instant(due_before, "due_before"),
                limit=min(left or 0, _MAX_PAGE),
            )  # fmt: skip
            answer = await self._call("list_timers", request, timeout)
            for m in answer.timers:
                yield values.timer(topic, m)
            after = answer.next
            if not after:
                return
            left = None if left is None else left - len(answer.timers)

    async def reschedule(
        self,
        topic: str,
        id: str,
        *,
        at: datetime | None = None,
        delay: t.Duration | None = None,
        timeout: float | None = None,
    ) -> t.Scheduled:
        """Give a timer a new instant. Its attempts start again from 0. Errors: NotFoundError."""
        if (at is None) == (delay is None):
            raise InvalidError("reschedule wants one of at and delay")
        request = pb.RescheduleRequest(topic=topic, id=id)
        values.plan(request, at, delay)
        return values.scheduled(await self._call("reschedule", request, timeout))

    async def run_now(self, topic: str, id: str, *, timeout: float | None = None) -> t.Presence:
        """Make a timer due now, and return its state before."""
        answer = await self._call("run_now", pb.RunNowRequest(topic=topic, id=id), timeout)
        return t.Presence(answer.found)

    async def stats(self, topic: str, *, timeout: float | None = None) -> t.Stats:
        """Return the statistics of a topic."""
        answer = await self._call("get_topic_stats", pb.GetTopicStatsRequest(topic=topic), timeout)
        return values.stats(answer.stats)

    async def report(self, topic: str, id: str, *, timeout: float | None = None) -> t.Report:
        """Return what the handler of a timer has reported. The node keeps it for an hour by default."""
        request = endings_pb2.WaitTimerRequest(topic=topic, id=id, report=True)
        return endings.report(await self._link.wait_timer(request, self._timeout if timeout is None else timeout))

    async def wait(self, topic: str, id: str, *, timeout: float | None = None) -> t.Ending:
        """Wait until a timer has ended, and return how; without ``timeout`` for as long as it takes.

        Errors: DeadlineError if it has not ended within ``timeout`` seconds.
        """
        request = endings_pb2.WaitTimerRequest(topic=topic, id=id)
        return endings.ending(await self._link.wait_timer(request, timeout))

    # Joins

    async def join(self, topic: str, id: str, *, timeout: float | None = None) -> t.Join:
        """Return the state of the join of a timer. Errors: NotFoundError."""
        answer = await self._call("get_join", endings_pb2.GetJoinRequest(topic=topic, id=id), timeout)
        return endings.join(answer.join)

    async def parts(
        self,
        topic: str,
        id: str,
        *,
        running: bool = False,
        after: str = "",
        limit: int | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[t.PartEnd]:
        """Yield the parts of the join of a timer, in the order in which they were added.

        With ``running``, only parts that have not ended are listed. To continue a listing,
        pass the ``cursor`` of a part as ``after``. Errors: NotFoundError; ForbiddenError
        without the right to read the topics of all parts.
        """
        request = endings_pb2.ListPartsRequest(topic=topic, id=id, running=running, after=after)
        async for part in self._parts(request, limit, timeout):
            yield part

    async def parts_of(self, lease: t.Lease, *, timeout: float | None = None) -> AsyncIterator[t.PartEnd]:
        """Yield the parts of the join of the timer that a handler has, as ``parts`` does."""
        name = lease.headers.get("wakebell-join")
        if name is None:
            raise NotFoundError(f"timer {lease.id!r} on {lease.topic!r} has no join")
        request = endings_pb2.ListPartsRequest(topic=lease.topic, id=lease.id, join_name=name)
        async for part in self._parts(request, None, timeout):
            yield part

    async def _parts(
        self, request: endings_pb2.ListPartsRequest, limit: int | None, timeout: float | None
    ) -> AsyncIterator[t.PartEnd]:
        left = check_limit(limit)
        while left != 0:
            request.limit = min(left or 0, _MAX_PAGE)
            answer = await self._call("list_parts", request, timeout)
            for m in answer.parts:
                yield endings.part_end(m)
            request.after = answer.next
            if not answer.next:
                return
            left = None if left is None else left - len(answer.parts)

    async def add_parts(self, topic: str, id: str, *parts: tuple[str, str], timeout: float | None = None) -> None:
        """Add timers that exist to an open join, in requests of up to 5,000.

        Those that do not exist any more count as ended. Errors: NotFoundError; InvalidError if
        the join is closed.
        """
        for some in chunks(endings.parts(parts), _MAX_ADDED, self._bytes(_MAX_BATCH_BYTES)):
            await self._call("add_parts", endings_pb2.AddPartsRequest(topic=topic, id=id, parts=some), timeout)

    async def close_join(self, topic: str, id: str, *, timeout: float | None = None) -> None:
        """Close a join to further parts. Errors: NotFoundError."""
        await self._call("close_join", endings_pb2.CloseJoinRequest(topic=topic, id=id), timeout)

    async def cancel_join(self, topic: str, id: str, *, timeout: float | None = None) -> int:
        """Cancel the timer of a join and the parts that have not ended, and return how many these are.

        Errors: NotFoundError; ForbiddenError, and nothing is cancelled, without the right to
        read or to schedule on the topic of one of them.
        """
        topics = {part.topic async for part in self.parts(topic, id, running=True, timeout=timeout)}
        request = endings_pb2.CancelJoinRequest(topic=topic, id=id, topics=sorted(topics - {topic}))
        parts: int = (await self._call("cancel_join", request, timeout)).parts
        return parts

    # Subscriptions

    async def subscribe(
        self, source: str | t.Queue, handler: Handler, *, name: str, credits: int = 5
    ) -> Subscription:
        """Call ``handler`` for each timer of a topic, or message of a ``Queue``.

        Up to ``credits`` calls (1 to 10,000) run at a time. When a call returns, the timer
        is done. When it raises Retry, the timer is delivered again after its delay; with
        Reject it is dead-lettered; with any other exception it is delivered again after
        the backoff of the node. That holds for SystemExit and KeyboardInterrupt too: a
        handler ends neither the client nor the program.

        A handler that is a coroutine function is cancelled when its lease is lost, for
        example because the timer was cancelled; ``lease.lost`` has the reason. Another
        function runs in a thread of its own and can look at ``lease.lost``.

        ``name`` identifies the subscriber among those with the same token, 1 to 256 bytes.
        Use the same name after a restart. A later subscription of the same name replaces
        this one.

        When the link breaks, the subscription continues over a new one. Timers whose
        leases have expired meanwhile are delivered again. The subscription ends with its
        ``stop`` or the client's ``close``.

        Errors: InvalidError; ConflictError if the node handles the topic itself;
        ForbiddenError; UnauthenticatedError; UnavailableError; ClosedError if the client
        is closed meanwhile.
        """
        if self._closing:
            raise ClosedError("the client is closed")
        subscription = Subscription(
            self._link, source.name if isinstance(source, t.Queue) else source,
            values.queue_of(source) if isinstance(source, t.Queue) else None, handler, name, check_credits(credits),
        )  # fmt: skip
        self._subscriptions.add(subscription)  # before it starts, so that close stops it also then
        subscription._finished.add_done_callback(lambda _: self._subscriptions.discard(subscription))
        try:
            await subscription.start()
        except BaseException:
            self._subscriptions.discard(subscription)
            raise
        return subscription

    # Queues

    async def publish(
        self, queue: str | t.Queue, body: Any, *, key: str = "", timeout: float | None = None
    ) -> t.Published:
        """Publish a message to a queue. ``key`` is its deduplication key.

        Errors: QueueFullError.
        """
        return (await self.publish_batch(queue, [t.Message(body, key)], timeout=timeout))[0]

    async def publish_batch(
        self, queue: str | t.Queue, messages: Iterable[t.Message], *, timeout: float | None = None
    ) -> list[t.Published]:
        """Publish messages in their order. Each is published once, however often it is sent:
        a request is sent again for at most 45 seconds.

        Errors: QueueFullError, with the results of the messages that were published.
        """
        q = t.Queue(queue) if isinstance(queue, str) else queue
        done: list[t.Published] = []
        for chunk in chunks(values.messages_of(messages), _MAX_PUBLISH, self._bytes(_MAX_PUBLISH_BYTES)):
            request = queues_pb2.PublishRequest(
                name=q.name, queue=values.queue_of(q), messages=chunk, window=values.duration(q.window, "window"),
                cap=q.cap, drop_oldest=q.drop_oldest, frees_keys=q.frees_keys,
            )  # fmt: skip
            answer = await self._call("publish", request, timeout)
            done.extend(t.Published(m.id, m.fresh) for m in answer.messages)
            if len(answer.messages) < len(chunk):
                raise QueueFullError(f"queue {q.name!r} is full", done)
        return done

    # Gates

    def turn(self, gate: str, *, wait: bool = True, timeout: float | None = None) -> TurnContext:
        """Hold a turn at a gate during an ``async with`` block.

        The block is cancelled when the turn is lost, and ends with TurnLostError. Other
        arguments and errors are those of ``acquire``.
        """
        return TurnContext(lambda: self.acquire(gate, wait=wait, timeout=timeout))

    async def acquire(self, gate: str, *, wait: bool = True, timeout: float | None = None) -> Turn:
        """Wait for a turn at a gate, in the order of the requests, and return it.

        Errors: DeadlineError after ``timeout`` seconds (None: no limit); GateHeldError
        at once, if ``wait`` is False and the gate is held or has waiters.
        """
        if self._closing:
            raise ClosedError("the client is closed")
        return await acquire_turn(self._link, gate, wait=wait, timeout=timeout, ttl=self._turn_ttl)

    async def guard(self, gate: str, resource: str, fence: int, *, timeout: float | None = None) -> None:
        """Raise FenceStaleError if the resource has seen a newer fencing token."""
        await guard_turn(self._link, gate, resource, fence, self._timeout if timeout is None else timeout)

    # Recurring schedules

    async def put_recurring(self, *schedules: r.Recurring, timeout: float | None = None) -> None:
        """Store up to 1,000 recurring schedules. Each replaces the one of its name."""
        request = recurring_pb2.PutRecurringRequest(schedules=[values.recurring(s) for s in schedules])
        await self._call("put_recurring", request, timeout)

    async def delete_recurring(self, name: str, *, timeout: float | None = None) -> None:
        """Delete a recurring schedule. Timers that it has scheduled stay. Errors: NoScheduleError."""
        await self._call("delete_recurring", recurring_pb2.DeleteRecurringRequest(name=name), timeout)

    async def enable_recurring(self, name: str, enabled: bool, *, timeout: float | None = None) -> None:
        """Pause or resume a recurring schedule. Errors: NoScheduleError."""
        request = recurring_pb2.EnableRecurringRequest(name=name, enabled=enabled)
        await self._call("enable_recurring", request, timeout)

    async def run_recurring(self, name: str, *, idempotency_key: str = "", timeout: float | None = None) -> r.Run:
        """Fire a recurring schedule now, once, even if it is paused.

        By default each call has an ``idempotency_key`` of its own.
        """
        request = recurring_pb2.RunRecurringRequest(name=name, key=idempotency_key or secrets.token_hex(16))
        return values.run(await self._call("run_recurring", request, timeout))

    async def get_recurring(self, name: str, *, timeout: float | None = None) -> r.RecurringState:
        """Return a recurring schedule. Errors: NoScheduleError."""
        answer = await self._call("get_recurring", recurring_pb2.GetRecurringRequest(name=name), timeout)
        return values.recurring_state(answer.schedule)

    async def list_recurring(
        self, *, after: str = "", limit: int | None = None, timeout: float | None = None
    ) -> AsyncIterator[r.RecurringState]:
        """Yield the recurring schedules, sorted by name, those after the name ``after``."""
        left = check_limit(limit)
        while left != 0:
            request = recurring_pb2.ListRecurringRequest(after=after, limit=min(left or 0, _MAX_PAGE))
            answer = await self._call("list_recurring", request, timeout)
            for m in answer.schedules:
                yield values.recurring_state(m)
            after = answer.next
            if not after:
                return
            left = None if left is None else left - len(answer.schedules)

    async def preview_recurring(self, name: str, count: int = 10, *, timeout: float | None = None) -> list[datetime]:
        """Return the next instants of a recurring schedule, up to 10,000."""
        request = recurring_pb2.PreviewRecurringRequest(name=name, count=count)
        answer = await self._call("preview_recurring", request, timeout)
        return [values.to_datetime(m) for m in answer.instants]
