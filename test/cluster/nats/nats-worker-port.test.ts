import { describe, expect, it } from 'vitest';
import type { WholeBeat } from '../../../cluster/nats/beat.js';
import {
  type FramesMessage,
  packMessage,
  unpackMessage,
  type WorkItem,
} from '../../../cluster/nats/messages.js';
import { QueueNames } from '../../../cluster/nats/names.js';
import { type NatsWorkerOptions, NatsWorkerPort } from '../../../cluster/nats/nats-worker-port.js';
import { type Packable, pack } from '../../../cluster/nats/packet.js';
import type { WorkerListener } from '../../../cluster/nats/worker-port.js';

const ITEM = { kind: 'work', gateway: 'g', id: 'a', attempt: 3, known: [], ended: [], request: {} } as const;

/** Pulls one message, and returns what became of it. */
async function pullOne(data: Uint8Array) {
  const told: string[] = [];
  const sent: [subject: string, FramesMessage][] = [];
  const work: WorkItem[] = [];
  // Until it pulls, so that its first beat is not among what it sends.
  let isClosed = true;
  const message = {
    data,
    ack: () => told.push('ack'),
    nak: () => told.push('nak'),
    term: () => told.push('term'),
  };
  const messages = {
    close: async () => {},
    async *[Symbol.asyncIterator]() {
      yield message;
    },
  };
  const port = new NatsWorkerPort({
    nc: {
      subscribe: () => {},
      async *status() {},
      isClosed: () => isClosed,
      publish: (subject: string, bytes: Uint8Array) => sent.push([subject, unpackMessage(bytes, 'frames')]),
    },
    stream: { pull: async () => messages, forgetPool: () => {} },
    names: new QueueNames('p'),
    pool: { model: 'm', fingerprint: 'f' },
    id: 'w',
    beat: () => ({}),
    readFile: async () => null,
    onWarning: (text: string) => told.push(text),
  } as unknown as NatsWorkerOptions);
  port.listen({
    onWork: ({ item }) => work.push(item),
    onOffer: () => false,
    onCacheAsk: () => null,
    onStop: () => {},
    onBlocks: () => ({ kind: 'blocksPart', bytes: new Uint8Array(0), sum: 0 }),
  });
  isClosed = false;
  return { numMissing: await port.pull(2), told, sent, work };
}

describe('a request in the stream', () => {
  it('goes to the worker', async () => {
    const { numMissing, told, sent, work } = await pullOne(packMessage({ ...ITEM, known: [], ended: [] }));
    expect(work).toMatchObject([ITEM]);
    expect([numMissing, told, sent]).toEqual([1, [], []]);
  });

  it.each<[string, Packable | Uint8Array]>([
    ['with a number that is too long', { ...ITEM, request: { seed: 10n ** 30n } }],
    ['with a field of another type', { ...ITEM, known: 'x' }],
    ['that is cut', pack({ ...ITEM, request: { promptTokens: Int32Array.of(1, 2) } }).subarray(0, -1)],
  ])('%s is refused, for which its gateway does not have to wait', async (_, bytes) => {
    const data = bytes instanceof Uint8Array ? bytes : pack(bytes);
    const { numMissing, told, sent, work } = await pullOne(data);
    expect(work).toEqual([]);
    // The worker keeps asking for as many requests as it has room for.
    expect(numMissing).toBe(2);
    expect(told).toEqual(['term', expect.stringContaining('A request of the work queue is dropped: A ')]);
    expect(sent).toMatchObject([
      [
        'p.gateway.g',
        { worker: 'w', frames: [], failures: [{ id: 'a', attempt: 3, failure: { kind: 'invalid' } }] },
      ],
    ]);
  });

  it.each<[string, Uint8Array]>([
    ['whose gateway is no name', pack({ ...ITEM, gateway: 'x\r\nPUB p.beat 0' })],
    ['whose gateway is many', pack({ ...ITEM, gateway: '>' })],
    ['that is no packet', Uint8Array.of(1, 2, 3)],
    ['without JSON', Uint8Array.of(1, 0, 0, 0, 1)],
    ['that is nothing', pack(null)],
  ])('%s is dropped without a word to anybody', async (_, data) => {
    const { numMissing, told, sent, work } = await pullOne(data);
    expect([numMissing, told[0], sent, work]).toEqual([2, 'term', [], []]);
  });
});

it('its card is told at its start, and to whoever asks for it or says no word of what it needs', async () => {
  const beat: WholeBeat = {
    ...{ kind: 'beat', worker: 'w', pool: 'f', places: 1, held: 0, maxBlocks: 9, usedBlocks: 0 },
    ...{ isLeaving: false, isGone: false },
    model: {
      ...{ name: 'm', aliases: [], text: 't', fileName: 'm', info: {}, adapterRoom: null, files: [] },
      adapters: [],
      engine: {
        ...{ vocabSize: 100, endTokenIds: [99], maxInputLen: 64, maxSeqLen: 64, maxSequences: 8 },
        ...{ maxNumTokens: 64, maxBeamWidth: 1, maxAttentionWindow: null, tokensPerBlock: 4 },
      },
    },
  };
  const { model: _, ...bare } = beat;
  const heard = new Map<string, (error: null, message: { data: Uint8Array; respond?: unknown }) => void>();
  const told: unknown[] = [];
  const names = new QueueNames('p');
  const port = new NatsWorkerPort({
    nc: {
      subscribe: (subject: string, { callback }: { callback: never }) => heard.set(subject, callback),
      async *status() {},
      isClosed: () => false,
      publish: (_subject: string, bytes: Uint8Array) => told.push(unpackMessage(bytes, 'beat')),
    },
    ...{ names, id: 'w', beat: (isWhole: boolean) => (isWhole ? beat : bare) },
  } as unknown as NatsWorkerOptions);
  port.listen({} as WorkerListener);
  expect(told.splice(0)).toEqual([beat]);
  // A gateway of before, and one that asks for what it does not know.
  heard.get(names.hello)!(null, { data: new Uint8Array(0) });
  heard.get(names.hello)!(null, { data: Buffer.from('bare') });
  port.tell(false);
  expect(told.splice(0)).toEqual([beat, bare, bare]);
  const respond = (bytes: Uint8Array) => told.push(unpackMessage(bytes, 'beat'));
  heard.get(names.worker('w'))!(null, { data: packMessage({ kind: 'probe' }), respond });
  await new Promise((resolve) => setImmediate(resolve));
  expect(told).toEqual([beat]);
});
