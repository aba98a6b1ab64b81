/** Message of anything thrown: an error's message, or the value as text. Never throws. */
export function messageOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? String(thrown.message) : String(thrown);
  } catch {
    return 'something was thrown that has no text';
  }
}

/**
 * The beginning of a text that is longer than a limit, with a sign of what is missing; else the text. No pair of code units is taken apart.
 * @param most code units that are kept
 */
export function cutText(text: string, most: number): string {
  if (text.length <= most) return text;
  const isPair = (text.codePointAt(most - 1) ?? 0) > 0xffff;
  const kept = isPair ? most - 1 : most;
  return `${text.slice(0, kept)}... (${(text.length - kept).toLocaleString('en')} more characters left out)`;
}
