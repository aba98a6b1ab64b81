import type { TokenPiece, TokenRequest } from '../../callbacks/token-request.js';
import type { ChatMessage } from '../../models/chat-template.js';

export interface ChatRenderOptions {
  /** Ends the prompt with the header of an assistant message. Default true. */
  addGenerationPrompt?: boolean | undefined;
  /** Leaves the last message open, so that the answer continues it. */
  continueFinalMessage?: boolean | undefined;
  /** Further variables of the template. */
  variables?: Readonly<Record<string, unknown>> | undefined;
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
  /** Encodes plain text, with the tokens that the model wants around a text (a BOS, where it has one). */
  encodeText(text: string): PromptTokens | Promise<PromptTokens>;
  /** Encodes a part of a text: nothing is added to it. */
  encodePiece(text: string): PromptTokens | Promise<PromptTokens>;
  /** Renders the chat template and encodes it without adding special tokens a second time. */
  encodeChat(
    messages: readonly ChatMessage[],
    options: ChatRenderOptions,
  ): PromptTokens | Promise<PromptTokens>;
  createDetokenizer(options: { skipSpecialTokens: boolean }): Detokenizer;
  /** The bytes that a token stands for; of one character possibly only a part. */
  tokenBytes(token: number): Uint8Array;
}

/** The engine as the text level sees it. */
export interface TokenEngine {
  /**
   * Takes a request. The returned iterable ends with a piece that has a finish reason, or throws a RequestError.
   * Leaving the iteration early cancels the request.
   * @throws QueueFullError at once, where the queue is full.
   */
  submit(request: TokenRequest): AsyncIterable<TokenPiece>;
  /** The same for a request with several sequences or beams: one iterable for each. Absent: it takes none such. */
  submitSeveral?(request: TokenRequest): AsyncIterable<TokenPiece>[];
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
}
