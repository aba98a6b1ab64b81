/** Message of anything thrown: an error's message, or the value as text. Never throws. */
export function messageOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? String(thrown.message) : String(thrown);
  } catch {
    return 'something was thrown that has no text';
  }
}
