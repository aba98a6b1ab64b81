import { spawn } from 'node:child_process';
import { request } from 'node:http';
import { type RunningServer, spawnSkein, withServer } from '../../compare/run-server.js';
import type { Turn } from './chats.js';

/** Asks for `count` tokens after a prompt, all of them the given one. */
export type Ask = (prompt: readonly number[], count: number, answer: number) => Promise<Turn>;

/** A kind of server, which is started for each chat. */
export interface TurnServer {
  run<T>(chat: (ask: Ask) => Promise<T>): Promise<T>;
}

interface Served {
  file: string;
  threads: number;
  /** Most tokens of a sequence. */
  room: number;
}

export function skeinServer({ file, cache, threads, room }: Served & { cache: string }): TurnServer {
  const args = (port: number) => [
    ...['--model', file, '--weights', 'stored', '--cache-dir', cache, '--port', String(port)],
    ...['--host', '127.0.0.1', '--threads', String(threads), '--max-context-tokens', String(room)],
  ];
  return {
    run: (chat) =>
      withServer(
        (port) => spawnSkein(args(port)),
        (server) =>
          chat((prompt, count, answer) =>
            timed(server, { prompt, max_tokens: count, logit_bias: { [answer]: 100 } }, ({ usage }) => {
              const { prompt_tokens: all, prompt_tokens_details: details } = usage;
              return all - (details?.cached_tokens ?? 0);
            }),
          ),
      ),
  };
}

export function llamaServer(program: string, { file, threads, room }: Served): TurnServer {
  const args = (port: number) => [
    ...[
      '-m',
      file,
      '--host',
      '127.0.0.1',
      '--port',
      String(port),
      '-t',
      String(threads),
      '-tb',
      String(threads),
    ],
    ...['-c', String(room), '-np', '1', '--no-webui', '-fa', 'on'],
  ];
  return {
    run: (chat) =>
      withServer(
        (port) => spawn(program, args(port), { stdio: 'ignore' }),
        (server) =>
          chat((prompt, count, answer) =>
            timed(
              server,
              { prompt, max_tokens: count, cache_prompt: true, logit_bias: [[answer, 1000]] },
              ({ timings }) => timings!.prompt_n,
            ),
          ),
      ),
  };
}

interface Completion {
  usage: { prompt_tokens: number; prompt_tokens_details?: { cached_tokens?: number } };
  timings?: { prompt_n: number };
}

async function timed(
  { url, model }: RunningServer,
  body: object,
  computed: (answer: Completion) => number,
): Promise<Turn> {
  const startMs = performance.now();
  const { status, text } = await post(`${url}/v1/completions`, { model, temperature: 0, ...body });
  if (status !== 200) throw new Error(`${url}/v1/completions answers ${status}: ${text.slice(0, 300)}`);
  const answer = JSON.parse(text) as Completion;
  return { seconds: (performance.now() - startMs) / 1000, computed: computed(answer) };
}

/** Waits for an answer as long as it takes, where fetch gives up after five minutes. */
function post(url: string, body: object): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', headers: { 'content-type': 'application/json' } });
    sent.on('error', reject).on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      response.on('error', reject).on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.end(JSON.stringify(body));
  });
}
