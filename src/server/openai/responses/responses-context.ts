import type { Caller } from '../../api-keys.js';
import type { RequestMemory } from '../../request-memory.js';
import type { RequestTerms } from '../../request-terms.js';
import type { RouteContext } from '../route-context.js';
import { OwnStore } from './own-store.js';
import type { ResponseStore } from './response-store.js';

export type ResponsesContext = RouteContext & {
  responses: ResponseStore;
  /** Bytes of the longest body. */
  maxBodyBytes: number;
  /** Opens an account of memory for work that outlives its request. */
  openMemory: (caller: Caller) => RequestMemory;
};

/** What the server keeps for a caller, as one of its requests takes it. */
export function ownStore(
  { responses, maxBodyBytes }: Pick<ResponsesContext, 'responses' | 'maxBodyBytes'>,
  terms: Pick<RequestTerms, 'caller' | 'memory'>,
): OwnStore {
  return new OwnStore(responses, terms, maxBodyBytes);
}
