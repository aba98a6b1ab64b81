import { once } from 'node:events';
import { existsSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { encodeFrame, FRAMES, textFrame } from '../../../host/ranks/frames.js';
import { awaitRanks, joinRanks, type Meeting, type MetGroup } from '../../../host/ranks/rendezvous.js';
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
  limitMs: 20_000,
  ...more,
});
const EVENTS = { onFrame: () => {}, onEnd: () => {} };

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

  it('are no strangers, whatever these send', async () => {
    const path = join(folder, 'strangers.sock');
    const leader = awaitRanks(meeting(0, { address: { path }, limitMs: 1500 }), null, EVENTS);
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

describe('a rank that comes to nobody', () => {
  it('says so in time, also where a connection is taken and nothing is said', async () => {
    const silent = net.createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as net.AddressInfo;
    const host = '127.0.0.1';
    const secret = 'a secret of the tests';
    await expect(
      joinRanks(meeting(1, { address: { host, port }, secret, limitMs: 300 }), EVENTS),
    ).rejects.toThrow('Rank 1 could not join rank 0 within 300 ms (ETIMEDOUT).');
    await expect(joinRanks(meeting(1, { address: address(), limitMs: 200 }), EVENTS)).rejects.toThrow(
      'Rank 1 could not join rank 0 within 200 ms (ENOENT).',
    );
    silent.close();
  });
});
