import type { Caller } from './api-keys.js';
import type { RequestMemory } from './request-memory.js';
import type { RequestRegistry } from './request-registry.js';

/** The terms on which a request is served. */
export interface RequestTerms {
  caller: Caller;
  /** Comes back as X-Request-Id. */
  requestId: string;
  /** Most time that the answer may take, waiting included; null: no limit. */
  timeLimitMs: number | null;
  /** Where it can be found, to be cancelled. */
  registry: RequestRegistry;
  /** What it may hold, and does. */
  memory: RequestMemory;
}
