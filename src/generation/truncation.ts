import type { ChatMessage } from '../../models/chat-template.js';
import { ContextLengthError } from '../errors/request-errors.js';

/**
 * Leaves out as many of a conversation's oldest messages as are needed to make it fit, but none of the system's. The
 * last message stays, and an output is left out with its call.
 * @param fits true where a conversation fits; called as often as the number of messages has bits.
 * @param mayBegin whether a message may be the first that stays; default: all but those of functions.
 * @returns the longest end that fits; where none does, the shortest one.
 */
export async function truncated(
  messages: readonly ChatMessage[],
  fits: (messages: readonly ChatMessage[]) => Promise<boolean>,
  mayBegin: (message: ChatMessage) => boolean = ({ role }) => role !== 'tool',
): Promise<readonly ChatMessage[]> {
  const starts = startsOf(messages, mayBegin);
  // Each candidate is made when it is needed: together they would be half the square of the messages.
  const from = (start: number) => messages.filter(({ role }, index) => index >= start || role === 'system');
  let [low, high] = [0, starts.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (await fits(from(starts[middle]!))) high = middle;
    else low = middle + 1;
  }
  return from(starts[low]!);
}

/** Indices of messages before which the conversation may be cut; 0 keeps all of it. */
function startsOf(messages: readonly ChatMessage[], mayBegin: (message: ChatMessage) => boolean): number[] {
  const starts = [0];
  for (let start = 1; start < messages.length; start++) {
    if (messages[start - 1]!.role === 'system' || !mayBegin(messages[start]!)) continue;
    starts.push(start);
  }
  return starts;
}

/** Turns the error of a prompt too long to be encoded into null; throws any other. */
export function tooLong(error: unknown): null {
  if (error instanceof ContextLengthError) return null;
  throw error;
}
