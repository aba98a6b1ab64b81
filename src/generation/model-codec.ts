import { type ChatMessage, ChatTemplate, type RenderOptions } from '../../models/chat-template.js';
import {
  readTokenizerFiles,
  StreamingDetokenizer,
  Tokenizer,
  TokenizerPool,
} from '../../models/tokenizer/index.js';
import { checkTextLength, MAX_UNITS_PER_TOKEN } from './text-length.js';
import type {
  ChatRenderOptions,
  Detokenizer,
  DetokenizerOptions,
  PromptTokens,
  TextCodec,
} from './text-model.js';

/** The tokenizer and the chat template of an engine directory. Long texts are encoded in a thread of their own. */
export class ModelCodec implements TextCodec {
  readonly #tokenizer: Tokenizer;
  readonly #pool: TokenizerPool;
  readonly #chatTemplate: ChatTemplate;

  readonly templateSource: string | null;

  private constructor(tokenizer: Tokenizer, pool: TokenizerPool, templateSource: string | null) {
    this.#tokenizer = tokenizer;
    this.#pool = pool;
    this.#chatTemplate = new ChatTemplate(templateSource, tokenizer);
    this.templateSource = templateSource;
  }

  /** @throws TokenizerError, ChatTemplateError where the engine's files are not usable. */
  static async open(engineDirectory: string): Promise<ModelCodec> {
    const files = await readTokenizerFiles(engineDirectory);
    const tokenizer = new Tokenizer(files);
    const pool = new TokenizerPool(tokenizer, { directory: engineDirectory });
    return new ModelCodec(tokenizer, pool, files.chatTemplate);
  }

  /** A prompt for completion is the caller's own: special tokens in it are tokens. */
  encodeText(text: string): Promise<PromptTokens> {
    return this.#pool.encode(text);
  }

  encodePiece(text: string): Promise<PromptTokens> {
    return this.#pool.encode(text, { addSpecialTokens: false });
  }

  encodeChat(messages: readonly ChatMessage[], options: ChatRenderOptions): Promise<PromptTokens> {
    const render: RenderOptions = {
      addGenerationPrompt: options.addGenerationPrompt ?? true,
      continueFinalMessage: options.continueFinalMessage ?? false,
    };
    if (options.tools !== undefined) render.tools = options.tools;
    if (options.variables !== undefined) render.templateKwargs = { ...options.variables };
    // The template writes its own BOS: the tokenizer adds no second one.
    const { text, segments } = this.#chatTemplate.render(messages, render);
    const { maxTokens } = options;
    if (maxTokens !== undefined)
      checkTextLength(text.length, { maxTokens, unitsPerToken: this.unitsPerToken }, 'messages');
    return this.#pool.encodeSegments(segments, { addSpecialTokens: options.addSpecialTokens ?? false });
  }

  createDetokenizer({ skipSpecialTokens, shownTokens = [] }: DetokenizerOptions): Detokenizer {
    const shown = shownTokens.map((text) => this.#tokenizer.tokenId(text)).filter((id) => id !== null);
    return new StreamingDetokenizer(this.#tokenizer, { skipSpecialTokens, shownTokens: new Set(shown) });
  }

  get unitsPerToken(): number {
    return this.#tokenizer.unitsPerToken ?? MAX_UNITS_PER_TOKEN;
  }

  get specialTexts(): readonly string[] {
    return this.#tokenizer.specialTokenTexts;
  }

  tokenEntry(token: number): string | null {
    return this.#tokenizer.tokenEntry(token);
  }

  tokenBytes(token: number): Uint8Array {
    return this.#tokenizer.tokenBytes(token);
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }
}
