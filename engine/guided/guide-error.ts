/** A guide that cannot be followed: the message says what of it, where, and what is possible instead. */
export class GuideError extends Error {
  override name = 'GuideError';
}
