import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { freePort } from '../../tools/support/free-port.js';
import { freshFolders } from '../support/fresh-folders.js';
import { cleanEnvironment, cliPath } from './support/skein-process.js';

const makeFolder = freshFolders('skein-loading');

it('says in /health that its model is being loaded, and ends where it cannot be', async () => {
  // A hub that answers when it is asked to.
  const held: ServerResponse[] = [];
  const hub = createServer((_, response) => held.push(response)).listen(0, '127.0.0.1');
  await once(hub, 'listening');
  const port = await freePort();
  const args = ['serve', '--port', String(port), '--model', 'an-org/slow', '--cache-dir', makeFolder()];
  const endpoint = `http://127.0.0.1:${(hub.address() as AddressInfo).port}`;
  const child = spawn(process.execPath, [cliPath, ...args], {
    env: cleanEnvironment({ HF_ENDPOINT: endpoint, HF_HOME: makeFolder() }),
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  try {
    const healthOf = async () => {
      const response = await fetch(`http://127.0.0.1:${port}/health`).catch(() => null);
      return response === null ? null : [response.status, await response.json()];
    };
    await expect
      .poll(healthOf)
      .toMatchObject([
        503,
        { status: 'loading', reason: 'the model an-org/slow is being loaded', loading: ['an-org/slow'] },
      ]);
    await expect.poll(() => held.length).toBeGreaterThan(0);
    expect((await fetch(`http://127.0.0.1:${port}/v2/health/live`)).status).toBe(200);
    hub.removeAllListeners('request').on('request', (_, response) => response.writeHead(404).end('{}'));
    for (const response of held) response.writeHead(404).end('{}');
    expect((await ended)[0]).toBe(1);
    expect(await healthOf()).toBeNull();
  } finally {
    child.kill('SIGKILL');
    hub.closeAllConnections();
    hub.close();
  }
});
