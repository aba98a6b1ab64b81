import { afterEach, describe, expect, it } from 'vitest';
import type { Outcome } from '../../loadgen/outcomes.js';
import { outcomeOfError } from '../../loadgen/worker/network-faults.js';
import { type Answer, chatStream, event, FakeLlm, goodChat, piece, sendStream } from './support/fake-llm.js';
import { say, WorkerHarness } from './support/worker-harness.js';

let server: FakeLlm | null = null;
let harness: WorkerHarness | null = null;

afterEach(async () => {
  harness?.worker.close();
  await server?.close().catch(() => {});
  server = null;
  harness = null;
});

/** Three requests: the middle one is answered so, the others well. */
async function outcomesWith(
  answer: Answer,
  config: ConstructorParameters<typeof WorkerHarness>[1] = {},
  backend: ConstructorParameters<typeof WorkerHarness>[2] = {},
): Promise<Outcome[]> {
  server = await FakeLlm.start((asked, response, number) =>
    String(asked.body.messages[0].content) === 'bad'
      ? answer(asked, response, number)
      : goodChat(asked, response, number),
  );
  harness = new WorkerHarness(server.url, config, backend);
  await harness.begin(1);
  harness.issue([say('good'), say('bad'), say('good')]);
  const records = await harness.settled();
  expect(records.map(({ request }) => request)).toEqual([0, 1, 2]);
  return records.map(({ outcome }) => outcome);
}

const stream =
  (text: string): Answer =>
  (_, response) =>
    sendStream(response, text);
const around = (outcome: Outcome): Outcome[] => ['completed', outcome, 'completed'];

describe('what becomes of a request whose answer is none', () => {
  it('http_error: another status, with its words', async () => {
    const refuse: Answer = (_, response) => void response.writeHead(400).end('{"error":{"message":"no"}}');
    expect(await outcomesWith(refuse)).toEqual(around('http_error'));
    expect(harness!.messages()).toEqual(['HTTP 400: {"error":{"message":"no"}}']);
    expect(harness!.records[1]).toMatchObject({ status: 400, attempts: 1 });
  });

  it('rate_limited: a 429 without attempts left', async () => {
    const refuse: Answer = (_, response) => void response.writeHead(429, { 'retry-after': '0' }).end();
    expect(await outcomesWith(refuse, { retries: 2 })).toEqual(around('rate_limited'));
    expect(harness!.records[1]).toMatchObject({ status: 429, attempts: 3 });
    expect(server!.asked).toHaveLength(5);
  });

  it('completed behind a 429: after what Retry-After says, a repetition counts as the same request', async () => {
    let refused = 0;
    const refuse: Answer = (asked, response, number) =>
      refused++ === 0
        ? void response.writeHead(429, { 'retry-after': '0.05' }).end()
        : goodChat(asked, response, number);
    expect(await outcomesWith(refuse, { retries: 1 })).toEqual(around('completed'));
    const [, record] = harness!.records;
    expect(record).toMatchObject({ attempts: 2, status: 200 });
    expect(record!.sentMs - record!.scheduledMs).toBeGreaterThanOrEqual(49);
  });

  it('waits until the date that Retry-After may be', async () => {
    let refusedMs = 0;
    const inASecond: Answer = (asked, response, number) => {
      if (refusedMs > 0) return goodChat(asked, response, number);
      refusedMs = Date.now();
      // Whole seconds: at least one from now.
      const date = new Date(refusedMs + 1999).toUTCString();
      response.writeHead(429, { 'retry-after': date }).end();
    };
    expect(await outcomesWith(inASecond, { retries: 1 })).toEqual(around('completed'));
    const { sentMs, scheduledMs } = harness!.records[1]!;
    expect(sentMs - scheduledMs).toBeGreaterThanOrEqual(900);
  });

  it('client_limit: this machine has no more of something, which is not held against the server', () => {
    for (const code of ['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOBUFS', 'ENOMEM']) {
      const error = Object.assign(new Error(`connect ${code}`), { code });
      expect(outcomeOfError(error, false)).toBe('client_limit');
    }
  });

  it('stream_error: an error inside the stream', async () => {
    const text = `${piece('a')}${event({ error: { message: 'out of blocks' } })}${event('[DONE]')}`;
    expect(await outcomesWith(stream(text))).toEqual(around('stream_error'));
    expect(harness!.messages()).toEqual(['out of blocks']);
  });

  it('malformed: data that is no JSON, a status line that is no HTTP', async () => {
    expect(await outcomesWith(stream(`${piece('a')}data: {"choices": [\n\n`))).toEqual(around('malformed'));
    await server!.close();
    const noHttp: Answer = (_, response) => void response.socket!.end('GARBAGE 200\r\n\r\n');
    expect(await outcomesWith(noHttp)).toEqual(around('malformed'));
  });

  it('truncated: half a frame, and a stream without its end, whatever line of no known field is in it', async () => {
    const whole = chatStream(['a', 'b']);
    const half = whole.slice(0, whole.indexOf('"b"'));
    expect(await outcomesWith(stream(half))).toEqual(around('truncated'));
    await server!.close();
    expect(await outcomesWith(stream(piece('a')))).toEqual(around('truncated'));
    await server!.close();
    expect(await outcomesWith(stream(`${piece('a')}Internal Server Error\n\n`))).toEqual(around('truncated'));
  });

  it('empty: an answer without text', async () => {
    expect(await outcomesWith(stream(chatStream([])))).toEqual(around('empty'));
  });

  it('connection_reset: the connection ends within the answer, or before it', async () => {
    const cut: Answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(piece('a'), () => response.socket!.resetAndDestroy());
    };
    expect(await outcomesWith(cut)).toEqual(around('connection_reset'));
    await server!.close();
    expect(await outcomesWith((_, response) => void response.socket!.destroy())).toEqual(
      around('connection_reset'),
    );
  });

  it('stalled: no byte for the limit', async () => {
    const stall: Answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(piece('a'));
    };
    expect(await outcomesWith(stall, { stallMs: 1000 })).toEqual(around('stalled'));
  });

  it('timed_out: bytes come, but no end', async () => {
    let timer: NodeJS.Timeout;
    const drip: Answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      timer = setInterval(() => response.write(': alive\n\n'), 10);
    };
    expect(await outcomesWith(drip, { timeoutMs: 1500, stallMs: 60_000 })).toEqual(around('timed_out'));
    clearInterval(timer!);
  });

  it('connect_failed: nobody listens', async () => {
    server = await FakeLlm.start(goodChat);
    const { url } = server;
    await server.close();
    harness = new WorkerHarness(url);
    await harness.begin(2);
    harness.issue([say('a'), say('b')]);
    const records = await harness.settled();
    expect(records.map(({ outcome }) => outcome)).toEqual(['connect_failed', 'connect_failed']);
    expect(harness.messages()[0]).toContain('ECONNREFUSED');
  });

  it('takes an answer that starts slowly for what it is', async () => {
    const slow: Answer = (asked, response, number) =>
      new Promise((resolve) => setTimeout(() => resolve(goodChat(asked, response, number)), 100));
    expect(await outcomesWith(slow)).toEqual(around('completed'));
    const { firstMs, sentMs } = harness!.records[1]!;
    expect(firstMs - sentMs).toBeGreaterThanOrEqual(99);
  });

  it('reads a whole answer that is no JSON, or an error with status 200', async () => {
    const whole =
      (text: string): Answer =>
      (_, response) =>
        void response.writeHead(200, { 'content-type': 'application/json' }).end(text);
    expect(await outcomesWith(whole('{"choices": ['), {}, { stream: false })).toEqual(around('malformed'));
    await server!.close();
    expect(await outcomesWith(whole('{"error": "busy"}'), {}, { stream: false })).toEqual(
      around('stream_error'),
    );
  });
});

describe('a server that dies under load', () => {
  it('leaves every request with one outcome', async () => {
    server = await FakeLlm.start((asked, response, number) => {
      if (number < 20) return goodChat(asked, response, number);
      if (number === 30) server!.die();
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(piece('a'));
    });
    harness = new WorkerHarness(server.url, { connections: 16, stallMs: 2000 });
    await harness.begin(16);
    harness.issue(Array.from({ length: 60 }, (_, i) => say(`prompt ${i}`)));
    const records = await harness.settled();
    expect(records.map(({ request }) => request)).toEqual(Array.from({ length: 60 }, (_, i) => i));
    expect(records.filter(({ outcome }) => outcome === 'completed')).toHaveLength(20);
    expect(new Set(records.map(({ outcome }) => outcome))).toEqual(
      new Set<Outcome>(['completed', 'connection_reset', 'connect_failed']),
    );
  });

  it('and a run that is cut off too: what is under way is cancelled, what waits is not_sent', async () => {
    server = await FakeLlm.start(() => {});
    harness = new WorkerHarness(server.url);
    await harness.begin(4);
    harness.issue(Array.from({ length: 10 }, (_, i) => say(`prompt ${i}`)));
    harness.worker.receive({ type: 'stop', withdraw: false, cancel: true });
    const records = await harness.settled();
    expect(records.map(({ outcome }) => outcome)).toEqual([
      ...Array<Outcome>(4).fill('cancelled'),
      ...Array<Outcome>(6).fill('not_sent'),
    ]);
  });
});
