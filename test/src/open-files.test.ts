import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { cleanEnvironment, cliPath, testCacheDir } from './support/skein-process.js';

const LIMIT = 128;

describe.runIf(process.platform === 'linux')('a server that may have few files open', () => {
  it('keeps some for itself, refuses connections in words, and says so in its log', async () => {
    const script = `ulimit -n ${LIMIT} && exec "$@"`;
    const args = [
      'serve',
      '--port',
      '0',
      '--threads',
      '1',
      '--kv-cache-tokens',
      '1024',
      '--log-format',
      'text',
    ];
    const command = ['bash', process.execPath, cliPath, ...args, '--cache-dir', testCacheDir];
    const child = spawn('bash', ['-c', script, ...command], {
      env: cleanEnvironment({}),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (part: string) => {
        output += part;
      });
    const portIn = () => Number(/at http:\/\/127\.0\.0\.1:(\d+)\/v1/.exec(output)?.[1]);
    await expect.poll(portIn, { timeout: 60_000 }).toBeGreaterThan(0);
    const sockets: Socket[] = [];
    const answers: string[] = [];
    for (let i = 0; i < LIMIT; i++) {
      const socket = connect(portIn(), '127.0.0.1')
        .setEncoding('utf8')
        .on('error', () => {});
      socket.once('data', (part: string) => answers.push(part));
      sockets.push(socket);
      await once(socket, 'connect');
      socket.write('GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n');
    }
    // All are answered: none is closed without a word.
    await expect.poll(() => answers.length, { timeout: 60_000 }).toBe(LIMIT);
    const refused = answers.filter((answer) => answer.startsWith('HTTP/1.1 503'));
    expect(refused.length).toBeGreaterThan(0);
    expect(refused[0]).toContain('"code":"too_many_connections"');
    expect(answers.filter((answer) => answer.startsWith('HTTP/1.1 200')).length).toBeGreaterThan(0);
    await expect
      .poll(() => output, { timeout: 60_000 })
      .toMatch(/ERROR nearly as many files are open as may be: .*limit=128/);
    for (const socket of sockets) socket.destroy();

    // Connections that wait to be refused, since they send nothing, leave some files too.
    const idle = Array.from({ length: 2 * LIMIT }, () =>
      connect(portIn(), '127.0.0.1').on('error', () => {}),
    );
    const isClosed = (socket: Socket) => socket.readableEnded || socket.destroyed;
    for (const socket of idle) socket.resume();
    await expect.poll(() => idle.filter(isClosed).length, { timeout: 60_000 }).toBeGreaterThan(LIMIT);
    expect(readdirSync(`/proc/${child.pid}/fd`).length).toBeLessThanOrEqual(LIMIT - 4);
    for (const socket of idle) socket.destroy();
    child.kill();
    await once(child, 'close');
    expect(output.match(/nearly as many files/g)).toHaveLength(1);
  });
});
