import { once } from 'node:events';
import net from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Door } from '../../../host/ranks/door.js';
import { connectToRanks } from '../../../host/ranks/rank-sockets.js';
import { temporaryFolder } from '../../support/fresh-folders.js';

const folder = temporaryFolder('skein-door');
const SECRET = 'a secret of the tests';
const MAX_UNPROVEN = 64;
let numbers = 0;
const open: (() => void)[] = [];
afterEach(() => {
  for (const close of open.splice(0)) close();
});

async function doorAt(limitMs: number, secret: string | null = SECRET) {
  const path = join(folder, `${++numbers}.sock`);
  const came: net.Socket[] = [];
  const problems: Error[] = [];
  const events = {
    onConnection: (socket: net.Socket) => void came.push(socket.on('error', () => {}).resume()),
    onProblem: (error: Error) => void problems.push(error),
  };
  const door = new Door({ path }, secret, events, limitMs);
  open.push(() => door.close());
  await expect.poll(() => door.isOpen).toBe(true);
  return { door, path, came, problems };
}

async function connectTo(path: string): Promise<net.Socket> {
  const socket = net.connect(path);
  socket.on('error', () => {}).resume();
  open.push(() => socket.destroy());
  await once(socket, 'connect');
  return socket;
}
/** A connection that is closed before its bytes are read is reset, and closed all the same. */
const closed = (socket: net.Socket) =>
  socket.closed ? Promise.resolve() : new Promise((resolve) => socket.once('close', resolve));

/** The first bytes of TLS: a record of 256 bytes, of which these are a few. */
const HALF_A_HELLO = Buffer.from([0x16, 0x03, 0x01, 0x01, 0x00, 0x01, 0x00, 0x00, 0xfc, 0x03]);

describe('a door', () => {
  it.each([
    ['nothing', null],
    ['half of a handshake', HALF_A_HELLO],
  ])('closes a connection on which %s comes', async (_, bytes) => {
    const { path, came } = await doorAt(20);
    const socket = await connectTo(path);
    if (bytes !== null) socket.write(bytes);
    await closed(socket);
    expect(came).toEqual([]);
  });

  it('closes one that knows the secret and says nothing more, and keeps one that is admitted', async () => {
    const { door, path, came } = await doorAt(1000);
    const admitted = await connectToRanks({ path }, SECRET);
    await expect.poll(() => came.length).toBe(1);
    door.admit(came[0]!);
    const idle = await connectToRanks({ path }, SECRET);
    idle.on('error', () => {}).resume();
    await closed(idle);
    expect(admitted.destroyed).toBe(false);
    door.close();
    came[0]!.end('still here');
    const [bytes] = (await once(admitted, 'data')) as [Buffer];
    expect(bytes.toString()).toBe('still here');
  });

  it('lets a newcomer in the place of the oldest where places are short', async () => {
    const { path, came } = await doorAt(60_000);
    const silent: net.Socket[] = [];
    for (let i = 0; i < MAX_UNPROVEN; i++) silent.push(await connectTo(path));
    const late = await connectToRanks({ path }, SECRET);
    open.push(() => late.destroy());
    await expect.poll(() => came.length).toBe(1);
    await closed(silent[0]!);
    expect(silent.filter((socket) => socket.closed)).toHaveLength(1);
  });

  it('closes whoever still stands in it when it is closed', async () => {
    const { door, path, came } = await doorAt(60_000, null);
    const socket = await connectTo(path);
    await expect.poll(() => came.length).toBe(1);
    door.close();
    await closed(socket);
  });
});
