import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  type GuideReply,
  type GuideThreadSetup,
  wordsOfMask,
} from '../../../engine/guided/guide-messages.js';
import { GuideThreadPort, type GuideThreadStarter } from '../../../engine/guided/guide-thread.js';
import { TestEngines, tinyModelPath } from '../../support/test-engine.js';

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

/** As the loop waits: without an event loop. */
function next(): GuideReply {
  for (let i = 0; i < 6000; i++) {
    const reply = thread.receive();
    if (reply !== undefined) return reply;
    thread.wait(10);
  }
  throw new Error('no reply within a minute');
}

const endTokens = Int32Array.of(2);

describe('the thread that follows guides', () => {
  it('opens guides, and writes masks into shared memory', () => {
    thread.start();
    thread.post({ type: 'open', sequence: 7, guide: { type: 'regex', guide: '[0-9]' }, endTokens });
    expect(next()).toEqual({ type: 'opened', sequence: 7, error: '', isInvalid: false });
    thread.post({ type: 'open', sequence: 8, guide: { type: 'regex', guide: '(' }, endTokens });
    expect(next()).toMatchObject({ sequence: 8, isInvalid: true });
    const words = new SharedArrayBuffer(2 * 4 * wordsOfMask(VOCAB));
    thread.post({ type: 'mask', step: 3, words, entries: Int32Array.of(7, 1, 0, 0, 0, 1) });
    expect(next()).toEqual({ type: 'masked', step: 3, failures: [] });
    const bits = (row: number) =>
      [...new Int32Array(words, row * 4 * wordsOfMask(VOCAB), wordsOfMask(VOCAB))]
        .map((word) => (word >>> 0).toString(2).replaceAll('0', '').length)
        .reduce((sum, count) => sum + count);
    expect([bits(0), bits(1)]).toEqual([0, 10]);
  });

  it('says behind the masks what is forced, to those who ask', () => {
    thread.start();
    const guide = { type: 'regex', guide: 'q-{12}[0-9]' } as const;
    thread.post({ type: 'open', sequence: 7, guide, endTokens });
    expect(next()).toMatchObject({ error: '' });
    const words = new SharedArrayBuffer(4 * wordsOfMask(VOCAB));
    for (const [step, asks] of [0, 1].entries()) {
      thread.post({ type: 'mask', step, words, entries: Int32Array.of(7, 0, 0, 0, 0, asks) });
    }
    expect(next()).toMatchObject({ type: 'masked', step: 0 });
    expect(next()).toMatchObject({ type: 'masked', step: 1 });
    const forced = next();
    if (forced.type !== 'forced') throw new Error(forced.type);
    expect([forced.step, forced.entries[0], forced.entries[1]]).toEqual([1, 7, 0]);
    expect(forced.entries[3]).toBe(forced.entries.length - 4);
    expect(forced.entries[3]).toBeGreaterThan(0);
  });

  it('once dead says so, and another one answers', async () => {
    thread.start();
    thread.post({ type: 'open', sequence: 1, guide: { type: 'json', guide: '' }, endTokens });
    expect(next()).toMatchObject({ error: '' });
    host.stop();
    await expect.poll(() => thread.isDead).toBe(true);
    thread.start();
    expect(thread.isDead).toBe(false);
    thread.post({ type: 'open', sequence: 2, guide: { type: 'json', guide: '' }, endTokens });
    expect(next()).toMatchObject({ sequence: 2, error: '' });
  });

  it('goes on after guides that ask for too much', () => {
    thread.start();
    const hostile = ['(a{9999}){9999}', '((a?){99}){99}', `${'(a|aa)+'.repeat(500)}`, '(.{0,99}x){0,99}'];
    for (const [i, guide] of hostile.entries()) {
      thread.post({ type: 'open', sequence: i, guide: { type: 'regex', guide }, endTokens });
    }
    const replies = hostile.map(next);
    expect(replies[0]).toMatchObject({ isInvalid: true, error: expect.stringContaining('too large') });
    thread.post({ type: 'open', sequence: 99, guide: { type: 'choice', guide: '["a"]' }, endTokens });
    expect(next()).toEqual({ type: 'opened', sequence: 99, error: '', isInvalid: false });
  });
});
