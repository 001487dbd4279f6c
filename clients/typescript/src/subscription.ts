import { checkMs } from "./time.js";
import type { Lease } from "./types.js";
import type { Worker } from "./worker.js";

/** Handles a timer or a message. */
export type Handler = (lease: Lease) => unknown;

/** Settings of a subscription. */
export interface SubscribeOptions {
  /**
   * Identifies the subscriber among those with the same token, 1 to 256 bytes. Use the
   * same name after a restart. A later subscription of the same name replaces this one.
   */
  name: string;
  /** How many handlers run at a time, 1 to 10,000. Default: 5. */
  credits?: number;
}

/** A running subscription. It ends with `stop`, or when the client is closed. */
export class Subscription {
  /** Resolves when the subscription was stopped; rejects with the reason if it ended by itself. */
  readonly ended: Promise<void>;
  readonly #worker: Worker;

  /** @internal */
  constructor(worker: Worker) {
    this.#worker = worker;
    this.ended = worker.finished;
    this.ended.catch(() => {}); // it was logged
  }

  /**
   * Ends the subscription. No more leases are accepted. Running handlers have `timeoutMs`
   * to return (default: 10 s; Infinity: no limit); then their signals are aborted. The leases of handlers
   * that go on for another second are not released but expire, so that no other handler runs beside them.
   */
  async stop(options: { timeoutMs?: number } = {}): Promise<void> {
    await this.#worker.stop(checkMs(options.timeoutMs ?? 10_000, "timeoutMs"));
  }
}
