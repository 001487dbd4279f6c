import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import * as wakebell from "../src/index.js";
import { BY_CODE } from "../src/codes.js";
import { Code } from "../src/pb/gateway_pb.js";
import { dial, folder, name, Node, patience, token } from "./node.js";
import { readFileSync } from "node:fs";
import { join } from "node:path";

describe("timers", () => {
  const node = new Node();
  const client = dial(node);
  before(() => node.start());
  after(async () => {
    await client.close();
    await node.end("SIGTERM");
  });
  const hour = 3_600_000;

  test("a timer is stored as it was scheduled", async () => {
    const topic = name(), at = new Date(Date.now() + hour);
    const done = await client.schedule(topic, { n: 42, s: "ä" }, { id: "a", at, headers: { x: "y" }, correlationId: "c" });
    assert.deepEqual(done, { id: "a", due: at, outcome: "created" });
    const timer = await client.get(topic, "a");
    assert.deepEqual([timer.topic, timer.state, timer.attempts, timer.activation], [topic, "pending", 0, at]);
    assert.deepEqual([timer.contentType, wakebell.value(timer)], ["application/json", { n: 42, s: "ä" }]);
    assert.deepEqual([timer.headers, timer.correlationId], [{ x: "y" }, "c"]);
  });

  test("bodies have the content types of the other languages", async () => {
    const topic = name();
    for (const [body, type] of [[Uint8Array.of(0), ""], ["text", "text/plain"], [[1, null], "application/json"]] as const) {
      const { id } = await client.schedule(topic, body, { delayMs: hour });
      assert.match(id, /^[0-9A-Za-z]{22}$/);
      const timer = await client.get(topic, id);
      assert.deepEqual([wakebell.value(timer), timer.contentType], [body, type]);
    }
  });

  test("an existing timer is replaced or kept", async () => {
    const topic = name();
    const first = await client.schedule(topic, "1", { id: "a", delayMs: 2 * hour });
    const kept = await client.schedule(topic, "2", { id: "a", delayMs: hour, ifExists: "keep" });
    assert.deepEqual(kept, { id: "a", due: first.due, outcome: "kept pending", found: first.due });
    assert.equal((await client.schedule(topic, "3", { id: "a", delayMs: hour })).outcome, "replaced");
    assert.equal(wakebell.text(await client.get(topic, "a")), "3");
    await client.schedule(topic, "4", { id: "b", debounce: { delayMs: hour, limitMs: 2 * hour } });
    await client.schedule(topic, "5", { id: "c", onceMs: hour });
  });

  test("a timer has a limit after which it expires", async () => {
    const topic = name();
    await client.schedule(topic, "1", { id: "a", delayMs: hour, headers: { x: "y" }, expireAfterMs: 1500 });
    assert.deepEqual((await client.get(topic, "a")).headers, { x: "y", "wakebell-expire-after": "1500000us" });
    await assert.rejects(client.schedule(topic, "1", { expireAfterMs: 0 }), wakebell.InvalidError);
  });

  test("a timer has a key", async () => {
    const topic = name(), bytes = new Uint8Array([0xff]);
    await client.schedule(topic, "1", { id: "a", delayMs: hour, key: "ä" });
    await client.scheduleBatch([{ topic, id: "b", delayMs: hour, key: bytes }]);
    assert.deepEqual((await client.get(topic, "a")).key, new Uint8Array([0xc3, 0xa4]));
    assert.deepEqual((await client.get(topic, "b")).key, bytes);
    assert.equal((await client.stats(topic)).parked, 0);
  });

  test("a batch is answered in its order, and a listing continues after a cursor", async () => {
    const topic = name();
    const drafts = Array.from({ length: 1500 }, (_, n) => ({ topic, body: n, id: String(n), delayMs: hour + 1000 * n }));
    const all = drafts.map(({ id }) => id);
    assert.deepEqual((await client.scheduleBatch(drafts)).map(({ id }) => id), all);
    assert.equal((await client.stats(topic)).pending, 1500);
    const first = await collect(client.list(topic, { limit: 1200 }));
    const rest = await collect(client.list(topic, { after: first.at(-1)?.cursor ?? "" }));
    assert.deepEqual([...first, ...rest].map(({ id }) => id), all);
    assert.deepEqual(await collect(client.list(topic, { dueBefore: new Date() })), []);
    assert.deepEqual(await collect(client.list(topic, { running: true, limit: 0 })), []);
  });

  test("timers are moved and cancelled", async () => {
    const topic = name(), at = new Date(Date.now() + 48 * hour);
    await client.schedule(topic, "x", { id: "a", delayMs: hour });
    const moved = await client.reschedule(topic, "a", { at });
    assert.deepEqual([moved.due, moved.outcome], [at, "moved"]);
    assert.equal(await client.runNow(topic, "a"), "pending");
    assert.equal((await client.stats(topic)).due, 1);
    assert.deepEqual(await client.cancel(topic, ["a", "b"]), ["pending", "absent"]);
    await assert.rejects(client.reschedule(topic, "a", { delayMs: 1 }), wakebell.NotFoundError);
  });

  test("a repeated request with a key is not carried out again", async () => {
    const topic = name(), options = { delayMs: hour, idempotencyKey: "order-42" };
    const first = await client.schedule(topic, "x", options);
    assert.deepEqual(await client.schedule(topic, "x", options), first);
    await assert.rejects(client.schedule(topic, "y", options), wakebell.ConflictError);
    await client.schedule(topic, "x", { id: "x", delayMs: hour });
    assert.deepEqual(await client.cancel(topic, "x", { idempotencyKey: "cancel" }), ["pending"]);
    assert.deepEqual(await client.cancel(topic, "x", { idempotencyKey: "cancel" }), ["pending"]);
  });

  test("invalid arguments are named", async () => {
    const topic = name(), invalid = wakebell.InvalidError;
    await assert.rejects(client.schedule(topic, "x", { at: new Date(NaN) }), invalid);
    await assert.rejects(client.schedule(topic, "x", { at: new Date(), delayMs: 1 }), { name: "InvalidError", message: /exclude/ });
    await assert.rejects(client.schedule(topic, "x", { debounce: { delayMs: 1 }, idempotencyKey: "k" }), { name: "InvalidError", message: /debounce without an id/ });
    await assert.rejects(client.scheduleBatch([{ topic, onceMs: 1 }]), { name: "InvalidError", message: /onceMs without an id/ });
    await assert.rejects(client.schedule(topic, () => {}), { name: "InvalidError", message: /JSON/ });
    await assert.rejects(client.schedule(topic, 1n), { name: "InvalidError", message: /JSON/ });
    await assert.rejects(client.schedule("", "x"), { name: "InvalidError", code: "INVALID", message: /topic/ });
    await assert.rejects(client.schedule(topic, "x", { delayMs: Infinity }), invalid);
    await assert.rejects(client.reschedule(topic, "a", {}), invalid);
  });

  test("a wrong token is refused at once", async () => {
    const other = dial(node, { token: () => `not-${token}` });
    await assert.rejects(other.stats(name()), wakebell.UnauthenticatedError);
    await other.close();
  });

  test("a node that does not answer is unavailable", async () => {
    const other = new wakebell.Client("127.0.0.1:9", { deadLinkMs: 300 });
    await assert.rejects(other.stats(name()), { name: "UnavailableError", message: /127\.0\.0\.1:9/ });
    await other.close();
    const slow = new wakebell.Client("127.0.0.1:9");
    await assert.rejects(slow.stats(name(), { timeoutMs: 50 }), wakebell.DeadlineError);
    await assert.rejects(slow.stats(name(), { signal: AbortSignal.timeout(50) }), { name: "TimeoutError" });
    await slow.close();
    await assert.rejects(slow.stats(name()), wakebell.ClosedError);
  });

  test("a token is not sent over the network in the clear", () => {
    assert.throws(() => new wakebell.Client("node.example.com:7070", { token }), { name: "InvalidError", message: /tls/ });
    new wakebell.Client("node.example.com:7070", { token, insecure: true });
    for (const address of ["localhost", ":7070", "localhost:http", "localhost:70000"]) {
      assert.throws(() => new wakebell.Client(address), { name: "InvalidError", message: /host:port/ });
    }
  });

  test("the certificate of the node is verified", async () => {
    const secure = await new Node(["--tls-cert", join(folder, "node.pem"), "--tls-key", join(folder, "node.key")]).start();
    const tls = { ca: readFileSync(join(folder, "ca.pem")), serverName: "node.test" };
    const trusting = dial(secure, { tls, deadLinkMs: patience }), other = dial(secure, { tls: true, deadLinkMs: 500 });
    await trusting.stats(name());
    await assert.rejects(other.stats(name()), wakebell.UnavailableError);
    await Promise.all([trusting.close(), other.close()]);
    await secure.end("SIGTERM");
  });

  test("each code of the node has an error", () => {
    const codes = Object.values(Code).filter((code) => typeof code === "string" && code !== "UNSPECIFIED");
    assert.deepEqual(codes.sort(), [...BY_CODE.keys()].sort());
  });
});

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) {
    all.push(item);
  }
  return all;
}
