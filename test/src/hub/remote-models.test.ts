import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { HubError } from '../../../src/errors/user-errors.js';
import { begunDownloads } from '../../../src/hub/begun-downloads.js';
import type { RemoteFile } from '../../../src/hub/hub-client.js';
import { RemoteModels } from '../../../src/hub/remote-models.js';
import { hubSettings } from '../../../src/hub/settings.js';
import { freshFolders } from '../../support/fresh-folders.js';

const makeFolder = freshFolders('skein-remote-models');
const settings = () => ({ ...hubSettings({}), endpoint: 'http://127.0.0.1:1', isOffline: false });
const file = (path: string, size: number): RemoteFile => ({
  path,
  size,
  hash: `hash of ${path}`,
  checksum: { algorithm: 'sha256', value: '' },
});
const FILES = [file('m-Q4_K_M.gguf', 40), file('m-Q8_0.gguf', 80), file('README.md', 1)];

it('knows the size of each precision, and by a file which of them was begun', async () => {
  const remote = new RemoteModels(settings, async () => ({ files: FILES }));
  expect(remote.of('a/m')).toBe(null);
  remote.look(['a/m', 'a/m:Q4_K_M', 'no repository']);
  await vi.waitFor(() => expect(remote.reach.state).toBe('reachable'));
  expect([remote.of('a/m'), remote.of('a/m:Q4_K_M')]).toMatchObject([{ bytes: 80 }, { bytes: 40 }]);
  expect(remote.of('a/m:Q2_K')).toEqual({ problem: expect.stringMatching(/no GGUF file of Q2_K/) });
  expect(remote.nameOf('a/m', new Set(['hash of m-Q4_K_M.gguf']))).toBe('a/m:Q4_K_M');
  expect(remote.nameOf('a/m', new Set(['another']))).toBe('a/m');
  expect(remote.nameOf('a/unknown', new Set())).toBe('a/unknown');
});

it('asks a hub that cannot be reached one question, and for the others where it refuses one', async () => {
  const asked: string[] = [];
  let fault: 'unreachable' | 'refused' = 'unreachable';
  const remote = new RemoteModels(settings, async ({ id }) => {
    asked.push(id);
    if (id === 'a/1') throw new HubError(`${id} is not shown.`, fault);
    return { files: FILES };
  });
  remote.look(['a/1', 'a/2', 'a/3']);
  await vi.waitFor(() => expect(remote.reach).toEqual({ state: 'unreachable', reason: 'a/1 is not shown.' }));
  remote.look(['a/1', 'a/2', 'a/3']);
  expect(asked).toEqual(['a/1']);

  fault = 'refused';
  const other = new RemoteModels(settings, async ({ id }) => {
    if (id === 'a/1') throw new HubError(`${id} is not shown.`, fault);
    return { files: FILES };
  });
  other.look(['a/1', 'a/2', 'a/3']);
  await vi.waitFor(() => expect(other.reach.state).toBe('reachable'));
  expect([other.of('a/1'), other.of('a/3')]).toMatchObject([{ problem: 'a/1 is not shown.' }, { bytes: 80 }]);
});

it('asks nothing once it is closed, and gives up what it asks', async () => {
  let given: AbortSignal | undefined;
  const remote = new RemoteModels(
    settings,
    (_, __, { signal }) =>
      new Promise((_resolve, reject) => {
        given = signal;
        signal!.addEventListener('abort', () => reject(signal!.reason));
      }),
  );
  remote.look(['a/m']);
  remote.close();
  expect(given?.aborted).toBe(true);
  await vi.waitFor(() => expect(remote.reach.state).toBe('unreachable'));
});

it('finds what was begun in a cache, with what is here of each file', async () => {
  const folder = makeFolder();
  expect(await begunDownloads(join(folder, 'none'))).toEqual(new Map());
  const write = (repository: string, name: string, bytes: number) => {
    const blobs = join(folder, `models--${repository}`, 'blobs');
    mkdirSync(blobs, { recursive: true });
    writeFileSync(join(blobs, name), Buffer.alloc(bytes));
  };
  write('a--whole', 'x', 5);
  write('a--begun', 'x', 5);
  write('a--begun', 'y.incomplete', 3);
  expect(await begunDownloads(folder)).toEqual(
    new Map([
      [
        'a/begun',
        {
          bytes: new Map([
            ['x', 5],
            ['y', 3],
          ]),
          parts: new Set(['y']),
        },
      ],
    ]),
  );
});
