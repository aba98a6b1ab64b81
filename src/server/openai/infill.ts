import { infillPrompt } from '../../generation/infill.js';
import { ALWAYS_SHOWN, samplingFields } from '../../generation/sampling-defaults.js';
import type { TextPiece } from '../../generation/text-generation.js';
import { MAX_UNITS_PER_TOKEN } from '../../generation/text-length.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import { ChoiceRun, ONE_ANSWER } from '../answering/choice-run.js';
import { findGenerator } from '../answering/find-model.js';
import { collect, type FrameWriter, respondWithStream } from '../answering/respond.js';
import type { AnsweringServices } from '../answering/services.js';
import { encodedFields, textRequest } from '../answering/text-request.js';
import { timings } from '../answering/timings.js';
import { finishReason, stopReason } from '../answering/usage.js';
import { jsonAnswer } from '../web/bodies/json-answer.js';
import { JsonNumbers, JsonObject } from '../web/bodies/json-parts.js';
import { ApiError } from '../web/errors.js';
import type { Exchange } from '../web/exchange.js';
import { fieldsOf } from '../web/field-words.js';
import { inOtherWords } from '../web/other-words.js';
import type { LiveRequest } from '../web/request-registry.js';
import { type CompletionRequest, completionRequestSchema } from './schemas/completions.js';
import type { InfillRequest } from './schemas/infill.js';

const INFILL_FIELDS = fieldsOf('completions', [['max_tokens', 'n_predict']]);

/** A request whose fields are all left out: those of completions that this route does not have. */
const NOTHING_ASKED = completionRequestSchema.parse({ prompt: '' });

/** Answers POST /infill, whose body its schema has validated. */
export async function infill(
  context: AnsweringServices,
  request: InfillRequest,
  exchange: Exchange,
): Promise<Response> {
  const { registry, caller, requestId } = exchange.terms;
  return inOtherWords(INFILL_FIELDS, () =>
    registry.accept(caller, requestId, (live) => answerInfill(context, request, exchange, live)),
  );
}

async function answerInfill(
  context: AnsweringServices,
  request: InfillRequest,
  exchange: Exchange,
  live: LiveRequest,
): Promise<Response> {
  const model = findGenerator(context, request.model);
  const maxTokens = maxTokensOf(model, request);
  const { tokens, isCut } = await promptOf(model, request, maxTokens);
  const common: CompletionRequest = { ...NOTHING_ASKED, ...request, prompt: [] };
  const asked = textRequest(common, {
    promptTokens: tokens,
    promptParam: 'input_prefix',
    maxTokens,
    encoded: await encodedFields(common, model),
  });
  const run = await ChoiceRun.start(model, [asked], ONE_ANSWER, context.observe, exchange.terms, live);
  const answer = new InfillAnswer({ model, request, tokens, maxTokens, isCut, run });
  if (request.stream) return respondWithStream(run, answer.frameWriter(), context.eventStream, exchange);
  return answer.whole(exchange.signal);
}

function maxTokensOf(
  { defaultMaxTokens, maxSeqLen }: ServedGenerator,
  { n_predict: asked = -1 }: InfillRequest,
) {
  // A quarter of the context is left for the prompt at least, where the client does not say.
  if (asked < 0) return Math.max(1, Math.min(defaultMaxTokens, Math.floor(maxSeqLen / 4)));
  if (asked < maxSeqLen) return asked;
  throw new ApiError(
    400,
    `'n_predict' is ${asked}, but the context has ${maxSeqLen} tokens, prompt included.`,
    {
      param: 'n_predict',
      code: 'invalid_value',
    },
  );
}

async function promptOf(
  { codec, id, maxInputLen, maxSeqLen }: ServedGenerator,
  request: InfillRequest,
  maxTokens: number,
): Promise<{ tokens: number[]; isCut: boolean }> {
  const { input_prefix: prefix, input_suffix: suffix, prompt = '', input_extra: files = [] } = request;
  const extra = files.map(({ filename = 'tmp', text }) => ({ filename, text }));
  const room = Math.min(maxInputLen, maxSeqLen - maxTokens);
  const unitsPerToken = codec.unitsPerToken ?? MAX_UNITS_PER_TOKEN;
  const found = await infillPrompt(codec, { prefix, suffix, prompt, extra }, { room, unitsPerToken });
  if (found !== null) return found;
  throw new ApiError(
    400,
    `Infill is not supported by the model '${id}': its vocabulary has no tokens for text to be filled in between.`,
    { param: 'model', code: 'model_not_supported' },
  );
}

interface InfillAnswerOptions {
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
class InfillAnswer {
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

  /** The fields after the text. */
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
