/** Helpers of requests: pages, sizes and addresses. */
import { toBinary, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { InvalidError } from "./errors.js";

const MAX_PAGE = 1000;
export const MAX_MESSAGE = 8 << 20;
/** Bounds what a frame adds to a request, in bytes. */
export const OVERHEAD = 64;
const MAX_VALUES = 200_000 - 16; // of a request: a node counts texts, bytes and messages
/** A frame of so many bytes has no more values than a node accepts, because each takes two. */
export const MAX_FRAME_BYTES = 2 * MAX_VALUES;

/** Returns the size of a message in bytes. Throws an InvalidError if it cannot be encoded. */
export function sizeOf<S extends DescMessage>(of: S, message: MessageShape<S>): number {
  try {
    return toBinary(of, message).length;
  } catch (error) { // an argument of another type than its own
    throw new InvalidError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

/** Throws an InvalidError for a request that the node would refuse by ending the link. */
export function checkSize(request: unknown, size: number, most: number): void {
  if (size + OVERHEAD > most) {
    throw new InvalidError(`request of ${size} bytes, the limit is maxMessageBytes, ${most}`);
  }
  if (size > MAX_FRAME_BYTES && valuesOf(request) > MAX_VALUES) {
    throw new InvalidError(`request of more than ${MAX_VALUES} values`);
  }
}

/** Returns how many texts, bytes and messages there are in a value of a message, at most. */
export function valuesOf(value: unknown): number {
  if (typeof value === "string" || value instanceof Uint8Array) {
    return 1;
  }
  if (typeof value !== "object" || value === null) {
    return 0;
  }
  const inner = Object.values(value).reduce((count: number, each) => count + valuesOf(each), 0);
  if (Array.isArray(value)) {
    return inner;
  }
  return inner + ("$typeName" in value ? 1 : 2 * Object.keys(value).length); // a message, or a map of texts
}

/** Yields the pages of a listing, up to its limit. */
export async function* pages<T>(
  options: { after?: string; limit?: number }, read: (after: string, limit: number) => Promise<{ items: T[]; next: string }>,
): AsyncGenerator<T[], void, undefined> {
  let left = options.limit ?? Infinity;
  if (!(left >= 0)) {
    throw new InvalidError(`limit ${left}, want at least 0`);
  }
  for (let after = options.after ?? ""; left > 0; ) {
    const page = await read(after, left === Infinity ? 0 : Math.min(left, MAX_PAGE));
    yield page.items;
    if (page.next === "") {
      return;
    }
    after = page.next;
    left -= page.items.length;
  }
}

/** Splits messages into lists that fit into one request each. */
export function* chunks<S extends DescMessage>(of: S, messages: MessageShape<S>[], most: number, mostBytes: number): Generator<MessageShape<S>[]> {
  const sizes = messages.map((message) => sizeOf(of, message) + 16);
  const dense = sizes.reduce((sum, bytes) => sum + bytes, 0) > MAX_FRAME_BYTES; // else there are not too many values
  let chunk: MessageShape<S>[] = [], size = 0, count = 0;
  for (const [n, message] of messages.entries()) {
    const bytes = sizes[n] as number, values = dense ? valuesOf(message) : 0;
    if (chunk.length > 0 && (chunk.length === most || size + bytes > mostBytes || count + values > MAX_VALUES)) {
      yield chunk;
      [chunk, size, count] = [[], 0, 0];
    }
    chunk.push(message);
    size += bytes;
    count += values;
  }
  if (chunk.length > 0) {
    yield chunk;
  }
}

/** Reports whether a host of an address is this host. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(host);
}
