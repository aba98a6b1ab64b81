import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { configOf, filesOf, play, SERIES } from '../../../../tools/reference/triton/sequence-cases.mjs';
import { temporaryFolder } from '../../../support/fresh-folders.js';
import { type SkeinProcess, startServer } from '../../support/skein-process.js';

type Answer = number[] | { status: number; error: string };

interface Played {
  model: string;
  answers: Answer[];
  statistics: { inference_stats: object };
}

const { models: goldens } = JSON.parse(
  readFileSync(new URL('../../../goldens/triton/sequences.json', import.meta.url), 'utf8'),
) as { models: Played[] };

/** The models of write-sequence-models.mjs in JavaScript. */
const code = ({ started, gate }: { started: string; gate: string }) => `
import { existsSync, writeFileSync } from 'node:fs';
const element = (request, name) => {
  const { data, datatype } = request.inputs[name];
  return datatype === 'BYTES' ? BigInt(data[0].length) : BigInt(data[0]);
};
export async function execute(requests) {
  const isReady = (request) => element(request, 'READY') === 1n;
  if (requests.some((request) => isReady(request) && element(request, 'X') === 0n)) {
    writeFileSync(${JSON.stringify(started)}, '');
    while (!existsSync(${JSON.stringify(gate)})) await new Promise((resolve) => setTimeout(resolve, 2));
  }
  return requests.map((request, i) => {
    if (isReady(request) && element(request, 'X') < 0n) return { error: 'it was asked to fail' };
    const controls = ['START', 'END', 'READY', 'CORRID'].map((name) => element(request, name));
    return { outputs: { Y: { data: [BigInt(requests.length), BigInt(i), ...controls] } } };
  });
}`;

const folder = temporaryFolder('skein-sequence-goldens-');
const played = new Map<string, Played>();
let server: SkeinProcess;

async function waiting(name: string): Promise<number> {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  const pattern = new RegExp(`^nv_inference_pending_request_count\\{model="${name}".*\\} (\\d+)$`, 'm');
  return Number(pattern.exec(text)![1]);
}

beforeAll(async () => {
  const names = Object.keys(SERIES);
  for (const name of names) {
    mkdirSync(join(folder, name, '1'), { recursive: true });
    writeFileSync(join(folder, name, 'config.pbtxt'), `backend: "module"\n${configOf(name)}`);
    writeFileSync(join(folder, name, '1/model.mjs'), code(filesOf(folder, name)));
  }
  server = await startServer(['--model-repository', folder]);
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
const counted = (success: number, fail: number) => ({
  compute_infer: success,
  compute_input: success,
  compute_output: success,
  queue: success,
  success,
  fail,
  cache_hit: 0,
  cache_miss: 0,
});

/** Where this server differs, and why. */
const DIFFERENCES: Readonly<Record<string, { why: string; own: (golden: Played) => Played }>> = {
  failing: {
    why: 'a request that the model fails counts as failed; its sequence goes on with both',
    own: ({ statistics, ...golden }) => ({
      ...golden,
      statistics: {
        ...statistics,
        inference_count: 2,
        inference_stats: counted(2, 2),
      } as object as Played['statistics'],
    }),
  },
  ids_text: {
    why: 'this Triton fails at a text as the id of a sequence that is shorter than 128 characters',
    own: (golden) => ({
      ...golden,
      answers: golden.answers.map((answer, i) =>
        i === 2 || i === 4 ? answer : [1, 0, i === 0 ? 1 : 0, i === 3 ? 1 : 0, 1, 'a sequence'.length],
      ),
      statistics: expect.objectContaining({ inference_count: 4, inference_stats: counted(4, 0) }),
    }),
  },
};

describe('sequences, their batches and statistics are those of a Triton', () => {
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
