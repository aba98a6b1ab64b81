import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { postJson } from '../support/post-json.js';
import { type SkeinProcess, startServer } from './support/skein-process.js';
import { testPython } from './support/test-python.js';

let server: SkeinProcess;
let client: OpenAI;
beforeAll(async () => {
  const models = [
    `chat=${tinyModelPath('gqa')}`,
    `vectors=${tinyModelPath('bert-mean')}`,
    `scores=${tinyModelPath('bert-score')}`,
  ];
  server = await startServer([...models.flatMap((model) => ['--model', model]), '--weights', 'f32']);
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
});
afterAll(async () => {
  const { code } = await server.stop();
  expect(code).toBe(0);
});

const TEXTS = ['the cat sat on the mat', 'a dog', 'what is flying?'];

describe('encoders beside a model that generates, in one server', () => {
  it('are listed, and said what they make at the start', async () => {
    const ids = (await client.models.list()).data.map(({ id }) => id);
    expect(ids).toEqual(['chat', 'vectors', 'scores']);
    expect(server.output().stdout).toMatch(/embeddings of 48 values, from texts of 64 tokens/);
  });

  it('answer the openai package of npm, which asks for base64 by itself', async () => {
    const plain = await client.embeddings.create({
      model: 'vectors',
      input: TEXTS,
      encoding_format: 'float',
    });
    const decoded = await client.embeddings.create({ model: 'vectors', input: TEXTS });
    expect(decoded.data).toEqual(plain.data);
    expect(decoded.data.map(({ embedding }) => embedding.length)).toEqual([48, 48, 48]);
    const refused = client.embeddings.create({ model: 'chat', input: 'x' });
    await expect(refused).rejects.toMatchObject({ status: 400, param: 'model' });
    const tooLong = client.embeddings.create({ model: 'vectors', input: 'the '.repeat(100) });
    await expect(tooLong).rejects.toMatchObject({ code: 'context_length_exceeded', param: 'input' });
  });

  it('give the same bits while the others are busy', async () => {
    const embed = async (text: string) =>
      (await client.embeddings.create({ model: 'vectors', input: text, encoding_format: 'float' })).data[0]!
        .embedding;
    const alone = [];
    for (const text of TEXTS) alone.push(await embed(text));
    const chat = client.completions.create({ model: 'chat', prompt: 'ab', max_tokens: 64 });
    const score = postJson(`${server.url}/v1/rerank`, {
      query: 'what?',
      documents: new Array(64).fill('the dog sat'),
    });
    expect(await Promise.all([...TEXTS, ...TEXTS].map(embed))).toEqual([...alone, ...alone]);
    expect((await chat).choices[0]!.finish_reason).toBeTruthy();
    expect((await score).status).toBe(200);
  });

  it('count their batches and tokens under their names', async () => {
    const text = await (await fetch(`${server.url}/metrics`)).text();
    expect(text).toMatch(/vllm:prompt_tokens_total\{[^}]*model_name="vectors"[^}]*\} [1-9]/);
    expect(text).toMatch(/vllm:iteration_tokens_total_count\{[^}]*model_name="scores"[^}]*\} [1-9]/);
  });

  it.skipIf(testPython === null)('answer the openai package of pip', async () => {
    const script = `
import json, sys
from openai import OpenAI, BadRequestError
client = OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
texts = json.loads(sys.argv[2])
decoded = client.embeddings.create(model="vectors", input=texts)
plain = client.embeddings.create(model="vectors", input=texts, encoding_format="float")
try:
    client.embeddings.create(model="vectors", input=texts, dimensions=3)
except BadRequestError as error:
    refused = error.param
print(json.dumps({
    "same": max(abs(a - b) for x, y in zip(decoded.data, plain.data) for a, b in zip(x.embedding, y.embedding)),
    "sizes": [len(one.embedding) for one in decoded.data],
    "usage": decoded.usage.prompt_tokens,
    "refused": refused,
}))
`;
    const run = promisify(execFile);
    const args = ['-c', script, `${server.url}/v1`, JSON.stringify(TEXTS)];
    const { stdout } = await run(testPython!, args);
    expect(JSON.parse(stdout)).toMatchObject({ sizes: [48, 48, 48], refused: 'dimensions' });
    expect(JSON.parse(stdout).same).toBeLessThan(1e-7);
  });
});
