import { InProcessHost, RequestError, type TokenRequest } from 'skein';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { SharedTensors } from '../../callbacks/shared-tensors.js';
import { inferenceRequestOf } from '../../host/token-inputs.js';
import { fakeEngine } from '../support/fake-engine.js';
import { bringing, fakeAdapter } from '../support/lora-requests.js';

const ASK: TokenRequest = { promptTokens: [1, 2, 3], maxNewTokens: 8, temperature: 0 };

let host: InProcessHost;
beforeAll(async () => {
  host = new InProcessHost(
    fakeEngine('', { peftCacheManagerConfig: { optimalAdapterSize: 2, maxAdapterSize: 4 } }),
  );
  await host.ready;
});
afterAll(() => host.close());

async function tokensOf(request: TokenRequest): Promise<number[]> {
  const tokens: number[] = [];
  for await (const piece of host.submit(request)) tokens.push(...piece.tokens);
  return tokens;
}

it('a request brings its adapter, later ones name it, and one that names another is told to bring it', async () => {
  const plain = await tokensOf(ASK);
  const first = await tokensOf({ ...ASK, loraTaskId: 4n, adapter: fakeAdapter(1) });
  expect(first).not.toEqual(plain);
  expect(await tokensOf({ ...ASK, loraTaskId: 4n })).toEqual(first);
  const unknown = tokensOf({ ...ASK, loraTaskId: 5n });
  await expect(unknown).rejects.toBeInstanceOf(RequestError);
  await expect(unknown).rejects.toMatchObject({ kind: 'adapter', field: 'lora_task_id', isInvalid: true });
  expect(await tokensOf({ ...ASK, loraTaskId: 5n, adapter: fakeAdapter(2) })).not.toEqual(first);
});

it('its tensors are made once for requests that share them', () => {
  const adapter = fakeAdapter(1);
  const shared = new SharedTensors();
  const [one, other] = [1n, 2n].map((id) =>
    inferenceRequestOf(id, { ...ASK, loraTaskId: 7n, adapter, shared }),
  );
  expect(one!.inputs).toMatchObject(bringing(7n, adapter));
  for (const name of ['lora_weights', 'lora_config']) expect(one!.inputs[name]).toBe(other!.inputs[name]);
});

it.each([-1n, 2n ** 64n])('an id of %i is refused', (loraTaskId) => {
  expect(() => inferenceRequestOf(1n, { ...ASK, loraTaskId })).toThrow(
    `loraTaskId is ${loraTaskId}; it must be from 0 to 2^64 - 1.`,
  );
});
