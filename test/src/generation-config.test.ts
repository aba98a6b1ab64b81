import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Skein } from 'skein';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { repository } from '../support/documents.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { postJson } from '../support/post-json.js';
import { type SkeinProcess, startServer } from './support/skein-process.js';
import { warmCli } from './support/warm-cli.js';

const runCli = warmCli();

const folder = temporaryFolder('skein-generation-config');
const model = join(folder, 'gosling');
const cacheDir = join(folder, 'cache');
const prompt = 'Once upon a time';
const greedy = { temperature: 0, repetition_penalty: 1.3, max_new_tokens: 7, top_p: 3, eos_token_id: [2, 0] };
const leftOut =
  'generation_config.json recommends top_p 3, which should be a number from 0 to 1; it is left out.';

beforeAll(() => {
  cpSync(join(repository, 'models/demo/gosling'), model, { recursive: true });
  writeFileSync(join(model, 'generation_config.json'), JSON.stringify(greedy));
});

/** Text of an answer. */
async function completed(server: SkeinProcess, path: string, body: object): Promise<string> {
  const response = await postJson(server.url + path, body);
  expect(response.status).toBe(200);
  const { choices, text_output } = (await response.json()) as {
    choices?: [{ text?: string; message?: { content: string } }];
    text_output?: string;
  };
  return text_output ?? choices![0].text ?? choices![0].message!.content;
}

describe('a server of a model with generation_config.json', () => {
  let server: SkeinProcess;
  beforeAll(async () => {
    server = await startServer(['--model', model, '--threads', '1']);
  });
  afterAll(() => server?.stop());
  const own = { prompt, max_tokens: 12 };

  it('draws by it where a request says nothing, and by the request where it does', async () => {
    const alike = await Promise.all(
      [1, 2].map((seed) => completed(server, '/v1/completions', { ...own, seed })),
    );
    expect(alike[1]).toBe(alike[0]);
    const said = { ...own, temperature: 0, repetition_penalty: 1.3 };
    expect(await completed(server, '/v1/completions', said)).toBe(alike[0]);
    const other = { ...own, temperature: 1, seed: 1 };
    expect(await completed(server, '/v1/completions', other)).not.toBe(alike[0]);
    const response = await postJson(`${server.url}/v1/chat/completions`, {
      messages: [{ role: 'user', content: 'A story, please.' }],
      ignore_eos: true,
    });
    expect(await response.json()).toMatchObject({ usage: { completion_tokens: 7 } });
  });

  it('draws for tensors as they say', async () => {
    const told = await completed(server, '/v2/models/gosling/generate', {
      text_input: prompt,
      max_tokens: 12,
    });
    const plain = { ...own, temperature: 0, repetition_penalty: 1 };
    expect(told).toBe(await completed(server, '/v1/completions', plain));
    expect(told).not.toBe(await completed(server, '/v1/completions', own));
  });

  it('says what holds, and at the start what does not', async () => {
    expect(server.output().stderr).toContain(`skein: ${leftOut}\n`);
    const props = await (await fetch(`${server.url}/props`)).json();
    expect(props).toMatchObject({
      default_generation_settings: {
        params: { temperature: 0, repeat_penalty: 1.3, n_predict: 7, top_p: 1 },
      },
    });
    const { code, stdout } = await runCli(['info', model]);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^sampling {2,}temperature 0, repetition_penalty 1\.3, max_tokens 7 \(generation_config\.json\)$/m,
    );
    expect(stdout).toContain(leftOut);
  });
});

describe('a program with such a model', () => {
  const load = (options: object = {}) => Skein.load({ model, cacheDir, threads: 1, ...options });
  const recommended = { temperature: 0, repetitionPenalty: 1.3, maxTokens: 7 };

  it('draws by it, unless it is told not to', async () => {
    await using one = await load();
    expect(one.info).toMatchObject({ sampling: recommended, samplingLeftOut: [leftOut] });
    const [first, second] = await Promise.all(
      [1, 2].map((seed) => one.complete({ prompt, seed, ignoreEos: true })),
    );
    expect(second!.text).toBe(first!.text);
    expect(first!.tokens).toHaveLength(7);
    await using none = await load({ generationConfig: 'none' });
    expect(none.info).toMatchObject({ sampling: {}, samplingLeftOut: [] });
    const free = await none.complete({ prompt, seed: 1, maxTokens: 7, ignoreEos: true });
    expect(free.text).not.toBe(first!.text);
    await expect(load({ generationConfig: 'no' })).rejects.toThrow(/generationConfig/);
  });

  it('finds it for an engine that an earlier version has built', async () => {
    const [entry] = readdirSync(cacheDir).filter((name) => name.startsWith('gosling-'));
    const file = join(cacheDir, entry!, 'engine.json');
    const { sampling, ...older } = JSON.parse(readFileSync(file, 'utf8'));
    expect(sampling).toMatchObject({ max_tokens: { value: 7, from: 'generation_config.json' } });
    writeFileSync(file, JSON.stringify(older));
    await using one = await load();
    expect(one.info.sampling).toEqual(recommended);
  });

  it('has it in an engine directory', async () => {
    const engine = join(folder, 'engine');
    expect((await runCli(['build', model, '-o', engine])).code).toBe(0);
    await using one = await load({ model: engine });
    expect(one.info.sampling).toEqual(recommended);
  });
});
