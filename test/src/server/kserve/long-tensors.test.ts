import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Random } from '../../../../tools/soak/random.js';
import { temporaryFolder } from '../../../support/fresh-folders.js';
import { draws } from '../../../support/scale.js';
import { startServer } from '../../support/skein-process.js';

// Memory of bodies, batches and answers is used again and again: what came and went before must never be seen.

let server: Awaited<ReturnType<typeof startServer>>;
beforeAll(async () => {
  const folder = temporaryFolder('skein-long-tensors-');
  mkdirSync(join(folder, 'negate', '1'), { recursive: true });
  writeFileSync(
    join(folder, 'negate', 'config.yaml'),
    `backend: module
max_batch_size: 4
dynamic_batching: {}
instance_group: [{count: 2}]
input: [{name: X, data_type: TYPE_INT32, dims: [-1]}]
output: [{name: Y, data_type: TYPE_INT32, dims: [-1]}]
`,
  );
  writeFileSync(
    join(folder, 'negate', '1', 'model.mjs'),
    `export const execute = (requests) => requests.map(({ inputs: { X }, parameters: { fails } }) =>
      fails ? { error: 'as it was asked' } : { outputs: { Y: { data: X.data.map((value) => -value), shape: X.shape } } });`,
  );
  server = await startServer(['--model-repository', folder, '--threads', '1']);
});
afterAll(() => server?.stop());

/** All elements are `value`. */
async function ask(value: number, length: number, fails: boolean, signal?: AbortSignal) {
  const json = JSON.stringify({
    inputs: [
      { name: 'X', datatype: 'INT32', shape: [1, length], parameters: { binary_data_size: 4 * length } },
    ],
    parameters: { binary_data_output: true, ...(fails && { fails }) },
  });
  const body = Buffer.concat([Buffer.from(json), Buffer.from(new Int32Array(length).fill(value).buffer)]);
  const headers = { 'inference-header-content-length': String(json.length) };
  const answer = await fetch(`${server.url}/v2/models/negate/infer`, {
    method: 'POST',
    headers,
    body,
    signal: signal ?? null,
  });
  const bytes = Buffer.from(await answer.arrayBuffer());
  if (answer.status !== 200) return bytes.toString();
  const data = bytes.subarray(Number(answer.headers.get('inference-header-content-length')));
  expect(data.length).toBe(4 * length);
  const numbers = new Int32Array(new Uint8Array(data).buffer);
  const wrong = numbers.findIndex((number) => number !== -value);
  return wrong < 0 ? 'right' : `${numbers[wrong]} at ${wrong}`;
}

it('answers each of many long requests with its own numbers, whoever fails or leaves beside them', async () => {
  const random = new Random(5);
  const client = async (first: number) => {
    for (let i = 0; i < draws(5); i++) {
      const length = random.integer(1, random.integer(0, 3) === 0 ? 400_000 : 30_000);
      const kind = random.integer(0, 9);
      const gone = new AbortController();
      const asked = ask(1000 * first + i, length, kind === 0, gone.signal).catch(
        (error: Error) => error.name,
      );
      if (kind === 1) setImmediate(() => gone.abort());
      const answer = await asked;
      if (kind === 0) expect(answer).toContain('as it was asked');
      else if (kind === 1) expect(['AbortError', 'right']).toContain(answer);
      else expect(answer).toBe('right');
    }
  };
  await Promise.all(Array.from({ length: 12 }, (_, number) => client(number + 1)));
});
