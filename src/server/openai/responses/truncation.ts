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
  const ends = endsOf(messages);
  let [low, high] = [0, ends.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (await fits(ends[middle]!)) high = middle;
    else low = middle + 1;
  }
  return ends[low]!;
}

/** What is left when 0, 1, 2, ... of the oldest messages are gone. */
function endsOf(messages: readonly ChatMessage[]): (readonly ChatMessage[])[] {
  const ends: (readonly ChatMessage[])[] = [messages];
  for (let start = 1; start < messages.length; start++) {
    if (messages[start - 1]!.role === 'system' || messages[start]!.role === 'tool') continue;
    ends.push(messages.filter(({ role }, index) => index >= start || role === 'system'));
  }
  return ends;
}
