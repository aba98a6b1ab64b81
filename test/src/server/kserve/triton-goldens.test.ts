import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cases } from '../../../../tools/reference/triton/cases.mjs';
import { type SkeinProcess, startServer } from '../../support/skein-process.js';

type Case = readonly [method: string, path: string, body?: unknown, headers?: Record<string, string>];

interface Golden {
  request: string;
  status: number;
  jsonLength?: number;
  body: string;
}

const goldens = (
  JSON.parse(readFileSync(new URL('../../../goldens/triton/http.json', import.meta.url), 'utf8')) as {
    answers: Golden[];
  }
).answers;

const CONFIG = `backend: module
max_batch_size: 8
input: [{name: INPUT0, data_type: TYPE_INT32, dims: [16]}, {name: INPUT1, data_type: TYPE_INT32, dims: [16]}]
output: [{name: OUTPUT0, data_type: TYPE_INT32, dims: [16]}, {name: OUTPUT1, data_type: TYPE_INT32, dims: [16]}]
`;
const MODULE = `export const execute = (requests) => requests.map(({ inputs: { INPUT0: a, INPUT1: b } }) => ({
  outputs: { OUTPUT0: { data: a.data.map((x, i) => x + b.data[i]) }, OUTPUT1: { data: a.data.map((x, i) => x - b.data[i]) } } }));`;
const IDENTITY = `backend: module
max_batch_size: 64
input: [{name: INPUT0, data_type: TYPE_FP32, dims: [-1]}]
output: [{name: OUTPUT0, data_type: TYPE_FP32, dims: [-1]}]
`;

const folder = mkdtempSync(join(tmpdir(), 'skein-goldens-'));
let server: SkeinProcess;
const ours: Golden[] = [];

function write(name: string, config: string, code: string): void {
  mkdirSync(join(folder, name, '1'), { recursive: true });
  writeFileSync(join(folder, name, 'config.yaml'), config);
  writeFileSync(join(folder, name, '1/model.mjs'), code);
}

beforeAll(async () => {
  write('add_sub', CONFIG, MODULE);
  write(
    'identity',
    IDENTITY,
    'export const execute = (all) => all.map(({ inputs }) => ({ outputs: { OUTPUT0: inputs.INPUT0 } }));',
  );
  server = await startServer([
    '--model-repository',
    folder,
    '--model-control-mode',
    'explicit',
    '--load-model',
    '*',
    '--allow-model-upload',
    '--server-id',
    'triton',
  ]);
  for (const [method, path, body, headers] of cases as unknown as readonly Case[]) {
    const sent = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body);
    const response = await fetch(server.url + path, {
      method,
      ...(headers && { headers }),
      ...(method === 'GET' || sent === undefined ? {} : { body: sent }),
    });
    const length = response.headers.get('inference-header-content-length');
    const text = Buffer.from(await response.arrayBuffer()).toString('latin1');
    const golden: Golden = { request: `${method} ${path}`, status: response.status, body: text };
    ours.push(length === null ? golden : { ...golden, jsonLength: Number(length) });
  }
});
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Where this server answers otherwise, by the number of the request, and why. */
const DIFFERENCES: Readonly<Record<number, string>> = {
  0: 'version and extensions are our own',
  1: "health has a body, as the protocol's document says and KServe's client reads it; Triton's has none",
  2: 'as 1',
  3: 'another backend',
  4: 'as 1',
  5: 'another backend',
  6: 'as 1',
  15: 'a GET of infer opens a WebSocket',
  17: 'a path outside of /v2 has the form of the other routes',
  23: "the outputs that there are follow Triton's words",
  43: "what was found, and what would be taken, follow Triton's words",
  46: 'the shape is told of, and not the batch size that would come of it',
  50: 'the second of two inputs that differ is named, in the order of the configuration',
  51: 'a batch without rows is refused as such',
  57: 'a number beyond its type is refused; Triton cuts it off',
  60: 'an input that the model does not have is named',
  72: 'a header that is no number is refused as such',
  73: 'another backend; fields of GPUs and of optimization are not told',
  74: 'other times and counts',
  75: 'other times and counts',
  78: 'the log has warnings and errors by default',
  79: 'the log has warnings and errors by default',
  80: 'a setting that there is not is refused by name; Triton leaves it out',
  81: 'there is no tracing to be set, which is said',
  91: 'unloading has ended',
  92: 'the answer names the endpoint, as the AMD Inference Server does',
  95: 'a value makes an endpoint of its own, as with the AMD Inference Server',
  98: 'more elements than can be counted are refused before the shape is compared',
};

describe('the answers of a Triton', () => {
  it('are as many as there are requests', () => {
    expect(goldens.map(({ request }) => request)).toEqual(cases.map(([method, path]) => `${method} ${path}`));
  });

  it.each([23, 43])('begin as ours where more follows: %i', (i) => {
    const begin = (JSON.parse(goldens[i]!.body) as { error: string }).error;
    expect((JSON.parse(ours[i]!.body) as { error: string }).error.startsWith(begin)).toBe(true);
  });

  it.each(cases.map(([method, path], i) => [i, `${method} ${path}`] as const))('%i %s', (i) => {
    const [golden, our] = [goldens[i]!, ours[i]!];
    if (golden.status === 500) {
      // What is wrong with a request is its client's fault, as the protocol says; Triton calls it its own.
      expect(our.status).toBe(i === 95 ? 200 : 400);
      if (i !== 95) expect(JSON.parse(our.body)).toEqual({ error: expect.stringMatching(/\S/) });
      return;
    }
    if (!(i in DIFFERENCES)) return expect(our).toEqual(golden);
    expect(our).not.toEqual(golden);
    if (golden.status === our.status) return;
    expect([15, 17, 57, 80, 81]).toContain(i); // of another status too
  });
});
