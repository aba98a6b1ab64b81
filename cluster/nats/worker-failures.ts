import { messageOf } from '../../base/error-text.js';
import { textOf } from '../../base/skein-error.js';
import { failure, type RequestFailure } from '../../callbacks/request-failure.js';
import { HostClosedError, RequestError } from '../../callbacks/token-request.js';
import { PacketError } from './packet.js';

/** What a gateway is told of an error that a request ran into at a worker. */
export function failureFor(error: unknown): RequestFailure {
  if (error instanceof RequestError) return failure(error.kind, error.text, error.field);
  if (error instanceof HostClosedError) return failure('ended', textOf(error));
  // What cannot be read here, no equal worker reads.
  if (error instanceof PacketError) return failure('invalid', textOf(error));
  return failure('internal', messageOf(error));
}
