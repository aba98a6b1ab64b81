import { afterEach, expect, it, vi } from 'vitest';
import { withCacheAsFolder } from '../../../src/commands/cache-as-folder.js';
import { loadConfig } from '../../../src/settings/config.js';

afterEach(() => vi.unstubAllEnvs());

const folderOf = (flags: Record<string, unknown>) => withCacheAsFolder(loadConfig({ flags })).modelsDir;

it.each([
  ['a server without a model has the cache of the hub as its folder', {}, '/hub'],
  ['by IPv6 too', { host: '::1' }, '/hub'],
  ['by name too', { host: 'localhost' }, '/hub'],
  ['not where other machines reach it', { host: '0.0.0.0' }, undefined],
  ['not with a model', { model: ['x.gguf'] }, undefined],
  ['another folder stays', { modelsDir: '/models' }, '/models'],
  ['a repository of models stays alone', { modelRepository: ['/repository'] }, undefined],
])('%s', (_, flags, folder) => {
  vi.stubEnv('HF_HUB_CACHE', '/hub');
  expect(folderOf(flags)).toBe(folder);
});

it('is no reason not to start where a variable of the hub is wrong', () => {
  vi.stubEnv('HF_ENDPOINT', 'nowhere');
  expect(folderOf({})).toBe(undefined);
});
