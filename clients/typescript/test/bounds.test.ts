import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Client, DeadlineError, InvalidError, type Draft } from "../src/index.js";
import { dial, eventually, logged, name, Node } from "./node.js";

describe("requests that cannot be sent", () => {
  const node = new Node();
  const client = dial(node);
  before(() => node.start());
  after(async () => {
    await client.close();
    await node.end("SIGTERM");
  });

  /** Fails if the link broke meanwhile. */
  async function onOneLink(work: () => Promise<void>): Promise<void> {
    await client.stats(name());
    const before = logged.filter((line) => line.includes("no link")).length;
    await work();
    assert.equal(logged.filter((line) => line.includes("no link")).length, before);
  }

  test("a number that a field does not have is refused, and neither ends the process nor the requests of others", async () => {
    await onOneLink(async () => {
      await assert.rejects(client.list(name(), { limit: 1.5 }).next(), InvalidError);
      await assert.rejects(client.guard(name(), "r", -1n), InvalidError);
      await assert.rejects(client.previewRecurring(name(), -1), InvalidError);
      await assert.rejects(client.publish({ queue: name(), cap: 1.5 }, "x"), InvalidError);
      await client.stats(name());
    });
  });

  test("a request that is too large is refused, and the link stays", async () => {
    await onOneLink(async () => {
      await assert.rejects(client.schedule(name(), new Uint8Array(9 << 20), { delayMs: 3_600_000 }), { message: /maxMessageBytes/ });
      await client.stats(name());
    });
    assert.throws(() => new Client(node.address, { maxMessageBytes: 1 }), InvalidError);
  });

  test("batches are divided by their bytes and values", async () => {
    const topic = name(), queue = name();
    const headers = Object.fromEntries(Array.from({ length: 80 }, (_, n) => [`h${n}`, ""]));
    const all = (count: number, of: Omit<Draft, "topic">): Draft[] => Array.from({ length: count }, () => ({ topic, delayMs: 3_600_000, ...of }));
    await onOneLink(async () => {
      assert.equal((await client.scheduleBatch(all(1000, { body: "", headers }))).length, 1000);
      const small = dial(node, { maxMessageBytes: 1 << 16 });
      await small.scheduleBatch(all(20, { body: new Uint8Array(9000) }));
      await small.publishBatch(queue, Array.from({ length: 20 }, () => ({ body: new Uint8Array(9000) })));
      await small.close();
    });
    assert.equal((await client.stats(topic)).total, 1020);
  });

  test("requests at once have few enough values in a frame", async () => {
    const parts = Array.from({ length: 5000 }, (_, n) => ({ topic: "t", id: String(n) }));
    await onOneLink(async () => {
      const adding = Array.from({ length: 20 }, () => client.addParts(name(), "x", parts));
      for (const added of adding) {
        await assert.rejects(added, { code: "NOT_FOUND" });
      }
    });
  });

  test("a request waits no longer than its timeout and its signal for others", async () => {
    const others: Promise<unknown>[] = [];
    await onOneLink(async () => {
      node.signal("SIGSTOP");
      others.push(...Array.from({ length: 512 }, () => client.stats(name())));
      const gone = new AbortController();
      setTimeout(() => gone.abort(new Error("gone")), 50);
      await assert.rejects(client.stats(name(), { timeoutMs: 50 }), DeadlineError);
      await assert.rejects(client.stats(name(), { signal: gone.signal }), /gone/);
    }).finally(() => node.signal("SIGCONT"));
    await Promise.all(others);
    await client.stats(name());
  });

  test("a result that is far too large makes a dead letter", async () => {
    const topic = name(), attempts: number[] = [];
    await client.schedule(topic, "x");
    await onOneLink(async () => {
      const subscription = await client.subscribe(topic, { name: "s" }, (lease) => {
        attempts.push(lease.attempt);
        lease.setResult(new Uint8Array(9 << 20));
      });
      await eventually(async () => (await client.stats(topic)).dead === 1);
      await subscription.stop();
    });
    assert.deepEqual(attempts, [1]);
  });
});
