/**
 * What handlers return and throw means for their leases. They may throw anything: an
 * error whose text throws, a value that is no error, a proxy. None of this may concern
 * more than its own lease.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Reject, Retry, Snooze } from "./errors.js";
import type { Content } from "./pb/gateway_pb.js";
import type { VerdictSchema } from "./pb/remote_pb.js";
import type { Handler } from "./subscription.js";
import type { Lease } from "./types.js";
import { duration } from "./values.js";

export type VerdictKind = NonNullable<MessageInitShape<typeof VerdictSchema>["kind"]>;

/** What a handler threw. */
export interface Thrown {
  readonly error: unknown;
}

const MAX_REASON = 1024;

/** Runs a handler. Returns what it threw, if it threw. */
export async function run(handler: Handler, lease: Lease): Promise<Thrown | undefined> {
  try {
    const result: unknown = await handler(lease);
    if (/^\[object (Async)?Generator\]$/.test(Object.prototype.toString.call(result))) {
      throw new TypeError("the handler returned a generator, which never runs");
    }
    return undefined;
  } catch (error) {
    return { error };
  }
}

/** Returns the verdict for a lease. `most` is what fits of a result, in bytes. */
export function verdictOf(thrown: Thrown | undefined, delivery: bigint, result?: Content, most = 1 << 20): VerdictKind {
  if (thrown === undefined) {
    if (result !== undefined && result.body.length > most) { // as the node says of one that is smaller
      return { case: "reject", value: { delivery, reason: `result: ${result.body.length} bytes, the limit is 4096` } };
    }
    return { case: "ack", value: { delivery, ...(result === undefined ? {} : { result }) } };
  }
  const reason = textOf(thrown.error).slice(0, MAX_REASON);
  try {
    if (thrown.error instanceof Reject) {
      return { case: "reject", value: { delivery, reason } };
    }
    if (thrown.error instanceof Retry) {
      const { delayMs } = new Retry(thrown.error.delayMs); // which checks what a subclass has changed
      return { case: "nack", value: { delivery, reason, delay: duration(delayMs, "delayMs"), snooze: thrown.error instanceof Snooze } };
    }
  } catch (broken) { // by a subclass or a proxy of the user's
    return { case: "nack", value: { delivery, reason: textOf(broken).slice(0, MAX_REASON) } };
  }
  return { case: "nack", value: { delivery, reason } };
}

/** Returns whether a handler threw Retry or Reject, which are no faults. */
export function isMeant(thrown: Thrown): boolean {
  try {
    return thrown.error instanceof Reject || thrown.error instanceof Retry;
  } catch {
    return false;
  }
}

/** Returns the text of anything that was thrown, as well-formed Unicode. It does not throw. */
export function textOf(error: unknown): string {
  try {
    const text: unknown = error instanceof Error ? error.message || error.name : error;
    return Buffer.from(String(text)).toString();
  } catch {
    return `a value of type ${typeof error} whose text throws`;
  }
}
