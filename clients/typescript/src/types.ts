/**
 * The values that the methods of the client take and return. Instants are Dates,
 * durations are numbers of milliseconds.
 */

/** A body: a Uint8Array is sent unchanged, a string as text, another value as JSON. */
export type Body = unknown;

/** What scheduling does when the id exists. */
export type Policy =
  /** Set the new body and instant. A running handler is superseded. */
  | "replace"
  /** Change nothing. */
  | "keep"
  /** Keep the earlier of the two timers. */
  | "earliest";

/** What scheduling did. */
export type Outcome =
  /** The id was free. */
  | "created"
  /** A pending timer was replaced. */
  | "replaced"
  /** A timer was replaced while its handler ran. */
  | "superseded"
  /** A pending timer was kept. */
  | "kept pending"
  /** A timer with a running handler was kept. */
  | "kept running"
  /** A pending timer that is due earlier, or at the same time, was kept. */
  | "kept earlier"
  /** A pending timer has a new instant. */
  | "moved"
  /** A timer that was scheduled with `onceMs` has fired. Nothing was written. */
  | "already done";

/** The state in which a request found a timer. */
export type Presence = "absent" | "pending" | "running";

/**
 * State of a timer. The instant of a `never` is infinite; a `parked` timer is due and waits
 * until its key is free.
 */
export type State = "pending" | "retrying" | "running" | "never" | "parked";

/** When a timer is due: at most one of its fields is set; without them at once. */
export interface When {
  /** The instant, by the clock of Redis. An instant in the past: at once. */
  at?: Date;
  /** The delay from when Redis stores the timer. */
  delayMs?: number;
}

/** Settings of a timer. */
export interface ScheduleOptions extends When {
  /** 1 to 512 bytes, unique in the topic. Default: a new UUID. */
  id?: string;
  /**
   * Makes the timer due when its id was not scheduled again for `delayMs`, at the latest
   * `limitMs` after the first time. It requires `id`, and excludes `at` and `delayMs`.
   */
  debounce?: { delayMs: number; limitMs?: number };
  /** What to do when the id exists. Default: replace. */
  ifExists?: Policy;
  /** The id fires once until this long after it is due; requires `id`. Default: no such limit. */
  onceMs?: number;
  /**
   * No handler receives the timer if it could not begin within this time after its instant, 1 ms
   * to 365 days. Default: the limit of the topic's handler. It is a header of the timer.
   */
  expireAfterMs?: number;
  headers?: Record<string, string>;
  /** Correlates the timer with its cause. Default: the id. */
  correlationId?: string;
  /** Content type of a body that is a Uint8Array. Default: none. */
  contentType?: string;
  /**
   * Up to 512 bytes, by which handlers with a limit per key order timers. Default: none, or
   * that of the existing timer.
   */
  key?: string | Uint8Array;
  /**
   * The timer becomes due when these timers have ended, its parts, or at its `at` or `delayMs`,
   * one of which it needs. At most 10,000; `addParts` adds more to an `open` join.
   */
  after?: readonly Part[];
  /** The join does not become due before its instant until `closeJoin`. */
  open?: boolean;
  /** The timer is a part of the joins of these, which are open or in the same batch; at most 16. */
  partOf?: readonly Part[];
}

/** Names a timer that a join waits for, or that waits. */
export interface Part {
  topic: string;
  id: string;
}

/** How a timer has ended: acknowledged, a dead letter or discarded, cancelled, or nothing is known of it. */
export type End = "done" | "dead" | "cancelled" | "missing";

/** What the handler of a timer has reported. */
export interface Report {
  progress?: { fraction: number; note: string; attempt: number; at?: Date };
  result?: Result;
}

/** What the handler of a timer returned. */
export interface Result extends Content {
  attempt: number;
  activation?: Date;
  at?: Date;
}

/** How a timer has ended, and what its handler has reported. */
export interface Ending extends Report {
  end: End;
  /** Why it is a dead letter. */
  reason: string;
}

/** A timer that becomes due when its parts have ended, or at its instant. */
export interface Join {
  /** Parts may be added; it does not become due before it is closed. */
  open: boolean;
  parts: number;
  /** The numbers of parts that have ended, by how. */
  done: number;
  dead: number;
  cancelled: number;
  missing: number;
}

/** How a part of a join has ended. */
export interface PartEnd extends Part {
  /** Absent: it has not ended. */
  end?: End;
  /** Why it is a dead letter. */
  reason: string;
  /** When its end was noted. */
  at?: Date;
  result?: Result;
  /** As `after` it continues a listing behind this part. */
  cursor: string;
}

/** Which parts a listing has. */
export interface PartsOptions extends CallOptions {
  /** Only parts that have not ended. */
  running?: boolean;
  /** The cursor of a part, to continue a listing behind it. */
  after?: string;
  /** The most items. Default: all. */
  limit?: number;
}

/** A timer to schedule. */
export interface Draft extends ScheduleOptions {
  topic: string;
  body?: Body;
}

/** Settings of a request. */
export interface CallOptions {
  /** How long the request may take. Default: that of the client. */
  timeoutMs?: number;
  /** Ends the wait for the answer. The request may be carried out nevertheless. */
  signal?: AbortSignal;
}

/** Settings of a request that can have an idempotency key. */
export interface KeyOptions extends CallOptions {
  /**
   * Idempotency key of up to 256 bytes: for 24 hours a repeated request does nothing and
   * returns the first answer. The same key with another request is a ConflictError.
   */
  idempotencyKey?: string;
}

/** What scheduling did. */
export interface Scheduled {
  id: string;
  /** When the timer is due, by the clock of Redis. */
  due: Date;
  outcome: Outcome;
  /** When the existing timer was due next. Absent: the id was free. */
  found?: Date;
}

/** A timer as it is stored. */
export interface TimerInfo {
  topic: string;
  id: string;
  state: State;
  /** When it can be delivered next; while a handler runs, when the lease expires. */
  due?: Date;
  /** The instant that it was scheduled for. Retries do not change it. */
  activation?: Date;
  /** Deliveries so far. */
  attempts: number;
  /** Deliveries that failed. */
  failures: number;
  lastError: string;
  /** In listings: as `after` it continues behind this timer. */
  cursor: string;
  /** The key by which handlers order timers; empty: none. */
  key: Uint8Array;
}

/** A body with its content type. */
export interface Content {
  body: Uint8Array;
  contentType: string;
  correlationId: string;
  headers: Record<string, string>;
}

/** A timer with its content. */
export interface Timer extends TimerInfo, Content {}

/** Statistics of a topic. Each timer is counted in one of pending, due, leased, retrying, parked. */
export interface Stats {
  total: number;
  pending: number;
  due: number;
  leased: number;
  retrying: number;
  /** Timers that are due and wait until their key is free. */
  parked: number;
  /** Dead letters. */
  dead: number;
  /** Pending, leased and retrying are estimates. */
  estimated: boolean;
  oldestDue?: Date;
  /** How long the oldest due timer is due. */
  lagMs: number;
  /** Since when the topic is paused. Absent: it is not paused. */
  pausedAt?: Date;
  /** When the pause ends by itself. Absent: it does not. */
  pausedUntil?: Date;
}

/** Which timers a listing has. */
export interface ListOptions extends CallOptions {
  /** Only timers that are due before this instant. */
  dueBefore?: Date;
  /** Only timers with a running handler. */
  running?: boolean;
  /** The cursor of a timer, to continue a listing behind it. */
  after?: string;
  /** The most items. Default: all. */
  limit?: number;
}

/** A queue, and the settings of the messages that are published to it. */
export interface Queue {
  queue: string;
  /** Separator in its keys. Default: "::". */
  separator?: string;
  /** Key of its dead letters. Default: the name, the separator and "dlq". */
  deadLetters?: string;
  /** How long a deduplication key suppresses other messages. Default: 1 h. */
  windowMs?: number;
  /** The most messages that may wait. Default: unlimited. */
  cap?: number;
  /** Delete the oldest messages when the queue is full. */
  dropOldest?: boolean;
  /** A dead-lettered message frees its deduplication key. */
  freesKeys?: boolean;
}

/** A message to publish. */
export interface QueueMessage {
  body: Body;
  /** Deduplication key. Default: none. */
  key?: string;
  /** Headers for handlers of Wakebell. Other consumers ignore them. */
  headers?: Record<string, string>;
}

/** The result of publishing a message. */
export interface Published {
  /** Id of the message, or of the earlier one with the same key, or "" if that is unknown. */
  id: string;
  /** The message was published. Otherwise its key suppressed it. */
  fresh: boolean;
}

/** A timer or message that a handler has until `signal` is aborted. */
export interface Lease extends Content {
  /** Name of the topic or queue. */
  topic: string;
  id: string;
  replyTo: string;
  /** The instant that the timer was scheduled for. */
  activation?: Date;
  /** When it was claimed, by the clock of Redis. */
  delivered?: Date;
  /** Deliveries so far, including this one. */
  attempt: number;
  /** Deliveries that failed. */
  failures: number;
  /** The span of this delivery, as headers such as traceparent. Empty: the node does not trace. */
  trace: Record<string, string>;
  /** Aborted with a LeaseLostError when the lease is lost while the handler runs. */
  signal: AbortSignal;
  /**
   * Replaces the body of the timer while its handler runs: a later attempt resumes from it.
   * Rejects with a LeaseLostError if the lease has ended: nothing was stored then. After
   * other errors the body may have been stored.
   */
  checkpoint(body: Body, contentType?: string): Promise<void>;
  /**
   * Reports how far the handler is, 0 to 1, with a note of at most 256 bytes. The node stores
   * one report a second, and the last one. `Client.report` returns it.
   */
  progress(fraction: number, note?: string): Promise<void>;
  /**
   * Gives the timer a result, which is stored if the handler returns. It has at most 4 KiB:
   * the timer becomes a dead letter otherwise. `Client.wait` returns it.
   */
  setResult(value: Body, contentType?: string): void;
}

/** When a recurring schedule fires. */
export type Rule =
  /** At an interval, 1 ms to 100 years; `relative` aligns it to whole days, hours or minutes. */
  | { everyMs: number; relative?: boolean }
  /** A cron expression of 5 fields, or of 6 fields with seconds first. */
  | { cron: string }
  /** The fields of Celery's crontab. Default of each: "*". */
  | { crontab: { minute?: string; hour?: string; dayOfWeek?: string; dayOfMonth?: string; month?: string } }
  /** An RFC 5545 rule, with or without a DTSTART line before it. */
  | { rrule: string };

/** A recurring schedule: each run schedules a timer of the topic with the body. */
export interface Recurring {
  /** 1 to 400 bytes. It must not begin with a colon. */
  name: string;
  /** The topic; with `celery`, the name of the task. */
  topic: string;
  rule: Rule;
  body?: Body;
  contentType?: string;
  /** Arguments of Celery's apply_async: each run sends a task instead of a timer. */
  celery?: { args?: unknown[]; kwargs?: Record<string, unknown>; options?: Record<string, unknown> };
  /** IANA time zone. Default: UTC. */
  zone?: string;
  /** Do not fire at instants that the clocks of the zone skip. */
  skipGaps?: boolean;
  /** Each run is delayed by a random duration up to this one; at most a day. */
  jitterMs?: number;
  /** First and last possible instant, both inclusive. */
  start?: Date;
  until?: Date;
  /** Default: unlimited. */
  maxRuns?: number;
  /** What to do with missed runs: fire the last (default), none, or all up to `misfireLimit`. */
  misfire?: "last" | "skip" | "all";
  /** Up to 10,000. Default: 100. */
  misfireLimit?: number;
  /** What to do with a run while the timer of the run before exists. Default: fire. */
  overlap?: "fire" | "skip" | "queue";
  headers?: Record<string, string>;
}

/** A recurring schedule as it is stored. */
export interface RecurringState {
  name: string;
  topic: string;
  /** The rule in words. */
  rule: string;
  /** The next instant. Absent: never. */
  next?: Date;
  lastRun?: Date;
  runs: number;
  paused: boolean;
  celery: boolean;
  /** Why the entry is unreadable. Only the name is known then. */
  fault: string;
}

/** A run of a recurring schedule that was fired by request. */
export interface Run {
  name: string;
  due?: Date;
  fired?: Date;
  /** Number of the run. */
  run: number;
}
