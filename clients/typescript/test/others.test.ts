import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import {
  DeadlineError, DrainingError, FenceStaleError, GateHeldError, NoScheduleError, OverloadedError, QueueFullError, TurnLostError, WakebellError, type Lease,
} from "../src/index.js";
import { create } from "@bufbuild/protobuf";
import { Link, LinkBroken, type Wait } from "../src/link.js";
import { PublishRequestSchema } from "../src/pb/queues_pb.js";
import { acquire } from "../src/turn.js";
import { deferred, dial, name, Node, patience } from "./node.js";

describe("queues, gates and recurring schedules", () => {
  const node = new Node();
  const client = dial(node);
  before(() => node.start());
  after(async () => {
    await client.close();
    await node.end("SIGTERM");
  });

  test("a message with a key is published once", async () => {
    const queue = name();
    const first = await client.publish(queue, { n: 1 }, { key: "k" });
    assert.deepEqual(await client.publish(queue, { n: 2 }, { key: "k" }), { id: first.id, fresh: false });
    assert.equal(first.fresh, true);
  });

  test("handlers receive headers and the span of the sender", async () => {
    const queue = name(), traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const traced = dial(node, { trace: () => ({ traceparent }) });
    await traced.publishBatch(queue, [{ body: "x", headers: { a: "b" } }]);
    const lease = deferred<Lease>();
    await traced.subscribe({ queue }, { name: "s" }, lease.resolve); // a lease may come before its answer
    const received = await lease.promise;
    assert.deepEqual(received.headers, { traceparent, a: "b" });
    assert.deepEqual(received.trace, {}); // this node does not trace
    await traced.close();
  });

  test("a publication is sent again while the node remembers it", async () => {
    const began = performance.now(), deadlines: number[] = [];
    const errors = [new LinkBroken(), new LinkBroken(began), new LinkBroken(began + 10_000), new DeadlineError("")];
    class Breaking extends Link {
      override async ask(_kind: never, _request: never, wait: Wait): Promise<never> {
        deadlines.push(wait.deadline as number);
        throw errors[deadlines.length - 1] as Error;
      }
    }
    const link = new Breaking({ address: "", tls: undefined, token: () => "", deadLinkMs: 1, maxMessageBytes: 1, log: () => {} });
    await assert.rejects(link.call("publish", create(PublishRequestSchema), 300_000), DeadlineError);
    assert((deadlines[1] as number) >= began + 300_000);
    assert.deepEqual(deadlines.slice(2), [began + 45_000, began + 45_000]);
  });

  test("a full queue reports what was published", async () => {
    const queue = { queue: name(), cap: 3, windowMs: 60_000 };
    const full = client.publishBatch(queue, ["a", "b", "c", "d", "e"].map((body) => ({ body })));
    await assert.rejects(full, (error) => error instanceof QueueFullError && error.published.length === 3);
    assert.equal((await client.publish({ ...queue, dropOldest: true }, "x")).fresh, true);
  });

  test("a turn without a limit waits for a node that starts", async () => {
    const refusals = [new OverloadedError(""), new DrainingError(""), new DrainingError("")];
    const link = { next: () => 1n, turns: new Map(), send: () => true, ask: () => Promise.reject(refusals.pop()) };
    await assert.rejects(acquire(link as unknown as Link, "g", {}, 30_000), OverloadedError);
    assert.deepEqual(refusals, []);
  });

  test("turns are granted in order with growing fences", async () => {
    const gate = name(), order: number[] = [], fences: bigint[] = [];
    let others: Promise<void>[] = [];
    await client.turn(gate, async (turn) => {
      fences.push(turn.fence);
      for (const n of [0, 1, 2, 3, 4]) {
        others.push(client.turn(gate, ({ fence }) => {
          order.push(n);
          fences.push(fence);
        }));
      }
      await assert.rejects(client.acquire(gate, { wait: false }), GateHeldError);
      await assert.rejects(client.acquire(gate, { timeoutMs: 50 }), DeadlineError);
      await assert.rejects(client.acquire(gate, { signal: AbortSignal.timeout(50) }), { name: "TimeoutError" });
    });
    await Promise.all(others);
    assert.deepEqual(order, [0, 1, 2, 3, 4]);
    assert.deepEqual(fences, [...new Set(fences)].sort((a, b) => Number(a - b)));
  });

  test("a second release does nothing", async () => {
    const gate = name(), turn = await client.acquire(gate);
    await turn.release();
    await turn.release();
    assert.equal(await client.turn(gate, () => "result", { timeoutMs: patience }), "result");
  });

  test("the guard refuses an earlier turn", async () => {
    const gate = name();
    const first = await client.turn(gate, async (turn) => {
      await turn.guard("ledger");
      return turn.fence;
    });
    await client.turn(gate, (turn) => turn.guard("ledger"));
    await assert.rejects(client.guard(gate, "ledger", first), FenceStaleError);
  });

  test("an error of the work releases the turn", async () => {
    const gate = name();
    await assert.rejects(client.turn(gate, () => Promise.reject(new RangeError("of the work"))), RangeError);
    await (await client.acquire(gate, { wait: false })).release();
  });

  test("a closed client loses its turns, and the next one has them at once", async () => {
    const gate = name(), other = dial(node, { turnTTLMs: 60_000 });
    const turn = await other.acquire(gate);
    await other.close();
    assert(turn.signal.reason instanceof TurnLostError);
    await client.turn(gate, () => {}, { timeoutMs: patience });
  });

  test("a schedule is stored, previewed, run and deleted", async () => {
    const prefix = name(), topic = name(), start = new Date(Date.now() + 86_400_000);
    await client.putRecurring([
      {
        name: `${prefix}a`, topic, rule: { cron: "30 2 * * *" }, body: { n: 1 }, zone: "Europe/Berlin", skipGaps: true,
        jitterMs: 1500, start, until: new Date(start.getTime() + 1e10), maxRuns: 10, misfire: "all", misfireLimit: 5,
        overlap: "skip", headers: { x: "y" },
      },
      { name: `${prefix}b`, topic, rule: { everyMs: 3_600_000, relative: true } },
      { name: `${prefix}c`, topic, rule: { crontab: { minute: "*/5" } } },
      { name: `${prefix}d`, topic, rule: { rrule: "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0" } },
    ]);
    const names: string[] = [];
    for await (const schedule of client.listRecurring({ after: prefix })) {
      names.push(schedule.name);
    }
    assert.deepEqual(names.filter((n) => n.startsWith(prefix)), ["a", "b", "c", "d"].map((s) => prefix + s));
    const state = await client.getRecurring(`${prefix}a`);
    assert.deepEqual([state.topic, state.runs, state.paused, state.fault], [topic, 0, false, ""]);
    const [first, second] = await client.previewRecurring(`${prefix}c`, 2) as [Date, Date];
    assert.equal(second.getTime() - first.getTime(), 300_000);
    const run = await client.runRecurring(`${prefix}a`, { idempotencyKey: prefix });
    assert.deepEqual(await client.runRecurring(`${prefix}a`, { idempotencyKey: prefix }), run);
    assert.equal((await client.stats(topic)).total, 1);
    await client.enableRecurring(`${prefix}a`, false);
    assert.equal((await client.getRecurring(`${prefix}a`)).paused, true);
    await Promise.all(["a", "b", "c", "d"].map((s) => client.deleteRecurring(prefix + s)));
    await assert.rejects(client.getRecurring(`${prefix}a`), NoScheduleError);
  });

  test("a Celery task needs a queue that is open to peers", async () => {
    const task = { name: name(), topic: "tasks.add", rule: { everyMs: 3_600_000 }, celery: { args: [1, 2] } };
    await assert.rejects(client.putRecurring(task), WakebellError);
  });
});
