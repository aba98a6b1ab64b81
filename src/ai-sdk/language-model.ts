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
import { HostClosedError } from '../../callbacks/token-request.js';
import type { ChatPiece } from '../generation/chat-pieces.js';
import type { Skein } from '../library/skein.js';
import { AnswerSummary, StreamParts } from './answer-parts.js';
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
    const summary = new AnswerSummary();
    const [texts, thoughts]: [string[], string[]] = [[], []];
    for await (const piece of this.#skein.generate(options)) {
      checkEnd(piece, call.abortSignal);
      summary.add(piece);
      warnings.push(...warningsOf(piece));
      texts.push(piece.text);
      thoughts.push(piece.reasoning ?? '');
    }
    const [text, reasoning] = [texts.join(''), thoughts.join('')];
    const content: LanguageModelV3Content[] = [];
    if (reasoning !== '') content.push({ type: 'reasoning', text: reasoning });
    if (text !== '') content.push({ type: 'text', text });
    for (const { id, name, arguments: input } of summary.calls)
      content.push({ type: 'tool-call', toolCallId: id, toolName: name, input });
    const { usage, finishReason } = summary;
    return { content, usage, finishReason, warnings, response: this.#response() };
  }

  async doStream(call: LanguageModelV3CallOptions): Promise<LanguageModelV3StreamResult> {
    const { options, warnings } = askedCall(call);
    const pieces = this.#skein.generate(options);
    // What is refused makes the call fail, not the stream.
    let next = await pieces.next();
    if (!next.done) warnings.push(...warningsOf(next.value));
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
          checkEnd(next.value, call.abortSignal);
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

/** @throws the signal's reason, or HostClosedError, for an answer that was cut off */
function checkEnd({ finishReason }: ChatPiece, signal: AbortSignal | undefined): void {
  if (finishReason !== 'cancelled') return;
  signal?.throwIfAborted();
  throw new HostClosedError('The engine was closed before this answer was complete.');
}

const warningsOf = ({ warnings = [] }: ChatPiece): SharedV3Warning[] =>
  warnings.map((message) => ({ type: 'other', message }));
