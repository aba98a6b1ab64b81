import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { BatchEntry } from '../../../host/batch/batch-duties.js';
import type { BatchFormer, Formed } from '../../../host/batch/batch-former.js';
import type { BatchHost } from '../../../host/batch/batch-host.js';

/** A word, and the instance that it is for. */
interface Word extends BatchEntry {
  text: string;
  home: number;
  resolve(answer: string): void;
}
type Batch = { word: Word };
type Message = { type: 'done'; words: string[]; name: string };
type Host = BatchHost<Word, Batch, { name: string }, Message, object>;

let Compiled: new (...args: ConstructorParameters<typeof BatchHost>) => unknown;
beforeAll(async () => {
  const url = new URL('../../../dist/host/batch/batch-host.js', import.meta.url).href;
  Compiled = ((await import(url)) as { BatchHost: typeof Compiled }).BatchHost;
});
const folder = mkdtempSync(join(tmpdir(), 'skein-bound-batches-'));
const hosts: Host[] = [];
afterEach(async () => {
  for (const host of hosts.splice(0)) await host.close({ abort: true, terminateAfterMs: 0 });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Each word is a batch of its own instance, and is refused where that was lost. */
class Homes implements BatchFormer<Word, Batch> {
  /** What the host reports. */
  readonly told: string[] = [];
  #waiting: Word[] = [];
  readonly #lost: Word[] = [];

  add(word: Word): void {
    this.#waiting.push(word);
  }
  remove(word: Word): void {
    this.#waiting = this.#waiting.filter((one) => one !== word);
  }
  form(_nowUs: number, free: readonly number[]): Formed<Word, Batch> {
    const refused = this.#lost.splice(0).map((entry) => ({ entry, error: new Error('Its home is lost.') }));
    const word = this.#waiting.find(({ home }) => free.includes(home));
    if (word === undefined) return { batch: null, refused, wakeAtUs: null };
    this.remove(word);
    return { batch: { word }, instance: word.home, refused, wakeAtUs: null };
  }
  settle({ word }: Batch): void {
    this.told.push(`over ${word.text}`);
  }
  noteInstance(instance: number, isRunning: boolean): void {
    this.told.push(`${instance} ${isRunning ? 'runs' : 'is lost'}`);
    if (isRunning) return;
    this.#lost.push(...this.#waiting.filter(({ home }) => home === instance));
    this.#waiting = this.#waiting.filter(({ home }) => home !== instance);
  }
}

function open(instances: number) {
  const former = new Homes();
  const name = `h${hosts.length}-${Math.random().toString(36).slice(2)}`;
  const host = new Compiled(
    {
      subject: 'The dictionary',
      script: new URL('../../support/modules/batch-worker.mjs', import.meta.url),
      data: (index) => ({ name: `${name}-${index}`, folder, missing: false, claims: null }),
      instances,
      batchesAhead: 1,
      maxEntries: 100,
      workerRestart: { delayMs: 1 },
      onError: () => {},
    },
    {
      former,
      noteReady: () => {},
      entriesOf: ({ word }: Batch) => [word],
      pack: ({ word }: Batch, slot: number | null) => {
        expect(slot).toBeNull();
        if (word.text === 'unsendable') throw new Error('It cannot be sent.');
        return { command: { type: 'batch', slot, words: [word.text] }, transfer: [] };
      },
      endsBatch: ({ type }: Message) => type === 'done',
      deliver: ({ name: by }: Message, { word }: Batch) => {
        if (!host.has(word)) return;
        host.settle(word);
        word.resolve(`${word.text} by ${by.slice(-1)}`);
      },
      lostError: (error: Error) => error,
    } as never,
  ) as Host;
  hosts.push(host);
  const say = (text: string, home: number) =>
    new Promise<string>((resolve, reject) => {
      host.submit({ text, home, hasStarted: false, release: null, resolve, fail: reject });
    });
  const log = (index: number) => {
    const path = join(folder, `${name}-${index}.log`);
    return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : [];
  };
  return { host, former, say, log };
}

const outcome = (answer: Promise<string>) => answer.catch((error: Error) => error.message);

describe('batches that belong to an instance', () => {
  it('go to that one, whichever is free, and wait for it', async () => {
    const { host, former, say, log } = open(3);
    await host.ready;
    expect(former.told.toSorted()).toEqual(['0 runs', '1 runs', '2 runs']);
    const gate = join(folder, 'gate');
    const held = say(`wait:${gate}`, 2);
    const behind = [say('a', 2), say('b', 2)];
    await expect.poll(() => log(2)).toHaveLength(1);
    expect(await say('c', 1)).toBe('c by 1');
    expect(await say('d', 0)).toBe('d by 0');
    expect(log(2)).toHaveLength(1);
    writeFileSync(gate, '');
    expect(await Promise.all([held, ...behind])).toEqual([`wait:${gate} by 2`, 'a by 2', 'b by 2']);
    expect(former.told.slice(3)).toEqual(['over c', 'over d', `over wait:${gate}`, 'over a', 'over b']);
  });

  it('are over before their instance is told to be lost, and what is refused fails once', async () => {
    const { host, former, say } = open(2);
    await host.ready;
    const lost = outcome(say('exit', 1));
    const behind = outcome(say('a', 1));
    const other = say('b', 0);
    expect(await lost).toMatch(/ended unexpectedly/);
    expect(await behind).toBe('Its home is lost.');
    expect(await other).toBe('b by 0');
    expect(await say('c', 1)).toBe('c by 1');
    expect(former.told.slice(2).filter((line) => line !== 'over b')).toEqual([
      'over exit',
      '1 is lost',
      '1 runs',
      'over c',
    ]);
    expect(host.size).toBe(0);
  });

  it('are over where they cannot be sent', async () => {
    const { host, former, say } = open(1);
    await host.ready;
    expect(await outcome(say('unsendable', 0))).toBe('It cannot be sent.');
    expect(former.told).toEqual(['0 runs', 'over unsendable']);
    expect(await say('a', 0)).toBe('a by 0');
  });
});
