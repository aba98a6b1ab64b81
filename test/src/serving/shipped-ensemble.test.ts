import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tinyModelPath } from '../../../tools/support/test-engine.js';
import { repository } from '../../support/documents.js';
import { postJson } from '../../support/post-json.js';
import { type SkeinProcess, startServer } from '../support/skein-process.js';
import { readFrames } from '../support/toy-server.js';

let server: SkeinProcess;
beforeAll(async () => {
  const folders = ['--model-repository', join(repository, 'examples/ensemble')];
  const model = ['--model', `llm=${tinyModelPath('gqa')}`, '--max-beam-width', '2'];
  server = await startServer([
    ...model,
    ...folders,
    '--model-control-mode',
    'explicit',
    '--load-model',
    'ensemble',
  ]);
});
afterAll(() => server?.stop());

const post = (path: string, body: object) => postJson(`${server.url}/v2/${path}`, body);
const generate = (model: string, body: object) => post(`models/${model}/generate`, body);
const stream = (model: string, body: object) =>
  post(`models/${model}/generate_stream`, { ...body, stream: true });
const errorOf = async (response: Response) => [
  response.status,
  ((await response.json()) as { error: string }).error,
];
/** The whole answer, with one name in the place of either model's. */
const bytesOf = async (response: Response) =>
  `${response.status} ${response.headers.get('content-type')} ${await response.text()}`.replaceAll(
    /"model_name":"(?:llm|ensemble)"/g,
    '"model_name":"MODEL"',
  );
const PROMPT = { text_input: 'Once upon a time', max_tokens: 24 };
const ASKED: readonly object[] = [
  {},
  { temperature: 1.4, seed: 11 },
  { temperature: 1.4, seed: 12, top_k: 20, top_p: 0.9, repetition_penalty: 1.3 },
  { temperature: 2, seed: 13, stop_words: ['a', 'th'] },
  { bad_words: ['a', 'h'], min_length: 4 },
  { embedding_bias_words: ['e'], embedding_bias_weights: [6] },
  { num_return_sequences: 3, temperature: 1, seed: 5, return_log_probs: true },
  { return_log_probs: true, return_num_input_tokens: true, return_num_output_tokens: true },
  { temperature: 1, seed: 2, id: 'mine', max_tokens: 1 },
  { end_id: 101, pad_id: 3 },
  { guided_decoding_guide_type: 'regex', guided_decoding_guide: '[a-c]{4}' },
];

describe('the ensemble of tokenizer, engine and detokenizer', () => {
  it.each(ASKED.map((fields) => [JSON.stringify(fields), fields] as const))(
    'answers %s as the model itself does, byte for byte, at once and in pieces',
    async (_, fields) => {
      const asked = { ...PROMPT, ...fields };
      const whole = await bytesOf(await generate('llm', asked));
      expect(whole).toMatch(/^200 application\/json \{.*"text_output":/);
      expect(await bytesOf(await generate('ensemble', asked))).toBe(whole);
      const streamed = await bytesOf(await stream('llm', asked));
      expect(streamed).toMatch(/^200 text\/event-stream.* data: \{/);
      expect(await bytesOf(await stream('ensemble', asked))).toBe(streamed);
    },
  );

  it('is told as an ensemble at the start', () => {
    expect(server.output().stdout).toMatch(/^ {2}ensemble: version 1, an ensemble$/m);
  });

  it('tells in pieces what it tells at once', async () => {
    const asked = { ...PROMPT, temperature: 1.4, seed: 11 };
    const { data } = await readFrames(await stream('ensemble', asked));
    const pieces = data.map((text) => (JSON.parse(text) as { text_output: string }).text_output);
    expect(pieces.length).toBeGreaterThan(4);
    const { text_output: text } = (await (await generate('ensemble', asked)).json()) as {
      text_output: string;
    };
    expect(pieces.join('')).toBe(text);
  });

  it('takes beams as the model itself does', async () => {
    const asked = { ...PROMPT, max_tokens: 4, beam_width: 2, return_log_probs: true, id: 'b' };
    for (const ask of [generate, stream]) {
      const whole = await bytesOf(await ask('llm', asked));
      expect(whole).toMatch(/^200 .*"text_output":\["/);
      expect(await bytesOf(await ask('ensemble', asked))).toBe(whole);
    }
  });

  it('refuses what the model refuses, by the name of the step, and fields that nobody knows', async () => {
    expect(await errorOf(await generate('llm', { ...PROMPT, max_tokns: 4 }))).toEqual([
      400,
      "'max_tokns' is no field that model 'llm' takes; did you mean 'max_tokens'?",
    ]);
    expect(await errorOf(await generate('ensemble', { ...PROMPT, max_tokns: 4 }))).toEqual([
      400,
      "in ensemble 'ensemble', 'max_tokns' is no parameter that model 'tensorrt_llm' takes; did you mean 'max_tokens'?",
    ]);
    for (const [fields, said] of [
      [{ top_p: 3 }, /top_p/],
      [{ max_tokens: -1 }, /max_tokens|request_output_len/],
      [{ guided_decoding_guide_type: 'regex', guided_decoding_guide: '(' }, /guided_decoding_guide/],
      [{ text_input: 'a'.repeat(100_000) }, /max_model_len|context|tokens/],
      [{ embedding_bias_words: ['a'] }, /[Ee][a-zA-Z_]+/],
    ] as const) {
      for (const name of ['llm', 'ensemble'])
        expect(await errorOf(await generate(name, { ...PROMPT, ...fields }))).toEqual([
          400,
          expect.stringMatching(said),
        ]);
    }
    expect(await errorOf(await stream('ensemble', { ...PROMPT, top_p: 3 }))).toEqual([
      400,
      expect.stringMatching(/top_p/),
    ]);
    // generate gives one answer; what streams is for generate_stream.
    expect((await generate('llm', { ...PROMPT, stream: true })).status).toBe(400);
  });

  it('goes with its model, and comes back with it', async () => {
    expect((await post('repository/models/llm/unload', {})).status).toBe(200);
    expect(await errorOf(await generate('ensemble', PROMPT))).toEqual([
      404,
      expect.stringContaining("'ensemble'"),
    ]);
    const index = (await (await post('repository/index', {})).json()) as { name: string; reason: string }[];
    expect(index.find(({ name }) => name === 'preprocessing')).toMatchObject({
      reason: "'preprocessing' is a part of 'llm', which is not loaded",
    });
    expect((await post('repository/models/llm/load', {})).status).toBe(200);
    expect((await generate('ensemble', PROMPT)).status).toBe(200);
  });
});
