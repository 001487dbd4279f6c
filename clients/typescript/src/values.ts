/** Conversions between the values of this package and the messages of the node. */
import { randomBytes, randomInt, randomUUID } from "node:crypto";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { DurationSchema, TimestampSchema, type Duration, type Timestamp } from "@bufbuild/protobuf/wkt";
import { InvalidError } from "./errors.js";
import type { Keeper } from "./keep.js";
import type { Join as PbJoin, PartEnd as PbPartEnd, TimerResult, WaitTimerResponse } from "./pb/endings_pb.js";
import { ScheduleRequestSchema, type ScheduleRequest, type Timer as PbTimer, type TopicStats } from "./pb/gateway_pb.js";
import type { QueueMessageSchema, QueueSchema } from "./pb/queues_pb.js";
import type { RecurrenceSchema, RecurringSchema, RecurringState as PbRecurringState, RunRecurringResponse } from "./pb/recurring_pb.js";
import type { Lease as PbLease } from "./pb/wakebell_pb.js";
import type * as t from "./types.js";

const policies = { replace: 1, keep: 2, earliest: 3 } as const;
const outcomes = ["", "created", "replaced", "superseded", "kept pending", "kept running", "kept earlier", "moved", "already done"];
const presences = ["", "absent", "pending", "running"];
const states = ["", "pending", "retrying", "running", "never", "parked"];

/** The content types of bodies. */
export const TEXT = "text/plain", JSON_TYPE = "application/json";

/** Returns a duration as a message. */
export function duration(ms: number, what: string): Duration {
  if (!(Math.abs(ms) < 3.2e14)) {
    throw new InvalidError(`${what} ${ms}, want at most 10,000 years`);
  }
  const seconds = Math.trunc(ms / 1000);
  const micros = Math.round((ms - seconds * 1000) * 1000);
  return create(DurationSchema, micros === 1e6 ? { seconds: BigInt(seconds + 1) } : { seconds: BigInt(seconds), nanos: micros * 1000 });
}

/** Returns an instant as a message. */
export function instant(at: Date, what: string): Timestamp {
  const ms = at.getTime();
  if (Number.isNaN(ms)) {
    throw new InvalidError(`${what} is an invalid Date`);
  }
  const seconds = Math.floor(ms / 1000);
  return create(TimestampSchema, { seconds: BigInt(seconds), nanos: (ms - seconds * 1000) * 1e6 });
}

/** Returns a duration in milliseconds. */
export function toMs(d: Duration): number {
  return Number(d.seconds) * 1000 + d.nanos / 1e6;
}

/** Returns an instant. Digits below a millisecond are cut off. */
export function toDate(at: Timestamp): Date {
  return new Date(Number(at.seconds) * 1000 + Math.floor(at.nanos / 1e6));
}

/** Returns a body and its content type. */
export function encode(body: t.Body, contentType?: string): { body: Uint8Array; contentType: string } {
  if (body === undefined) {
    return { body: new Uint8Array(), contentType: contentType ?? "" };
  }
  if (body instanceof Uint8Array) {
    return { body, contentType: contentType ?? "" };
  }
  if (contentType !== undefined) {
    throw new InvalidError(`contentType ${JSON.stringify(contentType)} of a body that is no Uint8Array`);
  }
  if (typeof body === "string") {
    return { body: Buffer.from(body), contentType: TEXT };
  }
  let text: string | undefined;
  try {
    text = JSON.stringify(body) as string | undefined;
  } catch (error) {
    throw new InvalidError(`body is no JSON value: ${String(error)}`, { cause: error });
  }
  if (text === undefined) {
    throw new InvalidError(`body is no Uint8Array, string or JSON value: ${typeof body}`);
  }
  return { body: Buffer.from(text), contentType: JSON_TYPE };
}

/** Returns the body of a timer, lease or message as text. */
export function text(of: { body: Uint8Array }): string {
  return Buffer.from(of.body).toString();
}

/** Returns the body of a timer, lease or message decoded as JSON. */
export function json<T = unknown>(of: { body: Uint8Array }): T {
  return JSON.parse(text(of)) as T;
}

/** Returns a body as its content type says: a string, a JSON value, or a Uint8Array. */
export function value(of: { body: Uint8Array; contentType: string }): unknown {
  switch (of.contentType) {
    case TEXT:
      return text(of);
    case JSON_TYPE:
      return json(of);
    default:
      return of.body;
  }
}

/** Returns the instant or the delay of a request. */
export function when(at: t.When): ScheduleRequest["when"] & { case: "at" | "in" | undefined } {
  if (at.at !== undefined && at.delayMs !== undefined) {
    throw new InvalidError("at and delayMs exclude each other");
  }
  if (at.at !== undefined) {
    return { case: "at", value: instant(at.at, "at") };
  }
  if (at.delayMs !== undefined) {
    return { case: "in", value: duration(at.delayMs, "delayMs") };
  }
  return { case: undefined };
}

/**
 * Returns the request that schedules a draft. It has an id, so that it can be sent
 * again; with an idempotency key the node makes the id, so that repeated calls are equal.
 */
export function scheduleRequest(d: t.Draft, idempotencyKey = ""): ScheduleRequest {
  let planned: ScheduleRequest["when"] = when(d);
  if (d.debounce !== undefined) {
    if (planned.case !== undefined) {
      throw new InvalidError("at, delayMs and debounce exclude each other");
    }
    const limit = d.debounce.limitMs === undefined ? {} : { limit: duration(d.debounce.limitMs, "limitMs") };
    planned = { case: "debounce", value: { delay: duration(d.debounce.delayMs, "delayMs"), ...limit } } as ScheduleRequest["when"];
  }
  if (d.id === "") {
    throw new InvalidError('id "", want 1 to 512 bytes');
  }
  if (d.id === undefined && (d.debounce !== undefined || d.onceMs !== undefined)) {
    const option = d.debounce === undefined ? "onceMs" : "debounce";
    throw new InvalidError(`${option} without an id: calls are compared by the id, and without one each is a new timer`);
  }
  return create(ScheduleRequestSchema, {
    topic: d.topic, id: d.id ?? (idempotencyKey === "" ? newId() : ""), ...encode(d.body, d.contentType),
    correlationId: d.correlationId ?? "", headers: headers(d), when: planned, key: idempotencyKey,
    ifExists: d.ifExists === undefined ? 0 : policies[d.ifExists],
    timerKey: typeof d.key === "string" ? new TextEncoder().encode(d.key) : (d.key ?? new Uint8Array()),
    ...(d.onceMs === undefined ? {} : { once: duration(d.onceMs, "onceMs") }), ...joins(d),
  });
}

/** Returns a random id of 22 digits and letters, like those that the Go library makes. */
function newId(): string {
  const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  return Array.from({ length: 22 }, () => digits.charAt(randomInt(digits.length))).join("");
}

/** The most parts of joins in a request. */
const MAX_PARTS = 10_000;

/** Returns parts as messages. */
export function parts(of: readonly t.Part[]): { topic: string; id: string }[] {
  return of.map(({ topic, id }) => ({ topic, id }));
}

/** Returns what a draft has to do with joins. A join has a name, so that it can be sent again. */
function joins(d: t.Draft): Pick<MessageInitShape<typeof ScheduleRequestSchema>, "after" | "open" | "partOf" | "joinName"> {
  const after = d.after ?? [];
  if (after.length > MAX_PARTS) {
    throw new InvalidError(`after has ${after.length} parts, want at most 10,000; add more with addParts`);
  }
  const joined = d.after !== undefined || d.open === true;
  return { after: parts(after), open: d.open ?? false, partOf: parts(d.partOf ?? []), joinName: joined ? randomUUID() : "" };
}

function result(m: TimerResult | undefined): { result?: t.Result } {
  if (m === undefined) {
    return {};
  }
  const c = m.content;
  return { result: {
    body: c?.body ?? new Uint8Array(), contentType: c?.contentType ?? "", correlationId: c?.correlationId ?? "", headers: c?.headers ?? {},
    attempt: m.attempt, ...date("activation", m.activation), ...date("at", m.at),
  } };
}

export function report(m: WaitTimerResponse): t.Report {
  const p = m.progress;
  const progress = p === undefined ? {} : { progress: { fraction: p.fraction, note: p.note, attempt: p.attempt, ...date("at", p.at) } };
  return { ...progress, ...result(m.result) };
}

export function ending(m: WaitTimerResponse): t.Ending {
  return { end: m.end as t.End, reason: m.reason, ...report(m) };
}

export function joinOf(m: PbJoin): t.Join {
  return {
    open: m.open, parts: Number(m.parts), done: Number(m.done), dead: Number(m.dead),
    cancelled: Number(m.cancelled), missing: Number(m.missing),
  };
}

export function partEnd(m: PbPartEnd): t.PartEnd {
  return {
    topic: m.part?.topic ?? "", id: m.part?.id ?? "", ...(m.end === "" ? {} : { end: m.end as t.End }),
    reason: m.reason, ...date("at", m.at), ...result(m.result), cursor: m.cursor,
  };
}

function headers(d: t.Draft): Record<string, string> {
  if (d.expireAfterMs === undefined) {
    return d.headers ?? {};
  }
  if (!(d.expireAfterMs >= 1 && d.expireAfterMs <= 365 * 24 * 3600 * 1000)) {
    throw new InvalidError(`expireAfterMs ${d.expireAfterMs}, want 1 to 31536000000 (365 days)`);
  }
  return { ...d.headers, "wakebell-expire-after": `${Math.round(d.expireAfterMs * 1000)}us` };
}

function date<K extends string>(key: K, at: Timestamp | undefined): { [P in K]?: Date } {
  return (at === undefined ? {} : { [key]: toDate(at) }) as { [P in K]?: Date };
}

export function scheduled(m: { id: string; due?: Timestamp; outcome: number; found?: Timestamp }): t.Scheduled {
  return {
    id: m.id, due: m.due === undefined ? new Date(0) : toDate(m.due), outcome: outcomes[m.outcome] as t.Outcome,
    ...date("found", m.found),
  };
}

export function presence(p: number): t.Presence {
  return presences[p] as t.Presence;
}

export function timerInfo(topic: string, m: PbTimer): t.TimerInfo {
  return {
    topic, id: m.id, state: states[m.state] as t.State, ...date("due", m.due), ...date("activation", m.activation),
    attempts: m.attempts, failures: m.failures, lastError: m.lastError, cursor: m.cursor, key: m.key,
  };
}

export function timer(topic: string, m: PbTimer): t.Timer {
  const c = m.content;
  return {
    ...timerInfo(topic, m), body: c?.body ?? new Uint8Array(), contentType: c?.contentType ?? "",
    correlationId: c?.correlationId ?? "", headers: c?.headers ?? {},
  };
}

export function stats(m: TopicStats): t.Stats {
  return {
    total: Number(m.total), pending: Number(m.pending), due: Number(m.due), leased: Number(m.leased),
    retrying: Number(m.retrying), parked: Number(m.parked), dead: Number(m.dead), estimated: m.estimated, ...date("oldestDue", m.oldestDue),
    lagMs: m.lag === undefined ? 0 : toMs(m.lag), ...date("pausedAt", m.pausedAt), ...date("pausedUntil", m.pausedUntil),
  };
}

export function lease(m: PbLease, signal: AbortSignal, keeper: Keeper): t.Lease {
  return {
    topic: m.topic, id: m.id, body: m.body, contentType: m.contentType, correlationId: m.correlationId,
    replyTo: m.replyTo, headers: m.headers, ...date("activation", m.activation), ...date("delivered", m.delivered),
    attempt: m.attempt, failures: m.failures, trace: m.trace, signal,
    checkpoint: (body, contentType) => keeper.checkpoint(body, contentType),
    progress: (fraction, note = "") => keeper.progress(fraction, note),
    setResult: (value, contentType) => keeper.setResult(value, contentType),
  };
}

export function queueOf(q: t.Queue): MessageInitShape<typeof QueueSchema> {
  return { separator: q.separator ?? "", deadLetters: q.deadLetters ?? "" };
}

/** Returns a message to publish. It has a tail, so that the request can be sent again. */
export function messageOf(m: t.QueueMessage): MessageInitShape<typeof QueueMessageSchema> {
  return { body: encode(m.body).body, key: m.key ?? "", tail: tail(), headers: m.headers ?? {} };
}

function tail(): string {
  // The last 20 digits of a UUID of version 7 begin with the version.
  const digits = randomBytes(10).toString("hex");
  return `7${digits.slice(1, 4)}${"89ab"[parseInt(digits.charAt(4), 16) % 4]}${digits.slice(5)}`;
}

export function recurring(r: t.Recurring): MessageInitShape<typeof RecurringSchema> {
  const misfire = r.misfire ?? "last", overlap = r.overlap ?? "fire";
  const recurrence: MessageInitShape<typeof RecurrenceSchema> = {
    rule: rule(r.rule), relative: "everyMs" in r.rule && r.rule.relative === true, zone: r.zone ?? "",
    skipGaps: r.skipGaps ?? false, maxRuns: BigInt(r.maxRuns ?? 0), misfire: misfire === "last" ? "" : misfire,
    misfireLimit: r.misfireLimit ?? 0, overlap: overlap === "fire" ? "" : overlap, headers: r.headers ?? {},
    ...(r.jitterMs === undefined ? {} : { jitter: duration(r.jitterMs, "jitterMs") }),
    ...(r.start === undefined ? {} : { start: instant(r.start, "start") }),
    ...(r.until === undefined ? {} : { until: instant(r.until, "until") }),
  };
  const c = r.celery;
  const part = (of: unknown) => (of === undefined ? new Uint8Array() : encode(of).body);
  return {
    name: r.name, topic: r.topic, when: recurrence, ...encode(r.body, r.contentType),
    ...(c === undefined ? {} : { celery: { args: part(c.args), kwargs: part(c.kwargs), options: part(c.options) } }),
  };
}

function rule(r: t.Rule): NonNullable<MessageInitShape<typeof RecurrenceSchema>["rule"]> {
  if ("everyMs" in r) {
    return { case: "every", value: duration(r.everyMs, "everyMs") };
  }
  if ("cron" in r) {
    return { case: "cron", value: r.cron };
  }
  return "rrule" in r ? { case: "rrule", value: r.rrule } : { case: "crontab", value: r.crontab };
}

export function recurringState(m: PbRecurringState): t.RecurringState {
  return {
    name: m.name, topic: m.topic, rule: m.rule, ...date("next", m.next), ...date("lastRun", m.lastRun),
    runs: Number(m.runs), paused: m.paused, celery: m.celery, fault: m.fault,
  };
}

export function run(m: RunRecurringResponse): t.Run {
  return { name: m.name, ...date("due", m.due), ...date("fired", m.fired), run: Number(m.run) };
}
