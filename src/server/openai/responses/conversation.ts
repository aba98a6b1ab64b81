import type { ChatMessage } from '../../../../models/chat-template.js';
import { ApiError } from '../../web/errors.js';
import { type Warn, warnOfTypes } from '../../web/warnings.js';
import { isHosted } from '../schemas/response-items.js';
import type { ResponseRequest } from '../schemas/responses.js';
import { messagesOf } from './item-messages.js';
import type { OwnStore } from './own-store.js';
import { conversationId } from './response-object.js';
import type { KeptItem, StoredItem, StoredResponse } from './response-store.js';
import { retainedItems } from './retained-items.js';
import { storedInput } from './stored-items.js';
import { itemSize, lastWhole } from './stored-size.js';
import { ToolSet, type ToolSource, warnOfOthers } from './tool-set.js';

/** Conversation that a response answers. */
export interface Conversation {
  /** Message of the system before it; absent: there is none. */
  instructions: string | undefined;
  /** Items that the model receives, the newest last. */
  items: readonly KeptItem[];
  /** Items of the request itself. */
  input: readonly StoredItem[];
  previous: StoredResponse | null;
  /** Id of the stored conversation; absent: it is part of none. */
  id?: string | undefined;
  /** Items that the stored conversation has; absent: it is part of none. */
  before?: readonly KeptItem[] | undefined;
  /** True where the model is asked to compact it, not to answer. */
  isToCompact: boolean;
  tools: ToolSet;
}

/** Fields of a request from which its conversation is made. */
type AskedConversation = {
  [Name in 'input' | 'instructions' | 'previous_response_id' | 'conversation' | 'tools']?:
    | ResponseRequest[Name]
    | undefined;
};

/**
 * The conversation that a request continues, followed by its own items. Warns of tools and items that only
 * OpenAI's servers know, which the model does not receive.
 * @param maxRetained most tokens of messages that stay where the server keeps a compacted conversation. @throws ApiError.
 */
export async function conversationOf(
  request: AskedConversation,
  store: OwnStore,
  maxRetained: number,
  warn: Warn,
): Promise<Conversation> {
  const { previous_response_id: previousId, conversation } = request;
  if (previousId !== undefined && conversation !== undefined) {
    const message =
      "'previous_response_id' and 'conversation' exclude each other: each says what was before.";
    throw new ApiError(400, message, {
      param: 'previous_response_id',
      code: 'mutually_exclusive_parameters',
    });
  }
  const previous = previousId === undefined ? null : await store.previous(previousId);
  const id = conversation === undefined ? undefined : conversationId(conversation);
  const stored = id === undefined ? null : await store.conversation(id);
  const input = await storedInput(request.input, store);
  const trigger = input.findIndex(({ type }) => type === 'compaction_trigger');
  if (trigger >= 0 && trigger < input.length - 1) {
    const param = `input[${trigger}]`;
    throw new ApiError(400, `'${param}' is a compaction_trigger, which has to be the last item.`, { param });
  }
  return conversationWith(
    request,
    {
      input,
      previous: previous?.response ?? null,
      stored: id === undefined ? null : { id, before: stored!.items },
      told: (stored ?? previous ?? { told: [] }).told,
    },
    maxRetained,
    warn,
  );
}

/** What a conversation is made of besides its request. */
export interface ConversationParts {
  input: readonly StoredItem[];
  previous: StoredResponse | null;
  /** The stored conversation; null: it is part of none. */
  stored: { id: string; before: readonly KeptItem[] } | null;
  /** Items before those of the request that a model still receives. */
  told: readonly KeptItem[];
}

/** The same of parts that are known. @param maxRetained as above */
export function conversationWith(
  { instructions, tools = [] }: AskedConversation,
  { input, previous, stored, told }: ConversationParts,
  maxRetained: number,
  warn: Warn,
): Conversation {
  warnOfOthers(tools, warn);
  const items = withoutReplaced([...currentItems(told, maxRetained), ...input]);
  warnOfTypes(
    'Items',
    items.filter(isHosted).map(({ type }) => type),
    warn,
  );
  return {
    instructions,
    items,
    input,
    previous,
    id: stored?.id,
    before: stored?.before,
    isToCompact: input.at(-1)?.type === 'compaction_trigger',
    tools: new ToolSet({ place: 'tools', tools }, loadedTools(items, input)),
  };
}

/** The messages of a conversation, for a chat template. @throws InvalidRequestError for a picture that is in no data: URL, and at no address */
export function chatOf({ instructions, input, id }: Conversation, items: readonly KeptItem[]): ChatMessage[] {
  let indexes: Map<KeptItem, number> | null = null;
  const messages = messagesOf(items, (item) => {
    indexes ??= new Map<KeptItem, number>(input.map((one, i) => [one, i]));
    const index = indexes.get(item);
    if (index !== undefined) return { place: `input[${index}]`, isEarlier: false };
    return { place: id === undefined ? 'previous_response_id' : 'conversation', isEarlier: true };
  });
  if (instructions !== undefined) messages.unshift({ role: 'system', content: instructions });
  return messages;
}

/**
 * Of the items that the server keeps, those that a model still receives: the last compaction, and the
 * messages that stay, replace what was before it.
 */
function currentItems(items: readonly KeptItem[], maxRetained: number): readonly KeptItem[] {
  const last = items.findLastIndex(({ type }) => type === 'compaction');
  if (last < 0 || itemSize(items[last]!).compaction === 'whole') return items;
  return [...retainedItems(items.slice(0, last), maxRetained), ...items.slice(last)];
}

/** Items without those before the last compaction that replaces all of them. */
function withoutReplaced(items: readonly KeptItem[]): readonly KeptItem[] {
  return items.slice(Math.max(0, lastWhole(items)));
}

/** Tools that items have brought. */
function loadedTools(items: readonly KeptItem[], input: readonly KeptItem[]): ToolSource[] {
  const indexes = new Map(input.map((item, index) => [item, index]));
  return items.flatMap((item) => {
    if (item.type !== 'tool_search_output' && item.type !== 'additional_tools') return [];
    const index = indexes.get(item as StoredItem);
    return [{ place: index === undefined ? 'input.tools' : `input[${index}].tools`, tools: item.tools }];
  });
}
