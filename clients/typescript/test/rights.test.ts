import assert from "node:assert/strict";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ForbiddenError } from "../src/index.js";
import { dial, eventually, logged, name, Node, patience } from "./node.js";

test("an idle subscription returns with its right", async (t) => {
  const topic = name(), folder = mkdtempSync(join(tmpdir(), "rights-")), rights = join(folder, "rights");
  t.after(() => rmSync(folder, { recursive: true }));
  const write = (actions: string) => {
    writeFileSync(`${rights}.new`, `tests ${actions} topic:${topic}\n`);
    renameSync(`${rights}.new`, rights);
  };
  write("schedule,read,handle");
  const node = await new Node(["--rights", rights]).start();
  const client = dial(node);
  t.after(async () => {
    await client.close();
    await node.end("SIGTERM");
  });
  const handled: string[] = [];
  await client.subscribe(topic, { name: "idle" }, (lease) => void handled.push(lease.id));
  write("schedule,read");
  await eventually(() => logged.some((line) => line.includes(`${topic} has lost its right`)));
  await assert.rejects(client.subscribe(topic, { name: "new" }, () => {}), ForbiddenError);
  await client.schedule(topic, "x", { id: "waits" });
  assert.deepEqual(handled, []);
  write("schedule,read,handle");
  await eventually(() => handled.length === 1);
});

test("the return of the link is logged", async (t) => {
  const node = await new Node().start();
  const lines: string[] = [];
  const client = dial(node, { log: (line) => lines.push(line), deadLinkMs: patience });
  t.after(async () => {
    await client.close();
    await node.end("SIGTERM");
  });
  await client.stats(name());
  assert.equal(lines.length, 0);
  await node.end("SIGKILL");
  await node.start();
  await client.stats(name());
  await client.stats(name());
  assert.match(lines[0] as string, /no link/);
  assert.match(lines.at(-1) as string, /up again/);
});
