import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { postJson } from '../support/post-json.js';
import { expectIdle } from './support/metrics.js';
import { type SkeinProcess, startFakeServer } from './support/skein-process.js';
import { startedServers } from './support/started-servers.js';
import { certificateFixture } from './support/tls.js';

const started = startedServers();

/** A server whose every iteration takes some milliseconds. */
const serve = (flags: Record<string, string | string[]>, fake: Record<string, number> = {}) =>
  started(
    startFakeServer(
      { model: tinyModelPath('gqa'), ...flags },
      { vocabSize: 320, stepMs: 5, maxSeqLen: 4096, ...fake },
    ),
  );

function complete(
  server: SkeinProcess,
  fields: object,
  headers: Record<string, string> = {},
): Promise<Response> {
  const body = { prompt: 'ab', temperature: 0, ignore_eos: true, ...fields };
  return postJson(`${server.url}/v1/completions`, body, { headers });
}

describe('a request', () => {
  it('is cancelled from outside by its id, within a few iterations, and its blocks are free', async () => {
    const server = await serve({});
    const answer = await complete(server, { max_tokens: 3000, stream: true }, { 'x-request-id': 'goose' });
    const cancel = await fetch(`${server.url}/v1/requests/goose/cancel`, { method: 'POST' });
    expect([answer.status, cancel.status]).toEqual([200, 200]);
    const frames = await answer.text();
    expect(frames).toMatch(/"finish_reason":"length","stop_reason":"cancelled"[\s\S]*data: \[DONE\]\n\n$/);
    await expectIdle(server.url);
    expect((await fetch(`${server.url}/v1/cache/reset`, { method: 'POST' })).status).toBe(200);
  });

  it('of one key does not wait for the flood of another', async () => {
    const flags = { apiKey: ['ka', 'kb'], fairQueueing: 'true', maxActiveRequests: '2' };
    // Each of the flood takes more than a second: a moment of a busy machine is not one more of them.
    const server = await serve(flags, { stepMs: 20 });
    let ended = 0;
    for (let i = 0; i < 60; i++) {
      void complete(server, { max_tokens: 60 }, { 'x-api-key': 'ka' })
        .then((answer) => answer.text())
        .then(
          () => ended++,
          () => {}, // those that are left when the server ends
        );
    }
    await expect.poll(() => ended, { interval: 5 }).toBeGreaterThan(0);
    const before = ended;
    expect((await complete(server, { max_tokens: 4 }, { 'x-api-key': 'kb' })).status).toBe(200);
    // Two that ran, and a turn of 512 tokens; and some whose ends were on their way.
    expect(ended - before).toBeLessThanOrEqual(2 + 9 + 4);
  });
});

describe('with fair queueing', () => {
  it('one key cannot fill the queue: its flood is refused, and another key is answered each time', async () => {
    const flags = {
      apiKey: ['ka', 'kb'],
      fairQueueing: 'true',
      maxActiveRequests: '1',
      maxQueuedRequests: '16',
    };
    const server = await serve(flags);
    const flood = Array.from({ length: 40 }, () =>
      complete(server, { max_tokens: 60 }, { 'x-api-key': 'ka' }),
    );
    const refused = await Promise.any(
      flood.map(async (one) => {
        const answer = await one;
        if (answer.status === 200) throw new Error('It was accepted.');
        return answer;
      }),
    );
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({
      error: {
        code: 'queue_full',
        message: expect.stringMatching(/^The queue is full: [89] requests of this API key are waiting/),
      },
    });
    const others = Array.from({ length: 4 }, () =>
      complete(server, { max_tokens: 1 }, { 'x-api-key': 'kb' }),
    );
    for (const answer of await Promise.all(others)) expect(answer.status).toBe(200);
    const statuses = (await Promise.all(flood)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200).length).toBeLessThan(20);
  });
});

describe('a client that does not read', () => {
  it('is cut off after the limit; its request ends, and it is counted', async () => {
    const server = await serve({ streamStallTimeoutSeconds: '1', defaultMaxTokens: '4000' }, { stepMs: 0 });
    const { port } = new URL(server.url);
    const prompt = 'a'.repeat(3000);
    // Enough streams to fill the buffers of both sockets: each frame carries all log-probs.
    const body = JSON.stringify({
      prompt,
      max_tokens: 1000,
      n: 16,
      logprobs: 20,
      stream: true,
      ignore_eos: true,
    });
    const socket = connect(Number(port), '127.0.0.1');
    socket.on('error', () => {});
    socket.pause();
    socket.write(
      `POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    const counted = async () => {
      const metrics = await (await fetch(`${server.url}/metrics`)).text();
      return /skein:stalled_readers_total (\d+)/.exec(metrics)?.[1];
    };
    await expect.poll(counted, { interval: 100 }).toBe('1');
    await expectIdle(server.url);
    socket.destroy();
  });
});

describe('HTTPS', () => {
  it('is spoken with a certificate, and nothing else is then', async () => {
    const { cert, key } = certificateFixture('localhost');
    const server = await serve({ tlsCert: cert, tlsKey: key });
    expect(server.url).toMatch(/^https:/);
    const status = await new Promise((resolve, reject) => {
      const request = httpsRequest(`${server.url}/health`, { ca: readFileSync(cert) }, (response) => {
        text(response).then((body) => resolve([response.statusCode, JSON.parse(body)]), reject);
      });
      request.on('error', reject).end();
    });
    expect(status).toEqual([200, expect.objectContaining({ status: 'ready' })]);
    await expect(fetch(`${server.url.replace('https', 'http')}/health`)).rejects.toThrow();
    const curl = spawn('curl', ['--silent', '--cacert', cert, `${server.url}/version`]);
    expect(JSON.parse(await text(curl.stdout))).toHaveProperty('version');
    expect((await server.stop()).code).toBe(0);
  });
});
