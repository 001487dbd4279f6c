/** Nodes for the tests. clients_test.go sets the environment variables. */
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { Client, type ClientOptions } from "../src/index.js";

const { WAKEBELL_TEST_PROGRAM: program = "wakebell", WAKEBELL_TEST_REDIS: redis = "embedded", WAKEBELL_TEST_ADDRESSES: free = "" } = process.env;
/** A folder with tokens, ca.pem, node.pem and node.key. */
export const folder = process.env["WAKEBELL_TEST_TLS"] ?? ".";
export const token = "known-to-both-of-them";
export const patience = 30_000;

const addresses = free.split(",");

/** A node that is a process of its own. */
export class Node {
  readonly address = addresses.pop() as string;
  #process: ChildProcess | undefined;

  constructor(private readonly args: string[] = [], private readonly lease = "5s") {}

  async start(): Promise<this> {
    const settings = ["--lease-ttl", this.lease, "--visibility-timeout", this.lease, "--retry-initial", "10ms", "--log-level", "error"];
    const args = ["--redis", redis, "node", "--listen", this.address, "--token-file", join(folder, "tokens"), ...settings, ...this.args];
    this.#process = spawn(program, args, { stdio: "inherit" });
    await eventually(() => this.#listens());
    return this;
  }

  async #listens(): Promise<boolean> {
    const [host, port] = this.address.split(":");
    const socket = connect(Number(port), host as string);
    const result = await Promise.race([once(socket, "connect").then(() => true), once(socket, "error").then(() => false)]).catch(() => false);
    socket.destroy();
    return result;
  }

  /** Suspends the process, or lets it continue. */
  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    (this.#process as ChildProcess).kill(signal);
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    const process = this.#process as ChildProcess;
    if (process.exitCode === null && process.signalCode === null) {
      process.kill(signal);
      await once(process, "exit");
    }
  }
}

/** Returns a new name of a topic, queue, gate or schedule. */
export function name(): string {
  return `t-${randomUUID()}`;
}

/** Waits until the condition holds. */
export async function eventually(holds: () => Promise<boolean> | boolean): Promise<void> {
  const end = performance.now() + patience;
  while (!(await holds())) {
    assert(performance.now() < end, "it did not happen");
    await pause(10);
  }
}

/** Waits for a time. */
export async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}

/** What clients have logged. */
export const logged: string[] = [];

/** Returns a client of a node that logs into `logged`. */
export function dial(node: Node, options: ClientOptions = {}): Client {
  return new Client(node.address, { token, timeoutMs: patience, log: (message) => logged.push(message), ...options });
}

/** Returns a promise with its function to resolve it. */
export function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((to) => (resolve = to));
  return { promise, resolve };
}
