import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { pull } from '../../../../src/hub/pull.js';
import { repositoryOf } from '../../../../src/hub/repository.js';
import { ModelStore } from '../../../../src/serving/on-demand/model-store.js';
import { tinyModelPath } from '../../../../tools/support/test-engine.js';
import { FakeHub, type HubFile } from '../../../support/fake-hub.js';
import { freshFolders } from '../../../support/fresh-folders.js';

const makeFolder = freshFolders('skein-store');
const namesIn = async (store: ModelStore) => (await store.list()).map(({ name }) => name);
const file = (text: string): HubFile => ({ content: Buffer.from(text), isLarge: text.length > 3 });

/** A folder with a GGUF file, a folder of Hugging Face, and one within another. */
function filled(): string {
  const folder = makeFolder();
  copyFileSync(join(tinyModelPath('gguf'), 'tiny-llama.gguf'), join(folder, 'geese.Q8_0.gguf'));
  cpSync(tinyModelPath('gqa'), join(folder, 'tiny'), { recursive: true });
  cpSync(tinyModelPath('gguf'), join(folder, 'org/nested'), { recursive: true });
  mkdirSync(join(folder, 'empty'));
  mkdirSync(join(folder, '.hidden'));
  writeFileSync(join(folder, 'notes.txt'), 'no model');
  return folder;
}

async function pulled(folder: string, files: Record<string, string>, names: string[]): Promise<void> {
  const hub = await FakeHub.start(
    'org/name',
    new Map(Object.entries(files).map(([path, text]) => [path, file(text)])),
  );
  const settings = { endpoint: hub.endpoint, token: null, cacheFolder: folder, isOffline: false };
  for (const name of names) await pull(repositoryOf(name), { settings, revision: 'main' });
  await hub.close();
}

describe('a folder of models', () => {
  it('has files and folders, by their names', async () => {
    const folder = filled();
    const store = new ModelStore(folder);
    expect(await namesIn(store)).toEqual(['geese.Q8_0', 'org/nested', 'tiny']);
    expect(await store.find('tiny')).toMatchObject({ path: join(folder, 'tiny'), format: 'safetensors' });
    const geese = (await store.find('geese.Q8_0'))!;
    expect(geese).toMatchObject({ format: 'gguf', quant: 'Q8_0', repository: null });
    expect(geese.size).toBeGreaterThan(1000);
    expect(geese.digest).toMatch(/^[0-9a-f]{64}$/);
    expect((await store.find('TINY'))?.name).toBe('tiny');
    for (const name of ['empty', '../tiny', 'org', 'notes', '/etc', ''])
      expect(await store.find(name)).toBe(null);
  });

  it('that is not there has none', async () => {
    expect(await namesIn(new ModelStore('/no/such/folder'))).toEqual([]);
  });

  it('loses what is removed, and nothing beside it', async () => {
    const folder = filled();
    const store = new ModelStore(folder);
    await store.remove((await store.find('tiny'))!);
    await store.remove((await store.find('geese.Q8_0'))!);
    expect(await namesIn(store)).toEqual(['org/nested']);
    expect(readdirSync(folder).sort()).toEqual(['.hidden', 'empty', 'notes.txt', 'org']);
  });

  it('loses a link, and not what it leads to', async () => {
    const folder = makeFolder();
    const elsewhere = filled();
    symlinkSync(join(elsewhere, 'tiny'), join(folder, 'linked'));
    const store = new ModelStore(folder);
    await store.remove((await store.find('linked'))!);
    expect(await namesIn(store)).toEqual([]);
    expect(existsSync(join(elsewhere, 'tiny/config.json'))).toBe(true);
  });

  it('loses nothing behind a folder that is a link to one elsewhere', async () => {
    const folder = makeFolder();
    const elsewhere = filled();
    symlinkSync(join(elsewhere, 'org'), join(folder, 'linkdir'));
    const store = new ModelStore(folder);
    const model = (await store.find('linkdir/nested'))!;
    expect(await store.holds(model)).toBe(false);
    await expect(store.remove(model)).rejects.toThrow(/lie in another folder/);
    expect(existsSync(join(elsewhere, 'org/nested'))).toBe(true);
  });

  it("is the folder's where that is reached by a link itself", async () => {
    const link = join(makeFolder(), 'models');
    symlinkSync(filled(), link);
    const store = new ModelStore(link);
    const model = (await store.find('org/nested'))!;
    expect(await store.holds(model)).toBe(true);
    await store.remove(model);
    expect(await store.find('org/nested')).toBe(null);
  });
});

describe('models that were pulled', () => {
  const GGUFS = { 'm-Q4_0.gguf': 'four bits', 'm-Q8_0.gguf': 'eight bits', 'README.md': 'x' };

  it('have the names of the hub, with the precision where there are several', async () => {
    const folder = makeFolder();
    await pulled(folder, GGUFS, ['org/name:Q4_0', 'org/name:Q8_0']);
    const store = new ModelStore(folder);
    expect(await namesIn(store)).toEqual(['org/name:Q4_0', 'org/name:Q8_0']);
    expect((await store.find('org/name'))?.name).toBe('org/name:Q8_0');
    expect((await store.find('org/name:q4_0'))?.name).toBe('org/name:Q4_0');
    expect(await store.find('org/name:Q6_K')).toBe(null);
    const blobs = join(folder, 'models--org--name/blobs');
    expect(readdirSync(blobs)).toHaveLength(2);
    await store.remove((await store.find('org/name:Q4_0'))!);
    expect(await namesIn(store)).toEqual(['org/name:Q8_0']);
    expect(readdirSync(blobs)).toHaveLength(1);
    await store.remove((await store.find('org/name'))!);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('of a repository that is a link to one elsewhere lose the link alone, and no precision of several', async () => {
    const folder = makeFolder();
    const elsewhere = makeFolder();
    await pulled(elsewhere, GGUFS, ['org/name:Q4_0', 'org/name:Q8_0']);
    symlinkSync(join(elsewhere, 'models--org--name'), join(folder, 'models--org--name'));
    const store = new ModelStore(folder);
    const model = (await store.find('org/name:Q4_0'))!;
    expect(await store.holds(model)).toBe(false);
    await expect(store.remove(model)).rejects.toThrow(/lie in another folder/);
    expect(await namesIn(new ModelStore(elsewhere))).toEqual(['org/name:Q4_0', 'org/name:Q8_0']);
    await new ModelStore(elsewhere).remove(model);
    await store.remove((await store.find('org/name:Q8_0'))!);
    expect(readdirSync(folder)).toEqual([]);
    expect(await namesIn(new ModelStore(elsewhere))).toEqual(['org/name:Q8_0']);
  });

  it('are there once all their files are', async () => {
    const folder = makeFolder();
    await pulled(folder, { 'config.json': '{}', 'model.safetensors': 'weights' }, ['org/name']);
    const store = new ModelStore(folder);
    expect(await store.list()).toMatchObject([
      { name: 'org/name', format: 'safetensors', repository: 'org/name' },
    ]);
    const begun = makeFolder();
    mkdirSync(join(begun, 'models--org--other/blobs'), { recursive: true });
    expect(await namesIn(new ModelStore(begun))).toEqual([]);
  });
});
