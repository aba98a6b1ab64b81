import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  BatchedService,
  type BatchedServiceOptions,
  HostClosedError,
  QueueFullError,
  RequestError,
} from 'skein';
import { afterAll, afterEach, describe, expect, it } from 'vitest';

const worker = new URL('../../../support/modules/word-lengths.mjs', import.meta.url);
const folder = mkdtempSync(join(tmpdir(), 'skein-batched-service-'));
const services: BatchedService<string, number>[] = [];
afterEach(() => Promise.all(services.splice(0).map((service) => service.stop())));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Sent {
  sizes: ArrayLike<number>;
  first: string;
  count: number;
  pid: number;
}

/** Notes what comes back from the worker, batch by batch. */
class Lengths extends BatchedService<string, number> {
  readonly batches: Sent[] = [];

  constructor(options: Partial<BatchedServiceOptions<string, number>> = {}) {
    super({ maxBatchSize: 4, timeoutSeconds: 0.005, isolate: false, onError: () => {}, ...options });
    services.push(this);
  }

  override postprocess(result: unknown): ArrayLike<number> {
    const sent = result as Sent;
    if (sent === undefined || Array.isArray(sent)) return sent as never;
    this.batches.push(sent);
    return sent.sizes;
  }
}

async function open(options: Partial<BatchedServiceOptions<string, number>> = {}, init?: object) {
  const service = new Lengths(options);
  await service.start(worker, init);
  return service;
}

/** A word that the worker is at until `open` is called. */
function gate() {
  const path = join(folder, `gate-${Math.random().toString(36).slice(2)}`);
  return { word: `wait:${path}`, open: () => writeFileSync(path, '') };
}

const outcome = (answer: Promise<number>) => answer.catch((error: Error) => error.message);

describe('a batched service', () => {
  it('gives each caller its own result, through a worker in a process with init arguments', async () => {
    const service = await open({ isolate: true }, { factor: 10 });
    expect(service.state).toBe('running');
    const words = ['a', 'bb', 'ccc', 'dddd', 'eeeee', 'ffffff'];
    const results = await Promise.all(words.map((word) => service.doOne(word)));
    expect(results).toEqual([10, 20, 30, 40, 50, 60]);
    expect(service.batches.map(({ count, first }) => [count, first])).toEqual([
      [4, 'a'],
      [2, 'eeeee'],
    ]);
    const pids = new Set(service.batches.map(({ pid }) => pid));
    expect([...pids]).toEqual([service.pid]);
    expect(service.pid).not.toBe(process.pid);
  });

  it('lets a full batch go at once, and others when their first element has waited', async () => {
    const service = await open({ timeoutSeconds: 1 });
    // The time is a second: four come long before it is over.
    expect(await Promise.all(['a', 'b', 'c', 'd'].map((word) => service.doOne(word)))).toEqual([1, 1, 1, 1]);
    expect(await service.doOne('alone')).toBe(5);
    expect(service.batches.map(({ count }) => count)).toEqual([4, 1]);
  });

  it('goes on filling its buffer while too many batches are on their way, and makes others wait', async () => {
    const service = await open({ maxQueueSize: 1, maxBatchSize: 3 });
    const held = gate();
    const first = service.doOne(held.word);
    await new Promise((resolve) => setTimeout(resolve, 20)); // beyond the time: the first is on its way alone
    const answers = ['a', 'b', 'c', 'd', 'e'].map((word) => service.doOne(word));
    await new Promise((resolve) => setTimeout(resolve, 20));
    held.open();
    await Promise.all([first, ...answers]);
    expect(service.batches.map(({ count, first: word }) => [count, word])).toEqual([
      [1, held.word],
      [3, 'a'],
      [2, 'd'],
    ]);
  });

  it('works on a batch before and behind the worker while others are there, and keeps their order', async () => {
    const order: string[] = [];
    const service = await open({
      maxBatchSize: 1,
      preprocess: async (batch) => {
        order.push(`pre ${batch[0]}`);
        await new Promise((resolve) => setTimeout(resolve, batch[0] === 'a' ? 20 : 1));
        order.push(`prepared ${batch[0]}`);
        return batch;
      },
    });
    expect(await Promise.all(['a', 'bb', 'ccc'].map((word) => service.doOne(word)))).toEqual([1, 2, 3]);
    expect(order).toEqual(['a', 'bb', 'ccc'].flatMap((word) => [`pre ${word}`, `prepared ${word}`]));
    expect(service.batches.map(({ first }) => first)).toEqual(['a', 'bb', 'ccc']);
  });

  it('takes its stages as options too, and the result as it is where there are none', async () => {
    const service = new BatchedService<string, string>({
      maxBatchSize: 2,
      timeoutSeconds: 0.001,
      isolate: false,
      preprocess: (batch) => batch.map((word) => word.trim()),
      postprocess: async ({ sizes }: Sent) => Array.from(sizes, (size) => `${size} letters`),
    });
    services.push(service as never);
    await service.start(String(worker));
    expect(await service.doOne('  bb ')).toBe('2 letters');
  });
});

describe('what goes wrong', () => {
  it.each([
    ['throw', { name: 'RangeError', message: 'The word is too long.' }],
    ['odd', { message: 'a text' }],
    ['function', { name: 'DataCloneError' }],
    ['few', { message: 'The service got 0 results for a batch of 1.' }],
    ['none', { message: 'The service got no list of results for a batch of 1.' }],
    ['exit', { message: expect.stringMatching(/^The service failed: The service's worker thread ended/) }],
    ['hang', { message: expect.stringMatching(/^The service failed: The service took longer over a batch/) }],
  ])('in the worker rejects the callers of its batch alone: %s', async (word, error) => {
    const service = await open({
      maxBatchSize: 1,
      workerTimeoutSeconds: word === 'hang' ? 3 : 0,
      workerRestart: { delayMs: 1 },
    });
    const [before, wrong, after] = ['a', word, 'bb'].map((one) => service.doOne(one));
    await expect(wrong).rejects.toMatchObject(error);
    expect([await before, await after]).toEqual([1, 2]);
    expect(await service.doOne('ccc')).toBe(3);
  });

  it.each([false, true])('keeps class and code of what the worker throws; isolated: %s', async (isolate) => {
    const service = await open({ maxBatchSize: 1, isolate });
    const thrown = (word: string) => service.doOne(word).catch((error: unknown) => error);
    const [range, limit, coded, own] = await Promise.all(['throw', 'limit', 'coded', 'own'].map(thrown));
    expect(range).toBeInstanceOf(RangeError);
    expect(limit).toBeInstanceOf(QueueFullError);
    expect(limit).toMatchObject({ code: 'SKEIN_QUEUE_FULL', maxQueueSize: 7, retryAfterMs: 250 });
    expect(coded).toBeInstanceOf(TypeError);
    expect(coded).toMatchObject({ code: 'E_WORD', message: 'No word.' });
    expect(own).toMatchObject({ name: 'WordError', code: 'E_OWN', message: 'Not mine.' });
    expect((own as Error).stack).toContain('word-lengths.mjs');
  });

  it.each(['preprocess', 'postprocess'] as const)(
    'in %s rejects the callers of its batch alone',
    async (stage) => {
      let turn = 0;
      const fault = new Error('not this one');
      const service = new BatchedService<string, number>({
        maxBatchSize: 2,
        timeoutSeconds: 0.01,
        isolate: false,
        maxQueueSize: 1,
        [stage]: async (given: string[] & Sent) => {
          if (++turn === 2) throw fault;
          return stage === 'preprocess' ? given : given.sizes;
        },
        ...(stage === 'preprocess' ? { postprocess: ({ sizes }: Sent) => sizes } : {}),
      });
      services.push(service);
      await service.start(worker);
      const settled = await Promise.allSettled(['a', 'b', 'c', 'd', 'ee'].map((word) => service.doOne(word)));
      const told = settled.map((one) => (one.status === 'fulfilled' ? one.value : one.reason));
      expect(told).toEqual([1, 1, fault, fault, 2]);
    },
  );

  it('is told where what is sent to the worker cannot be copied', async () => {
    const service = await open({ preprocess: () => () => {}, isolate: true });
    await expect(service.doOne('a')).rejects.toThrow(/could not be cloned/);
    await expect(service.doOne('b')).rejects.toThrow(/could not be cloned/);
  });

  it('is told by start where the worker cannot be', async () => {
    const service = new Lengths();
    await expect(service.start(worker, { refuses: true })).rejects.toThrow(
      /^The constructor of \w+ threw at word-lengths\.mjs:\d+:\d+: There is no such dictionary\.$/,
    );
    await expect(service.start('file:///nowhere.mjs')).rejects.toThrow(
      '/nowhere.mjs cannot be loaded: there is no such file',
    );
    const broken = join(folder, 'broken.mjs');
    writeFileSync(broken, 'export default class {\n  transform( {}\n}\n');
    await expect(service.start(broken)).rejects.toThrow(
      /^broken\.mjs cannot be loaded: error at broken\.mjs:\d+/,
    );
    writeFileSync(broken, "import './nothing.mjs';\nexport default class {}\n");
    await expect(service.start(broken)).rejects.toThrow(/nothing\.mjs/);
    const noClass = new URL('../../../support/modules/no-callbacks.mjs', import.meta.url);
    await expect(service.start(noClass)).rejects.toThrow(/no class as its default export/);
    await expect(service.doOne('a')).rejects.toThrow(HostClosedError);
    await service.start(worker);
    expect(await service.doOne('a')).toBe(1);
    await expect(service.start(worker)).rejects.toThrow(RequestError);
  });

  it.each(['./squares.mjs', 'squares.mjs', '../squares.mjs', '', 'skein-squares/worker', 5, null, undefined])(
    'asks for a URL or an absolute path of its module: %j',
    async (module) => {
      const started = new Lengths().start(module as never);
      await expect(started).rejects.toThrow(
        /^The worker's module is .*; a URL or an absolute path is expected/,
      );
      await expect(started).rejects.toMatchObject({ code: 'SKEIN_PARAMETER', field: 'workerModule' });
    },
  );

  it('takes an absolute path', async () => {
    const service = new Lengths();
    await service.start(fileURLToPath(worker));
    expect(await service.doOne('abc')).toBe(3);
  });

  it('says of a process that it has ended', async () => {
    const service = await open({ isolate: true, maxBatchSize: 1, workerRestart: { delayMs: 1 } });
    await expect(service.doOne('exit')).rejects.toThrow(
      /^The service failed: The service's process ended unexpectedly with exit code \d+\.$/,
    );
  });

  it.each([
    [{ maxBatchSize: 0 }, /maxBatchSize of a batched service is 0; it must be /],
    [{ maxBatchSize: 10_001 }, /maxBatchSize of a batched service is 10001/],
    [{ maxBatchSize: undefined as never }, /maxBatchSize of a batched service is /],
    [{ timeoutSeconds: 0 }, /timeoutSeconds of a batched service is 0; it must be /],
    [{ timeoutSeconds: 1.001 }, /timeoutSeconds of a batched service is 1.001/],
    [{ maxQueueSize: 0 }, /maxQueueSize of a batched service is 0; it must be /],
    [{ maxQueueSize: 129 }, /maxQueueSize of a batched service is 129/],
    [{ maxWaiting: 0 }, /maxWaiting is 0; it must be /],
    [{ workerTimeoutSeconds: -1 }, /workerTimeoutSeconds is -1; it must be /],
    [{ isolate: 'no' as never }, /isolate is "no"; it must be true or false/],
    [{ preprocess: 3 as never }, /preprocess is 3; it must be a function/],
    [{ workerRestart: true as never }, /workerRestart is true; it must be false or/],
    [
      { maxBatchSiz: 3 } as never,
      /new BatchedService has no option "maxBatchSiz"; did you mean maxBatchSize\?/,
    ],
  ])('with its limits is refused: %j', (limits, message) => {
    expect(() => new BatchedService({ maxBatchSize: 1, ...limits })).toThrow(message);
  });

  it('asks for options where there are none', () => {
    expect(() => new BatchedService(undefined as never)).toThrow(
      'new BatchedService needs an object of options, such as { maxBatchSize: 32 }; it was given nothing.',
    );
  });
});

describe('callers', () => {
  it('may leave, wherever their element is', async () => {
    const service = await open({ maxBatchSize: 1, maxQueueSize: 1 });
    const held = gate();
    const gone = new AbortController();
    const first = service.doOne(held.word);
    const left = [service.doOne('a', gone.signal), service.doOne('b', gone.signal)];
    const last = service.doOne('ccc');
    gone.abort(new Error('enough'));
    expect(await Promise.all(left.map(outcome))).toEqual(['enough', 'enough']);
    held.open();
    expect(await last).toBe(3);
    await first;
    expect(service.batches).toHaveLength(2);
  });

  it('are refused beyond the limit', async () => {
    const service = await open({ maxWaiting: 2 });
    const answers = [service.doOne('a'), service.doOne('b')];
    await expect(service.doOne('c')).rejects.toThrow(QueueFullError);
    await Promise.all(answers);
  });

  it.each([[true], [false]])(
    'are rejected when it is stopped, which may be done again (isolate %s)',
    async (isolate) => {
      const service = await open({ isolate, maxBatchSize: 1 });
      const waiting = [service.doOne('hang'), service.doOne('a')].map(outcome);
      await Promise.all([service.stop(), service.stop()]);
      await service.stop();
      expect(await Promise.all(waiting)).toEqual(Array(2).fill('The service was closed.'));
      expect([service.state, service.pid]).toEqual(['stopped', null]);
      await service.start(worker);
      expect(await service.doOne('bb')).toBe(2);
    },
  );

  it('have their results where stopping waits for them, without waiting for more', async () => {
    const service = await open({ maxBatchSize: 3, timeoutSeconds: 1 });
    const answers = ['a', 'b', 'c', 'd'].map((word) => service.doOne(word));
    await service.stop({ abort: false });
    expect(await Promise.all(answers)).toEqual([1, 1, 1, 1]);
  });

  it('are rejected where it is stopped before it is ready', async () => {
    const service = new Lengths({ isolate: true });
    const starting = service.start(worker).then(
      () => 'ready',
      (error: Error) => error.message,
    );
    const answer = outcome(service.doOne('a'));
    await service.stop();
    expect(await answer).toBe('The service was closed.');
    expect(await starting).toBe('The service was closed before it was loaded.');
  });
});
