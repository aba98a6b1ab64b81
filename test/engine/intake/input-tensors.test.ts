import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { INPUT_TENSORS } from '../../../callbacks/request/tensors.js';
import type { Tensor, TensorData } from '../../../callbacks/types.js';
import { validateRequest } from '../../../engine/intake/request-validation.js';
import { makeRequest } from '../../../tools/support/loop-harness.js';

const VOCAB = 10;
const LIMITS = {
  vocabSize: VOCAB,
  promptRowWidth: 2,
  turnsByGrid: false,
  maxSeqLen: 100,
  attendsToAll: true,
  maxBeamWidth: 1,
  maxTopLogProbs: 5,
  postProcessors: ['own'],
  whyNoAdapters: 'LoRA adapters need peftCacheManagerConfig',
};

const validate = (inputs: Record<string, Tensor>) => {
  const request = makeRequest(1n, [1, 2, 3], 4, inputs);
  return validateRequest(request, LIMITS, () => 99n);
};

const i32 = (shape: number[], ...values: number[]): Tensor => ({ shape, data: Int32Array.from(values) });
const f32 = (shape: number[], ...values: number[]): Tensor => ({ shape, data: Float32Array.from(values) });
const u64 = (shape: number[], ...values: bigint[]): Tensor => ({ shape, data: BigUint64Array.from(values) });
const bool = (value: number): Tensor => ({ shape: [1], data: Uint8Array.of(value) });
const ZEROS = Array.from({ length: VOCAB }, () => 0);

interface Case {
  good: Tensor[];
  wrongShape: Tensor;
  /** Right in shape and type; refused for its values, with a sentence that has this in it. */
  refused: [Tensor, RegExp][];
}

const oneInt = (good: number[], refused: [number, RegExp][]): Case => ({
  good: good.flatMap((value) => [i32([1], value), i32([1, 1], value)]),
  wrongShape: i32([2], 1, 1),
  refused: refused.map(([value, message]) => [i32([1], value), message]),
});
const oneFloat = (good: number[], refused: [number, RegExp][]): Case => ({
  good: good.map((value) => f32([1], value)),
  wrongShape: f32([1, 1, 1], 0.5),
  refused: [...refused, [Number.NaN, /is NaN/] as [number, RegExp]].map(([v, m]) => [f32([1], v), m]),
});
const FLAG: Case = {
  good: [bool(0), bool(1)],
  wrongShape: { shape: [0], data: new Uint8Array(0) },
  refused: [[bool(2), /is 2; it must be an integer from 0 to 1/]],
};
const U64: Case = {
  good: [u64([1], 0n), u64([1], 2n ** 64n - 1n)],
  wrongShape: u64([2], 1n, 2n),
  refused: [],
};
const bytes = (shape: number[], text: string): Tensor => ({ shape, data: new TextEncoder().encode(text) });
const words = (...row: number[]): Tensor => i32([1, 2, row.length / 2], ...row);

const CASES: Record<string, Case> = {
  input_ids: {
    good: [i32([1, 1], 0), i32([1, 3], 1, 2, 9)],
    wrongShape: i32([3], 1, 2, 3),
    refused: [
      [i32([1, 2], 1, 10), /input_ids holds 10 at place 1; tokens are from 0 to 9/],
      [i32([1, 1], -1), /input_ids holds -1 at place 0/],
      [i32([1, 0]), /input_ids is empty/],
    ],
  },
  request_output_len: oneInt([1, 1000], [[0, /request_output_len is 0; .* from 1/]]),
  beam_width: oneInt(
    [1],
    [
      [0, /beam_width is 0; .* from 1/],
      [2, /beam_width is 2; this engine takes at most maxBeamWidth = 1/],
    ],
  ),
  num_return_sequences: oneInt([1, 4], [[0, /num_return_sequences is 0; .* from 1/]]),
  best_of: oneInt([1], [[0, /best_of is 0; .* from 1/]]),
  first_sequence_index: oneInt([0, 7], [[-1, /first_sequence_index is -1; .* from 0/]]),
  known_output_ids: {
    good: [i32([0, 0]), i32([1, 0]), i32([1, 3], -1, -1, -1), i32([1, 4], 0, 9, 9, -1)],
    wrongShape: i32([2], 1, 2),
    refused: [
      [i32([1, 2], 1, 10), /known_output_ids holds 10 at \[0, 1\]; tokens are from 0 to 9/],
      [i32([1, 2], -2, 1), /known_output_ids holds -2 at \[0, 0\]; tokens are from 0 to 9/],
      [i32([1, 3], 1, -1, 2), /known_output_ids holds 2 at \[0, 2\]; after the first -1 .* nothing else/],
      [i32([2, 1], 1, 2), /known_output_ids has 2 rows; the request generates 1 sequence in all/],
      [i32([1, 5], 1, 2, 3, 4, 5), /known_output_ids has 5 tokens in row 0; request_output_len is 4/],
    ],
  },
  temperature: oneFloat([0, 0.5, 100], [[-1, /temperature is -1; .* from 0 to 100/]]),
  runtime_top_k: oneInt([0, 5], [[-1, /runtime_top_k is -1/]]),
  runtime_top_p: oneFloat([0, 1], [[1.5, /runtime_top_p is 1.5; .* from 0 to 1/]]),
  runtime_min_p: oneFloat([0, 1], [[-0.5, /runtime_min_p is -0.5; .* from 0 to 1/]]),
  repetition_penalty: oneFloat([1, 1.5], [[0, /repetition_penalty is 0; .* from 0.0078125 to 100/]]),
  presence_penalty: oneFloat([-2, 2], [[101, /presence_penalty is 101; .* from -100 to 100/]]),
  frequency_penalty: oneFloat([-2, 2], [[-101, /frequency_penalty is -101/]]),
  runtime_typical_p: oneFloat([0, 1], [[1.5, /runtime_typical_p is 1.5; .* from 0 to 1/]]),
  top_n_sigma: oneFloat([0, 2.5], [[-1, /top_n_sigma is -1; .* from 0 to 100/]]),
  xtc_probability: oneFloat([0, 1], [[2, /xtc_probability is 2; .* from 0 to 1/]]),
  xtc_threshold: oneFloat([0, 1], [[-0.5, /xtc_threshold is -0.5/]]),
  dynatemp_range: oneFloat([0, 1], [[-1, /dynatemp_range is -1/]]),
  dynatemp_exponent: oneFloat([0, 2], [[101, /dynatemp_exponent is 101/]]),
  temperature_last: FLAG,
  mirostat: oneInt([0, 1, 2], [[3, /mirostat is 3; .* from 0 to 2/]]),
  mirostat_tau: oneFloat([0, 5], [[-1, /mirostat_tau is -1/]]),
  mirostat_eta: oneFloat([0, 0.5], [[11, /mirostat_eta is 11/]]),
  dry_multiplier: oneFloat([0, 1], [[-1, /dry_multiplier is -1/]]),
  dry_base: oneFloat([1, 2], [[0.5, /dry_base is 0.5; .* from 1 to 1000/]]),
  dry_allowed_length: oneInt([1, 2], [[0, /dry_allowed_length is 0; .* from 1/]]),
  dry_penalty_last_n: oneInt([-1, 0, 64], [[-2, /dry_penalty_last_n is -2/]]),
  dry_sequence_breakers: {
    good: [i32([1, 2, 0]), words(5, 7, 3, 2, 3, -1)],
    wrongShape: i32([2, 2], 1, 2, 1, 2),
    refused: [
      [words(10, 1), /dry_sequence_breakers holds 10 at place 0; tokens are from 0 to 9/],
      [
        words(...new Array(21).fill(1), 21, ...new Array(20).fill(-1)),
        /dry_sequence_breakers has a breaker of 21 tokens; at most 20/,
      ],
    ],
  },
  allowed_token_ids: {
    good: [i32([1, 0]), i32([1, 3], 0, 9, 9)],
    wrongShape: i32([2], 1, 2),
    refused: [[i32([1, 2], 1, 10), /allowed_token_ids holds 10 at place 1; tokens are from 0 to 9/]],
  },
  penalty_last_n: oneInt([-1, 0, 64], [[-2, /penalty_last_n is -2/]]),
  reasoning_budget: {
    good: [i32([1, 3], 0, 9, -1), i32([1, 3], -1, 9, 3)],
    wrongShape: i32([1, 2], 1, 2),
    refused: [
      [i32([1, 3], 5, 10, -1), /reasoning_budget has 10 as the token that ends reasoning; .* from 0 to 9/],
      [i32([1, 3], 5, 9, -2), /reasoning_budget has -2 as the token that begins reasoning; .* from -1 to 9/],
    ],
  },
  min_length: oneInt([0, 3], [[-1, /min_length is -1/]]),
  random_seed: U64,
  end_id: oneInt(
    [-1, 9],
    [
      [10, /end_id is 10; .* from -1 to 9/],
      [-2, /end_id is -2/],
    ],
  ),
  pad_id: oneInt([-1, 0, 9], [[-2, /pad_id is -2/]]),
  stop_words_list: {
    good: [words(5, 7, 3, 2, 3, -1), i32([1, 2, 0])],
    wrongShape: i32([2, 2], 1, 2, 1, 2),
    refused: [[words(1, 2, 2, 1), /stop_words_list has the offset 1 at place 1/]],
  },
  streaming: FLAG,
  return_log_probs: FLAG,
  top_log_probs: oneInt([0, 5], [[6, /top_log_probs is 6; .* from 0 to 5/]]),
  return_context_logits: FLAG,
  return_generation_logits: FLAG,
  return_context_log_probs: FLAG,
  return_context_progress: FLAG,
  top_context_log_probs: oneInt(
    [0, 5],
    [
      [6, /top_context_log_probs is 6; .* from 0 to 5/],
      [-1, /top_context_log_probs is -1/],
    ],
  ),
  time_limit_ms: oneInt([1, 1000], [[0, /time_limit_ms is 0; .* from 1/]]),
  cache_salt: U64,
  retention_ranges: {
    good: [i32([1, 0, 4]), i32([1, 2, 4], 0, 2, 100, 0, 2, -1, 0, 5000)],
    wrongShape: i32([1, 1, 3], 0, 2, 35),
    refused: [
      [i32([1, 1, 4], 0, 2, 101, 0), /retention_ranges: A retention priority is 101; .* from 0 to 100/],
      [i32([1, 1, 4], 2, 2, 35, 0), /retention_ranges: A retention range is \[2, 2\)/],
      [i32([1, 1, 4], -1, 2, 35, 0), /A retention range is \[-1, 2\)/],
      [i32([1, 1, 4], 0, 2, 35, -1), /retention_ranges has the duration -1 ms; at least 0/],
    ],
  },
  decode_retention: {
    good: [i32([1, 2], 0, 0), i32([1, 2], 100, 60_000)],
    wrongShape: i32([2], 0, 0),
    refused: [
      [i32([1, 2], -1, 0), /decode_retention: A retention priority is -1/],
      [i32([1, 2], 35, -7), /decode_retention has the duration -7 ms/],
    ],
  },
  len_penalty: oneFloat([0, 1], [[101, /len_penalty is 101; .* from -100 to 100/]]),
  early_stopping: oneInt([0, 1], [[-1, /early_stopping is -1/]]),
  embedding_bias: {
    good: [f32([1, VOCAB], ...ZEROS), f32([1, VOCAB], ...ZEROS.slice(1), -Infinity)],
    wrongShape: f32([1, 9], ...ZEROS.slice(1)),
    refused: [
      [
        f32([1, VOCAB], ...ZEROS.slice(1), Infinity),
        /embedding_bias holds Infinity at place 9; a number from/,
      ],
      [f32([1, VOCAB], ...ZEROS.slice(1), Number.NaN), /embedding_bias holds NaN at place 9/],
      [f32([1, VOCAB], ...ZEROS.map(() => -Infinity)), /embedding_bias is refused: .* all 10 tokens/],
    ],
  },
  logit_bias_tokens: {
    good: [],
    wrongShape: i32([2], 1, 2),
    refused: [[i32([1, 2], 1, 2), /logit_bias is missing; logit_bias_tokens is of no use/]],
  },
  logit_bias: {
    good: [],
    wrongShape: f32([2], 1, 2),
    refused: [[f32([1, 2], 1, 2), /logit_bias_tokens is missing; logit_bias is of no use/]],
  },
  bad_words_list: {
    good: [i32([1, 2, 0]), words(0, 0, -1, -1), words(5, 7, 3, 2, 3, -1)],
    wrongShape: i32([1, 3, 1], 1, 2, 3),
    refused: [
      [words(1, 2, 2, 1), /bad_words_list has the offset 1 at place 1/],
      [words(4, 10, 1, 2), /bad_words_list holds 10 at place 0; tokens are from 0 to 9/],
      [
        words(...ZEROS.map((_, i) => i), ...ZEROS.map((_, i) => i + 1)),
        /bad_words_list is refused: .* all 10/,
      ],
    ],
  },
  no_repeat_ngram_size: oneInt([0, 3], [[-1, /no_repeat_ngram_size is -1/]]),
  noRepeatNgramSize: oneInt([0, 3], [[-1, /no_repeat_ngram_size is -1/]]),
  input_lengths: oneInt(
    [1],
    [
      [0, /input_lengths is 0/],
      [9999, /input_lengths is 9999/],
    ],
  ),
  prompt_embedding_table: {
    good: [f32([0, 2]), f32([2, 2], 1, 2, 3, 4)],
    wrongShape: f32([1, 3], 1, 2, 3),
    refused: [
      [f32([2, 2], 1, 2, 3, Number.NaN), /prompt_embedding_table holds NaN in row 1; finite/],
      [f32([1, 2], Infinity, 2), /prompt_embedding_table holds Infinity in row 0/],
    ],
  },
  prompt_vocab_size: oneInt(
    [0],
    [
      [8, /prompt_vocab_size is 8; there is no prompt_embedding_table/],
      [-1, /prompt_vocab_size is -1/],
    ],
  ),
  image_grids: {
    good: [i32([0, 3])],
    wrongShape: i32([1, 2], 0, 1),
    refused: [
      [i32([1, 3], 0, 1, 0), /image_grids has a grid of 1 x 0 in row 0; both are at least 1/],
      [i32([1, 3], 2, 1, 2), /image_grids puts 1 x 2 tokens at place 2 in row 0; places 0 to 2 are left/],
      [i32([1, 3], 0, 1, 2), /prompt_embedding_table has 0 rows; the pictures of image_grids have 2 tokens/],
    ],
  },
  position_ids: {
    good: [i32([1, 3], 0, 1, 2), i32([1, 3], 7, 0, 95), i32([1, 3], 5, 5, 5)],
    wrongShape: i32([3], 0, 1, 2),
    refused: [
      [i32([1, 2], 0, 1), /position_ids has 2 positions; the prompt has 3 tokens/],
      [i32([1, 3], 0, -1, 2), /position_ids holds -1 at place 1; positions are from 0 to 99/],
      [i32([1, 3], 0, 100, 2), /position_ids holds 100 at place 1/],
      [
        i32([1, 3], 0, 1, 96),
        /position_ids ends with 96, and request_output_len is 4; .* position 100, .* 99/,
      ],
    ],
  },
  client_id: U64,
  guided_decoding_guide_type: {
    good: [],
    wrongShape: bytes([1, 4], 'json'),
    refused: [[bytes([4], 'json'), /guided_decoding_guide_type is refused: this engine has no tokenizer/]],
  },
  guided_decoding_guide: {
    good: [],
    wrongShape: bytes([1, 2], '{}'),
    refused: [[bytes([2], '{}'), /guided_decoding_guide_type is refused: this engine has no tokenizer/]],
  },
  logits_post_processor_name: {
    good: [bytes([3], 'own'), bytes([0], '')],
    wrongShape: bytes([1, 3], 'own'),
    refused: [
      [bytes([2], 'on'), /logits_post_processor_name is "on", .*; there are own\./],
      [{ shape: [1], data: Uint8Array.of(0xff) }, /logits_post_processor_name is not UTF-8/],
    ],
  },
  lora_task_id: {
    good: [],
    wrongShape: u64([2], 1n, 2n),
    refused: [[u64([1], 0n), /lora_task_id is refused: LoRA/]],
  },
  lora_weights: {
    good: [f32([0, 8])],
    wrongShape: f32([2], 1, 2),
    refused: [[f32([1, 2], 1, 2), /lora_weights is refused: LoRA/]],
  },
  lora_config: {
    good: [i32([0, 3])],
    wrongShape: i32([1, 4], 0, 0, 8, 0),
    refused: [[i32([1, 3], 0, 0, 8), /lora_config is refused: LoRA/]],
  },
  draft_input_ids: {
    good: [i32([0]), i32([2], 1, 9)],
    wrongShape: i32([1, 2], 1, 2),
    refused: [
      [i32([2], 1, 10), /draft_input_ids holds 10 at place 1; tokens are from 0 to 9/],
      [i32([1], -1), /draft_input_ids holds -1 at place 0; tokens are from 0 to 9/],
    ],
  },
  max_draft_len: oneInt([0, 5], [[-1, /max_draft_len is -1/]]),
  draft_logits: {
    good: [f32([0, VOCAB])],
    wrongShape: f32([1, 9], ...ZEROS.slice(1)),
    refused: [[f32([1, VOCAB], ...ZEROS), /draft_logits has 1 rows; draft_input_ids has 0 tokens/]],
  },
};

/** The same values as another type. */
function otherType({ shape, data }: Tensor): Tensor {
  const numbers = Array.from(data as Iterable<number | bigint>, Number);
  const other = data instanceof Float32Array ? Int32Array.from(numbers) : Float32Array.from(numbers);
  return { shape, data: other as TensorData };
}

it('has a case for every input tensor', () => {
  expect(Object.keys(CASES).sort()).toEqual(Object.keys(INPUT_TENSORS).sort());
});

it('is explained in docs/tensors.md, all of it', () => {
  const page = readFileSync(new URL('../../../docs/tensors.md', import.meta.url), 'utf8');
  for (const name of Object.keys(INPUT_TENSORS)) expect(page).toContain(`\`${name}\``);
});

describe.each(Object.entries(CASES))('%s', (name, { good, wrongShape, refused }) => {
  const any = good[0] ?? refused[0]![0];

  it('takes a good value', () => {
    for (const tensor of good) expect(() => validate({ [name]: tensor })).not.toThrow();
  });

  it('refuses another type, naming what it holds and what is expected', () => {
    const wrong = otherType(any);
    const found = wrong.data.constructor.name;
    expect(() => validate({ [name]: wrong })).toThrow(
      `${name} holds ${found}; ${any.data.constructor.name} (`,
    );
    const plain = { shape: any.shape, data: [0] as unknown as Int32Array };
    expect(() => validate({ [name]: plain })).toThrow(`${name} holds Array;`);
  });

  it('refuses another shape, naming both', () => {
    const { shape } = wrongShape;
    expect(() => validate({ [name]: wrongShape })).toThrow(`${name} has the shape [${shape.join(', ')}]; [`);
    const longer = {
      shape: any.shape,
      data: any.data.constructor === Int32Array ? new Int32Array(99) : null,
    };
    if (longer.data !== null) {
      expect(() => validate({ [name]: longer as Tensor })).toThrow(`values; its data has 99`);
    }
    const shapeless = { data: any.data } as Tensor;
    expect(() => validate({ [name]: shapeless })).toThrow(`${name} has no shape`);
  });

  it('refuses values that are out of range or cannot work', () => {
    for (const [tensor, message] of refused) expect(() => validate({ [name]: tensor })).toThrow(message);
  });
});

describe('a name that there is not', () => {
  it.each([
    ['tempurature', 'tempurature is not the name of an input tensor; did you mean temperature?'],
    ['top_k', 'top_k is not the name of an input tensor; known are input_ids, request_output_len, '],
    ['return_logprobs', 'did you mean return_log_probs?'],
    ['stopwords_list', 'did you mean stop_words_list?'],
    ['toString', 'toString is not the name of an input tensor'],
    ['__proto_', '__proto_ is not the name'],
  ])('%s', (name, message) => {
    expect(() => validate({ [name]: i32([1], 1) })).toThrow(message);
  });
});

it('takes the tensors of an adapter, also with a batch of 1 before them, where the engine has room for adapters', () => {
  const check = (inputs: Record<string, Tensor>) =>
    validateRequest(makeRequest(1n, [1], 4, inputs), { ...LIMITS, whyNoAdapters: null }, () => 1n);
  const config = Int32Array.of(0, 0, 8, 1, 0, 8);
  const weights = new Float32Array(6);
  for (const batch of [[], [1]]) {
    const inputs = {
      lora_task_id: u64([...batch, 1], 5n),
      lora_weights: { shape: [...batch, 2, 3], data: weights },
      lora_config: { shape: [...batch, 2, 3], data: config },
    };
    expect(check(inputs).promptTokens).toEqual(Int32Array.of(1));
  }
  expect(() => check({ lora_config: { shape: [2, 1, 3], data: config } })).toThrow(
    /lora_config has the shape \[2, 1, 3\]; \[n, 3\] is expected/,
  );
});
