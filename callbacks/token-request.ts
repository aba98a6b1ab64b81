import type { NamedText } from '../base/named-text.js';
import { counted } from '../base/sentences.js';
import { SkeinError } from '../base/skein-error.js';
import type { Retention } from '../kvcache/retention.js';
import type { Guide } from './guide.js';
import type { PieceSource } from './piece-source.js';
import { type FailureKind, isRequestsFault, type RequestFailure } from './request-failure.js';
import type { SamplingParams } from './sampling-params.js';
import type { SharedTensors } from './shared-tensors.js';

/** What a program or the server asks of the in-process host. Sampling fields not given take DEFAULT_SAMPLING_PARAMS. */
export interface TokenRequest extends Partial<SamplingParams> {
  promptTokens: Int32Array | readonly number[];
  maxNewTokens: number;
  /** Embeddings for this prompt: the token vocabSize + i in it stands for row i, of hiddenSize values (prompt tuning). */
  promptEmbeddings?: readonly Float32Array[];
  /** Position of each prompt token; the tokens generated count on from the last. Default 0, 1, 2, ... */
  positionIds?: Int32Array | readonly number[];
  /** Generation ends before any of these; none of them is part of what is returned. */
  endTokenIds?: readonly number[];
  /** Generation ends after any of these sequences of tokens; they are part of what is returned. */
  stopWords?: readonly (readonly number[])[];
  /** No sequence of these is generated: its last token is not drawn where the others stand before it. */
  badWords?: readonly (readonly number[])[];
  /** Added to the logits of these tokens at every step; -Infinity: never drawn. */
  logitBias?: ReadonlyMap<number, number>;
  /** Added to all logits at every step, one value for each token of the vocabulary. */
  embeddingBias?: Float32Array;
  /** Log-prob of each token returned. */
  returnLogProbs?: boolean;
  /** This many most probable tokens with their log-probs beside each token returned. */
  topLogProbs?: number;
  /** Raw logits of each token returned, before penalties, bans and temperature. */
  returnGenerationLogits?: boolean;
  /** Raw logits of each prompt token. The whole prompt is computed for them, whatever the cache has of it. */
  returnContextLogits?: boolean;
  /** Log-prob of each prompt token but the first, given those before it. The whole prompt is computed for them. */
  returnContextLogProbs?: boolean;
  /** This many most probable tokens beside each of those. */
  topContextLogProbs?: number;
  /**
   * So many sequences are drawn from the prompt, which is computed once; see InProcessHost.submitSeveral. Default 1.
   * Sequence i draws with the random numbers of index firstSequenceIndex + i.
   */
  numSequences?: number;
  firstSequenceIndex?: number;
  /**
   * What its sequences have generated before, elsewhere, a list for each: the request goes on behind these tokens, bit for bit
   * as if it had generated them here, and returns only what is new. maxNewTokens and minLength count them; it takes the seed
   * that they were drawn with. A list that ends with one of endTokenIds, or with a stop word, is a sequence that has ended; one
   * that is empty or missing begins anew. Not with beams. What is asked of the prompt (returnContextLogits, ...) is not
   * returned again.
   */
  knownOutputIds?: readonly (Int32Array | readonly number[])[];
  /** Beam search, whose beams are told of at their end, the best first; see InProcessHost.submitSeveral. */
  beams?: TokenBeams;
  /** false: one piece at the end. Default true: a piece as often as there is something new. */
  streaming?: boolean;
  /** 0..1, higher first; default 0.5. */
  priority?: number;
  /** Aborting it stops the request in any state; its blocks are freed within one iteration. */
  signal?: AbortSignal;
  /** Milliseconds from submission after which the request ends with what it has. */
  timeLimitMs?: number;
  /** Requests of different salts share nothing through the cache; 0 to 2^64 - 1, default 0n. */
  cacheSalt?: bigint;
  /** How long its blocks are worth keeping in the cache. */
  retention?: Retention;
  /** Name of a logits post-processor of the manager's logitsPostProcessorModule. */
  logitsPostProcessor?: string;
  /** Tokens that may come behind the prompt: as far as they do, several come of one step. */
  draftTokens?: Int32Array | readonly number[];
  /** Most tokens of a draft that the engine finds for it; 0: none. Not given: as many as the engine's option says. */
  maxDraftLen?: number;
  /** What the answer has to look like. */
  guide?: Guide;
  /** A name of the client's for it, which watchFormation tells. */
  label?: string;
  /** Who asks: what fair queueing and maxQueueSizePerKey tell apart. Default '': nobody in particular. */
  queueKey?: string;
  /** Share of the request's key beside others, with fair queueing; default 1. */
  queueWeight?: number;
  /** What post-processors get as the client's id; 0 to 2^64 - 1. */
  clientId?: bigint;
  /** Requests that are submitted one after the other, with the same lists, bring the same one: see SharedTensors. */
  shared?: Pick<SharedTensors, 'of'>;
}

export interface TokenBeams {
  /** Number of beams, at least 1, which is no search. */
  width: number;
  /** A beam of n tokens is worth the sum of its log-probs / n ** lengthPenalty. Default 1. */
  lengthPenalty?: number;
  /**
   * When the search ends, once as many beams have ended as there are: at once (true); when no running one would be better
   * if it ended now (false, the default); when none can become better ('never').
   */
  earlyStopping?: boolean | 'never';
}

export type FinishReason = 'stop' | 'length' | 'cancelled' | 'timeout';

/** What became of a request's time, in milliseconds from its submission; null for what never happened. */
export interface TokenTiming {
  /** It waited until here, in the host's queue and in the engine's. */
  firstScheduledMs: number | null;
  firstTokenMs: number | null;
  lastTokenMs: number | null;
  /** Iterations in which it ran. */
  numIterations: number;
  /** How often its blocks were taken away for others; it then went on with the same tokens. */
  numPauses: number;
  /** Full blocks of its prompt that the cache had, and those that it could have had but had not. */
  reusedBlocks: number;
  missedBlocks: number;
}

/** Tokens that are new since the last piece. Several iterations come as one piece where the consumer is slow. */
export interface TokenPiece {
  tokens: Int32Array;
  /** One per token; with returnLogProbs. */
  logProbs?: Float32Array;
  /** [tokens.length x topLogProbs], most probable first; with topLogProbs. */
  topTokens?: Int32Array;
  topLogProbs?: Float32Array;
  /** [tokens.length x vocabSize]; with returnGenerationLogits. */
  generationLogits?: Float32Array;
  /** Logits of the prompt, [promptTokens.length x vocabSize], with the first piece; with returnContextLogits. */
  contextLogits?: Float32Array;
  /** Log-probs of the prompt, [promptTokens.length - 1], with the first piece: entry i is of prompt token i + 1; with returnContextLogProbs. */
  contextLogProbs?: Float32Array;
  /** Most probable tokens in the prompt's places, [promptTokens.length - 1 x topContextLogProbs], most probable first, with the first piece. */
  contextTopTokens?: Int32Array;
  contextTopLogProbs?: Float32Array;
  /** Prompt tokens that were found in the cache, with the first piece. */
  cachedTokens?: number;
  /** null for every piece but the last, which may carry no tokens. */
  finishReason: FinishReason | null;
  /** Times of the request, with the last piece, where it reached the engine. */
  timing?: TokenTiming;
  /** Sum of a beam's log-probs, that of the end token included where one ended it; with the piece of a beam. */
  cumLogProb?: number;
  /** The key of the random numbers that were used, with the last piece. */
  seed?: bigint;
}

/** The pieces of one request, for one consumer. Leaving it early cancels the request. */
export interface TokenStream extends PieceSource<TokenPiece> {
  readonly requestId: bigint;
}

export interface RequestErrorOptions {
  kind?: FailureKind;
  isInvalid?: boolean;
  field?: string | null;
  cause?: unknown;
}

/** The engine refused or failed this request; the message is the error text of its final response. */
export class RequestError extends SkeinError {
  override name = 'RequestError';
  override readonly code = 'SKEIN_REQUEST';
  readonly kind: FailureKind;
  /** The tensor, or what a TokenRequest calls it, that is at fault; null: none is. */
  readonly field: string | null;

  /** @param options `kind` is 'invalid' or 'internal' where it is not given. */
  constructor(text: NamedText, options: RequestErrorOptions = {}) {
    super(text, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = options.kind ?? (options.isInvalid ? 'invalid' : 'internal');
    this.field = options.field ?? null;
    this.isInvalid = isRequestsFault(this.kind);
  }

  static of({ kind, field, text }: RequestFailure, cause?: unknown): RequestError {
    return new RequestError(text, { kind, field, cause });
  }

  /** The request itself is at fault: it would be refused again, and nothing of it ran. */
  readonly isInvalid: boolean;
}

/** The host's queue is full: nothing was accepted. */
export class QueueFullError extends SkeinError {
  override name = 'QueueFullError';
  override readonly code = 'SKEIN_QUEUE_FULL';
  /** Requests that may wait: of all, or of the one who asked. */
  readonly maxQueueSize: number;
  /** How long those that wait will take to leave the queue, by the pace of late; null where there is none yet. */
  readonly retryAfterMs: number | null;

  constructor(maxQueueSize: number, options: { ofOneKey?: boolean; retryAfterMs?: number | null } = {}) {
    const whose = options.ofOneKey ? ' of this API key' : '';
    super(
      `The queue is full: ${counted(maxQueueSize, 'request')}${whose} ${maxQueueSize === 1 ? 'is' : 'are'} waiting; try again later.`,
    );
    this.maxQueueSize = maxQueueSize;
    this.retryAfterMs = options.retryAfterMs ?? null;
  }
}

/** The host is closing or its engine is gone: nothing is accepted. */
export class HostClosedError extends SkeinError {
  override name = 'HostClosedError';
  override readonly code = 'SKEIN_HOST_CLOSED';
}
