import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { boundedHubFetch } from '../../../src/hub/hub-answers.js';
import { askHub } from '../../../src/hub/hub-client.js';
import { repositoryOf } from '../../../src/hub/repository.js';

const COMMIT = 'c'.repeat(40);
const OID = 'a'.repeat(40);
const REPOSITORY = repositoryOf('some-org/some-model');

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function served(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Asks a hub that says this of its commit and its files. @returns what went wrong, and how often it was asked */
async function fault(sha: unknown, files: unknown): Promise<{ message: string; asked: number }> {
  let asked = 0;
  const endpoint = await served((request, response) => {
    asked++;
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(request.url!.includes('/tree/') ? files : infoOf(sha)));
  });
  const options = { fetch, retryDelayMs: 1 };
  const error = await askHub(REPOSITORY, 'main', { endpoint, token: null }, options).then(
    () => new Error('none'),
    (failure: Error) => failure,
  );
  return { message: error.message, asked };
}

const infoOf = (sha: unknown) => ({
  ...{ id: REPOSITORY.id, _id: '1', sha, private: false, gated: false, downloads: 1, likes: 1 },
  lastModified: '2026-01-01T00:00:00.000Z',
});
const file = (fields: object) => ({ type: 'file', path: 'config.json', size: 5, oid: OID, ...fields });

it.each([
  ['a commit that leads out of the cache', '../../../evil', [], 'has no commit of 40 hexadecimal digits'],
  ['no commit', undefined, [], 'has no commit of 40 hexadecimal digits'],
  [
    'a hash that leads out of the cache',
    COMMIT,
    [file({ oid: '../../evil' })],
    'no git hash of the file "config.json"',
  ],
  [
    'a hash of a large file',
    COMMIT,
    [file({ lfs: { oid: '/etc/x', size: 5 } })],
    'no sha256 hash of the file',
  ],
  ['a size below 0', COMMIT, [file({ size: -5 })], 'no size of the file "config.json"'],
  ['a size that is none', COMMIT, [file({ size: '5' })], 'no size of the file "config.json"'],
])('%s is refused at once, before anything is written', async (_, sha, files, problem) => {
  const { message, asked } = await fault(sha, files);
  expect(message).toContain(`127.0.0.1 could not be asked for some-org/some-model: its answer`);
  expect(message).toContain(problem);
  expect(asked).toBeLessThanOrEqual(2);
});

it('files outside of the repository are left out', async () => {
  const files = [file({ path: '../evil' }), file({ path: '/evil' }), file({ path: 'a\\b' }), file({})];
  const endpoint = await served((request, response) =>
    response.end(JSON.stringify(request.url!.includes('/tree/') ? files : infoOf(COMMIT))),
  );
  const { files: found } = await askHub(REPOSITORY, 'main', { endpoint, token: null }, { fetch });
  expect(found.map(({ path }) => path)).toEqual(['config.json']);
});

it('an answer that is none of a hub is named so', async () => {
  expect((await fault(COMMIT, { error: 'no list' })).message).toContain('its answer is not that of a hub');
  const endpoint = await served((_, response) => response.end('<html>'));
  const asked = askHub(REPOSITORY, 'main', { endpoint, token: null }, { fetch, retryDelayMs: 1 });
  await expect(asked).rejects.toThrow(/its answer is not that of a hub \(.*<html>/);
});

it('an answer without an end is given up at its bound', async () => {
  let sent = 0;
  const endpoint = await served((_, response) => {
    const piece = Buffer.alloc(1 << 20, '[');
    const more = () => {
      while (response.write(piece)) sent += piece.length;
      sent += piece.length;
    };
    response.on('drain', more);
    more();
  });
  const asked = askHub(REPOSITORY, 'main', { endpoint, token: null }, { fetch, retryDelayMs: 1 });
  await expect(asked).rejects.toThrow('its answer is longer than 16777216 bytes');
  expect(sent).toBeLessThan(64 * 2 ** 20);
});

it('an answer that does not come is given up after its time, or with its signal', async () => {
  const endpoint = await served(() => {});
  const bounded = boundedHubFetch(fetch, undefined, { answerBytes: 1000, answerMs: 50 });
  await expect(bounded(endpoint)).rejects.toMatchObject({ name: 'TimeoutError' });
  const silent: typeof fetch = async () => {
    throw new DOMException('The operation was aborted due to timeout', 'TimeoutError');
  };
  let asked = 0;
  const counting: typeof fetch = (...given) => {
    asked++;
    return silent(...given);
  };
  const given = askHub(REPOSITORY, 'main', { endpoint, token: null }, { fetch: counting, retryDelayMs: 1 });
  await expect(given).rejects.toThrow('it has not answered within 30 seconds');
  expect(asked).toBe(1);
  const left = new AbortController();
  const waiting = askHub(REPOSITORY, 'main', { endpoint, token: null }, { fetch, signal: left.signal });
  left.abort(new Error('the client has left'));
  await expect(waiting).rejects.toThrow('the client has left');
});
