/** Waiting. */
import { InvalidError } from "./errors.js";

const LONGEST = 2 ** 31 - 1; // setTimeout runs at once for a longer time

/** Calls a function after a time, never if the time is longer than setTimeout has (24.8 days). */
export function after(ms: number, call: () => void): NodeJS.Timeout | undefined {
  return ms > LONGEST ? undefined : setTimeout(call, ms);
}

/** Waits for a time. */
export async function sleep(ms: number): Promise<void> {
  await new Promise<void>((resolve) => after(ms, resolve));
}

/** Waits for a promise, at most for a time. Returns whether it was settled in time. */
export async function within(work: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = after(ms, () => resolve(false));
  });
  const done = await Promise.race([work.then(() => true), late]);
  clearTimeout(timer);
  return done;
}

/** Returns a time that an option has, at least 0. Infinity has no end. Throws an InvalidError. */
export function checkMs(ms: number, name: string): number {
  if (typeof ms !== "number" || Number.isNaN(ms) || ms < 0) {
    throw new InvalidError(`${name} ${String(ms)}, want a number of milliseconds, at least 0`);
  }
  return ms;
}
