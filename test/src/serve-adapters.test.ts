import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Skein } from 'skein';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Random } from '../../tools/support/random.js';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { FakeHub } from '../support/fake-hub.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { postJson } from '../support/post-json.js';
import { draws } from '../support/scale.js';
import { type SkeinProcess, startServer, testCacheDir } from './support/skein-process.js';
import { startedServers } from './support/started-servers.js';
import { warmCli } from './support/warm-cli.js';

const fixture = (name: string) => fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url));
const NAMES = ['lora-plain', 'lora-patterns', 'lora-rslora'] as const;
const PROMPTS = ['ab', 'once upon', 'x'];
const TOKENS = 12;
const model = tinyModelPath('gqa');
const folder = temporaryFolder('skein-serve-adapters');
const adapterFolder = join(folder, 'adapters');
const started = startedServers();
const runCli = warmCli();

/** Greedy answers by each adapter, and by none (''), as the library gives them. */
const expected = new Map<string, string>();
const keyOf = (adapter: string, prompt: string) => `${adapter} ${prompt}`;

beforeAll(async () => {
  mkdirSync(adapterFolder);
  for (const name of [...NAMES, 'lora-gpt2'])
    cpSync(fixture(name), join(adapterFolder, name), { recursive: true });
  symlinkSync(fixture('lora-plain'), join(adapterFolder, 'outside'));
  writeFileSync(join(folder, 'secret'), 'not told');
  const adapters = Object.fromEntries(NAMES.map((name) => [name, fixture(name)]));
  const skein = await Skein.load({ model, weights: 'f32', cacheDir: testCacheDir, adapters });
  for (const adapter of ['', ...NAMES]) {
    for (const prompt of PROMPTS) {
      const named = adapter === '' ? {} : { adapter };
      const request = { prompt, maxTokens: TOKENS, temperature: 0, ignoreEos: true, ...named };
      expected.set(keyOf(adapter, prompt), (await skein.complete(request)).text);
    }
  }
  await skein.close();
  expect(new Set(expected.values()).size).toBe(expected.size);
});

const FLAGS = ['--model', `base=${model}`, '--weights', 'f32', '--kv-cache-tokens', '4096'];
const AT_RUN_TIME = ['--allow-runtime-lora', '--lora-dir', adapterFolder];
const given = (names: readonly string[] = NAMES) =>
  names.flatMap((name) => ['--lora', `${name}=${fixture(name)}`]);

/** Posts to a route, and reads the answer's JSON. */
async function post(server: SkeinProcess, path: string, body: object) {
  const response = await postJson(`${server.url}${path}`, body);
  // biome-ignore lint/suspicious/noExplicitAny: answers are what the tests judge
  return { status: response.status, body: (await response.json()) as any };
}

function ask(server: SkeinProcess, name: string, prompt: string, fields: object = {}) {
  const body = { model: name, prompt, max_tokens: TOKENS, temperature: 0, ignore_eos: true, ...fields };
  return post(server, '/v1/completions', body);
}
const infer = (server: SkeinProcess, lora_name: unknown) =>
  post(server, '/v2/models/base/infer', tensorsOf('ab', { lora_name }));
const textBy = async (server: SkeinProcess, name: string, prompt: string) =>
  (await ask(server, name, prompt)).body.choices?.[0]?.text as string | undefined;

// biome-ignore lint/suspicious/noExplicitAny: answers are what the tests judge
const get = async (server: SkeinProcess, path: string): Promise<any> =>
  (await fetch(`${server.url}${path}`)).json();

async function change(server: SkeinProcess, what: 'load' | 'unload', body: object, headers = {}) {
  const response = await postJson(`${server.url}/v1/${what}_lora_adapter`, body, { headers });
  const text = await response.text();
  return { status: response.status, text, error: text.startsWith('{') ? JSON.parse(text).error : null };
}
const load = (server: SkeinProcess, lora_name: string, lora_path: string, more: object = {}) =>
  change(server, 'load', { lora_name, lora_path, ...more });
const unload = (server: SkeinProcess, lora_name: string) => change(server, 'unload', { lora_name });

const metrics = async (server: SkeinProcess) => (await fetch(`${server.url}/metrics`)).text();

describe('a server with adapters of its command line', () => {
  let server: SkeinProcess;
  beforeAll(async () => {
    server = await startServer([...FLAGS, ...given()]);
  });
  afterAll(async () => {
    expect((await server.stop()).code).toBe(0);
  });

  it('says so at the start, and lists each as a model with its parent', async () => {
    expect(server.output().stdout).toContain(`with the LoRA adapters ${NAMES.join(', ')}`);
    const { data } = await get(server, '/v1/models');
    expect(data.map(({ id, root, parent }: Record<string, string>) => ({ id, root, parent }))).toEqual([
      { id: 'base', root: 'base', parent: null },
      ...NAMES.map((id) => ({ id, root: 'base', parent: 'base' })),
    ]);
    expect(await get(server, '/v1/models/lora-rslora')).toEqual(data[3]);
  });

  it('answers by each as the library does, all at once, by every route', async () => {
    const jobs = ['base', ...NAMES].flatMap((name) => PROMPTS.map((prompt) => ({ name, prompt })));
    const answers = await Promise.all(
      [...jobs, ...jobs].map(async ({ name, prompt }) => ({
        name,
        prompt,
        ...(await ask(server, name, prompt)).body,
      })),
    );
    const prints = new Map<string, string>();
    for (const { name, prompt, choices, model: said, system_fingerprint } of answers) {
      expect(choices[0].text).toBe(expected.get(keyOf(name === 'base' ? '' : name, prompt)));
      expect(said).toBe(name);
      prints.set(name, system_fingerprint);
    }
    expect(new Set(prints.values()).size).toBe(1 + NAMES.length);

    const messages = [{ role: 'user', content: 'ab' }];
    const chat = (name: string) =>
      post(server, '/v1/chat/completions', { model: name, messages, max_tokens: 8, temperature: 0 });
    const texts = await Promise.all(
      ['base', ...NAMES].map(async (name) => (await chat(name)).body.choices[0].message.content),
    );
    expect(new Set(texts).size).toBe(texts.length);
    const { outputs } = (await infer(server, 'lora-plain')).body;
    expect(outputs[0].data[0]).toBe(expected.get(keyOf('lora-plain', 'ab')));
  });

  it('refuses unknown ones by name in every protocol', async () => {
    const { status, body } = await ask(server, 'lora-nope', 'ab');
    expect([status, body.error.code]).toEqual([404, 'model_not_found']);
    expect(body.error.message).toContain("'base', 'lora-plain', 'lora-patterns', 'lora-rslora'");
    expect(await infer(server, 'nope')).toEqual({
      status: 404,
      body: { error: "model 'base' has no LoRA adapter 'nope'" },
    });
    expect((await infer(server, 1)).status).toBe(400);
  });

  it('lets nobody load or unload any', async () => {
    for (const answer of [await load(server, 'x', 'lora-plain'), await unload(server, 'lora-plain')]) {
      expect([answer.status, answer.error.code]).toEqual([403, 'runtime_lora_not_allowed']);
    }
  });

  it("tells vLLM's metric, and counts requests by the base", async () => {
    let isSeen = false;
    const asking = (async () => {
      while (!isSeen) expect((await ask(server, 'lora-rslora', 'x', { max_tokens: 200 })).status).toBe(200);
    })();
    const running = async () => /running_lora_adapters="([^"]*)"/.exec(await metrics(server))![1];
    await expect.poll(running).toBe('lora-rslora');
    isSeen = true;
    await asking;
    const text = await metrics(server);
    expect(text).toMatch(
      /^vllm:lora_requests_info\{max_lora="\d+",running_lora_adapters="",waiting_lora_adapters=""\} \d/m,
    );
    expect(text).toContain('skein:lora_adapters{model_name="base",engine="0"} 3');
    expect(text).not.toMatch(/model_name="lora/);
  });
});

describe('an engine in a process of its own, with room for one adapter', () => {
  let server: SkeinProcess;
  beforeAll(async () => {
    server = await startServer([...FLAGS, ...given(), '--max-loras', '1', '--isolate']);
  });
  afterAll(() => server.stop());

  it('tells routers which adapters wait for it', async () => {
    let isSeen = false;
    const asking = NAMES.map(async (name) => {
      while (!isSeen) expect((await ask(server, name, 'x', { max_tokens: 200 })).status).toBe(200);
    });
    const inFlight = async () => {
      const text = await metrics(server);
      const [, running, waiting] = /running_lora_adapters="(.*)",waiting_lora_adapters="(.*)"/.exec(text)!;
      const numbers = ['running', 'waiting'].map(
        (what) => new RegExp(`vllm:num_requests_${what}\\{.*\\} (\\d+)`).exec(text)![1],
      );
      return [running!.split(',').length, waiting!.split(',').length, ...numbers];
    };
    try {
      await expect.poll(inFlight).toEqual([1, 2, '1', '2']);
    } finally {
      isSeen = true;
      await Promise.all(asking);
    }
  });

  it('gets the weights again once it was started anew', async () => {
    const { pid } = (await get(server, '/health')).models?.base ?? (await get(server, '/health'));
    expect(await textBy(server, 'lora-rslora', 'x')).toBe(expected.get(keyOf('lora-rslora', 'x')));
    process.kill(pid, 'SIGKILL');
    const answerOf = async (): Promise<string | undefined> =>
      (await textBy(server, 'lora-rslora', 'x')) ?? answerOf();
    expect(await answerOf()).toBe(expected.get(keyOf('lora-rslora', 'x')));
    expect(await textBy(server, 'lora-plain', 'x')).toBe(expected.get(keyOf('lora-plain', 'x')));
  });
});

/** A request of tensors for a greedy answer. */
function tensorsOf(text: string, parameters: object) {
  const one = (name: string, datatype: string, value: unknown) => ({
    name,
    datatype,
    shape: [1],
    data: [value],
  });
  return {
    parameters,
    inputs: [
      one('text_input', 'BYTES', text),
      one('max_tokens', 'INT32', TOKENS),
      one('temperature', 'FP32', 0),
    ],
  };
}

describe('a server whose clients load adapters', () => {
  let server: SkeinProcess;
  beforeAll(async () => {
    const limits = ['--max-loras', '2', '--lora-cache-bytes', '600000'];
    server = await startServer([...FLAGS, ...AT_RUN_TIME, ...given(['lora-plain']), ...limits]);
  });
  const loaded = async (): Promise<{ id: string; parent: string }[]> =>
    (await get(server, '/v1/models')).data.slice(2);
  afterEach(async () => {
    for (const { id } of await loaded()) expect((await unload(server, id)).status).toBe(200);
  });
  afterAll(async () => {
    expect((await server.stop()).code).toBe(0);
  });

  it('loads, replaces and unloads them while others ask: each answer is that of its adapter', async () => {
    const random = new Random(7);
    let isOver = false;
    const wrong: unknown[] = [];
    let answered = 0;
    const asks = Array.from({ length: 5 }, async () => {
      while (!isOver) {
        const name = random.below(3) === 0 ? 'lora-plain' : random.below(2) === 0 ? 'base' : 'changing';
        const prompt = PROMPTS[random.below(PROMPTS.length)]!;
        const { status, body } = await ask(server, name, prompt);
        const right = name === 'changing' ? ['lora-patterns', 'lora-rslora'] : [name === 'base' ? '' : name];
        const texts = right.map((one) => expected.get(keyOf(one, prompt)));
        if (status === 200 && texts.includes(body.choices[0].text)) answered++;
        else if (!(status === 404 && name === 'changing')) wrong.push({ name, prompt, status, body });
      }
    });
    for (let i = 0; i < draws(3); i++) {
      expect((await load(server, 'changing', 'lora-patterns')).text).toBe(
        "Success: LoRA adapter 'changing' added successfully.",
      );
      expect((await load(server, 'changing', 'lora-rslora', { load_inplace: true })).status).toBe(200);
      expect(await textBy(server, 'changing', 'x')).toBe(expected.get(keyOf('lora-rslora', 'x')));
      expect((await unload(server, 'changing')).text).toBe(
        "Success: LoRA adapter 'changing' removed successfully.",
      );
      expect((await unload(server, 'changing')).status).toBe(404);
    }
    isOver = true;
    await Promise.all(asks);
    expect(wrong).toEqual([]);
    expect(answered).toBeGreaterThan(0);
  });

  it('refuses what is outside of the folder, no adapter, or a name that is taken, without words of its own paths', async () => {
    const refusal = async (name: string, path: string, more?: object) => {
      const { status, error } = await load(server, name, path, more);
      expect(error.message.replaceAll(path, '')).not.toContain(folder);
      return [status, error.code];
    };
    const outside = [403, 'lora_path_not_allowed'];
    for (const path of [
      '../secret',
      join(folder, 'secret'),
      'outside',
      'outside/none',
      'outside/adapter_model.safetensors/none',
      '.',
      '..',
      adapterFolder,
      'lora-plain/../..',
      '/etc',
    ]) {
      expect(await refusal('x', path), path).toEqual(outside);
    }
    for (const path of ['nowhere', 'lora-plain/\0', '%2e%2e/secret'])
      expect(await refusal('x', path), path).toEqual([404, 'lora_path_not_found']);
    expect(await refusal('x', 'lora-gpt2')).toEqual([400, 'invalid_lora']);
    expect(await refusal('x', 'lora-plain/adapter_config.json')).toEqual([400, 'invalid_lora']);
    expect(await refusal('base', 'lora-plain')).toEqual([400, 'lora_name_taken']);
    expect(await refusal('lora-plain', 'lora-plain')).toEqual([400, 'lora_name_taken']);
    expect(await refusal('base', 'lora-plain', { load_inplace: true })).toEqual([400, 'lora_name_taken']);
    expect(await refusal('', 'lora-plain')).toEqual([400, expect.anything()]);
    expect(await refusal('x'.repeat(201), 'lora-plain')).toEqual([400, expect.anything()]);
    const many = Array.from({ length: 30 }, () => load(server, 'once', 'lora-rslora'));
    const statuses = (await Promise.all(many)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.filter((status) => status === 400)).toHaveLength(29);
    expect(
      (await load(server, 'there', join(adapterFolder, 'lora-rslora'), { base_model_name: 'base' })).status,
    ).toBe(200);
    expect((await loaded()).map(({ id }) => id)).toEqual(['once', 'there']);
  });

  it("speaks vLLM's words: of names that are taken, of names of models that it does not know, and of weights that it has not", async () => {
    for (const [i, base_model_name] of ['', 'HuggingFaceTB/SmolLM2-135M', null, 'base'].entries()) {
      const answer = await load(server, `a${i}`, 'lora-plain', { base_model_name, is_3d_lora_weight: false });
      expect(answer.status, answer.text).toBe(200);
    }
    expect((await loaded()).map(({ parent }) => parent)).toEqual(Array(4).fill('base'));
    expect((await load(server, 'a0', 'lora-plain')).error).toEqual({
      message:
        "The lora adapter 'a0' has already been loaded. If you want to load the adapter in place, set 'load_inplace' to True.",
      type: 'InvalidUserInput',
      param: 'lora_name',
      code: 'lora_name_taken',
    });
    expect(await change(server, 'unload', { lora_name: 'nope' })).toMatchObject({
      status: 404,
      error: {
        message: "The lora adapter 'nope' cannot be found.",
        type: 'NotFoundError',
        code: 'lora_not_found',
      },
    });
    const wide = await load(server, 'b', 'lora-plain', { is_3d_lora_weight: true });
    expect([wide.status, wide.error.param]).toEqual([400, 'is_3d_lora_weight']);
    expect((await load(server, 'b', 'lora-plain', { base_model_name: 'a0' })).error.message).toBe(
      "The model 'a0' takes no LoRA adapters.",
    );
    const twice = [load(server, 'c', 'lora-plain'), load(server, 'c', 'lora-plain')];
    const [late] = (await Promise.all(twice)).filter(({ status }) => status !== 200);
    expect(late!.error).toMatchObject({ code: 'lora_name_taken' });
    expect(late!.error.message).toMatch(/^The lora adapter 'c' (is being|has already been) loaded/);
  });

  it('loads no more than fit at once, so that all that are loaded can be asked at once', async () => {
    const names: string[] = [];
    for (;;) {
      const name = `n${names.length}`;
      const { status, error } = await load(server, name, NAMES[names.length % NAMES.length]!);
      if (status === 200) names.push(name);
      else {
        expect([status, error.code, error.param]).toEqual([400, 'lora_full', null]);
        expect(error.message).toMatch(
          / it takes [\d.]+ MB, and others [\d.]+ of the [\d.]+ MB that all may take together \(--lora-cache-bytes\)\.$/,
        );
        break;
      }
    }
    expect(names.length).toBeGreaterThan(3);
    const answers = await Promise.all(
      [...names, ...names].map((name) => ask(server, name, 'x', { max_tokens: 100 })),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    const texts = await Promise.all(names.map((name) => textBy(server, name, 'x')));
    expect(texts).toEqual(names.map((_, i) => expected.get(keyOf(NAMES[i % NAMES.length]!, 'x'))));
  });

  it('takes no names that cannot be told in a line, and no files that are links to elsewhere', async () => {
    for (const name of ['a\nb', 'a\0', '\u001b[31m', 'a,b', ' ', ' a', '\u202eabc', '\ud800', '']) {
      const { status, error } = await load(server, name, 'lora-plain');
      expect([status, error.param], JSON.stringify(name)).toEqual([400, 'lora_name']);
    }
    expect((await load(server, 'org/名前 v2', 'lora-plain')).status).toBe(200);
    const escaping = join(adapterFolder, 'escaping');
    mkdirSync(escaping);
    symlinkSync(
      join(fixture('lora-plain'), 'adapter_model.safetensors'),
      join(escaping, 'adapter_model.safetensors'),
    );
    cpSync(join(fixture('lora-plain'), 'adapter_config.json'), join(escaping, 'adapter_config.json'));
    expect((await load(server, 'x', 'escaping')).error.code).toBe('lora_path_not_allowed');
  });

  it('asks whose an adapter is, where there are several models', async () => {
    const two = ['--model', `other=${tinyModelPath('gpt2')}`];
    const server = await started(startServer([...FLAGS, ...two, ...AT_RUN_TIME]));
    const { status, error } = await load(server, 'x', 'lora-gpt2');
    expect([status, error.param]).toEqual([400, 'base_model_name']);
    expect(error.message).toBe("'base_model_name' is missing: adapters may be of 'base', 'other'.");
    expect((await load(server, 'x', 'lora-gpt2', { base_model_name: 'other' })).status).toBe(200);
    expect((await load(server, 'x', 'lora-gpt2', { load_inplace: true })).status).toBe(200);
    const unknown = await load(server, 'y', 'lora-gpt2', { base_model_name: 'nope' });
    expect([unknown.status, unknown.error.param]).toEqual([404, 'base_model_name']);
    expect(unknown.error.message).toBe(
      "The model 'nope' does not exist; adapters may be of 'base', 'other'.",
    );
    const moved = await load(server, 'x', 'lora-plain', { base_model_name: 'base', load_inplace: true });
    expect([moved.status, moved.error.message]).toEqual([
      400,
      "'lora_name' is 'x', an adapter of the model 'other', which load_inplace cannot replace by one of another model.",
    ]);
    expect((await ask(server, 'x', 'ab')).status).toBe(200);
    // Of loads of one name for two models at once, one is right.
    const both = await Promise.all([
      load(server, 'y', 'lora-plain', { base_model_name: 'base' }),
      load(server, 'y', 'lora-gpt2', { base_model_name: 'other' }),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual([200, 400]);
    const named = (await get(server, '/v1/models')).data.filter(({ id }: { id: string }) => id === 'y');
    expect(named).toHaveLength(1);
  });

  it('lets admins alone do it, where there are several keys', async () => {
    const keys = join(folder, 'keys.json');
    writeFileSync(
      keys,
      JSON.stringify([
        { name: 'boss', key: 'kb', admin: true },
        { name: 'other', key: 'ko' },
      ]),
    );
    const server = await started(startServer([...FLAGS, ...AT_RUN_TIME, '--api-key-file', keys]));
    const body = { lora_name: 'x', lora_path: 'lora-plain' };
    const by = (key: string) => change(server, 'load', body, { authorization: `Bearer ${key}` });
    expect([(await by('none')).status, (await by('ko')).status, (await by('kb')).status]).toEqual([
      401, 403, 200,
    ]);
  });
});

/** Arguments of one greedy answer as JSON. */
const RUN = [
  ...['run', '-m', model, '--weights', 'f32', '--raw'],
  ...['--temperature', '0', '--max-tokens', String(TOKENS), '--json'],
];

describe('an adapter', () => {
  it('comes from the hub by its name', async () => {
    const names = ['adapter_config.json', 'adapter_model.safetensors'];
    const files = names.map((name) => {
      const content = readFileSync(join(fixture('lora-plain'), name));
      return [name, { content, isLarge: name.endsWith('safetensors') }] as const;
    });
    const hub = await FakeHub.start('some-org/some-lora', new Map(files));
    const environment = { HF_ENDPOINT: hub.endpoint, HF_HOME: join(folder, 'hub') };
    const args = [...FLAGS, '--lora', 'hub=some-org/some-lora'];
    const server = await started(startServer(args, environment));
    expect(await textBy(server, 'hub', 'x')).toBe(expected.get(keyOf('lora-plain', 'x')));
    await hub.close();
    // What is complete in the cache needs no hub.
    const more = { ...environment, SKEIN_CACHE_DIR: testCacheDir };
    const again = await runCli([...RUN, '--adapter', 'hub=some-org/some-lora', 'x'], { environment: more });
    expect(expected.get(keyOf('lora-plain', 'x'))).toContain(JSON.parse(again.stdout).text.trim());
  });

  it('is that of skein run --adapter', async () => {
    const environment = { SKEIN_CACHE_DIR: testCacheDir };
    const run = async (...more: string[]) => runCli([...RUN, ...more, 'x'], { environment });
    const answer = JSON.parse((await run('--adapter', fixture('lora-plain'))).stdout);
    expect(answer.model).toBe('lora-plain');
    expect(expected.get(keyOf('lora-plain', 'x'))).toContain(answer.text.trim());
    expect((await run('--adapter', join(folder, 'nowhere'))).stderr).toMatch(
      /^skein: .*nowhere: no such folder\.$/m,
    );
    const usage = async (...more: string[]) => {
      const { code, stderr } = await run(...more);
      expect(code).toBe(2);
      return stderr;
    };
    expect(await usage('--adapter=')).toBe('skein: --adapter is empty; a path is expected, or NAME=PATH.\n');
    expect(await usage('--adapter', 'a', '--adapter', 'b')).toContain(
      '--adapter is given twice, as a and as b',
    );
    expect(await usage('--lora', 'a')).toBe("skein: Unknown option '--lora'; did you mean --adapter?\n");
    expect(await usage('--adapter', '{"nme":"a"}')).toContain(
      '--adapter has an unknown key "nme" in its JSON',
    );
    const remote = await run('--adapter', fixture('lora-plain'), '--url', 'http://127.0.0.1:1');
    expect([remote.code, remote.stderr]).toEqual([
      2,
      expect.stringContaining('--adapter is for a model that is loaded here'),
    ]);
  });

  it.each([
    ['--lora twice under a name', ['--lora', 'a=x', '--lora', 'a=y'], 'names two adapters a: x and y'],
    ["a model's own name", ['--lora', 'base=x'], 'The name base is given twice'],
    ['half of JSON', ['--lora', '{"name":"a"}'], '--lora has no "path" in its JSON'],
    ['a number of adapters', ['--max-cpu-loras', '3'], '--lora-cache-bytes is that limit'],
    [
      'adapters that are not wanted',
      ['--no-enable-lora', ...given(['lora-plain'])],
      'takes no LoRA adapters',
    ],
    [
      'an executor without',
      ['--executor', 'wasm', ...AT_RUN_TIME],
      'The executor wasm takes no LoRA adapters',
    ],
    [
      'an option of another server',
      ['--lora-bias'],
      "Unknown option '--lora-bias'; did you mean --lora-dir?",
    ],
    ['an option of nobody', ['--foobarbaz'], "Unknown option '--foobarbaz'; see skein serve --help.\n"],
    ['no folder', ['--allow-runtime-lora'], '--allow-runtime-lora needs --lora-dir'],
    ['a folder for nothing', ['--lora-dir', '/'], '--lora-dir does nothing without --allow-runtime-lora'],
    [
      'a folder that is not there',
      ['--allow-runtime-lora', '--lora-dir', '/nowhere'],
      'there is no such folder',
    ],
    [
      'two models',
      ['--model', `b=${model}`, '--lora', 'a=x'],
      'it is not clear whose the adapter a is, of base, b',
    ],
    [
      'a rank beyond the limit',
      [...given(['lora-plain']), '--max-lora-rank', '2'],
      'has rank 4; at most 2 is accepted (--max-lora-rank).',
    ],
    [
      'a file of one',
      ['--lora', `a=${fixture('lora-plain/adapter_config.json')}`],
      'the folder that holds it is',
    ],
  ])('is refused at the start: %s', async (_, args, why) => {
    const { code, stderr } = await runCli([
      'serve',
      '--port',
      '0',
      '--cache-dir',
      testCacheDir,
      ...FLAGS,
      ...args,
    ]);
    expect(code).not.toBe(0);
    expect(stderr).toContain(why);
  });
});

describe('a server of models of a repository too', () => {
  const repository = join(folder, 'models');
  const write = (name: string, files: Readonly<Record<string, string>>) => {
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(join(repository, name, '1'), { recursive: true });
      writeFileSync(join(repository, name, path), content);
    }
  };
  const IO =
    'input: [{name: X, data_type: TYPE_INT32, dims: [-1]}]\noutput: [{name: Y, data_type: TYPE_INT32, dims: [-1]}]\n';
  const echo = (requests: string) =>
    `export const execute = (${requests}) => requests.map(({ inputs: { X } }) => ({ outputs: { Y: X } }));`;
  const text = (parameters: Readonly<Record<string, string>>) =>
    `backend: skein\nparameters:\n${Object.entries(parameters)
      .map(([key, value]) => `  ${key}: {string_value: ${JSON.stringify(value)}}\n`)
      .join('')}`;
  write('squares', { 'config.yaml': IO, '1/model.mjs': echo('requests') });
  write('slow', {
    'config.yaml': IO,
    '1/model.mjs': `import { existsSync } from 'node:fs';
      while (!existsSync(${JSON.stringify(join(folder, 'gate'))})) await new Promise((resolve) => setTimeout(resolve, 2));
      ${echo('requests')}`,
  });
  write('lm', { 'config.yaml': text({ model, kvCacheTokens: '1024' }) });
  write('lm2', {
    'config.yaml': text({ model, kvCacheTokens: '1024', lora: `squares=${fixture('lora-plain')}` }),
  });
  const explicit = ['--model-repository', repository, '--model-control-mode', 'explicit'];
  const names = async (server: SkeinProcess) =>
    (await get(server, '/v1/models')).data.map(({ id }: { id: string }) => id);
  const loadModel = (server: SkeinProcess, name: string) =>
    post(server, `/v2/repository/models/${name}/load`, {}).catch(() => ({ status: 200, body: null }));
  const isReady = async (server: SkeinProcess, name: string) =>
    (await fetch(`${server.url}/v2/models/${name}/ready`)).status === 200;

  it.each(['squares', 'lm'])('does not start where an adapter has the name of a model: %s', async (name) => {
    const args = [...FLAGS, '--lora', `${name}=${fixture('lora-plain')}`, ...explicit, '--load-model', name];
    const { code, stderr } = await runCli(['serve', '--port', '0', '--cache-dir', testCacheDir, ...args]);
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(
        `failed to load '${name}', '${name}' is a LoRA adapter of the model 'base' already`,
      ),
    ]);
  });

  it('gives a name once, whoever comes first', async () => {
    const server = await started(startServer([...FLAGS, ...AT_RUN_TIME, ...explicit]));
    expect((await load(server, 'squares', 'lora-plain')).status).toBe(200);
    for (const name of ['squares', 'lm2']) {
      expect((await loadModel(server, name)).body).toEqual({
        error: `failed to load '${name}', 'squares' is a LoRA adapter of the model 'base' already`,
      });
      expect(await isReady(server, name)).toBe(false);
    }
    expect(await names(server)).toEqual(['base', 'squares']);
    expect((await unload(server, 'squares')).status).toBe(200);
    expect((await loadModel(server, 'squares')).status).toBe(200);
    const taken = { status: 400, error: { code: 'lora_name_taken', param: 'lora_name' } };
    expect(await load(server, 'squares', 'lora-plain')).toMatchObject(taken);
    expect(await load(server, 'squares', 'lora-plain', { load_inplace: true })).toMatchObject(taken);
    expect((await loadModel(server, 'lm2')).body.error).toContain(
      "'squares' is a name of another model already",
    );
    // One that is being loaded has its name already.
    const loading = loadModel(server, 'slow');
    const isLoading = async () => {
      const index = (await post(server, '/v2/repository/index', {})).body as {
        name: string;
        state?: string;
      }[];
      return index.find(({ name }) => name === 'slow')?.state;
    };
    await expect.poll(isLoading).toBe('LOADING');
    expect(await load(server, 'slow', 'lora-plain')).toMatchObject(taken);
    writeFileSync(join(folder, 'gate'), '');
    expect((await loading).status).toBe(200);
    // A model of texts that is loaded again keeps its names.
    expect((await loadModel(server, 'lm')).status).toBe(200);
    expect((await loadModel(server, 'lm')).status).toBe(200);
    expect(await names(server)).toEqual(['base', 'lm']);
  });
});
