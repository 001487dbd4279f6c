/** The session with a node: requests and their replies, and reconnecting. */
import { create } from "@bufbuild/protobuf";
import { Code as Status, ConnectError } from "@connectrpc/connect";
import { errorOf } from "./codes.js";
import type { AnswerOf, Asked, Commanded, Replied, RequestOf } from "./commands.js";
import { ClosedError, DeadlineError, DrainingError, OverloadedError, UnauthenticatedError, UnavailableError, type WakebellError } from "./errors.js";
import type { WaitTimerRequest, WaitTimerResponse } from "./pb/endings_pb.js";
import { Code, ErrorSchema } from "./pb/gateway_pb.js";
import { CommandSchema, type Command, type Leases, type LeasesEnded, type LeasesExtended, type Replies } from "./pb/remote_pb.js";
import { textOf } from "./outcome.js";
import { checkSize, MAX_FRAME_BYTES, OVERHEAD, sizeOf } from "./requests.js";
import { Session, waitTimer, type SessionOptions } from "./session.js";
import { after, checkMs, sleep } from "./time.js";
import { duration } from "./values.js";

export const REDIAL_FIRST = 50, REDIAL_MAX = 2000;
const CONNECT_TIMEOUT = 5000;
/** How long the node accepts the verdicts of a subscriber that has left. */
export const GRACE = 1000;
/** How long after it was sent a publication may be stored again: the node remembers it for 60 s. */
const PUBLISH_AGAIN = 45_000;
const UNANSWERED = 15_000;
/** After which a wait for a timer that failed is repeated. */
const WAIT_AGAIN = 1000;
const MAX_FLIGHT = 512;
const MAX_FRAME = 500;

/** The link broke while a request waited for its answer. */
export class LinkBroken extends Error {
  /** `sent` is when the request was sent; undefined: it was not. */
  constructor(readonly sent?: number) {
    super();
  }
}

/** A subscriber. It receives the replies that are no answers. */
export interface Listener {
  /** The link is up again. */
  opened(): void;
  leases(m: Leases): void;
  extended(m: LeasesExtended): void;
  ended(m: LeasesEnded): void;
}

/** How a request is waited for. Times are those of `performance.now()`. */
export interface Wait {
  deadline?: number | undefined;
  signal?: AbortSignal | undefined;
}

interface Waiting {
  resolve(reply: Replied): void;
  reject(error: Error): void;
}

export interface LinkOptions extends SessionOptions {
  /** Returns the present token. */
  token(): string | Promise<string>;
  deadLinkMs: number;
  /** The largest request, in bytes. */
  maxMessageBytes: number;
  /** Receives warnings, such as of a link that broke. */
  log(message: string, error?: unknown): void;
}

/** Keeps a session with the node open. */
export class Link {
  readonly subscribers = new Map<string, Listener>();
  /** What to call when the turn of a place is lost. */
  readonly turns = new Map<bigint, () => void>();
  closed = false;
  up = false;

  #listeners: (() => void)[] = []; // for a change of up
  #downSince = 0;
  #lastError: WakebellError | undefined;
  #next = 0n;
  readonly #waiting = new Map<bigint, Waiting>();
  #flight = 0;
  readonly #closing = new AbortController();
  readonly #room = new Set<() => void>();
  #out: { command: Command; size: number }[] = [];
  #flushing = false;
  #session: Session | undefined;
  #running: Promise<void> | undefined;
  #pause: () => void = () => {};

  constructor(readonly options: LinkOptions) {}

  /** Connects, unless that was done before. */
  start(): void {
    if (this.closed) {
      throw new ClosedError("the client is closed");
    }
    if (this.#running === undefined) {
      this.#downSince = performance.now();
      this.#running = this.#run();
    }
  }

  /** Ends the session. What was sent before is still delivered. */
  async close(): Promise<void> {
    this.closed = true;
    this.#closing.abort();
    for (const lost of [...this.turns.values()]) {
      lost(); // the end of the session releases them
    }
    this.#pause();
    this.#flush();
    const session = this.#session;
    if (this.up) {
      session?.close();
    } else {
      session?.end();
    }
    const late = setTimeout(() => session?.end(), GRACE);
    await this.#running;
    clearTimeout(late);
    this.#broke(new ClosedError("the client is closed"));
  }

  /** Returns a new number of a request or a place. */
  next(): bigint {
    this.#next++;
    return this.#next;
  }

  /** Sends a request until it has a final answer or the timeout passes. */
  async call<C extends Asked>(kind: C, request: RequestOf<C>, timeoutMs: number, signal?: AbortSignal): Promise<AnswerOf<C>> {
    let deadline = performance.now() + checkMs(timeoutMs, "timeoutMs");
    for (let pause = 20; ; ) {
      try {
        return await this.ask(kind, request, { deadline, signal });
      } catch (error) {
        if (error instanceof LinkBroken) {
          if (kind === "publish" && error.sent !== undefined) {
            deadline = Math.min(deadline, error.sent + PUBLISH_AGAIN);
          }
          continue;
        }
        const temporary = error instanceof OverloadedError || error instanceof DrainingError;
        if (!temporary || performance.now() + pause >= deadline) {
          throw error;
        }
        await sleep(pause);
        pause = Math.min(2 * pause, 1000);
      }
    }
  }

  /** Asks for the end of a timer until the node answers or the timeout passes. */
  async waitTimer(request: WaitTimerRequest, timeoutMs: number, signal?: AbortSignal): Promise<WaitTimerResponse> {
    const deadline = performance.now() + checkMs(timeoutMs, "timeoutMs");
    const late = new DeadlineError(`node ${this.options.address}: no answer within the timeout`);
    while (true) {
      signal?.throwIfAborted();
      this.start();
      await this.#waitUp({ deadline, signal });
      const ended = new AbortController();
      const timer = after(Math.max(deadline - performance.now(), 0), () => ended.abort());
      const either = AbortSignal.any([ended.signal, this.#closing.signal, ...(signal === undefined ? [] : [signal])]);
      try {
        const answer = await waitTimer(this.options, await this.options.token(), request, either);
        if (answer !== undefined) {
          return answer;
        }
      } catch (error) {
        signal?.throwIfAborted();
        if (this.closed) {
          throw new ClosedError("the client is closed");
        }
        if (ended.signal.aborted) {
          throw late;
        }
        const failed = connectError(error), fault = failed.findDetails(ErrorSchema)[0];
        if (fault !== undefined && fault.code !== Code.UNAVAILABLE && fault.code !== Code.OVERLOADED && fault.code !== Code.DRAINING) {
          throw errorOf(fault.code, fault.message);
        }
        if (failed.code === Status.PermissionDenied) { // the caller is no operator of the node
          throw errorOf(Code.FORBIDDEN, failed.rawMessage);
        }
      } finally {
        clearTimeout(timer);
      }
      if (performance.now() + WAIT_AGAIN >= deadline) {
        throw late;
      }
      await sleep(WAIT_AGAIN);
    }
  }

  /** Sends a request once and waits for its answer. Throws LinkBroken if the link breaks. */
  async ask<C extends Asked>(kind: C, request: RequestOf<C>, wait: Wait): Promise<AnswerOf<C>> {
    this.start();
    await this.#waitUp(wait);
    if (kind === "acquireTurn") { // it may wait for long, and its timeout has another meaning
      return this.#ask(kind, request, wait);
    }
    await this.#enter(wait);
    try {
      if (wait.deadline !== undefined && kind !== "extendTurn" && kind !== "releaseTurn") {
        const left = Math.min(Math.max(wait.deadline - performance.now(), 1), 600_000);
        Object.assign(request, { timeout: duration(left, "timeoutMs") });
      }
      return await this.#ask(kind, request, wait);
    } finally {
      this.#leave();
    }
  }

  /** Waits for a place among the requests in flight. */
  async #enter(wait: Wait): Promise<void> {
    while (this.#flight >= MAX_FLIGHT) {
      wait.signal?.throwIfAborted();
      const left = (wait.deadline ?? Infinity) - performance.now();
      if (left <= 0) {
        throw new DeadlineError(`node ${this.options.address}: ${MAX_FLIGHT} requests wait for their answers`);
      }
      let timer: NodeJS.Timeout | undefined;
      let enter: () => void = () => {};
      await new Promise<void>((resolve) => {
        enter = resolve;
        this.#room.add(enter);
        timer = after(left, enter);
        wait.signal?.addEventListener("abort", enter);
      });
      clearTimeout(timer);
      wait.signal?.removeEventListener("abort", enter);
      this.#room.delete(enter);
    }
    this.#flight++;
  }

  #leave(): void {
    this.#flight--;
    for (const enter of this.#room) {
      this.#room.delete(enter);
      enter();
      return;
    }
  }

  async #ask<C extends Asked>(kind: C, request: RequestOf<C>, wait: Wait): Promise<AnswerOf<C>> {
    wait.signal?.throwIfAborted();
    if (!this.up) {
      throw new LinkBroken();
    }
    const number = this.next();
    let left = wait.deadline === undefined ? Infinity : Math.max(wait.deadline - performance.now(), 0);
    if (kind === "acquireTurn") {
      left = Math.min(left, UNANSWERED);
    }
    let timer: NodeJS.Timeout | undefined;
    let aborted: (() => void) | undefined;
    const sent = performance.now();
    try {
      const reply = await new Promise<Replied>((resolve, reject) => {
        this.#waiting.set(number, { resolve, reject });
        this.#put(kind, { ...request, request: number } as RequestOf<C>);
        timer = after(left, () => reject(new DeadlineError(`node ${this.options.address}: no answer within the timeout`)));
        aborted = () => reject(wait.signal?.reason as Error);
        wait.signal?.addEventListener("abort", aborted);
      });
      if (reply.case === "error") {
        throw errorOf(reply.value.code, reply.value.message);
      }
      return reply.value as AnswerOf<C>;
    } catch (error) {
      throw error instanceof LinkBroken ? new LinkBroken(sent) : error;
    } finally {
      clearTimeout(timer);
      if (aborted !== undefined) {
        wait.signal?.removeEventListener("abort", aborted);
      }
      this.#waiting.delete(number);
    }
  }

  /** Adds a message to the next frame. Returns false if the link is down. */
  send<C extends Commanded["case"]>(kind: C, message: RequestOf<C>): boolean {
    if (this.up) {
      this.#put(kind, message);
    }
    return this.up;
  }

  /** Throws an InvalidError: a command that cannot be sent must not reach the others. */
  #put<C extends Commanded["case"]>(kind: C, value: RequestOf<C>): void {
    const command = create(CommandSchema, { kind: { case: kind, value } as Commanded });
    const size = sizeOf(CommandSchema, command) + OVERHEAD;
    checkSize(command, size, this.options.maxMessageBytes);
    this.#out.push({ command, size });
    if (!this.#flushing) { // others add to the frame
      this.#flushing = true;
      setImmediate(() => this.#flush());
    }
  }

  #flush(): void {
    this.#flushing = false;
    const most = Math.min(MAX_FRAME_BYTES, this.options.maxMessageBytes); // a frame that the node refuses ends the link
    while (this.#out.length > 0) {
      let count = 0, size = 0;
      for (const next of this.#out.slice(0, MAX_FRAME)) {
        size += next.size;
        if (count > 0 && size > most) {
          break;
        }
        count++;
      }
      this.#session?.write(this.#out.splice(0, count).map(({ command }) => command));
    }
  }

  async #waitUp(wait: Wait): Promise<void> {
    while (!this.up) {
      wait.signal?.throwIfAborted();
      if (this.closed) {
        throw new ClosedError("the client is closed");
      }
      if (this.#lastError instanceof UnauthenticatedError) {
        throw this.#lastError;
      }
      const now = performance.now();
      const left = this.#downSince + this.options.deadLinkMs - now;
      if (left <= 0) {
        throw this.#lastError ?? new UnavailableError(`node ${this.options.address}: no connection`);
      }
      if (wait.deadline !== undefined && wait.deadline <= now) {
        throw new DeadlineError(this.#lastError?.message ?? `node ${this.options.address}: no connection`);
      }
      await this.#change(Math.min(left, (wait.deadline ?? Infinity) - now), wait.signal);
    }
  }

  /** Waits until the link goes up or breaks, at most for a time. */
  async #change(ms: number, signal?: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = after(ms, resolve);
      signal?.addEventListener("abort", () => resolve(), { once: true });
      this.#listeners.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #notify(): void {
    const listeners = this.#listeners;
    this.#listeners = [];
    listeners.forEach((changed) => changed());
  }

  async #run(): Promise<void> {
    let pause = REDIAL_FIRST;
    while (!this.closed) {
      const began = performance.now();
      this.#broke(await this.#stream());
      if (performance.now() - began > REDIAL_MAX) {
        pause = REDIAL_FIRST;
      }
      if (!this.closed) {
        const ms = pause * (0.8 + 0.4 * Math.random());
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms);
          this.#pause = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      pause = Math.min(2 * pause, REDIAL_MAX);
    }
  }

  /** Opens a session and reads it to its end. Returns why it ended. */
  async #stream(): Promise<WakebellError> {
    const name = `node ${this.options.address}`;
    let late: NodeJS.Timeout | undefined;
    try {
      const session = new Session(this.options, await this.options.token());
      this.#session = session;
      if (this.closed) {
        return new ClosedError("the client is closed");
      }
      late = setTimeout(() => session.end(), CONNECT_TIMEOUT);
      // Its answer shows whether the node accepts the credentials.
      session.write([create(CommandSchema, { kind: { case: "unsubscribe", value: { topic: "hello", subscriber: "hello" } } })]);
      for await (const frame of session.replies) {
        clearTimeout(late);
        if (!this.up) {
          this.#opened();
        }
        this.#replies(frame);
      }
      return new UnavailableError(`${name}: the link broke`);
    } catch (error) {
      const failed = connectError(error);
      if (failed.code === Status.Unauthenticated || failed.code === Status.PermissionDenied) {
        return new UnauthenticatedError(`${name}: ${failed.rawMessage}`, { cause: error });
      }
      return new UnavailableError(`${name}: ${failed.rawMessage}`, { cause: error });
    } finally {
      clearTimeout(late);
      this.#session?.end();
      this.#session = undefined;
    }
  }

  #opened(): void {
    if (this.#lastError !== undefined) { // whoever was told of the break wants to know of its end
      this.options.log(`the link to ${this.options.address} is up again`);
    }
    this.up = true;
    this.#lastError = undefined;
    this.#out = [];
    this.#notify();
    this.subscribers.forEach((subscriber) => subscriber.opened());
  }

  #broke(error: WakebellError): void {
    if (this.up) {
      this.#downSince = performance.now();
    }
    if (!this.closed && (this.up || error.message !== this.#lastError?.message)) {
      this.options.log(`no link: ${error.message}`);
    }
    this.up = false;
    this.#lastError = error;
    this.#out = [];
    this.#waiting.forEach((waiting) => waiting.reject(new LinkBroken()));
    this.#notify();
  }

  #replies(frame: Replies): void {
    for (const { kind } of frame.replies) {
      switch (kind.case) {
        case undefined:
          break; // a newer one
        case "leases":
          this.subscribers.get(subscriberKey(kind.value))?.leases(kind.value);
          break;
        case "leasesExtended":
          this.subscribers.get(subscriberKey(kind.value))?.extended(kind.value);
          break;
        case "leasesEnded":
          this.subscribers.get(subscriberKey(kind.value))?.ended(kind.value);
          break;
        case "turnLost":
          this.turns.get(kind.value.place)?.();
          break;
        default:
          this.#waiting.get(kind.value.request)?.resolve(kind);
      }
    }
  }
}

/** Returns the key of a subscriber in `Link.subscribers`. */
export function subscriberKey(of: { topic: string; subscriber: string }): string {
  return JSON.stringify([of.topic, of.subscriber]);
}

/** Returns an error of gRPC, or one that the user's function for the token threw. */
function connectError(error: unknown): ConnectError {
  return error instanceof Error ? ConnectError.from(error) : new ConnectError(textOf(error), Status.Unavailable);
}
