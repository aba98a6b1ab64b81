import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openEngine } from '../../engine/building/engine.js';
import type { EngineManifest } from '../../engine/directory/engine-directory.js';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { runCli } from './support/skein-process.js';

const cache = temporaryFolder('skein-damaged');

const run = () =>
  runCli([
    'run',
    'hi',
    '--model',
    tinyModelPath('gqa'),
    '--max-tokens',
    '2',
    '--seed',
    '1',
    '--cache-dir',
    cache,
  ]);
const directory = () => join(cache, readdirSync(cache).find((name) => name.includes('-v'))!);

/** Flips a bit of a tensor, and says which. */
function spoil(kind: 'embedding' | 'gatedLinear'): string {
  const { manifest, plan, weightsFile } = openEngine(directory());
  const op = plan.ops.find((one) => one.op === kind) as { weight: string };
  const { offset } = (manifest as EngineManifest).tensors.find(({ name }) => name === op.weight)!;
  const bytes = readFileSync(weightsFile);
  bytes[offset]! ^= 1;
  chmodSync(weightsFile, 0o644);
  writeFileSync(weightsFile, bytes);
  return op.weight;
}

it('a damaged engine of the cache is told of on stderr in a sentence, and built anew', async () => {
  const { stdout } = await run();
  const name = spoil('embedding');
  const again = await run();
  expect(again).toMatchObject({ code: 0, stdout });
  expect(again.stderr).toMatch(
    new RegExp(
      `^skein: .*weights\\.bin: the bytes of ${name} are not those that were built, the disk or a program has changed them; it is built again\\.$`,
      'm',
    ),
  );
  expect((await run()).stderr).not.toContain('built');
});

it('damaged matrices are never packed again, and the start after that builds the engine anew', async () => {
  const { stdout } = await run();
  // The file of weights is another one now, so that what was packed of it is not taken.
  const name = spoil('gatedLinear');
  const refused = await run();
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(
    new RegExp(`^skein: [^\\n]*the bytes of ${name} are not those that were built`),
  );
  expect(await run()).toMatchObject({
    code: 0,
    stdout,
    stderr: expect.stringContaining(`the bytes of ${name} are not those that were built`),
  });
});
