import { crc32, deflateSync } from 'node:zlib';
import { Random } from '../support/random.js';

/** A server, and the side of the square pictures that it is sent. */
export interface SeeingServer {
  url: string;
  model: string;
  side: number;
}

/** Tokens of an answer in front of a second question: caches keep whole blocks, of which a picture's last one has some of these. */
const ANSWER_TOKENS = 40;

const WORDS = 'about there people would other which their after first water';

/** A PNG of noise, another one for each seed. */
export function noisePng(side: number, seed: number): Buffer {
  const random = new Random(seed + 1);
  const rows = Buffer.alloc(side * (1 + 3 * side));
  for (let at = 0; at < rows.length; at++) rows[at] = at % (1 + 3 * side) === 0 ? 0 : random.below(256);
  const header = Buffer.alloc(13);
  header.writeUInt32BE(side, 0);
  header.writeUInt32BE(side, 4);
  header.set([8, 2], 8);
  const chunks = [
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(rows, { level: 1 })),
    chunk('IEND', Buffer.alloc(0)),
  ];
  return Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), ...chunks]);
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

/** Asks in a stream, and calls `onPiece` for each piece of the answer. @throws where the server refuses */
async function ask(
  { url, model }: SeeingServer,
  content: unknown,
  maxTokens: number,
  onPiece: () => void,
  signal?: AbortSignal,
): Promise<void> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model,
      messages: [{ role: 'user', content }],
      ...{ max_tokens: maxTokens, temperature: 0, ignore_eos: true, stream: true },
    }),
    ...(signal && { signal }),
  });
  if (!response.ok) throw new Error(`${url} answers ${response.status}: ${await response.text()}`);
  const decoder = new TextDecoder();
  let rest = '';
  for await (const bytes of response.body!) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n');
    rest = lines.pop()!;
    for (const line of lines) if (/"content":\s*"[^"]/.test(line)) onPiece();
  }
}

/** Content with a picture and a question, each by its number. */
function question({ side }: SeeingServer, picture: number, text: number) {
  const url = `data:image/png;base64,${noisePng(side, picture).toString('base64')}`;
  return [
    { type: 'image_url', image_url: { url } },
    { type: 'text', text: `${WORDS} ${text}` },
  ];
}

/** Seconds until the first piece of an answer, of few tokens unless said otherwise. */
async function secondsToFirst(
  server: SeeingServer,
  picture: number,
  text: number,
  tokens = 2,
): Promise<number> {
  const content = question(server, picture, text);
  const startMs = performance.now();
  let firstMs = 0;
  await ask(server, content, tokens, () => (firstMs ||= performance.now()));
  return ((firstMs || performance.now()) - startMs) / 1000;
}

/**
 * `users` users at once, each with a picture of their own: pictures a second until the last answer begins.
 */
export async function picturesPerSecond(server: SeeingServer, users: number, seed: number): Promise<number> {
  await secondsToFirst(server, 10_000 + seed, 0);
  const all = await Promise.all(
    Array.from({ length: users }, (_, user) => secondsToFirst(server, seed * 100 + user, 0)),
  );
  return users / Math.max(...all);
}

/** Seconds to the first token of a question on a picture, and of another one on it, where both were asked of another picture before. */
export async function firstAndSecond(server: SeeingServer, seed: number) {
  await twoQuestions(server, 20_000 + seed);
  return twoQuestions(server, 30_000 + seed);
}

async function twoQuestions(server: SeeingServer, picture: number) {
  const first = await secondsToFirst(server, picture, 0, ANSWER_TOKENS);
  return { first, second: await secondsToFirst(server, picture, 1) };
}

/** Longest time between two pieces of any stream, and pieces a second, over a part of a run. */
interface Window {
  tokensPerSecond: number;
  longestGapMs: number;
}

/** What users of texts get alone, and while pictures are seen one after the other. */
export function textsBeside(
  server: SeeingServer,
  { users, aloneMs, pictures, seed }: { users: number; aloneMs: number; pictures: number; seed: number },
): Promise<{ alone: Window; beside: Window }> {
  return withTexts(server, { users, seed, sees: true }, async (window) => ({
    alone: await window(() => sleep(aloneMs)),
    beside: await window(async () => {
      for (let i = 0; i < pictures; i++) await secondsToFirst(server, 40_000 + seed * 100 + i, 0);
    }),
  }));
}

/** What users of texts get where no picture comes. @param sees whether the server has a tower, which is loaded before */
export function textsAlone(
  server: SeeingServer,
  { aloneMs, ...texts }: { users: number; aloneMs: number; seed: number; sees: boolean },
): Promise<Window> {
  return withTexts(server, texts, (window) => window(() => sleep(aloneMs)));
}

/** Runs `measure` while a number of users read their texts. */
async function withTexts<T>(
  server: SeeingServer,
  { users, seed, sees }: { users: number; seed: number; sees: boolean },
  measure: (window: (run: () => Promise<unknown>) => Promise<Window>) => Promise<T>,
): Promise<T> {
  // A tower may be loaded with the first picture.
  if (sees) await secondsToFirst(server, 50_000 + seed, 0);
  const end = new AbortController();
  const pieces: number[][] = Array.from({ length: users }, () => []);
  const streams = pieces.map((times, user) =>
    ask(server, `${WORDS} ${user}`, 1500, () => times.push(performance.now()), end.signal).catch(
      (error: unknown) => {
        if (!end.signal.aborted) throw error;
      },
    ),
  );
  const window = async (run: () => Promise<unknown>): Promise<Window> => {
    const startMs = performance.now();
    await run();
    return windowOf(pieces, startMs, performance.now());
  };
  while (pieces.some((times) => times.length < 2)) await sleep(20);
  const measured = await measure(window);
  end.abort();
  await Promise.all(streams);
  return measured;
}

function windowOf(pieces: readonly number[][], startMs: number, endMs: number): Window {
  let [count, longestGapMs] = [0, 0];
  for (const times of pieces) {
    const inside = times.filter((time) => time >= startMs && time < endMs);
    count += inside.length;
    const borders = [startMs, ...inside, endMs];
    for (let i = 1; i < borders.length; i++)
      longestGapMs = Math.max(longestGapMs, borders[i]! - borders[i - 1]!);
  }
  return { tokensPerSecond: (1000 * count) / (endMs - startMs), longestGapMs };
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
