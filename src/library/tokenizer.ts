import type { ChatMessage } from '../../models/chat-template.js';
import { chatPrompt } from '../generation/chat-options.js';
import { ModelCodec } from '../generation/model-codec.js';
import type { PromptTokens, TextCodec } from '../generation/text-model.js';

/** How a chat is written for a model. */
export interface EncodeChatOptions {
  /** Ends with the header of an answer. Default true. */
  addGenerationPrompt?: boolean | undefined;
  /** Further variables of the chat template. */
  templateVariables?: Readonly<Record<string, unknown>> | undefined;
}

/** Text of an answer while its tokens come. */
export interface TokenDecoder {
  /** Text that is whole now: half a character waits for the rest. */
  push(tokens: readonly number[]): string;
  /** The rest. */
  end(): string;
}

/**
 * A model's tokenizer and chat template, for hosts that send tokens to GptManager or InProcessHost and get tokens back.
 *
 *   const tokenizer = await Tokenizer.open('./engine');
 *   const promptTokens = await tokenizer.encodeChat([{ role: 'user', content: 'Hello' }]);
 */
export class Tokenizer {
  readonly #codec: TextCodec;
  readonly #close: () => Promise<void>;

  private constructor(codec: TextCodec, close: () => Promise<void>) {
    this.#codec = codec;
    this.#close = close;
  }

  /**
   * Opens a tokenizer without its model.
   * @param folder an engine directory, or a Hugging Face directory with tokenizer.json
   * @throws TokenizerError, ChatTemplateError for files that are not usable
   */
  static async open(folder: string): Promise<Tokenizer> {
    const codec = await ModelCodec.open(folder);
    return new Tokenizer(codec, () => codec.close());
  }

  /** The tokenizer of a loaded model, which is closed with it. */
  static of(codec: TextCodec): Tokenizer {
    return new Tokenizer(codec, async () => {});
  }

  /** Token ids of a text. Special tokens in it are tokens. @param options specialTokens: those around a prompt are added; default true */
  async encode(text: string, { specialTokens = true } = {}): Promise<PromptTokens> {
    return specialTokens ? this.#codec.encodeText(text) : this.#codec.encodePiece(text);
  }

  /** Token ids of a conversation, through the model's chat template. What users wrote stays text, even if it spells a special token. */
  async encodeChat(
    messages: readonly ChatMessage[],
    { addGenerationPrompt, templateVariables }: EncodeChatOptions = {},
  ): Promise<PromptTokens> {
    const options = { addGenerationPrompt: addGenerationPrompt ?? true, templateVariables };
    return (await chatPrompt({ codec: this.#codec }, messages, options)).promptTokens;
  }

  /** Text of tokens. @param options skipSpecialTokens: default true */
  decode(tokens: Int32Array | readonly number[], { skipSpecialTokens = true } = {}): string {
    const decoder = this.decoder({ skipSpecialTokens });
    return decoder.push([...tokens]) + decoder.end();
  }

  /** Makes text of tokens as they come. @param options skipSpecialTokens: default true */
  decoder({ skipSpecialTokens = true } = {}): TokenDecoder {
    const detokenizer = this.#codec.createDetokenizer({ skipSpecialTokens });
    return { push: (tokens) => detokenizer.push(tokens), end: () => detokenizer.flush() };
  }

  /** Ends its threads; that of a loaded model ends with the model. */
  close(): Promise<void> {
    return this.#close();
  }

  /** The same as `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
