import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  CallbackError,
  GptManager,
  type GptManagerOptions,
  type KvCacheEvent,
  type OptionalParams,
} from 'skein';
import { beforeEach, describe, expect, it } from 'vitest';
import { fakeEngine, supportModule } from '../support/fake-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';

const folder = temporaryFolder('skein-asynchronous');
let count = 0;
beforeEach(() => {
  process.env.SKEIN_TEST_SEEN = join(folder, String(count++));
});

function seen(): string[] {
  try {
    return readFileSync(process.env.SKEIN_TEST_SEEN!, 'utf8').trim().split('\n');
  } catch {
    return [];
  }
}

function manage(query: string, options: Partial<GptManagerOptions> = {}, params: OptionalParams = {}) {
  const errors: Error[] = [];
  const url = pathToFileURL(supportModule('asynchronous-callbacks.mjs'));
  url.search = query;
  const kvCacheConfig = { enableBlockReuse: true, eventBufferMaxSize: 100 };
  const engine = fakeEngine('stepMs=1', { kvCacheConfig, idlePollIntervalMs: 1, ...params });
  const manager = new GptManager({
    ...engine,
    callbackModule: url,
    onError: (error: Error) => void errors.push(error),
    ...options,
  } as GptManagerOptions);
  return { manager, errors };
}

describe('callbacks of a module that are asynchronous', () => {
  it('bring requests, stop them and hear of blocks; what they are rejected with is told by name and request', async () => {
    const events: KvCacheEvent[] = [];
    const { manager, errors } = manage('hostile', { onKvCacheEvents: (some) => void events.push(...some) });
    await manager.ready;
    await expect.poll(() => seen().filter((line) => /^[12] /.test(line))).toHaveLength(2);
    // Nothing is in flight: the reset itself reports what it drops.
    expect(await manager.resetCache()).toBeGreaterThan(0);
    await expect.poll(() => events.some(({ data }) => data.type === 'removed')).toBe(true);
    await manager.shutdown();
    expect([manager.state, manager.failure]).toEqual(['stopped', null]);
    expect(seen()).toEqual(expect.arrayContaining(['1 3', '2 5', 'event created', 'event stored']));
    // The host's own option gets the same.
    expect(events.map(({ data }) => `event ${data.type}`)).toEqual(
      seen().filter((line) => line.startsWith('event')),
    );
    const of = (callback: string) =>
      errors.filter(
        (error): error is CallbackError => error instanceof CallbackError && error.callback === callback,
      );
    expect(of('getInferenceRequests').map(({ message }) => message)).toEqual([
      'The callback getInferenceRequests failed: get on purpose',
      'The callback getInferenceRequests failed: it gave null among the requests',
    ]);
    expect(of('sendResponse')).toMatchObject([
      { message: expect.stringMatching(/for the request [12]: send on purpose$/) },
    ]);
    expect(of('sendResponse')[0]!.requestId).toBeTypeOf('bigint');
    for (const name of ['pollStopSignals', 'returnBatchManagerStats', 'onKvCacheEvents']) {
      expect(of(name), name).toHaveLength(1);
    }
    expect(errors).toHaveLength(6);
  });

  it('ask for the end by terminateReqId, which is not answered; what came behind it is refused', async () => {
    const { manager } = manage('terminate', { terminateReqId: 42n });
    await manager.ended;
    expect(manager.state).toBe('stopped');
    const answers = seen().filter((line) => !line.startsWith('event'));
    expect(answers.toSorted()).toEqual([
      '1 3',
      '2 5',
      '3 The manager is shutting down and takes no more requests.',
    ]);
  });

  it('end with the manager though the module keeps its thread alive', async () => {
    const { manager } = manage('live', {}, { terminateTimeoutMs: 50 });
    await manager.ready;
    await manager.shutdown();
    expect([manager.state, manager.failure]).toEqual(['stopped', null]);
  });
});
