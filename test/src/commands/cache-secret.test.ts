import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { takeCacheSecret } from '../../../src/commands/cache-secret.js';
import { lacksCacheSecret, loadingOptions } from '../../../src/commands/loading-options.js';
import { cacheSaltFor } from '../../../src/server/web/access/cache-salt.js';
import type { Config } from '../../../src/settings/config.js';
import { freshFolders } from '../../support/fresh-folders.js';

const folder = freshFolders('skein-secret');
const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
afterEach(() => void written.mockClear());

const start = (config: Partial<Config>) => {
  takeCacheSecret({ models: [], ...config } as Config);
  return cacheSaltFor({ cacheGroup: 'key alice' }, undefined);
};
const told = () => written.mock.calls.map(([text]) => String(text));

describe('the secret of cached prompts', () => {
  it('is made at the first start, for its owner alone, and is the same at the next', () => {
    const cacheSecretFile = join(folder(), 'secret');
    const first = start({ cacheSecretFile });
    expect(statSync(cacheSecretFile).mode & 0o777).toBe(0o600);
    expect(readFileSync(cacheSecretFile, 'utf8')).toMatch(/^[0-9a-f]{64}\n$/);
    expect(start({ cacheSecretFile: join(folder(), 'other') })).not.toBe(first);
    expect(start({ cacheSecretFile })).toBe(first);
    expect(told()).toEqual([]);
  });

  it('is refused if it is short or cannot be had, and told of if others may read it', () => {
    const cacheSecretFile = join(folder(), 'secret');
    writeFileSync(cacheSecretFile, 'x'.repeat(31));
    expect(() => start({ cacheSecretFile })).toThrow(/has 31 characters; a secret has at least 32/);
    expect(() => start({ cacheSecretFile: folder() })).toThrow(/cannot be read/);
    expect(() => start({ cacheSecretFile: join(folder(), 'no', 'secret') })).toThrow(/cannot be made/);
    writeFileSync(cacheSecretFile, 'x'.repeat(32));
    chmodSync(cacheSecretFile, 0o644);
    start({ cacheSecretFile });
    expect(told()).toEqual([expect.stringMatching(/other users of this machine may use the secret/)]);
  });
});

describe('a disk for the cache beside API keys', () => {
  const model = { name: 'm', model: 'path', options: { diskCache: '/b' }, adapters: {} };
  const config = { diskCache: '/a', apiKey: ['k'], models: [model] } as unknown as Config;
  const diskOf = (given: Config) => loadingOptions(given.models[0]!, given).diskCache;

  it('is not used without a secret that stays, and that is said', () => {
    expect(diskOf(config)).toBeUndefined();
    expect(diskOf({ ...config, apiKey: undefined, apiKeyFile: 'keys' })).toBeUndefined();
    start(config);
    expect(told()).toEqual([expect.stringMatching(/--disk-cache is not used: .* needs --cache-secret-file/)]);
  });

  it('takes its limit with it, as from models without one beside others', () => {
    const limited = { ...config, diskCacheBytes: 1e9 } as Config;
    const limitOf = (given: Config) => loadingOptions(given.models[0]!, given).diskCacheBytes;
    expect(limitOf(limited)).toBeUndefined();
    expect(limitOf({ ...limited, apiKey: undefined })).toBe(1e9);
    const other = { ...model, options: {} };
    const models = [other, model] as unknown as Config['models'];
    expect(limitOf({ ...limited, apiKey: undefined, diskCache: undefined, models })).toBeUndefined();
    // Without any folder the engine refuses it.
    expect(limitOf({ ...limited, apiKey: undefined, diskCache: undefined, models: models.slice(0, 1) })).toBe(
      1e9,
    );
  });

  it('is used with one, and without keys', () => {
    const cacheSecretFile = join(folder(), 'secret');
    expect(diskOf({ ...config, cacheSecretFile })).toBe('/b');
    expect(diskOf({ ...config, apiKey: undefined })).toBe('/b');
    expect(lacksCacheSecret({ ...config, diskCache: undefined, models: [] })).toBe(false);
    start({ ...config, cacheSecretFile });
    expect(told()).toEqual([]);
  });
});
