import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { HelperLostError, HelperPool, HelperTimeError } from '../../models/helper-pool.js';
import { temporaryFolder } from '../support/fresh-folders.js';

const file = join(temporaryFolder('skein-helper-process'), 'helper.mjs');
writeFileSync(
  file,
  `process.on('message', (job) => {
     if (job === 'loop') for (;;);
     if (job === 'crash') process.kill(process.pid, 'SIGSEGV');
     else process.send({ result: job === 'who' ? { pid: process.pid, env: Object.keys(process.env) } : job });
   });
   process.send('ready');`,
);

const pools: HelperPool<unknown, unknown>[] = [];
afterEach(() => Promise.all(pools.splice(0).map((pool) => pool.close())));

function open(timeLimitMs?: number): HelperPool<unknown, unknown> {
  const pool = new HelperPool({ script: pathToFileURL(file), processes: true, timeLimitMs });
  pools.push(pool);
  return pool;
}

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe('a helper pool of processes', () => {
  it('takes bytes there and back, in a process without the variables of this one', async () => {
    const pool = open();
    process.env.SKEIN_TEST_SECRET = 'secret';
    const { pid, env } = (await pool.run('who')) as { pid: number; env: string[] };
    delete process.env.SKEIN_TEST_SECRET;
    expect(pid).not.toBe(process.pid);
    expect(env).toContain('PATH');
    expect(env).not.toContain('SKEIN_TEST_SECRET');
    expect(env).not.toContain('HOME');
    expect(await pool.run({ bytes: new Uint8Array([1, 2, 3]) })).toEqual({
      bytes: new Uint8Array([1, 2, 3]),
    });
    await pool.close();
    expect(isAlive(pid)).toBe(false);
  });

  it('loses the job alone whose process crashes or takes too long, and starts another one', async () => {
    const pool = open(2000);
    const { pid } = (await pool.run('who')) as { pid: number };
    const [crashed, next] = await Promise.allSettled([pool.run('crash'), pool.run('next')]);
    expect(crashed).toMatchObject({ reason: expect.any(HelperLostError) });
    expect((crashed as PromiseRejectedResult).reason.message).toBe(
      'A helper process ended: exit code SIGSEGV.',
    );
    expect(next).toEqual({ status: 'fulfilled', value: 'next' });
    expect(isAlive(pid)).toBe(false);
    await expect(pool.run('loop')).rejects.toThrow(HelperTimeError);
    expect(await pool.run('after')).toBe('after');
    expect(pool.starts).toBe(3);
  });
});
