/** What a subscription does: leases, their handlers and their verdicts. */
import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import type { Duration } from "@bufbuild/protobuf/wkt";
import { errorOf } from "./codes.js";
import * as errors from "./errors.js";
import { Keeper } from "./keep.js";
import { GRACE, LinkBroken, REDIAL_MAX, subscriberKey, type Link, type Listener } from "./link.js";
import * as outcome from "./outcome.js";
import {
  SubscribeRequestSchema, UnsubscribeRequestSchema, VerdictSchema, VerdictsSchema,
  type Leases, type LeasesEnded, type LeasesExtended, type SubscribeRequest, type SubscribeResponse, type Verdict,
} from "./pb/remote_pb.js";
import { LeaseEnd } from "./pb/wakebell_pb.js";
import type { Handler } from "./subscription.js";
import { chunks } from "./requests.js";
import { sleep, within } from "./time.js";
import type { Lease, Queue } from "./types.js";
import * as values from "./values.js";

const CHECK = 100; // how often leases are checked; a lease ends here that much earlier
const CLOCK = 60_000; // how often an idle subscriber sends its clock
const ANSWER = 10_000; // how long the node has to answer a subscription
const MAX_VERDICTS = 500, MAX_VERDICT_BYTES = 1 << 20;

class Running {
  readonly abort = new AbortController();
  until = 0; // when it expires, as confirmed by the node
  extend = 0; // when to request the next extension
  done: Promise<void> = Promise.resolve();

  constructor(readonly id: string, readonly keeper: Keeper) {}

  goodUntil(until: number, now: number): void {
    this.until = until;
    this.extend = now + (until - now) / 3;
  }

  /** Ends the handler. */
  end(kind: typeof errors.LeaseLostError): void {
    this.abort.abort(new kind(`${this.id}: the lease is lost (${kind.name})`));
  }
}

/** Handles the leases of a Subscription. */
export class Worker implements Listener {
  readonly finished: Promise<void>;
  readonly #key: string;
  readonly #running = new Map<bigint, Running>();
  readonly #lost = new Set<bigint>(); // deliveries without a lease here, whose handlers have not returned
  readonly #began = performance.now(); // zero of the clock that the node receives
  readonly #instance = randomUUID(); // a later process with the same name has not its leases
  #verdicts: Verdict[] = [];
  #flushing = false;
  #clockSent = 0;
  #started = false;
  #draining = false;
  #over = false;
  #stopping: Promise<void> | undefined;
  #checks: NodeJS.Timeout | undefined;
  #attempt = 0; // number of the last attempt to subscribe again
  #finish: (error?: Error) => void = () => {};

  constructor(
    readonly link: Link, readonly topic: string, readonly queue: Queue | undefined, readonly handler: Handler,
    readonly name: string, readonly credits: number,
  ) {
    this.#key = subscriberKey({ topic, subscriber: name });
    this.finished = new Promise((resolve, reject) => {
      this.#finish = (error) => (error === undefined ? resolve() : reject(error));
    });
  }

  /** Subscribes. Throws an error that a retry cannot help. */
  async start(): Promise<void> {
    if (this.link.subscribers.has(this.#key)) {
      throw new errors.InvalidError(`name ${JSON.stringify(this.name)} is already subscribed to ${JSON.stringify(this.topic)}`);
    }
    this.link.start();
    this.link.subscribers.set(this.#key, this);
    try {
      while (!this.#over && !(await this.#subscribed())) {}
    } catch (error) {
      this.link.subscribers.delete(this.#key);
      throw error;
    }
    if (this.#over) {
      throw new errors.ClosedError("the client is closed");
    }
    this.#started = true;
    this.#checks = setInterval(() => this.#check(), CHECK);
  }

  async #subscribed(): Promise<boolean> {
    try {
      this.#reconcile(await this.#subscribe(this.credits));
      return true;
    } catch (error) {
      if (error instanceof errors.OverloadedError || error instanceof errors.DrainingError) {
        await sleep(REDIAL_MAX / 2);
      } else if (!(error instanceof LinkBroken)) {
        throw error;
      }
      return false;
    }
  }

  opened(): void {
    if (this.#started) {
      void this.#subscribeAgain(++this.#attempt);
    }
  }

  /** Subscribes again. lost says why the right was withdrawn, if it was. */
  async #subscribeAgain(attempt: number, lost?: unknown): Promise<void> {
    const report = (why: unknown) => this.link.options.log(`the subscription to ${this.topic} has lost its right; asking for it again`, why);
    if (lost !== undefined) {
      report(lost);
    }
    while (!this.#over && attempt === this.#attempt) {
      try {
        this.#reconcile(await this.#subscribe(this.#draining ? Math.max(this.#running.size, 1) : this.credits));
        return;
      } catch (error) {
        if (error instanceof LinkBroken || error instanceof errors.ClosedError) {
          return; // opened is called again
        }
        const final = [errors.InvalidError, errors.ConflictError, errors.UnauthenticatedError];
        if (final.some((kind) => error instanceof kind)) {
          this.#fail(error as Error);
          return;
        }
        if (!(error instanceof errors.ForbiddenError)) {
          this.link.options.log(`cannot subscribe to ${this.topic}`, error);
        } else if (lost === undefined) { // it may come back
          lost = error;
          report(lost);
        }
      }
      await sleep(REDIAL_MAX / 2);
    }
  }

  #request(credits: number): SubscribeRequest {
    return create(SubscribeRequestSchema, {
      topic: this.topic, subscriber: this.name, credits, clock: this.#clock(), instance: this.#instance,
      ...(this.queue === undefined ? {} : { queue: values.queueOf(this.queue) }),
    });
  }

  #subscribe(credits: number): Promise<SubscribeResponse> {
    return this.link.ask("subscribe", this.#request(credits), { deadline: performance.now() + ANSWER });
  }

  /** Releases the leases that the node lists and that it does not have. Lost ones of handlers that go on expire. */
  #reconcile(m: SubscribeResponse): void {
    const pending = new Set(this.#verdicts.map((v) => v.kind.value?.delivery));
    for (const { id, delivery } of m.held) {
      if (!this.#running.has(delivery) && !this.#lost.has(delivery) && !pending.has(delivery)) {
        this.#add(id, { case: "release", value: { delivery } });
      }
    }
  }

  #clock(): Duration {
    return values.duration(performance.now() - this.#began, "clock");
  }

  /** Returns when the node sent a message, or a little earlier. */
  #sentAt(clock: Duration | undefined, now: number): number {
    return clock === undefined ? now : Math.min(this.#began + values.toMs(clock), now);
  }

  leases(m: Leases): void {
    const now = performance.now();
    const sent = this.#sentAt(m.clock, now);
    for (const lease of m.leases) {
      const until = sent + (lease.ttl === undefined ? 0 : values.toMs(lease.ttl));
      if (this.#over || now + CHECK >= until) {
        continue; // it is delivered again
      }
      if (this.#draining) {
        this.#add(lease.id, { case: "release", value: { delivery: lease.delivery } });
        continue;
      }
      const of = { topic: this.topic, subscriber: this.name, id: lease.id, delivery: lease.delivery };
      const run = new Running(lease.id, new Keeper(this.link, of, this.queue !== undefined));
      run.goodUntil(until, now);
      this.#running.set(lease.delivery, run);
      run.done = this.#serve(run, lease.delivery, values.lease(lease, run.abort.signal, run.keeper));
    }
  }

  async #serve(run: Running, delivery: bigint, lease: Lease): Promise<void> {
    const thrown = await outcome.run(this.handler, lease);
    const aborted = lease.signal.aborted;
    this.#lost.delete(delivery);
    if (thrown !== undefined && !aborted && !outcome.isMeant(thrown)) {
      this.link.options.log(`the handler of ${this.topic} failed on ${lease.id}, attempt ${lease.attempt}`, thrown.error);
    }
    if (this.#over || this.#running.get(delivery) !== run) {
      return; // it was lost, or is left to expire
    }
    this.#running.delete(delivery);
    if (this.#draining) {
      this.#narrow(); // before the verdict, which makes room for another lease
    }
    const released = thrown !== undefined && aborted && !outcome.isMeant(thrown);
    this.#add(run.id, released ? { case: "release", value: { delivery } } : outcome.verdictOf(thrown, delivery, run.keeper.result, this.link.options.maxMessageBytes / 2));
  }

  extended(m: LeasesExtended): void {
    const now = performance.now();
    const sent = this.#sentAt(m.clock, now);
    for (const { id, delivery, ttl } of m.extended) {
      const run = this.#running.get(delivery), until = sent + (ttl === undefined ? 0 : values.toMs(ttl));
      if (run?.id === id && until > run.until) {
        run.goodUntil(until, now);
      }
    }
  }

  ended(m: LeasesEnded): void {
    const kinds: Partial<Record<LeaseEnd, typeof errors.LeaseLostError>> = {
      [LeaseEnd.CANCELLED]: errors.LeaseCancelledError,
      [LeaseEnd.TOO_OLD]: errors.LeaseTooOldError,
      [LeaseEnd.DRAINING]: errors.LeaseDrainingError,
    };
    for (const { delivery, reason } of m.ended) {
      const kind = kinds[reason] ?? errors.LeaseLostError;
      if (reason === LeaseEnd.DRAINING) {
        this.#running.get(delivery)?.end(kind); // the node waits for the verdict, which counts if it comes soon
      } else {
        this.#lose(delivery, kind);
      }
    }
    if (m.subscription !== undefined && this.#started) { // it has ended too
      void this.#subscribeAgain(++this.#attempt, errorOf(m.subscription.code, m.subscription.message));
    }
  }

  #lose(delivery: bigint, kind: typeof errors.LeaseLostError): void {
    const run = this.#running.get(delivery);
    if (run !== undefined) {
      this.#running.delete(delivery);
      this.#lost.add(delivery);
      run.end(kind);
    }
  }

  /** Extends leases, and ends those that expired. */
  #check(): void {
    const now = performance.now();
    for (const [delivery, run] of this.#running) {
      if (now + CHECK >= run.until) {
        this.#lose(delivery, errors.LeaseLostError);
      } else if (now > run.extend) {
        run.extend = now + (run.until - now) / 3;
        this.#add(run.id, { case: "extend", value: { delivery } });
      }
    }
    this.#flush();
    if (now - this.#clockSent >= CLOCK) {
      this.#send([]);
    }
  }

  #add(id: string, kind: outcome.VerdictKind): void {
    this.#verdicts.push(create(VerdictSchema, { id, kind }));
    if (!this.#flushing) {
      this.#flushing = true;
      setImmediate(() => this.#flush());
    }
  }

  /** Sends the verdicts. If there is no link, they stay for the next one. */
  #flush(): void {
    this.#flushing = false;
    for (const some of chunks(VerdictSchema, this.#verdicts, MAX_VERDICTS, Math.min(MAX_VERDICT_BYTES, this.link.options.maxMessageBytes / 2))) {
      if (!this.#send(some)) {
        return;
      }
      this.#verdicts = this.#verdicts.slice(some.length);
    }
  }

  #send(verdicts: Verdict[]): boolean {
    const message = create(VerdictsSchema, { topic: this.topic, subscriber: this.name, verdicts, clock: this.#clock() });
    const sent = this.link.send("verdicts", message);
    if (sent) {
      this.#clockSent = performance.now();
    }
    return sent;
  }

  /** Leaves no credits but those of the leases that are held. */
  #narrow(): void {
    this.#flush();
    if (this.#running.size > 0) {
      this.link.send("subscribe", this.#request(this.#running.size));
    }
  }

  stop(timeoutMs: number): Promise<void> {
    this.#stopping ??= this.#stop(timeoutMs);
    return this.#stopping;
  }

  async #stop(timeoutMs: number): Promise<void> {
    this.#draining = true;
    this.#narrow();
    const all = Promise.all([...this.#running.values()].map((run) => run.done));
    if (!(await within(all, timeoutMs))) {
      this.#running.forEach((run) => run.abort.abort(new errors.ClosedError("the subscription is stopped")));
      await within(all, GRACE);
    }
    this.#over = true;
    clearInterval(this.#checks);
    this.#flush();
    if (this.link.up) {
      const request = create(UnsubscribeRequestSchema, { topic: this.topic, subscriber: this.name, running: [...this.#running.keys(), ...this.#lost] });
      await this.link.ask("unsubscribe", request, { deadline: performance.now() + GRACE }).catch(() => {}); // the leases expire
    }
    this.#end();
  }

  #fail(error: Error): void {
    this.link.options.log(`the subscription to ${this.topic} ended`, error);
    [...this.#running.keys()].forEach((delivery) => this.#lose(delivery, errors.LeaseLostError));
    this.#end(error);
  }

  #end(error?: Error): void {
    this.#over = true;
    clearInterval(this.#checks);
    this.link.subscribers.delete(this.#key);
    this.#finish(error);
  }
}
