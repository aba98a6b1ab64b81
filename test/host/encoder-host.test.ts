import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { HostClosedError, QueueFullError, RequestError } from 'skein';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { EncoderHost, EncoderHostOptions } from '../../host/encoder-host.js';
import { temporaryFolder } from '../support/fresh-folders.js';

type Host = new (options: EncoderHostOptions) => EncoderHost;
let Compiled: Host;
beforeAll(async () => {
  // The compiled one: its thread runs JavaScript.
  const url = new URL('../../dist/host/encoder-host.js', import.meta.url).href;
  Compiled = ((await import(url)) as { EncoderHost: Host }).EncoderHost;
});

const folder = temporaryFolder('skein-encoder-host');
const hosts: EncoderHost[] = [];
afterEach(async () => {
  for (const host of hosts.splice(0)) await host.close({ abort: true });
});

interface Batch {
  sequences: number;
  tokens: number;
}

function open(options: Partial<EncoderHostOptions> = {}, query: Record<string, string> = {}) {
  const batches: Batch[] = [];
  const states: [string, string | null][] = [];
  const url = new URL('../support/modules/fake-encoder.mjs', import.meta.url);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  const host = new Compiled({
    enginePath: 'fake',
    params: {},
    encoderModule: url,
    workerRestart: { delayMs: 1 },
    onBatch: ({ sequences, tokens }) => batches.push({ sequences, tokens }),
    onStateChange: (state, failure) => states.push([state, failure?.message ?? null]),
    onError: () => {},
    ...options,
  });
  hosts.push(host);
  return { host, batches, states };
}

const sequence = (...ids: number[]) => ({ tokenIds: Int32Array.from(ids), tokenTypes: null });
const sums = (rows: Float32Array[]) => rows.map((row) => row[0]);
const [THROWS, NOT_FINITE, DIES] = [97, 98, 99];

describe('an encoder in its worker', () => {
  it('gives each request its rows in their order', async () => {
    const { host } = open();
    const [a, b] = await Promise.all([
      host.encode([sequence(1, 2), sequence(3)]),
      host.encode([sequence(10)]),
    ]);
    expect([sums(a!), sums(b!)]).toEqual([[3, 3], [10]]);
    expect(await host.encode([])).toEqual([]);
    expect([host.queued, host.running]).toEqual([0, 0]);
  });

  it('puts requests that come together into one batch, and more texts than a batch holds into several', async () => {
    const { host, batches } = open();
    await host.ready;
    await Promise.all([1, 2, 3, 4].map((id) => host.encode([sequence(id, id)])));
    expect(batches).toEqual([{ sequences: 4, tokens: 8 }]);
    const many = Array.from({ length: 20 }, (_, i) => sequence(i));
    expect(sums(await host.encode(many))).toEqual(many.map((_, i) => i));
    expect(batches.slice(1).map(({ sequences }) => sequences)).toEqual([8, 8, 4]);
  });

  it('lets a request join between two batches of one with many texts', async () => {
    const { host, batches } = open({}, { stepMs: '40' });
    await host.ready;
    const order: string[] = [];
    const long = host.encode(Array.from({ length: 200 }, () => sequence(1))).then(() => order.push('long'));
    await expect.poll(() => batches.length, { interval: 1 }).toBeGreaterThan(0);
    const short = host.encode([sequence(5)]).then(() => order.push('short'));
    await Promise.all([long, short]);
    expect(order).toEqual(['short', 'long']);
  });

  it('fails only the request whose sequence cannot be computed', async () => {
    const { host } = open();
    await host.ready;
    const results = await Promise.allSettled([
      host.encode([sequence(1)]),
      host.encode([sequence(2), sequence(THROWS)]),
      host.encode([sequence(NOT_FINITE)]),
      host.encode([sequence(3)]),
    ]);
    expect(results.map((one) => (one.status === 'fulfilled' ? sums(one.value) : one.reason.message))).toEqual(
      [[1], 'The token 97 cannot be.', 'The network gave values that are not finite for this input.', [3]],
    );
    expect((results[1] as PromiseRejectedResult).reason).toBeInstanceOf(RequestError);
  });

  it.each([
    [sequence(), /Sequence 0 has 0 tokens; 1 to 32 are taken/],
    [sequence(...new Array<number>(33).fill(1)), /Sequence 0 has 33 tokens; 1 to 32 are taken/],
    [sequence(100), /Sequence 0 has the token 100; the vocabulary has 100/],
    [sequence(-1), /Sequence 0 has the token -1/],
    [
      { tokenIds: Int32Array.of(1), tokenTypes: Int32Array.of(2) },
      /1 token types, 2 among them; 1 from 0 to 1/,
    ],
    [{ tokenIds: Int32Array.of(1), tokenTypes: Int32Array.of(0, 0) }, /2 token types; 1 from 0 to 1/],
  ])('refuses a sequence that is not one, loaded or not: %j', async (wrong, message) => {
    const { host } = open();
    const early = host.encode([wrong]);
    await expect(early).rejects.toThrow(message);
    await host.ready;
    await expect(host.encode([wrong])).rejects.toMatchObject({ isInvalid: true });
    expect(sums(await host.encode([sequence(4)]))).toEqual([4]);
  });

  it('is full at its limit', async () => {
    const { host } = open({ maxQueueSize: 2 }, { stepMs: '50' });
    await host.ready;
    const first = [host.encode([sequence(1)]), host.encode([sequence(2)])];
    expect(() => host.encode([sequence(3)])).toThrow(QueueFullError);
    await Promise.all(first);
    expect(sums(await host.encode([sequence(3)]))).toEqual([3]);
  });

  it('tells a request after each of its batches how many rows are done, and no more once it is aborted', async () => {
    const { host } = open();
    await host.ready;
    const many = Array.from({ length: 500 }, () => sequence(1));
    const done: number[] = [];
    await host.encode(many, { onDone: (rows) => done.push(rows) });
    expect(done.at(-1)).toBe(500);
    expect(done.length).toBeGreaterThan(1);
    expect(done).toEqual([...new Set(done)].sort((a, b) => a - b));
    const gone = new AbortController();
    const until: number[] = [];
    const onDone = (rows: number) => {
      until.push(rows);
      gone.abort(new Error('enough'));
    };
    await expect(host.encode(many, { signal: gone.signal, onDone })).rejects.toThrow('enough');
    await host.encode([sequence(9)]);
    expect(until).toHaveLength(1);
  });

  it('ends a request whose signal is aborted at once, waiting or running, and goes on with the others', async () => {
    const { host } = open({}, { stepMs: '30' });
    await host.ready;
    const gone = new AbortController();
    const many = host.encode(
      Array.from({ length: 500 }, () => sequence(1)),
      gone,
    );
    const other = host.encode([sequence(9)]);
    setTimeout(() => gone.abort(new Error('enough')), 40);
    await expect(many).rejects.toThrow('enough');
    expect(sums(await other)).toEqual([9]);
    expect([host.queued, host.running]).toEqual([0, 0]);
    expect(() => host.encode([sequence(1)], gone)).toThrow('enough');
  });

  it('fails what it had when it dies, and another one answers what waited', async () => {
    const loads = join(folder, 'loads');
    const { host, states } = open({}, { loads, stepMs: '20' });
    await host.ready;
    const dying = host.encode([sequence(DIES)]);
    await new Promise((resolve) => setTimeout(resolve, 5));
    const failed = await dying.catch((error: Error) => error);
    expect(failed).toBeInstanceOf(RequestError);
    expect((failed as Error).message).toMatch(/^The engine failed: .*exit code 7/);
    expect(sums(await host.encode([sequence(6)]))).toEqual([6]);
    expect(host.restarts).toBe(1);
    expect(states.map(([state]) => state)).toEqual(['running', 'restarting', 'running']);
    expect(readFileSync(loads, 'utf8')).toBe('..');
  });

  it('fails what it had when its process is killed, once each, and another one answers what waited', async () => {
    const { host, batches, states } = open({ isolate: true }, { stepMs: '30' });
    await host.ready;
    // Four seconds, of which the first batch is awaited.
    const running = host.encode(Array.from({ length: 1000 }, () => sequence(1)));
    await expect.poll(() => batches.length, { interval: 1 }).toBeGreaterThan(0);
    const waiting = host.encode([sequence(4)]);
    const { pid } = host;
    process.kill(pid!, 'SIGKILL');
    await expect(running).rejects.toThrow(/^The engine failed: The engine's process was ended by SIGKILL/);
    expect(host.state).toBe('restarting');
    const outcome = await waiting.then(sums, (error: Error) => error.message);
    // It may have been in a batch already.
    if (typeof outcome === 'string') expect(outcome).toMatch(/SIGKILL/);
    else expect(outcome).toEqual([4]);
    expect(sums(await host.encode([sequence(6), sequence(7)]))).toEqual([6, 7]);
    expect(host.pid).not.toBe(pid);
    expect(states.map(([state]) => state)).toEqual(['running', 'restarting', 'running']);
    await host.close();
    expect(host.pid).toBeNull();
  });

  it.each([
    [false, 'its thread'],
    [true, 'its process'],
  ])('lets what was taken end when it is closed, and takes no more (isolate %s)', async (isolate) => {
    const { host } = open({ isolate }, { stepMs: '20' });
    await host.ready;
    const many = host.encode(Array.from({ length: 30 }, () => sequence(1)));
    const closed = host.close();
    expect(() => host.encode([sequence(1)])).toThrow(HostClosedError);
    expect((await many).length).toBe(30);
    await closed;
    expect(host.state).toBe('stopped');
  });

  it('ends what is left when it is closed with abort', async () => {
    const { host } = open({}, { stepMs: '20' });
    await host.ready;
    const many = host.encode(Array.from({ length: 500 }, () => sequence(1)));
    const failed = expect(many).rejects.toBeInstanceOf(HostClosedError);
    await host.close({ abort: true });
    await failed;
  });

  it('says why it cannot be loaded', async () => {
    const { host } = open({ enginePath: 'missing' });
    const waiting = host.encode([sequence(1)]);
    await expect(host.ready).rejects.toThrow('There is no such engine.');
    await expect(waiting).rejects.toBeInstanceOf(Error);
    expect(host.state).toBe('failed');
    expect(() => host.encode([sequence(1)])).toThrow(HostClosedError);
  });
});
