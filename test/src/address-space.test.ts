import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { memoryProblem, requireThreadRoom } from '../../base/address-space.js';
import { cleanEnvironment, cliPath, testCacheDir } from './support/skein-process.js';

/** Runs the command line with `gigabytes` GB of address space. */
async function runWithin(gigabytes: number, args: readonly string[]) {
  const script = `ulimit -v ${Math.round(gigabytes * 1e6)} && exec "$@"`;
  const child = spawn('bash', ['-c', script, 'bash', process.execPath, cliPath, ...args], {
    env: cleanEnvironment({}),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ]);
  return { code, stdout, stderr };
}

/** GB that Node.js takes before it runs anything; each of its versions takes others. */
function emptyProcess(): number {
  const script = "Number.parseInt(require('fs').readFileSync('/proc/self/statm', 'latin1'), 10) * 4096e-9";
  return Number(execFileSync(process.execPath, ['-p', script], { encoding: 'utf8' }));
}

const run = ['run', 'hi', '--max-tokens', '2', '--cache-dir', testCacheDir];

describe.runIf(process.platform === 'linux')('an address space that is limited', () => {
  it('to what HTTP clients and threads need, but WebAssembly does not get, is enough', async () => {
    const { code, stdout, stderr } = await runWithin(6, run);
    // The first one builds an engine, and says so.
    expect(code, stderr).toBe(0);
    expect(stderr).not.toMatch(/memory|Error/i);
    expect(stdout).not.toBe('');
  });

  it('to what a memory of WebAssembly takes, and hardly more, is enough as a lower limit is', async () => {
    for (const gigabytes of [11.5, 12.3, 13]) {
      const { code, stderr } = await runWithin(gigabytes, run);
      expect(code, stderr).toBe(0);
    }
  });

  it.each([
    ['a thread', run],
    ['a thread of a server', ['serve', '--port', '0', '--cache-dir', testCacheDir]],
  ])('to less than %s needs is said in a sentence', async (_, args) => {
    const { code, stderr } = await runWithin(emptyProcess() + 0.5, args);
    expect(stderr).toMatch(
      /^(skein: loading gosling\n)?skein: A thread needs 0\.8 GB of address space, and of the \d\.\d GB that this process may have 0\.\d GB are left; raise the limit \(ulimit -v\)\.\n$/,
    );
    expect(code).toBe(1);
  });

  it('to less than the wasm executor needs is said in a sentence', async () => {
    const { code, stderr } = await runWithin(6, [...run, '--executor', 'wasm']);
    expect(stderr).toMatch(
      /^(skein: loading gosling\n)?skein: .*Memory for WebAssembly, which reserves 10 GB of addresses, could not be had by this process: its address space is limited to 6\.1 GB, .* \(ulimit -v\)\.\n$/,
    );
    expect(code).toBe(1);
  });

  it('is said by a benchmark, whose HTTP client needs WebAssembly', async () => {
    const server = createServer((_, response) => response.end('{}')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const { code, stderr } = await runWithin(4, ['bench', `http://127.0.0.1:${port}`, '--requests', '1']);
    server.close();
    expect(stderr).toMatch(/^skein: Memory for WebAssembly, .* is limited to 4\.1 GB, .* \(ulimit -v\)\.\n$/);
    expect(code).toBe(1);
  });
});

describe('memory that is refused', () => {
  it('is told from other errors', () => {
    expect(memoryProblem(new RangeError('Array buffer allocation failed'))).toMatch(
      /^Memory for a buffer could not be had by this process: .*ulimit -v.*\.$/,
    );
    expect(memoryProblem(new RangeError('Maximum call stack size exceeded'))).toBe(null);
    expect(memoryProblem('Array buffer allocation failed')).toBe(null);
  });

  it('is known before a thread is started', () => {
    expect(() => requireThreadRoom(1, null)).not.toThrow();
    expect(() => requireThreadRoom(1, { limit: 4e9, used: 3e9 })).not.toThrow();
    expect(() => requireThreadRoom(1, { limit: 4e9, used: 3.5e9 })).toThrow(
      /of the 4\.0 GB .* 0\.5 GB are left/,
    );
  });
});
