import type { TokenTiming } from '../../callbacks/token-request.js';

/** Follows one request (one choice of one prompt) for the metrics. */
export interface RequestObserver {
  /** Called at most once: prompt tokens that were found in the cache. */
  onCachedTokens(count: number): void;
  /** Called for each piece that holds tokens. */
  onTokens(count: number): void;
  /** Called at most once: tokens that had been generated when the client left, and that nobody was told. */
  onForgotten(count: number): void;
  /** Called once. `reason`: a finish reason, or 'abort' or 'error'; `timing` where the engine gave it. */
  onEnd(reason: string, timing?: TokenTiming): void;
}

export interface ObservedRequest {
  /** The model's id, whatever alias the client asked for. */
  model: string;
  promptTokens: number;
  maxTokens: number;
  /** The answer follows a grammar. */
  isGuided?: boolean;
  /** Answers asked for, said by the first of those to one prompt. */
  choices?: number;
}

export type ObserveRequest = (request: ObservedRequest) => RequestObserver;
