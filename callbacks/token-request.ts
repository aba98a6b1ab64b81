import type { NamedText } from '../base/named-text.js';
import { counted } from '../base/sentences.js';
import { SkeinError } from '../base/skein-error.js';
import type { Retention } from '../kvcache/retention.js';
import type { AdapterWeights } from '../models/adapters/adapter-weights.js';
import type { Guide } from './guide.js';
import type { TraceSpan } from './infer/trace-span.js';
import type { JoinedRows } from './joined-rows.js';
import type { PieceSource } from './piece-source.js';
import { type FailureKind, isRequestsFault, type RequestFailure } from './request-failure.js';
import type { SamplingParams } from './sampling-params.js';
import type { SharedTensors } from './shared-tensors.js';

/** Most sequences, or beams, of one request. */
export const MAX_SEQUENCES = 4096;

/** A picture in the form that a model's tower sees; its size decides everything but its pixels. */
export interface RequestPicture {
  /** What its rows are made of; see pictureDigest. */
  digest: Uint8Array;
  /** Its size in pixels, upright, before it became tiles. */
  width: number;
  height: number;
  /** Bytes of its pixels. */
  numBytes: number;
  /**
   * Pixels of its tiles, one tile after the other, [height x width x 3] each; see PicturePlan. They are there, or made of its file once they are
   * asked for; null: not at present.
   * @throws RequestError where they cannot be made
   */
  bytes(): Promise<Uint8Array | null>;
}

/** A request to the in-process host. Sampling fields not given take DEFAULT_SAMPLING_PARAMS. */
export interface TokenRequest extends Partial<SamplingParams> {
  /** Token ids of the prompt. */
  promptTokens: Int32Array | readonly number[];
  /** Most tokens to generate, of each sequence. */
  maxNewTokens: number;
  /** Embeddings for this prompt: the token vocabSize + i in it stands for row i, of hiddenSize values (prompt tuning). */
  promptEmbeddings?: readonly Float32Array[];
  /** The rows of promptEmbeddings in one array, made beforehand. The rows are not written to then: an engine that follows a lost one gets them again. */
  joinedEmbeddings?: Pick<JoinedRows, 'take'>;
  /**
   * Pictures in the prompt, by ascending place: [place of the first token, rows, columns], rows x columns tokens each. promptEmbeddings are then
   * theirs, one after the other, and the ids at their places, from vocabSize on, have to spell what the rows are made of: prompts with
   * equal ids share what is cached.
   */
  imageGrids?: readonly (readonly number[])[];
  /** The pictures of imageGrids in place of promptEmbeddings, where another process runs the request and makes their rows. */
  sentPictures?: readonly RequestPicture[];
  /** Position of each prompt token; the tokens generated count on from the last. Default 0, 1, 2, ... */
  positionIds?: Int32Array | readonly number[];
  /** Tokens that end the generation; they are not returned. */
  endTokenIds?: readonly number[];
  /** Sequences of tokens that end the generation; they are returned. */
  stopWords?: readonly (readonly number[])[];
  /** Sequences of tokens that are not generated: the last token is not drawn where the others stand before it. */
  badWords?: readonly (readonly number[])[];
  /** The only tokens that are generated; default: all. */
  allowedTokens?: Int32Array | readonly number[];
  /** Sequences of tokens over which DRY sees no repetition. */
  dryBreakers?: readonly (readonly number[])[];
  /** Most tokens of reasoning: after them the token that ends it is forced. */
  reasoningBudget?: ReasoningBudgetOptions;
  /** Numbers added to the logits of tokens at every step, by token id; -Infinity: never drawn. */
  logitBias?: ReadonlyMap<number, number>;
  /** Numbers added to all logits at every step, one for each token of the vocabulary. */
  embeddingBias?: Float32Array;
  /** Returns the log-prob of each token returned. */
  returnLogProbs?: boolean;
  /** Number of most probable tokens returned, with their log-probs, for each token returned. */
  topLogProbs?: number;
  /** Returns raw logits of each token returned, before penalties, bans and temperature. */
  returnGenerationLogits?: boolean;
  /** Returns raw logits of each prompt token. The whole prompt is computed for them, even the part in the cache. */
  returnContextLogits?: boolean;
  /**
   * Returns the log-prob of each prompt token but the first, given those before it. The whole prompt is computed for
   * them.
   */
  returnContextLogProbs?: boolean;
  /** Number of most probable tokens returned for each of the prompt's log-probs. */
  topContextLogProbs?: number;
  /**
   * Pieces in front of the first tokens report how far the prompt is, as parts of it are computed. Without
   * effect where pieces are not streamed, with beams, and with knownOutputIds.
   */
  returnContextProgress?: boolean;
  /**
   * Number of sequences drawn from the prompt, which is computed once; see InProcessHost.submitSeveral. Default 1.
   * Sequence i draws with the random numbers of index firstSequenceIndex + i.
   */
  numSequences?: number;
  firstSequenceIndex?: number;
  /**
   * Tokens that the sequences have generated before, elsewhere, a list for each: the request continues after
   * these tokens, bit for bit as if it had generated them here, and returns only new ones. maxNewTokens and
   * minLength count them; `seed` must be the one that they were drawn with. A list that ends with one of
   * endTokenIds, or with a stop word, is a sequence that has ended; an empty or missing list starts from the
   * beginning. Not with beams. Values of the prompt (returnContextLogits, ...) are not returned again.
   */
  knownOutputIds?: readonly (Int32Array | readonly number[])[];
  /** Beam search. Beams come when they end, the best first; see InProcessHost.submitSeveral. */
  beams?: TokenBeams;
  /** Sends a piece as often as there is something new. Default true; false: one piece at the end. */
  streaming?: boolean;
  /** Priority from 0 to 1, higher first; default 0.5. */
  priority?: number;
  /** Signal whose abort stops the request in any state; its blocks are freed within one iteration. */
  signal?: AbortSignal;
  /** Milliseconds from submission after which the request ends with what it has. */
  timeLimitMs?: number;
  /** Salt of the cache: requests of different salts share no blocks. 0 to 2^64 - 1, default 0n. */
  cacheSalt?: bigint;
  /**
   * Task id of the request's LoRA adapter, 0 to 2^64 - 1; needs peftCacheManagerConfig. Default: none. Without `adapter` a RequestError
   * of the kind 'adapter' says that the engine does not hold the weights.
   */
  loraTaskId?: bigint;
  /** Weights of that adapter; every request of the task may bring them. They go to the engine where it does not hold them, or no longer. */
  adapter?: AdapterWeights;
  /** Name of that adapter, which watchFormation reports; default: its task id. */
  adapterName?: string;
  /** Retention of the request's blocks: how long they are worth keeping in the cache. */
  retention?: Retention;
  /** Name of a logits post-processor of the manager's logitsPostProcessorModule. */
  logitsPostProcessor?: string;
  /** Tokens expected to follow the prompt: as far as they are right, one step gives several tokens. */
  draftTokens?: Int32Array | readonly number[];
  /** Logits, after temperature, that each token of draftTokens was drawn from, a row for each: it is then accepted by rejection sampling. */
  draftLogits?: readonly Float32Array[];
  /** Most tokens of a draft that the engine makes for the request; 0: none. Default: the engine's option. */
  maxDraftLen?: number;
  /** Form that the answer must have. */
  guide?: Guide;
  /** The client's own name for the request, which watchFormation reports. */
  label?: string;
  /**
   * Name of the client, by which fair queueing and maxQueueSizePerKey distinguish requests. Default '': no
   * particular client.
   */
  queueKey?: string;
  /** Weight of the request's key relative to others, with fair queueing; default 1. */
  queueWeight?: number;
  /** Fingerprint of the engine that is to answer, where a gateway has several of the model; default: any. An engine itself does not look at it. */
  engineFingerprint?: string;
  /** Client id that post-processors get; 0 to 2^64 - 1. */
  clientId?: bigint;
  /**
   * Store of shared tensors, for requests with the same lists that are submitted one after the other: see
   * SharedTensors.
   */
  shared?: Pick<SharedTensors, 'of'>;
  /** Span of the request that this one belongs to; absent: it is not traced. A work queue hangs its own spans below it. */
  trace?: TraceSpan;
}

export interface ReasoningBudgetOptions {
  /** Most tokens of reasoning, without its markers; at least 0. */
  tokens: number;
  /** Token that ends reasoning. */
  endToken: number;
  /** Token that begins it, among the first 16 of an answer. Default: answers begin within reasoning. */
  beginToken?: number | undefined;
}

export interface TokenBeams {
  /** Number of beams, at least 1; 1 is no search. */
  width: number;
  /** Exponent of the length: a beam of n tokens scores the sum of its log-probs / n ** lengthPenalty. Default 1. */
  lengthPenalty?: number;
  /**
   * When the search ends, once as many beams have ended as `width` asks for: at once (true); when no running beam would
   * be better if it ended now (false, the default); when none can become better ('never').
   */
  earlyStopping?: boolean | 'never';
}

export type FinishReason = 'stop' | 'length' | 'cancelled' | 'timeout';

/** Times of a request, in milliseconds from its submission; null for what never happened. */
export interface TokenTiming {
  /** Time when the request first ran; until then it waited in the host's queue and in the engine's. */
  firstScheduledMs: number | null;
  firstTokenMs: number | null;
  lastTokenMs: number | null;
  /** Number of iterations in which the request ran. */
  numIterations: number;
  /** Number of times that the request's blocks were taken away for others; it then went on with the same tokens. */
  numPauses: number;
  /** Full blocks of the prompt that the cache had; missedBlocks: those that it could have had but had not. */
  reusedBlocks: number;
  missedBlocks: number;
}

/** Tokens that are new since the last piece. Several iterations come as one piece where the consumer is slow. */
export interface TokenPiece {
  tokens: Int32Array;
  /** Log-prob of each token; with returnLogProbs. */
  logProbs?: Float32Array;
  /** Most probable tokens, [tokens.length x topLogProbs], most probable first; with topLogProbs. */
  topTokens?: Int32Array;
  topLogProbs?: Float32Array;
  /** Raw logits, [tokens.length x vocabSize]; with returnGenerationLogits. */
  generationLogits?: Float32Array;
  /** Logits of the prompt, [promptTokens.length x vocabSize], with the first piece; with returnContextLogits. */
  contextLogits?: Float32Array;
  /** Log-probs of the prompt, [promptTokens.length - 1], with the first piece: entry i is of prompt token i + 1; with returnContextLogProbs. */
  contextLogProbs?: Float32Array;
  /** Most probable tokens in the prompt's places, [promptTokens.length - 1 x topContextLogProbs], most probable first, with the first piece. */
  contextTopTokens?: Int32Array;
  contextTopLogProbs?: Float32Array;
  /** How far the prompt is, where it is further than at the last piece; with returnContextProgress. */
  contextProgress?: ContextProgress;
  /** Prompt tokens that were found in the cache, with the first piece that has tokens. */
  cachedTokens?: number;
  /** Why the sequence ended; null for every piece but the last, which may carry no tokens. */
  finishReason: FinishReason | null;
  /** Times of the request, with the last piece, where it reached the engine. */
  timing?: TokenTiming;
  /** Sum of a beam's log-probs, that of an end token included; with the piece of a beam. */
  cumLogProb?: number;
  /** Key of the random numbers that were used, with the last piece. */
  seed?: bigint;
}

/** How far the prompt of a request is. */
export interface ContextProgress {
  /** Prompt tokens done, those found in the cache included; never fewer than before, and at last all of them. */
  done: number;
  /** Prompt tokens that were found in the cache. */
  cached: number;
  /** Milliseconds since the request first ran. */
  ms: number;
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

/** An error for a request that the engine refused or failed; the message is the error text of its final response. */
export class RequestError extends SkeinError {
  override name = 'RequestError';
  override readonly code = 'SKEIN_REQUEST';
  readonly kind: FailureKind;
  /** Tensor or TokenRequest field that is at fault; null: none is. */
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

  /** True where the request itself is at fault: it would end so again. Only one of kind `noToken` has run until then. */
  readonly isInvalid: boolean;
}

/** An error for a full queue of the host: the request was not accepted. */
export class QueueFullError extends SkeinError {
  override name = 'QueueFullError';
  override readonly code = 'SKEIN_QUEUE_FULL';
  /** Most requests that may wait: of all clients, or of the one who asked. */
  readonly maxQueueSize: number;
  /**
   * Estimated milliseconds until the waiting requests have left the queue, by their recent pace; null where there is no
   * pace yet.
   */
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

/** An error for a host that is closing or whose engine is gone: the request was not accepted. */
export class HostClosedError extends SkeinError {
  override name = 'HostClosedError';
  override readonly code = 'SKEIN_HOST_CLOSED';
}

/** Thrown for a request that no worker could take for too long; its message may be shown to clients. */
export class NoWorkerError extends SkeinError {
  override name = 'NoWorkerError';
  override readonly code = 'SKEIN_NO_WORKER';
}
