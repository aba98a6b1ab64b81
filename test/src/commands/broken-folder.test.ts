import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { postJson } from '../../support/post-json.js';
import { runCli, startServer, testCacheDir } from '../support/skein-process.js';

const folder = temporaryFolder('skein-broken-folder');
const IO =
  'input: [{name: X, data_type: TYPE_INT32, dims: [-1]}]\noutput: [{name: Y, data_type: TYPE_INT32, dims: [-1]}]\n';

function write(name: string, code: string): void {
  mkdirSync(join(folder, name, '1'), { recursive: true });
  writeFileSync(join(folder, name, 'config.yaml'), `max_batch_size: 0\n${IO}`);
  writeFileSync(join(folder, name, '1', 'model.mjs'), code);
}

write(
  'fine',
  'export const execute = (requests) => requests.map(({ inputs: { X } }) => ({ outputs: { Y: X } }));\n',
);
write(
  'broken',
  'export function initialize() {\n  throw new Error("no licence");\n}\nexport const execute = () => [];\n',
);

write(
  'endless',
  'export const initialize = () => new Promise(() => {});\nexport const execute = () => [];\n',
);

const WHY = 'initialize threw at model.mjs:2:9: no licence';

it('ends the server at its start, which says why', async () => {
  const args = ['serve', '--port', '0', '--cache-dir', testCacheDir, '--model-repository', folder];
  const { code, stderr } = await runCli(args);
  expect([code, stderr]).toEqual([1, expect.stringContaining(WHY)]);
  expect(stderr).toContain("'broken'");
  expect(stderr).not.toContain(folder);
});

it('is one model less with --no-exit-on-error', async () => {
  const server = await startServer(['--model-repository', folder, '--no-exit-on-error']);
  try {
    expect(server.output().stderr).toContain(WHY);
    const index = await (await postJson(`${server.url}/v2/repository/index`, {})).json();
    expect(index).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ name: 'fine', state: 'READY' }),
        expect.objectContaining({
          name: 'broken',
          state: 'UNAVAILABLE',
          reason: expect.stringContaining(WHY),
        }),
        expect.objectContaining({
          name: 'endless',
          reason: expect.stringMatching(/(?<!threw: )initialize never finished: its promise was not settled/),
        }),
      ]),
    );
    const inputs = [{ name: 'X', datatype: 'INT32', shape: [2], data: [3, 4] }];
    const answer = await postJson(`${server.url}/v2/models/fine/infer`, { inputs });
    expect(await answer.json()).toMatchObject({ outputs: [{ name: 'Y', data: [3, 4] }] });
    expect((await postJson(`${server.url}/v2/models/broken/infer`, { inputs })).status).toBe(404);
    expect((await fetch(`${server.url}/v2/health/ready`)).status).toBe(200);
  } finally {
    await server.stop();
  }
});
