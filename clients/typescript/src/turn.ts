/** Turns at gates. */
import { create } from "@bufbuild/protobuf";
import { errorOf } from "./codes.js";
import { ClosedError, DeadlineError, DrainingError, OverloadedError, TurnLostError, UnavailableError } from "./errors.js";
import { LinkBroken, type Link, type Wait } from "./link.js";
import {
  AcquireTurnRequestSchema, ExtendTurnRequestSchema, GuardTurnRequestSchema, ReleaseTurnRequestSchema,
  type Turn as PbTurn, type TurnRefused,
} from "./pb/gates_pb.js";
import { checkMs, sleep } from "./time.js";
import { duration, toMs } from "./values.js";

const MIN_EXTEND = 20; // the shortest pause between two extensions
const REQUEST = 10_000;

/** The place or the turn was lost because the link broke. */
class Again extends Error {}

/** How a turn is waited for. */
export interface TurnOptions {
  /** Default: no limit. */
  timeoutMs?: number;
  /** If false, fail with a GateHeldError when the gate is held or has waiters. Default: true. */
  wait?: boolean;
  /** Ends the wait; the place in the queue is given up. */
  signal?: AbortSignal;
}

/**
 * A turn at a gate. It lasts until `release`, or until it is lost: then `signal` is
 * aborted with a TurnLostError. Pass `fence` to what the turn protects, so that it can
 * refuse writes of an earlier turn.
 */
export class Turn {
  /** The fencing token. It is greater than those of all earlier turns. */
  fence = 0n;
  /** How long the turn was waited for. */
  waitedMs = 0;
  readonly #abort = new AbortController();
  /** Aborted with a TurnLostError when the turn is lost. */
  readonly signal: AbortSignal = this.#abort.signal;
  readonly #place: bigint;
  #until = 0;
  #over = false;
  #expiry: NodeJS.Timeout | undefined;
  #keeper: NodeJS.Timeout | undefined;

  /** @internal */
  constructor(readonly gate: string, private readonly link: Link, private readonly ttlMs: number) {
    this.#place = link.next();
  }

  /** Throws a FenceStaleError if a newer turn has written the resource. */
  async guard(resource: string): Promise<void> {
    await guard(this.link, this.gate, resource, this.fence, REQUEST);
  }

  /** Gives the turn back. Throws a TurnLostError if it was lost before. */
  async release(): Promise<void> {
    this.signal.throwIfAborted();
    if (this.#over) {
      return;
    }
    this.#end();
    for (let again = false; ; again = true) {
      try {
        const answer = await this.link.ask("releaseTurn", this.#releaseRequest(), { deadline: this.#until });
        if (answer.reason !== "" && !again) { // a refused repetition: the first request worked
          const lost = new TurnLostError(`release ${JSON.stringify(this.gate)} (fence ${this.fence}): ${answer.reason}`);
          this.#abort.abort(lost);
          throw lost;
        }
        return;
      } catch (error) {
        if (error instanceof UnavailableError || error instanceof DeadlineError || error instanceof ClosedError) {
          this.link.options.log(`the node takes turn ${this.fence} at ${this.gate} back when its lease expires`, error);
          return;
        }
        if (!(error instanceof LinkBroken)) {
          throw error;
        }
      }
    }
  }

  #releaseRequest() {
    return create(ReleaseTurnRequestSchema, { gate: this.gate, place: this.#place, fence: this.fence });
  }

  /**
   * Waits for the turn. Throws Again if the place was lost.
   *
   * @internal
   */
  async take(wait: boolean, at: Wait): Promise<void> {
    try {
      const answer = await this.#request(wait, at);
      if (answer.$typeName === "wakebell.v1.TurnRefused") {
        throw errorOf(answer.code, answer.reason);
      }
      this.fence = answer.fence;
      this.link.turns.set(this.#place, () => this.#lose());
      while (!(await this.#extended())) {}
    } catch (error) {
      if (error instanceof LinkBroken) {
        throw new Again();
      }
      this.#end();
      this.link.send("releaseTurn", this.#releaseRequest());
      throw error instanceof TurnLostError ? new Again() : error;
    }
    this.#keepLater();
  }

  async #request(wait: boolean, at: Wait): Promise<PbTurn | TurnRefused> {
    const ttl = duration(this.ttlMs, "turnTTLMs");
    for (let pause = 20; ; ) {
      const request = create(AcquireTurnRequestSchema, { gate: this.gate, place: this.#place, ttl, try: !wait });
      try {
        return await this.link.ask("acquireTurn", request, at);
      } catch (error) {
        if (error instanceof OverloadedError || error instanceof DrainingError) { // such as a node that starts
          const late = at.deadline === undefined
            ? error instanceof OverloadedError // by turns that this process may have
            : performance.now() + pause >= at.deadline;
          if (late) {
            throw error;
          }
          await sleep(pause);
          pause = Math.min(2 * pause, 1000);
          continue;
        }
        if (!(error instanceof DeadlineError)) {
          throw error;
        }
        if (at.deadline !== undefined && performance.now() >= at.deadline) {
          throw new DeadlineError(`acquire ${JSON.stringify(this.gate)}: timed out waiting for the turn`);
        }
        // The answer may be lost: ask again for the same place.
      }
    }
  }

  async #extended(): Promise<boolean> {
    try {
      await this.#extend(REQUEST);
      return true;
    } catch (error) {
      if (error instanceof LinkBroken) {
        return false;
      }
      throw error;
    }
  }

  /** Extends the turn. The answer's time counts from the request. */
  async #extend(limit: number): Promise<void> {
    const began = performance.now();
    const request = create(ExtendTurnRequestSchema, { gate: this.gate, place: this.#place, fence: this.fence });
    const answer = await this.link.ask("extendTurn", request, { deadline: began + limit });
    const now = performance.now();
    const until = answer.good === undefined ? 0 : began + toMs(answer.good);
    if (this.#over || until <= now) {
      this.#lose();
      throw new TurnLostError(`turn ${this.fence} at ${JSON.stringify(this.gate)} is over`);
    }
    this.#until = until;
    clearTimeout(this.#expiry);
    this.#expiry = setTimeout(() => this.#lose(), until - now);
  }

  #keepLater(): void {
    const pause = Math.max((this.#until - performance.now()) / 3, MIN_EXTEND);
    this.#keeper = setTimeout(() => void this.#keep(), pause);
  }

  async #keep(): Promise<void> {
    try { // half of the rest leaves time for another request if an answer is lost
      await this.#extend(Math.max((this.#until - performance.now()) / 2, MIN_EXTEND));
    } catch {
      // The turn ends by itself.
    }
    if (!this.#over) {
      this.#keepLater();
    }
  }

  #lose(): void {
    if (!this.#over) {
      this.#end();
      this.#abort.abort(new TurnLostError(`turn ${this.fence} at ${JSON.stringify(this.gate)} was lost`));
    }
  }

  #end(): void {
    this.#over = true;
    this.link.turns.delete(this.#place);
    clearTimeout(this.#expiry);
    clearTimeout(this.#keeper);
  }
}

/** Waits for a turn at a gate. */
export async function acquire(link: Link, gate: string, options: TurnOptions, ttlMs: number): Promise<Turn> {
  const began = performance.now();
  const at: Wait = { signal: options.signal };
  if (options.timeoutMs !== undefined) {
    at.deadline = began + checkMs(options.timeoutMs, "timeoutMs");
  }
  while (true) {
    const turn = new Turn(gate, link, ttlMs);
    try {
      await turn.take(options.wait ?? true, at);
      turn.waitedMs = performance.now() - began;
      return turn;
    } catch (error) {
      if (!(error instanceof Again)) {
        throw error;
      }
    }
  }
}

/** Throws a FenceStaleError if the resource has seen a newer fencing token. */
export async function guard(link: Link, gate: string, resource: string, fence: bigint, timeoutMs: number): Promise<void> {
  await link.call("guardTurn", create(GuardTurnRequestSchema, { gate, resource, fence }), timeoutMs);
}
