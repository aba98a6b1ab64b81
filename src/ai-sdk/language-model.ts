import { randomUUID } from 'node:crypto';
import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3Content,
  LanguageModelV3GenerateResult,
  LanguageModelV3StreamPart,
  LanguageModelV3StreamResult,
  SharedV3Warning,
} from '@ai-sdk/provider';
import { CollectedAnswer, untilEnd } from '../library/collected-answer.js';
import type { Skein } from '../library/skein.js';
import { finishReasonOf, StreamParts, usageOf } from './answer-parts.js';
import { askedCall } from './call-options.js';

/**
 * A loaded model as a language model of the AI SDK: for generateText, streamText, generateObject and agents. `providerOptions.skein` takes the
 * options of `Skein.generate` that the SDK has no name for, such as `minP`, `adapter` or `parallelToolCalls`.
 */
export function languageModel(skein: Skein): LanguageModelV3 {
  return new SkeinLanguageModel(skein);
}

class SkeinLanguageModel implements LanguageModelV3 {
  readonly specificationVersion = 'v3';
  readonly provider = 'skein';
  readonly modelId: string;
  /** None: the SDK fetches what a prompt names by its address. */
  readonly supportedUrls = {};
  readonly #skein: Skein;

  constructor(skein: Skein) {
    this.#skein = skein;
    this.modelId = skein.info.name;
  }

  async doGenerate(call: LanguageModelV3CallOptions): Promise<LanguageModelV3GenerateResult> {
    const { options, warnings } = askedCall(call);
    const answer = new CollectedAnswer();
    for await (const piece of untilEnd(this.#skein.generate(options), call.abortSignal)) answer.add(piece);
    const { text, reasoning } = answer;
    warnings.push(...answer.warnings.map(asWarning));
    const content: LanguageModelV3Content[] = [];
    if (reasoning !== '') content.push({ type: 'reasoning', text: reasoning });
    if (text !== '') content.push({ type: 'text', text });
    for (const { id, name, arguments: input } of answer.calls)
      content.push({ type: 'tool-call', toolCallId: id, toolName: name, input });
    return {
      content,
      usage: usageOf(answer),
      finishReason: finishReasonOf(answer),
      warnings,
      response: this.#response(),
    };
  }

  async doStream(call: LanguageModelV3CallOptions): Promise<LanguageModelV3StreamResult> {
    const { options, warnings } = askedCall(call);
    const pieces = untilEnd(this.#skein.generate(options), call.abortSignal);
    // What is refused makes the call fail, not the stream.
    let next = await pieces.next();
    if (!next.done) warnings.push(...(next.value.warnings ?? []).map(asWarning));
    const parts = new StreamParts();
    const begin: LanguageModelV3StreamPart[] = [
      { type: 'stream-start', warnings },
      { type: 'response-metadata', ...this.#response() },
    ];
    const stream = new ReadableStream<LanguageModelV3StreamPart>({
      start: (controller) => {
        for (const part of begin) controller.enqueue(part);
      },
      pull: async (controller) => {
        // A piece may have no part, and pull is not called again before there is one.
        for (let isMade = false; !isMade; next = await pieces.next()) {
          if (next.done) return controller.close();
          for (const part of parts.of(next.value)) {
            controller.enqueue(part);
            isMade = true;
          }
        }
      },
      cancel: async () => {
        await pieces.return();
      },
    });
    return { stream };
  }

  #response(): { id: string; modelId: string; timestamp: Date } {
    return { id: randomUUID(), modelId: this.modelId, timestamp: new Date() };
  }
}

const asWarning = (message: string): SharedV3Warning => ({ type: 'other', message });
