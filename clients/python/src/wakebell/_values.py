"""Conversions between the values of this package and the messages of the node."""

from __future__ import annotations

import json
import secrets
import string
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from typing import Any

from google.protobuf.duration_pb2 import Duration as PbDuration
from google.protobuf.timestamp_pb2 import Timestamp as PbTimestamp

from . import errors
from . import recurring as r
from . import types as t
from ._pb import gateway_pb2 as pb
from ._pb import queues_pb2, recurring_pb2, wakebell_pb2
from .errors import InvalidError

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
MAX_PARTS = 10_000
"""The most parts of joins in a request."""


def error_of(code: int, message: str) -> errors.WakebellError:
    """Return the exception for a code of the node."""
    try:
        name: str = pb.Code.Name(code)
    except ValueError:
        name = ""
    return errors.from_code(name.removeprefix("CODE_"), message)


def seconds(value: t.Duration, name: str) -> float:
    """Return a duration in seconds."""
    number = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if not abs(number) < 3.2e11:
        raise InvalidError(f"{name} {value}, want at most 10,000 years")
    return number


def duration(value: t.Duration | None, name: str) -> Any:
    """Return a duration as a message, or None."""
    if value is None:
        return None
    micros = value // _MICROSECOND if isinstance(value, timedelta) else round(seconds(value, name) * 1e6)
    whole, rest = divmod(abs(micros), 1_000_000)
    sign = -1 if micros < 0 else 1
    return PbDuration(seconds=sign * whole, nanos=sign * rest * 1000)


def instant(value: datetime | None, name: str) -> Any:
    """Return an instant as a message, or None."""
    if value is None:
        return None
    if value.tzinfo is None:
        raise InvalidError(f"{name} {value} has no time zone: use an aware datetime")
    whole, rest = divmod((value - _EPOCH) // _MICROSECOND, 1_000_000)
    return PbTimestamp(seconds=whole, nanos=rest * 1000)


def to_seconds(message: Any) -> float:
    """Return a duration message in seconds."""
    return float(message.seconds + message.nanos / 1e9)


def to_timedelta(message: Any) -> timedelta:
    return timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)


def to_instant(message: Any, field: str) -> datetime | None:
    """Return the instant in a field, or None if it is absent."""
    if not message.HasField(field):
        return None
    return to_datetime(getattr(message, field))


def to_datetime(message: Any) -> datetime:
    return _EPOCH + timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)


def encode(body: Any, content_type: str | None = None) -> tuple[bytes, str]:
    """Return a body and its content type."""
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body), content_type or ""
    if content_type is not None:
        raise InvalidError(f"content_type {content_type!r} of a body that is {type(body).__name__}, want bytes")
    if isinstance(body, str):
        return body.encode(), t.TEXT
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidError(f"body is not bytes, str or a JSON value: {error}") from error
    return text.encode(), t.JSON


def schedule_request(d: t.Draft) -> pb.ScheduleRequest:
    """Return the request that schedules a draft. It has an id, so that it can be sent again."""
    if (d.at is not None) + (d.delay is not None) + (d.debounce is not None) > 1:
        raise InvalidError("at, delay and debounce exclude each other")
    if d.id == "":
        raise InvalidError('id "", want 1 to 512 bytes or None')
    for option, given in (("debounce", d.debounce), ("once", d.once)):
        if given is not None and d.id is None:
            raise InvalidError(f"{option} without an id: calls are compared by the id, and without one each is a new timer")
    body, content_type = encode(d.body, d.content_type)
    request = pb.ScheduleRequest(
        topic=d.topic, id=d.id or _new_id(), body=body, content_type=content_type,
        correlation_id=d.correlation_id, headers=_headers(d), once=duration(d.once, "once"),
        if_exists=d.if_exists.value if d.if_exists else 0,  # type: ignore[arg-type]
        timer_key=d.key.encode() if isinstance(d.key, str) else d.key,
    )  # fmt: skip
    _joins(request, d)
    plan(request, d.at, d.delay)
    if d.debounce is not None:
        request.debounce.delay.CopyFrom(duration(d.debounce.delay, "debounce.delay"))
        if d.debounce.limit is not None:
            request.debounce.limit.CopyFrom(duration(d.debounce.limit, "debounce.limit"))
    return request


def _new_id() -> str:
    """Return a random id of 22 digits and letters, like those that the Go library makes."""
    return "".join(secrets.choice(string.digits + string.ascii_letters) for _ in range(22))


def _joins(request: pb.ScheduleRequest, d: t.Draft) -> None:
    """Set what a draft has to do with joins. The join has a name, so that it can be sent again."""
    for topic, id in d.part_of:
        request.part_of.add(topic=topic, id=id)
    if d.after is None and not d.open:
        return
    if len(d.after or ()) > MAX_PARTS:
        raise InvalidError(f"after has {len(d.after or ())} parts, want at most {MAX_PARTS:,}; add more with add_parts")
    for topic, id in d.after or ():
        request.after.add(topic=topic, id=id)
    request.open, request.join_name = d.open, secrets.token_hex(16)


def _headers(d: t.Draft) -> dict[str, str]:
    headers = dict(d.headers)
    if d.expire_after is not None:
        limit = d.expire_after if isinstance(d.expire_after, timedelta) else timedelta(seconds=seconds(d.expire_after, "expire_after"))
        if not timedelta(milliseconds=1) <= limit <= timedelta(days=365):
            raise InvalidError(f"expire_after {limit}, want 1 ms to 365 days")
        headers["wakebell-expire-after"] = f"{limit // _MICROSECOND}us"
    return headers


def plan(request: Any, at: datetime | None, delay: t.Duration | None) -> None:
    """Set the instant or the delay of a request."""
    if at is not None:
        request.at.CopyFrom(instant(at, "at"))
    if delay is not None:
        getattr(request, "in").CopyFrom(duration(delay, "delay"))


def scheduled(m: Any) -> t.Scheduled:
    return t.Scheduled(m.id, to_instant(m, "due") or _EPOCH, t.Outcome(m.outcome), to_instant(m, "found"))


def timer(topic: str, m: pb.Timer) -> t.Timer:
    return t.Timer(
        topic=topic, id=m.id, state=t.State(m.state), due=to_instant(m, "due"),
        activation=to_instant(m, "activation"), attempts=m.attempts, failures=m.failures,
        last_error=m.last_error, body=m.content.body, content_type=m.content.content_type,
        correlation_id=m.content.correlation_id, headers=dict(m.content.headers), cursor=m.cursor,
        key=m.key,
    )  # fmt: skip


def stats(m: pb.TopicStats) -> t.Stats:
    return t.Stats(
        total=m.total, pending=m.pending, due=m.due, leased=m.leased, retrying=m.retrying, dead=m.dead, parked=m.parked,
        estimated=m.estimated, oldest_due=to_instant(m, "oldest_due"), lag=to_timedelta(m.lag),
        paused_at=to_instant(m, "paused_at"), paused_until=to_instant(m, "paused_until"),
    )  # fmt: skip


def lease(m: wakebell_pb2.Lease) -> t.Lease:
    return t.Lease(
        topic=m.topic, id=m.id, body=m.body, content_type=m.content_type, correlation_id=m.correlation_id,
        reply_to=m.reply_to, headers=dict(m.headers), activation=to_instant(m, "activation"),
        delivered=to_instant(m, "delivered"), attempt=m.attempt, failures=m.failures,
        trace=dict(m.trace),
    )  # fmt: skip


def queue_of(q: t.Queue) -> queues_pb2.Queue:
    return queues_pb2.Queue(separator=q.separator, dead_letters=q.dead_letters)


def messages_of(messages: Iterable[t.Message]) -> list[queues_pb2.QueueMessage]:
    """Return messages to publish. Each has a tail, so that the request can be sent again."""
    return [queues_pb2.QueueMessage(body=encode(m.body)[0], key=m.key, tail=_tail(), headers=m.headers) for m in messages]


def _tail() -> str:
    # The last 20 digits of a UUID of version 7 begin with the version.
    digits = secrets.token_hex(10)
    return "7" + digits[1:4] + "89ab"[int(digits[4], 16) % 4] + digits[5:]


def recurring(schedule: r.Recurring) -> recurring_pb2.Recurring:
    body, content_type = encode(schedule.body, schedule.content_type)
    when = recurring_pb2.Recurrence(
        zone=schedule.zone, skip_gaps=schedule.skip_gaps, jitter=duration(schedule.jitter, "jitter"), start=instant(schedule.start, "start"),
        until=instant(schedule.until, "until"), max_runs=schedule.max_runs, misfire=schedule.misfire.value,
        misfire_limit=schedule.misfire_limit, overlap=schedule.overlap.value, headers=schedule.headers,
    )  # fmt: skip
    match schedule.rule:
        case r.Every(interval, relative):
            when.every.CopyFrom(duration(interval, "interval"))
            when.relative = relative
        case r.Cron(expression):
            when.cron = expression
        case r.Crontab() as c:
            when.crontab.CopyFrom(recurring_pb2.Crontab(
                minute=c.minute, hour=c.hour, day_of_week=c.day_of_week, day_of_month=c.day_of_month, month=c.month,
            ))  # fmt: skip
        case r.RRule(rule):
            when.rrule = rule
        case _:
            raise InvalidError(f"rule {schedule.rule!r}, want Every, Cron, Crontab or RRule")
    m = recurring_pb2.Recurring(name=schedule.name, topic=schedule.topic, when=when, body=body, content_type=content_type)
    if schedule.celery is not None:
        celery = schedule.celery
        m.celery.CopyFrom(recurring_pb2.CeleryMessage(
            args=b"" if celery.args is None else encode(celery.args)[0],
            kwargs=b"" if celery.kwargs is None else encode(dict(celery.kwargs))[0],
            options=b"" if celery.options is None else encode(dict(celery.options))[0],
        ))  # fmt: skip
    return m


def recurring_state(m: recurring_pb2.RecurringState) -> r.RecurringState:
    return r.RecurringState(
        name=m.name, topic=m.topic, rule=m.rule, next=to_instant(m, "next"), last_run=to_instant(m, "last_run"),
        runs=m.runs, paused=m.paused, celery=m.celery, fault=m.fault,
    )  # fmt: skip


def run(m: recurring_pb2.RunRecurringResponse) -> r.Run:
    return r.Run(m.name, to_instant(m, "due"), to_instant(m, "fired"), m.run)
