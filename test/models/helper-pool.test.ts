import { afterEach, describe, expect, it } from 'vitest';
import type * as PoolModule from '../../models/helper-pool.js';
import {
  HelperBusyError,
  HelperClosedError,
  HelperError,
  HelperLostError,
  HelperPool,
  HelperTimeError,
} from '../../models/helper-pool.js';

/** Doubles a number; other jobs are what they say. */
const script = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { parentPort, threadId } from 'node:worker_threads';
    parentPort.on('message', (job) => {
      if (job === 'loop') for (;;);
      if (job === 'exit') process.exit(3);
      if (job === 'thread') return parentPort.postMessage({ result: threadId });
      if (typeof job === 'string') {
        return parentPort.postMessage({ failure: { text: job, name: 'OddError', code: null, held: {} } });
      }
      parentPort.postMessage({ result: 2 * job });
    });
    parentPort.postMessage('ready');
  `)}`,
);

const pools: HelperPool<unknown, number>[] = [];
afterEach(() => Promise.all(pools.splice(0).map((pool) => pool.close())));

function open(options: Omit<PoolModule.HelperPoolOptions, 'script'> = {}): HelperPool<unknown, number> {
  const pool = new HelperPool<unknown, number>({ script, ...options });
  pools.push(pool);
  return pool;
}

describe('HelperPool', () => {
  it('does jobs in order, and says what one threw', async () => {
    const pool = open();
    const results = await Promise.allSettled([1, 'no such job', 3].map((job) => pool.run(job)));
    expect(results[0]).toEqual({ status: 'fulfilled', value: 2 });
    expect(results[1]).toMatchObject({ reason: { name: 'OddError', message: 'no such job' } });
    expect((results[1] as PromiseRejectedResult).reason).toBeInstanceOf(HelperError);
    expect(results[2]).toEqual({ status: 'fulfilled', value: 6 });
    expect(pool.jobs).toBe(0);
  });

  it('does what is due first: a long job waits for short ones that come later, and no longer than its patience', async () => {
    const pool = open({ patienceMs: (job) => Number(job) });
    const done: number[] = [];
    const run = (job: number) => pool.run(job).then(() => done.push(job));
    // The first is begun at once; of the others the order is that of when they are due.
    const begun = [run(60_000), run(50_000), run(100_000), run(1), run(2)];
    await Promise.all(begun);
    expect(done).toEqual([60_000, 1, 2, 50_000, 100_000]);
  });

  it('ends a thread that works too long: its job fails, and those behind it have another thread', async () => {
    const pool = open({ timeLimitMs: 1500 });
    const first = await pool.run('thread');
    const endless = pool.run('loop');
    const next = pool.run('thread');
    await expect(endless).rejects.toThrow(new HelperTimeError('It took more than 1.5 s.'));
    expect(await next).not.toBe(first);
  });

  it('fails the job of a thread that ended, and no other', async () => {
    const pool = open();
    const [lost, next] = await Promise.allSettled([pool.run('exit'), pool.run(4)]);
    expect(lost).toMatchObject({ reason: { message: 'A helper thread ended: exit code 3.' } });
    expect(next).toEqual({ status: 'fulfilled', value: 8 });
  });

  it('drops a job that waits when its signal is raised, and the result of one that runs', async () => {
    const results: unknown[] = [];
    const pool = open({ timeLimitMs: 1500, onDropped: (result: unknown) => results.push(result) });
    const abort = new AbortController();
    const running = pool.run('loop');
    const waiting = pool.run(1, abort.signal);
    const behind = pool.run(2);
    expect(pool.jobs).toBe(3);
    const reason = new Error('Nobody wants it.');
    abort.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    expect(pool.jobs).toBe(2);
    await expect(pool.run(1, abort.signal)).rejects.toBe(reason);
    const abortRunning = new AbortController();
    await expect(running).rejects.toThrow(HelperTimeError);
    expect(await behind).toBe(4);
    const dropped = pool.run(5, abortRunning.signal);
    abortRunning.abort(reason);
    await expect(dropped).rejects.toBe(reason);
    expect(await pool.run(6)).toBe(12);
    expect(results).toEqual([10]);
  });

  it('takes no more than its limit, nothing that cannot be cloned, and nothing once it is closed', async () => {
    const pool = open({ maxJobs: 2 });
    const taken = [pool.run(1), pool.run(2)];
    await expect(pool.run(3)).rejects.toThrow(new HelperBusyError('2 jobs are waiting, the limit is 2.'));
    expect(await Promise.all(taken)).toEqual([2, 4]);
    await expect(pool.run(() => {})).rejects.toThrow(/could not be cloned/);
    const pending = pool.run(5);
    const closed = pool.close();
    await expect(pending).rejects.toThrow(HelperLostError);
    await closed;
    await expect(pool.run(6)).rejects.toThrow(new HelperClosedError('The pool is closed.'));
    await expect(pending).rejects.toThrow(HelperClosedError);
  });
});
