import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import type { AnswerOf, Asked, RequestOf } from "./commands.js";
import * as errors from "./errors.js";
import { Link } from "./link.js";
import * as endings from "./pb/endings_pb.js";
import * as gateway from "./pb/gateway_pb.js";
import { PublishRequestSchema, QueueMessageSchema } from "./pb/queues_pb.js";
import * as recurring from "./pb/recurring_pb.js";
import { chunks, isLoopback, MAX_MESSAGE, pages } from "./requests.js";
import type { TLSOptions } from "./session.js";
import { Subscription, type Handler, type SubscribeOptions } from "./subscription.js";
import { checkMs } from "./time.js";
import { acquire, guard, type Turn, type TurnOptions } from "./turn.js";
import type * as t from "./types.js";
import * as values from "./values.js";
import { Worker } from "./worker.js";

const MAX_BATCH = 1000, MAX_BATCH_BYTES = 4 << 20;
const MAX_ADDED = 5000;
const MAX_PUBLISH = 500, MAX_PUBLISH_BYTES = 1 << 20;

/** Settings of a client. */
export interface ClientOptions {
  /** The token, or a function that returns the present one; called for each connection. */
  token?: string | (() => string | Promise<string>);
  /** True or settings for a node with TLS. */
  tls?: boolean | TLSOptions;
  /** Send the token without TLS to another host. */
  insecure?: boolean;
  /** Default timeout of requests. Default: 10 s. */
  timeoutMs?: number;
  /** How long the link may be down before requests fail with an UnavailableError. Default: 5 s. */
  deadLinkMs?: number;
  /** How long a turn stays valid without contact to the node, 1 s to 24 h. Default: 10 s. */
  turnTTLMs?: number;
  /** The largest request in bytes, 64 KiB to 1 GiB: the `MaxMessage` of the node. Default: 8 MiB. */
  maxMessageBytes?: number;
  /**
   * Returns the current span as headers such as traceparent, for timers and messages: the
   * carrier of OpenTelemetry's `propagation.inject`.
   */
  trace?: () => Record<string, string>;
  /** Receives warnings, such as the errors of handlers. Default: console.warn. */
  log?: (message: string, error?: unknown) => void;
}

/**
 * A client of a node. It connects when it is first used, and again whenever the link
 * breaks. Requests are sent again then, until their timeout.
 */
export class Client {
  readonly #link: Link;
  readonly #timeoutMs: number;
  readonly #turnTTLMs: number;
  readonly #trace: (() => Record<string, string>) | undefined;
  readonly #subscriptions = new Set<Subscription>();
  #closing: Promise<void> | undefined;

  /** `address` is the host:port of the node. Throws an InvalidError. */
  constructor(address: string, options: ClientOptions = {}) {
    const { token = "", tls = false, insecure = false, turnTTLMs = 10_000, maxMessageBytes = MAX_MESSAGE } = options;
    const match = /^(.+):(\d{1,5})$/.exec(address);
    const port = Number(match?.[2]);
    if (match === null || port < 1 || port > 65535) {
      throw new errors.InvalidError(`address ${JSON.stringify(address)}, want host:port`);
    }
    if (!(turnTTLMs >= 1000 && turnTTLMs <= 86_400_000)) {
      throw new errors.InvalidError(`turnTTLMs ${turnTTLMs}, want 1,000 to 86,400,000`);
    }
    if (!(maxMessageBytes >= 1 << 16 && maxMessageBytes <= 1 << 30)) {
      throw new errors.InvalidError(`maxMessageBytes ${maxMessageBytes}, want 64 KiB to 1 GiB`);
    }
    if (token !== "" && tls === false && !insecure && !isLoopback(match[1] as string)) {
      throw new errors.InvalidError(`address ${JSON.stringify(address)} needs tls, because the network could read the token`);
    }
    this.#timeoutMs = checkMs(options.timeoutMs ?? 10_000, "timeoutMs");
    this.#turnTTLMs = turnTTLMs;
    this.#trace = options.trace;
    this.#link = new Link({
      address, tls: tls === true ? {} : tls || undefined, deadLinkMs: checkMs(options.deadLinkMs ?? 5000, "deadLinkMs"),
      maxMessageBytes, token: typeof token === "string" ? () => token : token,
      log: quietly(options.log ?? ((message, error) => console.warn(`wakebell: ${message}`, ...(error === undefined ? [] : [error])))),
    });
  }

  /**
   * Stops the subscriptions, releases the turns and ends the session. Running handlers
   * have `timeoutMs` to return (default: 10 s; Infinity: no limit). Throws an
   * InvalidError.
   */
  close(options: { timeoutMs?: number } = {}): Promise<void> {
    checkMs(options.timeoutMs ?? 0, "timeoutMs");
    this.#closing ??= (async () => {
      await Promise.all([...this.#subscriptions].map((subscription) => subscription.stop(options)));
      await this.#link.close();
    })();
    return this.#closing;
  }

  #call<C extends Asked>(kind: C, request: RequestOf<C>, options: t.CallOptions): Promise<AnswerOf<C>> {
    if (this.#trace !== undefined && "trace" in request) {
      Object.assign(request.trace, this.#trace());
    }
    return this.#link.call(kind, request, options.timeoutMs ?? this.#timeoutMs, options.signal);
  }

  /** Returns how many bytes of a list fit into one request. */
  #bytes(most: number): number {
    return Math.min(most, this.#link.options.maxMessageBytes / 2);
  }

  // Timers

  /**
   * Schedules a timer. A request that is sent again replaces its own timer; a timer that
   * was due at once may be delivered twice, unless it has an `idempotencyKey`. `key` is the timer's.
   */
  async schedule(topic: string, body: t.Body, options: t.ScheduleOptions & t.KeyOptions = {}): Promise<t.Scheduled> {
    const request = values.scheduleRequest({ ...options, topic, body }, options.idempotencyKey);
    return values.scheduled(await this.#call("schedule", request, options));
  }

  /**
   * Schedules many timers, in requests of up to 1,000. After an error some of them may be
   * scheduled. Repeating the call is safe. Drafts with `after` must fit into one request with
   * their parts; larger joins use `open`, `partOf` and `closeJoin`.
   */
  async scheduleBatch(drafts: Iterable<t.Draft>, options: t.KeyOptions = {}): Promise<t.Scheduled[]> {
    const requests = Array.from(drafts, (draft) => values.scheduleRequest(draft, options.idempotencyKey));
    const done: t.Scheduled[] = [];
    const split = [...chunks(gateway.ScheduleRequestSchema, requests, MAX_BATCH, this.#bytes(MAX_BATCH_BYTES))];
    if (split.length > 1 && requests.some((request) => request.after.length > 0)) {
      throw new errors.InvalidError("drafts with after in a batch of more than one request: use open, partOf and closeJoin");
    }
    for (const timers of split) {
      const key = options.idempotencyKey ? `${options.idempotencyKey}#${done.length}` : "";
      const request = create(gateway.ScheduleBatchRequestSchema, { timers, key });
      done.push(...(await this.#call("scheduleBatch", request, options)).timers.map(values.scheduled));
    }
    return done;
  }

  /** Removes up to 1,000 timers, and returns the state of each before. Aborts running handlers. */
  async cancel(topic: string, ids: string | string[], options: t.KeyOptions = {}): Promise<t.Presence[]> {
    const request = create(gateway.CancelRequestSchema, { topic, ids: [ids].flat(), key: options.idempotencyKey ?? "" });
    return (await this.#call("cancel", request, options)).found.map(values.presence);
  }

  /** Returns a timer with its content. Errors: NotFoundError. */
  async get(topic: string, id: string, options: t.CallOptions = {}): Promise<t.Timer> {
    const answer = await this.#call("getTimer", create(gateway.GetTimerRequestSchema, { topic, id }), options);
    return values.timer(topic, answer.timer as gateway.Timer);
  }

  /** Yields the timers of a topic, sorted by instant, then by id. */
  async *list(topic: string, options: t.ListOptions = {}): AsyncGenerator<t.TimerInfo, void, undefined> {
    const { dueBefore, running = false } = options;
    for await (const page of pages(options, async (after, limit) => {
      const due = dueBefore === undefined ? {} : { dueBefore: values.instant(dueBefore, "dueBefore") };
      const request = create(gateway.ListTimersRequestSchema, { topic, running, after, limit, ...due });
      const answer = await this.#call("listTimers", request, options);
      return { items: answer.timers, next: answer.next };
    })) {
      yield* page.map((m) => values.timerInfo(topic, m));
    }
  }

  /** Gives a timer a new instant. Its attempts start again from 0. Errors: NotFoundError. */
  async reschedule(topic: string, id: string, when: t.When, options: t.CallOptions = {}): Promise<t.Scheduled> {
    const at = values.when(when);
    if (at.case === undefined) {
      throw new errors.InvalidError("reschedule wants one of at and delayMs");
    }
    const request = create(gateway.RescheduleRequestSchema, { topic, id, when: at as gateway.RescheduleRequest["when"] });
    return values.scheduled(await this.#call("reschedule", request, options));
  }

  /** Makes a timer due now, and returns its state before. */
  async runNow(topic: string, id: string, options: t.CallOptions = {}): Promise<t.Presence> {
    const answer = await this.#call("runNow", create(gateway.RunNowRequestSchema, { topic, id }), options);
    return values.presence(answer.found);
  }

  /** Returns the statistics of a topic. */
  async stats(topic: string, options: t.CallOptions = {}): Promise<t.Stats> {
    const answer = await this.#call("getTopicStats", create(gateway.GetTopicStatsRequestSchema, { topic }), options);
    return values.stats(answer.stats as gateway.TopicStats);
  }

  /** Returns what the handler of a timer has reported. The node keeps it for an hour by default. */
  async report(topic: string, id: string, options: t.CallOptions = {}): Promise<t.Report> {
    const request = create(endings.WaitTimerRequestSchema, { topic, id, report: true });
    return values.report(await this.#link.waitTimer(request, options.timeoutMs ?? this.#timeoutMs, options.signal));
  }

  /**
   * Waits until a timer has ended, and returns how; without `timeoutMs` for as long as it takes.
   * Errors: DeadlineError if it has not ended within `timeoutMs`.
   */
  async wait(topic: string, id: string, options: t.CallOptions = {}): Promise<t.Ending> {
    const request = create(endings.WaitTimerRequestSchema, { topic, id });
    return values.ending(await this.#link.waitTimer(request, options.timeoutMs ?? Infinity, options.signal));
  }

  // Joins

  /** Returns the state of the join of a timer. Errors: NotFoundError. */
  async join(topic: string, id: string, options: t.CallOptions = {}): Promise<t.Join> {
    const answer = await this.#call("getJoin", create(endings.GetJoinRequestSchema, { topic, id }), options);
    return values.joinOf(answer.join as endings.Join);
  }

  /**
   * Yields the parts of the join of a timer, in the order in which they were added. Errors:
   * NotFoundError; ForbiddenError without the right to read the topics of all parts.
   */
  async *parts(topic: string, id: string, options: t.PartsOptions = {}): AsyncGenerator<t.PartEnd, void, undefined> {
    yield* this.#parts(topic, id, "", options);
  }

  /** Yields the parts of the join of the timer that a handler has, as `parts` does. */
  async *partsOf(lease: t.Lease, options: t.CallOptions = {}): AsyncGenerator<t.PartEnd, void, undefined> {
    const name = lease.headers["wakebell-join"];
    if (name === undefined) {
      throw new errors.NotFoundError(`timer ${JSON.stringify(lease.id)} on ${JSON.stringify(lease.topic)} has no join`);
    }
    yield* this.#parts(lease.topic, lease.id, name, options);
  }

  async *#parts(topic: string, id: string, joinName: string, options: t.PartsOptions): AsyncGenerator<t.PartEnd, void, undefined> {
    const { running = false } = options;
    for await (const page of pages(options, async (after, limit) => {
      const request = create(endings.ListPartsRequestSchema, { topic, id, joinName, running, after, limit });
      const answer = await this.#call("listParts", request, options);
      return { items: answer.parts, next: answer.next };
    })) {
      yield* page.map(values.partEnd);
    }
  }

  /**
   * Adds timers that exist to an open join, in requests of up to 5,000. Those that do not exist
   * any more count as ended. Errors: NotFoundError; InvalidError if the join is closed.
   */
  async addParts(topic: string, id: string, parts: readonly t.Part[], options: t.CallOptions = {}): Promise<void> {
    const all = values.parts(parts).map((part) => create(gateway.TimerPartSchema, part));
    for (const some of chunks(gateway.TimerPartSchema, all, MAX_ADDED, this.#bytes(MAX_BATCH_BYTES))) {
      await this.#call("addParts", create(endings.AddPartsRequestSchema, { topic, id, parts: some }), options);
    }
  }

  /** Closes a join to further parts. Errors: NotFoundError. */
  async closeJoin(topic: string, id: string, options: t.CallOptions = {}): Promise<void> {
    await this.#call("closeJoin", create(endings.CloseJoinRequestSchema, { topic, id }), options);
  }

  /**
   * Cancels the timer of a join and the parts that have not ended, and returns how many these
   * are. Errors: NotFoundError; ForbiddenError, and nothing is cancelled, without the right to
   * read or to schedule on the topic of one of them.
   */
  async cancelJoin(topic: string, id: string, options: t.CallOptions = {}): Promise<number> {
    const topics = new Set<string>();
    for await (const part of this.parts(topic, id, { ...options, running: true })) {
      topics.add(part.topic);
    }
    topics.delete(topic);
    const request = create(endings.CancelJoinRequestSchema, { topic, id, topics: [...topics] });
    return Number((await this.#call("cancelJoin", request, options)).parts);
  }

  // Subscriptions

  /**
   * Calls `handler` for each timer of a topic, or message of a `Queue`. When the call
   * resolves, the timer is done. When it throws a Retry, the timer is delivered again
   * after its delay; with a Reject it is dead-lettered; with any other error it is
   * delivered again after the backoff of the node.
   *
   * The lease is extended while the handler runs. When it is lost, for example because
   * the timer was cancelled, `lease.signal` is aborted, and another subscriber may have
   * the timer.
   *
   * When the link breaks, the subscription continues over a new one. Timers whose leases
   * have expired meanwhile are delivered again. The subscription ends with its `stop` or
   * the client's `close`.
   *
   * Errors: InvalidError; ConflictError if the node handles the topic itself;
   * ForbiddenError; UnauthenticatedError; UnavailableError; ClosedError if the client is
   * closed meanwhile.
   */
  async subscribe(source: string | t.Queue, options: SubscribeOptions, handler: Handler): Promise<Subscription> {
    if (this.#closing !== undefined) {
      throw new errors.ClosedError("the client is closed");
    }
    const { name, credits = 5 } = options;
    if (!(Number.isInteger(credits) && credits >= 1 && credits <= 10_000)) {
      throw new errors.InvalidError(`credits ${credits}, want 1 to 10,000`);
    }
    const [topic, queue] = typeof source === "string" ? [source, undefined] : [source.queue, source];
    const worker = new Worker(this.#link, topic, queue, handler, name, credits);
    const subscription = new Subscription(worker);
    this.#subscriptions.add(subscription); // before it starts, so that close stops it also then
    const forget = () => void this.#subscriptions.delete(subscription);
    subscription.ended.then(forget, forget);
    try {
      await worker.start();
    } catch (error) {
      forget();
      throw error;
    }
    return subscription;
  }

  // Queues

  /** Publishes a message to a queue. `key` is its deduplication key. Errors: QueueFullError. */
  async publish(queue: string | t.Queue, body: t.Body, options: t.CallOptions & { key?: string } = {}): Promise<t.Published> {
    const message = options.key === undefined ? { body } : { body, key: options.key };
    return (await this.publishBatch(queue, [message], options))[0] as t.Published;
  }

  /**
   * Publishes messages in their order. Each is published once, however often it is sent: a request is
   * sent again for at most 45 seconds.
   * Errors: QueueFullError, with the results of the messages that were published.
   */
  async publishBatch(queue: string | t.Queue, messages: Iterable<t.QueueMessage>, options: t.CallOptions = {}): Promise<t.Published[]> {
    const q = typeof queue === "string" ? { queue } : queue;
    const all = Array.from(messages, (m) => create(QueueMessageSchema, values.messageOf(m)));
    const done: t.Published[] = [];
    for (const part of chunks(QueueMessageSchema, all, MAX_PUBLISH, this.#bytes(MAX_PUBLISH_BYTES))) {
      const request = create(PublishRequestSchema, {
        name: q.queue, queue: values.queueOf(q), messages: part, cap: q.cap ?? 0,
        dropOldest: q.dropOldest ?? false, freesKeys: q.freesKeys ?? false,
        ...(q.windowMs === undefined ? {} : { window: values.duration(q.windowMs, "windowMs") }),
      });
      const answer = await this.#call("publish", request, options);
      done.push(...answer.messages.map(({ id, fresh }) => ({ id, fresh })));
      if (answer.messages.length < part.length) {
        throw new errors.QueueFullError(`queue ${JSON.stringify(q.queue)} is full`, done);
      }
    }
    return done;
  }

  // Gates

  /**
   * Calls `work` with a turn at a gate, releases the turn, and returns the result. If the
   * turn is lost meanwhile, `turn.signal` is aborted, and the call ends with a
   * TurnLostError when `work` has ended. Other options and errors are those of `acquire`.
   */
  async turn<T>(gate: string, work: (turn: Turn) => Promise<T> | T, options: TurnOptions = {}): Promise<T> {
    const turn = await this.acquire(gate, options);
    let result: T;
    try {
      result = await work(turn);
    } catch (error) {
      await turn.release().catch(() => {}); // the error of work is the first one
      const lost: unknown = turn.signal.reason;
      if (lost instanceof errors.TurnLostError && lost !== error) {
        throw new errors.TurnLostError(lost.message, { cause: error });
      }
      throw error;
    }
    await turn.release();
    return result;
  }

  /**
   * Waits for a turn at a gate, in the order of the requests. Errors: DeadlineError after
   * `timeoutMs`; GateHeldError if `wait` is false and the gate is held.
   */
  async acquire(gate: string, options: TurnOptions = {}): Promise<Turn> {
    if (this.#closing !== undefined) {
      throw new errors.ClosedError("the client is closed");
    }
    return acquire(this.#link, gate, options, this.#turnTTLMs);
  }

  /** Throws a FenceStaleError if the resource has seen a newer fencing token. */
  async guard(gate: string, resource: string, fence: bigint, options: t.CallOptions = {}): Promise<void> {
    await guard(this.#link, gate, resource, fence, options.timeoutMs ?? this.#timeoutMs);
  }

  // Recurring schedules

  /** Stores up to 1,000 recurring schedules. Each replaces the one of its name. */
  async putRecurring(schedules: t.Recurring | t.Recurring[], options: t.CallOptions = {}): Promise<void> {
    const all = [schedules].flat().map(values.recurring);
    await this.#call("putRecurring", create(recurring.PutRecurringRequestSchema, { schedules: all }), options);
  }

  /** Deletes a recurring schedule. Timers that it has scheduled stay. Errors: NoScheduleError. */
  async deleteRecurring(name: string, options: t.CallOptions = {}): Promise<void> {
    await this.#call("deleteRecurring", create(recurring.DeleteRecurringRequestSchema, { name }), options);
  }

  /** Pauses or resumes a recurring schedule. Errors: NoScheduleError. */
  async enableRecurring(name: string, enabled: boolean, options: t.CallOptions = {}): Promise<void> {
    await this.#call("enableRecurring", create(recurring.EnableRecurringRequestSchema, { name, enabled }), options);
  }

  /** Fires a recurring schedule now, once, even if it is paused. By default each call has an `idempotencyKey` of its own. */
  async runRecurring(name: string, options: t.KeyOptions = {}): Promise<t.Run> {
    const request = create(recurring.RunRecurringRequestSchema, { name, key: options.idempotencyKey ?? randomUUID() });
    return values.run(await this.#call("runRecurring", request, options));
  }

  /** Returns a recurring schedule. Errors: NoScheduleError. */
  async getRecurring(name: string, options: t.CallOptions = {}): Promise<t.RecurringState> {
    const answer = await this.#call("getRecurring", create(recurring.GetRecurringRequestSchema, { name }), options);
    return values.recurringState(answer.schedule as recurring.RecurringState);
  }

  /** Yields the recurring schedules, sorted by name; those after the name `after`. */
  async *listRecurring(options: t.CallOptions & { after?: string; limit?: number } = {}): AsyncGenerator<t.RecurringState, void, undefined> {
    for await (const page of pages(options, async (after, limit) => {
      const answer = await this.#call("listRecurring", create(recurring.ListRecurringRequestSchema, { after, limit }), options);
      return { items: answer.schedules, next: answer.next };
    })) {
      yield* page.map(values.recurringState);
    }
  }

  /** Returns the next instants of a recurring schedule, up to 10,000; 10 by default. */
  async previewRecurring(name: string, count = 10, options: t.CallOptions = {}): Promise<Date[]> {
    const request = create(recurring.PreviewRecurringRequestSchema, { name, count });
    return (await this.#call("previewRecurring", request, options)).instants.map(values.toDate);
  }
}

/** Returns a function that logs and never throws: it is called in the midst of what must go on. */
function quietly(log: NonNullable<ClientOptions["log"]>): NonNullable<ClientOptions["log"]> {
  return (message, error) => {
    try {
      const logged: unknown = log(message, error);
      if (logged instanceof Promise) {
        logged.catch(() => {});
      }
    } catch {
      // There is nowhere else to report it.
    }
  };
}
