import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type SkeinProcess, startServer } from './support/skein-process.js';

// The reader of the log may stop without closing it: a pipe that is full takes nothing more.

let server: SkeinProcess;

beforeAll(async () => {
  server = await startServer(['--log-level', 'info', '--no-metrics']);
});
afterAll(() => {
  server?.child.kill('SIGKILL'); // where a test failed
});

/** Asks for what there is not, under long names that the log has. */
async function fill(requests: number, { url } = server): Promise<void> {
  const path = 'a'.repeat(7000);
  for (let sent = 0; sent < requests; sent += 20) {
    await Promise.all(
      Array.from({ length: 20 }, async (_, k) => (await fetch(`${url}/${path}${sent + k}`)).text()),
    );
  }
}

/** Whole lines: the last one may still be on its way. */
const lines = () => server.output().stderr.split('\n').slice(0, -1);

describe('a log that nobody reads', () => {
  it('keeps a bounded number of lines, and tells how many were dropped', async () => {
    const stderr = server.child.stderr!;
    stderr.pause();
    await fill(900);
    stderr.resume();
    await expect.poll(() => lines().some((line) => line.includes('were dropped'))).toBe(true);
    const told = JSON.parse(lines().find((line) => line.includes('were dropped'))!);
    expect(told).toMatchObject({ level: 40, msg: 'lines of the log were dropped: no process read them' });
    const written = () => lines().filter((line) => line.includes('"msg":"request"'));
    await expect.poll(() => written().length + told.lines).toBe(900);
    expect(told.lines).toBeGreaterThan(100);
  });

  it('does not keep the server from its end', async () => {
    server.child.stderr!.pause();
    await fill(200);
    const exited = new Promise((resolve) => server.child.once('exit', (code) => resolve(code)));
    server.child.kill('SIGTERM');
    expect(await exited).toBe(0);
  });
});

it('what the process says at its end tears no line of a log that is read late', async () => {
  const late = await startServer(['--log-level', 'info', '--no-metrics']);
  const stderr = late.child.stderr!;
  stderr.pause();
  await fill(60, late);
  const ended = new Promise((resolve) => late.child.once('close', resolve));
  late.child.kill('SIGTERM');
  stderr.resume();
  await ended;
  const written = late
    .output()
    .stderr.split('\n')
    .filter((line) => line !== '');
  const words = written.filter((line) => line.startsWith('skein: '));
  expect(words.some((line) => line.includes('finishing the answers'))).toBe(true);
  const records = written.filter((line) => !words.includes(line)).map((line) => JSON.parse(line).msg);
  expect(records.filter((message) => message === 'request')).toHaveLength(60);
});
