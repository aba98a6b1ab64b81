import { readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Random } from '../../tools/soak/random.js';
import { tinyModelPath } from '../support/test-engine.js';
import { expectIdle } from './support/metrics.js';
import { type SkeinProcess, startFakeServer } from './support/skein-process.js';

/** More of them for a long soak: SKEIN_SOAK_SECONDS=600. */
const SECONDS = Number(process.env.SKEIN_SOAK_SECONDS ?? 5);
const CLIENTS = 128;
const KINDS = ['stays', 'before headers', 'in mid-frame', 'half-open', 'reset', 'not reading'] as const;
type Kind = (typeof KINDS)[number];

let server: SkeinProcess;

beforeAll(async () => {
  server = await startFakeServer(
    { model: tinyModelPath('gqa'), maxNumSequences: '48', maxTokens: '16384', maxQueueSize: '512' },
    { vocabSize: 320, stepMs: 1 },
  );
});
afterAll(async () => {
  await server?.stop();
});

/** A request of one of the kinds that clients send. Each of its numbers asks for the same again. */
function requestOf(number: number): { path: string; body: object } {
  const common = { max_tokens: 16 + (number % 24), seed: number, ignore_eos: true, stream: true };
  if (number % 3 === 0) {
    return {
      path: '/v1/chat/completions',
      body: { ...common, messages: [{ role: 'user', content: `Say ${number}.` }] },
    };
  }
  return { path: '/v1/completions', body: { ...common, n: 1 + (number % 2), prompt: `Once ${number}` } };
}

/** All that a connection says to one request, which the client leaves in its own way. */
function exchange(number: number, kind: Kind, random: Random): Promise<string> {
  const { path, body } = requestOf(number);
  const text = JSON.stringify(body);
  const head = `POST ${path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: ${text.length}\r\n\r\n`;
  const after = random.integer(1, 2000);
  return new Promise((resolve) => {
    let said = '';
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1', () => {
      socket.write(head + text);
      if (kind === 'half-open') socket.end();
      if (kind === 'before headers') setImmediate(() => socket.destroy());
      if (kind === 'not reading') {
        socket.pause();
        setTimeout(() => socket.destroy(), random.integer(10, 200));
      }
    });
    socket.setEncoding('utf8').on('data', (data) => {
      said += data;
      if (said.length < after) return;
      if (kind === 'in mid-frame') socket.destroy();
      if (kind === 'reset') socket.resetAndDestroy();
    });
    socket.on('error', () => {}).on('close', () => resolve(said));
  });
}

/** The text of each choice of a stream that came to its end. */
function textsOf(said: string): string[] {
  expect(said).toContain('data: [DONE]\n\n');
  const texts: string[] = [];
  for (const [, json] of said.matchAll(/^data: (\{.*\})$/gm)) {
    for (const { index, text, delta } of JSON.parse(json!).choices) {
      texts[index] = (texts[index] ?? '') + (text ?? delta.content ?? '');
    }
  }
  return texts;
}

function sockets(): number {
  return readdirSync(`/proc/${server.child.pid}/fd`).length;
}

it(`takes ${CLIENTS} streams at once of which most leave in every way there is: nothing is left of them, and who stays gets the answer that it gets alone`, async () => {
  const random = new Random(11);
  const alone = new Map<number, string[]>();
  for (let number = 0; number < 12; number++) {
    alone.set(number, textsOf(await exchange(number, 'stays', random)));
  }
  await expectIdle(server.url);
  const before = sockets();
  const endMs = performance.now() + 1000 * SECONDS;
  let stayed = 0;
  let left = 0;
  const client = async (index: number) => {
    const own = new Random(1000 + index);
    // Each at least once, however slow the machine is.
    do {
      const number = own.integer(0, 11);
      const kind = KINDS[own.integer(0, KINDS.length - 1)]!;
      const said = await exchange(number, kind, own);
      if (kind === 'stays') {
        expect(textsOf(said)).toEqual(alone.get(number));
        stayed++;
      } else left++;
    } while (performance.now() < endMs);
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, index) => client(index)));
  expect(stayed).toBeGreaterThan(0);
  expect(left).toBeGreaterThan(stayed);
  await expectIdle(server.url);
  await expect
    .poll(async () => {
      await sleep(50);
      return sockets();
    })
    .toBeLessThanOrEqual(before + 2);
  expect(textsOf(await exchange(3, 'stays', random))).toEqual(alone.get(3));
  // But for what the building of the engine says, where it had to be.
  expect(server.output().stderr.replaceAll(/^skein: (reading|converting|writing) .*\n/gm, '')).toBe('');
});
