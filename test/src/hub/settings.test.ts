import { writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseRepository, repositoryOf } from '../../../src/hub/repository.js';
import { hubSettings } from '../../../src/hub/settings.js';
import { freshFolders } from '../../support/fresh-folders.js';

const makeFolder = freshFolders('skein-hub');

describe('what names a repository', () => {
  it.each([
    ['HuggingFaceTB/SmolLM2-135M-Instruct', { id: 'HuggingFaceTB/SmolLM2-135M-Instruct', quant: null }],
    ['a/b.c_d-1:Q8_0', { id: 'a/b.c_d-1', quant: 'Q8_0' }],
  ])('%s does', (text, repository) => expect(parseRepository(text)).toEqual(repository));

  it.each([
    'model',
    './a/b',
    '/a/b',
    'a/b/c',
    'a/',
    '/b',
    'a/b:',
    'a/../b',
    'a/b.gguf',
    '~/b',
    'a\\b',
    'a/b:Q8 0',
    'a--b/c',
    '',
  ])('%j does not', (text) => {
    expect(parseRepository(text)).toBeNull();
    expect(() => repositoryOf(text)).toThrow(
      /names no repository of models; ORG\/NAME or ORG\/NAME:QUANT is expected/,
    );
  });
});

describe('the settings of the hub', () => {
  it('are those of everybody where nothing is set', () => {
    const home = makeFolder();
    expect(hubSettings({ HF_HOME: home })).toEqual({
      endpoint: 'https://huggingface.co',
      token: null,
      cacheFolder: join(home, 'hub'),
      isOffline: false,
    });
    expect(hubSettings({}).cacheFolder).toBe(join(homedir(), '.cache/huggingface/hub'));
    expect(hubSettings({ XDG_CACHE_HOME: '/x' }).cacheFolder).toBe('/x/huggingface/hub');
    expect(hubSettings({ HF_HUB_CACHE: '/y', HUGGINGFACE_HUB_CACHE: '/z' }).cacheFolder).toBe('/y');
    expect(hubSettings({ HUGGINGFACE_HUB_CACHE: '/z' }).cacheFolder).toBe('/z');
  });

  it('have the token of the environment, else the one that was left by a login', () => {
    const home = makeFolder();
    writeFileSync(join(home, 'token'), 'stored\n');
    expect(hubSettings({ HF_HOME: home }).token).toBe('stored');
    expect(hubSettings({ HF_HOME: home, HF_TOKEN: ' given ' }).token).toBe('given');
    expect(hubSettings({ HF_TOKEN_PATH: join(home, 'token') }).token).toBe('stored');
  });

  it.each([
    ['1', true],
    ['TRUE', true],
    ['on', true],
    ['yes', true],
    ['0', false],
    ['', false],
    ['no', false],
  ])('HF_HUB_OFFLINE=%j', (value, isOffline) => {
    expect(hubSettings({ HF_HUB_OFFLINE: value }).isOffline).toBe(isOffline);
  });

  it('refuse an endpoint that is no address', () => {
    expect(hubSettings({ HF_ENDPOINT: 'http://mirror:8080/' }).endpoint).toBe('http://mirror:8080');
    expect(() => hubSettings({ HF_ENDPOINT: 'mirror' })).toThrow(/^HF_ENDPOINT is "mirror"; an address/);
    expect(() => hubSettings({ HF_ENDPOINT: 'ftp://mirror' })).toThrow(/HF_ENDPOINT/);
  });

  it.each(['http://u:hunter2@mirror', 'https://hunter2@mirror', 'u:hunter2@mirror', 'hunter2@[mirror'])(
    'refuse %s without showing it',
    (HF_ENDPOINT) => {
      let message = '';
      try {
        hubSettings({ HF_ENDPOINT });
      } catch (error) {
        message = (error as Error).message;
      }
      expect(message).toMatch(/^HF_ENDPOINT holds a user or a password; .*HF_TOKEN/);
      expect(message).not.toContain('hunter2');
    },
  );

  it('take an address with a sign that is no secret', () => {
    expect(hubSettings({ HF_ENDPOINT: 'http://mirror/@team' }).endpoint).toBe('http://mirror/@team');
  });
});
