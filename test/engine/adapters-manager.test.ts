import { afterEach, describe, expect, it } from 'vitest';
import type { OptionalParams } from '../../callbacks/gpt-manager-options.js';
import type { KvCacheEvent } from '../../kvcache/cache-events.js';
import { collectResult, makeRequest, runAlone } from '../../tools/support/loop-harness.js';
import { fakeEngine } from '../support/fake-engine.js';
import { bringing, fakeAdapter, naming } from '../support/lora-requests.js';
import { ManagerClient } from '../support/manager-client.js';

const clients: ManagerClient[] = [];
afterEach(async () => {
  for (const { manager } of clients.splice(0)) await manager.terminate();
});

const ADAPTERS: OptionalParams = {
  peftCacheManagerConfig: { optimalAdapterSize: 2, maxAdapterSize: 4, hostCacheSize: 4 * 1344 },
};

function start(params: OptionalParams, query = '', more: object = {}): ManagerClient {
  const client = new ManagerClient({ ...fakeEngine(query, params), ...more });
  clients.push(client);
  return client;
}

const resultOf = (client: ManagerClient, id: bigint) => collectResult(client.responses.get(id) ?? []);
const alone = (seed: number) =>
  runAlone(makeRequest(1n, [1, 2, 3], 6, bringing(1n, fakeAdapter(seed))), {
    adapters: { slots: 1, hostPages: 4, devicePages: 4 },
  }).tokens;

describe('a manager with room for adapters', () => {
  it('takes them from tensors, in its worker, and remembers them by their task', async () => {
    const client = start(ADAPTERS);
    await client.submit(makeRequest(1n, [1, 2, 3], 6, bringing(2n ** 64n - 1n, fakeAdapter(3))));
    await client.submit(makeRequest(2n, [1, 2, 3], 6, naming(2n ** 64n - 1n)));
    await client.submit(makeRequest(3n, [1, 2, 3], 6));
    expect([1n, 2n].map((id) => resultOf(client, id).tokens)).toEqual([alone(3), alone(3)]);
    expect(resultOf(client, 3n).tokens).toEqual(runAlone(makeRequest(3n, [1, 2, 3], 6)).tokens);
  });

  it('asks for the weights again once its worker has died', async () => {
    const params = { ...ADAPTERS, workerRestart: { delayMs: 1, maxDelayMs: 20 } };
    const client = start(params, 'dieToken=99');
    await client.submit(makeRequest(1n, [1, 2, 3], 6, bringing(1n, fakeAdapter(3))));
    await client.submit(makeRequest(2n, [99], 6, naming(1n)));
    expect(resultOf(client, 2n).error).toMatch(/ended unexpectedly/);
    await client.submit(makeRequest(3n, [1, 2, 3], 6, naming(1n)));
    expect(resultOf(client, 3n).error).toMatch(
      /^lora_task_id is 1, .* send lora_weights and lora_config .*\(again\)\.$/,
    );
    await client.submit(makeRequest(4n, [1, 2, 3], 6, bringing(1n, fakeAdapter(3))));
    expect(resultOf(client, 4n).tokens).toEqual(alone(3));
  });

  it('tells in events about blocks which adapter they were computed with', async () => {
    const events: KvCacheEvent[] = [];
    const params = { ...ADAPTERS, kvCacheConfig: { enableBlockReuse: true } };
    const client = start(params, '', { onKvCacheEvents: (more: KvCacheEvent[]) => events.push(...more) });
    const prompt = Array.from({ length: 9 }, (_, i) => i);
    await client.submit(makeRequest(1n, prompt, 2, bringing(7n, fakeAdapter(3))));
    await client.submit(makeRequest(2n, prompt, 2));
    await client.manager.shutdown();
    const stored = events.flatMap(({ data }) => (data.type === 'stored' ? data.blocks : []));
    expect(stored.map(({ loraId }) => loraId)).toEqual([7n, null]);
  });
});

describe('a manager without it', () => {
  it('refuses them by name', async () => {
    const client = start({});
    await client.submit(makeRequest(1n, [1], 2, naming(1n)));
    expect(resultOf(client, 1n).error).toMatch(
      /^lora_task_id is refused: LoRA adapters need .*peftCacheManagerConfig/,
    );
  });

  it.each<[string, object, RegExp]>([
    ['an unknown option', { maxAdapter: 3 }, /peftCacheManagerConfig\.maxAdapter is not an option/],
    [
      'a wrong value',
      { maxAdapterSize: 0 },
      /peftCacheManagerConfig\.maxAdapterSize is 0; it must be a whole number from 1/,
    ],
    [
      'no share',
      { deviceCachePercent: 5 },
      /peftCacheManagerConfig\.deviceCachePercent is 5; it must be a number above 0/,
    ],
  ])('refuses %s of the configuration when it is made', (_, peftCacheManagerConfig, why) => {
    expect(() => start({ peftCacheManagerConfig })).toThrow(why);
  });

  it.each<[object, RegExp]>([
    [
      { hostCacheSize: 100 },
      /hostCacheSize is 100; a page takes \d+ bytes \(less with a lower .*maxAdapterSize\), and adapters need at least one page\.$/,
    ],
    [
      { numHostModuleLayer: 3 },
      /numHostModuleLayer is 3; a page has \d+ rows \(less with a lower .*maxAdapterSize\), and adapters need at least one page\.$/,
    ],
    [{ numDeviceModuleLayer: 3 }, /numDeviceModuleLayer is 3; a page has \d+ rows/],
    [
      { deviceCachePercent: 1e-9 },
      /deviceCachePercent is 1e-9 of \d+ bytes that .* leave; a page takes \d+ bytes/,
    ],
  ])('does not start with a cache that holds not a page: %j', async (peftCacheManagerConfig, why) => {
    const { manager } = start({ peftCacheManagerConfig, workerRestart: false });
    await expect(manager.ready).rejects.toThrow(why);
  });
});
