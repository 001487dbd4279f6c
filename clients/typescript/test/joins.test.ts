import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import * as wakebell from "../src/index.js";
import { deferred, dial, name, Node } from "./node.js";

describe("joins", () => {
  const node = new Node();
  const client = dial(node);
  before(() => node.start());
  after(async () => {
    await client.close();
    await node.end("SIGTERM");
  });
  const hour = 3_600_000;
  const collected = async (parts: AsyncIterable<wakebell.PartEnd>): Promise<Record<string, wakebell.End | undefined>> => {
    const all: Record<string, wakebell.End | undefined> = {};
    for await (const part of parts) {
      all[part.id] = part.end;
    }
    return all;
  };

  test("a timer is due after its parts", async () => {
    const work = name(), reports = name(), release = deferred<void>(), seen = deferred<Record<string, wakebell.End | undefined>>();
    await client.subscribe(work, { name: "s" }, async (lease) => {
      if (lease.id === "bad") {
        throw new wakebell.Reject("no such account");
      }
      if (lease.id === "last") {
        await release.promise;
      }
    });
    await client.subscribe(reports, { name: "s" }, async (lease) => seen.resolve(await collected(client.partsOf(lease))));
    const ids = ["good", "bad", "last"];
    const parts = [...ids, "none"].map((id) => ({ topic: work, id }));
    await client.scheduleBatch([...ids.map((id) => ({ topic: work, id })), { topic: reports, id: "r", delayMs: hour, after: parts }]);
    assert.deepEqual(await client.wait(work, "bad"), { end: "dead", reason: "no such account" });
    await assert.rejects(client.wait(work, "last", { timeoutMs: 50 }), wakebell.DeadlineError);
    await assert.rejects(client.wait(work, "last", { signal: AbortSignal.abort(new Error("enough")) }), /enough/);
    release.resolve();
    assert.equal((await client.wait(reports, "r")).end, "done");
    const expected = { good: "done", bad: "dead", last: "done", none: "missing" };
    assert.deepEqual(await seen.promise, expected);
    let cursor = "";
    for await (const part of client.parts(reports, "r", { limit: 2 })) {
      cursor = part.cursor;
      assert.equal(part.reason, part.id === "bad" ? "no such account" : "");
    }
    assert.equal(Object.keys(await collected(client.parts(reports, "r", { after: cursor }))).length, 2);
    assert.deepEqual(await collected(client.parts(reports, "r", { running: true })), {});
    assert.deepEqual(await client.report(work, "good"), {});
  });

  test("open joins are extended, closed and cancelled", async () => {
    const work = name(), reports = name();
    for (let n = 0; n < 2; n++) { // a request that is sent again
      await client.schedule(reports, undefined, { id: "r", delayMs: hour, open: true, idempotencyKey: "k" });
    }
    await client.schedule(work, undefined, { id: "a", delayMs: hour, partOf: [{ topic: reports, id: "r" }] });
    await client.schedule(work, undefined, { id: "b", delayMs: hour });
    await client.addParts(reports, "r", [{ topic: work, id: "b" }, { topic: work, id: "none" }]);
    assert.deepEqual(await client.join(reports, "r"), { open: true, parts: 3, done: 0, dead: 0, cancelled: 0, missing: 1 });
    await client.closeJoin(reports, "r");
    await assert.rejects(client.addParts(reports, "r", [{ topic: work, id: "c" }]), wakebell.InvalidError);
    assert.equal(await client.cancelJoin(reports, "r"), 2);
    assert.deepEqual(await client.join(reports, "r"), { open: false, parts: 3, done: 0, dead: 0, cancelled: 2, missing: 1 });
    await assert.rejects(client.get(work, "a"), wakebell.NotFoundError);
    await assert.rejects(client.cancelJoin(work, "none"), wakebell.NotFoundError);
  });

  test("joins that cannot be are refused", async () => {
    const topic = name(), b = { topic, id: "b" };
    await assert.rejects(client.schedule(topic, "", { id: "a", after: [b] }), /it needs In or At/);
    await assert.rejects(client.schedule(topic, "", { id: "b", delayMs: 1, after: [b] }), /wait for itself/);
    await assert.rejects(client.schedule(topic, "", { id: "a", delayMs: 1, after: Array<wakebell.Part>(10_001).fill(b) }), /at most 10,000/);
    const many = Array.from({ length: 1000 }, (_, n) => ({ topic, id: String(n), delayMs: hour }));
    await assert.rejects(client.scheduleBatch([...many, { topic, delayMs: hour, after: [b] }]), /more than one request/);
    assert.equal((await client.stats(topic)).total, 0);
  });
});
