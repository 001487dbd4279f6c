/** One gRPC stream of the service Timers. */
import { createClient, type Transport } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { create } from "@bufbuild/protobuf";
import type { WaitTimerRequest, WaitTimerResponse } from "./pb/endings_pb.js";
import { CommandsSchema, type Command, type Commands, type Replies } from "./pb/remote_pb.js";
import { Operations, Timers } from "./pb/services_pb.js";

/** TLS settings of a connection. All but the name are PEM. */
export interface TLSOptions {
  /** Certificates of the authorities that may sign the node's certificate. Default: those of Node.js. */
  ca?: string | Uint8Array;
  /** Client certificate, for a node that requires one. */
  cert?: string | Uint8Array;
  /** Private key of `cert`. */
  key?: string | Uint8Array;
  /** Name in the node's certificate. Default: the host of the address. */
  serverName?: string;
}

export interface SessionOptions {
  address: string;
  tls: TLSOptions | undefined;
}

function connection(options: SessionOptions): { manager: Http2SessionManager; transport: Transport } {
  const { address, tls } = options;
  const baseUrl = `${tls === undefined ? "http" : "https"}://${address}`;
  // Not pingIdleConnection: its timer throws when the connection was aborted before.
  const pings = { pingIntervalMs: 10_000, pingTimeoutMs: 5_000 };
  const { serverName: servername, ...pem } = tls ?? {};
  const secure = Object.fromEntries(Object.entries(pem).map(([name, text]) => [name, Buffer.from(text as string)]));
  const manager = new Http2SessionManager(baseUrl, pings, { ...secure, ...(servername === undefined ? {} : { servername }) });
  return { manager, transport: createGrpcTransport({ baseUrl, sessionManager: manager }) };
}

function bearing(token: string): Record<string, string> {
  return token === "" ? {} : { authorization: `Bearer ${token}` };
}

/** Returns the answer of the node, which comes when the timer has ended. */
export async function waitTimer(
  options: SessionOptions, token: string, request: WaitTimerRequest, signal: AbortSignal,
): Promise<WaitTimerResponse | undefined> {
  const { manager, transport } = connection(options);
  try {
    for await (const answer of createClient(Operations, transport).waitTimer(request, { signal, headers: bearing(token) })) {
      return answer;
    }
    return undefined;
  } finally {
    manager.abort();
  }
}

/** A stream of frames. Its connection is its own. */
export class Session {
  readonly replies: AsyncIterable<Replies>;
  readonly #abort = new AbortController();
  readonly #manager: Http2SessionManager;
  #queue: Commands[] = [];
  #closed = false;
  #wake: () => void = () => {};

  constructor(options: SessionOptions, token: string) {
    const { manager, transport } = connection(options);
    this.#manager = manager;
    this.replies = createClient(Timers, transport).session(this.#frames(), { signal: this.#abort.signal, headers: bearing(token) });
  }

  /** Sends a frame. Frames of a broken stream are lost. */
  write(commands: Command[]): void {
    this.#queue.push(create(CommandsSchema, { commands }));
    this.#wake();
  }

  /** Sends the end of the stream after the frames before. */
  close(): void {
    this.#closed = true;
    this.#wake();
  }

  /** Ends the stream and its connection at once. */
  end(): void {
    this.close();
    this.#abort.abort();
    this.#manager.abort();
  }

  async *#frames(): AsyncIterable<Commands> {
    while (true) {
      const frames = this.#queue;
      this.#queue = [];
      yield* frames;
      if (this.#queue.length > 0) {
        continue;
      }
      if (this.#closed) {
        return;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
