import { createHook } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { chatStream, FakeLlm, goodChat, piece, sendStream } from './support/fake-llm.js';
import { say, WorkerHarness } from './support/worker-harness.js';

let server: FakeLlm;
let harness: WorkerHarness;

afterEach(async () => {
  harness.worker.close();
  await server.close().catch(() => {});
});

const prompts = (count: number) => Array.from({ length: count }, (_, i) => say(`prompt ${i}`));

describe('the worker', () => {
  it('3: an open loop goes on while the server stalls, each request with the time right before its sending', async () => {
    server = await FakeLlm.start((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.flushHeaders();
    });
    harness = new WorkerHarness(server.url, { stallMs: 2000 });
    await harness.begin(null);
    harness.issue(prompts(5), [0, 20, 40, 60, 80]);
    const records = await harness.settled();
    expect(records.map(({ outcome }) => outcome)).toEqual(Array(5).fill('stalled'));
    for (const { sentMs, scheduledMs } of records) expect(sentMs).toBeGreaterThanOrEqual(scheduledMs);
    // None of them waited for the first to end.
    expect(Math.max(...records.map(({ sentMs }) => sentMs))).toBeLessThan(
      Math.min(...records.map(({ endMs }) => endMs)),
    );
  });

  it('6: the first piece is the TTFT, the last byte the end, on a clock that other processes share', async () => {
    const now = () => Number(process.hrtime.bigint()) / 1e6;
    const writtenMs: number[] = [];
    server = await FakeLlm.start(async (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(piece(''));
      await sleep(30);
      writtenMs.push(now());
      response.write(piece('a'));
      // The second piece comes only when the first was read, however late that is on a busy machine.
      while (!harness.frames.some((frame) => frame.type === 'results' && frame.firsts.length > 0))
        await sleep(5);
      writtenMs.push(now());
      response.end(`${piece('b')}${piece('', 'stop')}`);
    });
    harness = new WorkerHarness(server.url);
    await harness.begin(1);
    const before = now();
    harness.issue(prompts(1));
    const [record] = await harness.settled();
    const after = now();
    const { sentMs, firstMs, lastMs, endMs } = record!;
    const [firstWritten, lastWritten] = writtenMs as [number, number];
    const inOrder = [
      before - 1,
      sentMs,
      firstWritten,
      firstMs + 1,
      lastWritten + 1,
      lastMs + 2,
      endMs + 2,
      after + 3,
    ];
    expect(inOrder).toEqual(inOrder.toSorted((a, b) => a - b));
  });

  it('7: all that is due is issued before the event loop goes on', async () => {
    server = await FakeLlm.start(goodChat);
    harness = new WorkerHarness(server.url, { connections: 50 });
    await harness.begin(null);
    harness.issue(prompts(50), Array(50).fill(-1));
    let turns = 0;
    const count = setInterval(() => turns++, 0);
    const records = await harness.settled();
    clearInterval(count);
    // All are sent within one turn of the event loop, and so before any answer.
    expect(Math.max(...records.map(({ sentMs }) => sentMs))).toBeLessThanOrEqual(
      Math.min(...records.map(({ firstMs }) => firstMs)),
    );
    expect(turns).toBeGreaterThan(0);
  });

  it('8: connections are open before the first request, and are used again', async () => {
    server = await FakeLlm.start(goodChat);
    harness = new WorkerHarness(server.url, { connections: 4 });
    await harness.begin(4);
    expect(harness.frames).toContainEqual({ type: 'ready', connections: 4 });
    expect(harness.worker.connectionsOpened).toBe(4);
    harness.issue(prompts(40));
    await harness.settled();
    expect(harness.worker.connectionsOpened).toBe(4);
    expect(server.connections).toBe(4);
  });

  it('8: without keep-alive each request has a connection of its own', async () => {
    server = await FakeLlm.start(goodChat);
    harness = new WorkerHarness(server.url, { connections: 4, keepAlive: false });
    await harness.begin(2);
    harness.issue(prompts(6));
    const records = await harness.settled();
    expect(records.map(({ outcome }) => outcome)).toEqual(Array(6).fill('completed'));
    expect(server.connections).toBe(6);
  });

  it('9: makes no promise for a chunk', async () => {
    const promisesOf = async (pieces: number) => {
      server = await FakeLlm.start(async (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        for (let i = 0; i < pieces; i++) {
          response.write(piece(`t${i}`));
          // A chunk each.
          await sleep(1);
        }
        response.end(piece('', 'stop'));
      });
      harness = new WorkerHarness(server.url, { connections: 1 });
      await harness.begin(1);
      let promises = 0;
      const stacks = createHook({
        init: (_, type) => {
          if (type === 'PROMISE' && /flight|answer-reader|results\./.test(new Error().stack ?? ''))
            promises++;
        },
      }).enable();
      harness.issue([say('a')]);
      const [record] = await harness.settled();
      stacks.disable();
      expect(record!.pieces).toBe(pieces);
      harness.worker.close();
      await server.close();
      return promises;
    };
    expect(await promisesOf(50)).toBe(await promisesOf(5));
  });

  it('10: takes an answer for a stream by what the server says it is, whatever was asked for', async () => {
    server = await FakeLlm.start((asked, response, number) =>
      number === 0
        ? goodChat({ ...asked, body: { ...asked.body, stream: false } }, response, number)
        : sendStream(response, chatStream(['a', 'b'])),
    );
    harness = new WorkerHarness(server.url);
    await harness.begin(1);
    harness.issue(prompts(2));
    const records = await harness.settled();
    expect(records.map(({ streamed, pieces }) => [streamed, pieces])).toEqual([
      [false, 1],
      [true, 2],
    ]);
    expect(records.map(({ outcome }) => outcome)).toEqual(['completed', 'completed']);
  });

  it('11: pieces that came in one read have one stamp', async () => {
    const pieces = Array.from({ length: 100 }, (_, i) => `t${i} `);
    server = await FakeLlm.start((_, response) => sendStream(response, chatStream(pieces)));
    harness = new WorkerHarness(server.url);
    await harness.begin(1);
    harness.issue(prompts(1));
    const [record] = await harness.settled();
    // All of it was one chunk of HTTP, and so one read.
    expect(record).toMatchObject({ pieces: 100, completionTokens: 100 });
    expect(record!.lastMs).toBe(record!.firstMs);
  });

  it('13: everything in a chunk is counted when its handler returns', async () => {
    server = await FakeLlm.start(goodChat);
    harness = new WorkerHarness(server.url);
    const { AnswerReader } = await import('../../loadgen/worker/answer-reader.js');
    const { createBackend } = await import('../../loadgen/backends/index.js');
    const backend = createBackend({ name: 'chat', model: 'm', stream: true, ignoreEos: false, fields: {} });
    const reader = new AnswerReader(backend, true, true);
    reader.feed(Buffer.from(piece('a') + piece('b')));
    expect([reader.pieces, reader.answer]).toEqual([2, 'ab']);
  });

  it('14: the first piece is told at once, all else in frames that share', async () => {
    let finish = () => {};
    server = await FakeLlm.start(async (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(piece('a'));
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      for (let i = 0; i < 20; i++) response.write(piece(`b${i}`));
      response.end(piece('', 'stop'));
    });
    harness = new WorkerHarness(server.url);
    await harness.begin(1);
    harness.issue(prompts(1));
    const firsts = () =>
      harness.frames.flatMap((frame) => (frame.type === 'results' ? [...frame.firsts] : []));
    // The answer has not ended, and would wait for the server for ever.
    while (firsts().length === 0) await sleep(1);
    expect(firsts()[0]).toBe(0);
    expect(harness.records).toEqual([]);
    const before = harness.frames.length;
    finish();
    await harness.settled();
    expect(harness.frames.length - before).toBeLessThan(10);
  });

  it('15: a connection is free before its answer is judged, so that a request that waits for one goes on', async () => {
    server = await FakeLlm.start(goodChat);
    harness = new WorkerHarness(server.url, { maxInFlight: 1 });
    const { worker } = harness;
    const order: string[] = [];
    const landed = worker.landed.bind(worker);
    const over = worker.over.bind(worker);
    worker.landed = (...args) => {
      order.push('free');
      landed(...args);
    };
    worker.over = (...args) => {
      order.push('judged');
      over(...args);
    };
    await harness.begin(null);
    harness.issue(prompts(3), [0, 0, 0]);
    const records = await harness.settled();
    expect(order).toEqual(['free', 'judged', 'free', 'judged', 'free', 'judged']);
    // There is one connection: the other requests waited for it, which their times show.
    const waited = records.map(({ sentMs, scheduledMs }) => sentMs - scheduledMs);
    expect(waited[2]).toBeGreaterThan(waited[0]!);
    expect(server.connections).toBe(1);
  });

  it('holds conversations: each turn has the answers before it, and waits for them', async () => {
    server = await FakeLlm.start((_, response, number) =>
      sendStream(response, chatStream([`answer ${number}`])),
    );
    harness = new WorkerHarness(server.url);
    await harness.begin(1);
    const turns = [
      { prompt: 'one', maxTokens: 2, history: [{ role: 'system', content: 'be brief' }] },
      { prompt: 'two', maxTokens: 2, thinkSeconds: 0.02 },
      { prompt: 'three', maxTokens: 2 },
    ];
    harness.issue([{ turns }, say('alone')]);
    const records = await harness.settled();
    expect(records.map(({ turn }) => turn)).toEqual([0, 1, 2, 0]);
    expect(records[1]!.sentMs - records[0]!.endMs).toBeGreaterThanOrEqual(19);
    const { messages } = server.asked[2]!.body as { messages: { content: string }[] };
    expect(messages.map(({ content }) => content)).toEqual([
      ...['be brief', 'one', 'answer 0', 'two', 'answer 1', 'three'],
    ]);
  });

  it('does not send the turns behind one that failed, and counts them', async () => {
    server = await FakeLlm.start((_, response) => void response.writeHead(500).end());
    harness = new WorkerHarness(server.url);
    await harness.begin(1);
    const turn = { prompt: 'a', maxTokens: 1 };
    harness.issue([{ turns: [turn, turn, turn] }, say('b')]);
    const records = await harness.settled();
    expect(records.map(({ outcome }) => outcome)).toEqual([
      'http_error',
      'not_sent',
      'not_sent',
      'http_error',
    ]);
    expect(server.asked).toHaveLength(2);
  });
});
