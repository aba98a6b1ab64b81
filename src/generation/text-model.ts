import type { Guide } from '../../callbacks/guide.js';
import type { PieceSource } from '../../callbacks/piece-source.js';
import type { TokenPiece, TokenRequest } from '../../callbacks/token-request.js';
import type { ChatMessage } from '../../models/chat-template.js';
import type { ReasoningParserName } from './reasoning/reasoning-style.js';
import type { ToolFormatName } from './tools/types.js';

export interface ChatRenderOptions {
  /** Ends the prompt with the header of an assistant message. Default true. */
  addGenerationPrompt?: boolean | undefined;
  /** Leaves the last message open, so that the answer continues it. */
  continueFinalMessage?: boolean | undefined;
  /** Adds the tokens that the model wants around a text, besides those that the template wrote. Default false. */
  addSpecialTokens?: boolean | undefined;
  /** Further variables of the template. */
  variables?: Readonly<Record<string, unknown>> | undefined;
  /** Functions, as the template knows them. */
  tools?: readonly unknown[] | undefined;
  /** A prompt that has more tokens for certain is refused before it is encoded. */
  maxTokens?: number | undefined;
  /** Raised where nobody wants the tokens any more: then the promise rejects with its reason. */
  signal?: AbortSignal | undefined;
}

export interface DetokenizerOptions {
  skipSpecialTokens: boolean;
  /** Texts of special tokens that are not skipped. */
  shownTokens?: readonly string[] | undefined;
}

export type PromptTokens = Int32Array | readonly number[];

/** Turns tokens into text piece by piece; never emits half a character. */
export interface Detokenizer {
  push(tokens: Iterable<number>): string;
  /** What is left at the end; bytes that never became a character appear as U+FFFD. */
  flush(): string;
}

/** Text in, tokens out and back: a tokenizer with its chat template. */
export interface TextCodec {
  /** UTF-16 units of a text that one token stands for at most. Absent: not known. */
  readonly unitsPerToken?: number;
  /** Encodes plain text, with the tokens that the model wants around a text (a BOS, where it has one). */
  encodeText(text: string, signal?: AbortSignal): PromptTokens | Promise<PromptTokens>;
  /** Encodes a part of a text: nothing is added to it. */
  encodePiece(text: string, signal?: AbortSignal): PromptTokens | Promise<PromptTokens>;
  /**
   * Encodes several texts, as encodeText does each, or as encodePiece without special tokens: one piece of work, however
   * many they are. Absent: they are encoded one by one.
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
  /** Says whether a guide can be followed, without holding up this thread. Absent: it is checked here. @throws GuideError. */
  checkGuide?(guide: Guide): Promise<void>;
  /** The token's entry in the vocabulary, as its file spells it; null for an id outside of it. */
  tokenEntry(token: number): string | null;
  /** The bytes that a token stands for; of one character possibly only a part. */
  tokenBytes(token: number): Uint8Array;
  /** The chat template's source; null: the model has none. Absent: not known. */
  readonly templateSource?: string | null;
  /** Texts of the special tokens. */
  readonly specialTexts?: readonly string[];
}

/** The engine as the text level sees it. */
export interface TokenEngine {
  /**
   * Takes a request. Its pieces end with one that has a finish reason, or with a RequestError. Leaving them early cancels
   * the request.
   * @throws QueueFullError at once, where the queue is full.
   */
  submit(request: TokenRequest): PieceSource<TokenPiece>;
  /** The same for a request with several sequences or beams: pieces for each. Absent: it takes none such. */
  submitSeveral?(request: TokenRequest): PieceSource<TokenPiece>[];
}

/** A model that is ready to generate text. */
export interface TextModel {
  codec: TextCodec;
  engine: TokenEngine;
  vocabSize: number;
  maxInputLen: number;
  maxSeqLen: number;
  /** Whether `count` sequences from one prompt can run as one request; absent: never. */
  fitsTogether?(count: number, promptLength: number, maxTokens: number): boolean;
  /** Tokens that end an answer. */
  endTokens: readonly number[];
  /** How calls of functions are written; absent, auto: as the template has it. */
  toolCallParser?: ToolFormatName | 'auto';
  /** How reasoning is told from answers; absent, auto: as the template has it. */
  reasoningParser?: ReasoningParserName | 'auto';
}
