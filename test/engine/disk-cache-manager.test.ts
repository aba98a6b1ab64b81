import { randomBytes } from 'node:crypto';
import { readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { InProcessHost, type OptionalParams } from 'skein';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { takeCacheSecret } from '../../src/commands/cache-secret.js';
import { cacheSaltFor, useCacheSecret } from '../../src/server/web/access/cache-salt.js';
import type { Config } from '../../src/settings/config.js';
import { TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';
import { fakeEngine } from '../support/fake-engine.js';
import { freshFolders } from '../support/fresh-folders.js';
import { madeModelPath } from '../support/made-models.js';

const folder = freshFolders('skein-disk-host');
const engines = new TestEngines();
afterAll(() => engines.remove());
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

let enginePath = '';
/** An engine of a model whose layers keep states. */
let withStates = '';
beforeAll(async () => {
  enginePath = (await engines.get(tinyModelPath('gqa'), 'f32')).directory;
  withStates = (await engines.get(madeModelPath(folder(), 'qwen3.5'), 'f32')).directory;
});

const PROMPT = Int32Array.from({ length: 50 }, (_, i) => 3 + ((i * 37) % 90));

async function open(
  diskCachePath: string,
  more: OptionalParams = {},
  errors: Error[] = [],
  path = enginePath,
) {
  const kvCacheConfig = { enableBlockReuse: true, diskCachePath, maxTokens: 512, ...more.kvCacheConfig };
  const host = new InProcessHost({
    enginePath: path,
    modelType: 'InflightFusedBatching',
    schedulerPolicy: 'GUARANTEED_NO_EVICT',
    maxBeamWidth: 1,
    optionalParams: { tokensPerBlock: 8, checkIntegrity: true, threads: 1, ...more, kvCacheConfig },
    onError: (error) => errors.push(error),
  });
  closing.push(() => host.close());
  await host.ready;
  return host;
}

async function answer(host: InProcessHost, cacheSalt?: bigint, promptTokens = PROMPT) {
  const found: [number, number][] = [];
  let cached = -1;
  const salt = cacheSalt === undefined ? {} : { cacheSalt };
  const request = { promptTokens, maxNewTokens: 9, temperature: 0, returnLogProbs: true, ...salt };
  for await (const piece of host.submit(request)) {
    for (const [i, token] of piece.tokens.entries()) found.push([token, piece.logProbs![i]!]);
    cached = piece.cachedTokens ?? cached;
  }
  return { found, cached };
}

describe('an engine that keeps its cache on a disk', () => {
  it('answers after a restart with the same bits, from what the one before has left', async () => {
    const path = join(folder(), 'made');
    const first = await open(path);
    const alone = await answer(first);
    expect(alone.cached).toBe(0);
    await first.close();
    expect(readdirSync(path)).toHaveLength(7);
    expect(statSync(path).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(path)) expect(statSync(join(path, name)).mode & 0o777).toBe(0o600);
    const second = await open(path);
    expect(await answer(second)).toEqual({ found: alone.found, cached: 48 });
    expect((await answer(second, 5n)).cached).toBe(0);
  });

  it('finds after a restart what a key has left, and nothing of it for another key or without the secret', async () => {
    const path = folder();
    const secretFile = join(folder(), 'secret');
    const start = () => takeCacheSecret({ cacheSecretFile: secretFile } as Config);
    const salt = (cacheGroup: string) => cacheSaltFor({ cacheGroup }, undefined);
    start();
    const first = await open(path);
    const alone = await answer(first, salt('key a'));
    await first.close();
    useCacheSecret(randomBytes(32));
    const second = await open(path);
    expect((await answer(second, salt('key a'))).cached).toBe(0);
    await second.close();
    start();
    const third = await open(path);
    expect((await answer(third, salt('key b'))).cached).toBe(0);
    expect((await answer(third)).cached).toBe(0);
    expect(await answer(third, salt('key a'))).toEqual({ found: alone.found, cached: 48 });
  });

  it('shares the folder with another one that runs, and neither takes what is not whole', async () => {
    const path = folder();
    const [one, other] = await Promise.all([open(path), open(path)]);
    const [first, second] = await Promise.all([answer(one), answer(other)]);
    expect(second).toEqual(first);
    await Promise.all([one.close(), other.close()]);
    expect(readdirSync(path)).toHaveLength(7);
    expect((await answer(await open(path))).cached).toBe(48);
  });

  it('keeps nothing of engines that compute other bits apart from its own', async () => {
    const path = folder();
    const first = await open(path);
    await answer(first);
    await first.close();
    const other = await open(path, { kvDtype: 'bf16' });
    expect((await answer(other)).cached).toBe(0);
    await other.close();
    expect(readdirSync(path)).toHaveLength(14);
  });

  it('has erased the files when a reset is answered', async () => {
    const path = folder();
    const host = await open(path);
    await answer(host);
    expect(await host.resetCache()).toBe(7);
    expect(readdirSync(path)).toEqual([]);
  });

  it('goes on where the folder cannot be made, and says so once', async () => {
    const file = join(folder(), 'file');
    writeFileSync(file, '');
    const errors: Error[] = [];
    const host = await open(join(file, 'below'), {}, errors);
    const { cached } = await answer(host);
    expect(cached).toBe(0);
    expect((await answer(host)).cached).toBe(49);
    expect(errors.map(({ message }) => message)).toContainEqual(
      expect.stringMatching(/^The KV cache's folder .*below cannot be made: ENOTDIR/),
    );
  });

  it('says that there is nothing to keep where no layer attends', async () => {
    const { directory } = await engines.get(madeModelPath(folder(), 'mamba2'), 'f32');
    const errors: Error[] = [];
    const path = folder();
    await open(path, { maxSeqLen: 64 }, errors, directory);
    await vi.waitFor(() => expect(errors).toHaveLength(1));
    expect(errors[0]!.message).toBe(
      `No blocks of the KV cache are kept in ${path}: no layer attends, so there is nothing in the blocks.`,
    );
  });

  it('does not start where the folder may not even hold one block', async () => {
    const kvCacheConfig = { enableBlockReuse: true, diskCacheSize: 1000 };
    await expect(open(folder(), { kvCacheConfig })).rejects.toThrow(
      /^kvCacheConfig\.diskCacheSize is 1000; the files of one KV cache block take \d+ bytes\.$/,
    );
  });

  it('says why, where its blocks cannot be kept', async () => {
    const errors: Error[] = [];
    const path = folder();
    const kvCacheConfig = { enableBlockReuse: true, diskCachePath: path };
    const host = new InProcessHost({
      ...fakeEngine('', { kvCacheConfig }),
      onError: (error) => errors.push(error),
    });
    closing.push(() => host.close());
    await host.ready;
    await answer(host);
    expect(errors.map(({ message }) => message)).toEqual([
      `No blocks of the KV cache are kept in ${path}: the content of the engine is not known.`,
    ]);
  });
});

describe('a model with states', () => {
  const start = (path: string) => open(path, {}, [], withStates);
  const NEXT = Int32Array.from(
    [...PROMPT, ...Array.from({ length: 20 }, (_, i) => 3 + ((i * 11) % 40))],
    (token) => (token % 40) + 3,
  );
  const FIRST = NEXT.slice(0, PROMPT.length);
  const statesIn = (path: string) => readdirSync(path).filter((name) => name.endsWith('s.skein-kv'));

  it('goes on after a restart where states lie behind its blocks, with the same bits', async () => {
    const path = folder();
    const first = await start(path);
    const alone = await answer(first, undefined, FIRST);
    const next = await answer(first, 9n, NEXT);
    await first.close();
    // After the last full block of each prompt and of each answer.
    expect(statesIn(path)).toHaveLength(4);
    const second = await start(path);
    expect(await answer(second, undefined, FIRST)).toEqual({ found: alone.found, cached: 48 });
    const third = await start(path);
    // The turn after it begins after the first turn's prompt.
    expect(await answer(third, undefined, NEXT)).toEqual({ found: next.found, cached: 48 });
  });

  it('computes again what has no states on the disk, or damaged ones', async () => {
    const path = folder();
    const first = await start(path);
    const alone = await answer(first, undefined, FIRST);
    await first.close();
    for (const name of statesIn(path)) truncateSync(join(path, name), 100);
    const second = await start(path);
    expect(await answer(second, undefined, FIRST)).toEqual({ found: alone.found, cached: 0 });
    await second.close();
    const third = await start(path);
    expect(await answer(third, undefined, FIRST)).toEqual({ found: alone.found, cached: 48 });
    await third.close();
    for (const name of statesIn(path)) rmSync(join(path, name));
    const fourth = await start(path);
    expect(await answer(fourth, undefined, FIRST)).toEqual({ found: alone.found, cached: 0 });
    expect(await answer(fourth, undefined, FIRST)).toEqual({ found: alone.found, cached: 48 });
  });

  it('erases states too when the cache is reset', async () => {
    const path = folder();
    const host = await start(path);
    await answer(host, undefined, FIRST);
    await host.resetCache();
    expect(readdirSync(path)).toEqual([]);
  });
});

describe('options of the disk', () => {
  const made = (optionalParams: OptionalParams) => () => new InProcessHost(fakeEngine('', optionalParams));
  const diskCachePath = '/nowhere';

  it('are refused without block reuse, and with overlap', () => {
    expect(made({ kvCacheConfig: { diskCachePath } })).toThrow(
      /kvCacheConfig.diskCachePath.*without enableBlockReuse no block is kept/,
    );
    expect(
      made({ kvCacheConfig: { diskCachePath, enableBlockReuse: true }, enableTrtOverlap: true }),
    ).toThrow(/with enableTrtOverlap there is hardly a moment/);
    expect(made({ kvCacheConfig: { diskCacheSize: -1 } })).toThrow(/diskCacheSize is -1/);
  });
});
