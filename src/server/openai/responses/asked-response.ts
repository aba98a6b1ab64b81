import type { ServedGenerator } from '../../../serving/served-model.js';
import type { Warn } from '../../web/warnings.js';
import type { ResponseRequest } from '../schemas/responses.js';
import type { Conversation } from './conversation.js';
import type { ConversationTurn } from './conversation-store.js';
import type { OwnResponses } from './response-store.js';
import type { Origin } from './response-task.js';
import type { ResponsesContext } from './responses-context.js';

/** A response that is asked for. */
export interface Asked {
  context: ResponsesContext;
  model: ServedGenerator;
  request: ResponseRequest;
  /** The request as it came. */
  json: unknown;
  conversation: Conversation;
  /** Its turn in a stored conversation; null: it belongs to none. */
  turn: ConversationTurn | null;
  store: OwnResponses;
  warn: Warn;
  /** Aborted when the client leaves. */
  signal?: AbortSignal | undefined;
  /** Where another server may continue it: from where it is made, and what was sent of it. */
  origin?: Origin;
  told?: readonly string[];
}
