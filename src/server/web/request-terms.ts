import type { Admit, AnswerTally } from '../../../callbacks/infer/answer-tally.js';
import type { TraceSpan } from '../../../callbacks/infer/trace-span.js';
import type { Caller } from './access/api-keys.js';
import type { RequestMemory } from './memory/request-memory.js';
import type { PromptParting } from './prompt-parting.js';
import type { RequestRegistry } from './request-registry.js';

/** Terms on which a request is served. */
export interface RequestTerms {
  caller: Caller;
  /** Id of the request, which is returned as X-Request-Id. */
  requestId: string;
  /** Most milliseconds that the answer may take, waiting included; null: no limit. */
  timeLimitMs: number | null;
  /** Registry where the request can be found and cancelled. */
  registry: RequestRegistry;
  /** Account of the memory that it holds. */
  memory: RequestMemory;
  /** True for a request of a batch: those of clients that wait go first. Absent: it is none. */
  isBatch?: boolean;
  /** Adds up what its answers take, for the access log; absent: that is not counted. */
  tally?: AnswerTally | undefined;
  /** Asks whether its caller's limits allow the answers; absent: there are no limits to count against. */
  admit?: Admit | undefined;
  /**
   * Called where its prompt diverges from an earlier one although most of the rest is the same; absent: that
   * is not detected.
   */
  onParting?: ((parting: PromptParting) => void) | undefined;
  /** Fingerprint of the engine that is to answer; absent: any of the model. */
  engine?: string | undefined;
  /** The span of the HTTP request; absent: it is not traced. */
  trace?: TraceSpan | undefined;
}
