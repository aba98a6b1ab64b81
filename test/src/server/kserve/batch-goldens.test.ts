import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { configOf, filesOf, play, SERIES } from '../../../../tools/reference/triton/batch-cases.mjs';
import { temporaryFolder } from '../../../support/fresh-folders.js';
import { type SkeinProcess, startServer } from '../../support/skein-process.js';

interface Played {
  model: string;
  answers: unknown[];
  statistics: object;
}

const { models: goldens } = JSON.parse(
  readFileSync(new URL('../../../goldens/triton/batches.json', import.meta.url), 'utf8'),
) as { models: Played[] };

/** The models of write-batch-models.mjs in JavaScript. */
const code = ({ started, gate }: { started: string; gate: string }) => `
import { existsSync, writeFileSync } from 'node:fs';
let executions = 0;
export async function execute(requests) {
  executions++;
  if (requests.some(({ inputs: { X } }) => X.data.includes(0))) {
    writeFileSync(${JSON.stringify(started)}, '');
    while (!existsSync(${JSON.stringify(gate)})) await new Promise((resolve) => setTimeout(resolve, 2));
  }
  return requests.map(({ inputs: { X } }) => {
    if (X.data.some((value) => value < 0)) return { error: 'it was asked to fail' };
    const data = Array.from(X.data, () => [requests.length, executions]).flat();
    return { outputs: { Y: { data, shape: [X.data.length, 2] } } };
  });
}`;

const folder = temporaryFolder('skein-batch-goldens-');
const played = new Map<string, Played>();
let server: SkeinProcess;

async function waiting(name: string): Promise<number> {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  const pattern = new RegExp(`^nv_inference_pending_request_count\\{model="${name}".*\\} (\\d+)$`, 'm');
  return Number(pattern.exec(text)![1]);
}

beforeAll(async () => {
  for (const name of Object.keys(SERIES)) {
    mkdirSync(join(folder, name, '1'), { recursive: true });
    writeFileSync(join(folder, name, 'config.pbtxt'), `backend: "module"\n${configOf(name)}`);
    writeFileSync(join(folder, name, '1/model.mjs'), code(filesOf(folder, name)));
  }
  server = await startServer(['--model-repository', folder]);
  const names = Object.keys(SERIES);
  const all = await Promise.all(
    names.map((name) => play(name, { url: server.url, waiting, directory: folder }) as Promise<Played>),
  );
  for (const one of all) played.set(one.model, one);
});
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Counts of requests of which this server says otherwise whether they failed. */
const counted = (success: number, fail: number, more: object) => ({
  compute_infer: success,
  compute_input: success,
  compute_output: success,
  queue: success,
  success,
  fail,
  ...more,
});
const NO_CACHE = { cache_hit: 0, cache_miss: 0 };

/** Where this server differs, and why. */
const DIFFERENCES: Readonly<Record<string, { why: string; own: (golden: Played) => Played }>> = {
  preferred: {
    why: 'Triton had formed the batch of two while the instance was busy; here what waits is looked at once it is free',
    own: (golden) => ({
      ...golden,
      answers: [
        [1, 1],
        [4, 2],
        [4, 2],
        [4, 2],
        [4, 2],
        [2, 3],
        [2, 3],
        [1, 4],
      ],
    }),
  },
  full: {
    why: 'a request that is refused because too many wait counts as failed',
    own: ({ statistics, ...golden }) => ({
      ...golden,
      statistics: { ...statistics, inference_stats: counted(3, 2, NO_CACHE) },
    }),
  },
  failing: {
    why: 'a request that the model fails counts as failed, though others of its batch succeed',
    own: ({ statistics, ...golden }) => ({
      ...golden,
      statistics: { ...statistics, inference_count: 3, inference_stats: counted(3, 1, NO_CACHE) },
    }),
  },
};

describe('batches and their statistics are those of a Triton', () => {
  it('for every series', () => {
    expect([...played.keys()]).toEqual(goldens.map(({ model }) => model));
  });

  it.each(goldens)('$model', (golden) => {
    const own = played.get(golden.model)!;
    const difference = DIFFERENCES[golden.model];
    expect(own).toEqual(difference === undefined ? golden : difference.own(golden));
    if (difference !== undefined) expect(own, 'this is as with Triton now').not.toEqual(golden);
  });
});
