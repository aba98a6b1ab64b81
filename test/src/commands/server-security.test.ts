import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { allowedHosts, readSecurity } from '../../../src/commands/server-security.js';
import { loadConfig, UsageError } from '../../../src/settings/config.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { certificateFixture } from '../support/tls.js';

const folder = temporaryFolder('skein-security');

let files = 0;
function file(content: string): string {
  const path = join(folder, `file-${files++}`);
  writeFileSync(path, content);
  return path;
}

const read = (flags: Record<string, unknown>) =>
  readSecurity(loadConfig({ flags: { model: 'm', ...flags } }));

function refusal(flags: Record<string, unknown>): string {
  try {
    read(flags);
  } catch (error) {
    expect(error).toBeInstanceOf(UsageError);
    expect((error as Error).message).toMatch(/^[^\n]+\.$/);
    return (error as Error).message;
  }
  throw new Error('nothing was refused');
}

describe('API keys', () => {
  it('come from flags, the environment and a file, with names and weights', () => {
    const path = file(
      '- {name: alice, key: sk-a, weight: 3, admin: true, group: team}\n- {name: bob, key: sk-b}\n',
    );
    const { apiKeys } = read({ apiKey: ['one', 'two'], apiKeyFile: path });
    expect(apiKeys.count).toBe(4);
    expect(['one', 'two', 'sk-a', 'sk-b', 'sk-', ''].map((key) => apiKeys.callerOf(key))).toEqual([
      { name: 'key-1', weight: 1, isAdmin: false, cacheGroup: 'key key-1' },
      { name: 'key-2', weight: 1, isAdmin: false, cacheGroup: 'key key-2' },
      { name: 'alice', weight: 3, isAdmin: true, cacheGroup: 'group team' },
      { name: 'bob', weight: 1, isAdmin: false, cacheGroup: 'key bob' },
      null,
      null,
    ]);
    const environment = { SKEIN_MODEL: 'm', SKEIN_API_KEY: 'a, b' };
    expect(loadConfig({ environment }).apiKey).toEqual(['a', 'b']);
    expect(read({ apiKeyFile: file('[{"name": "json", "key": "k"}]') }).apiKeys.count).toBe(1);
    expect(read({}).apiKeys.count).toBe(0);
  });

  it.each([
    ['{', 'is neither JSON nor YAML'],
    ['{}', 'must hold a list such as'],
    ['[]', 'must hold a list such as'],
    ['[5]', 'Entry 1 of'],
    ['[{name: a}]', '(a): key must be a text'],
    ['[{key: k}]', 'name must be 1 to 64'],
    ['[{name: a, key: k, weigth: 1}]', 'has an unknown field weigth'],
    ['[{name: a, key: k, weight: 0}]', 'weight must be a number above 0'],
    ['[{name: a, key: k, admin: 1}]', 'admin must be true or false'],
    ['[{name: a, key: k, group: ""}]', 'group must be 1 to 64'],
    ['[{name: a, key: k, group: a b}]', 'group must be 1 to 64'],
    ['[{name: a, key: k}, {name: a, key: l}]', 'has two keys of the name a'],
    ['[{name: a, key: k}, {name: b, key: k}]', 'The API keys a and b are the same key'],
  ])('%s in a file is refused in a sentence', (content, message) => {
    expect(refusal({ apiKeyFile: file(content) })).toContain(message);
  });

  it('have a name each, also those of flags beside those of a file', () => {
    const named = { apiKey: ['one'], apiKeyFile: file('[{name: key-1, key: k}]') };
    expect(refusal(named)).toContain('two API keys of the name key-1; those of --api-key are key-1, key-2');
  });

  it('are needed for fair queueing, two of them', () => {
    expect(refusal({ fairQueueing: true, apiKey: ['a'] })).toContain('at least two');
    read({ fairQueueing: true, apiKey: ['a', 'b'] });
    expect(refusal({ apiKeyFile: join(folder, 'missing') })).toContain('cannot be read');
  });
});

describe('origins', () => {
  it('are those of this machine, all, none, or named', () => {
    expect(read({}).corsOrigins).toEqual(['loopback']);
    expect(read({ corsOrigin: ['*'] }).corsOrigins).toBe('*');
    expect(read({ corsOrigin: ['none'] }).corsOrigins).toEqual([]);
    const two = ['https://a.example', 'http://localhost:3000'];
    expect(read({ corsOrigin: two }).corsOrigins).toEqual(two);
    const more = ['loopback', 'https://a.example'];
    expect(read({ corsOrigin: more }).corsOrigins).toEqual(more);
    for (const origin of ['a.example', 'https://a.example/', 'https://a.example/x']) {
      expect(refusal({ corsOrigin: [origin] })).toContain('without a path');
    }
    expect(refusal({ corsOrigin: ['*', 'https://a.example'] })).toContain('not both');
  });
});

describe('the names of the server', () => {
  const names = (flags: Record<string, unknown>, address: string) => {
    const config = loadConfig({ flags: { model: 'm', ...flags } });
    return allowedHosts(config, readSecurity(config).apiKeys, address);
  };

  it('are those of the loopback where it listens there and has no keys, else any, unless some are given', () => {
    for (const address of ['127.0.0.1', '127.0.1.1', '::1', '::ffff:127.0.0.1']) {
      expect(names({ host: 'mybox' }, address)).toEqual(['mybox']);
      expect(names({ apiKey: ['k'] }, address)).toBe('*');
    }
    for (const address of ['0.0.0.0', '::', '10.0.0.7', 'fe80::1']) expect(names({}, address)).toBe('*');
    const given = { allowedHost: ['host.docker.internal', '.NGROK.example'] };
    for (const more of [{}, { apiKey: ['k'] }]) {
      for (const address of ['127.0.0.1', '0.0.0.0']) {
        expect(names({ ...given, ...more }, address)).toEqual([
          '127.0.0.1',
          'host.docker.internal',
          '.ngrok.example',
        ]);
      }
    }
    expect(names({ allowedHost: ['*'] }, '127.0.0.1')).toBe('*');
  });

  it.each(['http://a.example', 'a.example:80', 'a.example/', 'a b', '.', '*.example.com', 'u@a.example'])(
    'are no %s',
    (name) => {
      expect(() => names({ allowedHost: [name] }, '127.0.0.1')).toThrow(
        /^--allowed-host is ".*"; it must be the name/,
      );
    },
  );
});

describe('TLS', () => {
  it('takes a certificate with its key, and says what is wrong with others', () => {
    const { cert, key } = certificateFixture('localhost');
    const other = certificateFixture('other');
    expect(read({ tlsCert: cert, tlsKey: key }).tls?.cert.toString()).toContain('BEGIN CERTIFICATE');
    expect(read({}).tls).toBeUndefined();
    expect(refusal({ tlsCert: cert })).toContain('--tls-cert needs --tls-key');
    expect(refusal({ tlsKey: key })).toContain('--tls-key needs --tls-cert');
    expect(refusal({ tlsCert: join(folder, 'no'), tlsKey: key })).toContain('cannot be read');
    expect(refusal({ tlsCert: key, tlsKey: key })).toContain('is no certificate in PEM');
    expect(refusal({ tlsCert: cert, tlsKey: cert })).toContain('is no private key in PEM');
    expect(refusal({ tlsCert: cert, tlsKey: other.key })).toContain('is not that of the certificate');
  });
});
