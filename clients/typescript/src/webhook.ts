/** Verifies the requests of a node with `--post`, which sends webhooks. */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { InvalidError, SignatureError } from "./errors.js";

/** How far the clock of the node may be from this one, in milliseconds. */
const toleranceMs = 300_000;
const shortestKey = 24; // bytes, as Standard Webhooks says

/** Headers of a request, as node:http or fetch has them. */
export type WebhookHeaders = IncomingHttpHeaders | Headers;

/**
 * Returns if one of the secrets has signed this request, at most 5 minutes ago. `body` is
 * the body as it was received, before any decoding. A secret is `whsec_` and Base64; pass
 * two while one replaces the other. Throws a SignatureError otherwise, and an InvalidError
 * for a secret that is none. Remember `webhook-id` of the requests that were handled: a
 * request may be repeated.
 */
export function verify(headers: WebhookHeaders, body: string | Uint8Array, ...secrets: string[]): void {
  const keys = secrets.map(keyOf);
  if (keys.length === 0) {
    throw new InvalidError("no secret");
  }
  const [id, timestamp] = [header(headers, "webhook-id"), header(headers, "webhook-timestamp")];
  if (id === "" || !/^[0-9]{1,12}$/.test(timestamp)) {
    throw new SignatureError("the headers webhook-id and webhook-timestamp are missing or wrong");
  }
  if (Math.abs(Date.now() - Number(timestamp) * 1000) > toleranceMs) {
    throw new SignatureError("the timestamp is too far from this clock");
  }
  const signatures = header(headers, "webhook-signature").split(" ").map((s) => Buffer.from(s));
  for (const key of keys) {
    const right = Buffer.from("v1," + createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64"));
    if (signatures.some((s) => s.length === right.length && timingSafeEqual(s, right))) {
      return;
    }
  }
  throw new SignatureError("none of the secrets made the signature");
}

function header(headers: WebhookHeaders, name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : headers[name];
  return typeof value === "string" ? value : "";
}

function keyOf(secret: string): Buffer {
  const text = secret.trim().replace(/^whsec_/, "");
  const key = Buffer.from(text, "base64");
  if (key.toString("base64") !== text || key.length < shortestKey) {
    throw new InvalidError(`a secret is not whsec_ and the Base64 of at least ${shortestKey} bytes`);
  }
  return key;
}
