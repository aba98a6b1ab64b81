import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HostClosedError, QueueFullError } from 'skein';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { BatchEntry } from '../../../host/batch/batch-duties.js';
import type { BatchFormer, Formed } from '../../../host/batch/batch-former.js';
import type { BatchHost } from '../../../host/batch/batch-host.js';
import type { BatchHostOptions } from '../../../host/batch/batch-host-options.js';

interface Word extends BatchEntry {
  text: string;
  resolve(answer: string): void;
}
type Batch = { words: Word[] };
type Message = { type: 'done'; words: string[]; name: string } | { type: 'dropped'; slot: number };
type Host = BatchHost<Word, Batch, { name: string }, Message, object>;

let Compiled: new (...args: ConstructorParameters<typeof BatchHost>) => unknown;
beforeAll(async () => {
  const url = new URL('../../../dist/host/batch/batch-host.js', import.meta.url).href;
  Compiled = ((await import(url)) as { BatchHost: typeof Compiled }).BatchHost;
});

const folder = mkdtempSync(join(tmpdir(), 'skein-batch-host-'));
const hosts: Host[] = [];
afterEach(async () => {
  for (const host of hosts.splice(0)) await host.close({ abort: true, terminateAfterMs: 0 });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The oldest words, at most `size`, or fewer once `delayUs` are over; the word `no` is refused. */
class Oldest implements BatchFormer<Word, Batch> {
  readonly asked: boolean[] = [];
  readonly #waiting: { word: Word; sinceUs: number }[] = [];
  readonly #size: number;
  readonly #delayUs: number;
  constructor(size: number, delayUs: number) {
    this.#size = size;
    this.#delayUs = delayUs;
  }
  add(word: Word, nowUs: number): void {
    if (word.text === 'never') throw new Error('This word is refused at once.');
    this.#waiting.push({ word, sinceUs: nowUs });
  }
  remove(word: Word): void {
    const index = this.#waiting.findIndex((one) => one.word === word);
    if (index >= 0) this.#waiting.splice(index, 1);
  }
  putBack(words: readonly Word[]): void {
    this.#waiting.unshift(...words.map((word) => ({ word, sinceUs: 0 })));
  }
  form(nowUs: number, free: readonly number[], isDraining: boolean): Formed<Word, Batch> {
    const hasRoom = free.length > 0;
    this.asked.push(hasRoom);
    const bad = this.#waiting.filter(({ word }) => word.text === 'no');
    const refused = bad.map(({ word }) => ({ entry: word, error: new Error('This word is refused.') }));
    for (const { word } of bad) this.remove(word);
    const first = this.#waiting[0];
    if (!hasRoom || first === undefined) return { batch: null, refused, wakeAtUs: null };
    const dueUs = first.sinceUs + this.#delayUs;
    if (this.#waiting.length < this.#size && nowUs < dueUs && !isDraining) {
      return { batch: null, refused, wakeAtUs: dueUs };
    }
    const words = this.#waiting.splice(0, this.#size).map(({ word }) => word);
    return { batch: { words }, refused, wakeAtUs: null };
  }
}

interface Settings extends Partial<BatchHostOptions> {
  size?: number;
  delayUs?: number;
  /** Instances that cannot be loaded. */
  missing?: number[];
}

function open({ size = 1, delayUs = 0, missing = [], ...options }: Settings = {}) {
  const former = new Oldest(size, delayUs);
  const batches: string[] = [];
  const errors: string[] = [];
  const states: string[] = [];
  const name = `${hosts.length}-${Math.random().toString(36).slice(2)}`;
  const logs = (index: number) => {
    const path = join(folder, `${name}-${index}.log`);
    return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : [];
  };
  const host = new Compiled(
    {
      subject: 'The dictionary',
      script: new URL('../../support/modules/batch-worker.mjs', import.meta.url),
      data: (index, claims) => ({
        name: `${name}-${index}`,
        folder,
        missing: missing.includes(index),
        claims,
      }),
      ownerName: (index) => `Instance ${index}`,
      maxEntries: 100,
      workerRestart: { delayMs: 1 },
      onError: (error) => errors.push(error.message),
      onStateChange: (state) => states.push(state),
      ...options,
    },
    {
      former,
      noteReady: () => {},
      entriesOf: (batch: Batch) => batch.words,
      pack: ({ words }: Batch, slot: number | null) => ({
        command: { type: 'batch', slot, words: words.map(({ text }) => text) },
        transfer: [],
      }),
      endsBatch: ({ type }: Message) => type === 'done',
      deliver: (message: Message, batch: Batch, instance: { noteDropped(slot: number): void }) => {
        if (message.type === 'dropped') {
          instance.noteDropped(message.slot);
          return;
        }
        const { words, name: by } = message;
        batches.push(words.join(' '));
        for (const word of batch.words) {
          if (!host.has(word)) continue;
          host.settle(word);
          word.resolve(`${word.text} by ${by.slice(-1)}`);
        }
      },
      lostError: (error: Error) => new Error(`The dictionary failed: ${error.message}`),
    } as never,
  ) as Host;
  hosts.push(host);
  const say = (text: string, signal?: AbortSignal) =>
    new Promise<string>((resolve, reject) => {
      host.submit({ text, hasStarted: false, release: null, resolve, fail: reject }, signal);
    });
  return { host, former, say, batches, errors, states, logs };
}

/** A word that is being computed until `open` is called, and how to see that it is. */
function gate() {
  const path = join(folder, `gate-${Math.random().toString(36).slice(2)}`);
  return { word: `wait:${path}`, open: () => writeFileSync(path, '') };
}

const outcome = (answer: Promise<string>) => answer.catch((error: Error) => error.message);

describe('a host of batches', () => {
  it('runs as many batches at once as there are instances, and answers each of its requests', async () => {
    const { host, say, logs } = open({ instances: 2 });
    await host.ready;
    const gates = [gate(), gate()];
    const answers = gates.map(({ word }) => say(word));
    await expect.poll(() => [logs(0).length, logs(1).length]).toEqual([1, 1]);
    expect([host.size, host.running]).toEqual([2, 2]);
    for (const one of gates.reverse()) one.open();
    expect((await Promise.all(answers)).map((answer) => answer.slice(-4)).toSorted()).toEqual([
      'by 0',
      'by 1',
    ]);
    expect(host.size).toBe(0);
  });

  it('says what each instance does', async () => {
    const { host, say } = open({ instances: 2, workerRestart: false });
    expect(host.instanceStates).toEqual(['starting', 'starting']);
    await host.ready;
    expect(host.instanceStates).toEqual(['idle', 'idle']);
    const held = gate();
    const answer = say(held.word);
    await expect.poll(() => host.instanceStates).toEqual(['busy', 'idle']);
    expect(await outcome(say('exit'))).toMatch(/^The dictionary failed: Instance 1/);
    await expect.poll(() => host.instanceStates).toEqual(['busy', 'dead']);
    held.open();
    await answer;
    expect(host.instanceStates).toEqual(['idle', 'dead']);
  });

  it.each([1, 2, 3])(
    'gives an instance at most %i batches, and asks for none beyond that',
    async (batchesAhead) => {
      const { host, former, say, batches } = open({ batchesAhead });
      await host.ready;
      const held = gate();
      const answers = [held.word, 'a', 'b', 'c', 'd'].map((word) => say(word));
      await expect.poll(() => host.running).toBe(batchesAhead);
      expect(former.asked.at(-1)).toBe(false);
      held.open();
      await Promise.all(answers);
      expect(batches.slice(1)).toEqual(['a', 'b', 'c', 'd']);
    },
  );

  it('gives a batch that waits for an instance to another one that is free', async () => {
    const { host, say } = open({ instances: 2, batchesAhead: 2, recallAfterMs: 60_000 });
    await host.ready;
    await Promise.all([say('a'), say('b')]);
    const gates = [gate(), gate()];
    const answers = gates.map(({ word }) => say(word));
    const third = say('c');
    await expect.poll(() => host.running).toBe(3);
    gates[1]!.open();
    expect(await third).toBe('c by 1');
    gates[0]!.open();
    await Promise.all(answers);
    expect(await Promise.all(['d', 'e'].map((word) => say(word)))).toHaveLength(2);
  });

  it('takes a batch back that waits for too long, and forms it anew with who came meanwhile', async () => {
    const { host, say, batches } = open({ size: 2, batchesAhead: 2, recallAfterMs: 100 });
    await host.ready;
    await say('a');
    const held = gate();
    const answers = [held.word, 'b'].map((word) => say(word));
    answers.push(say('c'));
    await expect.poll(() => host.running).toBe(2);
    await expect.poll(() => host.instanceStates).toEqual(['busy']);
    const last = say('d');
    held.open();
    await Promise.all([...answers, last]);
    expect(batches.at(-1)).toBe('c d');
  });

  it('gives a process none ahead where batches are to be taken back', async () => {
    const { host, say } = open({ batchesAhead: 2, recallAfterMs: 60_000, isolate: true });
    await host.ready;
    await say('a');
    const held = gate();
    const answers = [held.word, 'b'].map((word) => say(word));
    await expect.poll(() => host.running).toBe(1);
    held.open();
    await Promise.all(answers);
  });

  it('puts what comes in one turn into one batch, and wakes when a batch is due that is not full', async () => {
    const { host, say, batches } = open({ size: 3, delayUs: 3000 });
    await host.ready;
    await Promise.all(['a', 'b', 'c', 'd'].map((word) => say(word)));
    expect(batches).toEqual(['a b c', 'd']);
  });

  it('does not wait for more when it is closed', async () => {
    const { host, say } = open({ size: 3, delayUs: Number.POSITIVE_INFINITY });
    await host.ready;
    const answer = say('a');
    await host.close();
    expect(await answer).toBe('a by 0');
    expect(host.state).toBe('stopped');
  });

  it('refuses what the former refuses, at once or when it is asked, also while no instance is free', async () => {
    const { host, say } = open();
    await host.ready;
    expect(await outcome(say('never'))).toBe('This word is refused at once.');
    const held = gate();
    const first = say(held.word);
    expect(await outcome(say('no'))).toBe('This word is refused.');
    held.open();
    await first;
  });

  it('takes so many requests and no more', async () => {
    const { host, say } = open({ maxEntries: 2 });
    await host.ready;
    const answers = [say('a'), say('b')];
    await expect(say('c')).rejects.toThrow(QueueFullError);
    await Promise.all(answers);
    expect(await say('c')).toBe('c by 0');
  });

  it('fails a request whose signal is aborted at once, waiting or running, and no other one', async () => {
    const { host, say } = open({ size: 2 });
    await host.ready;
    const held = gate();
    const gone = new AbortController();
    const [running, neighbour] = [say('a', gone.signal), say(held.word)];
    await expect.poll(() => host.running).toBe(2);
    const waiting = say('b', gone.signal);
    gone.abort(new Error('The client has left.'));
    expect(await outcome(running)).toBe('The client has left.');
    expect(await outcome(waiting)).toBe('The client has left.');
    held.open();
    expect(await neighbour).toContain('by 0');
    await expect(say('c', gone.signal)).rejects.toThrow('The client has left.');
  });
});

describe('an instance that is lost', () => {
  it.each([
    [
      'exit',
      false,
      /^The dictionary failed: Instance 0's worker thread ended unexpectedly with exit code 7\.$/,
    ],
    ['exit', true, /^The dictionary failed: Instance 0's process ended unexpectedly with exit code 7\.$/],
    ['throw', false, /^The dictionary failed: The model broke\.$/],
  ])(
    'fails the batch that it was at, once, and no other one: %s, isolate %s',
    async (deadly, isolate, why) => {
      const { host, say, states, logs } = open({ isolate, batchesAhead: 2 });
      await host.ready;
      const held = gate();
      const first = say(held.word);
      const [lost, next, last] = [say(deadly), say('next'), say('last')];
      held.open();
      await first;
      expect(await outcome(lost)).toMatch(why);
      expect(await Promise.all([next, last])).toEqual(['next by 0', 'last by 0']);
      expect(host.restarts).toBe(1);
      expect(states).toEqual(['running', 'restarting', 'running']);
      expect(logs(0).filter((line) => line === deadly)).toHaveLength(1);
    },
  );

  it('leaves the others running: the host stays as it is, and its failure is told', async () => {
    const { host, say, states, errors } = open({ instances: 2 });
    await host.ready;
    const held = gate();
    const other = say(held.word);
    expect(await outcome(say('exit'))).toMatch(/^The dictionary failed: Instance 1/);
    held.open();
    expect(await other).toContain('by 0');
    expect(await say('a')).toContain('a by');
    expect(states).toEqual(['running']);
    expect(errors).toHaveLength(1);
  });

  it('is ended where it takes too long over a batch, however its thread is busy, and what waited is done by the next', async () => {
    const { host, say } = open({ timeLimitMs: 3000, batchesAhead: 2 });
    await host.ready;
    const answers = [say('hang'), say('a'), say('b')];
    expect(await outcome(answers[0]!)).toBe(
      'The dictionary failed: Instance 0 took longer over a batch than the 3000 ms that it may, and is started again.',
    );
    expect(await Promise.all(answers.slice(1))).toEqual(['a by 0', 'b by 0']);
  });

  it('ends all where one of them cannot be loaded at first, with its reason', async () => {
    const { host, say } = open({ instances: 3, missing: [1] });
    const early = outcome(say('a'));
    await expect(host.ready).rejects.toThrow(/^There is no model for .*-1\.$/);
    expect(await early).toMatch(/^The engine failed: There is no model/);
    expect(host.state).toBe('failed');
    await expect(say('b')).rejects.toThrow(HostClosedError);
  });
});

describe('closing', () => {
  it('lets everything end that was taken, on all instances', async () => {
    const { host, say } = open({ instances: 2, size: 2 });
    await host.ready;
    const answers = ['a', 'b', 'c', 'd', 'e'].map((word) => say(word));
    await host.close();
    expect((await Promise.all(answers)).length).toBe(5);
    await expect(say('f')).rejects.toThrow(HostClosedError);
  });

  it('ends at once where it is told to, also an instance that hangs', async () => {
    const { host, say } = open();
    await host.ready;
    const answers = [outcome(say('hang')), outcome(say('a'))];
    await host.close({ abort: true, terminateAfterMs: 10 });
    expect(await Promise.all(answers)).toEqual(Array(2).fill('The dictionary was closed.'));
    expect(host.state).toBe('stopped');
  });
});
