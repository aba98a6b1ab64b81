import { fileURLToPath } from 'node:url';
import { openEngine } from 'skein';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AdapterRoom } from '../../../callbacks/worker-messages.js';
// Its thread's script is compiled.
import { ModelAdapters } from '../../../dist/src/serving/adapters/model-adapters.js';
import type { ModelConfig } from '../../../models/model-config.js';
import { withFlagNames } from '../../../src/options/flag-names.js';
import { TestEngines, tinyModelPath } from '../../../tools/support/test-engine.js';

const fixture = fileURLToPath(new URL('../../fixtures/lora-plain', import.meta.url));
const engines = new TestEngines();
let config: ModelConfig;
beforeAll(async () => {
  const { directory } = await engines.get(tinyModelPath('gqa'), 'f32');
  config = openEngine(directory).manifest.config;
});
afterAll(() => engines.remove());

/** The error of a load where the caches have these numbers of pages, each of 100 rows of 64 bytes. */
async function errorIn(
  pages: Pick<AdapterRoom, 'hostPages' | 'devicePages'>,
  room: Partial<AdapterRoom> = {},
) {
  const adapters = new ModelAdapters({
    model: { engine: {} } as never,
    config,
    room: {
      ...pages,
      ...{ maxAdapters: 8, maxRank: 64, maxBytes: 10 ** 6, width: 16, rowsPerPage: 100, rankUnit: 16 },
      ...room,
    },
    forget: () => {},
    inFlight: () => ({ running: new Set(), waiting: new Set() }),
  });
  try {
    await adapters.load('a', fixture);
    return null;
  } catch (error) {
    return withFlagNames((error as { text: string }).text).replace(
      /cannot be loaded: \S+: /,
      'cannot be loaded: ',
    );
  } finally {
    await adapters.close();
  }
}

it('an adapter that no iteration could read is refused where it is loaded, and not with each request', async () => {
  expect(await errorIn({ hostPages: 9, devicePages: 9 })).toBeNull();
  expect(await errorIn({ hostPages: 9, devicePages: 1 })).toBe(
    "The adapter 'a' cannot be loaded: it takes 0.0256 MB where iterations read adapters, which may take 0.0064 MB there (--lora-memory-fraction).",
  );
  expect(await errorIn({ hostPages: 1, devicePages: 9 })).toBe(
    "The adapter 'a' cannot be loaded: it takes 0.0256 MB, and others 0 of the 0.0064 MB that all may take together (--lora-cache-bytes).",
  );
});

it('one of too many bytes names the cache that is too small', async () => {
  const told = (option: string) =>
    `The adapter 'a' cannot be loaded: takes 5120 bytes in float32; at most 1000 are accepted (${option}).`;
  const limit = { maxBytes: 1000 };
  expect(await errorIn({ hostPages: 1, devicePages: 2 }, limit)).toBe(told('--lora-cache-bytes'));
  expect(await errorIn({ hostPages: 2, devicePages: 1 }, limit)).toBe(told('--lora-memory-fraction'));
});
