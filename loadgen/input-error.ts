/** What was asked for is not understood or does not go together. The message says what would. */
export class InputError extends Error {
  override name = 'InputError';
}
