import { execFileSync } from 'node:child_process';
import { existsSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import {
  GptManager,
  type GptManagerOptions,
  type InferenceRequest,
  RequestIdError,
  WorkerStuckError,
} from 'skein';
import { afterEach, describe, expect, it } from 'vitest';
import type { OptionalParams } from '../../callbacks/gpt-manager-options.js';
import {
  collectResult,
  makeRequest,
  type RequestResult,
  runAlone,
} from '../../tools/support/loop-harness.js';
import { fakeEngine, supportModule } from '../support/fake-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { ManagerClient } from '../support/manager-client.js';

// This flag shrinks the heaps of the workers alone: this thread's was sized when it started.
setFlagsFromString('--max-old-space-size=64');

const EXIT = 90;
const UNCAUGHT = 91;
const ENDLESS = 92;
const ASLEEP = 93;
const OUT_OF_MEMORY = 94;
const NATIVE = 95;
const SEGMENTATION = 96;
const KILLED = 97;
const ABORTED = 98;

const folder = temporaryFolder('skein-death');
const clients: ManagerClient[] = [];
const { NODE_OPTIONS = '' } = process.env;
afterEach(async () => {
  process.env.NODE_OPTIONS = NODE_OPTIONS;
  for (const { manager } of clients.splice(0)) await manager.terminate();
});

const QUICK = { delayMs: 1, maxDelayMs: 20 };

/** Kinds of workers; the same tests hold for both. */
const KINDS = [
  ['thread', { isolate: false }],
  ['process', { isolate: true }],
] as const;

function troubled(params: OptionalParams = {}, query = '', stepMs = 1) {
  const executorModule = new URL(`../support/modules/troubled-executor.mjs${query}`, import.meta.url);
  return fakeEngine(`stepMs=${stepMs}`, { workerRestart: QUICK, executorModule, ...params });
}

function start(engine: ReturnType<typeof fakeEngine>, options: Partial<GptManagerOptions> = {}) {
  const client = new ManagerClient({ ...engine, ...options });
  clients.push(client);
  return client;
}

/** A request that harms the worker in whose batch it runs; `kind` is the troubled executor's token for how. */
const trouble = (kind: number, id = 666n) => makeRequest(id, [kind, kind, kind], 5);

/** Every response of each request is an ordinary one but the last; throws unless that is final. */
const resultOf = (client: ManagerClient, id: bigint): RequestResult =>
  collectResult(client.responses.get(id) ?? []);

/** Option of a worker's own process, whose heap is sized when it starts; this process's heap was sized already. */
const SMALL_HEAP = '--max-old-space-size=64';

const ISOLATED = { isolate: true };

describe.each<[string, number, RegExp, OptionalParams]>([
  ['process.exit', EXIT, /ended unexpectedly with exit code 3/, {}],
  ['an uncaught error', UNCAUGHT, /the memory cannot be counted/, {}],
  ['an endless loop', ENDLESS, /finished no iteration within 1000 ms/, { watchdogTimeoutMs: 1000 }],
  ['a sleep without end', ASLEEP, /finished no iteration within 1000 ms/, { watchdogTimeoutMs: 1000 }],
  ['more memory than its heap has', OUT_OF_MEMORY, /memory limit|out of memory/i, {}],
  ['process.exit, in a process', EXIT, /ended unexpectedly with exit code 3/, ISOLATED],
  ['an uncaught error, in a process', UNCAUGHT, /the memory cannot be counted/, ISOLATED],
  [
    'an endless loop, in a process',
    ENDLESS,
    /engine's process finished no iteration within 1000 ms/,
    { ...ISOLATED, watchdogTimeoutMs: 1000 },
  ],
  ['more memory than its heap has, in a process', OUT_OF_MEMORY, /memory limit|out of memory/i, ISOLATED],
  ['a segmentation fault', SEGMENTATION, /The engine's process was ended by SIGSEGV\.$/, ISOLATED],
  ['SIGKILL', KILLED, /The engine's process was ended by SIGKILL; .* want of memory\.$/, ISOLATED],
  ['SIGABRT', ABORTED, /The engine's process was ended by SIGABRT\.$/, ISOLATED],
])('a worker that dies of %s', (_, kind, reason, params) => {
  it('fails everything that it had, once each, and the next worker answers as if nothing had been', async () => {
    if (params.isolate) process.env.NODE_OPTIONS = SMALL_HEAP;
    // A second for each of the crowd, so that none has ended when the deadly one comes.
    const client = start(troubled(params, '', 5));
    await client.manager.ready;
    // More than the engine has places for: the rest waits in the host and never comes near the deadly request.
    const crowd = Array.from({ length: 3 }, (_, i) => makeRequest(BigInt(i), [i, 1], 200));
    const running = crowd.map((request) => client.submit(request));
    await expect.poll(() => client.responses.size).toBe(3);
    const deadly = client.submit(trouble(kind));
    const later = Array.from({ length: 4 }, (_, i) => makeRequest(BigInt(i + 10), [i, 2], 12));
    const waiting = later.map((request) => client.submit(request));
    await Promise.all([...running, deadly]);
    for (const id of [0n, 1n, 2n, 666n]) expect(resultOf(client, id).error).toMatch(reason);
    await Promise.all(waiting);
    for (const request of later) {
      expect(resultOf(client, request.requestId)).toEqual(runAlone(request));
    }
    // The ids are free again.
    for (const id of [666n, 0n]) {
      client.responses.delete(id);
      const again = makeRequest(id, [Number(id % 100n), 1], 9);
      await client.submit(again);
      expect(resultOf(client, id)).toEqual(runAlone(again));
    }
    expect(client.manager.restarts).toBe(1);
    expect(client.states.map(([state]) => state)).toEqual(['running', 'restarting', 'running']);
    expect(client.states[1]![1]).toMatch(reason);
    expect(client.errors).toEqual([expect.stringMatching(reason)]);
    expect(client.manager.failure).toBeNull();
    await client.manager.shutdown();
    expect(client.manager.state).toBe('stopped');
  });
});

describe.each(KINDS)('requests around the death of a %s', (_, kind) => {
  it('that are on their way to the worker fail with it', async () => {
    const client = start(troubled(kind));
    await client.manager.ready;
    client.waiting.push(trouble(EXIT), ...[1n, 2n, 3n].map((id) => makeRequest(id, [Number(id)], 100)));
    client.manager.wake(); // all four in one message
    expect(client.manager.numInFlight).toBe(4);
    await expect.poll(() => client.finals.length).toBe(4);
    for (const id of [666n, 1n, 2n, 3n]) expect(resultOf(client, id).error).toMatch(/exit code 3/);
  });

  it('that an asynchronous callback brings while no worker runs wait for the next one, and can be stopped', async () => {
    let give: (requests: InferenceRequest[]) => void = () => {};
    let calls = 0;
    const client = start(troubled({ ...kind, workerRestart: { delayMs: 200 }, maxNumSequences: 8 }), {
      getInferenceRequests: () => {
        if (++calls === 1) return [trouble(EXIT)];
        return new Promise<InferenceRequest[]>((resolve) => {
          give = resolve;
        });
      },
    });
    await client.manager.ready;
    client.manager.wake();
    expect(calls).toBe(2);
    await expect.poll(() => client.manager.state, { interval: 5 }).toBe('restarting');
    const request = makeRequest(1n, [1, 2], 12);
    give([request, makeRequest(2n, [7], 200)]);
    client.stops.add(2n);
    client.manager.wake();
    expect(calls).toBe(2);
    await expect.poll(() => client.finals.length).toBe(3);
    expect(resultOf(client, 1n)).toEqual(runAlone(request));
    expect(resultOf(client, 2n)).toMatchObject({ finishReason: 5, error: '' });
  });
});

describe.each(KINDS)('a manager whose worker, a %s, died', (name, kind) => {
  const loadsIn = (file: string) => readFileSync(file, 'utf8').length;

  it('restarts nothing where it was told not to', async () => {
    const client = start(troubled({ ...kind, workerRestart: false }));
    const long = client.submit(makeRequest(1n, [1], 200));
    await client.submit(trouble(EXIT));
    await long;
    await client.manager.ended;
    expect(client.manager.state).toBe('failed');
    expect(client.manager.failure?.message).toMatch(/exit code 3/);
    expect(client.errors).toHaveLength(1);
    await client.manager.shutdown();
    expect(client.manager.state).toBe('failed');
  });

  it('gives up when the stated number of starts in a row has failed, and fails who still waits', async () => {
    const loads = join(folder, `failing-${name}`);
    const restart = { workerRestart: { ...QUICK, maxFailedStarts: 3 } };
    const client = start(troubled({ ...kind, ...restart }, `?loads=${loads}&failing=2`));
    await client.submit(trouble(EXIT));
    await client.manager.ended;
    expect(loadsIn(loads)).toBe(4);
    expect(client.manager.state).toBe('failed');
    expect(client.manager.failure?.message).toBe(
      'The engine died and could not be started again in 3 attempts; the last one failed: load 4 fails',
    );
    expect(client.states.map(([state]) => state)).toEqual([
      'running',
      'restarting',
      'restarting',
      'restarting',
      'restarting',
      'failed',
    ]);
    expect(client.finals).toEqual([666n]);
  });

  it('starts nothing again once it is shut down', async () => {
    const loads = join(folder, `once-${name}`);
    const restart = { workerRestart: { delayMs: 86_400_000, maxDelayMs: 86_400_000 } };
    const client = start(troubled({ ...kind, ...restart }, `?loads=${loads}`));
    await client.submit(trouble(EXIT));
    await expect.poll(() => client.manager.state).toBe('restarting');
    await client.manager.shutdown();
    expect(client.manager.state).toBe('stopped');
    expect(client.manager.failure).toBeNull();
    expect(loadsIn(loads)).toBe(1);
  });

  it('that was shutting down has failed, and stays so', async () => {
    const client = start(troubled(kind));
    await client.manager.ready;
    const ends = [client.submit(makeRequest(1n, [1], 200)), client.submit(trouble(ENDLESS))];
    void client.manager.shutdown();
    const terminated = client.manager.terminate('No time left.');
    await Promise.all([...ends, terminated]);
    for (const id of [1n, 666n]) expect(resultOf(client, id).error).toBe('No time left.');
    expect(client.manager.state).toBe('stopped');
    expect(client.errors).toEqual([]);
    const other = start(troubled(kind));
    await other.manager.ready;
    const end = other.submit(trouble(EXIT));
    await other.manager.shutdown();
    await end;
    expect(other.manager.state).toBe('failed');
    expect(other.manager.restarts).toBe(0);
  });

  it('may be terminated before it is ready', async () => {
    const client = start(troubled(kind));
    const ended = client.manager.terminate();
    await expect(client.manager.ready).rejects.toThrow(/before the engine was loaded/);
    await ended;
    expect(client.manager.state).toBe('stopped');
  });
});

describe('a worker that is stuck in a native call', () => {
  function pipe(name: string): string {
    const path = join(folder, name);
    execFileSync('mkfifo', [path]);
    return path;
  }

  it('is replaced when the call returns after all', async () => {
    const path = pipe('late');
    const client = start(troubled({ watchdogTimeoutMs: 500 }, `?pipe=${encodeURIComponent(path)}`));
    const end = client.submit(trouble(NATIVE));
    await end;
    expect(resultOf(client, 666n).error).toMatch(/no iteration within 500 ms/);
    expect(client.manager.state).toBe('restarting');
    const request = makeRequest(1n, [3, 4], 10);
    const later = client.submit(request);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(client.manager.restarts).toBe(0); // the old thread still has its memory
    openSync(path, 'w');
    await later;
    expect(resultOf(client, 1n)).toEqual(runAlone(request));
    expect(client.manager.restarts).toBe(1);
  });

  it('is replaced at once where it is a process, though the call never returns', async () => {
    const path = pipe('replaced');
    const params = { isolate: true, watchdogTimeoutMs: 500, terminateTimeoutMs: 60_000 };
    const client = start(troubled(params, `?pipe=${encodeURIComponent(path)}`));
    await client.submit(trouble(NATIVE));
    expect(resultOf(client, 666n).error).toMatch(/engine's process finished no iteration within 500 ms/);
    const request = makeRequest(1n, [3, 4], 10);
    await client.submit(request);
    expect(resultOf(client, 1n)).toEqual(runAlone(request));
    expect(client.manager.restarts).toBe(1);
  });

  it('is given up after terminateTimeoutMs, with an error of its own', async () => {
    const path = pipe('never');
    const client = start(
      troubled({ watchdogTimeoutMs: 500, terminateTimeoutMs: 50 }, `?pipe=${encodeURIComponent(path)}`),
    );
    await client.submit(trouble(NATIVE));
    await client.manager.ended;
    expect(client.manager.state).toBe('failed');
    expect(client.manager.failure).toBeInstanceOf(WorkerStuckError);
    expect(client.manager.failure?.message).toMatch(
      /no iteration within 500 ms.* did not within 50 ms.*process has to be restarted/,
    );
    openSync(path, 'w'); // or this process could not end
  });
});

describe.each(KINDS)('callbacks in a module that end their worker, a %s,', (name, kind) => {
  it('are told in their next life of the end of all that they had, once each', async () => {
    process.env.SKEIN_TEST_SEEN = join(folder, `lives-${name}`);
    const errors: Error[] = [];
    const manager = new GptManager({
      ...fakeEngine('', { ...kind, workerRestart: QUICK, idlePollIntervalMs: 1 }),
      callbackModule: pathToFileURL(supportModule('mortal-callbacks.mjs')),
      onError: (error) => void errors.push(error),
    });
    const seen = () => readFileSync(process.env.SKEIN_TEST_SEEN!, 'utf8').trim().split('\n');
    await expect.poll(() => existsSync(process.env.SKEIN_TEST_SEEN!) && seen().length).toBe(7);
    await manager.shutdown();
    const what = name === 'process' ? 'process' : 'worker thread';
    const failed = `The engine failed: The engine's ${what} ended unexpectedly with exit code 4.`;
    expect(seen()).toEqual([
      'life',
      '1 1 ended',
      'life',
      `2 2 ${failed}`,
      `2 3 ${failed}`,
      '2 2 ended',
      '2 4 ended',
    ]);
    expect(errors).toMatchObject([
      { reason: 'duplicate', requestId: 2n },
      { reason: 'duplicate', requestId: 2n },
      { reason: 'invalid', requestId: 2n ** 64n + 2n },
      { message: expect.stringMatching(/exit code 4/) },
    ]);
    expect(errors.map((error) => error instanceof RequestIdError)).toEqual([true, true, true, false]);
    expect([manager.state, manager.restarts]).toEqual(['stopped', 1]);
  });
});

describe('GptManager options', () => {
  it.each([
    ['watchdogTimeoutMs', -1],
    ['terminateTimeoutMs', 0.5],
    ['workerRestart', 7],
    ['isolate', 'yes'],
  ])('refuse %s = %s', (field, value) => {
    const options = fakeEngine('', { [field]: value } as OptionalParams);
    const callbacks = { getInferenceRequests: () => [], sendResponse: () => {} };
    expect(() => new GptManager({ ...options, ...callbacks })).toThrow(`${field} is ${value}`);
  });
});
