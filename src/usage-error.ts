/** The user asked for something that does not exist or does not fit. The message says what would. */
export class UsageError extends Error {
  override name = 'UsageError';
}
