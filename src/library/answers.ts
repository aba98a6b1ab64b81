import type { FinishReason, TokenBeams } from '../../callbacks/token-request.js';
import type { ChatMessage } from '../../models/chat-template.js';
import type { BadWord } from '../generation/bad-words.js';
import type { ReasoningOptions } from '../generation/chat-options.js';
import { type ChatPiece, chatPieces, type ToolCall } from '../generation/chat-pieces.js';
import type { ChatPlan } from '../generation/chat-plan.js';
import type { DryBreaker } from '../generation/dry-breakers.js';
import type { GuidedOptions } from '../generation/guided.js';
import type {
  AnswerOptions,
  SamplingOptions,
  TextLogProb,
  TextPiece,
} from '../generation/text-generation.js';
import type { PromptTokens } from '../generation/text-model.js';
import type { FunctionTool } from '../generation/tools/types.js';
import { CollectedAnswer, untilEnd } from './collected-answer.js';

/** A gap in a text, which the answer fills. */
export interface InfillOptions {
  /** Text before the gap. */
  prefix: string;
  /** Text after the gap. */
  suffix: string;
  /** Text right before the gap that is never cut. */
  prompt?: string | undefined;
  /** Other files that the model is to know, the most important last. */
  extra?: readonly { filename: string; text: string }[] | undefined;
}

/** Options of one answer. One of prompt, messages, infill and promptTokens is given. */
export interface GenerateOptions extends SamplingOptions, AnswerOptions {
  /** Text to continue. */
  prompt?: string | undefined;
  /** A conversation to answer, through the model's chat template. */
  messages?: readonly ChatMessage[] | undefined;
  /** A gap to fill, for models whose vocabulary has tokens for that. What is too long for the context is cut where it is farthest from the gap. */
  infill?: InfillOptions | undefined;
  /** Token ids of the prompt, taken as they are. */
  promptTokens?: PromptTokens | undefined;
  /**
   * Embeddings of the model's hidden size, one Float32Array each: the id `vocabulary + i` in promptTokens
   * means entry i (prompt tuning). Such ids are never generated.
   */
  promptEmbeddings?: readonly Float32Array[] | undefined;
  /** Position of each prompt token; the answer counts on from the last. Default 0, 1, 2, ... */
  positionIds?: Int32Array | readonly number[] | undefined;
  /** Most tokens of the answer. Default: what the context leaves, at most max_new_tokens of the model's generation_config.json, else DEFAULT_MAX_TOKENS. */
  maxTokens?: number | undefined;
  /** Fewest tokens of the answer: end tokens and stop tokens are not drawn before. Default 0. */
  minTokens?: number | undefined;
  /** Texts that end the answer; they are not part of it. */
  stop?: string | readonly string[] | undefined;
  /** Texts, or sequences of tokens, that are not generated. */
  badWords?: readonly BadWord[] | undefined;
  /** Texts, or sequences of tokens, over which DRY sees no repetition. Default: a new line, a colon, a quote, an asterisk. */
  dryBreakers?: readonly DryBreaker[] | undefined;
  /** Most tokens of a draft that the engine makes for the answer; 0: none. Default: ModelOptions.maxDraftTokens. */
  maxDraftLen?: number | undefined;
  /** Form that the answer must have: JSON of a schema, a regular expression, a choice, a grammar, tags. */
  guided?: GuidedOptions | undefined;
  /** Priority from 0 to 1, higher first; default 0.5. */
  priority?: number | undefined;
  /**
   * Name of the client, by which ModelOptions.fairQueueing and maxQueuedRequestsPerKey distinguish requests.
   */
  queueKey?: string | undefined;
  /** Weight of the request's key relative to others, with fairQueueing; above 0, default 1. */
  queueWeight?: number | undefined;
  /** Salt of the cache: requests of different salts share no blocks. 0 to 2^64 - 1. */
  cacheSalt?: bigint | undefined;
  /** Name of the LoRA adapter by which the model answers; see ModelOptions.adapters. Default: none. */
  adapter?: string | undefined;
  /** Ends the prompt with the header of an answer; only with messages. Default true. */
  addGenerationPrompt?: boolean | undefined;
  /** Continues the last message instead of answering it; only with messages. */
  continueFinalMessage?: boolean | undefined;
  /** Further variables of the chat template; only with messages. */
  templateVariables?: Readonly<Record<string, unknown>> | undefined;
  /**
   * Functions that the model may call; only with messages. A call is reported in `toolCalls` of the piece or
   * the completion.
   */
  tools?: readonly FunctionTool[] | undefined;
  /** Whether functions are called: as the model likes ('auto', the default), never, at least one, or a certain one. */
  toolChoice?: 'none' | 'auto' | 'required' | { name: string } | undefined;
  /** Allows several calls in one answer. Default true. */
  parallelToolCalls?: boolean | undefined;
  /**
   * Separates the model's reasoning from its answer, in `reasoning` of the piece or the completion; false
   * asks the model not to reason, as far as its chat template knows how. Only with messages. Default: with
   * tools or a guide, whose form is the text's, as true, else reasoning is part of the text.
   */
  reasoning?: boolean | ReasoningOptions | undefined;
  /** Milliseconds, waiting included, after which the answer ends with what it has and the finish reason 'timeout'. */
  timeLimitMs?: number | undefined;
  /**
   * Signal whose abort ends the request in any state. `complete` then rejects with the signal's reason, as fetch does.
   */
  signal?: AbortSignal | undefined;
}

/** A whole answer. */
export interface Completion {
  text: string;
  tokens: number[];
  logProbs: TextLogProb[];
  finishReason: Exclude<FinishReason, 'cancelled'>;
  /** The stop string or stop token that ended the answer, else null. */
  stopReason: string | number | null;
  /** Number of prompt tokens. */
  promptTokens: number;
  /** The model's reasoning; absent: there is none, or it is part of the text: see GenerateOptions.reasoning. */
  reasoning?: string;
  /** Calls of functions; absent: there are none. */
  toolCalls?: readonly ToolCall[];
  /** What was changed about the functions, so that the model's chat template took them, and what of a schema is not followed; absent: nothing. */
  warnings?: readonly string[];
  /** Sum of a beam's log-probs, that of an end token included; only where beams were asked for. */
  cumLogProb?: number;
}

/** Options of several answers to one prompt. */
export interface SeveralOptions extends GenerateOptions {
  /** Number of answers; default 1, with beams as many as there are. */
  n?: number | undefined;
  /** Number of answers to draw, of which the n with the greatest mean log-prob are returned; default n. */
  bestOf?: number | undefined;
  /** Beam search instead of drawing; needs ModelOptions.maxBeamWidth. */
  beams?: TokenBeams | undefined;
}

/** How an answer is read. */
export type AnswerPlan = Pick<ChatPlan, 'createParser' | 'callIds' | 'warnings'>;

/** Collects an answer; see Skein.complete for what it throws. */
export async function whole(
  generated: AsyncIterable<TextPiece>,
  promptTokens: number,
  plan: AnswerPlan | null,
  signal: AbortSignal | undefined,
): Promise<Completion> {
  const answer = new CollectedAnswer();
  const tokens: number[] = [];
  const logProbs: TextLogProb[] = [];
  let last: ChatPiece | null = null;
  const pieces: AsyncIterable<ChatPiece> = plan === null ? generated : chatPieces(generated, plan);
  for await (const piece of untilEnd(pieces, signal)) {
    answer.add(piece);
    for (const token of piece.tokens) tokens.push(token);
    for (const logProb of piece.logProbs) logProbs.push(logProb);
    last = piece;
  }
  const { text, reasoning, calls, finishReason } = answer;
  return {
    text,
    tokens,
    logProbs,
    finishReason: finishReason as Completion['finishReason'],
    stopReason: last!.stopReason,
    promptTokens,
    ...(reasoning === '' ? {} : { reasoning }),
    ...(calls.length === 0 ? {} : { toolCalls: calls }),
    ...(plan === null || plan.warnings.length === 0 ? {} : { warnings: plan.warnings }),
    ...(last!.cumLogProb === undefined ? {} : { cumLogProb: last!.cumLogProb }),
  };
}
