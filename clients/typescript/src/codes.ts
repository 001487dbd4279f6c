/** The errors for the codes of the node. */
import * as errors from "./errors.js";
import { Code } from "./pb/gateway_pb.js";

const classes = [
  errors.InvalidError,
  errors.NotFoundError,
  errors.NoScheduleError,
  errors.UnavailableError,
  errors.DeadlineError,
  errors.OverloadedError,
  errors.DrainingError,
  errors.InternalError,
  errors.ConflictError,
  errors.ForbiddenError,
  errors.MemoryFullError,
  errors.TooLargeError,
  errors.WrongTypeError,
  errors.DeniedError,
  errors.ChannelDeniedError,
  errors.UnsupportedError,
  errors.LeaseLostError,
  errors.GateHeldError,
  errors.TurnLostError,
  errors.GatesClosedError,
  errors.FenceStaleError,
  errors.FenceRegressedError,
  errors.FenceUnknownError,
  errors.GateExhaustedError,
];

/** The classes by their codes. */
export const BY_CODE: ReadonlyMap<string, new (message: string) => errors.WakebellError> = new Map(
  classes.map((of) => [of.code, of]),
);

/** Returns the error for a code of the node. An unknown code is an InternalError. */
export function errorOf(code: Code, message: string): errors.WakebellError {
  const of = BY_CODE.get(Code[code] ?? "") ?? errors.InternalError;
  return new of(message);
}
