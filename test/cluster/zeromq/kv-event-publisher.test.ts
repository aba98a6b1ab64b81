import { createRequire } from 'node:module';
import { decode } from '@msgpack/msgpack';
import { afterEach, describe, expect, it } from 'vitest';
import type { CurveKeys } from '../../../cluster/zeromq/curve.js';
import { EndpointError, readEndpoint } from '../../../cluster/zeromq/endpoint.js';
import {
  KvEventPublisher,
  type KvEventPublisherOptions,
} from '../../../cluster/zeromq/kv-event-publisher.js';
import type { CurveOptions, ZeroMq } from '../../../cluster/zeromq/zeromq.js';

/** The other side: the package itself, in the words of its documentation. */
type Peer = Record<string, unknown> & {
  connect(address: string): void;
  bind(address: string): Promise<void>;
  subscribe(topic: string): void;
  send(frames: unknown[]): Promise<void>;
  receive(): Promise<Buffer[]>;
  close(): void;
  lastEndpoint: string;
  receiveTimeout: number;
};
const zmq = createRequire(import.meta.url)('zeromq') as ZeroMq & {
  Subscriber: new (options?: object) => Peer;
  Request: new (options?: object) => Peer;
  Dealer: new (options?: object) => Peer;
  curveKeyPair(): CurveKeys;
};

const opened: { close(): void }[] = [];
const kept = <S extends { close(): void }>(socket: S): S => {
  opened.push(socket);
  return socket;
};
afterEach(() => {
  for (const socket of opened.splice(0)) socket.close();
});

const LOCAL = 'tcp://127.0.0.1:*';
const at = (address: string) => readEndpoint('endpoint', address);
const errors: Error[] = [];

async function publisher(options: Partial<KvEventPublisherOptions> = {}): Promise<KvEventPublisher> {
  const defaults: KvEventPublisherOptions = {
    endpoint: at(LOCAL),
    replayEndpoint: at(LOCAL),
    topic: 'kv',
    format: 'map',
    bufferSteps: 100,
    keys: null,
    peerKeys: [],
    onError: (error) => errors.push(error),
  };
  return kept(await KvEventPublisher.open(zmq, { ...defaults, ...options }));
}

/** A reader that is known to be connected, and has read all that was published. */
async function reader(from: KvEventPublisher, curve: CurveOptions = {}): Promise<Peer> {
  const socket = kept(new zmq.Subscriber({ ...curve, receiveTimeout: 50 }));
  socket.connect(from.address);
  socket.subscribe('kv');
  do from.publish([{ type: 'AllBlocksCleared' }]);
  while ((await socket.receive().catch(() => null)) === null);
  socket.receiveTimeout = -1;
  from.publish(removed(MARK));
  while (!JSON.stringify(decode((await socket.receive())[2]!)).includes(`[${MARK}]`));
  return socket;
}

/** Number of a block that no test publishes. */
const MARK = 987_654_321;
const removed = (hash: number) => [{ type: 'BlockRemoved', block_hashes: [hash], medium: 'GPU' }];
const numberOf = (frame: Buffer) => Number(frame.readBigInt64BE());

async function replay(address: string, first: bigint, curve: object = {}): Promise<number[]> {
  const socket = kept(new zmq.Dealer({ receiveTimeout: 5000, ...curve }));
  socket.connect(address);
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(first);
  await socket.send(['', bytes]);
  const numbers: number[] = [];
  for (;;) {
    const [, sequence, payload] = await socket.receive();
    const number = numberOf(sequence!);
    if (number === -1) return numbers;
    expect(decode(payload!)).toMatchObject([expect.any(Number), [{ type: expect.any(String) }], 0]);
    numbers.push(number);
  }
}

describe('a publisher of cache events', () => {
  it('numbers what it sends, and gives again what is asked for', async () => {
    const source = await publisher({ bufferSteps: 5 });
    const socket = await reader(source);
    source.publish([]);
    source.publish(removed(1), 2500);
    source.publish([...removed(2), ...removed(2 ** 53 - 1)]);
    const [topic, first, payload] = await socket.receive();
    const [, second, more] = await socket.receive();
    expect(topic!.toString()).toBe('kv');
    expect(decode(payload!)).toEqual([2.5, removed(1), 0]);
    expect(decode(more!)).toMatchObject([expect.any(Number), [...removed(2), ...removed(2 ** 53 - 1)], 0]);
    const last = numberOf(second!);
    expect(last).toBe(numberOf(first!) + 1);
    for (let hash = 0; hash < 10; hash += 1) source.publish(removed(hash));
    const newest = Array.from({ length: 5 }, (_, index) => last + 6 + index);
    expect(await replay(source.replayAddress!, 0n)).toEqual(newest);
    expect(await replay(source.replayAddress!, BigInt(last + 9))).toEqual([last + 9, last + 10]);
    expect(await replay(source.replayAddress!, 2n ** 64n - 1n)).toEqual([]);
  });

  it('answers no question that is none, and goes on', async () => {
    const source = await publisher();
    source.publish(removed(1));
    const odd = kept(new zmq.Dealer());
    odd.connect(source.replayAddress!);
    for (const frames of [[''], ['', 'abc'], ['x', Buffer.alloc(8)], ['', Buffer.alloc(8), 'more']]) {
      await odd.send(frames);
    }
    const large = kept(new zmq.Dealer());
    large.connect(source.replayAddress!);
    await large.send(['', Buffer.alloc(100_000)]);
    expect(await replay(source.replayAddress!, 0n)).toEqual([0]);
    expect(errors).toEqual([]);
  });

  it('connects to a reader that listens', async () => {
    const socket = kept(new zmq.Subscriber());
    await socket.bind('tcp://127.0.0.1:*');
    socket.subscribe('');
    const source = await publisher({ endpoint: at(`>${socket.lastEndpoint}`), format: 'array', topic: '' });
    const sending = setInterval(() => source.publish(removed(3)), 20);
    const [, , payload] = await socket.receive();
    clearInterval(sending);
    expect(decode(payload!)).toMatchObject([expect.any(Number), [['BlockRemoved', [3], 'GPU']], 0]);
  });

  it('says which address it cannot have', async () => {
    const { address } = await publisher();
    await expect(publisher({ endpoint: at(address) })).rejects.toThrow(EndpointError);
    await expect(publisher({ endpoint: at(address) })).rejects.toThrow(
      `ZeroMQ cannot listen at ${address}: address already in use.`,
    );
    await expect(publisher({ replayEndpoint: at(address) })).rejects.toThrow(address);
    const free = await publisher();
    expect(free.replayAddress).not.toBe(free.address);
  });
});

describe('with CURVE', () => {
  const server = zmq.curveKeyPair();
  const friend = zmq.curveKeyPair();
  const stranger = zmq.curveKeyPair();
  const as = ({ publicKey, secretKey }: CurveKeys, serverKey = server.publicKey): CurveOptions => ({
    curvePublicKey: publicKey,
    curveSecretKey: secretKey,
    curveServerKey: serverKey,
  });

  it('only readers with a known key get anything', async () => {
    const source = await publisher({ keys: server, peerKeys: [friend.publicKey] });
    const others = [{}, as(stranger), as(friend, stranger.publicKey)].map((curve) => {
      const socket = kept(new zmq.Subscriber({ ...curve, receiveTimeout: 200 }));
      socket.connect(source.address);
      socket.subscribe('');
      return socket;
    });
    const socket = await reader(source, as(friend));
    source.publish(removed(9));
    const [, , payload] = await socket.receive();
    expect(decode(payload!)).toMatchObject([expect.any(Number), removed(9), 0]);
    for (const other of others) await expect(other.receive()).rejects.toThrow();
    expect((await replay(source.replayAddress!, 0n, as(friend))).length).toBeGreaterThan(0);
    const unknown = { ...as(stranger), receiveTimeout: 200 };
    await expect(replay(source.replayAddress!, 0n, unknown)).rejects.toThrow();
  });

  it('without a list of readers all get it who know the public key', async () => {
    const source = await publisher({ keys: server });
    const socket = await reader(source, as(stranger));
    source.publish(removed(9));
    expect((await socket.receive()).length).toBe(3);
  });
});
