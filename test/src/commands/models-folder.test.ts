import { afterEach, expect, it, vi } from 'vitest';
import { modelsFolder } from '../../../src/commands/models-folder.js';
import { loadConfig } from '../../../src/settings/config.js';

afterEach(() => vi.unstubAllEnvs());

const folderOf = (flags: Record<string, unknown>) => modelsFolder(loadConfig({ flags }));

const SHARED = { path: '/hub', isShared: true };

it.each([
  ['a server without a model has the cache of the hub as its folder', {}, SHARED],
  ['by IPv6 too', { host: '::1' }, SHARED],
  ['by name too', { host: 'localhost' }, SHARED],
  ['not where other machines reach it', { host: '0.0.0.0' }, null],
  ['not with a model', { model: ['x.gguf'] }, null],
  ['another folder stays', { modelsDir: '/models' }, { path: '/models', isShared: false }],
  ['a repository of models stays alone', { modelRepository: ['/repository'] }, null],
])('%s', (_, flags, folder) => {
  vi.stubEnv('HF_HUB_CACHE', '/hub');
  expect(folderOf(flags)).toEqual(folder);
});

it('is no reason not to start where a variable of the hub is wrong', () => {
  vi.stubEnv('HF_ENDPOINT', 'nowhere');
  expect(folderOf({})).toBe(null);
});
