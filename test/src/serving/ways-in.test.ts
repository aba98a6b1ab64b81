import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildEngine, type InferenceRequest } from 'skein';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { tinyModelPath } from '../../../tools/support/test-engine.js';
import { repository } from '../../support/documents.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { ManagerClient } from '../../support/manager-client.js';
import { postJson } from '../../support/post-json.js';
import { type SkeinProcess, startServer } from '../support/skein-process.js';

const folder = temporaryFolder('skein-ways-in');
const enginePath = join(folder, 'engine');
let server: SkeinProcess;
beforeAll(async () => {
  // A chat is the text of its message and nothing else, so that each way can ask the same.
  const model = join(folder, 'model');
  cpSync(tinyModelPath('gqa'), model, { recursive: true });
  const file = join(model, 'tokenizer_config.json');
  const told = { ...JSON.parse(readFileSync(file, 'utf8')), chat_template: '{{ messages[0].content }}' };
  writeFileSync(file, JSON.stringify(told));
  await buildEngine({ model, outputDirectory: enginePath, precision: 'f32' });
  const repositories = ['--model-repository', join(repository, 'examples/ensemble')];
  server = await startServer(['--model', `llm=${enginePath}`, ...repositories]);
});
afterAll(() => server?.stop());

const PROMPT = 'Once upon a time there was';
const LENGTH = 200;
const SAMPLING = { temperature: 1.3, top_k: 50, top_p: 0.95, seed: 77 };

async function jsonOf<T>(path: string, body: object): Promise<T> {
  const response = await postJson(`${server.url}${path}`, body);
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return JSON.parse(text) as T;
}

/** Text by OpenAI's chat. */
async function chat(): Promise<string> {
  const asked = {
    model: 'llm',
    messages: [{ role: 'user', content: PROMPT }],
    max_tokens: LENGTH,
    ignore_eos: true,
  };
  const { choices } = await jsonOf<{ choices: { message: { content: string } }[] }>('/v1/chat/completions', {
    ...asked,
    ...SAMPLING,
  });
  return choices[0]!.message.content;
}

/** Text by the generate extension. */
async function generated(model: string): Promise<string> {
  const asked = { text_input: PROMPT, max_tokens: LENGTH, end_id: -1, ...SAMPLING };
  return (await jsonOf<{ text_output: string }>(`/v2/models/${model}/generate`, asked)).text_output;
}

const tensor = (name: string, datatype: string, data: readonly unknown[], shape = [data.length]) => ({
  name,
  datatype,
  shape,
  data,
});

/** Tokens, and text, by raw tensors. */
async function inferred(tokens: readonly number[]): Promise<{ tokens: number[]; text: string }> {
  const inputs = [
    tensor('input_ids', 'INT32', tokens, [1, tokens.length]),
    tensor('request_output_len', 'INT32', [LENGTH]),
    tensor('end_id', 'INT32', [-1]),
    tensor('temperature', 'FP32', [SAMPLING.temperature]),
    tensor('runtime_top_k', 'INT32', [SAMPLING.top_k]),
    tensor('runtime_top_p', 'FP32', [SAMPLING.top_p]),
    tensor('random_seed', 'UINT64', [SAMPLING.seed]),
  ];
  const outputs = [{ name: 'output_ids' }, { name: 'text_output' }];
  const answer = await jsonOf<{ outputs: { data: unknown[] }[] }>('/v2/models/llm/infer', {
    inputs,
    outputs,
  });
  return {
    tokens: (answer.outputs[0]!.data as number[]).slice(tokens.length),
    text: answer.outputs[1]!.data[0] as string,
  };
}

/** Tokens by a GptManager that hosts the engine. */
async function managed(tokens: readonly number[]): Promise<number[]> {
  const client = new ManagerClient({
    enginePath,
    modelType: 'InflightFusedBatching',
    maxBeamWidth: 1,
    schedulerPolicy: 'GUARANTEED_NO_EVICT',
  });
  await client.manager.ready;
  const of = (data: Int32Array | Float32Array | BigUint64Array, shape = [1]) => ({ shape, data });
  const request: InferenceRequest = {
    requestId: 1n,
    inputs: {
      input_ids: of(Int32Array.from(tokens), [1, tokens.length]),
      request_output_len: of(Int32Array.of(LENGTH)),
      end_id: of(Int32Array.of(-1)),
      temperature: of(Float32Array.of(SAMPLING.temperature)),
      runtime_top_k: of(Int32Array.of(SAMPLING.top_k)),
      runtime_top_p: of(Float32Array.of(SAMPLING.top_p)),
      random_seed: of(BigUint64Array.of(BigInt(SAMPLING.seed))),
    },
  } as never;
  await client.submit(request);
  await client.manager.shutdown();
  expect(client.errors).toEqual([]);
  const [response] = client.responses.get(1n)!;
  expect(response!.error).toBe('');
  const output = response!.outputs.find(({ name }) => name === 'output_ids')!;
  return [...(output.data as Int32Array)].slice(tokens.length, tokens.length + LENGTH);
}

const largestBatch = async () => {
  const response = await fetch(`${server.url}/v2/models/llm/stats`);
  const { model_stats } = (await response.json()) as {
    model_stats: { batch_stats: { batch_size: number }[] }[];
  };
  return Math.max(0, ...model_stats[0]!.batch_stats.map(({ batch_size }) => batch_size));
};

describe('a prompt and a seed', () => {
  it('have the same answer by a chat, generate, an ensemble, raw tensors and a GptManager, in one batch', async () => {
    const { tokens } = await jsonOf<{ tokens: number[] }>('/tokenize', { model: 'llm', prompt: PROMPT });
    const alone = await managed(tokens);
    expect(alone).toHaveLength(LENGTH);
    // Requests that come together mostly are in the same iterations; they are asked again until they were.
    await vi.waitFor(async () => {
      const [chatted, whole, ensemble, raw] = await Promise.all([
        chat(),
        generated('llm'),
        generated('ensemble'),
        inferred(tokens),
      ]);
      expect(raw.tokens).toEqual(alone);
      expect([chatted, whole, ensemble]).toEqual([raw.text, raw.text, raw.text]);
      expect(raw.text.length).toBeGreaterThan(100);
      expect(await largestBatch()).toBeGreaterThanOrEqual(4);
    }, 120_000);
  });
});
