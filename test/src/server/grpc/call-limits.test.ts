import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
} from 'node:http2';
import { describe, expect, it, onTestFinished } from 'vitest';
import { OpenCalls } from '../../../../src/server/grpc/open-calls.js';
import { ApiKeys } from '../../../../src/server/web/access/api-keys.js';
import { FakeModel, fakeConfig } from '../kserve/support/fake-models.js';
import { answered, grpcPlatform } from './support/grpc-platform.js';

const KEYS = new ApiKeys([{ name: 'a', key: 'secret', weight: 1 }]);

function session(address: string): ClientHttp2Session {
  const opened = connect(`http://${address}`);
  opened.on('error', () => {});
  onTestFinished(() => opened.destroy());
  return opened;
}

/** A call whose message does not come. */
function halfOpen(on: ClientHttp2Session, method: string, headers: object = {}): ClientHttp2Stream {
  const path = `/inference.GRPCInferenceService/${method}`;
  const stream = on.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    ...headers,
  });
  stream.on('error', () => {});
  stream.resume();
  return stream;
}

/** grpc-status of a call that is answered by it alone. */
const statusOf = (stream: ClientHttp2Stream) =>
  new Promise<unknown>((resolve) => {
    stream.once('response', (headers: IncomingHttpHeaders) => resolve(headers['grpc-status']));
    stream.once('close', () => resolve('closed'));
  });

describe('calls without a key', () => {
  it('that send no message do not keep out those that do, and hold no memory', async () => {
    const { address, connect: another, ledger } = await grpcPlatform([], { apiKeys: KEYS });
    const floods = Array.from({ length: 20 }, () => session(address));
    const closed = floods.map((one) => new Promise((resolve) => one.once('close', resolve)));
    for (const one of floods) for (let i = 0; i < 100; i++) halfOpen(one, 'ServerLive');
    // All beyond the places of such calls end with their connections.
    await Promise.race(closed);
    expect(ledger.held).toBe(0);
    const client = another();
    for (let i = 0; i < 10; i++)
      expect(await answered(client.call('ServerLive', {}))).toEqual({ live: true });
    await expect.poll(() => floods.filter((one) => one.destroyed).length).toBeGreaterThanOrEqual(15);
  });

  it('are refused where they need one, and end a connection that goes on with them', async () => {
    const { address, ledger } = await grpcPlatform([], { apiKeys: KEYS });
    const one = session(address);
    const wentAway = new Promise<unknown>((resolve) => one.once('goaway', resolve));
    expect(await statusOf(halfOpen(one, 'ModelInfer'))).toBe('16');
    for (let i = 0; i < 99; i++) await statusOf(halfOpen(one, 'ModelInfer', { 'x-api-key': 'wrong' }));
    expect(await wentAway).toBe(11);
    expect(ledger.held).toBe(0);
  });
});

describe('calls with a key', () => {
  it('may be more on their connection, and are limited on all together', async () => {
    const model = new FakeModel(fakeConfig({ name: 'same', type: 'TYPE_FP32', dims: [-1] }));
    const { address } = await grpcPlatform([model], { apiKeys: KEYS, maxStreams: 150 });
    const key = { 'x-api-key': 'secret' };
    const all = [session(address), session(address), session(address)];
    await Promise.all(all.map((one) => new Promise((resolve) => one.once('remoteSettings', resolve))));
    expect(all[0]!.remoteSettings.maxConcurrentStreams).toBe(100);
    for (const one of all.slice(0, 2)) {
      const more = new Promise((resolve) => one.once('remoteSettings', resolve));
      halfOpen(one, 'ModelStreamInfer', key);
      await more;
      expect(one.remoteSettings.maxConcurrentStreams).toBe(150);
      for (let i = 1; i < 150; i++) halfOpen(one, 'ModelStreamInfer', key);
      await new Promise((resolve) => one.ping(resolve));
    }
    expect(await statusOf(halfOpen(all[2]!, 'ModelStreamInfer', key))).toBe('8');
    all[0]!.destroy();
    await expect
      .poll(async () => Promise.race([statusOf(halfOpen(all[2]!, 'ServerMetadata', key)), pinged(all[2]!)]))
      .toBe('let in');
  });
});

/** Its answer comes after that of a call that is refused. */
const pinged = (one: ClientHttp2Session) =>
  new Promise<string>((resolve) => one.ping(() => setImmediate(() => resolve('let in'))));

describe('the places of open calls', () => {
  it('go to the newest, and are given back once', () => {
    const calls = new OpenCalls<object>(10);
    const [a, b] = [{}, {}];
    const gone: number[] = [];
    const leave = Array.from({ length: 12 }, (_, i) =>
      calls.add({ giveWay: () => gone.push(i) }, i < 9 ? a : b),
    );
    expect([gone, calls.size]).toEqual([[0, 1], 10]);
    expect([calls.isFlood(a), calls.isFlood(b)]).toEqual([false, false]);
    leave[0]!();
    expect(calls.size).toBe(10);
    calls.add({ giveWay: () => {} }, b);
    for (let i = 0; i < 5; i++) calls.add({ giveWay: () => {} }, b);
    expect([calls.isFlood(a), calls.isFlood(b)]).toEqual([false, true]);
    for (const one of leave) one();
    expect(calls.size).toBe(6);
  });
});
