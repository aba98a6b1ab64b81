import type { CallbackManagerForLLMRun } from '@langchain/core/callbacks/manager';
import type {
  BaseLanguageModelInput,
  StructuredOutputMethodOptions,
} from '@langchain/core/language_models/base';
import {
  BaseChatModel,
  type BaseChatModelCallOptions,
  type BindToolsInput,
  type LangSmithParams,
} from '@langchain/core/language_models/chat_models';
import {
  assembleStructuredOutputPipeline,
  createContentParser,
} from '@langchain/core/language_models/structured_output';
import type { AIMessageChunk, BaseMessage } from '@langchain/core/messages';
import type { ChatGenerationChunk, ChatResult } from '@langchain/core/outputs';
import type { Runnable } from '@langchain/core/runnables';
import { toJsonSchema } from '@langchain/core/utils/json_schema';
import { CollectedAnswer, untilEnd } from '../library/collected-answer.js';
import type { Skein } from '../library/skein.js';
import { AnswerChunks, answerResult } from './answer-messages.js';
import { generateOptions, type SkeinSettings } from './call-options.js';

export type { SkeinSettings };

/** Options of a call, besides those of LangChain. */
export interface SkeinCallOptions extends BaseChatModelCallOptions {
  tools?: BindToolsInput[];
  /** Options of this call by Skein's names, such as `{ temperature: 0 }`. */
  skein?: SkeinSettings;
}

/** A chat model of LangChain that answers in this process. */
export type SkeinChatModel = Model & Required<Pick<Model, 'bindTools'>>;
type Model = BaseChatModel<SkeinCallOptions, AIMessageChunk>;

/**
 * A loaded model as a chat model of LangChain: for invoke, stream, bindTools, withStructuredOutput and agents. @param settings options of all
 * its answers by Skein's names, such as `{ temperature: 0, maxTokens: 200 }`
 */
export function chatModel(skein: Skein, settings: SkeinSettings = {}): SkeinChatModel {
  return new ChatSkein(skein, settings);
}

class ChatSkein extends BaseChatModel<SkeinCallOptions, AIMessageChunk> {
  readonly #skein: Skein;
  readonly #settings: SkeinSettings;

  constructor(skein: Skein, settings: SkeinSettings) {
    super({});
    this.#skein = skein;
    this.#settings = settings;
    // The method has overloads by kinds of schemas; this one serves them all.
    const structured = (schema: object, config?: StructuredOutputMethodOptions<boolean>) =>
      this.#structured(schema, config);
    Object.assign(this, { withStructuredOutput: structured });
  }

  static override lc_name(): string {
    return 'ChatSkein';
  }

  override _llmType(): string {
    return 'skein';
  }

  override getLsParams(options: this['ParsedCallOptions']): LangSmithParams {
    const name = this.#skein.info.name;
    return { ...super.getLsParams(options), ls_provider: 'skein', ls_model_name: name };
  }

  override invocationParams(options?: this['ParsedCallOptions']): object {
    return { model: this.#skein.info.name, ...this.#settings, ...options?.skein };
  }

  override bindTools(
    tools: BindToolsInput[],
    more: Partial<SkeinCallOptions> = {},
  ): Runnable<BaseLanguageModelInput, AIMessageChunk, SkeinCallOptions> {
    return this.withConfig({ ...more, tools });
  }

  override async _generate(messages: BaseMessage[], options: this['ParsedCallOptions']): Promise<ChatResult> {
    const answer = new CollectedAnswer();
    for await (const piece of this.#pieces(messages, options)) answer.add(piece);
    return answerResult(answer, this.#skein.info.name);
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: this['ParsedCallOptions'],
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const chunks = new AnswerChunks(this.#skein.info.name);
    for await (const piece of this.#pieces(messages, options)) {
      const chunk = chunks.of(piece);
      if (chunk === null) continue;
      yield chunk;
      await manager?.handleLLMNewToken(chunk.text, undefined, undefined, undefined, undefined, { chunk });
    }
  }

  #pieces(messages: readonly BaseMessage[], options: this['ParsedCallOptions']) {
    return untilEnd(this.#skein.generate(generateOptions(messages, this.#settings, options)), options.signal);
  }

  /** The answer is JSON of the schema, which no small model is left to get right by itself. */
  #structured(schema: object, { name, includeRaw }: StructuredOutputMethodOptions<boolean> = {}) {
    const json = toJsonSchema(schema as Parameters<typeof toJsonSchema>[0]);
    const asked = this.withConfig({ skein: { guided: { json, isLenient: true } } });
    return assembleStructuredOutputPipeline(
      asked,
      createContentParser(schema),
      includeRaw,
      name ?? 'StructuredOutput',
    );
  }
}
