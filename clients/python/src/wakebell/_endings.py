"""How timers end: waiting for it, and the values of joins."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from . import errors
from . import types as t
from ._pb import endings_pb2, status_pb2
from ._pb import gateway_pb2 as pb
from ._values import error_of, to_instant

_METHOD = "/wakebell.v1.Operations/WaitTimer"

_ERRORS: dict[grpc.StatusCode, type[errors.WakebellError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: errors.InvalidError,
    grpc.StatusCode.NOT_FOUND: errors.NotFoundError,
    grpc.StatusCode.PERMISSION_DENIED: errors.ForbiddenError,
    grpc.StatusCode.UNAUTHENTICATED: errors.UnauthenticatedError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: errors.OverloadedError,
    grpc.StatusCode.DEADLINE_EXCEEDED: errors.DeadlineError,
    grpc.StatusCode.UNAVAILABLE: errors.UnavailableError,
}


async def wait_timer(channel: grpc.Channel, token: str, request: endings_pb2.WaitTimerRequest, timeout: float | None) -> Any:
    """Return the answer of the node, which comes when the timer has ended."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()
    method = channel.unary_stream(
        _METHOD,
        request_serializer=endings_pb2.WaitTimerRequest.SerializeToString,
        response_deserializer=endings_pb2.WaitTimerResponse.FromString,
    )
    call = method(request, metadata=(("authorization", f"Bearer {token}"),) if token else None, timeout=timeout)

    def finish(m: Any, error: BaseException | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(m)

    def read() -> None:
        m: Any = None
        error: BaseException | None = None
        try:
            m = next(call, None)
            if m is None:
                error = errors.UnavailableError("the node ended the wait")
        except grpc.RpcError:
            error = _error_of(call)
        try:
            loop.call_soon_threadsafe(finish, m, error)
        except RuntimeError:
            pass  # the loop is closed

    threading.Thread(target=read, name="wakebell-wait", daemon=True).start()
    try:
        return await answer
    finally:
        call.cancel()
        channel.close()


def _error_of(call: Any) -> errors.WakebellError:
    """Return the error of a call: that of the node in the details of the status, else one for its code."""
    for key, value in call.trailing_metadata() or ():
        if key != "grpc-status-details-bin":
            continue
        with contextlib.suppress(DecodeError):
            for detail in status_pb2.Status.FromString(value).details:
                if detail.type_url.endswith("/wakebell.v1.Error"):
                    fault = pb.Error.FromString(detail.value)
                    return error_of(fault.code, fault.message)
    return _ERRORS.get(call.code(), errors.InternalError)(call.details() or "the node ended the wait")


def report(m: endings_pb2.WaitTimerResponse) -> t.Report:
    progress = None
    if m.HasField("progress"):
        p = m.progress
        progress = t.Progress(p.fraction, p.note, to_instant(p, "at"), p.attempt)
    return t.Report(progress, _result(m))


def ending(m: endings_pb2.WaitTimerResponse) -> t.Ending:
    known = report(m)
    return t.Ending(t.End(m.end), m.reason, known.progress, known.result)


def _result(m: Any) -> t.Result | None:
    if not m.HasField("result"):
        return None
    r = m.result
    return t.Result(
        body=r.content.body, content_type=r.content.content_type, headers=dict(r.content.headers),
        attempt=r.attempt, activation=to_instant(r, "activation"), at=to_instant(r, "at"),
    )  # fmt: skip


def join(m: endings_pb2.Join) -> t.Join:
    return t.Join(m.open, m.parts, m.done, m.dead, m.cancelled, m.missing)


def part_end(m: endings_pb2.PartEnd) -> t.PartEnd:
    end = t.End(m.end) if m.end else None
    return t.PartEnd(m.part.topic, m.part.id, end, m.reason, to_instant(m, "at"), _result(m), m.cursor)


def parts(of: Any) -> list[pb.TimerPart]:
    """Return parts as messages."""
    return [pb.TimerPart(topic=topic, id=id) for topic, id in of]
