import type { Caller } from '../../api-keys.js';
import type { RequestMemory } from '../../request-memory.js';
import type { RouteContext } from '../route-context.js';
import type { OwnStore } from './conversation.js';
import type { ResponseStore } from './response-store.js';

export type ResponsesContext = RouteContext & {
  responses: ResponseStore;
  /** Opens an account of memory for work that outlives its request. */
  openMemory: (caller: Caller) => RequestMemory;
};

/** What the server keeps for a caller. */
export function ownStore({ responses }: Pick<ResponsesContext, 'responses'>, caller: Caller): OwnStore {
  return { responses: responses.of(caller), conversations: responses.conversationsOf(caller) };
}
