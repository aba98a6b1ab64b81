import type { HttpBindings } from '@hono/node-server';
import type { Admit, AnswerTally } from '../../../callbacks/infer/answer-tally.js';
import type { TraceSpan } from '../../../callbacks/infer/trace-span.js';
import type { UnknownFields } from '../../schemas/unknown-fields.js';
import type { Caller } from './access/api-keys.js';
import type { RequestMemory } from './memory/request-memory.js';
import type { PromptParting } from './prompt-parting.js';

/** What the server's middleware notes of a request, for those that come after it. */
export type AppEnv = {
  Bindings: Partial<HttpBindings> & {
    /** Of a request that the server makes itself, for a batch: whose it is. */
    inner?: { caller: Caller };
  };
  Variables: {
    requestId: string;
    caller: Caller;
    memory: RequestMemory;
    /** What of the request has no effect. */
    warnings?: readonly string[];
    /** Where its prompt parted from an earlier one; absent: nowhere, or nothing was lost. */
    parting?: PromptParting;
    /** Adds up what models compute for the request, for its line in the access log. */
    tally: AnswerTally;
    /** Asks whether the caller's limits allow an answer; absent: there are no limits to count against. */
    admit?: Admit;
    /** The request's span; absent: it is not traced. */
    trace?: TraceSpan;
    /** Unknown fields of the body; absent: there are none, or they are not reported. */
    unknownFields?: UnknownFields;
    /** Body of a direct answer. */
    directBody?: string | Uint8Array<ArrayBuffer>;
  };
};
