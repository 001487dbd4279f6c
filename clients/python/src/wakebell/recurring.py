"""Recurring schedules, and the rules that define when they fire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from .types import Duration


@dataclass(frozen=True, slots=True)
class Every:
    """Fires at an interval, 1 µs to 100 years."""

    interval: Duration
    relative: bool = False
    """Aligns the instants to whole days, hours or minutes."""


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression of 5 fields, or of 6 fields with seconds first."""

    expression: str


@dataclass(frozen=True, slots=True)
class Crontab:
    """The fields of Celery's crontab."""

    minute: str = "*"
    hour: str = "*"
    day_of_week: str = "*"
    day_of_month: str = "*"
    month: str = "*"


@dataclass(frozen=True, slots=True)
class RRule:
    """An RFC 5545 rule, with or without a DTSTART line before it."""

    rule: str


class Misfire(StrEnum):
    """What to do with missed runs."""

    LAST = ""
    """Fire the last."""
    SKIP = "skip"
    """Fire none."""
    ALL = "all"
    """Fire all, up to ``misfire_limit``."""


class Overlap(StrEnum):
    """What to do with a run while the timer of the run before exists."""

    FIRE = ""
    SKIP = "skip"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True)
class Celery:
    """Arguments of Celery's ``apply_async``. Each run sends a task instead of a timer."""

    args: list[Any] | None = None
    kwargs: Mapping[str, Any] | None = None
    options: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurring:
    """A recurring schedule: each run schedules a timer of the topic with the body."""

    name: str
    """1 to 400 bytes. It must not begin with a colon."""
    topic: str
    """The topic; with ``celery``, the name of the task."""
    rule: Every | Cron | Crontab | RRule
    body: Any = b""
    content_type: str | None = None
    celery: Celery | None = None
    zone: str = ""
    """IANA time zone. Default: UTC."""
    skip_gaps: bool = False
    """Do not fire at instants that the clocks of the zone skip."""
    jitter: Duration | None = None
    """Each run is delayed by a random duration up to this one; at most a day."""
    start: datetime | None = None
    """First possible instant, inclusive."""
    until: datetime | None = None
    """Last possible instant, inclusive."""
    max_runs: int = 0
    """0: unlimited."""
    misfire: Misfire = Misfire.LAST
    misfire_limit: int = 0
    """Up to 10,000. 0: 100."""
    overlap: Overlap = Overlap.FIRE
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecurringState:
    """A recurring schedule as it is stored."""

    name: str
    topic: str
    rule: str
    """The rule in words."""
    next: datetime | None
    """The next instant. None: never."""
    last_run: datetime | None
    runs: int
    paused: bool
    celery: bool
    fault: str
    """Why the entry is unreadable. Only the name is known then."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a recurring schedule that was fired by request."""

    name: str
    due: datetime | None
    fired: datetime | None
    run: int
    """Number of the run."""
