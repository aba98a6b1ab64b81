import { SkeinError } from '../../../../base/skein-error.js';

/** Codes of gRPC by their names. Source: gRPC's "Status codes and their use". */
export const STATUS_CODES = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

export type StatusName = keyof typeof STATUS_CODES;

/** How a call ended, as sent to its client. */
export interface CallStatus {
  name: StatusName;
  /** One sentence; '' where all is well. */
  message: string;
}

export const OK: CallStatus = { name: 'OK', message: '' };

/** Why a call was not answered, where the reason is gRPC's own: its messages, its metadata, its time. */
export class GrpcError extends SkeinError {
  override name = 'GrpcError';
  override readonly code = 'SKEIN_GRPC';
  readonly status: StatusName;

  constructor(status: StatusName, message: string) {
    super(message);
    this.status = status;
  }
}
