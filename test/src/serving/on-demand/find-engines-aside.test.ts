import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { findEngines } from '../../../../dist/src/serving/find-engines.js';
import { findEnginesAside } from '../../../../dist/src/serving/on-demand/find-engines-aside.js';
import { tinyModelPath } from '../../../../tools/support/test-engine.js';
import { freshFolders } from '../../../support/fresh-folders.js';

const makeFolder = freshFolders('skein-find-aside');
const model = tinyModelPath('gqa');

it('builds an engine, and finds what is found in this thread', async () => {
  const cacheDir = makeFolder();
  const built = await findEnginesAside({ model, cacheDir });
  expect(await findEngines({ model, cacheDir })).toEqual(built);
  expect(await findEnginesAside({ model, cacheDir })).toEqual(built);
});

it('has the errors of the files, with their names and codes', async () => {
  const broken = join(makeFolder(), 'broken.gguf');
  writeFileSync(broken, 'no model');
  const cacheDir = makeFolder();
  const here = await findEngines({ model: broken, cacheDir }).catch((error: unknown) => error);
  const { name, message, code } = here as Error & { code: string };
  expect(code).toBe('SKEIN_CHECKPOINT');
  await expect(findEnginesAside({ model: broken, cacheDir })).rejects.toMatchObject({ name, message, code });
});

it('is given up with the reason of its signal, and leaves no half of an engine behind', async () => {
  const cacheDir = makeFolder();
  const reason = new Error('the client has left');
  await expect(findEnginesAside({ model, cacheDir, signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  const abort = new AbortController();
  const finding = findEnginesAside({ model, cacheDir, signal: abort.signal });
  abort.abort(reason);
  await expect(finding).rejects.toBe(reason);
  const unfinished = readdirSync(cacheDir).filter((name) => !/^tiny-gqa-.*[0-9a-f]{20}$/.test(name));
  expect(unfinished).toEqual([]);
});
