import { once } from 'node:events';
import { CallbackError, type GptManagerOptions } from 'skein';
import { afterEach, describe, expect, it } from 'vitest';
import { collectResult, makeRequest } from '../../tools/support/loop-harness.js';
import { fakeEngine } from '../support/fake-engine.js';
import { ManagerClient } from '../support/manager-client.js';

// An unhandled rejection fails the run: the runner listens for them.
const unhandled: unknown[] = [];
const note = (reason: unknown) => void unhandled.push(reason);
process.on('unhandledRejection', note);
afterEach(() => expect(unhandled).toEqual([]));

/**
 * Things that a callback may do in place of returning, each with the error that the host must receive; null:
 * none.
 */
const MISBEHAVIOURS: Record<string, { act: () => unknown; told: RegExp | null }> = {
  throws: {
    act: () => {
      throw new Error('on purpose');
    },
    told: /: on purpose$/,
  },
  'throws what has no text': {
    act: () => {
      throw Object.create(null);
    },
    told: /: something was thrown that has no text$/,
  },
  rejects: { act: () => Promise.reject(new Error('on purpose')), told: /: on purpose$/ },
  'rejects later': {
    act: async () => {
      await new Promise((resolve) => setImmediate(resolve));
      throw new Error('on purpose');
    },
    told: /: on purpose$/,
  },
  'gives a promise of another library that is rejected': {
    // biome-ignore lint/suspicious/noThenProperty: this is one.
    act: () => ({ then: (_: unknown, reject: (reason: Error) => void) => reject(new Error('on purpose')) }),
    told: /: on purpose$/,
  },
  'never settles': { act: () => new Promise(() => {}), told: null },
};

const WRONG = { 'gives what it must not': { act: () => 7, told: /: it gave a number where / } };

const engine = () => fakeEngine('', { kvCacheConfig: { enableBlockReuse: true, eventBufferMaxSize: 100 } });

/** A client of which one callback misbehaves, at first instead of its work, or always in addition to it. */
function clientWith(name: string, act: () => unknown) {
  const errors: Error[] = [];
  const extra: Partial<GptManagerOptions> = { onError: (error) => void errors.push(error) };
  let calls = 0;
  if (name === 'getInferenceRequests' || name === 'pollStopSignals') {
    const good =
      name === 'pollStopSignals' ? () => new Set() : (max: number) => client.waiting.splice(0, max);
    Object.assign(extra, { [name]: (max: number) => (++calls === 1 ? act() : good(max)) });
  } else if (name === 'sendResponse') {
    extra.sendResponse = (requestId, outputs, final, error) => {
      client.sendResponse(requestId, outputs, final, error);
      return act() as undefined;
    };
  } else {
    Object.assign(extra, { [name]: () => act() });
  }
  const client = new ManagerClient({ ...engine(), ...extra } as Partial<GptManagerOptions>);
  return { client, errors };
}

const NAMES = [
  'getInferenceRequests',
  'sendResponse',
  'pollStopSignals',
  'returnBatchManagerStats',
  'onIterationStats',
  'onKvCacheEvents',
  'onStateChange',
] as const;

describe('a callback that misbehaves', () => {
  it.each(NAMES)('%s: no request is lost, the host hears of it, and the end comes', async (name) => {
    const asks = name === 'getInferenceRequests' || name === 'pollStopSignals';
    const all = { ...MISBEHAVIOURS, ...(asks ? WRONG : {}) };
    const seen = await Promise.all(
      Object.entries(all).map(async ([how, { act, told }]) => {
        const { client, errors } = clientWith(name, act);
        await client.manager.ready;
        const bringsNothing = name === 'getInferenceRequests' && how === 'never settles';
        const ended = [1n, 2n].map((id) => client.submit(makeRequest(id, [Number(id)], 5)));
        if (!bringsNothing) await Promise.all(ended);
        await client.manager.shutdown();
        const tokens = [...client.responses.values()].map((list) => collectResult(list).tokens.length);
        const failures = errors.filter((error) => error instanceof CallbackError && error.callback === name);
        return {
          how,
          state: client.manager.state,
          tokens: bringsNothing ? [5, 5] : tokens,
          isTold: told === null ? errors.length === 0 : told.test(failures[0]?.message ?? ''),
          ids: failures.every(
            (error) => ((error as CallbackError).requestId !== null) === (name === 'sendResponse'),
          ),
          others: errors.length - failures.length,
        };
      }),
    );
    for (const one of seen) {
      expect(one).toEqual({ ...one, state: 'stopped', tokens: [5, 5], isTold: true, ids: true, others: 0 });
    }
  });

  it('onError itself: it becomes a warning with what it was told, and is not called from within itself', async () => {
    const warnings: string[] = [];
    const listen = ({ message }: Error) => void warnings.push(message);
    process.on('warning', listen);
    for (const [how, { act, told }] of Object.entries(MISBEHAVIOURS)) {
      let depth = 0;
      let deepest = 0;
      const client: ManagerClient = new ManagerClient({
        ...engine(),
        returnBatchManagerStats: () => {
          throw new Error(`for ${how}`);
        },
        getInferenceRequests: (max: number) => {
          if (depth > 0) throw new Error('asked by onError');
          return client.waiting.splice(0, max);
        },
        onError: () => {
          deepest = Math.max(deepest, ++depth);
          try {
            client.manager.wake();
            return act() as undefined;
          } finally {
            depth--;
          }
        },
      });
      await client.submit(makeRequest(1n, [1], 5));
      await client.manager.shutdown();
      expect([client.manager.state, deepest]).toEqual(['stopped', 1]);
      expect(
        warnings.filter((text) => text.includes('asked by onError')),
        how,
      ).not.toEqual([]);
      const own = () => warnings.filter((text) => text.startsWith('The callback onError failed: '));
      if (told !== null) {
        await expect
          .poll(() =>
            own().some((text) =>
              text.endsWith(`It was told: The callback returnBatchManagerStats failed: for ${how}`),
            ),
          )
          .toBe(true);
      }
      warnings.splice(0);
    }
    process.off('warning', listen);
  });

  it('is a warning of the process where no onError is given', async () => {
    const warned = once(process, 'warning');
    const client = new ManagerClient({
      ...engine(),
      onError: undefined as never,
      returnBatchManagerStats: (() => Promise.reject(new Error('nobody listens'))) as never,
    });
    await client.submit(makeRequest(1n, [1], 1));
    await client.manager.shutdown();
    const [warning] = (await warned) as [Error];
    expect([warning.name, warning.message]).toEqual([
      'SkeinWarning',
      'The callback returnBatchManagerStats failed: nobody listens',
    ]);
  });

  it('a request that cannot be read is refused by its id, and takes no others with it', async () => {
    const errors: string[] = [];
    const client = new ManagerClient({ ...engine(), onError: (error) => void errors.push(error.message) });
    await client.manager.ready;
    const hostile = makeRequest(3n, [1], 5);
    Object.defineProperty(hostile, 'inputs', {
      enumerable: true,
      get: () => {
        throw new Error('no inputs');
      },
    });
    client.waiting.push(null as never, hostile, {} as never);
    await client.submit(makeRequest(4n, [1], 5));
    await client.manager.shutdown();
    expect(client.responses.get(3n)).toMatchObject([
      { final: true, error: 'The request cannot be sent to the engine: no inputs' },
    ]);
    expect(collectResult(client.responses.get(4n)!).tokens).toHaveLength(5);
    expect(errors).toEqual([
      expect.stringMatching(/^requestId is undefined; /),
      expect.stringMatching(/^requestId is undefined; /),
    ]);
  });

  it('stop signals that wake the manager do so without end in themselves', async () => {
    let depth = 0;
    let deepest = 0;
    const client: ManagerClient = new ManagerClient({
      ...engine(),
      pollStopSignals: () => {
        deepest = Math.max(deepest, ++depth);
        if (depth < 100) client.manager.wake();
        depth--;
        return new Set();
      },
    });
    await client.submit(makeRequest(1n, [1], 5));
    await client.manager.shutdown();
    expect(deepest).toBe(1);
  });

  it('what a promise of getInferenceRequests brings after the end is refused, each by its id', async () => {
    let bring!: (requests: unknown[]) => void;
    const client = new ManagerClient({
      ...engine(),
      getInferenceRequests: () => new Promise((resolve) => (bring = resolve as never)),
    });
    await client.manager.ready;
    await client.manager.shutdown();
    bring([makeRequest(8n, [1], 5), makeRequest(9n, [1], 5)]);
    await expect.poll(() => client.finals).toEqual([8n, 9n]);
    expect(client.responses.get(9n)).toMatchObject([
      { final: true, error: 'The manager is shutting down and takes no more requests.' },
    ]);
    expect(client.errors).toEqual([]);
  });
});

describe('terminateReqId with functions', () => {
  it('ends the manager without an answer, behind what came before it; what comes later is refused', async () => {
    const client = new ManagerClient({ ...engine(), terminateReqId: 42n });
    await client.manager.ready;
    const terminate = makeRequest(42n, [1], 1);
    client.waiting.push(makeRequest(1n, [1], 30), terminate, makeRequest(2n, [2], 5), terminate);
    client.manager.wake();
    await client.manager.ended;
    expect(client.manager.state).toBe('stopped');
    expect(collectResult(client.responses.get(1n)!).tokens).toHaveLength(30);
    expect(client.responses.get(2n)).toMatchObject([{ final: true }]);
    expect(client.responses.get(2n)![0]!.error).toMatch(/shutting down and takes no more/);
    expect(client.responses.has(42n)).toBe(false);
    expect(client.errors).toEqual([]);
  });
});
