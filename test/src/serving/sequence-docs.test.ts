import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { codeBlocks } from '../../support/documents.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { type SkeinProcess, startServer } from '../support/skein-process.js';

const PAGE = 'docs/model-repository.md';
const blockOf = (language: string, part: string) =>
  codeBlocks(PAGE, language).find((code) => code.includes(part))!;

const folder = temporaryFolder('skein-sequence-docs-');
let server: SkeinProcess;

beforeAll(async () => {
  mkdirSync(join(folder, 'totals/1'), { recursive: true });
  writeFileSync(join(folder, 'totals/1/model.mjs'), blockOf('js', 'models/totals/1/model.mjs'));
  writeFileSync(join(folder, 'totals/config.yaml'), blockOf('yaml', 'models/totals/config.yaml'));
  server = await startServer(['--model-repository', folder]);
});
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

it('the example of sequences answers what the page says', async () => {
  const asked = [...blockOf('sh', 'totals/infer').matchAll(/curl \S+?(\/v2\/\S+) -d '([^']+)'/g)];
  const answers: string[] = [];
  for (const [, path, body] of asked) {
    const response = await fetch(server.url + path!, { method: 'POST', body: body! });
    answers.push(await response.text());
  }
  expect(answers).toHaveLength(2);
  expect(answers.map((answer) => `${answer}\n`).join('')).toBe(blockOf('json', '"totals"'));
});

it('the control inputs of the page are taken, each with the type that it says', async () => {
  const controls = blockOf('yaml', 'control_input:').replaceAll(/^/gm, '  ');
  const code = `export const execute = (requests) => requests.map(({ inputs: { START, END, READY, ID } }) => ({
    outputs: { Y: { data: [START, END, READY, ID].map(({ datatype }) => datatype) } } }));`;
  mkdirSync(join(folder, 'controls/1'), { recursive: true });
  writeFileSync(join(folder, 'controls/1/model.mjs'), code);
  const io =
    'input: [{name: X, data_type: TYPE_INT32, dims: [1]}]\noutput: [{name: Y, data_type: TYPE_STRING, dims: [4]}]';
  const config = `backend: module\nmax_batch_size: 2\n${io}\nsequence_batching:\n${controls}`;
  writeFileSync(join(folder, 'controls/config.yaml'), config);
  const other = await startServer([
    '--model-repository',
    folder,
    '--model-control-mode',
    'explicit',
    '--load-model',
    'controls',
  ]);
  const body = {
    inputs: [{ name: 'X', shape: [1, 1], datatype: 'INT32', data: [1] }],
    parameters: { sequence_id: 1, sequence_start: true, sequence_end: true },
  };
  const response = await fetch(`${other.url}/v2/models/controls/infer`, {
    method: 'POST',
    body: JSON.stringify(body),
  });
  const answer = (await response.json()) as { outputs: { data: string[] }[] };
  await other.stop();
  expect(answer.outputs[0]!.data).toEqual(['FP32', 'FP32', 'FP32', 'UINT64']);
});
