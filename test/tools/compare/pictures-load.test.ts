import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { pictureHeader } from '../../../models/images/files/picture-header.js';
import { PICTURE_LIMITS } from '../../../models/images/picture-limits.js';
import {
  firstAndSecond,
  noisePng,
  picturesPerSecond,
  textsAlone,
  textsBeside,
} from '../../../tools/compare/pictures-load.js';

interface Asked {
  messages: { content: string | { image_url?: { url: string } }[] }[];
  max_tokens: number;
}

/** What a server was asked, in order; its answers have `max_tokens` pieces. */
const asked: Asked[] = [];
const server = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = JSON.parse(Buffer.concat(chunks).toString()) as Asked;
  asked.push(body);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const piece = `data: ${JSON.stringify({ choices: [{ delta: { content: 'a' } }] })}\n\n`;
  // Users of texts get pieces until they leave.
  const isText = typeof body.messages[0]!.content === 'string';
  for (let i = 0; !response.destroyed && (isText || i < body.max_tokens); i++) {
    response.write(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  response.end();
});
const seeing = { url: '', model: 'm', side: 8 };

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  seeing.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.closeAllConnections());

const pictureOf = ({ messages }: Asked) => {
  const { content } = messages[0]!;
  return typeof content === 'string' ? null : content[0]!.image_url!.url;
};

it('makes PNG files of noise, all different', () => {
  const [one, other] = [noisePng(8, 1), noisePng(8, 2)];
  expect(pictureHeader(one, PICTURE_LIMITS)).toMatchObject({ kind: 'PNG', width: 8, height: 8 });
  expect(one.equals(noisePng(8, 1))).toBe(true);
  expect(one.equals(other)).toBe(false);
});

it('asks of each user a picture of its own, and twice of one', async () => {
  asked.length = 0;
  expect(await picturesPerSecond(seeing, 3, 0)).toBeGreaterThan(0);
  expect(new Set(asked.map(pictureOf)).size).toBe(4);
  asked.length = 0;
  const { first, second } = await firstAndSecond(seeing, 0);
  expect(Math.min(first, second)).toBeGreaterThan(0);
  // What is measured comes after the same of another picture.
  const [before, , picture] = asked.map(pictureOf);
  expect(asked.map(pictureOf)).toEqual([before, before, picture, picture]);
  expect(picture).not.toBe(before);
  expect(asked[2]!.messages).not.toEqual(asked[3]!.messages);
});

it('counts what users of texts get alone and beside pictures', async () => {
  asked.length = 0;
  const { alone, beside } = await textsBeside(seeing, { users: 2, aloneMs: 20, pictures: 3, seed: 1 });
  expect(asked.map((one) => pictureOf(one) !== null)).toEqual([true, false, false, true, true, true]);
  for (const { tokensPerSecond, longestGapMs } of [alone, beside]) {
    expect(tokensPerSecond).toBeGreaterThan(0);
    expect(longestGapMs).toBeGreaterThan(0);
  }
});

it.each([true, false])('counts what they get where no picture comes: with a tower %s', async (sees) => {
  asked.length = 0;
  const { tokensPerSecond } = await textsAlone(seeing, { users: 2, aloneMs: 20, seed: 2, sees });
  expect(tokensPerSecond).toBeGreaterThan(0);
  expect(asked.map((one) => pictureOf(one) !== null)).toEqual([...(sees ? [true] : []), false, false]);
});
