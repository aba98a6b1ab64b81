import type { ServedGenerator } from '../../../serving/served-model.js';
import { type KeptMessage, MAX_KEPT_MESSAGES, openedState } from './compaction-state.js';
import { hasPictures, textOf } from './item-messages.js';
import { newId } from './response-object.js';
import type { KeptItem, StoredItem } from './response-store.js';

/** Most tokens of the messages that stay when a conversation is compacted, as OpenAI's server has it. */
const MAX_RETAINED_TOKENS = 64_000;
/** Share of a context that they may take. */
const RETAINED_SHARE = 1 / 4;

/** A message that stays, with its item where it is one by itself. */
interface Retained extends KeptMessage {
  item?: StoredItem;
}

/** Most tokens of the messages that stay, for a model. */
export function maxRetainedTokens({ maxSeqLen }: Pick<ServedGenerator, 'maxSeqLen'>): number {
  return Math.min(MAX_RETAINED_TOKENS, Math.floor(maxSeqLen * RETAINED_SHARE));
}

/** The messages of items that stay when these are compacted: what users and programs said, not what the model did. */
export function retainedMessages(items: readonly KeptItem[], maxTokens: number): KeptMessage[] {
  return retained(items, maxTokens).map(({ role, text }) => ({ role, text }));
}

/**
 * The same as items. One that was not cut stays as it is; pictures are dropped, since the summary covers
 * them.
 */
export function retainedItems(items: readonly KeptItem[], maxTokens: number): StoredItem[] {
  return retained(items, maxTokens).map(({ item, role, text }): StoredItem => {
    if (item?.type === 'message' && !hasPictures(item.content) && textOf(item.content) === text) return item;
    return {
      type: 'message',
      id: newId('msg'),
      role: item?.type === 'message' ? item.role : role,
      status: 'completed',
      content: [{ type: 'input_text', text }],
    };
  });
}

/**
 * Messages of the system come first where there is not room for all: they apply to the whole conversation.
 */
function retained(items: readonly KeptItem[], maxTokens: number): Retained[] {
  const all = items.flatMap(messagesIn);
  const isOfSystem = ({ role }: Retained) => role === 'system';
  const half = MAX_KEPT_MESSAGES / 2;
  const ofSystem = keptMessages(all.map(numbered).filter(isOfSystem), Math.floor(maxTokens / 2), half);
  const ofUsers = keptMessages(
    all.map(numbered).filter((one) => !isOfSystem(one)),
    Math.ceil(maxTokens / 2),
    half,
  );
  return [...ofSystem, ...ofUsers].sort((a, b) => a.index - b.index);
}

function numbered(message: Retained, index: number) {
  return { ...message, index };
}

function messagesIn(item: KeptItem): Retained[] {
  if (item.type === 'compaction') {
    const state = openedState(item.encrypted_content);
    return [...(state?.before ?? []), ...(state?.after ?? [])];
  }
  if (item.type !== 'message' || item.role === 'assistant') return [];
  const role = item.role === 'user' ? 'user' : 'system';
  const text = textOf(item.content);
  if (text === '' && hasPictures(item.content)) return [];
  return [{ role, text, item: item as StoredItem }];
}

/** Bytes of a token, by estimate. */
const TOKEN_BYTES = 4;

/** Where a message was cut. */
const CUT = '\n[...]\n';

/**
 * The messages that stay when a conversation is compacted: the newest that fit. The first that does not fit is cut in its
 * middle, and what is older is left out.
 * @param maxTokens most tokens of all together, by estimate. @param maxMessages most messages
 */
export function keptMessages<T extends Pick<KeptMessage, 'text'>>(
  messages: readonly T[],
  maxTokens: number,
  maxMessages: number,
): T[] {
  const kept: T[] = [];
  let left = maxTokens * TOKEN_BYTES;
  for (const message of messages.toReversed()) {
    if (left <= 0 || kept.length === maxMessages) break;
    const bytes = Buffer.byteLength(message.text);
    kept.unshift(bytes <= left ? message : { ...message, text: shortened(message.text, left) });
    left -= Math.max(1, bytes);
  }
  return kept;
}

/** The beginning and the end of a text, at most `maxBytes` bytes together. */
function shortened(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  const half = Math.floor(maxBytes / 2);
  const start = new TextDecoder().decode(bytes.subarray(0, half), { stream: true });
  const end = endOf(bytes, half);
  return `${start}${CUT}${end}`;
}

/** The last bytes of a text, from the beginning of a character on. */
function endOf(bytes: Buffer, length: number): string {
  let from = bytes.length - length;
  while (from < bytes.length && (bytes[from]! & 0xc0) === 0x80) from++;
  return bytes.toString('utf8', from);
}
