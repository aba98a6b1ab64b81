import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { openLink } from '../../../host/links/open-link.js';
import type { WorkerLink } from '../../../host/links/worker-link.js';
import { supportModule } from '../../support/fake-engine.js';

type Said = { type: string; [field: string]: unknown };
type Open = typeof openLink<unknown, Said, Said>;

let open: Open;
beforeAll(async () => {
  // The compiled one: its workers run JavaScript.
  const url = new URL('../../../dist/host/links/open-link.js', import.meta.url).href;
  ({ openLink: open } = (await import(url)) as { openLink: Open });
});

const script = pathToFileURL(supportModule('echo-worker.mjs'));
const links: WorkerLink<Said>[] = [];
afterEach(() => {
  for (const link of links.splice(0)) link.terminate();
});

/** A worker that echoes, with all that is received from it. */
function start(isolate: boolean, given: unknown = 'given', watchdogTimeoutMs = 200) {
  const heard: Said[] = [];
  let resolve: (error: Error | null) => void;
  let exits = 0;
  const ended = new Promise<Error | null>((settle) => {
    resolve = settle;
  });
  const onExit = (error: Error | null) => {
    exits++;
    resolve(error);
  };
  const options = { isolate, watchdogTimeoutMs };
  const link = open(script, { given }, { onMessage: (message) => heard.push(message), onExit }, options);
  links.push(link);
  const until = (type: string) =>
    expect.poll(() => heard.some((message) => message.type === type)).toBe(true);
  return { link, heard, ended, until, exits: () => exits };
}

const whole = Uint8Array.from({ length: 64 }, (_, i) => i * 7);
/** Every kind of array that tensors are of, some of them a part of a larger one at an odd place. */
const ARRAYS = [
  new Int8Array([-1, 2]),
  whole.subarray(3, 12),
  new Int16Array([-300, 300]),
  new Uint16Array(whole.buffer.slice(2, 8)),
  new Int32Array(whole.buffer, 4, 5),
  new Uint32Array([2 ** 32 - 1]),
  new Float32Array([Number.NaN, -0, Number.POSITIVE_INFINITY, 1e-45]),
  new Float64Array(whole.buffer, 8, 3),
  new BigInt64Array([-(2n ** 63n)]),
  new BigUint64Array([2n ** 64n - 1n, 0n]),
  new Int32Array(0),
  new Uint8Array(new SharedArrayBuffer(3)),
];

describe.each([
  ['thread', false],
  ['process', true],
])('a link to a %s', (kind, isolate) => {
  const what = isolate ? 'process' : 'worker thread';
  it('starts the worker with its data, and carries what requests and answers are made of', async () => {
    const { link, heard, until } = start(isolate, { limit: 2n ** 64n, none: undefined });
    const values = { id: 2n ** 63n, text: 'naïve \u{1F986}', none: undefined, nothing: null, list: [1, [2]] };
    link.post({ type: 'echo', values, arrays: ARRAYS });
    await until('echo');
    expect(heard[0]).toEqual({ type: 'ready', info: { limit: 2n ** 64n, none: undefined } });
    const { values: back, arrays } = heard[1] as unknown as { values: unknown; arrays: Uint8Array[] };
    expect(back).toStrictEqual(values);
    expect(arrays.map((array) => array.constructor.name)).toEqual(
      ARRAYS.map((array) => array.constructor.name),
    );
    for (const [i, array] of arrays.entries()) {
      const sent = ARRAYS[i]!;
      expect(bytesOf(array), `array ${i}`).toEqual(bytesOf(sent));
    }
  });

  it('keeps the order of many messages, small ones and large ones', async () => {
    const { link, heard } = start(isolate);
    const large = 2 ** 18;
    for (let number = 0; number < 300; number++) {
      const length = number % 100 === 50 ? large : number;
      link.post({ type: 'echo', number, data: new Int32Array(length).fill(number) });
    }
    await expect.poll(() => heard.length).toBe(301);
    for (const [number, message] of heard.slice(1).entries()) {
      const { number: found, data } = message as unknown as { number: number; data: Int32Array };
      expect([found, data.length]).toEqual([number, number % 100 === 50 ? large : number]);
      expect([data[0], data.at(-1)]).toEqual(data.length === 0 ? [undefined, undefined] : [number, number]);
    }
  });

  it('refuses what cannot be copied, and carries what comes after it', async () => {
    const { link, heard, until } = start(isolate);
    expect(() => link.post({ type: 'echo', call: () => {} })).toThrow(/could not be cloned/);
    link.post({ type: 'echo', number: 1 });
    await until('echo');
    expect(heard.slice(1)).toEqual([{ type: 'echo', number: 1 }]);
  });

  it('tells the end that was asked for after the last message', async () => {
    const { link, heard, ended, exits } = start(isolate);
    for (let number = 0; number < 50; number++) link.post({ type: 'echo', number });
    link.post({ type: 'shutdown' });
    expect(await ended).toBeNull();
    expect(heard.map(({ type }) => type)).toEqual(['ready', ...new Array(50).fill('echo'), 'closed']);
    expect(exits()).toBe(1);
    link.post({ type: 'echo' }); // it has no listener, and nothing fails
    link.terminate();
  });

  it.each([
    ['exit', { code: 3 }, { message: `The engine's ${what} ended unexpectedly with exit code 3.` }],
    ['exit', { code: 0 }, { message: `The engine's ${what} ended unexpectedly with exit code 0.` }],
    [
      'throw',
      { message: 'no room', name: 'MemoryError', code: 'ENOMEM' },
      { message: 'no room', name: 'MemoryError', code: 'ENOMEM' },
    ],
    [
      'fail',
      { message: 'no room', name: 'MemoryError', code: 'SKEIN_MEMORY' },
      { message: 'no room', name: 'MemoryError', code: 'SKEIN_MEMORY' },
    ],
  ])('tells why the worker died: %s %j', async (type, fields, error) => {
    const { link, heard, ended } = start(isolate);
    link.post({ type: 'echo', number: 1 });
    link.post({ type, ...fields });
    expect(await ended).toMatchObject(error);
    expect(heard.map((message) => message.type)).toEqual(['ready', 'echo']);
  });

  it('ends a worker that hangs, and hears nothing of one that is deserted', async () => {
    const { link, heard, ended, until } = start(isolate);
    await until('ready');
    link.post({ type: 'flood', length: 10 });
    await until('piece');
    link.desert();
    const count = heard.length;
    await new Promise((resolve) => setTimeout(resolve, 20));
    link.terminate();
    expect(await ended).toBeInstanceOf(Error);
    expect(heard.length).toBe(count);
  });

  it('shows the heartbeat: it moves with the worker, and says when it sleeps', async () => {
    const { link, until } = start(isolate);
    await until('ready');
    await expect.poll(() => link.heartbeat.isAsleep).toBe(true);
    const { beats } = link.heartbeat;
    link.post({ type: 'echo' });
    await expect.poll(() => link.heartbeat.beats).toBeGreaterThan(beats);
    await expect.poll(() => link.heartbeat.isAsleep).toBe(true);
    link.post({ type: 'hang' });
    await expect.poll(() => link.heartbeat.isAsleep).toBe(false);
    // What is seen first may be some beats older than the hang; they come to an end.
    let last = -1;
    const hasMoved = () => {
      const moved = link.heartbeat.beats !== last;
      last = link.heartbeat.beats;
      return moved;
    };
    await expect.poll(hasMoved, { interval: 300 }).toBe(false);
    expect(link.heartbeat.isAsleep).toBe(false);
  });

  it('gives the worker the environment as it is when it starts', async () => {
    process.env.SKEIN_TEST_LINK = kind;
    const { link, heard, until } = start(isolate);
    link.post({ type: 'variable', name: 'SKEIN_TEST_LINK' });
    await until('variable');
    delete process.env.SKEIN_TEST_LINK;
    expect(heard[1]).toEqual({ type: 'variable', value: kind });
  });
});

describe('a link to a process', () => {
  it('that is killed in the middle of a message hands on what came whole, and nothing else', async () => {
    // Larger than a pipe holds: some of a message is nearly always on its way.
    const length = 2 ** 16;
    for (let life = 0; life < 6; life++) {
      const { link, heard, ended } = start(true);
      link.post({ type: 'flood', length });
      await expect.poll(() => heard.length, { interval: 1 }).toBeGreaterThan(3 + life);
      process.kill(link.pid!, life % 2 === 0 ? 'SIGKILL' : 'SIGSEGV');
      const signal = life % 2 === 0 ? 'SIGKILL' : 'SIGSEGV';
      expect((await ended)?.message).toMatch(new RegExp(`^The engine's process was ended by ${signal}`));
      for (const [number, message] of heard.slice(1).entries()) {
        const { number: found, data } = message as unknown as { number: number; data: Int32Array };
        expect([found, data.length, data[0], data.at(-1)]).toEqual([number, length, number, number]);
      }
    }
  });

  it('says what of its data cannot be given to a process', async () => {
    const { link, ended, heard } = start(true, new SharedArrayBuffer(8));
    const message = /^The engine's process cannot be given its options: .*could not be cloned/;
    expect((await ended)?.message).toMatch(message);
    expect(heard).toEqual([]);
    expect(() => process.kill(link.pid!, 0)).toThrow('ESRCH');
  });

  it.each(['loading', 'looping'])(
    'ends with the host that is killed, also where its thread is stuck %s',
    async (how) => {
      const parent = fileURLToPath(new URL('./isolated-parent.mjs', import.meta.url));
      const host = spawn(process.execPath, [parent, how], { stdio: ['ignore', 'pipe', 'inherit'] });
      const [line] = (await once(host.stdout, 'data')) as [Buffer];
      const pid = Number(String(line));
      expect(() => process.kill(pid, 0)).not.toThrow();
      // Its standard output is the host's: that ends when both are gone.
      const ended = once(host, 'close');
      host.kill('SIGKILL');
      await ended;
      // The process that takes over its children has yet to notice.
      const isThere = () => existsSync(`/proc/${pid}`);
      await expect.poll(isThere).toBe(false);
    },
  );

  it('sends no beats where nobody looks', async () => {
    const { link, until } = start(true, 'given', 0);
    await until('ready');
    link.post({ type: 'echo' });
    await until('echo');
    expect(link.heartbeat).toMatchObject({ beats: 0, isAsleep: false });
  });
});

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView) => [
  ...new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength),
];
