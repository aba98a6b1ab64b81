import { once } from 'node:events';
import { copyFileSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listenForHangUp } from '../../src/commands/hang-up.js';
import { runningProcesses } from '../../tools/support/running-processes.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { runInTerminal } from './support/pty.js';
import { cliPath, grpcAddress, type SkeinProcess, spawnCli, startServer } from './support/skein-process.js';
import { certificateFixture } from './support/tls.js';

const folder = temporaryFolder('skein-hang-up');
const keys = join(folder, 'keys.json');
const certificate = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
const model = ['--model', 'models/demo/gosling', '--threads', '1', '--kv-cache-tokens', '1024'];
let server: SkeinProcess;

const writeKeys = (...names: string[]) =>
  writeFileSync(keys, JSON.stringify(names.map((name) => ({ name, key: `sk-${name}` }))));

function useCertificate(name: 'localhost' | 'other'): void {
  const { cert, key } = certificateFixture(name);
  copyFileSync(cert, certificate.cert);
  copyFileSync(key, certificate.key);
}

/** Asks for the models over a connection of its own. */
function ask(name: string): Promise<{ status: number; fingerprint: string }> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer sk-${name}` };
    request(`${server.url}/v1/models`, { headers, agent: false, rejectUnauthorized: false }, (answer) => {
      const { fingerprint256 } = (answer.socket as TLSSocket).getPeerCertificate();
      answer.resume().on('end', () => resolve({ status: answer.statusCode!, fingerprint: fingerprint256 }));
    })
      .on('error', reject)
      .end();
  });
}
/** Fingerprint of the certificate that a new connection for gRPC gets. */
async function grpcFingerprint(): Promise<string> {
  const [host, port] = grpcAddress(server).split(':');
  const socket = connect({ host, port: Number(port), ALPNProtocols: ['h2'], rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

const statusOf = async (name: string) => (await ask(name)).status;

/** Sends SIGHUP and waits for the log's word about each of the files. */
async function hangUp(...words: string[]): Promise<void> {
  const before = server.output().stderr.length;
  server.child.kill('SIGHUP');
  for (const word of words) await expect.poll(() => server.output().stderr.slice(before)).toContain(word);
}

beforeAll(async () => {
  writeKeys('alice', 'bob');
  useCertificate('localhost');
  const tls = ['--tls-cert', certificate.cert, '--tls-key', certificate.key, '--grpc-port', '0'];
  server = await startServer([...model, ...tls, '--api-key-file', keys, '--log-level', 'info']);
});
afterAll(() => server?.stop());

describe('SIGHUP', () => {
  it('has a server without a log file read its keys again, and go on', async () => {
    expect([await statusOf('alice'), await statusOf('carol')]).toEqual([200, 401]);
    writeKeys('bob', 'carol');
    await hangUp('API keys read again', 'certificate read again');
    expect([await statusOf('alice'), await statusOf('bob'), await statusOf('carol')]).toEqual([
      401, 200, 200,
    ]);
  });

  it('changes the certificate of new connections', async () => {
    const { fingerprint } = await ask('bob');
    expect(await grpcFingerprint()).toBe(fingerprint);
    useCertificate('other');
    await hangUp('certificate read again');
    const found = await ask('bob');
    expect(found.status).toBe(200);
    expect(found.fingerprint).not.toBe(fingerprint);
    expect(await grpcFingerprint()).toBe(found.fingerprint);
  });

  it('keeps what was in force where a file is wrong, and says why', async () => {
    const { fingerprint } = await ask('bob');
    writeFileSync(keys, '[{"name": "dave"}]');
    writeFileSync(certificate.cert, 'no certificate');
    await hangUp('key must be a text that is not empty', 'is no certificate in PEM');
    expect(await ask('bob')).toEqual({ status: 200, fingerprint });
    expect(await statusOf('dave')).toBe(401);
  });
});

it('a server that still loads goes on, and reads its files when it has loaded', async () => {
  const hub = createServer();
  const asked = once(hub, 'request');
  hub.listen(0, '127.0.0.1');
  await once(hub, 'listening');
  const environment = {
    HF_ENDPOINT: `http://127.0.0.1:${(hub.address() as AddressInfo).port}`,
    HF_HOME: join(folder, 'hub'),
  };
  const { child, ended } = spawnCli([cliPath, 'serve', '--port', '0', '--model', 'acme/geese'], environment);
  const [, answer] = (await asked) as [unknown, ServerResponse];
  child.kill('SIGHUP');
  answer.writeHead(404).end();
  // SIGHUP itself would have been the end.
  expect(await ended).toMatchObject({ code: 1, signal: null, stderr: expect.stringContaining('acme/geese') });
  hub.close();
});

it('SIGHUP before there is something to reload is answered when there is', () => {
  let reloads = 0;
  const reloadBy = listenForHangUp();
  process.emit('SIGHUP');
  process.emit('SIGHUP');
  expect(reloads).toBe(0);
  reloadBy(() => reloads++);
  expect(reloads).toBe(1);
  process.emit('SIGHUP');
  expect(reloads).toBe(2);
  process.removeAllListeners('SIGHUP');
});

/** Processes that were started with an argument. */
const processesOf = (argument: string) => runningProcesses().filter(({ args }) => args.includes(argument));

it('a server whose terminal is closed ends', async () => {
  // A name that no other process has.
  const terminal = runInTerminal(['serve', ...model, '--port', '0', '--served-model-name', folder]);
  const [, url] = /(http:\/\/\S+?)\/v1/.exec(await terminal.waitFor(/http:\/\/\S+\/v1/))!;
  const health = await fetch(`${url}/health`);
  expect(health.status).toBe(200);
  expect(processesOf(folder)).toHaveLength(2); // That of the terminal, too.
  terminal.close();
  await expect.poll(() => processesOf(folder)).toEqual([]);
});
