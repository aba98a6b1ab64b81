import { describe, expect, it } from 'vitest';
import type { PieceSource } from '../../../callbacks/piece-source.js';
import {
  HostClosedError,
  QueueFullError,
  type TokenPiece,
  type TokenRequest,
} from '../../../callbacks/token-request.js';
import type { FramesMessage, WorkItem } from '../../../cluster/nats/messages.js';
import { QueueWorker } from '../../../cluster/nats/queue-worker.js';

const source: PieceSource<TokenPiece> = {
  ...{ numGathered: 0, listen: () => {}, pause: () => {}, resume: () => {}, leave: () => {} },
  async *[Symbol.asyncIterator](): AsyncIterator<TokenPiece> {},
};

/** A worker with 2 places, which gateways choose and which asks the stream. */
function setUp() {
  const sent: FramesMessage[] = [];
  const told: string[] = [];
  const engine = {
    waiting: 0,
    refusal: null as Error | null,
    submitSeveral: (_: TokenRequest) => {
      if (engine.refusal !== null) throw engine.refusal;
      return [source];
    },
  };
  const worker = new QueueWorker({
    id: 'w',
    port: {
      ...{ maxBytes: 4096, pull: () => new Promise(() => {}), stopPulling: () => {}, tell: () => {} },
      ...{ tellCache: () => {}, fetchBlocks: async () => null, fetchPicture: async () => null },
      send: (_, message) => sent.push(message),
      hold: async () => ({ kind: 'held', stale: [] }),
    },
    engine,
    places: 2,
    adapterOf: () => null,
    gatewayGraceMs: 1e9,
    handOvers: null,
    sight: null,
    onRoom: () => told.push('room'),
    onWarning: () => {},
  });
  const item = (id: string, attempt = 1): WorkItem => ({
    ...{ kind: 'work', gateway: 'g', id, attempt, known: [], ended: [] },
    request: { promptTokens: Int32Array.of(1), maxNewTokens: 4 },
  });
  const deliver = (id: string, attempt = 1, isRedelivered = false) =>
    worker.onWork({
      item: item(id, attempt),
      isRedelivered,
      ack: () => told.push(`ack ${id}`),
      giveBack: () => told.push(`back ${id}`),
    });
  return { worker, engine, sent, told, item, deliver };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('a worker that a gateway has chosen', () => {
  it('takes what it has room for, and tells when there is room again', async () => {
    const { worker, item, told } = setUp();
    expect([worker.offer(item('a')), worker.offer(item('b')), worker.offer(item('c'))]).toEqual([
      true,
      true,
      false,
    ]);
    expect(worker.size).toBe(2);
    await settle();
    expect(told).toEqual([]);
    worker.stop({ kind: 'stop', id: 'a', attempt: 1, sequence: null });
    await settle();
    expect(told).toEqual(['room']);
    expect(worker.offer(item('c'))).toBe(true);
  });

  it('has no room while the engine has enough to begin with, or as it leaves', () => {
    const { worker, item, engine } = setUp();
    engine.waiting = 8;
    expect(worker.offer(item('a'))).toBe(false);
    engine.waiting = 0;
    worker.leave();
    expect(worker.offer(item('a'))).toBe(false);
    expect(worker.size).toBe(0);
  });

  it.each([new QueueFullError(1), new HostClosedError('closed')])(
    'does not take what its engine does not take: %s',
    (refusal) => {
      const { worker, item, engine, sent } = setUp();
      engine.refusal = refusal;
      expect(worker.offer(item('a'))).toBe(false);
      expect(worker.size).toBe(0);
      expect(sent).toEqual([]);
    },
  );

  it('has a request once, whether it comes again directly or from the stream, and goes over to a newer attempt', async () => {
    const { worker, item, deliver, told } = setUp();
    expect(worker.offer(item('a', 2))).toBe(true);
    expect(worker.offer(item('a', 2))).toBe(true);
    expect(worker.offer(item('a', 1))).toBe(false);
    deliver('a', 2);
    expect(worker.size).toBe(1);
    await settle();
    // Its gateway has said that it waits for it: the stream may forget it.
    expect(told).toEqual(['ack a']);
    expect(worker.offer(item('a', 3))).toBe(true);
    expect(worker.size).toBe(1);
  });

  it('gives back what the stream brings beyond its places, once', () => {
    const { worker, item, deliver, told } = setUp();
    worker.offer(item('a'));
    worker.offer(item('b'));
    deliver('c');
    expect(told).toEqual(['back c']);
    expect(worker.size).toBe(2);
    // It has been round: rather than being left without a worker, it waits here.
    deliver('c', 1, true);
    expect(worker.size).toBe(3);
  });

  it('tells its gateway of a request that cannot be read as of any other', async () => {
    const { worker, item, sent } = setUp();
    expect(worker.offer({ ...item('a'), request: {} })).toBe(true);
    await settle();
    expect(sent.flatMap(({ failures }) => failures)).toMatchObject([
      { id: 'a', attempt: 1, failure: { kind: 'invalid' } },
    ]);
  });
});
