import type { ServedGenerator } from '../../../serving/served-model.js';
import type { ResponseRequest } from '../schemas/responses.js';
import { type CompactionState, type KeptMessage, MAX_KEPT_MESSAGES } from './compaction-state.js';
import { hasPictures, textOf } from './item-messages.js';
import type { KeptItem } from './response-store.js';
import { maxRetainedTokens, retainedMessages } from './retained-items.js';

/** Share of a context from which on a conversation is compacted, where the request names no number of tokens. */
const DEFAULT_THRESHOLD = 3 / 4;

/** A compaction to be made: what is summarised, and what is kept in addition to the summary. */
export interface Compaction {
  /** Items that the summary covers. */
  items: readonly KeptItem[];
  stateOf(summary: string): CompactionState;
}

/** Tokens of a prompt from which on a request wants it compacted; null: never. */
export function compactionThreshold(
  { context_management: [entry] = [] }: Pick<ResponseRequest, 'context_management'>,
  { maxSeqLen }: Pick<ServedGenerator, 'maxSeqLen'>,
): number | null {
  if (entry === undefined) return null;
  return entry.compact_threshold ?? Math.floor(maxSeqLen * DEFAULT_THRESHOLD);
}

/** A compaction whose client keeps the messages that stay: they are items before that of the compaction. */
export function summaryOnly(items: readonly KeptItem[]): Compaction {
  return { items, stateOf: (summary) => ({ summary, before: null, after: [] }) };
}

/**
 * A compaction that replaces a whole conversation. What the user says last is not summarised: the model is
 * about to answer it.
 *
 *   system, user, assistant, ..., tool | user       ->      system, user | summary | user
 *   `---------- summarised ----------´                      `- before -´           after
 *
 * @returns null where there is only what the user says last, or where that has pictures, which no summary
 * holds.
 */
export function wholeCompaction(
  items: readonly KeptItem[],
  model: Pick<ServedGenerator, 'maxSeqLen'>,
): Compaction | null {
  const last = items.findLastIndex((item) => !isOfUser(item));
  const start = Math.max(last + 1, items.length - MAX_KEPT_MESSAGES / 2);
  const head = items.slice(0, start);
  if (!head.some((item) => item.type !== 'message' || item.role === 'assistant')) return null;
  const tail = items.slice(start);
  if (tail.some((item) => isOfUser(item) && hasPictures(item.content))) return null;
  const after = tail.flatMap((item): KeptMessage[] =>
    isOfUser(item) ? [{ role: 'user', text: textOf(item.content) }] : [],
  );
  const before = retainedMessages(head, maxRetainedTokens(model)).slice(-MAX_KEPT_MESSAGES / 2);
  return { items: head, stateOf: (summary) => ({ summary, before, after }) };
}

function isOfUser(item: KeptItem): item is Extract<KeptItem, { type?: 'message' | undefined }> {
  return item.type === 'message' && item.role === 'user';
}
