import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { OFFERED } from '../../../../src/hub/offered-models.js';
import { ApiKeys } from '../../../../src/server/web/access/api-keys.js';
import { LiveModels } from '../../../../src/serving/model-directory.js';
import { FakeHub, type HubFile } from '../../../support/fake-hub.js';
import { freshFolders } from '../../../support/fresh-folders.js';
import { type CatalogueOptions, catalogueLife, SMALL } from '../../support/catalogue-server.js';
import { say, toyServer } from '../../support/toy-server.js';

const makeFolder = freshFolders('skein-catalogue');
const ID = OFFERED[0]!.name;
const WEIGHTS = Buffer.alloc(300_000, 7);
const FILES = new Map<string, HubFile>([
  ['config.json', { content: Buffer.from('{}'), isLarge: false }],
  ['model.safetensors', { content: WEIGHTS, isLarge: true }],
]);
const BYTES = WEIGHTS.length + 2;

interface Entry {
  id: string;
  state: string;
  [name: string]: unknown;
}
interface Listed {
  data: Entry[];
  hub: { state: string; reason: string | null };
  may_download: boolean;
  download_refusal: string | null;
  [name: string]: unknown;
}

let hub: FakeHub;
beforeEach(async () => {
  hub = await FakeHub.start(ID, FILES);
});
afterEach(async () => {
  await hub.close();
});

type Given = Partial<CatalogueOptions> & { keys?: ApiKeys; from?: string; bearer?: string };

function server({ keys = new ApiKeys([]), from = '127.0.0.1', bearer, ...options }: Given = {}) {
  const folder = options.folder ?? makeFolder();
  const life = catalogueLife({ endpoint: hub.endpoint, models: new LiveModels(), ...options, folder });
  const toy = toyServer(() => say('x'), { life, apiKeys: keys });
  const ask = async (method: string, path: string, body?: object, key = bearer) => {
    const headers: Record<string, string> = { 'content-type': 'application/json' };
    if (key !== undefined) headers.authorization = `Bearer ${key}`;
    const text = body === undefined ? undefined : JSON.stringify(body);
    // What Node.js says of a request from an address.
    const incoming = Object.assign(Readable.from(text === undefined ? [] : [Buffer.from(text)]), {
      complete: true,
      socket: { remoteAddress: from },
    });
    return toy.app.request(
      path,
      { method, headers, ...(text !== undefined && { body: text }) },
      { incoming },
    );
  };
  const list = async (key?: string) =>
    (await (await ask('GET', '/catalogue', undefined, key)).json()) as Listed;
  const entry = async (id = ID) => (await list()).data.find((one) => one.id === id);
  const download = (model: string) => ask('POST', '/catalogue/downloads', { repository: model });
  return { life, folder, ask, list, entry, download };
}

const startsOfWeights = () =>
  hub.sent.filter(({ path }) => path === 'model.safetensors').map(({ start }) => start);

const messageOf = async (response: Response) =>
  ((await response.json()) as { error: { message: string } }).error.message;

describe('GET /catalogue', () => {
  it('lists what the hub has, with size, room and speed, and asks it once', async () => {
    const { list, entry } = server();
    expect(await list()).toMatchObject({
      data: [],
      hub: { state: 'asking', reason: null },
      may_download: true,
      memory_bytes: 10e6,
    });
    await expect.poll(async () => (await list()).hub.state).toBe('reachable');
    // 20 MB/s over 0.3 MB, and the cache of 8192 tokens does not fit whole.
    const room = Math.floor(2.5e6 / (2 * OFFERED[0]!.cachedNumbers));
    expect(await entry()).toEqual({
      id: ID,
      object: 'catalogue_entry',
      state: 'absent',
      bytes: BYTES,
      done_bytes: null,
      bytes_per_second: null,
      fits: false,
      cached_tokens: room,
      context_tokens: 8192,
      tokens_per_second: 66.7,
      problem: null,
    });
    // Models that the hub does not have are not offered.
    const listed = await list();
    expect(listed.data).toHaveLength(1);
    const { questions } = hub;
    await list();
    expect(hub.questions).toBe(questions);
  });

  it('has models of the folder, as they are measured, those that cannot be read, and no encoders', async () => {
    const folder = makeFolder();
    for (const name of ['good', 'broken', 'encoder']) {
      mkdirSync(join(folder, name));
      for (const file of ['config.json', 'model.safetensors']) writeFileSync(join(folder, name, file), 'x');
    }
    const measured: string[] = [];
    const { list } = server({
      folder,
      isOffline: true,
      measure: async (path) => {
        measured.push(path);
        if (path.endsWith('broken')) throw new Error(`${path} has no layers.`);
        return { ...SMALL, generates: !path.endsWith('encoder') };
      },
    });
    expect((await list()).data.map(({ fits }) => fits)).toEqual([null, null, null]);
    await expect.poll(async () => (await list()).data.map(({ id }) => id)).toEqual(['broken', 'good']);
    const listed = await list();
    expect(listed.hub).toEqual({ state: 'offline', reason: 'HF_HUB_OFFLINE forbids to ask the hub.' });
    expect(listed.data[0]).toMatchObject({ state: 'stored', fits: null, problem: 'broken has no layers.' });
    expect(listed.data[1]).toMatchObject({
      state: 'stored',
      bytes: 2,
      fits: true,
      cached_tokens: 4096,
      tokens_per_second: 20,
      problem: null,
    });
    expect(measured).toHaveLength(3);
    expect(hub.questions).toBe(0);
  });

  it('says that the hub cannot be reached, and leaves it alone for a while', async () => {
    hub.status = 503;
    const { list } = server();
    await list();
    await expect.poll(async () => (await list()).hub.state, { timeout: 20_000 }).toBe('unreachable');
    const { questions } = hub;
    expect(await list()).toMatchObject({ data: [], hub: { reason: expect.stringMatching(/answers 503/) } });
    expect(hub.questions).toBe(questions);
  });

  it('is not there on a server that loads nothing on demand', async () => {
    const response = await toyServer(() => say('x')).get('/catalogue');
    expect(response.status).toBe(404);
    expect(await messageOf(response)).toMatch(/--models-dir/);
  });

  it('lists 200 of a thousand models, and counts the others', async () => {
    const folder = makeFolder();
    for (let i = 0; i < 1000; i++) writeFileSync(join(folder, `m${i}.gguf`), '');
    const { list, life } = server({ folder, isOffline: true });
    const looks = vi.spyOn(life.store, 'list');
    const listed = await Promise.all(Array.from({ length: 20 }, () => list()));
    for (const { data, more } of listed) expect([data.length, more]).toEqual([200, 800]);
    // All who ask at once share a look at the disk.
    expect(looks).toHaveBeenCalledTimes(1);
    life.catalogue.close();
  });
});

describe('downloads', () => {
  it('go on without their request, each once', async () => {
    const { download, entry, list } = server();
    hub.troubles.push({ path: 'model.safetensors', stalls: true });
    const response = await download(ID);
    expect([response.status, await response.json()]).toEqual([202, { object: 'model_download', model: ID }]);
    expect(await entry()).toMatchObject({ state: 'downloading', bytes: BYTES });
    // A second one is the same.
    expect((await download(ID)).status).toBe(202);
    await expect.poll(startsOfWeights).toEqual([0]);
    expect((await list()).data.filter(({ id }) => id === ID)).toHaveLength(1);
  });

  it('are ended by DELETE, and go on where they were', async () => {
    const { ask, download, entry } = server();
    hub.troubles.push({ path: 'model.safetensors', stalls: 100_000 });
    expect((await download(ID)).status).toBe(202);
    await expect.poll(async () => (await entry())?.done_bytes).toBe(100_002);
    const cancelled = await ask('DELETE', `/catalogue/downloads/${ID}`);
    expect([cancelled.status, await cancelled.json()]).toEqual([
      200,
      { object: 'model_download.cancelled', model: ID },
    ]);
    await expect.poll(async () => (await entry())?.state).toBe('partial');
    expect(await entry()).toMatchObject({ done_bytes: 100_002, problem: null });
    expect((await ask('DELETE', `/catalogue/downloads/${ID}`)).status).toBe(404);
    hub.sent.length = 0;
    expect((await download(ID)).status).toBe(202);
    await expect.poll(async () => (await entry())?.state).toBe('stored');
    expect(hub.sent.map(({ path, start }) => [path, start])).toEqual([['model.safetensors', 100_000]]);
  });

  it('survive a connection that is cut', async () => {
    const { download, entry } = server();
    for (const cutAfter of [50_000, 70_000]) hub.troubles.push({ path: 'model.safetensors', cutAfter });
    expect((await download(ID)).status).toBe(202);
    await expect.poll(async () => (await entry())?.state).toBe('stored');
    // What of an answer was still on its way is lost with its connection.
    expect(startsOfWeights()).toHaveLength(3);
  });

  it('begun before the server was are found, with the name that the hub has for them', async () => {
    const { folder, list } = server();
    const blobs = join(folder, `models--${ID.replace('/', '--')}`, 'blobs');
    mkdirSync(blobs, { recursive: true });
    const hash = createHash('sha256').update(WEIGHTS).digest('hex');
    writeFileSync(join(blobs, `${hash}.incomplete`), WEIGHTS.subarray(0, 1234));
    expect((await list()).data).toMatchObject([{ id: ID, state: 'partial', done_bytes: 1234 }]);
    await expect.poll(async () => (await list()).data[0]?.bytes).toBe(BYTES);
  });

  it('are refused where the disk has no room besides other downloads', async () => {
    const { download, entry } = server({ takenBytes: 1e18 });
    const response = await download(ID);
    expect(response.status).toBe(500);
    expect(await messageOf(response)).toMatch(
      /needs 0 MB more, and the disk of .* has 0 MB left besides the 1000000000000 MB of other downloads/,
    );
    expect(hub.sent).toEqual([]);
    // The list keeps the reason.
    expect((await entry())?.problem).toMatch(/make room/);
  });

  it('of a name that the hub does not have are refused', async () => {
    const { download, list } = server();
    const response = await download('org/other');
    expect(response.status).toBe(404);
    expect(await messageOf(response)).toMatch(/has no model org\/other/);
    // A name that was misspelt is no model of the list.
    expect((await list()).data.map(({ id }) => id)).not.toContain('org/other');
  });

  it('say that the hub cannot be reached', async () => {
    hub.status = 503;
    const response = await server().download(ID);
    expect(response.status).toBe(503);
    expect(await messageOf(response)).toMatch(/answers 503/);
  });

  it('are four at once at most', async () => {
    const { life, download } = server();
    const pulls = vi.spyOn(life.pulls, 'pull');
    hub.troubles.push(...Array.from({ length: 5 }, () => ({ path: 'config.json', stalls: true })));
    const quants = ['A', 'B', 'C', 'D'].map((quant) => `${ID}:${quant}`);
    const stops = new AbortController();
    // Downloads whose hub never answers.
    hub.status = null;
    for (const name of quants)
      void life.pulls.pull({ id: 'org/slow', quant: name.at(-1)! }, () => {}, stops.signal).catch(() => {});
    const response = await download(ID);
    expect(response.status).toBe(429);
    expect(await messageOf(response)).toMatch(/at most 4/);
    expect(pulls).toHaveBeenCalledTimes(5);
    stops.abort();
  });

  it.each([
    'llama3.2',
    '../../etc/passwd',
    'org/../name',
    '/etc/passwd',
    'a/b/c',
    'a--b/c',
    'org/x:../y',
    '',
  ])('of %j, which names no repository, are refused, and nothing is written', async (model) => {
    const { download, folder } = server();
    expect((await download(model)).status).toBe(400);
    expect(hub.questions).toBe(0);
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe('who may download', () => {
  const key = { key: 'secret', name: 'k', weight: 1 };
  const admin = { key: 'admin', name: 'a', weight: 1, admin: true };
  const keys = new ApiKeys([key, admin]);

  it.each([
    ['without keys another machine', { from: '10.0.0.5' }],
    ["another key than an admin's", { keys, bearer: 'secret' }],
  ])('%s may not, and sees no reasons and asks no hub', async (_, options) => {
    const { ask, download, list } = server(options);
    expect((await download(ID)).status).toBe(403);
    expect((await ask('DELETE', `/catalogue/downloads/${ID}`)).status).toBe(403);
    expect(await list()).toMatchObject({
      may_download: false,
      download_refusal: expect.stringMatching(/./),
      hub: { state: 'unknown', reason: null },
    });
    expect(hub.questions).toBe(0);
  });

  it('an admin may, and others see how far it is', async () => {
    const { ask, list } = server({ keys, from: '10.0.0.5' });
    hub.troubles.push({ path: 'model.safetensors', stalls: true });
    expect((await ask('POST', '/catalogue/downloads', { repository: ID }, 'admin')).status).toBe(202);
    expect((await list('secret')).data).toMatchObject([{ id: ID, state: 'downloading' }]);
    expect((await ask('DELETE', `/catalogue/downloads/${ID}`, undefined, 'admin')).status).toBe(200);
  });

  it('no client without a key, where there are keys', async () => {
    const { ask } = server({ keys });
    expect((await ask('GET', '/catalogue')).status).toBe(401);
    expect((await ask('POST', '/catalogue/downloads', { repository: ID })).status).toBe(401);
  });
});
