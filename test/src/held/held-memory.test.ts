import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { postJson } from '../../support/post-json.js';
import { type SkeinProcess, startServer } from '../support/skein-process.js';
import { type Manners, RawRequest } from './raw-client.js';

/** Connections at once; SKEIN_HELD_CLIENTS=200 takes minutes. */
const CLIENTS = Number(process.env.SKEIN_HELD_CLIENTS ?? 16);
const MIB = 2 ** 20;
const BODY_BYTES = 16 * MIB;
/** Room for five of the longest bodies. */
const LIMIT = 400 * MIB;
/** Memory of the process beyond what the ledger counts: garbage not collected yet, and the buffers of sockets. */
const SLACK = 500 * MIB;
/** Statuses that the server may answer with when it is asked for too much. */
const ANSWERS = new Set([200, 400, 413, 429, 503]);

let server: SkeinProcess;
let port: number;
let firstRss: number;

beforeAll(async () => {
  server = await startServer(['--max-held-memory-bytes', String(LIMIT)]);
  port = Number(new URL(server.url).port);
  await stream();
  firstRss = rss();
});
afterAll(() => server?.stop());

function rss(): number {
  const status = readFileSync(`/proc/${server.child.pid}/status`, 'utf8');
  return 1024 * Number(/VmRSS:\s+(\d+)/.exec(status)![1]);
}

/** A stream to its end: its text. */
async function stream(): Promise<string> {
  const body = { prompt: 'Once', max_tokens: 100, stream: true, ignore_eos: true, seed: 5 };
  const response = await postJson(`${server.url}/v1/completions`, body, { headers: { connection: 'close' } });
  expect(response.status).toBe(200);
  const frames = await response.text();
  expect(frames).toMatch(/data: \[DONE\]\n\n$/);
  return [...frames.matchAll(/^data: (\{.*\})$/gm)]
    .map(([, json]) => JSON.parse(json!).choices[0].text)
    .join('');
}

interface Attack {
  method?: string;
  path: string;
  body: Buffer;
  manners?: Manners;
  /** Resolves when clients leave that never end their body, or never read. Not given: they leave when all are answered. */
  until?: (requests: readonly RawRequest[]) => Promise<unknown>;
}

/** Runs it during a stream, and looks how much the process takes meanwhile. */
async function attack({
  method = 'POST',
  path,
  body,
  manners = {},
  until,
}: Attack): Promise<(number | null)[]> {
  const alone = await stream();
  let highest = 0;
  const watch = setInterval(() => {
    highest = Math.max(highest, rss());
  }, 20);
  const beside = stream();
  const requests = Array.from({ length: CLIENTS }, () => new RawRequest(port, method, path, body, manners));
  const statuses = Promise.all(requests.map(({ status }) => status));
  await (until === undefined ? statuses : until(requests));
  expect(await beside).toBe(alone);
  // And for who comes now.
  expect(await stream()).toBe(alone);
  for (const request of requests) request.leave();
  clearInterval(watch);
  expect(server.child.exitCode).toBe(null);
  expect(highest - firstRss).toBeLessThan(LIMIT + SLACK);
  await expect.poll(heldByRequests).toBe(0);
  return statuses;
}

async function metric(name: RegExp): Promise<number> {
  const text = await (await fetch(`${server.url}/metrics`, { headers: { connection: 'close' } })).text();
  return Number(new RegExp(`^${name.source} (\\d+)$`, 'm').exec(text)![1]);
}

const heldByRequests = () => metric(/skein:held_memory_bytes\{holding="request"\}/);

function expectAnswers(statuses: readonly (number | null)[], ...some: number[]): void {
  expect(statuses.filter((status) => status === null || !ANSWERS.has(status))).toEqual([]);
  for (const status of some) expect(statuses).toContain(status);
}

function filled(head: string, fill: string, tail: string): Buffer {
  const room = BODY_BYTES - Buffer.byteLength(head + tail);
  return Buffer.from(head + fill.repeat(Math.floor(room / Buffer.byteLength(fill))) + tail);
}

describe('what many clients make the server hold', () => {
  const longText = filled('{"prompt":"', 'a', '"}');

  it('is bounded: of long texts', async () => {
    expectAnswers(await attack({ path: '/v1/completions', body: longText }));
  });

  it('is bounded: of long texts without a length', async () => {
    const manners = { isChunked: true };
    expectAnswers(await attack({ path: '/v1/completions', body: longText, manners }));
  });

  it('is bounded: of lists of small values', async () => {
    const body = Buffer.from(`{"prompt":[${'{"a":1},'.repeat(160_000)}0]}`);
    expectAnswers(await attack({ path: '/v1/completions', body }), 400);
  });

  it('is bounded: of bodies whose end does not come', async () => {
    const held = () => expect.poll(heldByRequests).toBeGreaterThan(LIMIT / 2);
    const manners = { sentAtOnce: BODY_BYTES - 10_000 };
    await attack({ path: '/v1/completions', body: longText, manners, until: held });
  });

  it('is bounded: of answers that nobody reads', async () => {
    const body = { prompt: 'Once', n: 8, max_tokens: 60, ignore_eos: true, logprobs: 20, stream: true };
    await attack({
      path: '/v1/completions',
      body: Buffer.from(JSON.stringify(body)),
      manners: { reads: false },
      // Some answers may be whole before they are looked at.
      until: stream,
    });
  });

  it('is bounded: of readers of statistics that read nothing', async () => {
    await attack({
      method: 'GET',
      path: '/stats/stream',
      body: Buffer.alloc(0),
      manners: { reads: false },
      until: () => expect.poll(heldByRequests).toBeGreaterThanOrEqual(CLIENTS * 128 * 1024),
    });
  });

  it('is told by the metrics, and given back', async () => {
    expect(await metric(/skein:held_memory_limit_bytes/)).toBe(LIMIT);
    expect(rss() - firstRss).toBeLessThan(LIMIT + SLACK);
  });
});
