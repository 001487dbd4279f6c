/** Helpers of requests: pages, sizes and addresses. */
import { toBinary, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { InvalidError } from "./errors.js";

const MAX_PAGE = 1000;

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
  let chunk: MessageShape<S>[] = [], size = 0;
  for (const message of messages) {
    const bytes = toBinary(of, message).length + 16;
    if (chunk.length > 0 && (chunk.length === most || size + bytes > mostBytes)) {
      yield chunk;
      [chunk, size] = [[], 0];
    }
    chunk.push(message);
    size += bytes;
  }
  if (chunk.length > 0) {
    yield chunk;
  }
}

/** Reports whether a host of an address is this host. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(host);
}
