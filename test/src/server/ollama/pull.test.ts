import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { pull } from '../../../../src/hub/pull.js';
import { ApiKeys } from '../../../../src/server/web/access/api-keys.js';
import { ModelPulls } from '../../../../src/serving/on-demand/model-pulls.js';
import { ModelStore } from '../../../../src/serving/on-demand/model-store.js';
import type { OnDemandModels } from '../../../../src/serving/on-demand/on-demand-models.js';
import { FakeHub, type HubFile } from '../../../support/fake-hub.js';
import { freshFolders } from '../../../support/fresh-folders.js';
import { say, toyServer } from '../../support/toy-server.js';
import { readLines } from './support.js';

const makeFolder = freshFolders('skein-ollama-pull');
const WEIGHTS = Buffer.alloc(300_000, 7);
const FILES = new Map<string, HubFile>([
  ['config.json', { content: Buffer.from('{}'), isLarge: false }],
  ['model.safetensors', { content: WEIGHTS, isLarge: true }],
]);

interface Line {
  status?: string;
  digest?: string;
  total?: number;
  completed?: number;
  error?: string;
}

let hub: FakeHub;
beforeEach(async () => {
  hub = await FakeHub.start('org/name', FILES);
});
afterEach(() => hub.close());

/** What Node.js says of a request from an address. */
function sentFrom(remoteAddress: string, body: object) {
  const incoming = Readable.from([Buffer.from(JSON.stringify(body))]);
  return { incoming: Object.assign(incoming, { complete: true, socket: { remoteAddress } }) };
}

/** A server with an empty folder of models, asked from this machine or another. */
function server({
  keys = new ApiKeys([]),
  from = '127.0.0.1',
  folder = makeFolder(),
  isShared = false,
} = {}) {
  const settings = { endpoint: hub.endpoint, token: null, cacheFolder: folder, isOffline: false };
  const store = new ModelStore(folder);
  const unloaded: string[] = [];
  const models = {
    unload: async (name: string) => {
      unloaded.push(name);
    },
    owns: () => false,
  } as unknown as OnDemandModels;
  const pulls = new ModelPulls((repository, on) =>
    pull(repository, { settings, revision: 'main', retryDelayMs: 1, ...on }),
  );
  const toy = toyServer(() => say('x'), { life: { store, isShared, models, pulls }, apiKeys: keys });
  const ask = async (method: string, path: string, body: object, init: RequestInit = {}) =>
    toy.app.request(
      path,
      {
        ...init,
        method,
        headers: { 'content-type': 'application/json', ...init.headers },
        body: JSON.stringify(body),
      },
      sentFrom(from, body),
    );
  return { toy, ask, store, pulls, unloaded, folder };
}

describe('POST /api/pull', () => {
  it('downloads a model of the hub into the folder, and tells how far it is', async () => {
    const own = server();
    const response = await own.ask('POST', '/api/pull', { model: 'hf.co/org/name:latest' });
    expect(response.headers.get('content-type')).toBe('application/x-ndjson');
    const lines = await readLines<Line>(response);
    expect(lines[0]).toEqual({ status: 'pulling manifest' });
    expect(lines.at(-1)).toEqual({ status: 'success' });
    const ofWeights = lines.filter(({ total }) => total === WEIGHTS.length);
    expect(ofWeights.at(-1)).toEqual({
      status: expect.stringMatching(/^pulling [0-9a-f]{12}$/),
      digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      total: WEIGHTS.length,
      completed: WEIGHTS.length,
    });
    expect((await own.store.find('org/name'))?.size).toBe(WEIGHTS.length + 2);
    const tags = (await (await own.toy.get('/api/tags')).json()) as { models: object[] };
    expect(tags.models).toContainEqual(expect.objectContaining({ name: 'org/name:latest' }));
  });

  it('answers once where no stream is wanted', async () => {
    const response = await server().ask('POST', '/api/pull', { name: 'org/name', stream: false });
    expect(await response.json()).toEqual({ status: 'success' });
  });

  it('goes on where it was broken off', async () => {
    const own = server();
    const hash = createHash('sha256').update(WEIGHTS).digest('hex');
    const blobs = join(own.folder, 'models--org--name/blobs');
    mkdirSync(blobs, { recursive: true });
    writeFileSync(join(blobs, `${hash}.incomplete`), WEIGHTS.subarray(0, 100_000));
    const lines = await readLines<Line>(await own.ask('POST', '/api/pull', { model: 'org/name' }));
    expect(lines.at(-1)).toEqual({ status: 'success' });
    const starts = hub.sent.filter(({ path }) => path === 'model.safetensors').map(({ start }) => start);
    expect(starts).toEqual([100_000]);
  });

  it('is one download for all who ask, given up when all have left', async () => {
    const own = server();
    hub.troubles.push({ path: 'model.safetensors', stalls: true });
    const [first, second] = [new AbortController(), new AbortController()];
    const asked = [first, second].map(({ signal }) =>
      own.ask('POST', '/api/pull', { model: 'org/name', stream: false }, { signal }),
    );
    await expect.poll(() => hub.sent.length).toBe(2);
    expect(own.pulls.isPulling('org/name')).toBe(true);
    first.abort();
    await asked[0];
    expect(own.pulls.isPulling('org/name')).toBe(true);
    second.abort();
    await asked[1];
    expect(own.pulls.isPulling('org/name')).toBe(false);
    expect(hub.questions).toBe(2);
  });

  it('tells what the hub says, in the stream or by the status', async () => {
    const own = server();
    const lines = await readLines<Line>(await own.ask('POST', '/api/pull', { model: 'org/other' }));
    expect(lines.at(-1)!.error).toMatch(/has no model org\/other/);
    const whole = await own.ask('POST', '/api/pull', { model: 'org/other', stream: false });
    expect(whole.status).toBe(500);
    expect(await whole.json()).toEqual({ error: expect.stringMatching(/has no model org\/other/) });
  });

  it.each(['llama3.2', '../../etc/passwd', 'org/../name', '/etc/passwd', 'a/b/c', 'hf.co/a/b/c'])(
    'refuses %s, which names no repository',
    async (model) => {
      const own = server();
      const response = await own.ask('POST', '/api/pull', { model });
      expect(response.status).toBe(400);
      expect(await response.json()).toEqual({ error: expect.stringMatching(/names no repository/) });
      expect(hub.questions).toBe(0);
      expect(readdirSync(own.folder)).toEqual([]);
    },
  );
});

describe('DELETE /api/delete', () => {
  it('unloads the model and deletes its files', async () => {
    const own = server();
    await (await own.ask('POST', '/api/pull', { model: 'org/name' })).text();
    const response = await own.ask('DELETE', '/api/delete', { model: 'hf.co/org/name' });
    expect([response.status, await response.text()]).toEqual([200, '']);
    expect(own.unloaded).toEqual(['org/name']);
    expect(existsSync(join(own.folder, 'models--org--name'))).toBe(false);
    expect((await own.ask('DELETE', '/api/delete', { model: 'org/name' })).status).toBe(404);
  });

  it('leaves a model alone that is being pulled, and one of the command line', async () => {
    const own = server();
    await (await own.ask('POST', '/api/pull', { model: 'org/name' })).text();
    expect((await own.ask('DELETE', '/api/delete', { model: 'toy' })).status).toBe(400);
    expect(await own.store.find('org/name')).not.toBe(null);
  });
});

describe('DELETE /api/delete of files that are not its own', () => {
  it("refuses a model of the hub's cache, and names what deletes it", async () => {
    const own = server({ isShared: true });
    await own.ask('POST', '/api/pull', { model: 'org/name', stream: false });
    const response = await own.ask('DELETE', '/api/delete', { model: 'org/name' });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: expect.stringContaining('skein rm') });
    expect(own.unloaded).toEqual([]);
    expect(await own.store.find('org/name')).not.toBeNull();
  });

  const config = (folder: string) => {
    mkdirSync(folder, { recursive: true });
    for (const name of ['config.json', 'model.safetensors']) writeFileSync(join(folder, name), '{}');
  };

  it.each([
    ['a model behind a linked folder', 'linkdir/outside', /outside of the folder of models/],
    ['a model whose name is served from elsewhere', 'toy', /'toy' is that of a model from elsewhere/],
    ['the same by its tag', 'toy:latest', /'toy' is that of a model from elsewhere/],
  ])('refuses %s, and deletes and unloads nothing', async (_, model, error) => {
    const own = server();
    const elsewhere = makeFolder();
    config(join(elsewhere, 'outside'));
    config(join(own.folder, 'toy'));
    symlinkSync(elsewhere, join(own.folder, 'linkdir'));
    const response = await own.ask('DELETE', '/api/delete', { model });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ error: expect.stringMatching(error) });
    expect(own.unloaded).toEqual([]);
    for (const folder of [join(elsewhere, 'outside'), join(own.folder, 'toy')])
      expect(readdirSync(folder)).toHaveLength(2);
  });
});

describe('who may pull and delete', () => {
  const key = { key: 'secret', name: 'k', weight: 1 };
  const other = { key: 'other', name: 'o', weight: 1 };
  const admin = { key: 'admin', name: 'a', weight: 1, admin: true };
  const asked = [
    ['POST', '/api/pull', { model: 'org/name', stream: false }],
    ['DELETE', '/api/delete', { model: 'org/name' }],
  ] as const;

  it.each([
    ['without keys: this machine', {}, undefined, true],
    ['without keys: this machine, by IPv6', { from: '::1' }, undefined, true],
    ['without keys: no other machine', { from: '10.0.0.5' }, undefined, false],
    [
      'with keys: an admin, from anywhere',
      { keys: new ApiKeys([key, admin]), from: '10.0.0.5' },
      'admin',
      true,
    ],
    ['with keys: nobody else, wherever', { keys: new ApiKeys([key, other]) }, 'secret', false],
  ])('%s', async (_, options, bearer, isAllowed) => {
    const own = server(options);
    const headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
    for (const [method, path, body] of asked) {
      const response = await own.ask(method, path, body, { headers });
      expect(response.status).toBe(isAllowed ? 200 : 403);
      if (!isAllowed) expect(await response.json()).toEqual({ error: expect.any(String) });
    }
  });

  it('nobody does where there is no folder of models', async () => {
    const toy = toyServer(() => say('x'));
    const asked = { model: 'org/name' };
    const [local, body] = [sentFrom('127.0.0.1', asked), JSON.stringify(asked)];
    const headers = { 'content-type': 'application/json' };
    const response = await toy.app.request('/api/pull', { method: 'POST', body, headers }, local);
    expect(response.status).toBe(403);
    expect(await response.json()).toEqual({ error: expect.stringMatching(/--models-dir/) });
  });
});
