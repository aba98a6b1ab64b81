import { ALWAYS_SHOWN, samplingFields } from '../../generation/sampling-defaults.js';
import type { TextPiece } from '../../generation/text-generation.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import type { ChoiceRun } from '../answering/choice-run.js';
import { collect, type FrameWriter } from '../answering/respond.js';
import { timings } from '../answering/timings.js';
import { finishReason, stopReason } from '../answering/usage.js';
import { jsonAnswer } from '../web/bodies/json-answer.js';
import { JsonNumbers, JsonObject } from '../web/bodies/json-parts.js';
import type { InfillRequest } from './schemas/infill.js';

export interface InfillAnswerOptions {
  model: ServedGenerator;
  request: InfillRequest;
  /** Tokens of the prompt. */
  tokens: readonly number[];
  maxTokens: number;
  /** True where not all of what the client sent is in the prompt. */
  isCut: boolean;
  run: ChoiceRun;
}

/** Why an answer ended, in llama.cpp's words. */
interface Stop {
  stop_type: 'eos' | 'limit' | 'word';
  stopping_word: string;
}

/** An answer in the form of llama.cpp's own routes, whole or as a stream, whose last event is without [DONE]. */
export class InfillAnswer {
  readonly #options: InfillAnswerOptions;
  #hasNewLine = false;
  #stop: Stop = { stop_type: 'limit', stopping_word: '' };

  constructor(options: InfillAnswerOptions) {
    this.#options = options;
  }

  async whole(clientSignal: AbortSignal): Promise<Response> {
    const { run, request } = this.#options;
    let content = '';
    const tokens: number[] = [];
    await collect(run, clientSignal, (_, piece) => {
      this.#note(piece);
      content += piece.text;
      if (request.return_tokens) tokens.push(...piece.tokens);
    });
    const answer = { index: 0, content, tokens: new JsonNumbers(tokens), ...this.#end() };
    return jsonAnswer(new JsonObject(shown(answer, request.response_fields)));
  }

  frameWriter(): FrameWriter {
    const { run, request, tokens } = this.#options;
    const frame = (fields: object) => `data: ${JSON.stringify(shown(fields, request.response_fields))}\n\n`;
    return {
      piece: (_, piece) => {
        this.#note(piece);
        if (piece.text === '' && !(request.return_tokens && piece.tokens.length > 0)) return '';
        return frame({
          index: 0,
          content: piece.text,
          tokens: request.return_tokens ? piece.tokens : [],
          stop: false,
          id_slot: -1,
          tokens_predicted: run.completionTokens,
          tokens_evaluated: tokens.length,
        });
      },
      end: () => frame({ index: 0, content: '', tokens: [], ...this.#end() }),
      endsWithDone: false,
    };
  }

  #note(piece: TextPiece): void {
    this.#hasNewLine ||= piece.text.includes('\n');
    if (piece.finishReason === null) return;
    const reason = stopReason(piece);
    if (finishReason(piece.finishReason) === 'length') return;
    this.#stop =
      typeof reason === 'string'
        ? { stop_type: 'word', stopping_word: reason }
        : { stop_type: 'eos', stopping_word: '' };
  }

  /** The fields behind the text. */
  #end() {
    const { model, request, tokens, maxTokens, isCut, run } = this.#options;
    const detokenizer = model.codec.createDetokenizer({ skipSpecialTokens: false });
    const asked: Readonly<Record<string, unknown>> = request;
    const recommended = samplingFields(model.sampling);
    return {
      id_slot: -1,
      stop: true,
      model: model.id,
      tokens_predicted: run.completionTokens,
      tokens_evaluated: tokens.length,
      generation_settings: {
        n_predict: maxTokens,
        seed: Number(run.seeds[0]),
        ...Object.fromEntries(
          Object.keys(ALWAYS_SHOWN).map((name) => [
            name,
            asked[name] ?? recommended[name] ?? ALWAYS_SHOWN[name],
          ]),
        ),
        stream: request.stream ?? false,
      },
      prompt: detokenizer.push(tokens) + detokenizer.flush(),
      has_new_line: this.#hasNewLine,
      truncated: isCut,
      ...this.#stop,
      tokens_cached: tokens.length + run.completionTokens,
      timings: timings(run),
    };
  }
}

/** The fields that are wanted: `timings/prompt_n` is one inside of another, which gets that name. */
function shown(answer: object, wanted: readonly string[] | undefined): object {
  if (wanted === undefined || wanted.length === 0) return answer;
  const found = wanted.map((path) => [path, valueAt(answer, path.split('/'))] as const);
  return Object.fromEntries(found.filter(([, value]) => value !== undefined));
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((at, name) => {
    const isObject = typeof at === 'object' && at !== null && Object.hasOwn(at, name);
    return isObject ? (at as Record<string, unknown>)[name] : undefined;
  }, value);
}
