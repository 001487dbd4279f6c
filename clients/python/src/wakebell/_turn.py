"""Turns at gates."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from . import _values, errors
from ._link import Link, LinkBroken, log
from ._pb import gates_pb2

_MIN_EXTEND = 0.02  # the shortest pause between two extensions
_REQUEST = 10.0


class _Again(Exception):
    """The place or the turn was lost because the link broke."""


class Turn:
    """A turn at a gate, with its fencing token.

    It lasts until ``release``, or until it is lost: then ``lost`` is set. Pass ``fence``
    to what the turn protects, so that it can refuse writes of an earlier turn.
    """

    def __init__(self, link: Link, gate: str, ttl: float) -> None:
        self.gate = gate
        self.fence = 0
        """The fencing token. It is greater than those of all earlier turns."""
        self.waited = 0.0
        """How long the turn was waited for, in seconds."""
        self._link, self._ttl, self._place = link, ttl, link.next()
        self._until = 0.0
        self._over = False
        self._lost: errors.TurnLostError | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._on_lost: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"Turn(gate={self.gate!r}, fence={self.fence})"

    @property
    def lost(self) -> errors.TurnLostError | None:
        """Why the turn ended before it was released. None: it did not."""
        return self._lost

    def check(self) -> None:
        """Raise TurnLostError if the turn is lost."""
        if self._lost is not None:
            raise self._lost

    async def guard(self, resource: str, timeout: float = _REQUEST) -> None:
        """Raise FenceStaleError if a newer turn has written the resource."""
        await guard(self._link, self.gate, resource, self.fence, timeout)

    async def release(self) -> None:
        """Give the turn back. Raise TurnLostError if it was lost before."""
        self.check()
        if self._over:
            return
        self._end()
        try:
            again = False
            while True:
                request = gates_pb2.ReleaseTurnRequest(gate=self.gate, place=self._place, fence=self.fence)
                try:
                    answer = await self._link.ask("release_turn", request, self._until)
                    break
                except LinkBroken:
                    again = True
            if answer.reason and not again:  # a refused repetition: the first request worked
                self._lost = errors.TurnLostError(f"release {self.gate!r} (fence {self.fence}): {answer.reason}")
                raise self._lost
        except (errors.UnavailableError, errors.DeadlineError, errors.ClosedError) as error:
            log.warning("the node takes turn %d at %s back when its lease expires: %s", self.fence, self.gate, error)

    def on_lost(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` when the turn is lost; at once, if it is."""
        if self._lost is not None:
            callback()
        else:
            self._on_lost.append(callback)

    async def take(self, wait: bool, deadline: float | None) -> None:
        """Wait for the turn. Raise _Again if the place was lost."""
        began = time.monotonic()
        try:
            answer = await self._request(wait, deadline)
            if isinstance(answer, gates_pb2.TurnRefused):
                raise _values.error_of(answer.code, answer.reason)
            self.fence = answer.fence
            self._link.turns[self._place] = self._lose
            while True:
                try:
                    await self._extend(began=time.monotonic(), limit=_REQUEST)
                    break
                except LinkBroken:
                    continue
        except LinkBroken:
            raise _Again from None
        except errors.TurnLostError:
            self._give_up()
            raise _Again from None
        except BaseException:
            self._give_up()
            raise
        self.waited = time.monotonic() - began
        self._keeper = asyncio.create_task(self._keep(), name=f"wakebell-turn-{self.gate}")

    async def _request(self, wait: bool, deadline: float | None) -> Any:
        pause = 0.02
        while True:
            request = gates_pb2.AcquireTurnRequest(
                gate=self.gate, place=self._place, ttl=_values.duration(self._ttl, "turn_ttl"), **{"try": not wait}
            )
            try:
                return await self._link.ask("acquire_turn", request, deadline)
            except errors.DeadlineError:  # the answer may be lost: ask again for the same place
                if deadline is not None and time.monotonic() >= deadline:
                    raise errors.DeadlineError(f"acquire {self.gate!r}: timed out waiting for the turn") from None
            except (errors.OverloadedError, errors.DrainingError) as error:  # such as a node that starts
                if deadline is None:
                    late = isinstance(error, errors.OverloadedError)  # by turns that this process may have
                else:
                    late = time.monotonic() + pause >= deadline
                if late:
                    raise
                await asyncio.sleep(pause)
                pause = min(2 * pause, 1.0)

    def _give_up(self) -> None:
        self._end()
        self._link.send("release_turn", gates_pb2.ReleaseTurnRequest(gate=self.gate, place=self._place, fence=self.fence))

    async def _extend(self, began: float, limit: float) -> None:
        """Extend the turn. The answer's time counts from the request."""
        request = gates_pb2.ExtendTurnRequest(gate=self.gate, place=self._place, fence=self.fence)
        answer = await self._link.ask("extend_turn", request, began + limit)
        until = began + _values.to_seconds(answer.good)
        if not answer.HasField("good") or self._over or until <= time.monotonic():
            self._lose()
            raise self._lost or errors.TurnLostError(f"turn {self.fence} at {self.gate!r} is over")
        self._until = until
        if self._expiry is not None:
            self._expiry.cancel()
        self._expiry = asyncio.get_running_loop().call_later(until - time.monotonic(), self._lose)

    async def _keep(self) -> None:
        while not self._over:
            left = self._until - time.monotonic()
            await asyncio.sleep(max(left / 3, _MIN_EXTEND))
            now = time.monotonic()
            try:  # half of the rest leaves time for another request if an answer is lost
                await self._extend(began=now, limit=max((self._until - now) / 2, _MIN_EXTEND))
            except (LinkBroken, errors.WakebellError):
                pass  # the turn ends by itself

    def _lose(self) -> None:
        if self._over:
            return
        self._lost = errors.TurnLostError(f"turn {self.fence} at {self.gate!r} was lost")
        self._end()
        for callback in self._on_lost:
            callback()

    def _end(self) -> None:
        self._over = True
        self._link.turns.pop(self._place, None)
        if self._expiry is not None:
            self._expiry.cancel()
        if self._keeper is not None and self._keeper is not asyncio.current_task():
            self._keeper.cancel()


async def acquire(link: Link, gate: str, *, wait: bool, timeout: float | None, ttl: float) -> Turn:
    """Wait for a turn at a gate."""
    began = time.monotonic()
    deadline = None if timeout is None else began + timeout
    while True:
        turn = Turn(link, gate, ttl)
        try:
            await turn.take(wait, deadline)
        except _Again:
            continue
        turn.waited = time.monotonic() - began
        return turn


async def guard(link: Link, gate: str, resource: str, fence: int, timeout: float) -> None:
    await link.call("guard_turn", gates_pb2.GuardTurnRequest(gate=gate, resource=resource, fence=fence), timeout)


class TurnContext:
    """Acquires a turn for the body of an ``async with`` and cancels it when the turn is lost."""

    def __init__(self, acquire: Callable[[], Any]) -> None:
        self._acquire = acquire

    async def __aenter__(self) -> Turn:
        self._turn: Turn = await self._acquire()
        task = asyncio.current_task()
        assert task is not None
        self._task, self._before, self._cancelled, self._done = task, task.cancelling(), False, False
        self._turn.on_lost(self._cancel)
        return self._turn

    def _cancel(self) -> None:
        if not self._done:
            self._cancelled = True
            self._task.cancel()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done = True
        if self._cancelled:
            ours = self._task.uncancel() <= self._before
            if error is None:  # the body ended before the cancellation reached it
                try:
                    await asyncio.sleep(0)
                except asyncio.CancelledError:
                    pass
            if error is None or (ours and kind is asyncio.CancelledError):
                raise self._turn.lost or errors.TurnLostError(self._turn.gate) from error
            return
        try:
            await self._turn.release()
        except errors.TurnLostError:
            if error is None:
                raise
