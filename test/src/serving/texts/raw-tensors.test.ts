import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tinyModelPath } from '../../../../tools/support/test-engine.js';
import { postJson } from '../../../support/post-json.js';
import { type SkeinProcess, startServer } from '../../support/skein-process.js';

let server: SkeinProcess;
beforeAll(async () => {
  server = await startServer(['--model', `llm=${tinyModelPath('gqa')}`, '--max-beam-width', '2']);
});
afterAll(() => server?.stop());

interface Tensor {
  name: string;
  datatype: string;
  shape: number[];
  data: unknown[];
}
const tensor = (name: string, datatype: string, data: unknown[], shape = [data.length]): Tensor => ({
  name,
  datatype,
  shape,
  data,
});
const PROMPT = [1, 87, 85, 270, 201];
const IDS = tensor('input_ids', 'INT32', PROMPT, [1, PROMPT.length]);
const LENGTH = tensor('request_output_len', 'INT32', [6]);
const ask = (inputs: readonly Tensor[], more: object = {}) =>
  postJson(`${server.url}/v2/models/llm/infer`, { inputs, ...more });

async function answer(inputs: readonly Tensor[], more?: object): Promise<Record<string, Tensor>> {
  const response = await ask(inputs, more);
  const body = (await response.json()) as { outputs: Tensor[]; error?: string };
  expect(body.error).toBeUndefined();
  return Object.fromEntries(body.outputs.map((output) => [output.name, output]));
}
const errorOf = async (inputs: readonly Tensor[], more?: object) => {
  const response = await ask(inputs, more);
  return [response.status, ((await response.json()) as { error: string }).error];
};

describe('raw tensors', () => {
  it('are answered with tokens, their length and why they end', async () => {
    const { output_ids, sequence_length, finish_reasons, ...more } = await answer([IDS, LENGTH]);
    expect(output_ids).toMatchObject({ datatype: 'INT32', shape: [1, 1, 11] });
    expect(output_ids!.data.slice(0, 5)).toEqual(PROMPT);
    expect([sequence_length, finish_reasons]).toMatchObject([
      { shape: [1, 1], data: [11] },
      { shape: [1, 1], data: [3] },
    ]);
    expect(more).toEqual({});
  });

  it('may be without a batch dimension, or have one too many, and are the same under either name', async () => {
    const { output_ids: whole } = await answer([IDS, LENGTH]);
    const plain = await answer([
      { ...IDS, shape: [5] },
      { ...LENGTH, shape: [1, 1] },
    ]);
    expect(plain.output_ids).toEqual(whole);
    const named = await answer([IDS, { ...LENGTH, name: 'max_tokens' }]);
    expect(named.output_ids).toEqual(whole);
    const asParameter = await answer([IDS], { parameters: { max_tokens: 6 } });
    expect(asParameter.output_ids).toEqual(whole);
  });

  it('leave out the prompt where that is asked for, and what is behind input_lengths', async () => {
    const { output_ids: whole } = await answer([IDS, LENGTH]);
    const excluding = [IDS, LENGTH, tensor('exclude_input_in_output', 'BOOL', [true])];
    expect((await answer(excluding)).output_ids!.data).toEqual(whole!.data.slice(5));
    const padded = { ...IDS, shape: [1, 7], data: [...PROMPT, 9, 9] };
    const lengths = tensor('input_lengths', 'INT32', [5]);
    expect((await answer([padded, lengths, LENGTH])).output_ids).toEqual(whole);
  });

  it('give what else was asked for, by an input and by name', async () => {
    const outputs = await answer([
      IDS,
      LENGTH,
      tensor('num_return_sequences', 'INT32', [2]),
      tensor('temperature', 'FP32', [1.2]),
      tensor('random_seed', 'UINT64', [5]),
      tensor('return_log_probs', 'BOOL', [true]),
      tensor('top_log_probs', 'INT32', [3]),
      tensor('return_context_logits', 'BOOL', [true]),
      tensor('return_num_input_tokens', 'BOOL', [true]),
      tensor('return_num_output_tokens', 'BOOL', [true]),
      tensor('return_perf_metrics', 'BOOL', [true]),
    ]);
    const vocabulary = outputs.context_logits!.shape[2]!;
    const shapes = Object.fromEntries(Object.entries(outputs).map(([name, { shape }]) => [name, shape]));
    expect(shapes).toMatchObject({
      output_ids: [1, 2, 11],
      cum_log_probs: [1, 2],
      output_log_probs: [1, 2, 6],
      top_token_ids: [1, 2, 6, 3],
      top_log_probs: [1, 2, 6, 3],
      context_logits: [1, 5, vocabulary],
      num_input_tokens: [1],
      num_output_tokens: [1],
      first_token_time_ns: [1],
    });
    expect(outputs.num_output_tokens!.data).toEqual([12]);
    const one = await answer([IDS, LENGTH, tensor('return_generation_logits', 'BOOL', [true])]);
    expect(one.generation_logits!.shape).toEqual([1, 1, 6, vocabulary]);
    const named = await answer([IDS, LENGTH], {
      outputs: [{ name: 'text_output' }, { name: 'random_seed' }],
    });
    expect(Object.keys(named)).toEqual(['text_output', 'random_seed']);
  });

  it('go on where another engine has stopped, end by words of tokens, and take beams', async () => {
    const { output_ids: whole } = await answer([IDS, LENGTH]);
    const tokens = whole!.data.slice(5) as number[];
    const known = tensor('known_output_ids', 'INT32', tokens.slice(0, 2), [1, 2]);
    expect((await answer([IDS, LENGTH, known])).output_ids).toEqual(whole);
    const words = tensor('stop_words_list', 'INT32', [tokens[1], 1], [1, 2, 1]);
    const stopped = await answer([IDS, LENGTH, words]);
    expect(stopped.finish_reasons!.data).toEqual([2]);
    expect(stopped.output_ids!.data.at(-1)).toBe(tokens[tokens.indexOf(tokens[1]!)]);
    const beams = await answer([IDS, LENGTH, tensor('beam_width', 'INT32', [2])]);
    expect(beams.output_ids!.shape).toEqual([1, 2, 11]);
  });

  it.each([
    [[IDS], /'request_output_len' is missing; it is required with 'input_ids'/],
    [[LENGTH], /one of 'text_input' and 'input_ids' is expected; neither is given/],
    [[IDS, LENGTH, tensor('text_input', 'BYTES', ['a'])], /'text_input' and 'input_ids' are both given/],
    [[IDS, LENGTH, tensor('max_tokens', 'INT32', [3])], /two names of one input/],
    [[IDS, LENGTH, tensor('input_lengths', 'INT32', [6])], /'input_lengths' is 6; 'input_ids' has 5 tokens/],
    [[tensor('input_ids', 'INT32', [5000], [1, 1]), LENGTH], /holds token 5000/],
    [[tensor('input_ids', 'INT32', [], [1, 0]), LENGTH], /input_ids|prompt/],
    [[IDS, tensor('request_output_len', 'INT32', [0])], /request_output_len is 0/],
    [
      [IDS, LENGTH, tensor('beam_width', 'INT32', [500])],
      /'beam_width' is 500; a whole number from 1 to 128/,
    ],
    [[IDS, LENGTH, tensor('num_return_sequences', 'INT32', [0])], /'num_return_sequences' is 0/],
    [[IDS, LENGTH, tensor('temperature', 'FP64', [1])], /FP64/],
    [[IDS, LENGTH, tensor('temperature', 'FP32', [-1])], /temperature/],
    [[IDS, LENGTH, tensor('top_log_probs', 'INT32', [21])], /--max-logprobs/],
    [[IDS, LENGTH, tensor('bad_words_list', 'INT32', [1, 2, 5, 1], [1, 2, 2])], /bad_words_list/],
    [[IDS, LENGTH, tensor('lora_task_id', 'UINT64', [1])], /takes no LoRA adapters/],
    [[IDS, LENGTH, tensor('streaming', 'BOOL', [true])], /'streaming' is true.*generate_stream streams/],
    [[IDS, LENGTH, tensor('stop', 'BOOL', [true])], /request ID is not provided/],
    [
      [IDS, LENGTH, tensor('guided_decoding_guide', 'BYTES', ['a'])],
      /'guided_decoding_guide_type' is missing/,
    ],
    [
      [IDS, LENGTH, tensor('guided_decoding_guide_type', 'BYTES', ['regex'])],
      /'guided_decoding_guide' is missing; the type regex needs one/,
    ],
    // A row without elements costs the client nothing.
    [
      [IDS, LENGTH, tensor('known_output_ids', 'INT32', [], [1e9, 0])],
      /'known_output_ids' has 1000000000 rows; the request generates 1 sequence/,
    ],
    [
      [IDS, LENGTH, tensor('known_output_ids', 'INT32', [5, -1, 7], [1, 3])],
      /holds 7 at \[0, 2\]; -1 is expected/,
    ],
    [
      [IDS, LENGTH, tensor('prompt_embedding_table', 'FP32', [], [5e9, 0])],
      /has 5000000000 rows; at most 65536/,
    ],
    [[IDS, LENGTH, tensor('draft_logits', 'FP32', [], [1e6, 0])], /has 1000000 rows; at most 65536/],
    [[IDS, LENGTH, tensor('prompt_vocab_size', 'INT32', [-1])], /'prompt_vocab_size' is -1/],
    [[IDS, LENGTH, tensor('pad_id', 'INT32', [-2])], /'pad_id' is -2; a whole number from -1 is expected/],
    [[IDS, LENGTH, tensor('early_stopping', 'INT32', [-1])], /'early_stopping' is -1/],
    [
      [IDS, LENGTH, tensor('len_penalty', 'FP32', [1e30])],
      /len_penalty is .*must be a number from -100 to 100/,
    ],
    [[IDS, LENGTH, tensor('input_id', 'INT32', [1])], /unexpected inference input 'input_id'/],
  ] as const)('that are wrong are refused by name (%#)', async (inputs, message) => {
    expect(await errorOf(inputs as readonly Tensor[])).toEqual([400, expect.stringMatching(message)]);
  });

  it('take lists of words that are long, and refuse longer ones by their number', async () => {
    const lists = (words: number, places = words) => {
      const offsets = Array.from({ length: places }, (_, i) => (i < words ? i + 1 : -1));
      return [...Array.from({ length: places }, (_, i) => 300 + (i % 20)), ...offsets];
    };
    for (const name of ['stop_words_list', 'bad_words_list', 'dry_sequence_breakers']) {
      const long = tensor(name, 'INT32', lists(1025), [1, 2, 1025]);
      expect(await errorOf([IDS, LENGTH, long])).toEqual([
        400,
        `'${name}' has 1025 words; at most 1024 are taken`,
      ]);
      const wide = tensor(name, 'INT32', lists(1, 32_769), [1, 2, 32_769]);
      expect((await errorOf([IDS, LENGTH, wide]))[1]).toBe(
        `'${name}' has 32769 places; at most 32768 are taken`,
      );
    }
    const most = tensor('stop_words_list', 'INT32', lists(1024), [1, 2, 1024]);
    expect((await answer([IDS, LENGTH, most])).output_ids!.shape[2]).toBeGreaterThan(5);
  });

  it('take true and false as numbers for early_stopping alone', async () => {
    expect((await answer([IDS, LENGTH], { parameters: { early_stopping: true } })).output_ids).toBeDefined();
    expect((await errorOf([IDS, LENGTH], { parameters: { top_k: true } }))[1]).toMatch(/'top_k' is true/);
  });

  it('are refused for misspelt parameters and outputs, and for adapters that there are not', async () => {
    expect(await errorOf([IDS, LENGTH], { parameters: { lora_nam: 'a' } })).toEqual([
      400,
      "'lora_nam' is no parameter that model 'llm' takes; did you mean 'lora_name'?",
    ]);
    expect(await errorOf([IDS, LENGTH], { parameters: { lora_name: 'a' } })).toEqual([
      404,
      "model 'llm' has no LoRA adapter 'a'",
    ]);
    expect((await errorOf([IDS, LENGTH], { outputs: [{ name: 'output_id' }] }))[0]).toBe(400);
  });
});
