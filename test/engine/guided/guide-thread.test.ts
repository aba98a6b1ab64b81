import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Guide } from '../../../callbacks/guide.js';
import type { GuideThreadSetup } from '../../../callbacks/worker-messages.js';
import { type GuideReply, wordsOfMask } from '../../../engine/guided/guide-messages.js';
import { GuideThreadPort, type GuideThreadStarter } from '../../../engine/guided/guide-thread.js';
import { TestEngines, tinyModelPath } from '../../../tools/support/test-engine.js';

const VOCAB = 320;
const engines = new TestEngines();
let enginePath: string;
let host: GuideThreadStarter;
let thread: GuideThreadPort;

beforeAll(async () => {
  enginePath = (await engines.get(tinyModelPath('gqa'), 'f32')).directory;
  // The compiled one: its thread runs JavaScript.
  const compiled = new URL('../../../dist/engine/guided/guide-thread-host.js', import.meta.url).href;
  const { GuideThreadHost } = (await import(compiled)) as { GuideThreadHost: new () => GuideThreadStarter };
  host = new GuideThreadHost();
  const starter = { start: (setup: GuideThreadSetup) => host.start(setup), stop: () => host.stop() };
  thread = new GuideThreadPort(starter, { enginePath, vocabSize: VOCAB });
});

afterEach(() => thread.stop());
afterAll(() => engines.remove());

/** Waits for a reply as the loop does: without a turn of the event loop. */
function next(): GuideReply {
  for (let i = 0; i < 6000; i++) {
    const reply = thread.receive();
    if (reply !== undefined) return reply;
    thread.wait(10);
  }
  throw new Error('no reply within a minute');
}

const endTokens = Int32Array.of(2);
const WORDS = wordsOfMask(VOCAB);
const rowsOf = (count: number) => new SharedArrayBuffer(4 * WORDS * count);

function open(first: number, guide: Guide, masks = rowsOf(1), count = 1): void {
  thread.post({ type: 'open', first, count, guide, endTokens, masks });
}

/** Tokens that fit in a row. */
function fitting(masks: SharedArrayBuffer, row: number): number {
  return [...new Int32Array(masks, row * 4 * WORDS, WORDS)]
    .map((word) => (word >>> 0).toString(2).replaceAll('0', '').length)
    .reduce((sum, count) => sum + count);
}

describe('the thread that follows guides', () => {
  it('opens guides, and writes masks into shared memory', () => {
    thread.start();
    const masks = rowsOf(2);
    open(7, { type: 'regex', guide: '[0-9][a-f]' }, masks, 2);
    expect(next()).toEqual({ type: 'opened', first: 7, error: '', isInvalid: false });
    expect([fitting(masks, 0), fitting(masks, 1)]).toEqual([10, 10]);
    open(9, { type: 'regex', guide: '(' });
    expect(next()).toMatchObject({ first: 9, isInvalid: true });
    const digit = Array.from({ length: VOCAB }, (_, token) => token).find(
      (token) => new Int32Array(masks)[token >> 5]! & (1 << (token & 31)),
    )!;
    thread.post({ type: 'mask', step: 3, entries: Int32Array.of(8, 0, 1, 0, 1, digit) });
    const reply = next();
    expect(reply).toMatchObject({ type: 'masked', failures: [] });
    expect([...(reply as { done: Int32Array }).done]).toEqual([3, 8]);
    expect([fitting(masks, 0), fitting(masks, 1)]).toEqual([10, 6]);
  });

  it('says behind the masks what is forced, to those who ask', () => {
    thread.start();
    open(7, { type: 'regex', guide: 'q-{12}[0-9]' });
    expect(next()).toMatchObject({ error: '' });
    for (const [step, asks] of [0, 1].entries()) {
      thread.post({ type: 'mask', step, entries: Int32Array.of(7, 0, 0, 0, asks) });
      expect(next()).toMatchObject({ type: 'masked' });
    }
    const forced = next();
    if (forced.type !== 'forced') throw new Error(forced.type);
    expect([forced.step, forced.entries[0], forced.entries[1]]).toEqual([1, 7, 0]);
    expect(forced.entries[3]).toBe(forced.entries.length - 4);
    expect(forced.entries[3]).toBeGreaterThan(0);
  });

  it('once dead says so, and another one answers', async () => {
    thread.start();
    open(1, { type: 'json', guide: '' });
    expect(next()).toMatchObject({ error: '' });
    host.stop();
    await expect.poll(() => thread.isDead).toBe(true);
    thread.start();
    expect(thread.isDead).toBe(false);
    open(2, { type: 'json', guide: '' });
    expect(next()).toMatchObject({ first: 2, error: '' });
  });

  it('goes on after guides that ask for too much', () => {
    thread.start();
    const hostile = [
      '(a{9999}){9999}',
      '((a?){99}){99}',
      `${'(a|aa)+'.repeat(500)}`,
      '(.{0,99}x){0,99}',
      '(.*[a-m].{1200}|.*[n-z].{1100})',
    ];
    for (const [i, guide] of hostile.entries()) open(i, { type: 'regex', guide });
    const replies = hostile.map(next);
    const tooLarge = replies.find((reply) => reply.type === 'opened' && reply.first === 0);
    expect(tooLarge).toMatchObject({ isInvalid: true, error: expect.stringContaining('too large') });
    open(99, { type: 'choice', guide: '["a"]' });
    expect(next()).toEqual({ type: 'opened', first: 99, error: '', isInvalid: false });
  });
});
