import type { Guide } from '../../callbacks/guide.js';
import type { PieceSource } from '../../callbacks/piece-source.js';
import type { TokenPiece, TokenRequest } from '../../callbacks/token-request.js';
import type { BegunReasoning, ChatMessage, TemplatePictures } from '../../models/chat-template.js';
import type { Sight } from './pictures/picture.js';
import type { PictureSources } from './pictures/picture-files.js';
import type { ReasoningParserName } from './reasoning/reasoning-style.js';
import type { SamplingDefaults } from './sampling-defaults.js';
import type { ToolFormatName } from './tools/types.js';

export interface ChatRenderOptions {
  /** Ends the prompt with the header of an assistant message. Default true. */
  addGenerationPrompt?: boolean | undefined;
  /** Leaves the last message open, so that the answer continues it. */
  continueFinalMessage?: boolean | undefined;
  /** Reasoning with which the answer has begun: the prompt ends within it. */
  begunReasoning?: BegunReasoning | undefined;
  /** Adds the tokens that the model wants around a text, besides those of the template. Default false. */
  addSpecialTokens?: boolean | undefined;
  /** Further variables of the template. */
  variables?: Readonly<Record<string, unknown>> | undefined;
  /** The request's template in place of the model's. Default: the model's. */
  template?: string | undefined;
  /** Functions, in the form that the template knows. */
  tools?: readonly unknown[] | undefined;
  /** Placeholders of the pictures in the messages. */
  pictures?: TemplatePictures | undefined;
  /** Most tokens of a prompt; one that has more for certain is refused before it is encoded. */
  maxTokens?: number | undefined;
  /** Tokens of the model's context, which errors name. Default: maxTokens. */
  contextTokens?: number | undefined;
  /** Signal whose abort makes the promise reject with its reason: the tokens are no longer wanted. */
  signal?: AbortSignal | undefined;
}

/** A special token that is not skipped: its text, or the text and its mark. */
export type ShownToken = string | { readonly token: string; readonly mark: string };

export interface DetokenizerOptions {
  skipSpecialTokens: boolean;
  shownTokens?: readonly ShownToken[] | undefined;
}

export type PromptTokens = Int32Array | readonly number[];

/** Turns tokens into text piece by piece; never emits half a character. */
export interface Detokenizer {
  push(tokens: Iterable<number>): string;
  /** Returns the rest at the end; bytes that never became a character appear as U+FFFD. */
  flush(): string;
}

/** A tokenizer with its chat template: text to tokens and back. */
export interface TextCodec {
  /** Most UTF-16 units of the text of one token. Absent: not known. */
  readonly unitsPerToken?: number;
  /** Encodes plain text, with the tokens that the model wants around a text (a BOS, where it has one). */
  encodeText(text: string, signal?: AbortSignal): PromptTokens | Promise<PromptTokens>;
  /** Encodes a part of a text: no tokens are added. */
  encodePiece(text: string, signal?: AbortSignal): PromptTokens | Promise<PromptTokens>;
  /**
   * Encodes several texts as one piece of work: each as encodeText does, or without special tokens as encodePiece does.
   * Absent: they are encoded one by one.
   */
  encodeTexts?(
    texts: readonly string[],
    options: { addSpecialTokens: boolean; signal?: AbortSignal | undefined },
  ): Promise<PromptTokens[]>;
  /** Renders the chat template and encodes it without adding special tokens a second time. */
  encodeChat(
    messages: readonly ChatMessage[],
    options: ChatRenderOptions,
  ): PromptTokens | Promise<PromptTokens>;
  createDetokenizer(options: DetokenizerOptions): Detokenizer;
  /**
   * Checks whether a guide can be followed, without holding up this thread. Returns sentences about what of it is left out.
   * Absent: it is checked in this thread. @throws GuideError.
   */
  checkGuide?(guide: Guide): Promise<readonly string[]>;
  /** The token's entry in the vocabulary, as its file spells it; null for an id outside of it. */
  tokenEntry(token: number): string | null;
  /** Bytes of a token, which may be only a part of a character. */
  tokenBytes(token: number): Uint8Array;
  /** The chat template's source; null: the model has none. Absent: not known. */
  readonly templateSource?: string | null;
  /** Source of the template for conversations with functions. Absent or null: the same. */
  readonly toolTemplateSource?: string | null;
  /** Texts of the special tokens. */
  readonly specialTexts?: readonly string[];
}

/** The engine, as far as texts need it. */
export interface TokenEngine {
  /**
   * Submits a request. Its pieces end with one that has a finish reason, or with a RequestError. Leaving them early
   * cancels the request.
   * @throws QueueFullError at once, where the queue is full.
   */
  submit(request: TokenRequest): PieceSource<TokenPiece>;
  /**
   * Submits a request with several sequences or beams, with pieces for each. Absent: the engine takes no such requests.
   */
  submitSeveral?(request: TokenRequest): PieceSource<TokenPiece>[];
  /** Whether a request of this queueKey would be taken now. Absent: it is not known. @throws QueueFullError where it would not */
  checkRoom?(queueKey: string): void;
  /**
   * Whether a request may name the engine of this fingerprint, for a model with the adapter where one is named. Absent: the engine is known by
   * its own. @throws RequestError where it may not
   */
  checkEngine?(fingerprint: string, adapterName?: string): void;
}

/** A model that is ready to generate text. */
export interface TextModel {
  codec: TextCodec;
  engine: TokenEngine;
  vocabSize: number;
  maxInputLen: number;
  maxSeqLen: number;
  /** True where `count` sequences from one prompt can run as one request. Absent: never. */
  fitsTogether?(count: number, promptLength: number, maxTokens: number): boolean;
  /** Tokens that end an answer, unless the request names its own or ignores them; the first is the usual end_id. */
  endTokens: readonly number[];
  /** Settings of requests that have none of their own. Absent: the engine's. */
  sampling?: SamplingDefaults | undefined;
  /** Format in which the model writes calls of functions; absent or auto: the template's. */
  toolCallParser?: ToolFormatName | 'auto';
  /** What the model makes of pictures; absent or null: it reads text alone. */
  sight?: Sight | null | undefined;
  /** Ways to pictures that a program's requests only name; absent: none. A server has its own for each caller. */
  pictureSources?: PictureSources | undefined;
  /** Sentence on why it takes no pictures, where it might have. */
  whyBlind?: string;
  /** Way to separate reasoning from answers; absent or auto: as the template shows. */
  reasoningParser?: ReasoningParserName | 'auto';
}
