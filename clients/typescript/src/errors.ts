/**
 * The errors of this package. All are subclasses of WakebellError. Each code of the
 * node's errors has a class; `code` is its name in messages/gateway.proto without
 * `CODE_`, or "" for errors of this package.
 */
import type { Published } from "./types.js";

/** Base class of all errors of this package. */
export class WakebellError extends Error {
  static readonly code: string = "";

  /** The code of the error, such as "NOT_FOUND", or "". */
  get code(): string {
    return (this.constructor as typeof WakebellError).code;
  }

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** An argument is invalid; the text names it. Nothing was written. */
export class InvalidError extends WakebellError {
  static override readonly code: string = "INVALID";
}

/** The timer does not exist. */
export class NotFoundError extends WakebellError {
  static override readonly code: string = "NOT_FOUND";
}

/** The recurring schedule does not exist. */
export class NoScheduleError extends NotFoundError {
  static override readonly code: string = "NO_SCHEDULE";
}

/** The node or its Redis cannot be reached. The outcome is unknown. */
export class UnavailableError extends WakebellError {
  static override readonly code: string = "UNAVAILABLE";
}

/** The timeout passed. The outcome is unknown. */
export class DeadlineError extends WakebellError {
  static override readonly code: string = "DEADLINE";
}

/** A bound of the node is reached. Nothing was done. */
export class OverloadedError extends WakebellError {
  static override readonly code: string = "OVERLOADED";
}

/** The node is stopping. Nothing was done. */
export class DrainingError extends WakebellError {
  static override readonly code: string = "DRAINING";
}

/** The node failed in another way. The outcome is unknown. */
export class InternalError extends WakebellError {
  static override readonly code: string = "INTERNAL";
}

/** Conflict: the node handles the topic itself, or the key was used for another request. */
export class ConflictError extends WakebellError {
  static override readonly code: string = "CONFLICT";
}

/** The token does not have the right. Nothing was done. */
export class ForbiddenError extends WakebellError {
  static override readonly code: string = "FORBIDDEN";
}

/** The node rejects the token or the certificate. */
export class UnauthenticatedError extends WakebellError {}

/** Redis has reached its memory limit. Nothing was written. */
export class MemoryFullError extends WakebellError {
  static override readonly code: string = "MEMORY_FULL";
}

/** The payload is larger than the limit of the node. */
export class TooLargeError extends WakebellError {
  static override readonly code: string = "TOO_LARGE";
}

/** A key in Redis has another type. Nothing was written. */
export class WrongTypeError extends WakebellError {
  static override readonly code: string = "WRONG_TYPE";
}

/** Redis denies the user of the node a key or a command. */
export class DeniedError extends WakebellError {
  static override readonly code: string = "DENIED";
}

/** Redis denies the user of the node a channel. */
export class ChannelDeniedError extends WakebellError {
  static override readonly code: string = "CHANNEL_DENIED";
}

/** The Redis of the node cannot store timers. */
export class UnsupportedError extends WakebellError {
  static override readonly code: string = "UNSUPPORTED";
}

/** Base class of the errors of gates. */
export class GateError extends WakebellError {}

/** The gate is held, or has waiters. */
export class GateHeldError extends GateError {
  static override readonly code: string = "GATE_HELD";
}

/** The turn does not exist, or was lost before it was released. */
export class TurnLostError extends GateError {
  static override readonly code: string = "TURN_LOST";
}

/** The gates are closed because the node is stopping. */
export class GatesClosedError extends GateError {
  static override readonly code: string = "GATES_CLOSED";
}

/** The resource has seen a newer fencing token. */
export class FenceStaleError extends GateError {
  static override readonly code: string = "FENCE_STALE";
}

/** The resource has seen a newer fencing token than that of the turn: Redis has lost data. */
export class FenceRegressedError extends GateError {
  static override readonly code: string = "FENCE_REGRESSED";
}

/** No turn has had the fencing token. */
export class FenceUnknownError extends GateError {
  static override readonly code: string = "FENCE_UNKNOWN";
}

/** The gate has no fencing tokens left. */
export class GateExhaustedError extends GateError {
  static override readonly code: string = "GATE_EXHAUSTED";
}

/** The client is closed. */
export class ClosedError extends WakebellError {}

/** The lease of a handler ended: another subscriber may have the timer. */
export class LeaseLostError extends WakebellError {
  static override readonly code: string = "LEASE_LOST";
}

/** The timer of a handler was cancelled. */
export class LeaseCancelledError extends LeaseLostError {}

/** A handler held its lease for longer than the node permits. */
export class LeaseTooOldError extends LeaseLostError {}

/** The node stopped while a handler ran. */
export class LeaseDrainingError extends LeaseLostError {}

/** The queue is full. */
export class QueueFullError extends WakebellError {
  /** The results of the messages that were published. */
  readonly published: readonly Published[];

  constructor(message: string, published: readonly Published[]) {
    super(message);
    this.published = published;
  }
}

/** The request of a webhook was not signed with the secret, or too long ago. */
export class SignatureError extends WakebellError {}

/**
 * A handler throws it to have the timer delivered again after a delay. Any other error
 * does so after the backoff of the node.
 */
export class Retry extends Error {
  readonly delayMs: number;

  /** A negative `delayMs` is 0. Throws an InvalidError if it is not finite. */
  constructor(delayMs: number, reason = "") {
    super(reason);
    this.name = "Retry";
    if (!Number.isFinite(delayMs)) {
      throw new InvalidError(`delayMs ${String(delayMs)}, want a finite number of milliseconds`);
    }
    this.delayMs = Math.max(delayMs, 0);
  }
}

/**
 * A handler throws it if it is not yet time for the timer, to have it delivered again. It is no
 * failure and uses up no attempt. `delayMs` is 1 to 31,536,000,000 (365 days); with any
 * other, and with a node of an earlier version, the handler has failed.
 */
export class Snooze extends Retry {
  constructor(delayMs: number, reason = "") {
    super(delayMs, reason);
    this.name = "Snooze";
  }
}

/** A handler throws it if a retry cannot help: the timer is dead-lettered. */
export class Reject extends Error {
  constructor(reason = "") {
    super(reason);
    this.name = "Reject";
  }
}
