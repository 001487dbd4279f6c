/** What handlers keep of their timers while they run. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { InvalidError } from "./errors.js";
import type { Link } from "./link.js";
import { ContentSchema, type Content } from "./pb/gateway_pb.js";
import { KeepRequestSchema } from "./pb/wakebell_pb.js";
import { sizeOf } from "./requests.js";
import type { Body } from "./types.js";
import { encode } from "./values.js";

const TIMEOUT = 10_000; // how long the node has to store something

/** Keeps checkpoints, progress and the result of one lease. */
export class Keeper {
  result: Content | undefined;

  constructor(
    readonly link: Link, readonly of: { topic: string; subscriber: string; id: string; delivery: bigint }, readonly queue: boolean,
  ) {}

  async checkpoint(body: Body, contentType?: string): Promise<void> {
    await this.#keep({ case: "checkpoint", value: content(body, contentType) });
  }

  async progress(fraction: number, note: string): Promise<void> {
    await this.#keep({ case: "progress", value: { fraction, note } });
  }

  setResult(value: Body, contentType?: string): void {
    if (this.queue) {
      throw new InvalidError("lease: messages of queues have no results");
    }
    this.result = content(value, contentType);
  }

  async #keep(what: NonNullable<MessageInitShape<typeof KeepRequestSchema>["what"]>): Promise<void> {
    await this.link.call("keep", create(KeepRequestSchema, { ...this.of, what }), TIMEOUT);
  }
}

function content(value: Body, contentType?: string): Content {
  const of = create(ContentSchema, encode(value, contentType));
  sizeOf(ContentSchema, of); // which throws in the handler, not when its verdict is sent
  return of;
}
