import type { Guide } from '../../callbacks/guide.js';
import type { FinishCode } from '../../callbacks/response-batch.js';
import type { SamplingParams } from '../../callbacks/sampling-params.js';
import type { Retention } from '../../kvcache/retention.js';
import type { TokenSpan } from '../../scheduler/tokens/types.js';
import type { BadWords } from '../decoding/bad-words.js';
import type { DryPenalty } from '../decoding/dry-penalty.js';
import type { ReasoningBudget } from '../decoding/reasoning-budget.js';
import type { LogitBias } from '../packed-call/sampling-batch.js';
import type { BeamParams } from './beam-params.js';
import type { PromptPositions } from './prompt-positions.js';

/** Embeddings of ids from the vocabulary's size on, for prompts only. */
export interface PromptTable {
  /** First id of the table: the vocabulary's size. */
  readonly firstId: number;
  /** Embeddings [rows x width]. */
  readonly values: Float32Array;
  /** Pictures that have the rows, one after the other, in the order of their places; null: id firstId + i names row i. */
  readonly images: readonly ImageSpan[] | null;
  /** True: tokens of a picture attend to all of it, so that no step cuts one. Absent: only to those before them. */
  readonly bothWays?: true;
}

/** Tokens [start, end) of a prompt that are a picture's, in a grid of rows and columns. */
export interface ImageSpan extends TokenSpan {
  readonly rows: number;
  readonly columns: number;
}

/** Tokens that one of a request's sequences has generated elsewhere. */
export interface KnownOutput {
  /** The tokens without the end token. */
  readonly tokens: Int32Array;
  /** Reason why the sequence ended there; FINISH_NOT_FINISHED: it goes on. */
  readonly finishReason: FinishCode;
}

/** An inference request whose tensors have been read and checked, in the form that the loop uses. */
export interface RequestSpec {
  requestId: bigint;
  /** Tokens of the prompt, at least one, each inside the vocabulary or an id of the prompt table. */
  promptTokens: Int32Array;
  /** Embeddings that the request brings; null: none. */
  promptTable: PromptTable | null;
  /** Positions of the prompt's tokens; null: 0, 1, 2, ..., for all that follow too. */
  positions: PromptPositions | null;
  /** Most tokens to generate, at least 1. */
  maxNewTokens: number;
  sampling: SamplingParams & { seed: bigint };
  /** Values of the filters that a chain has (see sampler-chain.ts); null: it draws without one. */
  chain: Float64Array | null;
  /** Penalty for going on with repetitions; null: none. */
  dry: DryPenalty | null;
  /** Budget of tokens for reasoning; null: none. */
  reasoningBudget: ReasoningBudget | null;
  /** Token that ends a sequence; -1 = none. */
  endId: number;
  /** Token that fills output_ids beyond the sequence. */
  padId: number;
  stopWords: readonly Int32Array[];
  /** Words that are never generated; null: none. */
  badWords: BadWords | null;
  /** Values added to the logits of every step; null: none. */
  bias: LogitBias | null;
  /** endId and the stop words of one token, each once, inside the vocabulary: not drawn below min_length. */
  endingTokens: Int32Array;
  /** Parameters of beam search; null: tokens are drawn. */
  beams: BeamParams | null;
  /** Number of sequences side by side from the prompt, at least 1: drawn ones, or beams. */
  numSequences: number;
  /** Index of the first sequence, which its random numbers depend on; default 0. */
  firstSequenceIndex: number;
  /**
   * Tokens that sequences have generated before, elsewhere, by index; a sequence without an entry has none; null: none has.
   */
  known: readonly KnownOutput[] | null;
  /** Number of sequences that are answered: all, or fewer, namely those of the best mean log-prob. */
  numReturned: number;
  streaming: boolean;
  returnLogProbs: boolean;
  /** Number of most probable tokens to report with each token; 0 = none. */
  topLogProbs: number;
  /** True if responses tell how far the prompt is, until it is done. */
  returnContextProgress: boolean;
  /** True if raw logits are returned, of every prompt token and of every generated one. */
  returnContextLogits: boolean;
  returnGenerationLogits: boolean;
  /** True if the log-prob of each prompt token, given those before it, is returned. */
  returnContextLogProbs: boolean;
  /** Number of most probable tokens to report with each prompt token; 0 = none. */
  topContextLogProbs: number;
  priority: number;
  /** Milliseconds since the epoch; null = when the loop takes it. */
  arrivalTimeMs: number | null;
  /** Milliseconds from admission to the loop after which the request ends; null = none. */
  timeLimitMs: number | null;
  /** Requests of different salts share no blocks. Combines the client's salt (0n: none), prompt table and positions. */
  cacheSalt: bigint;
  /** Retention of its cached blocks; null = the default. */
  retention: Retention | null;
  /** Name of the logits post-processor that it asks for; null = none. */
  postProcessor: string | null;
  /** Draft of tokens that may follow its prompt; null: it brings none. */
  draftTokens: Int32Array | null;
  /** Logits that each draft token was drawn from, [draftTokens x vocabSize]; null: not known, or not used. */
  draftLogits: Float32Array | null;
  /** Most tokens of a draft that the engine finds for it, 0: none; null: the engine's option. */
  maxDraftLen: number | null;
  /** Form that its answer must have; null = any. */
  guide: Guide | null;
  /** The client's id for itself, for post-processors; null = none. */
  clientId: bigint | null;
  /**
   * False if it takes nothing from the cache and leaves nothing there, for example if logits or log-probs of its whole prompt are
   * asked for.
   */
  reusesBlocks: boolean;
}

/** Pictures that no step may cut; undefined: there are none. */
export function wholeSpansOf({
  promptTable,
}: Pick<RequestSpec, 'promptTable'>): readonly ImageSpan[] | undefined {
  return promptTable?.bothWays ? promptTable.images! : undefined;
}
