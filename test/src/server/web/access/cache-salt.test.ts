import { describe, expect, it } from 'vitest';
import { ApiKeys } from '../../../../../src/server/web/access/api-keys.js';
import { cacheSaltFor } from '../../../../../src/server/web/access/cache-salt.js';
import { say, toyServer } from '../../../support/toy-server.js';

const apiKeys = new ApiKeys([
  { name: 'alice', key: 'ka', weight: 1 },
  { name: 'bob', key: 'kb', weight: 1 },
  { name: 'carol', key: 'kc', weight: 1, group: 'team' },
  { name: 'dave', key: 'kd', weight: 1, group: 'team' },
  // The name of a group is none of a key.
  { name: 'team', key: 'ke', weight: 1 },
  { name: 'mallory', key: 'kf', weight: 1, group: 'alice' },
]);
const KEYS = ['ka', 'kb', 'kc', 'kd', 'ke', 'kf'];

const ASK = [
  ['/v1/completions', { prompt: 'x' }],
  ['/v1/completions', { prompt: [[97], [98]], n: 2 }],
  ['/v1/chat/completions', { messages: [{ role: 'user', content: 'x' }] }],
  ['/v1/chat/completions', { messages: [{ role: 'user', content: 'x' }], stream: true }],
  ['/v1/responses', { input: 'x' }],
] as const;

/** The salts that the engine got for it. */
async function saltsOf(key: string, path: string, body: object) {
  const toy = toyServer(() => say('ok'), { apiKeys });
  const response = await toy.post(path, body, { headers: { 'x-api-key': key } });
  expect(response.status).toBe(200);
  await response.text();
  return new Set(toy.engine.requests.map(({ cacheSalt }) => cacheSalt));
}

describe('the salt of a key', () => {
  it.each(ASK)('is its own on %s, and one for those of its group', async (path, body) => {
    const salts = await Promise.all(KEYS.map((key) => saltsOf(key, path, body)));
    for (const own of salts) expect([own.size, [...own][0]]).toEqual([1, expect.any(BigInt)]);
    const [alice, bob, carol, dave, team, mallory] = salts.map((own) => [...own][0]!);
    expect(carol).toBe(dave);
    expect(new Set([alice, bob, carol, team, mallory]).size).toBe(5);
  });

  it('is the same for all that the key asks', async () => {
    const salts = await Promise.all(ASK.map(([path, body]) => saltsOf('ka', path, body)));
    expect(new Set(salts.flatMap((own) => [...own])).size).toBe(1);
  });

  it('is mixed with that of the request, and cannot be had by naming one', async () => {
    const of = async (key: string, cache_salt?: string) =>
      [...(await saltsOf(key, '/v1/completions', { prompt: 'x', cache_salt }))][0]!;
    const alice = await of('ka');
    const salted = await of('ka', 'mine');
    expect(await of('ka', 'mine')).toBe(salted);
    expect(salted).not.toBe(alice);
    const tries = ['mine', 'alice', 'key alice', 'group alice', '', String(alice), String(salted)].filter(
      Boolean,
    );
    for (const cache_salt of tries) {
      expect([alice, salted]).not.toContain(await of('kb', cache_salt));
    }
    expect(await of('kc', 'mine')).toBe(await of('kd', 'mine'));
  });

  it('is none where there are no keys, but that of the request', () => {
    expect(cacheSaltFor({ cacheGroup: null }, undefined)).toBeUndefined();
    expect(cacheSaltFor({ cacheGroup: null }, 7n)).toBe(7n);
  });
});

describe('admins', () => {
  const isAdmin = (keys: ConstructorParameters<typeof ApiKeys>[0]) => {
    const all = new ApiKeys(keys);
    return [all.hasAdmin, ...keys.map(({ key }) => all.callerOf(key)!.isAdmin)];
  };
  const one = { name: 'a', key: 'ka', weight: 1 };
  const other = { name: 'b', key: 'kb', weight: 1 };

  it('are those that are named, and a key that is alone', () => {
    expect(isAdmin([one])).toEqual([true, true]);
    expect(isAdmin([{ ...one, admin: false }])).toEqual([false, false]);
    expect(isAdmin([one, other])).toEqual([false, false, false]);
    expect(isAdmin([one, { ...other, admin: true }])).toEqual([true, false, true]);
  });
});
