import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { Encoder } from '../../../src/library/encoder.js';
import { Skein } from '../../../src/library/skein.js';
import { temporaryFolder } from '../../support/fresh-folders.js';

const folder = temporaryFolder('skein-ranks-check');
afterEach(() => vi.restoreAllMocks());

function file(name: string, text: string, mode: number): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

const ranks = { ranksAddress: '127.0.0.1:7000', pipelineParallelSize: 2 };
/** There is no model: what is said of ranks is said before it is looked for. */
const model = join(folder, 'no-model');

it.each([
  ['Skein.load', Skein],
  ['Encoder.load', Encoder],
] as const)('%s refuses a short secret before it looks for the model', async (_, { load }) => {
  const ranksSecretFile = file('short', 'fifteen letters', 0o600);
  const loading = load({ model, ...ranks, ranksSecretFile });
  await expect(loading).rejects.toMatchObject({
    name: 'ParameterError',
    message: `The file of ranksSecretFile, ${ranksSecretFile}, has 15 characters; a secret has at least 16.`,
  });
});

it.each([
  ['Skein.load', Skein],
  ['Encoder.load', Encoder],
] as const)('%s warns once of a secret that everybody can read', async (name, { load }) => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const ranksSecretFile = file(`open for ${name}`, 'sixteen letters!', 0o644);
  for (let time = 0; time < 2; time++) {
    await expect(load({ model, ...ranks, ranksSecretFile })).rejects.toThrow();
  }
  expect(warn.mock.calls).toEqual([
    [
      `Every user of this machine can read the secret of the ranks in ${ranksSecretFile}; chmod 600 keeps it secret.`,
      { type: 'SkeinWarning', code: 'SKEIN_OPEN_SECRET' },
    ],
  ]);
});
