import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Guide } from '../../callbacks/guide.js';
import { type ChatMessage, ChatTemplate, type RenderOptions } from '../../models/chat-template.js';
import {
  type ChosenTemplates,
  chooseTemplates,
  PromptUnitsError,
  readTokenizerFiles,
  StreamingDetokenizer,
  TemplatePool,
  Tokenizer,
  TokenizerPool,
} from '../../models/tokenizer/index.js';
import { GuideChecks } from './guide-checks.js';
import { checkTextLength, MAX_UNITS_PER_TOKEN } from './text-length.js';
import type {
  ChatRenderOptions,
  Detokenizer,
  DetokenizerOptions,
  PromptTokens,
  TextCodec,
} from './text-model.js';

/** Tokenizer and chat template of an engine directory. Long texts and chats are encoded in a thread of their own. */
export class ModelCodec implements TextCodec {
  readonly #tokenizer: Tokenizer;
  readonly #pool: TokenizerPool;
  readonly #chatTemplate: ChatTemplate;
  /** The one for conversations with functions. */
  readonly #toolTemplate: ChatTemplate;
  readonly #templates: TemplatePool;
  readonly #guideChecks = new GuideChecks();

  readonly templateSource: string | null;
  readonly toolTemplateSource: string | null;

  private constructor(tokenizer: Tokenizer, pool: TokenizerPool, { plain, withTools }: ChosenTemplates) {
    this.#tokenizer = tokenizer;
    this.#pool = pool;
    this.#chatTemplate = new ChatTemplate(plain, tokenizer);
    this.#toolTemplate = withTools === plain ? this.#chatTemplate : new ChatTemplate(withTools, tokenizer);
    this.#templates = new TemplatePool(tokenizer);
    this.templateSource = plain;
    this.toolTemplateSource = withTools;
  }

  /**
   * A large vocabulary takes a while: others get their turn between the parts.
   * @param chatTemplate name of one of the model's templates, or a file. Default: as transformers chooses.
   * @throws TokenizerError, ChatTemplateError where the engine's files are not usable.
   */
  static async open(engineDirectory: string, chatTemplate?: string): Promise<ModelCodec> {
    const files = await readTokenizerFiles(engineDirectory);
    await nextTurn();
    const tokenizer = new Tokenizer(files);
    await nextTurn();
    const templates = chooseTemplates(files, chatTemplate);
    const pool = new TokenizerPool(tokenizer, { directory: engineDirectory, templates });
    return new ModelCodec(tokenizer, pool, templates);
  }

  /** Encodes a prompt for completion. It is the caller's own text: special tokens in it are tokens. */
  encodeText(text: string, signal?: AbortSignal): Promise<PromptTokens> {
    return this.#pool.encode(text, { signal });
  }

  encodePiece(text: string, signal?: AbortSignal): Promise<PromptTokens> {
    return this.#pool.encode(text, { addSpecialTokens: false, signal });
  }

  encodeTexts(
    texts: readonly string[],
    options: { addSpecialTokens: boolean; signal?: AbortSignal | undefined },
  ): Promise<PromptTokens[]> {
    return this.#pool.encodeTexts(texts, options);
  }

  async encodeChat(messages: readonly ChatMessage[], options: ChatRenderOptions): Promise<PromptTokens> {
    const render: RenderOptions = {
      addGenerationPrompt: options.addGenerationPrompt ?? true,
      continueFinalMessage: options.continueFinalMessage ?? false,
    };
    if (options.begunReasoning !== undefined) render.begunReasoning = options.begunReasoning;
    if (options.tools !== undefined) render.tools = options.tools;
    if (options.pictures !== undefined) render.pictures = options.pictures;
    if (options.variables !== undefined) render.templateKwargs = options.variables;
    // The template writes its own BOS, so the tokenizer must not add a second one.
    const { addSpecialTokens = false, signal, maxTokens = Number.POSITIVE_INFINITY } = options;
    const { unitsPerToken } = this;
    const most = options.maxTokens === undefined ? {} : { maxUnits: maxTokens * unitsPerToken };
    try {
      const asked = { addSpecialTokens, signal, ...most };
      const { template } = options;
      if (template !== undefined) {
        const segments = await this.#templates.render({ template, messages, render }, signal);
        return await this.#pool.encodeRendered(segments, asked);
      }
      const chosen = options.tools === undefined ? this.#chatTemplate : this.#toolTemplate;
      return await this.#pool.encodeChat(chosen, messages, render, asked);
    } catch (error) {
      if (error instanceof PromptUnitsError) {
        const { contextTokens = maxTokens } = options;
        checkTextLength(error.units, { maxTokens, contextTokens, unitsPerToken }, 'messages');
      }
      throw error;
    }
  }

  createDetokenizer({ skipSpecialTokens, shownTokens = [] }: DetokenizerOptions): Detokenizer {
    const shown = new Set<number>();
    const marks = new Map<number, string>();
    for (const one of shownTokens) {
      const id = this.#tokenizer.tokenId(typeof one === 'string' ? one : one.token);
      if (id === null) continue;
      if (typeof one === 'string') shown.add(id);
      else marks.set(id, one.mark);
    }
    return new StreamingDetokenizer(this.#tokenizer, { skipSpecialTokens, shownTokens: shown, marks });
  }

  get unitsPerToken(): number {
    return this.#tokenizer.unitsPerToken ?? MAX_UNITS_PER_TOKEN;
  }

  get specialTexts(): readonly string[] {
    return this.#tokenizer.specialTokenTexts;
  }

  /** Tokens that end a turn, as far as the tokenizer knows. */
  get endTokens(): readonly number[] {
    return this.#tokenizer.endTokenIds;
  }

  tokenEntry(token: number): string | null {
    return this.#tokenizer.tokenEntry(token);
  }

  tokenBytes(token: number): Uint8Array {
    return this.#tokenizer.tokenBytes(token);
  }

  checkGuide(guide: Guide): Promise<readonly string[]> {
    return this.#guideChecks.check(guide);
  }

  async close(): Promise<void> {
    await Promise.all([this.#pool.close(), this.#templates.close(), this.#guideChecks.close()]);
  }
}
