"""Subscriptions: leases, their handlers and their verdicts."""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from . import _outcome, _values, errors
from ._keep import Keeper
from ._link import GRACE, REDIAL_MAX, Link, LinkBroken, log
from ._outcome import Handler
from ._pb import queues_pb2, remote_pb2, wakebell_pb2
from ._requests import chunks
from .types import Lease

_CHECK = 0.1  # how often leases are checked; a lease ends here that much earlier
_CLOCK = 60.0  # how often an idle subscriber sends its clock
_SUBSCRIBE = 10.0  # how long the node has to answer a subscription
_MAX_VERDICTS, _MAX_VERDICT_BYTES = 500, 1 << 20

_LOST: dict[int, type[errors.LeaseLostError]] = {
    1: errors.LeaseCancelledError,
    2: errors.LeaseTooOldError,
    3: errors.LeaseDrainingError,
}
# Errors that end a subscription. A right that it has lost may come back.
_FINAL = (errors.InvalidError, errors.ConflictError, errors.UnauthenticatedError)


@dataclass(slots=True)
class _Running:
    lease: Lease
    delivery: int
    until: float = 0.0  # when it expires, as confirmed by the node
    extend: float = 0.0  # when to request the next extension
    ttl: float = 0.0  # how long the node extends it at most
    task: asyncio.Task[None] | None = None

    def good_until(self, until: float, now: float) -> None:
        self.until, self.extend, self.ttl = until, now + (until - now) / 3, max(self.ttl, until - now)


class Subscription:
    """A running subscription. It ends with ``stop``, or when the client is closed."""

    def __init__(
        self, link: Link, topic: str, queue: queues_pb2.Queue | None, handler: Handler, name: str, credits: int
    ) -> None:
        self._link, self._topic, self._queue, self._name, self._credits = link, topic, queue, name, credits
        self._handler = handler
        self._pool: ThreadPoolExecutor | None = None
        if not _outcome.is_async(handler):
            self._pool = ThreadPoolExecutor(credits, thread_name_prefix=f"wakebell-{topic}")
        self._began = time.monotonic()  # zero of the clock that the node receives
        self._instance = secrets.token_hex(16)  # a later process with the same name has not its leases
        self._running: dict[int, _Running] = {}
        self._lost: dict[int, float] = {}  # deliveries whose handlers may go on, until the node's leases end
        self._verdicts: list[remote_pb2.Verdict] = []
        self._wake = asyncio.Event()
        self._clock_sent = 0.0
        self._draining = False
        self._over = False  # no more leases are handled
        self._stopping: asyncio.Task[None] | None = None
        self._finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._subscribing: asyncio.Task[None] | None = None
        self._writer: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def wait(self) -> None:
        """Wait until the subscription has ended. Raise why, if it was not stopped."""
        await asyncio.shield(self._finished)

    async def stop(self, timeout: float = 10.0) -> None:
        """End the subscription.

        No more leases are accepted. Running handlers have ``timeout`` seconds to return;
        then they are cancelled, and their leases are released. A thread cannot be cancelled:
        it sees ``lost``, and its verdict counts for another second. The lease of a handler
        that goes on is not released but expires, so that no other handler runs beside it.
        """
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(timeout), name="wakebell-stop")
        await asyncio.shield(self._stopping)

    async def start(self) -> None:
        """Subscribe. Raise an error that a retry cannot help."""
        key = (self._topic, self._name)
        if key in self._link.subscribers:
            raise errors.InvalidError(f"name {self._name!r} is already subscribed to {self._topic!r}")
        self._link.start()
        self._link.subscribers[key] = self
        try:
            while not self._over:
                try:
                    self._reconcile(await self._ask_subscription(self._credits))
                    break
                except LinkBroken:
                    continue
                except (errors.OverloadedError, errors.DrainingError):
                    await asyncio.sleep(REDIAL_MAX / 2)
            if self._over:
                raise errors.ClosedError("the client is closed")
        except BaseException:
            self._link.subscribers.pop(key, None)
            if self._pool is not None:
                self._pool.shutdown(wait=False)
            raise
        self._writer = asyncio.create_task(self._write(), name="wakebell-subscriber")

    def opened(self) -> None:
        """Subscribe again over a new link."""
        self._begin_again("")

    def _begin_again(self, lost: str) -> None:
        if self._writer is not None and not self._over:
            if self._subscribing is not None:
                self._subscribing.cancel()
            self._subscribing = asyncio.create_task(self._subscribe_again(lost), name="wakebell-subscribe")

    async def _subscribe_again(self, lost: str = "") -> None:
        """Subscribe again. ``lost`` says why the right was withdrawn, if it was."""
        if lost:
            log.warning("the subscription to %s has lost its right; asking for it again: %s", self._topic, lost)
        while not self._finished.done():
            try:
                credits = max(len(self._running), 1) if self._draining else self._credits
                self._reconcile(await self._ask_subscription(credits))
                if lost:
                    log.info("the subscription to %s has its right again", self._topic)
                return
            except LinkBroken:
                return  # opened is called again
            except errors.ForbiddenError as error:
                if not lost:
                    lost = str(error)
                    log.warning("the subscription to %s has lost its right; asking for it again: %s", self._topic, lost)
            except _FINAL as error:
                self._fail(error)
                return
            except errors.WakebellError as error:
                log.warning("cannot subscribe to %s: %s", self._topic, error)
            await asyncio.sleep(REDIAL_MAX / 2)

    def _subscribe_request(self, credits: int) -> remote_pb2.SubscribeRequest:
        return remote_pb2.SubscribeRequest(
            topic=self._topic,
            subscriber=self._name,
            credits=credits,
            queue=self._queue,
            clock=self._clock(),
            instance=self._instance,
        )

    async def _ask_subscription(self, credits: int) -> remote_pb2.SubscribeResponse:
        deadline = time.monotonic() + _SUBSCRIBE
        answer: remote_pb2.SubscribeResponse
        answer = await self._link.ask("subscribe", self._subscribe_request(credits), deadline)
        return answer

    def _reconcile(self, m: remote_pb2.SubscribeResponse) -> None:
        """Release the leases that the node lists and that this subscriber does not have.

        Those that it has lost while their handlers go on expire.
        """
        pending = set(map(_outcome.of, self._verdicts))
        for held in m.held:
            if held.delivery not in self._running and held.delivery not in self._lost and held.delivery not in pending:
                self._add(held.id, release=wakebell_pb2.Release(delivery=held.delivery))

    def _clock(self) -> Any:
        return _values.duration(time.monotonic() - self._began, "clock")

    def _sent_at(self, m: remote_pb2.Leases | remote_pb2.LeasesExtended, now: float) -> float:
        """Return when the node sent a message, or a little earlier."""
        if not m.HasField("clock"):
            return now
        return min(self._began + _values.to_seconds(m.clock), now)

    def leases(self, m: remote_pb2.Leases) -> None:
        """Start the handlers of leases that arrived."""
        now = time.monotonic()
        sent = self._sent_at(m, now)
        for one in m.leases:
            until = sent + _values.to_seconds(one.ttl)
            if self._stopping is not None and self._stopping.done():
                continue
            if now + _CHECK >= until:
                log.debug("the lease of %s in %s arrived after its end", one.id, self._topic)
                continue  # it is delivered again
            if self._draining:
                self._add(one.id, release=wakebell_pb2.Release(delivery=one.delivery))
                continue
            run = _Running(_values.lease(one), one.delivery)
            run.lease._keeper = Keeper(self._link, self._topic, self._name, one.id, one.delivery, queue=self._queue is not None)
            run.good_until(until, now)
            self._running[one.delivery] = run
            run.task = asyncio.create_task(self._serve(run), name=f"wakebell-handler-{one.id}")
        self._wake.set()

    async def _serve(self, run: _Running) -> None:
        lease, delivery = run.lease, run.delivery
        error = await _outcome.run(self._handler, lease, self._pool)
        if error is not None and _outcome.is_a(error, _outcome.GoesOn):
            return  # the lease expires
        self._lost.pop(delivery, None)
        if not self._over and self._running.pop(delivery, None) is not None:  # else it was lost
            if self._draining:
                # In this order, because the end of the lease would make room for another.
                self._narrow()
            ended = self._draining or lease.lost is not None
            if ended and error is not None and _outcome.is_a(error, asyncio.CancelledError, errors.LeaseLostError):
                self._add(lease.id, release=wakebell_pb2.Release(delivery=delivery))
            else:
                result = lease._keeper.result if lease._keeper else None
                self._add(lease.id, **_outcome.verdict(error, delivery, result, self._link.max_message // 2))
        if error is not None and lease.lost is None:
            self._report(lease, error)

    def _report(self, lease: Lease, error: BaseException) -> None:
        if _outcome.is_a(error, errors.Retry, errors.Reject, asyncio.CancelledError):
            return  # the handler meant it
        try:
            log.warning("the handler of %s failed on %s, attempt %d", self._topic, lease.id, lease.attempt, exc_info=error)
        except BaseException:
            pass  # a filter or a handler of the user's logger raised

    def extended(self, m: remote_pb2.LeasesExtended) -> None:
        """Apply the extensions that the node confirms."""
        now = time.monotonic()
        sent = self._sent_at(m, now)
        for one in m.extended:
            run, until = self._running.get(one.delivery), sent + _values.to_seconds(one.ttl)
            if run is not None and run.lease.id == one.id and until > run.until:
                run.good_until(until, now)

    def ended(self, m: remote_pb2.LeasesEnded) -> None:
        """Cancel the handlers of leases that the node has ended."""
        for one in m.ended:
            kind = _LOST.get(one.reason, errors.LeaseLostError)
            if kind is errors.LeaseDrainingError:
                self._interrupt(one.delivery)
            else:
                self._lose(one.delivery, kind)
        if m.HasField("subscription"):  # it has ended too
            self._begin_again(m.subscription.message or "the subscription has ended")

    def _interrupt(self, delivery: int) -> None:
        """End the handler of a node that stops. Its verdict counts if it comes soon."""
        run = self._running.get(delivery)
        if run is not None and run.task is not None:
            run.lease._lose(errors.LeaseDrainingError(f"{run.lease.id}: {(errors.LeaseDrainingError.__doc__ or '').rstrip('.')}"))
            if self._pool is None:
                run.task.cancel()

    def _lose(self, delivery: int, kind: type[errors.LeaseLostError]) -> None:
        run = self._running.pop(delivery, None)
        if run is not None and run.task is not None:
            self._lost[delivery] = time.monotonic() + run.ttl
            run.lease._lose(kind(f"{run.lease.id}: {(kind.__doc__ or '').rstrip('.')}"))
            run.task.cancel()
            self._wake.set()

    def _add(self, id: str, **kind: Any) -> None:
        self._verdicts.append(remote_pb2.Verdict(id=id, **kind))
        self._wake.set()

    async def _write(self) -> None:
        """Send verdicts, extend leases and end those that expired."""
        while True:
            try:
                async with asyncio.timeout(_CHECK if self._running or self._verdicts else _CLOCK):
                    await self._wake.wait()
                self._wake.clear()
                await asyncio.sleep(0)
            except TimeoutError:
                pass
            now = time.monotonic()
            self._check(now)
            self._flush()
            if now - self._clock_sent >= _CLOCK:
                self._send([])

    def _check(self, now: float) -> None:
        self._lost = {delivery: until for delivery, until in self._lost.items() if now < until}
        for delivery, run in list(self._running.items()):
            if now + _CHECK >= run.until:
                self._lose(delivery, errors.LeaseLostError)
            elif now > run.extend:
                run.extend = now + (run.until - now) / 3
                self._add(run.lease.id, extend=wakebell_pb2.Extend(delivery=delivery))

    def _flush(self) -> None:
        for some in list(chunks(self._verdicts, _MAX_VERDICTS, min(_MAX_VERDICT_BYTES, self._link.max_message // 2))):
            if not self._send(some):
                return
            del self._verdicts[: len(some)]

    def _send(self, verdicts: list[remote_pb2.Verdict]) -> bool:
        message = remote_pb2.Verdicts(topic=self._topic, subscriber=self._name, verdicts=verdicts, clock=self._clock())
        if not self._link.send("verdicts", message):
            return False
        self._clock_sent = time.monotonic()
        return True

    def _narrow(self) -> None:
        """Leave no credits but those of the leases that are held."""
        self._flush()
        if self._running:
            self._link.send("subscribe", self._subscribe_request(len(self._running)))

    async def _stop(self, timeout: float) -> None:
        self._draining = True
        self._narrow()
        tasks = [run.task for run in self._running.values() if run.task is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=timeout)
            if late and self._pool is not None:
                for run in self._running.values():
                    run.lease._lose(errors.LeaseLostError(f"{run.lease.id}: the subscription is stopped"))
                _, late = await asyncio.wait(late, timeout=GRACE)
            for task in late:
                task.cancel()  # this leaves a handler in its thread alone
            if late:
                await asyncio.wait(late, timeout=GRACE)
        self._over = True
        for helper in (self._subscribing, self._writer):
            if helper is not None:
                helper.cancel()
        self._flush()
        request = remote_pb2.UnsubscribeRequest(topic=self._topic, subscriber=self._name, running=[*self._running, *self._lost])
        try:
            if self._link.up:
                await self._link.ask("unsubscribe", request, time.monotonic() + GRACE)
        except (LinkBroken, errors.WakebellError):
            pass  # the leases expire
        self._end(None)

    def _fail(self, error: errors.WakebellError) -> None:
        log.error("the subscription to %s ended: %s", self._topic, error)
        for delivery in list(self._running):
            self._lose(delivery, errors.LeaseLostError)
        if self._writer is not None:
            self._writer.cancel()
        self._end(error)

    def _end(self, error: errors.WakebellError | None) -> None:
        self._link.subscribers.pop((self._topic, self._name), None)
        if self._pool is not None:
            self._pool.shutdown(wait=False)
        if not self._finished.done():
            if error is None:
                self._finished.set_result(None)
            else:
                self._finished.set_exception(error)
                self._finished.exception()  # it was logged


def check_credits(credits: int) -> int:
    if not 1 <= credits <= 10_000 or math.trunc(credits) != credits:
        raise errors.InvalidError(f"credits {credits}, want 1 to 10,000")
    return credits
