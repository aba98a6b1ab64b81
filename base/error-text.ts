/** What was thrown, in words: an error's message, or whatever else it is. Never throws itself. */
export function messageOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? String(thrown.message) : String(thrown);
  } catch {
    return 'something was thrown that has no text';
  }
}
