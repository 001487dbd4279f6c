"""Runs handlers, and says what their exceptions mean for their leases.

A handler may raise anything. asyncio treats some exceptions apart: StopIteration cannot
be the result of a future, SystemExit and KeyboardInterrupt end the event loop. The text
of an exception may raise as well. None of this may concern more than its own lease, so
exceptions are values here, and each gives a verdict.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from . import _values, errors
from ._pb import gateway_pb2, remote_pb2, wakebell_pb2
from .types import Lease

Handler = Callable[[Lease], Awaitable[object]] | Callable[[Lease], object]

_MAX_REASON = 1024  # bytes


class GoesOn(asyncio.CancelledError):
    """The task of a handler was cancelled, and the handler goes on in its thread."""


def is_async(handler: Handler) -> bool:
    """Return whether a handler is a coroutine function. Raise InvalidError for one that yields."""
    of = (handler, getattr(handler, "__call__", None))
    if any(inspect.isgeneratorfunction(f) or inspect.isasyncgenfunction(f) for f in of):
        raise errors.InvalidError("handler is a generator, which never runs: use a function or a coroutine function")
    return any(map(inspect.iscoroutinefunction, of))


async def run(handler: Handler, lease: Lease, pool: ThreadPoolExecutor | None) -> BaseException | None:
    """Run a handler, in a thread of the pool if there is one. Return what it raised, or None."""
    try:
        if pool is None:
            result, error = _call(handler, lease)
        else:
            context = contextvars.copy_context()
            thread = pool.submit(lambda: context.run(_call, handler, lease))
            try:
                result, error = await asyncio.wrap_future(thread)
            except asyncio.CancelledError as raised:
                return raised if thread.cancel() else GoesOn()  # it cannot be interrupted
        if error is None and inspect.isawaitable(result):
            await result
        elif inspect.isgenerator(result) or inspect.isasyncgen(result):
            return TypeError("the handler returned a generator, which never runs")
        return error
    except GeneratorExit as raised:
        if asyncio._get_running_loop() is None:
            raise  # the loop is gone, and the interpreter closes this coroutine
        return raised
    except BaseException as raised:
        return raised


def _call(handler: Handler, lease: Lease) -> tuple[Any, BaseException | None]:
    try:
        return handler(lease), None
    except BaseException as error:
        return None, error


def verdict(
    error: BaseException | None, delivery: int, result: gateway_pb2.Content | None = None, most: int = 1 << 20
) -> dict[str, Any]:
    """Return the verdict for a lease as the field of a Verdict. ``most`` is what fits of a result, in bytes."""
    if error is None and result is not None and result.ByteSize() > most:  # as the node says of one that is smaller
        return {"reject": wakebell_pb2.Reject(delivery=delivery, reason=f"result: {result.ByteSize()} bytes, the limit is 4096")}
    if error is None:
        return {"ack": wakebell_pb2.Ack(delivery=delivery, result=result)}
    if is_a(error, errors.Reject):
        return {"reject": wakebell_pb2.Reject(delivery=delivery, reason=_reason(error))}
    try:
        if is_a(error, errors.Retry):
            delay = _values.duration(errors.check_delay(error.delay), "delay")  # type: ignore[attr-defined]
            return {"nack": wakebell_pb2.Nack(delivery=delivery, reason=_reason(error), delay=delay, snooze=is_a(error, errors.Snooze))}
        if is_a(error, asyncio.CancelledError):
            return {"nack": wakebell_pb2.Nack(delivery=delivery, reason="the handler was cancelled")}
    except BaseException as broken:  # of an exception class of the user's
        error = broken
    return {"nack": wakebell_pb2.Nack(delivery=delivery, reason=_reason(error))}


def is_a(error: BaseException, *kinds: type[BaseException]) -> bool:
    """Return whether an exception is of a kind, without calling code of its class."""
    return issubclass(type(error), kinds)


def of(verdict: remote_pb2.Verdict) -> int:
    """Return the number of the delivery that a verdict is about."""
    delivery: int = getattr(verdict, verdict.WhichOneof("kind") or "ack").delivery
    return delivery


def _reason(error: BaseException) -> str:
    name = type(error).__name__
    try:
        text = str(error) or name
        return text.encode(errors="replace")[:_MAX_REASON].decode(errors="ignore")
    except BaseException as broken:
        return f"{name}, whose text raises {type(broken).__name__}"[:_MAX_REASON]
