"""Client for Wakebell: durable timers, queues and FIFO locks over gRPC.

``Client`` is for blocking code, ``wakebell.aio.Client`` for asyncio.
"""

from . import aio, errors, recurring, types, webhook
from ._blocking import Client, Subscription, Turn
from .errors import Reject, Retry, Snooze, WakebellError
from .recurring import (
    Celery,
    Cron,
    Crontab,
    Every,
    Misfire,
    Overlap,
    Recurring,
    RecurringState,
    RRule,
    Run,
)
from .types import (
    TLS,
    Debounce,
    Draft,
    Lease,
    Message,
    Outcome,
    Policy,
    Presence,
    Published,
    Queue,
    Scheduled,
    State,
    Stats,
    Timer,
)

__all__ = [
    "TLS",
    "Celery",
    "Client",
    "Cron",
    "Crontab",
    "Debounce",
    "Draft",
    "Every",
    "Lease",
    "Message",
    "Misfire",
    "Outcome",
    "Overlap",
    "Policy",
    "Presence",
    "Published",
    "Queue",
    "RRule",
    "Recurring",
    "RecurringState",
    "Reject",
    "Retry",
    "Snooze",
    "Run",
    "Scheduled",
    "State",
    "Stats",
    "Subscription",
    "Timer",
    "Turn",
    "WakebellError",
    "aio",
    "errors",
    "recurring",
    "types",
    "webhook",
]
