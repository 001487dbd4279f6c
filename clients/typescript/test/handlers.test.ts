import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { inspect } from "node:util";
import { ClosedError, DeadlineError, InvalidError, Reject, Retry, type Lease } from "../src/index.js";
import { deferred, dial, eventually, name, Node } from "./node.js";

class Changed extends Retry {
  constructor(delay: unknown) {
    super(0);
    Object.assign(this, { delayMs: delay });
  }
}

const mute = { toString() { throw new Error("in toString"); }, [inspect.custom]() { throw new Error("in inspect"); } };
const hostile = new Proxy({}, { getPrototypeOf() { throw new Error("in getPrototypeOf"); }, get() { throw new Error("in get"); } });

class Mute extends Error {
  override get message(): string {
    throw mute;
  }
}

/** What a handler may throw, each made anew. */
const throws: (() => unknown)[] = [
  ...[NaN, Infinity, -Infinity, -1, 1e300, "soon", undefined, 10n].map((delay) => () => new Changed(delay)),
  () => new Retry(NaN), () => new Retry(-5), () => new Mute(), () => mute, () => hostile, () => Object.create(null) as unknown,
  ...[undefined, null, 0, NaN, "", "text", "\ud800", 7n, Symbol("s"), [], {}, () => 1].map((value) => () => value),
  () => Object.assign(new Error(), { message: 5 }), () => Object.assign(new Error(), { message: mute }), () => new Error("\ud800".repeat(3000)),
  () => new AggregateError([mute], "many"), () => new DOMException("aborted", "AbortError"), () => new ClosedError("closed"),
  () => Object.freeze(new TypeError("frozen")), () => Promise.reject(new Error("not awaited")).catch(() => {}),
];

/** What a handler may return that is a failure. */
const strange: (() => unknown)[] = [
  () => ({ then() { throw new Error("in then"); } }),
  () => ({ then(_: unknown, reject: (error: unknown) => void) { reject(mute); } }),
  () => ({ get then() { throw mute; } }),
  () => (function* () { yield 1; })(),
  () => (async function* () { yield 1; })(),
];

describe("handlers", () => {
  const node = new Node();
  const client = dial(node, { log: (_, error) => { throw error; } }); // a logger that throws
  before(() => node.start());
  after(async () => {
    await client.close();
    await node.end("SIGTERM");
  });
  const settled = (topic: string) => eventually(async () => (await client.stats(topic)).total === 0);

  /** Sees that `count` timers fail once each, and the client works on. */
  async function settle(count: number, handle: (lease: Lease) => unknown): Promise<void> {
    const topic = name(), attempts: Record<string, number> = {};
    await client.subscribe(topic, { name: "s", credits: 10 }, (lease) => {
      attempts[lease.id] = lease.attempt;
      return handle(lease);
    });
    await client.scheduleBatch(Array.from({ length: count }, (_, n) => ({ topic, id: `${n}` })));
    await settled(topic);
    assert.deepEqual(attempts, Object.fromEntries(Array.from({ length: count }, (_, n) => [`${n}`, 2])));
  }

  test("may throw anything", () => settle(throws.length, (lease) => {
    if (lease.attempt === 1) {
      throw throws[Number(lease.id)]?.();
    }
  }));

  test("may reject with anything", () => settle(throws.length, (lease) => (lease.attempt === 1 ? Promise.reject(throws[Number(lease.id)]?.()) : undefined)));

  test("may return anything", () => settle(strange.length, (lease) => (lease.attempt === 1 ? strange[Number(lease.id)]?.() : { then: 1 })));

  test("do not stop a client at random", async () => {
    const seed = Number(process.env["WAKEBELL_TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 32));
    console.log(`WAKEBELL_TEST_SEED=${seed}`);
    let state = seed;
    const draw = <T>(from: readonly T[]): T => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return from[Math.floor((state / 2 ** 32) * from.length)] as T;
    };
    await settle(200, async (lease) => {
      await draw([undefined, new Promise(setImmediate)]);
      if (lease.attempt > 1) {
        return draw<unknown>([undefined, 0, "text", {}, Symbol("s"), [1]]);
      }
      if (draw([true, false])) {
        throw draw(throws)();
      }
      return draw(strange)();
    });
  });

  test("reject with any reason", async () => {
    const topic = name(), reasons: unknown[] = ["", "x".repeat(5000), "\ud800", undefined, mute];
    await client.subscribe(topic, { name: "s" }, (lease) => {
      throw Object.assign(new Reject(), { message: reasons[Number(lease.id)] });
    });
    await client.scheduleBatch(reasons.map((_, n) => ({ topic, id: `${n}` })));
    await settled(topic);
    assert.equal((await client.stats(topic)).dead, reasons.length);
  });
});

describe("timeouts", () => {
  const node = new Node([], "1m");
  before(() => node.start());
  after(() => node.end("SIGTERM"));

  test("a close without a limit lets handlers finish", async () => {
    const client = dial(node), topic = name(), began = deferred<void>(), finish = deferred<void>();
    let aborted: boolean | undefined;
    await client.subscribe(topic, { name: "s" }, async (lease) => {
      began.resolve();
      await finish.promise;
      aborted = lease.signal.aborted;
    });
    await client.schedule(topic, "x");
    await began.promise;
    const closing = client.close({ timeoutMs: Infinity });
    await new Promise((resolve) => setTimeout(resolve, 50)); // longer than a timer of Infinity, which runs at once
    finish.resolve();
    await closing;
    assert.equal(aborted, false);
  });

  test("a stop leaves the leases of handlers that go on to expire", async () => {
    const client = dial(node), topic = name(), finish = deferred<void>();
    let began = 0;
    const subscription = await client.subscribe(topic, { name: "s" }, async (lease) => {
      began++;
      if (lease.id === "goes on") {
        await finish.promise; // it ignores the signal
      } else {
        await new Promise((resolve) => lease.signal.addEventListener("abort", resolve));
      }
    });
    await client.scheduleBatch([{ topic, id: "goes on" }, { topic, id: "ends" }]);
    await eventually(() => began === 2);
    await subscription.stop({ timeoutMs: 10 });
    await assert.rejects(client.get(topic, "ends"), { name: "NotFoundError" }); // it was settled
    const { state, attempts } = await client.get(topic, "goes on");
    assert.deepEqual({ state, attempts }, { state: "running", attempts: 1 });
    finish.resolve();
    await client.close();
  });

  test("a request may have no limit", async () => {
    const client = dial(node);
    for (const timeoutMs of [Infinity, 2 ** 31]) {
      assert.equal((await client.stats(name(), { timeoutMs })).total, 0);
    }
    await client.close();
  });

  test("others are refused", async () => {
    const client = dial(node);
    for (const timeoutMs of [NaN, -1, "5" as unknown as number]) {
      await assert.rejects(client.stats(name(), { timeoutMs }), InvalidError);
      await assert.rejects(client.acquire(name(), { timeoutMs }), InvalidError);
      assert.throws(() => client.close({ timeoutMs }), InvalidError);
      assert.throws(() => dial(node, { timeoutMs }), InvalidError);
    }
    await assert.rejects(client.stats(name(), { timeoutMs: 0 }), DeadlineError);
    await client.close();
  });
});
