import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { countOf } from '../../compare/flags.js';
import { MeteredServer } from '../../request-costs/metered-server.js';
import { DEMO_MODEL } from '../../request-costs/session.js';
import { markdownTable } from '../../support/markdown-table.js';
import { median } from '../../support/statistics.js';
import { defineBench } from '../bench.js';
import { roundsFlag } from '../flags.js';

const FLAGS = {
  ...roundsFlag(6),
  requests: { argument: 'N', default: '400', help: 'requests of the crowd (default 400)' },
} as const;
/** Milliseconds for everything of a round before to end. */
const REST_MS = 300;

/** What one crowd cost. Processor times of the server's main thread, waits by the clock; milliseconds. */
interface Round {
  holdMs: number;
  mainMs: number;
  lastAnswerMs: number;
  healthMs: number;
  answered: number;
}

/** An open connection that sends one request each time it is asked to. */
class Client {
  readonly #socket: Socket;
  readonly #request: string;

  private constructor(socket: Socket, request: string) {
    this.#socket = socket;
    this.#request = request;
  }

  static async open(url: string, request: string): Promise<Client> {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
      .setNoDelay(true)
      .setEncoding('utf8');
    await once(socket, 'connect');
    return new Client(socket, request);
  }

  /** Resolves with the beginning of the answer. */
  async ask(): Promise<{ status: string; tookMs: number }> {
    const startMs = performance.now();
    this.#socket.write(this.#request);
    const [text] = (await once(this.#socket, 'data')) as [string];
    return { status: text.split(' ', 2)[1]!, tookMs: performance.now() - startMs };
  }

  close(): void {
    this.#socket.destroy();
  }
}

const BODY = JSON.stringify({ prompt: 'Once', max_tokens: 1 });
const COMPLETION = `POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`;
const HEALTH = 'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n';

async function crowd(server: MeteredServer, count: number): Promise<Round> {
  const health = await Client.open(server.url, HEALTH);
  const clients: Client[] = [];
  for (let i = 0; i < count; i++) clients.push(await Client.open(server.url, COMPLETION));
  await sleep(REST_MS);
  const { mainNs: before } = await server.noted(true);
  let isOver = false;
  const answers = Promise.all(clients.map((client) => client.ask())).finally(() => {
    isOver = true;
  });
  let healthMs = 0;
  while (!isOver) healthMs = Math.max(healthMs, (await health.ask()).tookMs);
  const all = await answers;
  const { mainNs, holdNs } = await server.noted();
  for (const client of [health, ...clients]) client.close();
  return {
    holdMs: holdNs / 1e6,
    mainMs: (mainNs - before) / 1e6,
    healthMs,
    lastAnswerMs: Math.max(...all.map(({ tookMs }) => tookMs)),
    answered: all.filter(({ status }) => status === '200').length,
  };
}

/** What hundreds of requests in one moment cost all other clients. */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/server.md',
  sections: ['crowd'],
  async run(flags, { report, progress }) {
    const [rounds, count] = [countOf('rounds', flags.rounds), countOf('requests', flags.requests)];
    const server = await MeteredServer.start(['--model', DEMO_MODEL.path, '--threads', '1'], process.env);
    const all: Round[] = [];
    try {
      for (let round = 0; round <= rounds; round++) {
        const one = await crowd(server, count);
        progress(`round ${round}: ${one.holdMs.toFixed(0)} ms held, ${one.answered} answered`);
        // The code of the first one is not compiled.
        if (round > 0) all.push(one);
      }
    } finally {
      await server.stop();
    }
    const shown = (of: (round: Round) => number) => {
      const values = all.map(of);
      return `${median(values).toFixed(0)} (${Math.max(...values).toFixed(0)})`;
    };
    const rows = [
      ['main thread held without a turn, processor ms', shown(({ holdMs }) => holdMs)],
      ['main thread, processor ms', shown(({ mainMs }) => mainMs)],
      ['longest wait for /health, ms', shown(({ healthMs }) => healthMs)],
      ['last answer, ms', shown(({ lastAnswerMs }) => lastAnswerMs)],
      ['answered', shown(({ answered }) => answered)],
    ];
    report({
      section: 'crowd',
      conditions: `${count} requests, ${rounds} rounds`,
      lines: [markdownTable(['of a crowd', 'median (most)'], rows)],
    });
  },
});
