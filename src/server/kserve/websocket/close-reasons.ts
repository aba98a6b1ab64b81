/** Why a server closes a socket: the status and the words for its client. Source: RFC 6455, 7.4.1, and IANA's registry for 1013. */
export const STATUS_OF = {
  draining: [1001, 'The server is shutting down.'],
  key: [1008, 'The API key is not valid any more.'],
  flood: [1008, 'Too many messages at once that are shorter than any request.'],
  slow: [1008, 'A message did not come in time.'],
  memory: [1013, 'Requests hold all the memory there is for them; try again later.'],
  failed: [1011, 'The server failed.'],
} as const satisfies Readonly<Record<string, readonly [status: number, reason: string]>>;

/** Those that the library finds, by its codes: it closes the socket with the status that fits. */
const OF_LIBRARY: Readonly<Record<string, CloseReason>> = {
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: 'too_long',
  WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH: 'too_long',
  WS_ERR_TOO_MANY_BUFFERED_PARTS: 'too_many_parts',
  WS_ERR_INVALID_UTF8: 'not_utf8',
};

export type CloseReason =
  | keyof typeof STATUS_OF
  | 'too_long'
  | 'too_many_parts'
  | 'not_utf8'
  | 'protocol'
  /** It was cut, since its client did not read. */
  | 'stalled'
  /** It was cut, since its client gave no sign of life. */
  | 'gone'
  | 'client';

/** Why a socket ends with this error. */
export function closeReasonOf(error: Error): CloseReason {
  const { code = '' } = error as NodeJS.ErrnoException;
  if (Object.hasOwn(OF_LIBRARY, code)) return OF_LIBRARY[code]!;
  return code.startsWith('WS_ERR_') ? 'protocol' : 'client';
}
