import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  AdapterError,
  CheckpointError,
  InvalidRequestError,
  openAdapter,
  openEngine,
  ParameterError,
  Skein,
} from 'skein';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { firstWrongToken } from '../../tools/support/goldens.js';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { adapterGoldens } from '../support/lora-goldens.js';

const fixture = (name: string) => fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url));
const goldens = adapterGoldens('tiny-gqa');
const names = goldens.map(({ adapter }) => adapter);
const cacheDir = temporaryFolder('skein-adapters');
const options = { model: tinyModelPath('gqa'), weights: 'f32', threads: 1, cacheDir } as const;
const greedy = { temperature: 0, ignoreEos: true };

let skein: Skein;
beforeAll(async () => {
  const [first = ''] = names;
  skein = await Skein.load({ ...options, adapters: { [first]: fixture(first) }, maxLoras: 2 });
  for (const name of names.slice(1)) await skein.loadAdapter(name, fixture(name));
});
afterAll(() => skein?.close());

describe('a model with adapters', () => {
  it('answers by each as PEFT and transformers do, all in one batch, and without one as if there were none', async () => {
    const plain = await Skein.load(options);
    const jobs = goldens.flatMap(({ adapter, prompts }) => prompts.map((prompt) => ({ adapter, prompt })));
    const ask = (one: Skein, prompt: (typeof jobs)[number]['prompt'], adapter?: string) =>
      one.complete({ ...greedy, promptTokens: prompt.promptIds, maxTokens: prompt.tokens.length, adapter });
    const [adapted, beside, alone] = await Promise.all([
      Promise.all(jobs.map(({ adapter, prompt }) => ask(skein, prompt, adapter))),
      Promise.all(jobs.map(({ prompt }) => ask(skein, prompt))),
      Promise.all(jobs.map(({ prompt }) => ask(plain, prompt))),
    ]);
    for (const [i, { adapter, prompt }] of jobs.entries()) {
      expect(firstWrongToken(adapted[i]!.tokens, prompt), adapter).toBeNull();
    }
    expect(beside.map(({ tokens }) => tokens)).toEqual(alone.map(({ tokens }) => tokens));
    await plain.close();
  });

  it('draws several answers, beams and streams by one', async () => {
    const request = { prompt: 'Once', adapter: names[0], maxTokens: 12, ignoreEos: true, seed: 5 };
    const several = await skein.completeSeveral({ ...request, n: 3 });
    const first = await skein.complete(request);
    expect(several.map(({ text }) => text)).toContain(first.text);
    let streamed = '';
    for await (const { text } of skein.generate(request)) streamed += text;
    expect(streamed).toBe(first.text);
    expect(streamed).not.toBe((await skein.complete({ ...request, adapter: undefined })).text);
  });

  it('lists them, and forgets one while its requests go on', async () => {
    expect(skein.adapters.map(({ name }) => name)).toEqual(names);
    expect(skein.adapters[0]).toEqual({
      name: names[0],
      path: fixture(names[0]!),
      rank: 4,
      modules: expect.arrayContaining(['attn_q']),
      bytes: expect.any(Number),
      created: expect.any(Number),
    });
    await skein.loadAdapter('late', fixture(names[0]!));
    const request = { prompt: 'Once', adapter: 'late', maxTokens: 60, ignoreEos: true, temperature: 0 };
    const running = skein.complete(request);
    const same = skein.complete({ ...request, adapter: names[0] });
    skein.unloadAdapter('late');
    expect((await running).tokens).toEqual((await same).tokens);
    await expect(skein.complete(request)).rejects.toThrow(InvalidRequestError);
    await expect(skein.complete(request)).rejects.toThrow(
      "There is no adapter 'late'; the model has 'lora-plain',",
    );
  });

  it('takes other weights under a name where it is told to', async () => {
    const [one = '', other = ''] = names;
    const request = { prompt: 'Once', maxTokens: 20, ...greedy };
    const texts = await Promise.all(names.map((adapter) => skein.complete({ ...request, adapter })));
    await skein.loadAdapter('both', fixture(one));
    expect((await skein.complete({ ...request, adapter: 'both' })).text).toBe(texts[0]!.text);
    await expect(skein.loadAdapter('both', fixture(other))).rejects.toThrow(AdapterError);
    await skein.loadAdapter('both', fixture(other), { replace: true });
    expect((await skein.complete({ ...request, adapter: 'both' })).text).toBe(texts[1]!.text);
    skein.unloadAdapter('both');
  });

  it('refuses what is no adapter of it in one sentence, and goes on', async () => {
    const load = (path: string) =>
      skein.loadAdapter('x', path).then(
        () => new Error('it was loaded'),
        (reason: unknown) => reason as Error,
      );
    const gone = await load(join(cacheDir, 'nowhere'));
    expect(gone).toBeInstanceOf(CheckpointError);
    expect(gone.message).toMatch(/^The adapter 'x' cannot be loaded: .*nowhere: no such folder\.$/);
    expect((await load(fixture('lora-gpt2'))).message).toMatch(
      /^The adapter 'x' cannot be loaded: .*lora-gpt2/,
    );
    expect(skein.adapters.map(({ name }) => name)).toEqual(names);
    const goesOn = { prompt: 'a', maxTokens: 2, ignoreEos: true, adapter: names[0]! };
    expect((await skein.complete(goesOn)).tokens).toHaveLength(2);
  });
});

describe('Skein.load', () => {
  it('leaves nothing behind where an adapter cannot be loaded', async () => {
    const adapters = { good: fixture(names[0]!), bad: join(cacheDir, 'nowhere') };
    await expect(Skein.load({ ...options, adapters })).rejects.toThrow("The adapter 'bad' cannot be loaded:");
  });

  it('takes adapters only with the option for them, and says so', async () => {
    await expect(Skein.load({ ...options, adapters: ['a'] as never })).rejects.toThrow(ParameterError);
    const plain = await Skein.load(options);
    expect(plain.adapters).toEqual([]);
    await expect(plain.loadAdapter('a', fixture(names[0]!))).rejects.toThrow(AdapterError);
    await expect(plain.complete({ prompt: 'a', adapter: 'a' })).rejects.toThrow(
      'The model was loaded without LoRA adapters; Skein.load takes them with the option adapters',
    );
    await plain.close();
  });

  it('takes no more once it is closed, and no name that cannot be told in a line', async () => {
    const closed = await Skein.load({ ...options, adapters: {} });
    await expect(closed.loadAdapter('', fixture('lora-plain'))).rejects.toMatchObject({ reason: 'name' });
    await expect(closed.loadAdapter(undefined as never, fixture('lora-plain'))).rejects.toMatchObject({
      reason: 'name',
    });
    await closed.close();
    await expect(closed.loadAdapter('a', fixture('lora-plain'))).rejects.toThrow('The model is closed');
  });

  it('refuses arguments that are none, and options that are unknown', async () => {
    const path = fixture('lora-plain');
    const load = (...args: unknown[]) => skein.loadAdapter(...(args as [string, string]));
    await expect(load('a', 5)).rejects.toThrow(
      'loadAdapter needs a text that is not empty as its path; it was given 5.',
    );
    await expect(load('a', path, null)).rejects.toThrow(
      'loadAdapter needs an object of options, such as { replace: true }; it was given null.',
    );
    await expect(load('a', path, { inPlace: true })).rejects.toThrow(
      'loadAdapter has no option "inPlace"; did you mean replace?',
    );
    await expect(load('a', path, { replace: 1 })).rejects.toMatchObject({
      code: 'SKEIN_PARAMETER',
      field: 'replace',
      message: 'replace is 1; it must be true or false.',
    });
    await expect(load(names[0], path)).rejects.toThrow(
      "There is an adapter 'lora-plain' already; unload it first, or load the other with { replace: true }.",
    );
    await expect(load('a,b', path)).rejects.toThrow('"a,b" can be no name of an adapter; a text of 1 to 200');
    expect(skein.adapters.map(({ name }) => name)).toEqual(names);
  });

  it('opens an adapter for a host with limits alone', () => {
    const open = openAdapter as (...args: unknown[]) => unknown;
    const { config } = openEngine(skein.info.enginePath).manifest;
    const path = fixture('lora-plain');
    expect(open(path, config, { maxRank: 4 })).toMatchObject({ maxRank: 4 });
    expect(() => open(path, config)).toThrow(
      'openAdapter needs an object of options, such as { maxRank: 64 }; it was given nothing.',
    );
    expect(() => open(path, config, {})).toThrow(
      'openAdapter needs the limit maxRank, such as { maxRank: 64 }.',
    );
    expect(() => open(path, config, { maxRank: 4, maxByte: 1 })).toThrow('did you mean maxBytes?');
    expect(() => open(path, config, { maxRank: 0 })).toThrow(ParameterError);
    expect(() => open(path, { maxRank: 64 })).toThrow(/^openAdapter needs a model's configuration, such as/);
    expect(() => open(undefined, config, { maxRank: 4 })).toThrow(
      'openAdapter needs a text that is not empty as its path; it was given nothing.',
    );
    expect(() => open(path, config, { maxRank: 2 })).toThrow('has rank 4; at most 2 is accepted (maxRank).');
  });

  it('refuses an executor without adapters before anything is loaded', async () => {
    const why = 'The executor wasm takes no LoRA adapters; the native one does (executor).';
    for (const adapters of [{}, { a: fixture('lora-plain') }]) {
      await expect(Skein.load({ ...options, executor: 'wasm', adapters })).rejects.toThrow(why);
    }
    await (await Skein.load({ ...options, executor: 'wasm' })).close();
  });

  it('names the option by which an adapter is too large', async () => {
    const why = async (limits: object) => {
      const loading = Skein.load({ ...options, adapters: { a: fixture('lora-plain') }, ...limits });
      return loading.then(
        (loaded) => loaded.close().then(() => 'loaded'),
        (error: Error) => error.message.replace(/^.*adapter_model\.safetensors: /, ''),
      );
    };
    expect(await why({ maxLoraRank: 2 })).toMatch(/ has rank 4; at most 2 is accepted \(maxLoraRank\)\.$/);
    const rank = { maxLoraRank: 4 };
    expect(await why({ ...rank, loraCacheBytes: 32_000 })).toBe('loaded');
    expect(await why({ ...rank, loraCacheBytes: 16_000 })).toMatch(
      / it takes 0\.0287 MB, and others 0 of the 0\.0143 MB that all may take together \(loraCacheBytes\)\.$/,
    );
    expect(await why({ ...rank, loraCacheBytes: 4096 })).toMatch(
      /^loraCacheBytes is 4096; a page takes \d+ bytes/,
    );
  });

  it('bounds what all of them take, in its own names', async () => {
    const loraCacheBytes = 80_000; // some pages
    const bound = await Skein.load({ ...options, adapters: {}, loraCacheBytes, maxLoraRank: 4 });
    const { bytes } = await bound.loadAdapter('a', fixture('lora-plain'));
    const loads = Array.from({ length: Math.ceil(loraCacheBytes / bytes) }, (_, i) =>
      bound.loadAdapter(`b${i}`, fixture('lora-plain')),
    );
    const results = await Promise.allSettled(loads);
    const refused = results.flatMap((one) => (one.status === 'rejected' ? [one.reason as AdapterError] : []));
    expect(refused.length).toBeGreaterThan(0);
    expect(new Set(refused.map(({ reason }) => reason))).toEqual(new Set(['full']));
    expect(refused[0]!.message).toMatch(
      /^The adapter 'b\d+' cannot be loaded: it takes [\d.]+ MB, and others .*\(loraCacheBytes\)\.$/,
    );
    expect(bound.adapters.length * bytes).toBeLessThanOrEqual(loraCacheBytes);
    await bound.close();
  });
});
