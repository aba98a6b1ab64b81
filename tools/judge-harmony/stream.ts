import { PartList } from '../../src/generation/tools/part-list.js';
import type { AnswerPart } from '../../src/generation/tools/types.js';

/** A message as openai-harmony reads it. */
export type HarmonyMessage = [
  channel: string | null,
  recipient: string | null,
  type: string | null,
  text: string,
];

/** What openai-harmony reads of a stream of tokens; tools/reference/harmony.py writes it. */
export interface ReadStream {
  /** False where it had to be lenient. */
  strict: boolean;
  /** Text of a message that each token completes. */
  deltas: string[];
  messages: HarmonyMessage[];
}

/** The parts that these messages are. */
export function partsOf(messages: readonly HarmonyMessage[]): AnswerPart[] {
  const parts = new PartList();
  const before = new Set<string>();
  for (const [channel, recipient, , text] of messages) {
    // It takes the type of a message for its recipient, where there is none.
    const to = recipient?.startsWith('<|') ? null : recipient;
    if (to?.startsWith('functions.')) {
      before.clear();
      parts.addCall(to.slice(10));
      parts.add('arguments', text.trim() === '' ? `${text}{}` : text);
      continue;
    }
    const kind = to !== null || channel === 'analysis' ? 'reasoning' : 'content';
    if (text === '') continue;
    parts.add(kind, before.has(kind) ? `\n\n${text}` : text);
    before.add(kind);
  }
  return parts.take();
}
