import { existsSync, mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { RepositoryCache } from '../../src/hub/cache.js';
import { freshFolders } from '../support/fresh-folders.js';
import { warmCli } from './support/warm-cli.js';

const runCli = warmCli();

const makeFolder = freshFolders('skein-stored');

function store(folder: string, id: string, revision: string, bytes: number): void {
  const cache = new RepositoryCache(folder, { id } as never);
  const blob = cache.blob('abc');
  mkdirSync(join(cache.folder, 'blobs'), { recursive: true });
  writeFileSync(blob, Buffer.alloc(bytes));
  utimesSync(blob, 1_700_000_000, 1_700_000_000);
  const commit = '0123456789'.repeat(4);
  cache.link(commit, 'model.safetensors', 'abc');
  cache.noteCommit(revision, commit);
}

it('lists models that were pulled, and deletes those that are named', async () => {
  const folder = makeFolder();
  const environment = { HF_HUB_CACHE: folder, HF_HOME: folder };
  const empty = await runCli(['list'], { environment });
  expect([empty.code, empty.stdout]).toEqual([
    0,
    `No models in ${folder}. skein pull ORG/NAME downloads one.\n`,
  ]);
  store(folder, 'org/Some-Model', 'main', 2_500_000);
  store(folder, 'a/b', 'branch/of-mine', 1500);
  const listed = await runCli(['list'], { environment });
  expect(listed.stdout.split('\n')).toEqual([
    'MODEL                 SIZE  CHANGED     REVISIONS',
    'a/b                 1.5 kB  2023-11-14  branch/of-mine',
    'org/Some-Model      2.5 MB  2023-11-14  main',
    `2.5 MB in ${folder}`,
    '',
  ]);
  const [first] = JSON.parse((await runCli(['ls', '--json'], { environment })).stdout);
  expect(first).toMatchObject({ id: 'a/b', bytes: 1500, revisions: ['branch/of-mine'] });
  const wrong = await runCli(['rm', 'org/Some-Model', 'a/c'], { environment });
  expect([wrong.code, wrong.stderr]).toEqual([
    1,
    `skein: There is no model a/c in ${folder}; did you mean a/b?\n`,
  ]);
  expect(existsSync(join(folder, 'models--org--Some-Model'))).toBe(true);
  const removed = await runCli(['rm', 'org/Some-Model'], { environment });
  expect([removed.code, removed.stdout]).toEqual([0, 'deleted org/Some-Model, 2.5 MB\n']);
  expect(existsSync(join(folder, 'models--org--Some-Model'))).toBe(false);
  expect(existsSync(join(folder, 'models--a--b'))).toBe(true);
});
