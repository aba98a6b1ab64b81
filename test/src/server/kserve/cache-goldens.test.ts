import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  CACHE_MODELS,
  CACHE_REQUESTS,
  cacheConfigOf,
  playCache,
} from '../../../../tools/reference/triton/cache-cases.mjs';
import { temporaryFolder } from '../../../support/fresh-folders.js';
import { type SkeinProcess, startServer } from '../../support/skein-process.js';

interface Played {
  model: string;
  answers: { name: string; failed?: true; outputs?: [string, number[], number[]][] }[];
  statistics: Record<string, number>;
  metrics: Record<string, number | boolean>;
}

const { models: goldens } = JSON.parse(
  readFileSync(new URL('../../../goldens/triton/cache.json', import.meta.url), 'utf8'),
) as { models: Played[] };

/** The model of record-cache.mjs in JavaScript. */
const CODE = `
let executions = 0;
export function execute(requests) {
  executions++;
  return requests.map(({ inputs: { X }, outputs }) => {
    if (X.data.some((value) => value < 0)) return { error: 'it was asked to fail' };
    const [rows, columns] = X.shape;
    const Y = Array.from({ length: rows }, (_, i) => [...X.data.slice(i * columns, (i + 1) * columns), executions]).flat();
    const all = { Y: { data: Y, shape: [rows, columns + 1] }, Z: { data: X.data.map((x) => 2 * x), shape: X.shape } };
    return { outputs: Object.fromEntries((outputs ?? ['Y', 'Z']).map((name) => [name, all[name]])) };
  });
}`;

const folder = temporaryFolder('skein-cache-goldens-');
const played = new Map<string, Played>();
let server: SkeinProcess;

beforeAll(async () => {
  for (const name of Object.keys(CACHE_MODELS)) {
    mkdirSync(join(folder, name, '1'), { recursive: true });
    writeFileSync(join(folder, name, 'config.pbtxt'), `backend: "module"\n${cacheConfigOf(name)}`);
    writeFileSync(join(folder, name, '1/model.mjs'), CODE);
  }
  const options = [
    '--model-control-mode',
    'explicit',
    '--load-model',
    '*',
    '--response-cache-bytes',
    '20000',
  ];
  server = await startServer(['--model-repository', folder, ...options]);
  for (const name of Object.keys(CACHE_MODELS)) {
    played.set(name, (await playCache(server.url, name, `${server.url}/metrics`)) as Played);
  }
});
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const goldenOf = (name: string) => goldens.find(({ model }) => model === name)!;

/** Requests of `cached` that this server answers otherwise, and why; with what it answers. */
const DIFFERENCES: Readonly<Record<string, { why: string; outputs?: Played['answers'][0]['outputs'] }>> = {
  'a parameter': {
    why: 'a model in JavaScript reads parameters, so that another answer may be right',
    outputs: [
      ['Y', [1, 3], [1, 2, 2]],
      ['Z', [1, 2], [2, 4]],
    ],
  },
  'one output': { why: 'it has what was asked for', outputs: [['Z', [1, 2], [2, 4]]] },
  'other shape': {
    why: 'rows of other sizes are another request',
    outputs: [
      ['Y', [2, 2], [1, 4, 2, 4]],
      ['Z', [2, 1], [2, 4]],
    ],
  },
  'other data': {
    why: 'it is the fifth execution here',
    outputs: [
      ['Y', [1, 3], [3, 4, 5]],
      ['Z', [1, 2], [6, 8]],
    ],
  },
  'fails again': { why: 'no failure is kept' },
};

it.each(CACHE_REQUESTS.map(({ name }) => name))(
  'takes a request with "%s" as Triton does, or says why not',
  (name) => {
    const golden = goldenOf('cached').answers.find((answer) => answer.name === name)!;
    const own = played.get('cached')!.answers.find((answer) => answer.name === name)!;
    const difference = DIFFERENCES[name];
    if (difference === undefined) expect(own).toEqual(golden);
    else {
      expect(own).not.toEqual(golden);
      expect(own).toEqual({
        name,
        ...(difference.outputs ? { outputs: difference.outputs } : { failed: true }),
      });
    }
  },
);

it('counts hits and misses as Triton does', () => {
  // Of twelve requests 3 could be found in its cache beyond 5 here, and one more fails twice.
  const { statistics, metrics } = goldenOf('cached');
  expect(statistics).toMatchObject({ success: 12, queue: 12, compute_infer: 3, cache_hit: 9, cache_miss: 3 });
  const own = played.get('cached')!;
  expect(own.statistics).toEqual({
    inference_count: 6,
    execution_count: 7,
    success: 10,
    fail: 2,
    queue: 10,
    compute_input: 5,
    compute_infer: 5,
    compute_output: 5,
    cache_hit: 5,
    cache_miss: 5,
  });
  expect(Object.keys(own.metrics)).toEqual(Object.keys(metrics));
  expect(own.metrics).toMatchObject({
    nv_cache_num_hits_per_model: 5,
    nv_cache_num_misses_per_model: 5,
    nv_inference_request_success: 10,
    nv_inference_count: 6,
  });
});

it('leaves models alone that want no cache', () => {
  const { answers, metrics } = played.get('plain')!;
  expect(answers).toEqual(goldenOf('plain').answers);
  expect(Object.keys(metrics)).toEqual(Object.keys(goldenOf('plain').metrics));
});

it('tells of itself, and forgets what is unloaded', async () => {
  const gauges = async () => {
    const text = await (await fetch(`${server.url}/metrics`)).text();
    return Object.fromEntries(
      [...text.matchAll(/^(nv_cache_\w+) (\S+)$/gm)].map(([, name, value]) => [name, Number(value)]),
    );
  };
  expect(await gauges()).toMatchObject({
    nv_cache_num_hits: 5,
    nv_cache_num_lookups: 12,
    nv_cache_num_misses: 7,
    nv_cache_num_evictions: 0,
    nv_cache_num_entries: 5,
  });
  const command = (what: string) =>
    fetch(`${server.url}/v2/repository/models/cached/${what}`, { method: 'POST' }).then(
      ({ status }) => status,
    );
  expect(await command('unload')).toBe(200);
  expect(await gauges()).toMatchObject({ nv_cache_num_entries: 0, nv_cache_util: 0 });
  expect(await command('load')).toBe(200);
  const again = (await playCache(server.url, 'cached', `${server.url}/metrics`)) as Played;
  expect(again.answers).toEqual(played.get('cached')!.answers);
});
