import type { FinishCode } from '../../callbacks/finish-reason.js';
import type { Guide } from '../../callbacks/guide.js';
import type { SamplingParams } from '../../callbacks/sampling-params.js';
import type { Retention } from '../../kvcache/retention.js';
import type { BadWords } from '../decoding/bad-words.js';
import type { LogitBias } from '../decoding/sampling-batch.js';
import type { BeamParams } from '../sequences/beam-params.js';

/** Embeddings of ids behind the vocabulary, for prompts only. */
export interface PromptTable {
  /** The vocabulary's size. */
  readonly firstId: number;
  /** [ids x hidden size] */
  readonly values: Float32Array;
}

/** What one of a request's sequences has generated elsewhere. */
export interface KnownOutput {
  /** Without the end token. */
  readonly tokens: Int32Array;
  /** Why the sequence ended there; FINISH_NOT_FINISHED: it goes on. */
  readonly finishReason: FinishCode;
}

/** An inference request whose tensors have been read and checked: what the loop needs to know of it. */
export interface RequestSpec {
  requestId: bigint;
  /** At least one token, each inside the vocabulary or an id of the prompt table. */
  promptTokens: Int32Array;
  /** Embeddings that the request brings; null: the prompt has none of them. */
  promptTable: PromptTable | null;
  /** Position of each prompt token, from where what is generated counts on; null: 0, 1, 2, ... */
  positionIds: Int32Array | null;
  /** At least 1. */
  maxNewTokens: number;
  sampling: SamplingParams & { seed: bigint };
  /** -1 = none. */
  endId: number;
  /** Fills output_ids beyond the sequence. */
  padId: number;
  stopWords: readonly Int32Array[];
  /** Never generated; null: none. */
  badWords: BadWords | null;
  /** Added to the logits of every step; null: none. */
  bias: LogitBias | null;
  /** endId and the stop words of one token, each once, inside the vocabulary: not drawn below min_length. */
  endingTokens: Int32Array;
  /** Beam search; null: tokens are drawn. */
  beams: BeamParams | null;
  /** Sequences side by side from the prompt, at least 1: drawn ones, or beams. */
  numSequences: number;
  /** Index of the first of them, with which its random numbers are drawn; default 0. */
  firstSequenceIndex: number;
  /** What they have generated before, elsewhere, by their index; those without an entry, and all where it is null: nothing. */
  known: readonly KnownOutput[] | null;
  /** How many of these are answered: all, or, where it is fewer, those of the best mean log-prob. */
  numReturned: number;
  streaming: boolean;
  returnLogProbs: boolean;
  /** Most probable tokens to report beside each token; 0 = none. */
  topLogProbs: number;
  /** Raw logits of every prompt token, and of every generated one. */
  returnContextLogits: boolean;
  returnGenerationLogits: boolean;
  /** Log-prob of each prompt token given those before it. */
  returnContextLogProbs: boolean;
  /** Most probable tokens to report beside each of those; 0 = none. */
  topContextLogProbs: number;
  priority: number;
  /** Milliseconds since the epoch; null = when the loop takes it. */
  arrivalTimeMs: number | null;
  /** Milliseconds from admission to the loop after which the request ends; null = none. */
  timeLimitMs: number | null;
  /** Requests of different salts share no blocks: that of the client (0n: none), prompt table and positions. */
  cacheSalt: bigint;
  /** How long its cached blocks are worth keeping; null = as any other. */
  retention: Retention | null;
  /** Name of the logits post-processor that it asks for; null = none. */
  postProcessor: string | null;
  /** Tokens that may come behind its prompt; null: it brings none. */
  draftTokens: Int32Array | null;
  /** What each of them was drawn from, [draftTokens x vocabSize]; null: not known, or not to be asked. */
  draftLogits: Float32Array | null;
  /** Most tokens of a draft that the engine finds for it, 0: none; null: as many as the engine's option says. */
  maxDraftLen: number | null;
  /** What its answer has to look like; null = anything. */
  guide: Guide | null;
  /** What the client calls itself, for post-processors; null = nothing. */
  clientId: bigint | null;
  /** false: it takes nothing from the cache and leaves nothing there, as where logits or log-probs of its whole prompt are asked for. */
  reusesBlocks: boolean;
}
