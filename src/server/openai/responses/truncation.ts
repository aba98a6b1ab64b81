import type { ChatMessage } from '../../../../models/chat-template.js';

/**
 * Leaves out the oldest messages of a conversation, as many as are needed to make it fit, and none that the system said.
 * The last message stays, and no output stays whose call is gone.
 * @param fits of a conversation; asked as often as its length has bits.
 * @returns the longest end that fits; where none does, the shortest there is.
 */
export async function truncated(
  messages: readonly ChatMessage[],
  fits: (messages: readonly ChatMessage[]) => Promise<boolean>,
): Promise<readonly ChatMessage[]> {
  const starts = startsOf(messages);
  // Each is made when it is asked for: all of them would be half the square of the messages.
  const from = (start: number) => messages.filter(({ role }, index) => index >= start || role === 'system');
  let [low, high] = [0, starts.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (await fits(from(starts[middle]!))) high = middle;
    else low = middle + 1;
  }
  return from(starts[low]!);
}

/** Messages before which the conversation may be cut: 0 leaves all of it. */
function startsOf(messages: readonly ChatMessage[]): number[] {
  const starts = [0];
  for (let start = 1; start < messages.length; start++) {
    if (messages[start - 1]!.role === 'system' || messages[start]!.role === 'tool') continue;
    starts.push(start);
  }
  return starts;
}
