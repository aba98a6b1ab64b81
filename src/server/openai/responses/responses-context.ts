import type { AnsweringServices } from '../../answering/services.js';
import type { Caller } from '../../web/access/api-keys.js';
import type { RequestMemory } from '../../web/memory/request-memory.js';
import type { RequestTerms } from '../../web/request-terms.js';
import { OwnStore } from './own-store.js';
import type { ResponseStore } from './response-store.js';

export type ResponsesContext = AnsweringServices & {
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
