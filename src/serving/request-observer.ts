import type { AnswerTally } from '../../callbacks/infer/answer-tally.js';
import type { TraceSpan } from '../../callbacks/infer/trace-span.js';
import type { TokenTiming } from '../../callbacks/token-request.js';
import type { TracedText } from './texts/text-trace.js';

/** Follows one request (one choice of one prompt) for the metrics. */
export interface RequestObserver {
  /** Called at most once, with the number of prompt tokens found in the cache. */
  onCachedTokens(count: number): void;
  /** Called with the number of tokens of each piece that holds any. */
  onTokens(count: number): void;
  /**
   * Called at most once, with the number of tokens that were generated when the client left and never sent.
   */
  onForgotten(count: number): void;
  /** Called once. `reason`: a finish reason, or 'abort' or 'error'; `timing` where the engine gave it. */
  onEnd(reason: string, timing?: TokenTiming): void;
}

export interface ObservedRequest {
  /** Id of the model, whatever alias the client asked for. */
  model: string;
  promptTokens: number;
  maxTokens: number;
  /** True where the answer follows a grammar. */
  isGuided?: boolean;
  /** Number of answers requested, reported with the first of those to one prompt. */
  choices?: number;
  /** Its prompt was reported with another answer to the same prompt. */
  sharesPrompt?: boolean;
  /** Adds up what its exchange's answers take; absent: that is not counted. */
  tally?: AnswerTally | undefined;
  /** What its trace records besides that; absent: it is not traced. */
  traced?: { parent: TraceSpan } & Pick<
    TracedText,
    'requestId' | 'temperature' | 'topP' | 'choices' | 'ranks'
  >;
}

/** Requests are not followed. */
export const UNOBSERVED: ObserveRequest = () => ({
  onCachedTokens: () => {},
  onTokens: () => {},
  onForgotten: () => {},
  onEnd: () => {},
});

export type ObserveRequest = (request: ObservedRequest) => RequestObserver;
