"""The exceptions of this package. All are subclasses of WakebellError.

Each code of the node's errors has a class. ``error.code`` is its name in
messages/gateway.proto without ``CODE_``, or "" for errors of this package.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from .types import Published


class WakebellError(Exception):
    """Base class of all errors of this package."""

    code: ClassVar[str] = ""


class InvalidError(WakebellError, ValueError):
    """An argument is invalid; the text names it. Nothing was written."""

    code = "INVALID"


class NotFoundError(WakebellError, LookupError):
    """The timer does not exist."""

    code = "NOT_FOUND"


class NoScheduleError(NotFoundError):
    """The recurring schedule does not exist."""

    code = "NO_SCHEDULE"


class UnavailableError(WakebellError):
    """The node or its Redis cannot be reached. The outcome is unknown."""

    code = "UNAVAILABLE"


class DeadlineError(WakebellError, TimeoutError):
    """The timeout passed. The outcome is unknown."""

    code = "DEADLINE"


class OverloadedError(WakebellError):
    """A bound of the node is reached. Nothing was done."""

    code = "OVERLOADED"


class DrainingError(WakebellError):
    """The node is stopping. Nothing was done."""

    code = "DRAINING"


class InternalError(WakebellError):
    """The node failed in another way. The outcome is unknown."""

    code = "INTERNAL"


class ConflictError(WakebellError):
    """Conflict: the node handles the topic itself, or the key was used for another request."""

    code = "CONFLICT"


class ForbiddenError(WakebellError, PermissionError):
    """The token does not have the right. Nothing was done."""

    code = "FORBIDDEN"


class UnauthenticatedError(WakebellError, PermissionError):
    """The node rejects the token or the certificate."""


class MemoryFullError(WakebellError):
    """Redis has reached its memory limit. Nothing was written."""

    code = "MEMORY_FULL"


class TooLargeError(WakebellError):
    """The payload is larger than the limit of the node."""

    code = "TOO_LARGE"


class WrongTypeError(WakebellError):
    """A key in Redis has another type. Nothing was written."""

    code = "WRONG_TYPE"


class DeniedError(WakebellError):
    """Redis denies the user of the node a key or a command."""

    code = "DENIED"


class ChannelDeniedError(WakebellError):
    """Redis denies the user of the node a channel."""

    code = "CHANNEL_DENIED"


class UnsupportedError(WakebellError):
    """The Redis of the node cannot store timers."""

    code = "UNSUPPORTED"


class GateError(WakebellError):
    """Base class of the errors of gates."""


class GateHeldError(GateError):
    """The gate is held, or has waiters."""

    code = "GATE_HELD"


class TurnLostError(GateError):
    """The turn does not exist, or was lost before it was released."""

    code = "TURN_LOST"


class GatesClosedError(GateError):
    """The gates are closed because the node is stopping."""

    code = "GATES_CLOSED"


class FenceStaleError(GateError):
    """The resource has seen a newer fencing token."""

    code = "FENCE_STALE"


class FenceRegressedError(GateError):
    """The resource has seen a newer fencing token than that of the turn: Redis has lost data."""

    code = "FENCE_REGRESSED"


class FenceUnknownError(GateError):
    """No turn has had the fencing token."""

    code = "FENCE_UNKNOWN"


class GateExhaustedError(GateError):
    """The gate has no fencing tokens left."""

    code = "GATE_EXHAUSTED"


class QueueFullError(WakebellError):
    """The queue is full. ``published`` has the results of the messages that were published."""

    def __init__(self, message: str, published: list[Published]) -> None:
        super().__init__(message)
        self.published = published


class ClosedError(WakebellError):
    """The client is closed."""


class ForkedError(WakebellError):
    """The client, or gRPC, was used before this process was forked, and does not work in it."""


class LeaseLostError(WakebellError):
    """The lease of a handler ended: another subscriber may have the timer."""

    code = "LEASE_LOST"


class LeaseCancelledError(LeaseLostError):
    """The timer of a handler was cancelled."""


class LeaseTooOldError(LeaseLostError):
    """A handler held its lease for longer than the node permits."""


class LeaseDrainingError(LeaseLostError):
    """The node stopped while a handler ran."""


class SignatureError(WakebellError):
    """The request of a webhook was not signed with the secret, or too long ago."""


class Retry(Exception):
    """A handler raises it to have the timer delivered again after a delay.

    Any other exception does so after the backoff of the node.
    """

    def __init__(self, delay: float, reason: str = "") -> None:
        """``delay`` is in seconds; a negative one is 0. Errors: InvalidError if it is not finite."""
        super().__init__(reason)
        self.delay = check_delay(delay)


class Snooze(Retry):
    """A handler raises it if it is not yet time for the timer, to have it delivered again.

    It is no failure and uses up no attempt. ``delay`` is 1 ms to 365 days; with any other, and
    with a node of an earlier version, the handler has failed.
    """


class Reject(Exception):
    """A handler raises it if a retry cannot help: the timer is dead-lettered."""


def check_delay(delay: float) -> float:
    """Return the delay of a Retry, at least 0. Errors: InvalidError."""
    if not isinstance(delay, (int, float)) or not delay < math.inf:
        raise InvalidError(f"delay {delay!r}, want a finite number of seconds")
    return max(float(delay), 0.0)


def _by_code(of: type[WakebellError]) -> dict[str, type[WakebellError]]:
    found = {of.code: of} if "code" in vars(of) and of.code else {}
    for sub in of.__subclasses__():
        found.update(_by_code(sub))
    return found


BY_CODE = _by_code(WakebellError)


def from_code(code: str, message: str) -> WakebellError:
    """Return the error for a code such as "NOT_FOUND". An unknown code is an InternalError."""
    return BY_CODE.get(code, InternalError)(message)
