/**
 * True where an error of the NATS client says that nobody listens to a subject: not that an answer did not come in
 * time. Its classes are not loaded here, so the error is asked.
 */
export function isNobody(error: unknown): boolean {
  const { isNoResponders, cause } = (error ?? {}) as { isNoResponders?: () => boolean; cause?: unknown };
  if (typeof isNoResponders === 'function' && isNoResponders.call(error)) return true;
  return cause instanceof Error && isNobody(cause);
}
