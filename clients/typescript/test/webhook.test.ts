/** Requests of a node are verified with this package and with that of Standard Webhooks. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Webhook } from "standardwebhooks";
import { InvalidError, SignatureError, verify } from "../src/index.js";
import { dial, name, Node } from "./node.js";

const newSecret = (): string => "whsec_" + randomBytes(32).toString("base64");

describe("the requests of a node", () => {
  const [secret, next] = [newSecret(), newSecret()];
  const folder = mkdtempSync(join(tmpdir(), "webhook-"));
  const topic = name();
  const requests: { headers: IncomingHttpHeaders; body: string }[] = [];
  const statuses = [500, 200];
  let arrived = (): void => undefined;
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) {
      body += part;
    }
    requests.push({ headers: request.headers, body });
    response.writeHead(statuses[requests.length - 1] ?? 200).end();
    arrived();
  });
  let node: Node;
  before(async () => {
    writeFileSync(join(folder, "secret"), `${secret}\n${next}\n`, { mode: 0o600 });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`;
    node = await new Node(["--topic", topic, "--post", url, "--post-secret-file", join(folder, "secret"), "--post-allow", "loopback"]).start();
    const both = new Promise<void>((resolve) => (arrived = () => requests.length === 2 && resolve()));
    const client = dial(node);
    await client.schedule(topic, { cents: 995 }, { id: "inv-42" });
    await both;
    await client.close();
  });
  after(async () => {
    await node.end("SIGTERM");
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
  });

  test("have the signatures of both secrets", () => {
    for (const { headers, body } of requests) {
      for (const one of [secret, next]) {
        verify(headers, body, one);
        verify(new Headers(headers as Record<string, string>), Buffer.from(body), newSecret(), one);
        assert.deepEqual(new Webhook(one).verify(body, headers as Record<string, string>), { cents: 995 });
      }
      assert.throws(() => verify(headers, body, newSecret()), SignatureError);
      assert.throws(() => new Webhook(newSecret()).verify(body, headers as Record<string, string>));
      assert.throws(() => verify(headers, body + " ", secret), SignatureError);
      assert.throws(() => verify({ ...headers, "webhook-id": "msg_other" }, body, secret), SignatureError);
    }
  });

  test("keep their id in each attempt", () => {
    assert.equal(requests[0]?.headers["webhook-id"], requests[1]?.headers["webhook-id"]);
    assert.deepEqual(requests.map((r) => [r.headers["wakebell-id"], r.headers["wakebell-attempt"]]), [["inv-42", "1"], ["inv-42", "2"]]);
    assert.equal(requests[0]?.headers["content-type"], "application/json");
  });
});

test("a signature of Standard Webhooks is verified, unless it is old", () => {
  const secret = newSecret();
  const signed = (at: Date): Record<string, string> => ({
    "webhook-id": "msg_1",
    "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
    "webhook-signature": new Webhook(secret).sign("msg_1", at, "body"),
  });
  verify(signed(new Date()), "body", secret);
  for (const minutes of [-6, 6]) {
    assert.throws(() => verify(signed(new Date(Date.now() + minutes * 60_000)), "body", secret), SignatureError);
  }
  assert.throws(() => verify({}, "body", secret), SignatureError);
  assert.throws(() => verify({ ...signed(new Date()), "webhook-timestamp": "soon" }, "body", secret), SignatureError);
  assert.throws(() => verify({ ...signed(new Date()), "webhook-signature": "v1, v2,x é" }, "body", secret), SignatureError);
});

test("a wrong secret is an error that does not show it", () => {
  for (const secrets of [[], [""], ["whsec_c2hvcnQ="], ["whsec_" + "!".repeat(40)]]) {
    assert.throws(() => verify({}, "body", ...secrets), (err) => err instanceof InvalidError && !err.message.includes("c2hvcnQ"));
  }
});
