"""The session with a node: requests and their replies, and reconnecting."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections.abc import Callable
from typing import Any, Protocol

import grpc

from . import _fork, errors
from ._endings import wait_timer
from ._pb import endings_pb2, gateway_pb2, remote_pb2
from ._requests import MAX_FRAME_BYTES, OVERHEAD, check_size
from ._session import Session
from ._values import error_of

log = logging.getLogger("wakebell")

REDIAL_FIRST, REDIAL_MAX = 0.05, 2.0
CONNECT_TIMEOUT = 5.0
GRACE = 1.0  # how long the node accepts the verdicts of a subscriber that has left
PUBLISH_AGAIN = 45.0  # how long after it was sent a publication may be stored again: the node remembers it for 60 s
UNANSWERED = 15.0  # after which a request without a deadline is repeated
WAIT_AGAIN = 1.0  # after which a wait for a timer that failed is repeated
MAX_FLIGHT = 512
MAX_FRAME = 500


class LinkBroken(Exception):
    """The link broke while a request waited for its answer."""

    def __init__(self, sent: float | None = None) -> None:
        self.sent = sent
        """When the request was sent. None: it was not."""


class Listener(Protocol):
    """A subscriber. It receives the replies that are no answers."""

    def opened(self) -> None:
        """The link is up again."""

    def leases(self, m: remote_pb2.Leases) -> None: ...

    def extended(self, m: remote_pb2.LeasesExtended) -> None: ...

    def ended(self, m: remote_pb2.LeasesEnded) -> None: ...


class Link:
    """Keeps a session with the node open. All methods run in one event loop."""

    def __init__(
        self, channel: Callable[[], grpc.Channel], address: str, token: Callable[[], str], dead_link: float, max_message: int
    ) -> None:
        self._new_channel, self._address, self._token, self._dead_link = channel, address, token, dead_link
        self.max_message = max_message
        self._up = False
        self._changed = asyncio.Event()
        self._down_since = 0.0
        self._last_error: errors.WakebellError | None = None
        self._next = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._waits: set[asyncio.Future[Any]] = set()
        self._room = asyncio.Semaphore(MAX_FLIGHT)
        self._out: list[remote_pb2.Command] = []
        self._wake = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self.closed = False
        self.subscribers: dict[tuple[str, str], Listener] = {}
        self.turns: dict[int, Callable[[], None]] = {}
        """What to call when the turn of a place is lost."""

    @property
    def up(self) -> bool:
        return self._up

    def start(self) -> None:
        """Connect, unless that was done before."""
        if self.closed:
            raise errors.ClosedError("the client is closed")
        _fork.use()
        if self._running is None:
            self._down_since = time.monotonic()
            self._running = asyncio.create_task(self._run(), name="wakebell-link")

    async def close(self) -> None:
        """End the session. What was sent before is still delivered."""
        self.closed = True
        for lost in list(self.turns.values()):
            lost()  # the end of the session releases them
        for wait in self._waits:
            wait.cancel()
        self._wake.set()
        if self._running is not None:
            if not self._up:
                self._running.cancel()
            await asyncio.wait([self._running], timeout=GRACE)
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        self._broke(errors.ClosedError("the client is closed"))

    def next(self) -> int:
        """Return a new number of a request or a place."""
        self._next += 1
        return self._next

    async def call(self, kind: str, request: Any, timeout: float) -> Any:
        """Send a request until it has a final answer or the timeout passes."""
        deadline = time.monotonic() + timeout
        pause = 0.02
        while True:
            try:
                return await self.ask(kind, request, deadline)
            except LinkBroken as broken:
                if kind == "publish" and broken.sent is not None:
                    deadline = min(deadline, broken.sent + PUBLISH_AGAIN)
            except (errors.OverloadedError, errors.DrainingError):
                if time.monotonic() + pause >= deadline:
                    raise
                await asyncio.sleep(pause)
                pause = min(2 * pause, 1.0)

    async def ask(self, kind: str, request: Any, deadline: float | None) -> Any:
        """Send a request once and wait for its answer. Raise LinkBroken if the link breaks."""
        check_size(request, self.max_message)
        self.start()
        await self._wait_up(deadline)
        if kind == "acquire_turn":  # it may wait for long, and has a timeout of another meaning
            return await self._ask(kind, request, deadline)
        await self._enter(deadline)
        try:
            if deadline is not None and "timeout" in request.DESCRIPTOR.fields_by_name:
                micros = round(min(max(deadline - time.monotonic(), 0.001), 600.0) * 1e6)
                request.timeout.FromMicroseconds(micros)
            return await self._ask(kind, request, deadline)
        finally:
            self._room.release()

    async def _enter(self, deadline: float | None) -> None:
        """Wait for a place among the requests in flight."""
        try:
            async with asyncio.timeout(None if deadline is None else max(deadline - time.monotonic(), 0.0)):
                await self._room.acquire()
        except TimeoutError:
            raise errors.DeadlineError(f"node {self._address}: {MAX_FLIGHT} requests wait for their answers") from None

    async def _ask(self, kind: str, request: Any, deadline: float | None) -> Any:
        if not self._up:
            raise LinkBroken
        number = request.request = self.next()
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._put(kind, request)
        sent = time.monotonic()
        wait = math.inf if deadline is None else max(deadline - time.monotonic(), 0.0)
        if kind == "acquire_turn" or deadline is None:
            wait = min(wait, UNANSWERED)
        try:
            async with asyncio.timeout(wait):
                reply = await answer
        except TimeoutError:
            raise errors.DeadlineError(f"node {self._address}: no answer within the timeout") from None
        except LinkBroken:
            raise LinkBroken(sent) from None
        finally:
            self._waiting.pop(number, None)
        if isinstance(reply, gateway_pb2.Error):
            raise error_of(reply.code, reply.message)
        return reply

    async def wait_timer(self, request: endings_pb2.WaitTimerRequest, timeout: float | None) -> Any:
        """Ask for the end of a timer until the node answers or the timeout passes."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            self.start()
            await self._wait_up(deadline)
            left = None if deadline is None else max(deadline - time.monotonic(), 0.001)
            wait = asyncio.ensure_future(wait_timer(self._new_channel(), self._token(), request, left))
            self._waits.add(wait)
            wait.add_done_callback(self._waits.discard)
            try:
                return await wait
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if not self.closed or task is not None and task.cancelling():
                    raise
                raise errors.ClosedError("the client is closed") from None
            except (errors.UnavailableError, errors.OverloadedError, errors.DrainingError):
                if deadline is not None and time.monotonic() + WAIT_AGAIN >= deadline:
                    raise
            await asyncio.sleep(WAIT_AGAIN)

    def send(self, kind: str, message: Any) -> bool:
        """Add a message to the next frame. Return False if the link is down."""
        if self._up:
            self._put(kind, message)
        return self._up

    def _put(self, kind: str, message: Any) -> None:
        self._out.append(remote_pb2.Command(**{kind: message}))
        self._wake.set()

    async def _wait_up(self, deadline: float | None) -> None:
        while not self._up:
            if self.closed:
                raise errors.ClosedError("the client is closed")
            if isinstance(self._last_error, errors.UnauthenticatedError):
                raise self._last_error
            now = time.monotonic()
            left = self._down_since + self._dead_link - now
            if left <= 0:
                raise self._last_error or errors.UnavailableError(f"node {self._address}: no connection")
            if deadline is not None and deadline <= now:
                raise errors.DeadlineError(f"node {self._address}: {self._last_error or 'no connection'}")
            changed = self._changed
            try:
                async with asyncio.timeout(left if deadline is None else min(left, deadline - now)):
                    await changed.wait()
            except TimeoutError:
                pass

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _run(self) -> None:
        pause = REDIAL_FIRST
        while not self.closed:
            began = time.monotonic()
            self._broke(await self._stream())
            if time.monotonic() - began > REDIAL_MAX:
                pause = REDIAL_FIRST
            if not self.closed:
                await asyncio.sleep(pause * random.uniform(0.8, 1.2))
            pause = min(2 * pause, REDIAL_MAX)

    async def _stream(self) -> errors.WakebellError:
        """Open a session and read it to its end. Return why it ended."""
        try:
            session = Session(self._new_channel(), self._token())
        except BaseException as error:  # of the user's function; even SystemExit must not end the loop
            log.exception("no token")
            return errors.UnavailableError(f"node {self._address}: no token: {error!r}")
        writer: asyncio.Task[None] | None = None
        try:
            session.write(remote_pb2.Commands(commands=[hello()]))
            async with asyncio.timeout(CONNECT_TIMEOUT):
                frame = await session.read()  # it shows whether the node accepts the credentials
            if frame is not None:
                self._opened()
                writer = asyncio.create_task(self._write(session), name="wakebell-writer")
                while (frame := await session.read()) is not None:
                    self._replies(frame)
            status, text = session.status()
        except TimeoutError:
            status, text = grpc.StatusCode.UNAVAILABLE, f"no answer within {CONNECT_TIMEOUT:g} s"
        finally:
            session.end()
            if writer is not None:
                writer.cancel()
        if status in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED):
            return errors.UnauthenticatedError(f"node {self._address}: {text}")
        return errors.UnavailableError(f"node {self._address}: {text or 'the link broke'}")

    def _opened(self) -> None:
        if self._last_error is None:
            log.debug("connected to %s", self._address)
        else:  # whoever was told of the break wants to know of its end
            log.warning("the link to %s is up again", self._address)
        self._up, self._last_error, self._out = True, None, []
        self._notify()
        for subscriber in list(self.subscribers.values()):
            subscriber.opened()

    def _broke(self, error: errors.WakebellError) -> None:
        if self._up:
            self._down_since = time.monotonic()
        if not self.closed and (self._up or str(error) != str(self._last_error)):
            log.warning("no link: %s", error)
        self._up, self._last_error, self._out = False, error, []
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(LinkBroken())
        self._waiting.clear()
        self._notify()

    async def _write(self, session: Session) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            await asyncio.sleep(0)  # others add to the frame
            while frame := self._take():
                session.write(frame)
            if self.closed:
                session.close()

    def _take(self) -> remote_pb2.Commands | None:
        """Return the next frame. One that the node refuses would end the link, again and again."""
        count = size = 0
        while count < len(self._out) and count < MAX_FRAME:
            size += self._out[count].ByteSize() + OVERHEAD
            if count > 0 and size > min(MAX_FRAME_BYTES, self.max_message):
                break
            count += 1
        if count == 0:
            return None
        frame = remote_pb2.Commands(commands=self._out[:count])
        del self._out[:count]
        return frame

    def _replies(self, frame: remote_pb2.Replies) -> None:
        for reply in frame.replies:
            kind = reply.WhichOneof("kind")
            if kind is None:
                continue  # a newer one
            m = getattr(reply, kind)
            match kind:
                case "leases" | "leases_extended" | "leases_ended":
                    subscriber = self.subscribers.get((m.topic, m.subscriber))
                    if subscriber is None:
                        continue
                    if kind == "leases":
                        subscriber.leases(m)
                    elif kind == "leases_extended":
                        subscriber.extended(m)
                    else:
                        subscriber.ended(m)
                case "turn_lost":
                    if lost := self.turns.get(m.place):
                        lost()
                case _:
                    answer = self._waiting.get(m.request)
                    if answer is not None and not answer.done():
                        answer.set_result(m)


def hello() -> remote_pb2.Command:
    """Return a command without effect, whose answer shows that the link is up."""
    return remote_pb2.Command(unsubscribe=remote_pb2.UnsubscribeRequest(topic="hello", subscriber="hello"))
