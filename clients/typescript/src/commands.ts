/** The types of commands and replies. */
import type { Turn, TurnRefused } from "./pb/gates_pb.js";
import type { Command, Reply } from "./pb/remote_pb.js";

/** A command of a session. */
export type Commanded = Exclude<Command["kind"], { case: undefined }>;
/** A reply of a session. */
export type Replied = Exclude<Reply["kind"], { case: undefined }>;
/** The requests that have an answer. */
export type Asked = Exclude<Commanded["case"], "verdicts">;
/** The message of a command. */
export type RequestOf<C extends Commanded["case"]> = Extract<Commanded, { case: C }>["value"];
/** The answer of a request, which is not an Error. */
export type AnswerOf<C extends Asked> = C extends "acquireTurn" ? Turn | TurnRefused : Extract<Replied, { case: C }>["value"];
