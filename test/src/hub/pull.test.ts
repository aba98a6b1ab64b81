import {
  chmodSync,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HubError } from '../../../src/errors/user-errors.js';
import { localModel } from '../../../src/hub/local-model.js';
import { type PullOptions, type PullProgress, pull } from '../../../src/hub/pull.js';
import { repositoryOf } from '../../../src/hub/repository.js';
import type { HubSettings } from '../../../src/hub/settings.js';
import { FakeHub, type HubFile } from '../../support/fake-hub.js';
import { freshFolders } from '../../support/fresh-folders.js';

const makeFolder = freshFolders('skein-hub');
const ID = 'some-org/Some-Model.v1';
const WEIGHTS = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 7919) % 251));
const small = (text: string): HubFile => ({ content: Buffer.from(text), isLarge: false });
const large = (content: Buffer): HubFile => ({ content, isLarge: true });

const FILES = new Map<string, HubFile>([
  ['README.md', small('not needed')],
  ['config.json', small('{"a":1}')],
  ['empty.json', small('')],
  ['generation_config.json', small('')],
  ['tokenizer.json', small('{"version":"1.0"}')],
  ['model.safetensors', large(WEIGHTS)],
  ['pytorch_model.bin', large(Buffer.from('not needed'))],
  ['1_Pooling/config.json', small('{}')],
  ['onnx/model.onnx', large(Buffer.from('not needed'))],
]);
const NEEDED = [
  '1_Pooling/config.json',
  'config.json',
  'generation_config.json',
  'model.safetensors',
  'tokenizer.json',
];

let hub: FakeHub;
let settings: HubSettings;
beforeEach(async () => {
  hub = await FakeHub.start(ID, FILES);
  settings = { endpoint: hub.endpoint, token: null, cacheFolder: makeFolder(), isOffline: false };
});
afterEach(() => hub.close());

const pullIt = (options: Partial<PullOptions> = {}, name = ID) =>
  pull(repositoryOf(name), { settings, revision: 'main', retryDelayMs: 1, ...options });
const blobs = () => readdirSync(join(settings.cacheFolder, 'models--some-org--Some-Model.v1', 'blobs'));
const timesSent = (path: string) => hub.sent.filter((sent) => sent.path === path).map(({ start }) => start);

describe('a pulled model', () => {
  it("lies in the layout of the hub's cache: blobs by hash, names in a commit, the commit of a branch", async () => {
    const { path, commit, bytes, downloadedBytes } = await pullIt();
    expect(commit).toBe(hub.commit);
    const root = join(settings.cacheFolder, 'models--some-org--Some-Model.v1');
    expect(path).toBe(join(root, 'snapshots', commit));
    expect(readFileSync(join(root, 'refs/main'), 'utf8')).toBe(commit);
    expect(readdirSync(path, { recursive: true }).sort()).toEqual(['1_Pooling', ...NEEDED]);
    for (const name of NEEDED) {
      expect(readFileSync(join(path, name))).toEqual(FILES.get(name)!.content);
      expect(lstatSync(join(path, name)).isSymbolicLink()).toBe(true);
    }
    expect(readlinkSync(join(path, 'model.safetensors'))).toMatch(/^\.\.\/\.\.\/blobs\/[0-9a-f]{64}$/);
    expect(readlinkSync(join(path, '1_Pooling/config.json'))).toMatch(
      /^\.\.\/\.\.\/\.\.\/blobs\/[0-9a-f]{40}$/,
    );
    expect(downloadedBytes).toBe(bytes);
    expect(blobs()).toHaveLength(NEEDED.length);
    expect(existsSync(join(root, '.skein.lock'))).toBe(false);
  });

  it('is not downloaded again, nor are files that another tool has left there', async () => {
    const { path } = await pullIt();
    hub.sent.length = 0;
    expect((await pullIt()).downloadedBytes).toBe(0);
    expect(hub.sent).toEqual([]);
    expect(await localModel(ID, { settings })).toBe(path);
    expect(await localModel(ID, { settings: { ...settings, isOffline: true } })).toBe(path);
    expect(hub.questions).toBe(4); // those of the two pulls
  });

  it('is that of the revision which is asked for', async () => {
    await pullIt({ revision: 'v1' });
    const refs = join(settings.cacheFolder, 'models--some-org--Some-Model.v1', 'refs');
    expect(readdirSync(refs)).toEqual(['v1']);
    await pullIt({ revision: hub.commit });
    expect(readdirSync(refs)).toEqual(['v1']);
    await expect(pullIt({ revision: 'v2' })).rejects.toThrow(
      /^127.0.0.1 has no some-org\/Some-Model.v1, or no revision "v2" of it\.$/,
    );
  });

  it('reports its progress, which never exceeds the whole and ends with it', async () => {
    const seen: PullProgress[] = [];
    const { bytes } = await pullIt({ onProgress: (progress) => seen.push(progress) });
    expect(seen.every(({ done, total }) => done <= total && total === bytes)).toBe(true);
    expect(seen.at(-1)).toMatchObject({ id: ID, done: bytes, kept: 0 });
  });
});

describe('a download that is cut off', () => {
  it('goes on where it ended, wherever that is', async () => {
    hub.troubles.push(
      ...[1, 100_000, 0, 199_999 - 1].map((cutAfter) => ({ path: 'model.safetensors', cutAfter })),
      { path: 'tokenizer.json', cutAfter: 3 },
    );
    const { path } = await pullIt();
    expect(readFileSync(join(path, 'model.safetensors'))).toEqual(WEIGHTS);
    expect(timesSent('model.safetensors').length).toBe(5);
    expect(timesSent('model.safetensors').at(-1)).toBeGreaterThan(100_000);
    expect(blobs().filter((name) => name.endsWith('.incomplete'))).toEqual([]);
  });

  it('begins anew where the server knows no ranges', async () => {
    hub.knowsRanges = false;
    hub.troubles.push({ path: 'model.safetensors', cutAfter: 150_000 });
    const { path } = await pullIt();
    expect(readFileSync(join(path, 'model.safetensors'))).toEqual(WEIGHTS);
    expect(timesSent('model.safetensors')).toEqual([0, 0]);
  });

  it('is tried again after 429 and 5xx, and given up after five attempts that bring nothing; the next call goes on', async () => {
    hub.troubles.push(
      { path: 'model.safetensors', status: 503 },
      { path: 'model.safetensors', status: 429, retryAfter: '0' },
    );
    hub.troubles.push({ path: 'model.safetensors', cutAfter: 200_000 });
    for (let i = 0; i < 5; i++) hub.troubles.push({ path: 'model.safetensors', status: 500 });
    await expect(pullIt()).rejects.toThrow(
      /^some-org\/Some-Model.v1\/model.safetensors could not be downloaded in 5 attempts \(the hub answers 500\); what has come is kept/,
    );
    expect(await localModel(ID, { settings: { ...settings, isOffline: true } }).catch(String)).toMatch(
      /There is no file or folder some-org\/Some-Model.v1 here, and some-org\/Some-Model.v1 is not complete in .*HF_HUB_OFFLINE forbids/,
    );
    hub.sent.length = 0;
    const { downloadedBytes, bytes, path } = await pullIt();
    expect(timesSent('model.safetensors')[0]).toBeGreaterThan(0);
    expect(downloadedBytes).toBeLessThan(bytes);
    expect(readFileSync(join(path, 'model.safetensors'))).toEqual(WEIGHTS);
  });

  it('ends where it is interrupted, and keeps what has come', async () => {
    const stop = new AbortController();
    hub.troubles.push(
      { path: 'model.safetensors', cutAfter: 120_000 },
      { path: 'model.safetensors', stalls: true },
    );
    const watch = setInterval(() => {
      if (timesSent('model.safetensors').length === 2) stop.abort(new Error('stopped'));
    }, 5);
    await expect(pullIt({ signal: stop.signal })).rejects.toThrow('stopped');
    clearInterval(watch);
    expect(blobs().some((name) => name.endsWith('.incomplete'))).toBe(true);
    await pullIt();
    expect(blobs().some((name) => name.endsWith('.incomplete'))).toBe(false);
  });
});

describe('what cannot be downloaded', () => {
  it('is content of another checksum: once it is fetched again, twice it is refused and nothing is kept', async () => {
    const wrong = Buffer.alloc(WEIGHTS.length, 1);
    hub.troubles.push({ path: 'model.safetensors', content: wrong });
    expect(readFileSync(join((await pullIt()).path, 'model.safetensors'))).toEqual(WEIGHTS);
    settings = { ...settings, cacheFolder: makeFolder() };
    const bad = { path: 'config.json', content: Buffer.from('{"b":2}') };
    hub.troubles.push(bad, bad);
    await expect(pullIt()).rejects.toThrow(
      /config.json came twice with other contents .*\(git [0-9a-f]{40}\); nothing of it was kept\.$/,
    );
    expect(blobs().some((name) => name.endsWith('.incomplete'))).toBe(false);
  });

  it('is a file that is longer than the hub says', async () => {
    hub.troubles.push({ path: 'config.json', content: Buffer.alloc(100) });
    await expect(pullIt()).rejects.toThrow(/config.json is longer than the 7 bytes/);
  });

  it('is a repository that there is not, or that a token is missing for', async () => {
    await expect(pullIt({}, 'some-org/other')).rejects.toThrow(
      /^127.0.0.1 has no model some-org\/other; if it is private, set HF_TOKEN to a token that may read it\.$/,
    );
    hub.token = 'secret';
    await expect(pullIt()).rejects.toThrow(/set HF_TOKEN/);
    await expect(pullIt({ settings: { ...settings, token: 'other' } })).rejects.toThrow(
      /or the token of HF_TOKEN may not read it/,
    );
    await pullIt({ settings: { ...settings, token: 'secret' } });
    expect(hub.sent.find(({ path }) => path === 'config.json')!.authorization).toBe('Bearer secret');
    hub.status = 403;
    await expect(pullIt()).rejects.toThrow(
      /accepted its terms at http.*some-org\/Some-Model.v1, with a token in HF_TOKEN/,
    );
    hub.status = 500;
    await expect(pullIt()).rejects.toThrow(
      /answers 500 when asked for some-org\/Some-Model.v1; try again later\.$/,
    );
  });

  it('is anything while the hub cannot be reached', async () => {
    await hub.close();
    await expect(pullIt()).rejects.toThrow(
      /^127.0.0.1 could not be asked for some-org\/Some-Model.v1: .*ECONNREFUSED.*HF_HUB_OFFLINE=1/,
    );
    hub = await FakeHub.start(ID, FILES);
  });

  it('is said of a cache that cannot be written', async () => {
    const file = join(makeFolder(), 'file');
    writeFileSync(file, '');
    await expect(pullIt({ settings: { ...settings, cacheFolder: join(file, 'hub') } })).rejects.toThrow(
      /hub cannot be written \(.*\); set HF_HUB_CACHE to a folder that can\.$/,
    );
    if (process.getuid?.() === 0) return; // may write everywhere
    const readOnly = makeFolder();
    chmodSync(readOnly, 0o555);
    await expect(pullIt({ settings: { ...settings, cacheFolder: readOnly } })).rejects.toThrow(
      /set HF_HUB_CACHE/,
    );
  });
});

describe('two that pull the same at once', () => {
  it('download it once', async () => {
    let waits = 0;
    const both = await Promise.all([pullIt({ onWait: () => waits++ }), pullIt({ onWait: () => waits++ })]);
    expect(both[0]!.path).toBe(both[1]!.path);
    expect(waits).toBe(1);
    expect(timesSent('model.safetensors')).toEqual([0]);
  });
});

describe('a model by name', () => {
  it('is a path where there is one, whatever it looks like', async () => {
    const folder = makeFolder();
    expect(await localModel(folder, { settings })).toBe(folder);
    expect(await localModel('/no/such/model', { settings })).toBe('/no/such/model');
    expect(hub.questions).toBe(0);
  });

  it('is downloaded where the cache has only a part of it', async () => {
    const { path, commit } = await pullIt();
    const blob = join(path, readlinkSync(join(path, 'model.safetensors')));
    rmSync(blob);
    hub.sent.length = 0;
    expect(await localModel(ID, { settings })).toBe(
      join(settings.cacheFolder, 'models--some-org--Some-Model.v1/snapshots', commit),
    );
    expect(timesSent('model.safetensors')).toEqual([0]);
    expect(hub.sent).toHaveLength(1);
  });

  it('is refused in words where the hub has none', async () => {
    const error = await localModel('some-org/other', { settings }).catch((caught) => caught);
    expect(error).toBeInstanceOf(HubError);
    expect(error.message).toMatch(
      /^There is no file or folder some-org\/other here, and 127.0.0.1 has no model some-org\/other;/,
    );
    expect(existsSync(settings.cacheFolder) && readdirSync(settings.cacheFolder)).toEqual([]);
  });
});
