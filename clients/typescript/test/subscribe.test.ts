import { create } from "@bufbuild/protobuf";
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ClosedError, ConflictError, InvalidError, json, LeaseCancelledError, LeaseDrainingError, LeaseLostError, NotFoundError, Reject, Retry, TurnLostError, type Lease } from "../src/index.js";
import type { Link } from "../src/link.js";
import { LeasesEndedSchema, LeasesSchema, SubscribeResponseSchema, type SubscribeResponse } from "../src/pb/remote_pb.js";
import { LeaseSchema } from "../src/pb/wakebell_pb.js";
import { Worker } from "../src/worker.js";
import { deferred, dial, eventually, logged, name, Node, patience, pause } from "./node.js";

describe("subscriptions", () => {
  const node = new Node();
  const client = dial(node, { turnTTLMs: 5000 });
  before(() => node.start());
  after(async () => {
    await client.close();
    await node.end("SIGTERM");
  });
  const settled = (topic: string) => eventually(async () => (await client.stats(topic)).total === 0);

  test("what the handler throws settles the timer", async () => {
    const topic = name(), attempts: Record<string, number> = {};
    let reason = "";
    await client.subscribe(topic, { name: "s", credits: 10 }, async (lease) => {
      attempts[lease.id] = lease.attempt;
      if (lease.id === "reject") {
        throw new Reject("never");
      }
      if (lease.id === "delay" && lease.attempt === 1) {
        throw new Retry(10, "not yet");
      }
      if (lease.id === "throw") {
        if (lease.attempt === 1) {
          throw new Error("broken");
        }
        reason = (await client.get(topic, lease.id)).lastError;
      }
    });
    await client.scheduleBatch(["ack", "reject", "delay", "throw"].map((id) => ({ topic, id })));
    await settled(topic);
    assert.deepEqual(attempts, { ack: 1, reject: 1, delay: 2, throw: 2 });
    assert.equal(reason, "broken");
    assert.equal((await client.stats(topic)).dead, 1);
    assert(logged.some((message) => message.includes("failed on throw")));
  });

  test("no more handlers run than there are credits", async () => {
    const topic = name();
    let running = 0, peak = 0;
    await client.subscribe(topic, { name: "s", credits: 3 }, async () => {
      peak = Math.max(peak, ++running);
      await pause(1);
      running--;
    });
    await client.scheduleBatch(Array.from({ length: 200 }, () => ({ topic })));
    await settled(topic);
    assert(peak <= 3, `${peak}`);
  });

  test("a cancelled timer aborts its handler", async () => {
    const topic = name(), began = deferred<Lease>(), ended = deferred<unknown>();
    await client.subscribe(topic, { name: "s" }, async (lease) => {
      began.resolve(lease);
      await new Promise((resolve) => lease.signal.addEventListener("abort", resolve));
      ended.resolve(lease.signal.reason);
    });
    await client.schedule(topic, "x", { id: "a" });
    assert.equal((await began.promise).signal.aborted, false);
    assert.deepEqual(await client.cancel(topic, "a"), ["running"]);
    assert(await ended.promise instanceof LeaseCancelledError);
  });

  test("a handler gives its timer back when the node stops", async () => {
    const topic = name(), began = deferred<Lease>(), stopping = await new Node(["--drain-timeout", "100ms"], "1m").start();
    const other = dial(stopping);
    await other.subscribe(topic, { name: "s" }, async (lease) => {
      began.resolve(lease);
      await new Promise((_, reject) => lease.signal.addEventListener("abort", () => reject(new Error("interrupted"))));
    });
    await client.schedule(topic, "x", { id: "a" });
    const lease = await began.promise;
    await stopping.end("SIGTERM");
    await other.close();
    assert(lease.signal.reason instanceof LeaseDrainingError, String(lease.signal.reason));
    const { state, failures } = await client.get(topic, "a");
    assert.deepEqual({ state, failures }, { state: "pending", failures: 0 });
  });

  test("handlers keep checkpoints, progress and results", async () => {
    const topic = name(), bodies: unknown[] = [], refused: unknown[] = [];
    await client.subscribe(topic, { name: "s" }, async (lease) => {
      bodies.push(json(lease));
      await lease.progress(0.5, "half");
      lease.setResult("x".repeat(5000));
      if (lease.attempt === 1) {
        await lease.checkpoint({ page: 2 });
        await lease.progress(2).catch((error: unknown) => refused.push(error));
        throw new Retry(0);
      }
    });
    await client.schedule(topic, { page: 1 }, { id: "a" });
    await settled(topic);
    assert.deepEqual(bodies, [{ page: 1 }, { page: 2 }]);
    assert(refused[0] instanceof InvalidError, String(refused[0]));
    assert.equal((await client.stats(topic)).dead, 1, "its result is too large");
  });

  test("nothing is kept of a lost lease", async () => {
    const topic = name(), failed = deferred<unknown>();
    await client.subscribe(topic, { name: "s" }, async (lease) => {
      await client.cancel(topic, "a");
      await lease.checkpoint("y").catch(failed.resolve);
    });
    await client.schedule(topic, "x", { id: "a" });
    assert(await failed.promise instanceof LeaseLostError);
  });

  test("a long handler keeps its lease and its turn", async () => {
    const topic = name(), gate = name(), attempts: number[] = [];
    await client.subscribe(topic, { name: "s" }, async (lease) => {
      attempts.push(lease.attempt);
      await client.turn(gate, () => pause(6000)); // longer than the lease of each
    });
    await client.schedule(topic, "x");
    await settled(topic);
    assert.deepEqual(attempts, [1], `attempts ${attempts}, the log: ${logged.join("\n")}`);
  });

  test("a stop lets running handlers finish and accepts no more", async () => {
    const topic = name(), finish = deferred<void>();
    let began = 0, handled = 0;
    const subscription = await client.subscribe(topic, { name: "s", credits: 2 }, async () => {
      began++;
      await finish.promise;
      handled++;
    });
    await client.scheduleBatch(Array.from({ length: 20 }, () => ({ topic })));
    await eventually(() => began === 2);
    const stopping = subscription.stop({ timeoutMs: patience });
    finish.resolve();
    await stopping;
    await subscription.ended;
    assert.equal(handled, 2);
    await eventually(async () => (await client.stats(topic)).due === 18);
  });

  test("a stop aborts handlers that take too long", async () => {
    const topic = name(), began = deferred<void>();
    const subscription = await client.subscribe(topic, { name: "s" }, async (lease) => {
      began.resolve();
      await new Promise((_, reject) => lease.signal.addEventListener("abort", () => reject(lease.signal.reason as Error)));
    });
    await client.schedule(topic, "x", { id: "a" });
    await began.promise;
    await subscription.stop({ timeoutMs: 10 });
    await eventually(async () => {
      const { state, attempts } = await client.get(topic, "a");
      return state === "pending" && attempts === 0;
    });
  });

  test("a new subscription replaces the former of its name", async () => {
    const topic = name(), began = deferred<void>(), finish = deferred<void>(), taken = deferred<string>();
    await client.subscribe(topic, { name: "s" }, async () => {
      began.resolve();
      await finish.promise;
    });
    await client.schedule(topic, "x", { id: "first" });
    await began.promise;
    const other = dial(node);
    await other.subscribe(topic, { name: "s" }, (lease) => taken.resolve(lease.id));
    await client.schedule(topic, "x", { id: "second" });
    assert.equal(await taken.promise, "second"); // the handler of the first goes on
    assert.equal((await client.get(topic, "first")).attempts, 1);
    finish.resolve();
    await eventually(async () => {
      try {
        await client.get(topic, "first");
        return false;
      } catch (error) {
        return error instanceof NotFoundError;
      }
    });
    await other.close();
  });

  test("messages of a queue are handled", async () => {
    const queue = { queue: name() }, bodies: unknown[] = [];
    await client.subscribe(queue, { name: "s" }, (lease) => {
      if (lease.attempt === 1 && json<{ n: number }>(lease).n === 0) {
        throw new Retry(10);
      }
      bodies.push(json(lease));
    });
    await client.publishBatch(queue, [0, 1, 2].map((n) => ({ body: { n } })));
    await eventually(() => bodies.length === 3);
    assert.deepEqual(new Set(bodies.map((body) => JSON.stringify(body))), new Set([0, 1, 2].map((n) => JSON.stringify({ n }))));
    await assert.rejects(client.subscribe(queue.queue, { name: "other" }, () => {}), ConflictError);
  });

  test("a client that is closed while a subscription starts leaves nothing behind", async () => {
    const closing = dial(node);
    await closing.stats(name()); // the link is up
    const refused = assert.rejects(closing.subscribe(name(), { name: "s" }, () => {}), ClosedError);
    await closing.close();
    await refused;
  });

  test("a subscription that is stopped before it has its answer does not start", async () => {
    const answer = deferred<SubscribeResponse>();
    const link = { subscribers: new Map(), up: false, options: { maxMessageBytes: 8 << 20 }, start() {}, ask: () => answer.promise };
    const worker = new Worker(link as unknown as Link, name(), undefined, () => {}, "s", 1);
    const starting = worker.start();
    await worker.stop(0);
    answer.resolve(create(SubscribeResponseSchema));
    await assert.rejects(starting, ClosedError);
    assert.equal(link.subscribers.size, 0);
  });

  test("a lease that is lost while its handler goes on is not released", async () => {
    const held = [1n, 2n].map((delivery) => create(LeaseSchema, { id: `${delivery}`, delivery, ttl: { seconds: 3600n } }));
    const asked: { running?: bigint[] }[] = [], released: bigint[] = [], begun = deferred<void>();
    const link = {
      subscribers: new Map(), up: true, options: { maxMessageBytes: 8 << 20 }, start() {},
      ask: (_: string, request: { running?: bigint[] }) => {
        asked.push(request);
        return Promise.resolve(create(SubscribeResponseSchema, { held: asked.length > 1 ? held : [] }));
      },
      send: (_: string, m: { verdicts?: { kind: { case?: string; value?: { delivery: bigint } } }[] }) => {
        m.verdicts?.forEach(({ kind }) => kind.case === "release" && released.push(kind.value!.delivery));
        return true;
      },
    };
    const goesOn = deferred<void>();
    const worker = new Worker(link as unknown as Link, name(), undefined, () => { begun.resolve(); return goesOn.promise; }, "s", 2);
    await worker.start();
    worker.leases(create(LeasesSchema, { leases: [held[0]!] }));
    await begun.promise;
    worker.ended(create(LeasesEndedSchema, { ended: [{ id: "1", delivery: 1n }] }));
    worker.opened();
    await eventually(() => Promise.resolve(released.length > 0));
    assert.deepEqual(released, [2n]);
    await worker.stop(0);
    assert.deepEqual(asked.at(-1)?.running, [1n]);
    goesOn.resolve();
  });

  test("a subscription that cannot be is refused", async () => {
    const topic = name();
    await assert.rejects(client.subscribe(topic, { name: "" }, () => {}), InvalidError);
    await assert.rejects(client.subscribe(topic, { name: "s", credits: 0 }, () => {}), InvalidError);
    await client.subscribe(topic, { name: "s" }, () => {});
    await assert.rejects(client.subscribe(topic, { name: "s" }, () => {}), { name: "InvalidError", message: /already subscribed/ });
  });
});

describe("a node that is killed", () => {
  const node = new Node([], "1s");
  const client = dial(node, { deadLinkMs: patience, turnTTLMs: 1000 });
  before(() => node.start());
  after(async () => {
    await client.close();
    await node.end("SIGTERM");
    await assert.rejects(client.subscribe(name(), { name: "s" }, () => {}), ClosedError);
  });
  const settled = (topic: string) => eventually(async () => (await client.stats(topic)).total === 0);

  test("a subscriber reconnects and no timer is lost", async () => {
    const topic = name(), handled = new Set<string>();
    await client.subscribe(topic, { name: "s", credits: 20 }, async (lease) => {
      await pause(2);
      handled.add(lease.id);
    });
    await client.scheduleBatch(Array.from({ length: 300 }, (_, n) => ({ topic, id: String(n) })));
    await eventually(() => handled.size > 50);
    await node.end("SIGKILL");
    const more = client.schedule(topic, "while the node is down", { id: "300" });
    await node.start();
    await more;
    await settled(topic);
    assert.deepEqual(handled, new Set(Array.from({ length: 301 }, (_, n) => String(n))));
  });

  test("a handler is aborted before its lease can be delivered again", async () => {
    const topic = name(), leases: Lease[] = [];
    await client.subscribe(topic, { name: "s" }, async (lease) => {
      if (leases.push(lease) === 1) {
        await new Promise((resolve) => lease.signal.addEventListener("abort", resolve));
      }
    });
    await client.schedule(topic, "x");
    await eventually(() => leases.length === 1);
    await node.end("SIGKILL");
    await node.start();
    await settled(topic);
    assert(leases[0]?.signal.reason instanceof LeaseLostError);
    assert((leases[1]?.attempt ?? 0) > (leases[0]?.attempt ?? 0));
  });

  test("a turn that is lost is aborted", async () => {
    const lost = client.turn(name(), async (turn) => {
      await node.end("SIGKILL");
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    });
    await assert.rejects(lost, TurnLostError);
    await node.start();
  });
});
