import { once } from 'node:events';
import { existsSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { encodeFrame, FRAMES, textFrame } from '../../../host/ranks/frames.js';
import { awaitRanks, joinRanks, type Meeting, type MetGroup } from '../../../host/ranks/rendezvous.js';
import { freePort } from '../../../tools/support/free-port.js';
import { temporaryFolder } from '../../support/fresh-folders.js';

const folder = temporaryFolder('skein-rendezvous');
let numbers = 0;
const address = () => ({ path: join(folder, `${++numbers}.sock`) });
const meeting = (rank: number, more: Partial<Meeting>): Meeting => ({
  address: { path: '' },
  secret: null,
  shape: { tensorParallelSize: 3, pipelineParallelSize: 1 },
  rank,
  build: 'this build',
  model: 'this model',
  joinLimitMs: 120_000,
  limitMs: 120_000,
  ...more,
});
const EVENTS = { onFrame: () => {}, onEnd: () => {}, onMissing: () => {} };

const met: MetGroup[] = [];
afterEach(() => {
  for (const { sockets } of met.splice(0)) for (const socket of sockets.values()) socket.end();
});
const listening = ({ path }: { path: string }) => expect.poll(() => existsSync(path)).toBe(true);
async function gather(groups: Promise<MetGroup>[]): Promise<MetGroup[]> {
  const all = await Promise.all(groups);
  met.push(...all);
  return all;
}

describe('ranks that meet', () => {
  it('all have a connection to rank 0, and are told of its memory', async () => {
    const at = { address: address() };
    const [leader, ...others] = await gather([
      awaitRanks(meeting(0, at), '/dev/shm/memory', EVENTS),
      joinRanks(meeting(2, at), EVENTS),
      joinRanks(meeting(1, at), EVENTS),
    ]);
    expect([...leader!.sockets.keys()].sort()).toEqual([1, 2]);
    expect(others.map(({ path, sockets }) => [path, [...sockets.keys()]])).toEqual([
      ['/dev/shm/memory', [0]],
      ['/dev/shm/memory', [0]],
    ]);
  });

  it.each([
    [
      1,
      { build: 'another' },
      'Rank 1 is of another, but rank 0 of this build; run the same build everywhere.',
    ],
    [
      1,
      { shape: { tensorParallelSize: 1, pipelineParallelSize: 3 } },
      'Rank 1 is of a group of 1 x 3 ranks, but rank 0 of one of 3 x 1.',
    ],
    [
      1,
      { model: 'another' },
      'Rank 1 has another model than rank 0, or other weights; give all ranks the same engine.',
    ],
    [3, {}, 'There is no rank 3 of 3.'],
    [2, {}, 'There is a rank 2 already.'],
  ])('are refused as rank %i with %o, and the others are waited for', async (rank, more, message) => {
    const at = { address: address() };
    const leader = awaitRanks(meeting(0, at), null, EVENTS);
    await listening(at.address);
    const second = joinRanks(meeting(2, at), EVENTS);
    // Rank 0 knows of the second when it answers the one after it.
    await expect(joinRanks(meeting(9, at), EVENTS)).rejects.toThrow('There is no rank 9 of 3.');
    await expect(joinRanks(meeting(rank, { ...at, ...more }), EVENTS)).rejects.toThrow(message);
    await gather([leader, second, joinRanks(meeting(1, at), EVENTS)]);
  });

  it('are told of while they are missing, with the reason of a refusal', async () => {
    const at = { address: address() };
    const told: [number[], string | null][] = [];
    const onMissing = (ranks: number[], refused: string | null) => void told.push([ranks, refused]);
    const leader = awaitRanks(meeting(0, { ...at, joinLimitMs: null }), null, { ...EVENTS, onMissing });
    await listening(at.address);
    const first = joinRanks(meeting(1, at), EVENTS);
    await expect.poll(() => told.length).toBe(2);
    const reason = 'There is a rank 1 already.';
    await expect(joinRanks(meeting(1, at), EVENTS)).rejects.toThrow(reason);
    await gather([leader, first, joinRanks(meeting(2, at), EVENTS)]);
    expect(told).toEqual([
      [[1, 2], null],
      [[2], null],
      [[2], reason],
      [[], null],
    ]);
  });

  it('are missing again when they leave before all are there', async () => {
    const at = { address: address() };
    const told: number[][] = [];
    const onMissing = (ranks: number[]) => void told.push(ranks);
    const leader = awaitRanks(meeting(0, { ...at, joinLimitMs: null }), null, { ...EVENTS, onMissing });
    await listening(at.address);
    const visitor = net.connect(at.address.path);
    visitor.write(
      encodeFrame(
        textFrame(
          FRAMES.hello,
          JSON.stringify({
            rank: 2,
            tensorParallelSize: 3,
            pipelineParallelSize: 1,
            build: 'this build',
            model: 'this model',
          }),
        ),
      ),
    );
    await expect.poll(() => told.at(-1)).toEqual([1]);
    visitor.destroy();
    await expect.poll(() => told.at(-1)).toEqual([1, 2]);
    await gather([leader, joinRanks(meeting(2, at), EVENTS), joinRanks(meeting(1, at), EVENTS)]);
  });

  it('get in past a crowd of connections that say nothing', async () => {
    const port = await freePort();
    const at = { address: { host: '127.0.0.1', port }, secret: 'a secret of the tests' };
    const leader = awaitRanks(meeting(0, at), null, EVENTS);
    const silent: net.Socket[] = [];
    await expect.poll(() => connected(port)).toBe(true);
    for (let i = 0; i < 200; i++) silent.push(net.connect(port, '127.0.0.1').on('error', () => {}));
    await Promise.all(silent.map((socket) => once(socket, 'connect')));
    await gather([leader, joinRanks(meeting(1, at), EVENTS), joinRanks(meeting(2, at), EVENTS)]);
    // No rank holds them open once all have met.
    await Promise.all(silent.map((socket) => socket.closed || once(socket.resume(), 'close')));
  });

  it('are no strangers, whatever these send', async () => {
    const path = join(folder, 'strangers.sock');
    const leader = awaitRanks(meeting(0, { address: { path }, joinLimitMs: 1500 }), null, EVENTS);
    const refused = expect(leader).rejects.toThrow(
      /^Of 3 ranks these have not joined within 1500 ms: 1, 2\. The last one that tried: It did not say which rank it is\.$/,
    );
    await listening({ path });
    for (const bytes of [
      Buffer.from('GET / HTTP/1.1\r\n\r\n'),
      encodeFrame(textFrame(FRAMES.hello, 'no JSON')),
      encodeFrame(textFrame(FRAMES.call, '{}')),
    ]) {
      const socket = net.connect(path);
      socket.on('error', () => {});
      socket.end(bytes);
      socket.resume();
      await once(socket, 'close');
    }
    await refused;
  });
});

/** A process listens at the port. */
function connected(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

describe('a folder that is not there', () => {
  const path = join(folder, 'none', 'ranks.sock');

  it('is told as missing, by rank 0 at once', async () => {
    await expect(awaitRanks(meeting(0, { address: { path } }), null, EVENTS)).rejects.toThrow(
      `Rank 0 cannot listen at ${path}: there is no folder ${join(folder, 'none')}.`,
    );
  });

  it('is told by the others, for which rank 0 may still make it', async () => {
    await expect(joinRanks(meeting(1, { address: { path }, joinLimitMs: 50 }), EVENTS)).rejects.toThrow(
      `Rank 1 could not join rank 0 within 50 ms (there is no folder ${join(folder, 'none')}).`,
    );
  });
});

describe('a rank that comes to somebody else', () => {
  it('does not say that it has another secret', async () => {
    const foreign = net.createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    foreign.listen(0, '127.0.0.1');
    await once(foreign, 'listening');
    const { port } = foreign.address() as net.AddressInfo;
    const at = { address: { host: '127.0.0.1', port }, secret: 'a secret of the tests' };
    await expect(joinRanks(meeting(1, at), EVENTS)).rejects.toThrow(
      new RegExp(
        `^Rank 1 cannot join the group at 127.0.0.1:${port}: the other side is no rank of this kind: it speaks something else \\(ERR_SSL_`,
      ),
    );
    foreign.close();
  });

  it('says it where that is so', async () => {
    const port = await freePort();
    const at = { address: { host: '127.0.0.1', port } };
    const leader = awaitRanks(meeting(0, { ...at, secret: 'a secret of the tests' }), null, EVENTS);
    await expect(joinRanks(meeting(1, { ...at, secret: 'another secret of them' }), EVENTS)).rejects.toThrow(
      'it has not the secret that rank 0 has',
    );
    const right = { ...at, secret: 'a secret of the tests' };
    await gather([leader, joinRanks(meeting(1, right), EVENTS), joinRanks(meeting(2, right), EVENTS)]);
  });
});

describe('a rank that comes to nobody', () => {
  it('says so in time, also where a connection is taken and nothing is said', async () => {
    const silent = net.createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as net.AddressInfo;
    const host = '127.0.0.1';
    const secret = 'a secret of the tests';
    await expect(
      joinRanks(meeting(1, { address: { host, port }, secret, joinLimitMs: 300 }), EVENTS),
    ).rejects.toThrow('Rank 1 could not join rank 0 within 300 ms (ETIMEDOUT).');
    await expect(joinRanks(meeting(1, { address: address(), joinLimitMs: 200 }), EVENTS)).rejects.toThrow(
      'Rank 1 could not join rank 0 within 200 ms (ENOENT).',
    );
    silent.close();
  });
});
