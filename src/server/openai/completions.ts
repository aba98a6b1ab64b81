import type { TextLogProb, TextPiece } from '../../generation/text-generation.js';
import type { PromptTokens } from '../../generation/text-model.js';
import type { ServedGenerator } from '../served-model.js';
import { ChoiceRun } from './choice-run.js';
import { Envelope } from './envelope.js';
import { ApiError } from './errors.js';
import { guideOfRequest } from './guides.js';
import { legacyLogProbs } from './log-probs.js';
import type { Exchange, FrameWriter } from './respond.js';
import { respondWithStream } from './respond.js';
import type { RouteContext } from './route-context.js';
import { findGenerator } from './route-context.js';
import type { CompletionRequest } from './schemas/completions.js';
import { badWordsOf, choiceCounts, textRequest } from './text-request.js';
import { finishReason, stopReason } from './usage.js';

/** OpenAI's own default of this route. */
const DEFAULT_MAX_TOKENS = 16;

/** POST /v1/completions with a body that its schema has taken. */
export async function completions(
  context: RouteContext,
  request: CompletionRequest,
  exchange: Exchange,
): Promise<Response> {
  checkCombinations(request);
  const model = findGenerator(context, request.model);
  const prompts = await Promise.all(
    request.prompt.map((prompt) => (typeof prompt === 'string' ? model.codec.encodeText(prompt) : prompt)),
  );
  const badWords = await badWordsOf(request, model);
  const guide = guideOfRequest(request);
  const requests = prompts.map((promptTokens) =>
    textRequest(request, {
      promptTokens,
      promptParam: 'prompt',
      maxTokens: request.max_tokens ?? DEFAULT_MAX_TOKENS,
      badWords,
      logProbs: request.logprobs,
      guide,
    }),
  );
  const run = new ChoiceRun(model, requests, choiceCounts(request), context.observe);
  const answer = new CompletionAnswer(model, request, prompts, run);
  if (request.stream) {
    return respondWithStream(run, answer.frameWriter(), context.eventStream, exchange);
  }
  return answer.whole(exchange.signal);
}

function checkCombinations(request: CompletionRequest): void {
  if (request.echo && request.logprobs !== undefined) {
    throw new ApiError(400, "'echo' together with 'logprobs' is not supported.", {
      param: 'echo',
      code: 'unsupported_parameter',
    });
  }
  if (request.stream_options !== undefined && !request.stream) {
    throw new ApiError(400, "'stream_options' needs 'stream' to be true.", { param: 'stream_options' });
  }
}

class CompletionAnswer {
  readonly #model: ServedGenerator;
  readonly #request: CompletionRequest;
  readonly #envelope: Envelope;
  /** Per prompt: its text where it is echoed. */
  readonly #echoes: readonly string[];

  constructor(
    model: ServedGenerator,
    request: CompletionRequest,
    prompts: readonly PromptTokens[],
    run: ChoiceRun,
  ) {
    this.#model = model;
    this.#request = request;
    const promptTokens = prompts.reduce((sum, prompt) => sum + prompt.length, 0);
    this.#envelope = new Envelope({ model, run, promptTokens, idPrefix: 'cmpl' });
    this.#echoes = request.echo ? request.prompt.map((prompt) => this.#promptText(prompt)) : [];
  }

  #promptText(prompt: string | readonly number[]): string {
    if (typeof prompt === 'string') return prompt;
    const detokenizer = this.#model.codec.createDetokenizer({ skipSpecialTokens: false });
    return detokenizer.push(prompt) + detokenizer.flush();
  }

  #echo(choice: number): string {
    return this.#echoes[Math.floor(choice / (this.#request.n ?? 1))] ?? '';
  }

  #logProbs(entries: readonly TextLogProb[]) {
    return this.#request.logprobs === undefined ? null : legacyLogProbs(this.#model.codec, entries, 0);
  }

  whole(clientSignal: AbortSignal): Promise<Response> {
    return this.#envelope.whole('text_completion', clientSignal, (choice, index) => ({
      index,
      text: this.#echo(index) + choice.text,
      logprobs: this.#logProbs(choice.logProbs),
      finish_reason: choice.finish,
      stop_reason: choice.stopReason,
    }));
  }

  frameWriter(): FrameWriter {
    const { chunk, end } = this.#envelope.frames('text_completion', this.#request.stream_options);
    const begun = new Set<number>();
    return {
      piece: (index, piece: TextPiece) => {
        const echo = begun.has(index) ? '' : this.#echo(index);
        begun.add(index);
        const text = echo + piece.text;
        if (text === '' && piece.logProbs.length === 0 && piece.finishReason === null) return '';
        const reason = piece.finishReason === null ? 'null' : `"${finishReason(piece.finishReason)}"`;
        const logProbs = JSON.stringify(this.#logProbs(piece.logProbs));
        return chunk(
          `{"index":${index},"text":${JSON.stringify(text)},"logprobs":${logProbs},` +
            `"finish_reason":${reason},"stop_reason":${JSON.stringify(stopReason(piece))}}`,
        );
      },
      end,
    };
  }
}
