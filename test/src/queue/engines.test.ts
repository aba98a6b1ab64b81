import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { QueueLab, until } from '../../../tools/support/queue/queue-lab.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { postJson } from '../../support/post-json.js';
import {
  cleanEnvironment,
  cliPath,
  type SkeinProcess,
  start,
  testCacheDir,
} from '../support/skein-process.js';
import { describeWithNats, testNats } from '../support/test-nats.js';

const CACHE = ['--cache-dir', testCacheDir];

describeWithNats('two engines of one model', () => {
  const folder = temporaryFolder('skein-engines');
  const weights = join(folder, 'weights');
  let lab: QueueLab;
  let gateway: SkeinProcess;
  let engines: string[];

  interface Completion {
    system_fingerprint: string;
    choices: { text: string }[];
  }
  const pinnedTo = (engine: string | undefined) =>
    engine === undefined ? {} : { headers: { 'x-skein-engine': engine } };
  const ask = (path: string, body: object, engine?: string) =>
    postJson(`${gateway.url}${path}`, body, pinnedTo(engine));
  const PROMPT = { seed: 3, temperature: 1, max_tokens: 12 };
  const complete = async (engine?: string): Promise<Completion> => {
    const answer = await ask('/v1/completions', { model: 'gosling', prompt: 'Once', ...PROMPT }, engine);
    expect(answer.status).toBe(200);
    return (await answer.json()) as Completion;
  };
  const generate = (rest: string, engine: string) =>
    ask(`/v2/models/gosling/${rest}`, { text_input: 'Once', parameters: PROMPT }, engine);
  /** Numbers of a family of the metrics, by the engines' fingerprints. */
  const metric = async (family: string): Promise<Record<string, number>> => {
    const text = await (await fetch(`${gateway.url}/metrics`)).text();
    const lines = text.matchAll(new RegExp(`^${family}\\{.*system_fingerprint="(\\w+)"\\} (\\d+)$`, 'gm'));
    return Object.fromEntries(Array.from(lines, ([, engine, value]) => [engine!, Number(value)]));
  };
  const weigh = async (...lines: string[]) => {
    writeFileSync(weights, `${lines.join('\n')}\n`);
    const before = gateway.output().stderr.length;
    gateway.child.kill('SIGHUP');
    await until('the weights', () => gateway.output().stderr.slice(before).includes('pool weights'));
    return gateway.output().stderr.slice(before);
  };

  beforeAll(async () => {
    lab = await QueueLab.start({ nats: testNats!, environment: cleanEnvironment({}) });
    const worker = [...CACHE, '--threads', '1', '--kv-cache-tokens', '1024'];
    await lab.startWorker([...worker, '--weights', 'f32']);
    await lab.startWorker([...worker, '--weights', 'bf16']);
    writeFileSync(weights, '# none yet\n');
    const options = ['--pool-weights', `@${weights}`, '--log-level', 'info', '--worker-wait-seconds', '2'];
    gateway = await start(
      [cliPath, 'gateway', '--port', '0', '--nats', lab.nats.url, ...options, ...CACHE],
      {},
    );
    await until('both engines', async () => {
      const { data } = (await (await fetch(`${gateway.url}/v1/models`)).json()) as {
        data: { system_fingerprints?: string[] }[];
      };
      engines = data[0]?.system_fingerprints ?? [];
      return engines.length === 2;
    });
  });
  afterAll(async () => {
    await gateway?.stop();
    await lab?.close();
  });

  it('answer the requests that name them, in every protocol', async () => {
    const texts = new Set<string>();
    for (const engine of engines) {
      const [first, second] = [await complete(engine), await complete(engine)];
      expect([first.system_fingerprint, second.system_fingerprint]).toEqual([engine, engine]);
      const { text } = first.choices[0]!;
      expect(second.choices[0]!.text).toBe(text);
      texts.add(text);
      const { text_output: generated } = (await (await generate('generate', engine)).json()) as {
        text_output: string;
      };
      expect(generated).toBe(text);
    }
    expect(texts.size).toBe(2);
    const wrong = [
      await ask('/v1/completions', { model: 'gosling', prompt: 'Once' }, 'fp_none'),
      await generate('generate', 'fp_none'),
      await generate('generate_stream', 'fp_none'),
      await ask('/v1/responses', { model: 'gosling', input: 'Once', background: true }, 'fp_none'),
    ];
    for (const answer of wrong) {
      const text = await answer.text();
      expect([answer.status, text]).toEqual([400, expect.stringContaining('There is no engine fp_none')]);
      for (const engine of ['fp_none', ...engines]) expect(text).toContain(engine);
    }
  });

  it('have the requests that the weights of a file give them, which SIGHUP reads again', async () => {
    const [a, b] = engines as [string, string];
    expect(await metric('skein:queue_engine_weight')).toEqual({});
    expect(await weigh(`${a}=1 # the old one`, `${b}=3`)).toContain('pool weights read again');
    const before = await metric('skein:queue_engine_requests_total');
    for (let i = 0; i < 8; i++) await complete();
    expect(await metric('skein:queue_engine_weight')).toEqual({ [a]: 1, [b]: 3 });
    const after = await metric('skein:queue_engine_requests_total');
    expect([after[a]! - before[a]!, after[b]! - before[b]!]).toEqual([2, 6]);
    await weigh(`${b}=1`);
    for (let i = 0; i < 3; i++) expect((await complete()).system_fingerprint).toBe(b);
    // An engine that is withdrawn still answers requests that name it.
    expect((await complete(a)).system_fingerprint).toBe(a);
    expect(await weigh(`${b}=many`)).toContain('pool weights not changed');
    expect(await weigh(`${a}=0`)).toContain('has no weight above 0');
    expect(await metric('skein:queue_engine_weight')).toEqual({ [a]: 0, [b]: 1 });
    expect((await complete()).system_fingerprint).toBe(b);
  });

  it('have the requests that an admin gives them while the gateway runs, until the file is read again', async () => {
    const [a, b] = engines as [string, string];
    await weigh(`${b}=1`);
    const set = await postJson(`${gateway.url}/pool_weights`, { weights: { [a]: 1 } });
    expect([set.status, await set.json()]).toEqual([200, { object: 'pool_weights', weights: { [a]: 1 } }]);
    expect((await complete()).system_fingerprint).toBe(a);
    expect(await metric('skein:queue_engine_weight')).toEqual({ [a]: 1, [b]: 0 });
    await weigh(`${b}=1`);
    expect(await (await fetch(`${gateway.url}/pool_weights`)).json()).toMatchObject({ weights: { [b]: 1 } });
    expect((await complete()).system_fingerprint).toBe(b);
    await postJson(`${gateway.url}/pool_weights`, { weights: {} });
    expect(await metric('skein:queue_engine_weight')).toEqual({});
  });
});
