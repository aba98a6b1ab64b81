import { type ChatMessage, ChatTemplate, type RenderOptions } from '../../models/chat-template.js';
import { StreamingDetokenizer, Tokenizer } from '../../models/tokenizer/index.js';
import type { ChatRenderOptions, Detokenizer, PromptTokens, TextCodec } from './text-model.js';

export interface CodecFiles {
  tokenizerJson: unknown;
  tokenizerConfig: Record<string, unknown>;
  /** Jinja; null where the model has none. */
  chatTemplate: string | null;
}

/** A model's own tokenizer and chat template. */
export class ModelCodec implements TextCodec {
  readonly tokenizer: Tokenizer;
  readonly #chatTemplate: ChatTemplate;

  /** @throws TokenizerError, ChatTemplateError where the model's files are not usable. */
  constructor(files: CodecFiles) {
    this.tokenizer = new Tokenizer(files);
    this.#chatTemplate = new ChatTemplate(files.chatTemplate, this.tokenizer);
  }

  /** A prompt for completion is the caller's own: special tokens in it are tokens. */
  encodeText(text: string): PromptTokens {
    return this.tokenizer.encode(text);
  }

  encodeChat(messages: readonly ChatMessage[], options: ChatRenderOptions): PromptTokens {
    const render: RenderOptions = {
      addGenerationPrompt: options.addGenerationPrompt ?? true,
      continueFinalMessage: options.continueFinalMessage ?? false,
    };
    if (options.variables !== undefined) render.templateKwargs = { ...options.variables };
    // The template writes its own BOS: the tokenizer adds no second one.
    const { segments } = this.#chatTemplate.render(messages, render);
    return this.tokenizer.encodeSegments(segments, { addSpecialTokens: false });
  }

  createDetokenizer(options: { skipSpecialTokens: boolean }): Detokenizer {
    return new StreamingDetokenizer(this.tokenizer, options);
  }

  tokenBytes(token: number): Uint8Array {
    return this.tokenizer.tokenBytes(token);
  }
}
