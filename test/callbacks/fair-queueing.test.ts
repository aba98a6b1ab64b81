import { InProcessHost, type InProcessHostOptions, QueueFullError, type TokenRequest } from 'skein';
import { afterEach, describe, expect, it } from 'vitest';
import { fakeEngine } from '../support/fake-engine.js';

const hosts: InProcessHost[] = [];
afterEach(async () => {
  for (const host of hosts.splice(0)) await host.close({ abort: true });
});

async function start(options: Partial<InProcessHostOptions>, params = {}): Promise<InProcessHost> {
  const host = new InProcessHost({
    ...fakeEngine('stepMs=1', { maxNumSequences: 4, ...params }),
    ...options,
  });
  hosts.push(host);
  await host.ready;
  return host;
}

/** Submits requests and notes the keys in the order in which the requests ended. */
class Crowd {
  readonly order: string[] = [];
  readonly #host: InProcessHost;
  readonly #ends: Promise<void>[] = [];

  constructor(host: InProcessHost) {
    this.#host = host;
  }

  add(queueKey: string, count: number, fields: Partial<TokenRequest> = {}): void {
    for (let index = 0; index < count; index++) {
      const asked = { promptTokens: [1, 2, 3, 4], maxNewTokens: 8, queueKey, ...fields };
      this.#ends.push(this.#follow(this.#host.submit(asked), queueKey));
    }
  }

  async ended(): Promise<string[]> {
    await Promise.all(this.#ends);
    return this.order;
  }

  async #follow(stream: AsyncIterable<unknown>, key: string): Promise<void> {
    for await (const _ of stream);
    this.order.push(key);
  }
}

describe('fair queueing', () => {
  it.each([true, false])(
    '(%s) decides how long one request waits behind the flood of another key',
    async (on) => {
      const crowd = new Crowd(await start({ fairQueueing: on }));
      crowd.add('flood', 60, { maxNewTokens: 60 });
      crowd.add('single', 1);
      const place = (await crowd.ended()).indexOf('single');
      // Before it: what the engine has places for, and a turn of 512 tokens.
      if (on) expect(place).toBeLessThanOrEqual(4 + 8);
      else expect(place).toBeGreaterThanOrEqual(57);
    },
  );

  it('holds where the requests of the flood fill the memory and wait inside the engine', async () => {
    const pool = { maxNumSequences: 64, maxSeqLen: 64, kvCacheConfig: { maxTokens: 128 } };
    const crowd = new Crowd(await start({ fairQueueing: true }, pool));
    crowd.add('flood', 40, { maxNewTokens: 50 });
    crowd.add('single', 1);
    expect((await crowd.ended()).indexOf('single')).toBeLessThanOrEqual(2 + 8 + 9);
  });

  it('shares by weight between keys that always have requests waiting', async () => {
    const crowd = new Crowd(await start({ fairQueueing: true, maxQueueSize: 400 }, { maxNumSequences: 2 }));
    const large = { promptTokens: [1], maxNewTokens: 50 };
    crowd.add('light', 40, { ...large, queueWeight: 1 });
    crowd.add('heavy', 40, { ...large, queueWeight: 3 });
    const early = (await crowd.ended()).slice(0, 40);
    const heavy = early.filter((key) => key === 'heavy').length;
    expect(heavy).toBeGreaterThan(22);
    expect(heavy).toBeLessThan(38);
  });

  it('ends with every request answered, whatever is cancelled while it waits', async () => {
    const host = await start({ fairQueueing: true });
    const abort = new AbortController();
    const crowd = new Crowd(host);
    crowd.add('a', 20, { signal: abort.signal });
    crowd.add('b', 20);
    crowd.add('a', 5);
    abort.abort();
    expect(await crowd.ended()).toHaveLength(45);
    expect([host.queued, host.running]).toEqual([0, 0]);
  });
});

describe('the room of the queue', () => {
  it('may be less for each key, with fair queueing and without', async () => {
    for (const fairQueueing of [true, false]) {
      const host = await start(
        { fairQueueing, maxQueueSize: 6, maxQueueSizePerKey: 2 },
        { maxNumSequences: 1 },
      );
      const crowd = new Crowd(host);
      crowd.add('a', 1, { maxNewTokens: 200 });
      await expect.poll(() => host.queued, { interval: 1 }).toBe(0);
      crowd.add('a', 2, { maxNewTokens: 100 });
      await expect(async () => crowd.add('a', 1)).rejects.toThrow(
        /^The queue is full: 2 requests of this API key are waiting/,
      );
      crowd.add('b', 2);
      crowd.add('c', 2);
      await expect(async () => crowd.add('d', 1)).rejects.toThrow(
        /^The queue is full: 6 requests are waiting/,
      );
      await crowd.ended();
    }
  });

  it('says how long it will take, by the pace of late', async () => {
    const host = await start({ maxQueueSize: 3 }, { maxNumSequences: 1 });
    const crowd = new Crowd(host);
    for (let index = 0; index < 3; index++) {
      crowd.add('', 1);
      await crowd.ended();
    }
    crowd.add('', 3, { maxNewTokens: 50 });
    let error: unknown = null;
    try {
      crowd.add('', 2);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(QueueFullError);
    expect((error as QueueFullError).retryAfterMs).toBeGreaterThan(0);
    await crowd.ended();
  });
});
