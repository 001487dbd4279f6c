"""The values that the methods of the clients take and return.

Instants are aware ``datetime`` objects. Durations are ``timedelta`` objects, or
numbers of seconds.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from .errors import LeaseLostError

if TYPE_CHECKING:
    from ._keep import Keeper

Duration: TypeAlias = timedelta | float

TEXT = "text/plain"
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class TLS:
    """TLS settings of a connection. The files' contents are PEM."""

    ca: bytes | None = None
    """Certificates of the authorities that may sign the node's certificate. Default: gRPC's."""
    cert: bytes | None = None
    """Client certificate, for a node that requires one."""
    key: bytes | None = None
    """Private key of ``cert``."""
    server_name: str | None = None
    """Name in the node's certificate. Default: the host of the address."""


class Policy(Enum):
    """What scheduling does when the id exists."""

    REPLACE = 1
    """Set the new body and instant. A running handler is superseded."""
    KEEP = 2
    """Change nothing."""
    EARLIEST = 3
    """Keep the earlier of the two timers."""


class Outcome(Enum):
    """What scheduling did."""

    CREATED = 1
    """The id was free."""
    REPLACED = 2
    """A pending timer was replaced."""
    SUPERSEDED = 3
    """A timer was replaced while its handler ran."""
    KEPT_PENDING = 4
    """A pending timer was kept."""
    KEPT_RUNNING = 5
    """A timer with a running handler was kept."""
    KEPT_EARLIER = 6
    """A pending timer that is due earlier, or at the same time, was kept."""
    MOVED = 7
    """A pending timer has a new instant."""
    ALREADY_DONE = 8
    """A timer that was scheduled with ``once`` has fired. Nothing was written."""


class Presence(Enum):
    """The state in which a request found a timer."""

    ABSENT = 1
    """The timer did not exist."""
    PENDING = 2
    """The timer was not due yet, or waited for a retry."""
    RUNNING = 3
    """A handler was running."""


class State(Enum):
    """State of a timer."""

    PENDING = 1
    """The timer is not due yet."""
    RETRYING = 2
    """The timer waits for a retry."""
    RUNNING = 3
    """A handler is running."""
    NEVER = 4
    """The instant is infinite, which no Wakebell client writes."""
    PARKED = 5
    """The timer is due and waits until its key is free."""


@dataclass(frozen=True, slots=True)
class Debounce:
    """Makes a timer due when its id was not scheduled again for ``delay``."""

    delay: Duration
    limit: Duration | None = None
    """At the latest this long after the id was first scheduled. Default: no limit."""


class Part(NamedTuple):
    """Names a timer that a join waits for, or that waits."""

    topic: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A timer to schedule.

    At most one of ``at``, ``delay`` and ``debounce`` is set; without them the timer is
    due at once.
    """

    topic: str
    body: Any = b""
    """``bytes`` are sent unchanged, ``str`` as text, other values as JSON."""
    id: str | None = None
    """1 to 512 bytes, unique in the topic. Default: a new UUID."""
    at: datetime | None = None
    """The instant, by the clock of Redis. An instant in the past: at once."""
    delay: Duration | None = None
    """The delay from when Redis stores the timer."""
    debounce: Debounce | None = None
    """Merges the calls for an ``id``, which it requires."""
    if_exists: Policy | None = None
    """What to do when the id exists. Default: ``Policy.REPLACE``."""
    once: Duration | None = None
    """The id fires once until this long after it is due; requires ``id``. Default: no such limit."""
    expire_after: Duration | None = None
    """No handler receives the timer if it could not begin within this time after its instant,
    1 ms to 365 days. Default: the limit of the topic's handler. It is a header of the timer."""
    headers: Mapping[str, str] = field(default_factory=dict)
    correlation_id: str = ""
    """Correlates the timer with its cause. Default: the id."""
    content_type: str | None = None
    """Content type of a body of ``bytes``. Default: none."""
    key: str | bytes = b""
    """Up to 512 bytes, by which handlers with a limit per key order timers. Default: none,
    or that of the existing timer."""
    after: Sequence[tuple[str, str]] | None = None
    """The timer becomes due when these timers have ended, its parts, or at its ``at`` or
    ``delay``, one of which it needs. At most 10,000; ``add_parts`` adds more to an ``open`` join."""
    open: bool = False
    """The join does not become due before its instant until ``close_join``."""
    part_of: Sequence[tuple[str, str]] = ()
    """The timer is a part of the joins of these, which are open or in the same batch; at most 16."""


@dataclass(frozen=True, slots=True)
class Scheduled:
    """What scheduling did."""

    id: str
    due: datetime
    """When the timer is due, by the clock of Redis."""
    outcome: Outcome
    found: datetime | None
    """When the existing timer was due next. None: the id was free."""


class Content:
    """Methods of values with a body and its content type."""

    __slots__ = ()
    body: bytes
    content_type: str

    def text(self) -> str:
        """Return the body as text. Errors: UnicodeDecodeError."""
        return self.body.decode()

    def json(self) -> Any:
        """Return the body decoded as JSON. Errors: ValueError."""
        return json.loads(self.body)

    def value(self) -> Any:
        """Return the body as its content type says: ``str``, a JSON value, or ``bytes``."""
        if self.content_type == TEXT:
            return self.text()
        return self.json() if self.content_type == JSON else self.body


@dataclass(frozen=True, slots=True)
class Timer(Content):
    """A timer as it is stored. Listings have no body and headers."""

    topic: str
    id: str
    state: State
    due: datetime | None
    """When it can be delivered next; while a handler runs, when the lease expires."""
    activation: datetime | None
    """The instant that it was scheduled for. Retries do not change it."""
    attempts: int
    """Deliveries so far."""
    failures: int
    """Deliveries that failed."""
    last_error: str
    body: bytes
    content_type: str
    correlation_id: str
    headers: Mapping[str, str]
    cursor: str
    """In listings: as ``after`` it continues behind this timer."""
    key: bytes = b""
    """The key by which handlers order timers; empty: none."""


class End(Enum):
    """How a timer has ended."""

    DONE = "done"
    """A handler has acknowledged it."""
    DEAD = "dead"
    """It is a dead letter, or was discarded."""
    CANCELLED = "cancelled"
    MISSING = "missing"
    """Nothing is known of it."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the handler of a timer is."""

    fraction: float
    """0 to 1."""
    note: str
    at: datetime | None
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Content):
    """What the handler of a timer returned."""

    body: bytes
    content_type: str
    headers: Mapping[str, str]
    attempt: int
    activation: datetime | None
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Report:
    """What the handler of a timer has reported. None: nothing."""

    progress: Progress | None
    result: Result | None


@dataclass(frozen=True, slots=True)
class Ending:
    """How a timer has ended, and what its handler has reported."""

    end: End
    reason: str
    """Why it is a dead letter."""
    progress: Progress | None
    result: Result | None


@dataclass(frozen=True, slots=True)
class Join:
    """A timer that becomes due when its parts have ended, or at its instant."""

    open: bool
    """Parts may be added; it does not become due before it is closed."""
    parts: int
    done: int
    """Parts that have ended so, as the next three."""
    dead: int
    cancelled: int
    missing: int


@dataclass(frozen=True, slots=True)
class PartEnd:
    """How a part of a join has ended."""

    topic: str
    id: str
    end: End | None
    """None: it has not ended."""
    reason: str
    """Why it is a dead letter."""
    at: datetime | None
    """When its end was noted."""
    result: Result | None
    cursor: str
    """As ``after`` it continues a listing behind this part."""


@dataclass(frozen=True, slots=True)
class Stats:
    """Statistics of a topic."""

    total: int
    pending: int
    """Timers that are not due yet."""
    due: int
    """Timers that can be claimed now."""
    leased: int
    """Timers with a running handler."""
    retrying: int
    """Timers that wait for a retry."""
    dead: int
    """Dead letters."""
    estimated: bool
    """``pending``, ``leased`` and ``retrying`` are estimates."""
    oldest_due: datetime | None
    lag: timedelta
    """How long the oldest due timer is due."""
    paused_at: datetime | None
    """Since when the topic is paused. None: it is not paused."""
    parked: int = 0
    """Timers that are due and wait until their key is free."""
    paused_until: datetime | None = None
    """When the pause ends by itself. None: it does not."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue, and the settings of the messages that are published to it."""

    name: str
    separator: str = ""
    """Separator in its keys. Default: "::"."""
    dead_letters: str = ""
    """Key of its dead letters. Default: the name, the separator and "dlq"."""
    window: Duration | None = None
    """How long a deduplication key suppresses other messages. Default: 1 h."""
    cap: int = 0
    """The most messages that may wait. 0: unlimited."""
    drop_oldest: bool = False
    """Delete the oldest messages when the queue is full."""
    frees_keys: bool = False
    """A dead-lettered message frees its deduplication key."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message to publish."""

    body: Any
    """``bytes`` are sent unchanged, ``str`` as text, other values as JSON."""
    key: str = ""
    """Deduplication key. Default: none."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers for handlers of Wakebell. Other consumers ignore them."""


@dataclass(frozen=True, slots=True)
class Published:
    """The result of publishing a message."""

    id: str
    """Id of the message, or of the earlier one with the same key, or "" if that is unknown."""
    fresh: bool
    """The message was published. Otherwise its key suppressed it."""


class Lease(Content):
    """A timer or message that a handler has, for as long as ``lost`` is None."""

    __slots__ = ("topic", "id", "body", "content_type", "correlation_id", "reply_to", "headers",
                 "activation", "delivered", "attempt", "failures", "trace", "_lost", "_event", "_keeper")  # fmt: skip

    def __init__(
        self, *, topic: str, id: str, body: bytes, content_type: str, correlation_id: str, reply_to: str,
        headers: Mapping[str, str], activation: datetime | None, delivered: datetime | None,
        attempt: int, failures: int, trace: Mapping[str, str],
    ) -> None:  # fmt: skip
        self.topic = topic
        """Name of the topic or queue."""
        self.id = id
        self.body = body
        self.content_type = content_type
        self.correlation_id = correlation_id
        self.reply_to = reply_to
        self.headers = headers
        self.activation = activation
        """The instant that the timer was scheduled for. None: it is a message of a queue."""
        self.delivered = delivered
        """When it was claimed, by the clock of Redis."""
        self.attempt = attempt
        """Deliveries so far, including this one."""
        self.failures = failures
        """Deliveries that failed."""
        self.trace = trace
        """The span of this delivery, as headers such as traceparent. Empty: the node does not trace."""
        self._lost: LeaseLostError | None = None
        self._event = threading.Event()
        self._keeper: Keeper | None = None

    def __repr__(self) -> str:
        return f"Lease(topic={self.topic!r}, id={self.id!r}, attempt={self.attempt})"

    @property
    def lost(self) -> LeaseLostError | None:
        """Why the lease ended while the handler runs. None: the handler still has it."""
        return self._lost

    def wait_lost(self, timeout: float | None = None) -> bool:
        """Wait in a handler's thread until the lease is lost, and return whether it is."""
        return self._event.wait(timeout)

    async def checkpoint(self, body: Any, content_type: str | None = None) -> None:
        """Replace the body of the timer while its handler runs: a later attempt resumes from it.

        The body is as that of ``Client.schedule``. Raise LeaseLostError if the lease has
        ended: nothing was stored then. After other errors the body may have been stored.
        """
        await self._held().checkpoint(body, content_type)

    async def progress(self, fraction: float, note: str = "") -> None:
        """Report how far the handler is, 0 to 1, with a note of at most 256 bytes.

        The node stores one report a second, and the last one. ``Client.report`` returns it.
        """
        await self._held().progress(fraction, note)

    def set_result(self, value: Any, content_type: str | None = None) -> None:
        """Give the timer a result, which is stored if the handler returns.

        It is as a body, and has at most 4 KiB: the timer becomes a dead letter otherwise.
        ``Client.wait`` returns it.
        """
        self._held().set_result(value, content_type)

    def wait_checkpoint(self, body: Any, content_type: str | None = None) -> None:
        """Do in a handler's thread what ``checkpoint`` does, and wait until it is stored."""
        self._held().wait(self.checkpoint(body, content_type))

    def wait_progress(self, fraction: float, note: str = "") -> None:
        """Do in a handler's thread what ``progress`` does, and wait until the node has it."""
        self._held().wait(self.progress(fraction, note))

    def _held(self) -> Keeper:
        if self._keeper is None or self._lost is not None:
            raise self._lost or LeaseLostError(f"{self.id}: no handler has the lease")
        return self._keeper

    def _lose(self, error: LeaseLostError) -> None:
        self._lost = error
        self._event.set()
