import type { InferRequest, InferTensor } from '../../../callbacks/infer/infer-types.js';
import { encodeWordList } from '../../../callbacks/stop-words.js';
import type { DataType, ModelInput, ModelOutput } from '../../../models/repository/model-config.js';
import { badWordTokens } from '../../generation/bad-words.js';
import { encodeTexts } from '../../generation/encode-texts.js';
import { checkTextLength, promptLimit } from '../../generation/text-length.js';
import type { TextModel } from '../../generation/text-model.js';
import { generationError } from '../texts/generation-error.js';
import { GivenInputs } from '../texts/given-inputs.js';
import { wordBiases, wordTexts } from '../texts/given-words.js';
import { DEFAULT_MAX_TOKENS } from '../texts/read-generation.js';
import { floatTensor, integerTensor } from '../texts/tensor-values.js';
import { inputOf, outputOf } from '../texts/text-config.js';
import type { TextInputName } from '../texts/text-inputs.js';
import type { PartWork } from './part-model.js';

type Term = readonly [means: TextInputName, type: DataType, dims: readonly number[]];

/** Inputs, as the preprocessing model of TensorRT-LLM's backend names them, and what each is in a request for text. */
const INPUTS: Readonly<Record<string, Term>> = {
  QUERY: ['text_input', 'TYPE_STRING', [1]],
  REQUEST_OUTPUT_LEN: ['request_output_len', 'TYPE_INT32', [1]],
  BAD_WORDS_DICT: ['bad_words', 'TYPE_STRING', [-1]],
  STOP_WORDS_DICT: ['stop_words', 'TYPE_STRING', [-1]],
  EMBEDDING_BIAS_WORDS: ['embedding_bias_words', 'TYPE_STRING', [-1]],
  EMBEDDING_BIAS_WEIGHTS: ['embedding_bias_weights', 'TYPE_FP32', [-1]],
  END_ID: ['end_id', 'TYPE_INT32', [1]],
  PAD_ID: ['pad_id', 'TYPE_INT32', [1]],
};

/** Outputs. A bias of words is given by its tokens, and not by a number for each token of the vocabulary. */
const OUTPUTS = {
  INPUT_ID: ['TYPE_INT32', [-1]],
  REQUEST_INPUT_LEN: ['TYPE_INT32', [1]],
  REQUEST_OUTPUT_LEN: ['TYPE_INT32', [1]],
  BAD_WORDS_IDS: ['TYPE_INT32', [2, -1]],
  STOP_WORDS_IDS: ['TYPE_INT32', [2, -1]],
  LOGIT_BIAS_TOKENS: ['TYPE_INT32', [-1]],
  LOGIT_BIAS: ['TYPE_FP32', [-1]],
  OUT_END_ID: ['TYPE_INT32', [1]],
  OUT_PAD_ID: ['TYPE_INT32', [1]],
} as const satisfies Readonly<Record<string, readonly [DataType, readonly number[]]>>;
type OutputName = keyof typeof OUTPUTS;

export function tokenizerPartTensors(): { input: ModelInput[]; output: ModelOutput[] } {
  return {
    input: Object.entries(INPUTS).map(([name, [means, type, dims]]) =>
      inputOf(name, type, means !== 'text_input', [...dims]),
    ),
    output: Object.entries(OUTPUTS).map(([name, [type, dims]]) => outputOf(name, type, [...dims])),
  };
}

/** A text in, its tokens out, with those of its lists of words. @param find the model as it is now */
export function tokenizerWork(find: () => TextModel): PartWork {
  return {
    answer: (request, inputs, on, onOver) => {
      const given = new GivenInputs(inputs, (name) => INPUTS[name]![0]);
      tokenized(find(), given, request).then(
        (outputs) => {
          on.response({ outputs });
          onOver(null);
          on.end();
        },
        (error: unknown) => {
          const told = generationError(error, given);
          onOver(told);
          on.fail(told);
        },
      );
    },
  };
}

async function tokenized(
  model: TextModel,
  given: GivenInputs,
  { outputs, signal }: InferRequest,
): Promise<InferTensor[]> {
  const { codec, endTokens } = model;
  const [text = ''] = given.texts('text_input')!;
  checkTextLength(text.length, promptLimit(model), 'text_input');
  const tokens = Int32Array.from(await codec.encodeText(text, signal));
  const badWords = await badWordTokens(codec, wordTexts(given, 'bad_words'));
  const stopWords = await encodeTexts(codec, wordTexts(given, 'stop_words'), {
    addSpecialTokens: false,
    signal,
  });
  const biases = await wordBiases(given, codec, signal);
  signal?.throwIfAborted();
  const endId = given.number('end_id') ?? endTokens[0];
  const padId = given.number('pad_id') ?? Math.max(endId ?? 0, 0);
  const one = (name: OutputName, value: number) => integerTensor(name, [value], [1, 1]);
  const words = (name: OutputName, of: readonly (readonly number[])[]) => {
    const { shape, data } = encodeWordList(of);
    return integerTensor(name, data, shape);
  };
  const all: InferTensor[] = [
    integerTensor('INPUT_ID', tokens, [1, tokens.length]),
    one('REQUEST_INPUT_LEN', tokens.length),
    one('REQUEST_OUTPUT_LEN', given.number('request_output_len') ?? DEFAULT_MAX_TOKENS),
    words('BAD_WORDS_IDS', badWords),
    words(
      'STOP_WORDS_IDS',
      stopWords.map((word) => [...word]),
    ),
    integerTensor(
      'LOGIT_BIAS_TOKENS',
      biases.map(([token]) => token),
      [1, biases.length],
    ),
    floatTensor(
      'LOGIT_BIAS',
      Float32Array.from(biases, ([, bias]) => bias),
      [1, biases.length],
    ),
    ...(endId === undefined ? [] : [one('OUT_END_ID', endId)]),
    one('OUT_PAD_ID', padId),
  ];
  return outputs === null ? all : all.filter(({ name }) => outputs.includes(name));
}
