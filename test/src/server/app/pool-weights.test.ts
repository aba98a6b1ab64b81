import { describe, expect, it } from 'vitest';
import { PoolWeights } from '../../../../cluster/routing/pool-weights.js';
import { ApiKeys } from '../../../../src/server/web/access/api-keys.js';
import { say, toyServer } from '../../support/toy-server.js';

const KEYS = new ApiKeys([
  { name: 'alice', key: 'sk-alice', weight: 1 },
  { name: 'root', key: 'sk-root', weight: 1, admin: true },
]);
const as = (name: string) => ({ headers: { authorization: `Bearer sk-${name}` } });
const refusal = async (answer: Response) => {
  const { error } = (await answer.json()) as { error: Record<string, unknown> };
  return [answer.status, error.code, error.param, error.message];
};

function gateway() {
  const poolWeights = new PoolWeights(new Map([['fp_old', 1]]));
  const server = toyServer(() => say('hi'), { apiKeys: KEYS, poolWeights });
  const set = (body: object, name = 'root') => server.post('/pool_weights', body, as(name));
  return { ...server, poolWeights, set };
}

describe('/pool_weights of a gateway', () => {
  it('tells the weights to any key, and takes others from an admin, which hold at once', async () => {
    const { get, set, poolWeights } = gateway();
    const shown = async () => (await get('/pool_weights', as('alice'))).json();
    expect(await shown()).toEqual({ object: 'pool_weights', weights: { fp_old: 1 } });
    const answer = await set({ weights: { fp_old: 95, fp_new: 5.5 } });
    expect([answer.status, await answer.json()]).toEqual([200, await shown()]);
    expect([poolWeights.of('fp_new'), poolWeights.changes]).toEqual([5.5, 1]);
    await set({ weights: {} });
    expect(await shown()).toEqual({ object: 'pool_weights', weights: {} });
    expect(poolWeights.isEmpty).toBe(true);
  });

  it('is changed by nobody without an admin key', async () => {
    const { get, post, set, poolWeights } = gateway();
    expect((await get('/pool_weights')).status).toBe(401);
    expect((await post('/pool_weights', { weights: {} })).status).toBe(401);
    expect((await refusal(await set({ weights: {} }, 'alice'))).slice(0, 2)).toEqual([
      403,
      'admin_key_required',
    ]);
    expect(poolWeights.changes).toBe(0);
  });

  it.each<[string, object, string]>([
    ['no weights', {}, 'weights'],
    ['a field that it does not have', { weights: {}, share: 1 }, 'share'],
    ['a weight below 0', { weights: { fp_a: -1 } }, 'weights.fp_a'],
    ['a weight above a million', { weights: { fp_a: 1_000_001 } }, 'weights.fp_a'],
    ['a weight that is no number', { weights: { fp_a: '1' } }, 'weights.fp_a'],
    ['zeros alone', { weights: { fp_a: 0 } }, 'weights'],
    [
      'too many engines',
      { weights: Object.fromEntries(Array.from({ length: 513 }, (_, i) => [`fp_${i}`, 1])) },
      'weights',
    ],
  ])('refuses %s, and changes nothing', async (_, body, param) => {
    const { set, poolWeights } = gateway();
    expect((await refusal(await set(body)))[0]).toBe(400);
    expect((await refusal(await set(body)))[2]).toBe(param);
    expect(poolWeights.changes).toBe(0);
  });

  it('refuses a name that is none of an engine', async () => {
    const { set } = gateway();
    expect((await set({ weights: { 'fp a': 1 } })).status).toBe(400);
  });
});

it('a server that is no gateway has no weights', async () => {
  const { get, post } = toyServer(() => say('hi'));
  for (const answer of [await get('/pool_weights'), await post('/pool_weights', { weights: {} })])
    expect((await refusal(answer)).slice(0, 2)).toEqual([404, 'no_gateway']);
});
