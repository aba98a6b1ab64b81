import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferOrigin, InferTensor } from '../../../callbacks/infer/infer-types.js';
import { copiedBytes } from '../../../callbacks/infer/sent-tensors.js';
import {
  FINISH_CANCELLED,
  FINISH_END_ID,
  FINISH_LENGTH,
  FINISH_STOP_WORDS,
  FINISH_TIMED_OUT,
} from '../../../callbacks/response-batch.js';
import type { FinishReason } from '../../../callbacks/token-request.js';
import type { ModelInput, ModelOutput } from '../../../models/repository/model-config.js';
import { StopStrings } from '../../../models/tokenizer/stop-strings.js';
import { SequenceText } from '../../generation/sequence-text.js';
import type { TextModel } from '../../generation/text-model.js';
import { MAX_CHOICES } from '../../generation/word-limits.js';
import { asInferError } from '../infer-failure.js';
import { nextTurn } from '../protocol/turns.js';
import { textsOf, textTensor } from '../texts/tensor-values.js';
import { inputOf, outputOf } from '../texts/text-config.js';
import { TOKEN_OUTPUTS, type TokenOutputName, tokenOutputs } from '../texts/text-inputs.js';
import type { PartWork } from './part-model.js';

/** Outputs of the engine that text is made of, by their names here: those of the postprocessing model of TensorRT-LLM's backend. */
const OWN_NAMES: Readonly<Partial<Record<TokenOutputName, string>>> = { output_ids: 'TOKENS_BATCH' };
const OF_TEXT: readonly TokenOutputName[] = ['output_ids', 'sequence_length', 'finish_reasons'];

/** Outputs of the engine that go through as they are, so that they come with the text that they belong to: NAME to OUT_NAME. */
const THROUGH = (Object.keys(TOKEN_OUTPUTS) as TokenOutputName[]).filter((name) => !OF_TEXT.includes(name));

/** Those that say something of each token, or of the prompt: a response that has one is not silent. */
const TELLING: readonly TokenOutputName[] = [
  'cum_log_probs',
  'output_log_probs',
  'top_token_ids',
  'top_log_probs',
  'generation_logits',
  'context_logits',
  'context_log_probs',
];

const inputName = (name: TokenOutputName) => OWN_NAMES[name] ?? name.toUpperCase();
const outputName = (name: TokenOutputName) => `OUT_${name.toUpperCase()}`;

export function detokenizerPartTensors(): { input: ModelInput[]; output: ModelOutput[] } {
  const all = tokenOutputs(true);
  const through = all.filter(({ name }) => THROUGH.includes(name as TokenOutputName));
  return {
    input: [
      ...all.map(({ name, data_type, dims }) =>
        inputOf(inputName(name as TokenOutputName), data_type, name !== 'output_ids', dims),
      ),
      inputOf('STOP_WORDS', 'TYPE_STRING', true, [-1]),
    ],
    output: [
      outputOf('OUTPUT', 'TYPE_STRING', [-1]),
      outputOf('FINISH_REASON', 'TYPE_STRING', [-1]),
      ...through.map(({ name, data_type, dims }) =>
        outputOf(outputName(name as TokenOutputName), data_type, dims),
      ),
    ],
  };
}

const REASONS: ReadonlyMap<number, FinishReason> = new Map<number, FinishReason>([
  [FINISH_END_ID, 'stop'],
  [FINISH_STOP_WORDS, 'stop'],
  [FINISH_LENGTH, 'length'],
  [FINISH_TIMED_OUT, 'timeout'],
  [FINISH_CANCELLED, 'cancelled'],
]);

/** Sequences of one request of an ensemble, as far as their tokens have come. */
interface Texts {
  readonly stop: StopStrings;
  readonly sequences: Map<number, Sequence>;
  /** Resolves when the tokens that came last are text; null: they are. */
  working: Promise<void> | null;
}

/** Tokens that become text in one turn of the event loop: some 20 ms. */
const TOKENS_OF_TURN = 2 ** 17;

interface Sequence {
  readonly text: SequenceText;
  numTokens: number;
  isOver: boolean;
}

/**
 * Tokens in, their text out. In an ensemble the tokens of a sequence may come in any number of requests, and half characters and
 * beginnings of stop words wait for the next: what belongs together has the same origin.
 *
 *   [[227, 129]]  ""     [[138]]  "あ"     [[12, 40]], the last  " is"
 */
export class Detokenizing implements PartWork {
  readonly #find: () => TextModel;
  /** Responses that say nothing are left out. */
  readonly #isDecoupled: boolean;
  readonly #texts = new WeakMap<InferOrigin, Texts>();

  /** @param find the model as it is now @throws InferError where there is none */
  constructor(find: () => TextModel, isDecoupled: boolean) {
    this.#find = find;
    this.#isDecoupled = isDecoupled;
  }

  answer(...[request, inputs, on, onOver]: Parameters<PartWork['answer']>): void {
    const fail = (error: unknown) => {
      const told = asInferError(error);
      onOver(told);
      on.fail(told);
    };
    const tell = (outputs: InferTensor[] | null) => {
      if (request.signal?.aborted === true) {
        fail(request.signal.reason);
        return;
      }
      if (outputs !== null) {
        const isWanted = ({ name }: InferTensor) => request.outputs?.includes(name) ?? true;
        on.response({ outputs: outputs.filter(isWanted) });
      }
      onOver(null);
      on.end();
    };
    const texts = this.#textsOf(inputs, request.origin);
    const work = this.#detokenized(inputs, texts);
    // At once, since the next tokens of a sequence may come before the answer to these; but where there are many, the next ones wait.
    const first = texts.working === null ? work.next() : null;
    if (first?.done === true) {
      queueMicrotask(() => tell(first.value));
      return;
    }
    const working = finished(work, texts.working, request.signal).then(tell, fail);
    texts.working = working;
    void working.then(() => {
      if (texts.working === working) texts.working = null;
    });
  }

  #textsOf(inputs: readonly InferTensor[], origin: InferOrigin | undefined): Texts {
    const known = origin && this.#texts.get(origin);
    if (known !== undefined) return known;
    const texts = newTexts(inputs.find(({ name }) => name === 'STOP_WORDS'));
    if (origin !== undefined) this.#texts.set(origin, texts);
    return texts;
  }

  /**
   * Yields where others may have their turn.
   * @returns null where there is nothing to report
   * @throws InferError
   */
  *#detokenized(inputs: readonly InferTensor[], texts: Texts): Generator<void, InferTensor[] | null> {
    const given = new Map(inputs.map((tensor) => [tensor.name, tensor]));
    const of = (name: TokenOutputName) => given.get(inputName(name));
    const tokens = of('output_ids')!;
    const [count = 0, width = 0] = tokens.shape.slice(1);
    if (count > MAX_CHOICES)
      throw new InferError(`'TOKENS_BATCH' has ${count} rows; at most ${MAX_CHOICES} are taken`, 'invalid');
    const { maxSeqLen } = this.#find();
    if (width > maxSeqLen)
      throw new InferError(
        `'TOKENS_BATCH' has rows of ${width} tokens; the model's context holds ${maxSeqLen}`,
        'invalid',
      );
    const ids = integersOf(tokens);
    const lengths = rowsOf(of('sequence_length'), count);
    const codes = rowsOf(of('finish_reasons'), count);
    const first = of('sequence_index') === undefined ? 0 : integersOf(of('sequence_index')!)[0]!;
    const parts: { text: string; reason: FinishReason | null }[] = [];
    for (let i = 0, ofTurn = width; i < count; i++, ofTurn += width) {
      if (ofTurn > TOKENS_OF_TURN && i > 0) {
        yield;
        ofTurn = width;
      }
      const row = ids.subarray(i * width, (i + 1) * width);
      const reason = codes === null ? 'length' : (REASONS.get(codes[i]!) ?? null);
      parts.push(this.#next(texts, first + i, { row, length: lengths?.[i], reason }));
    }
    const isOver = parts.some(({ reason }) => reason !== null);
    const isSilent = parts.every(({ text }) => text === '') && !TELLING.some((name) => of(name));
    if (isSilent && !isOver && this.#isDecoupled) return null;
    const reasons = parts.map(({ reason }) => reason ?? '');
    return [
      textTensor(
        'OUTPUT',
        parts.map(({ text }) => text),
        [1, count],
      ),
      ...(isOver && codes !== null ? [textTensor('FINISH_REASON', reasons, [1, count])] : []),
      ...THROUGH.flatMap((name) => {
        const tensor = of(name);
        return tensor === undefined ? [] : { ...tensor, name: outputName(name) };
      }),
    ];
  }

  #next(
    texts: Texts,
    index: number,
    { row, length, reason }: { row: Int32Array; length: number | undefined; reason: FinishReason | null },
  ): { text: string; reason: FinishReason | null } {
    let sequence = texts.sequences.get(index);
    if (sequence === undefined) {
      const text = new SequenceText(this.#find().codec, { promptTokens: NO_TOKENS, stop: texts.stop });
      sequence = { text, numTokens: 0, isOver: false };
      texts.sequences.set(index, sequence);
    }
    if (sequence.isOver)
      throw new InferError(`sequence ${index} has ended; it takes no more tokens`, 'invalid');
    // sequence_length counts from the beginning of the answer; what follows is padding.
    const count = Math.min(
      row.length,
      Math.max(0, (length ?? Number.POSITIVE_INFINITY) - sequence.numTokens),
    );
    const tokens = row.subarray(0, count);
    sequence.numTokens += count;
    const shown = sequence.text.textOf({ tokens, finishReason: reason });
    sequence.isOver = reason !== null || shown?.finishReason === 'stop';
    return { text: shown?.text ?? '', reason: sequence.isOver ? (shown?.finishReason ?? reason) : null };
  }
}

/** Does the rest of the work, with turns of others in between. @param before what comes first */
async function finished<T>(
  work: Generator<void, T>,
  before: Promise<void> | null,
  signal: AbortSignal | undefined,
): Promise<T> {
  await before;
  for (;;) {
    await nextTurn(signal);
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

const NO_TOKENS = new Int32Array(0);

function newTexts(stopWords: InferTensor | undefined): Texts {
  return {
    stop: new StopStrings(stopWords === undefined ? [] : textsOf(stopWords)),
    sequences: new Map(),
    working: null,
  };
}

const integersOf = ({ data }: InferTensor) => new Int32Array(copiedBytes(data).buffer);

/** A number for each row; null: there are none. @throws InferError where there are others */
function rowsOf(tensor: InferTensor | undefined, count: number): Int32Array | null {
  if (tensor === undefined) return null;
  const values = integersOf(tensor);
  if (values.length === count) return values;
  throw new InferError(
    `'${tensor.name}' has ${values.length} numbers and 'TOKENS_BATCH' ${count} rows; as many are expected`,
    'invalid',
  );
}
