import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Feed } from '../../../../../src/server/dashboard/page/feed.js';
import type { FeedState } from '../../../../../src/server/dashboard/page/live-stream.js';
import { Session } from '../../../../../src/server/dashboard/page/session.js';

const QUICK = { firstWaitMs: 10, maxWaitMs: 40, silenceLimitMs: 60_000 };
const FORMATION = { model: 'm', v: 1, timeMs: 1, iteration: 3, requests: [], queued: 0, ended: [] };

let server: Server;
let answers: ((response: ServerResponse) => void)[];
let keys: (string | undefined)[];
let paths: string[];
let session: Session;
let feed: Feed;
let states: FeedState[];

const streams = (response: ServerResponse, text = '') => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(`: skein\n\n${text}`);
};

beforeEach(async () => {
  answers = [];
  keys = [];
  paths = [];
  states = [];
  server = createServer((request, response) => {
    keys.push(request.headers.authorization);
    paths.push(request.url!);
    const answer = answers.shift() ?? streams;
    answer(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  session = new Session(`http://127.0.0.1:${(server.address() as AddressInfo).port}/prefix/`, null);
  makeFeed(QUICK);
});

function makeFeed(options: typeof QUICK): void {
  feed = new Feed(session, options);
  feed.on('state', (state) => states.push(state));
}
afterEach(() => {
  feed.close();
  server.closeAllConnections();
  server.close();
});

const kinds = () => states.map(({ kind }) => kind);

describe('the feed of the dashboard', () => {
  it('hands on what comes, wherever it is cut, and knows the latest', async () => {
    const text = `event: formation\ndata: ${JSON.stringify(FORMATION)}\n\nevent: stats\ndata: {"model":"m","Iteration Counter":4}\n\n`;
    answers.push((response) => {
      streams(response);
      for (const letter of text) response.write(letter);
    });
    const told: unknown[] = [];
    feed.on('formation', ({ iteration }) => told.push(['formation', iteration]));
    feed.on('stats', (stats) => told.push(['stats', stats['Iteration Counter']]));
    feed.watch('a model/x');
    await expect
      .poll(() => told)
      .toEqual([
        ['formation', 3],
        ['stats', 4],
      ]);
    expect(feed.formation).toMatchObject({ iteration: 3 });
    // Relative to where the page is.
    expect(paths).toEqual(['/prefix/stats/stream?model=a%20model%2Fx']);
    expect(kinds()).toEqual(['connecting', 'live']);
  });

  it('connects again by itself when the stream ends, is cut or refused', async () => {
    answers.push(
      (response) => {
        streams(response);
        response.end();
      },
      (response) => {
        streams(response);
        response.write(': more\n\n', () => response.destroy());
      },
      (response) => {
        response.writeHead(503, { 'retry-after': '0', 'content-type': 'application/json' });
        response.end('{"error":{"message":"The server is shutting down."}}');
      },
    );
    feed.watch('m');
    await expect.poll(() => paths.length).toBe(4);
    const reasons = states.flatMap((state) => (state.kind === 'waiting' ? [state.reason] : []));
    expect(reasons).toEqual([
      'The server closed the stream.',
      'The server cannot be reached.',
      'The server is shutting down.',
    ]);
  });

  it('takes a connection that falls silent for dead', async () => {
    makeFeed({ ...QUICK, silenceLimitMs: 50 });
    feed.watch('m');
    await expect.poll(() => paths.length).toBeGreaterThan(1);
    expect(states).toContainEqual(expect.objectContaining({ reason: 'The server fell silent.' }));
  });

  it('asks for a key once, and goes on with the right one', async () => {
    const locked = (response: ServerResponse) => {
      response.writeHead(401, { 'content-type': 'application/json' });
      response.end('{"error":{"message":"no"}}');
    };
    answers.push(locked, locked);
    const asked: boolean[] = [];
    session.on('locked', ({ wasRefused }) => asked.push(wasRefused));
    feed.watch('m');
    await expect.poll(kinds).toEqual(['connecting', 'locked']);
    session.unlock('wrong');
    await expect.poll(() => asked).toEqual([false, true]);
    session.unlock('sesame');
    await expect.poll(kinds).toEqual(['connecting', 'locked', 'connecting', 'locked', 'connecting', 'live']);
    expect(keys).toEqual([undefined, 'Bearer wrong', 'Bearer sesame']);
  });

  it('says when the server does not know the model any more', async () => {
    answers.push((response) => {
      response.writeHead(404, { 'content-type': 'application/json' });
      response.end('{"error":{"message":"The model is not there."}}');
    });
    const gone: string[] = [];
    feed.on('gone', ({ model }) => {
      gone.push(model);
      feed.hold({ kind: 'connecting' });
    });
    feed.watch('old');
    await expect.poll(() => gone).toEqual(['old']);
    expect([feed.model, feed.state]).toEqual([null, { kind: 'connecting' }]);
    // The reconnection that it had planned is cancelled.
    await new Promise((resolve) => setTimeout(resolve, 80));
    expect(paths).toHaveLength(1);
  });

  it('tells of another model that all begins anew', async () => {
    const resets: (string | null)[] = [];
    feed.on('reset', ({ model }) => resets.push(model));
    feed.watch('one');
    await expect.poll(kinds).toEqual(['connecting', 'live']);
    feed.watch('two');
    await expect.poll(kinds).toEqual(['connecting', 'live', 'connecting', 'live']);
    expect(resets).toEqual(['one', 'two']);
    expect(feed.formation).toBeNull();
  });
});
