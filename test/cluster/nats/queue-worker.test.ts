import { describe, expect, it } from 'vitest';
import type { PieceListener, PieceSource } from '../../../callbacks/piece-source.js';
import { isRequestsFault, messageOfFailure } from '../../../callbacks/request-failure.js';
import type { TokenPiece, TokenRequest } from '../../../callbacks/token-request.js';
import type { HandOvers } from '../../../cluster/nats/hand-overs.js';
import type { FramesMessage, HoldAnswer, HoldMessage, WorkItem } from '../../../cluster/nats/messages.js';
import { QueueWorker } from '../../../cluster/nats/queue-worker.js';
import type { WorkSight } from '../../../cluster/nats/work-pictures.js';

/** A sequence whose pieces the test sends. */
class Source implements PieceSource<TokenPiece> {
  listener: PieceListener<TokenPiece> | null = null;
  hasLeft = false;
  readonly numGathered = 0;
  listen(listener: PieceListener<TokenPiece>): void {
    this.listener = listener;
  }
  pause(): void {}
  resume(): void {}
  leave(): void {
    this.hasLeft = true;
  }
  push(tokens: number[], finishReason: TokenPiece['finishReason'] = null): void {
    this.listener!.onPiece({ tokens: Int32Array.from(tokens), finishReason });
  }
  async *[Symbol.asyncIterator](): AsyncIterator<TokenPiece> {}
}

function setUp(
  answers: (HoldAnswer | null)[] = [],
  handOvers: HandOvers | null = null,
  sight: WorkSight | null = null,
) {
  const sources: Source[] = [];
  const sent: FramesMessage[] = [];
  const holds: HoldMessage[] = [];
  const acks: string[] = [];
  const worker = new QueueWorker({
    id: 'w',
    port: {
      maxBytes: 4096,
      pull: () => new Promise(() => {}),
      stopPulling: () => {},
      send: (_, message) => sent.push(message),
      hold: async (_, message) => {
        holds.push(message);
        return answers.shift() ?? null;
      },
      tell: () => {},
      fetchBlocks: async () => null,
      fetchPicture: async () => null,
      tellCache: () => {},
    },
    engine: {
      waiting: 0,
      submitSeveral: ({ numSequences = 1 }: TokenRequest) => {
        const own = Array.from({ length: numSequences }, () => new Source());
        sources.push(...own);
        return own;
      },
    },
    places: 4,
    adapterOf: () => null,
    gatewayGraceMs: 1e9,
    handOvers,
    sight,
    onWarning: () => {},
  });
  const deliver = (id: string, attempt: number, more: Partial<WorkItem> = {}) =>
    worker.onWork({
      item: {
        ...{ kind: 'work', gateway: 'g', id, attempt, known: [], ended: [] },
        request: { promptTokens: Int32Array.of(1), maxNewTokens: 4, numSequences: more.known?.length ?? 1 },
        ...more,
      },
      isRedelivered: false,
      ack: () => acks.push(`ack ${id}/${attempt}`),
      giveBack: () => acks.push(`back ${id}/${attempt}`),
    });
  return { worker, sources, sent, holds, acks, deliver };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));
const frames = (sent: readonly FramesMessage[]) =>
  sent.flatMap((message) =>
    message.frames.map(({ id, attempt, sequence, index, piece }) => [
      id,
      attempt,
      sequence,
      index,
      [...piece.tokens],
    ]),
  );

describe('a worker of the queue', () => {
  it('counts on from the tokens that the gateway has, and leaves sequences that nobody wants', async () => {
    const { deliver, sources, sent } = setUp();
    deliver('a', 2, { known: [3, 0], ended: [1] });
    expect(sources[1]!.hasLeft).toBe(true);
    sources[0]!.push([7, 8]);
    sources[0]!.push([9], 'length');
    await settle();
    expect(frames(sent)).toEqual([
      ['a', 2, 0, 3, [7, 8]],
      ['a', 2, 0, 5, [9]],
    ]);
    expect(sent).toHaveLength(1);
  });

  it('acknowledges a request when its gateway has said that it waits for it, and not before', async () => {
    const { deliver, acks, holds } = setUp([{ kind: 'held', stale: [] }]);
    deliver('a', 1);
    expect(acks).toEqual([]);
    await settle();
    expect(holds).toEqual([{ kind: 'hold', worker: 'w', held: [['a', 1]] }]);
    expect(acks).toEqual(['ack a/1']);
  });

  it('drops what its gateway does not wait for', async () => {
    const { worker, deliver, acks, sources } = setUp([{ kind: 'held', stale: [['a', 1]] }]);
    deliver('a', 1);
    await settle();
    expect(acks).toEqual(['ack a/1']);
    expect(sources[0]!.hasLeft).toBe(true);
    expect(worker.size).toBe(0);
  });

  it('runs a request once if it is handed out again since its acknowledgement is late', async () => {
    const { worker, deliver, acks, sources } = setUp();
    deliver('a', 1);
    deliver('a', 1);
    expect(sources).toHaveLength(1);
    sources[0]!.push([1], 'stop');
    // Handed out once more after its end: its gateway knows better.
    expect(acks).toEqual(['ack a/1']);
    expect(worker.size).toBe(0);
  });

  it('goes over to a newer attempt, and keeps it when an old one comes late', async () => {
    const { worker, deliver, acks, sources, sent } = setUp();
    deliver('a', 1);
    deliver('a', 3);
    expect(sources[0]!.hasLeft).toBe(true);
    deliver('a', 2);
    expect(acks).toEqual(['ack a/1', 'ack a/2']);
    expect(worker.size).toBe(1);
    sources[0]!.push([5]);
    sources[1]!.push([6]);
    await settle();
    expect(frames(sent)).toEqual([['a', 3, 0, 0, [6]]]);
  });

  it('tells its gateway that it has nothing left, until that has heard it', async () => {
    const fine: HoldAnswer = { kind: 'held', stale: [] };
    const { worker, deliver, holds, sources } = setUp([fine, null, fine]);
    deliver('a', 1);
    await settle();
    sources[0]!.push([1], 'stop');
    for (const _ of [1, 2, 3]) {
      worker.holdAll();
      await settle();
    }
    expect(holds.map(({ held }) => held)).toEqual([[['a', 1]], [], []]);
  });

  it('fails a request that its closing engine cancels, and that nobody has asked to be', async () => {
    const { deliver, sources, sent } = setUp();
    deliver('a', 1);
    sources[0]!.push([], 'cancelled');
    await settle();
    expect(sent[0]!.failures).toMatchObject([{ id: 'a', attempt: 1, failure: { kind: 'ended' } }]);
  });

  it('takes no piece that is too long for a message, and says so', async () => {
    const { deliver, sources, sent } = setUp();
    deliver('a', 1);
    sources[0]!.push(Array.from({ length: 5000 }, () => 1));
    await settle();
    expect(sent.flatMap(({ failures }) => failures)[0]!.failure).toMatchObject({ kind: 'unsupported' });
  });

  it('refuses a last piece that is too long for a message, once and with the numbers', async () => {
    const { worker, deliver, sources, sent } = setUp();
    deliver('a', 1);
    sources[0]!.push(
      Array.from({ length: 5000 }, () => 1),
      'length',
    );
    await settle();
    expect(frames(sent)).toEqual([]);
    const failures = sent.flatMap((message) => message.failures);
    expect(failures).toHaveLength(1);
    const { failure } = failures[0]!;
    expect(isRequestsFault(failure.kind)).toBe(true);
    expect(messageOfFailure(failure)).toMatch(/takes 20\d+ bytes.*4096 \(max_payload\)/);
    expect(worker.size).toBe(0);
    expect(sources[0]!.hasLeft).toBe(true);
  });

  it.each<[string, Partial<WorkItem>]>([
    [
      'with a field that is no list',
      { request: { promptTokens: Int32Array.of(1), badWords: [{ length: 1e9 }] } },
    ],
    ['of fewer sequences than it tells of', { known: [0, 0], request: { promptTokens: Int32Array.of(1) } }],
    ['with an end of a sequence that it does not have', { ended: [1] }],
  ])('refuses a request %s as the fault of whoever sent it, and goes on', async (_, more) => {
    const { worker, deliver, acks, sources, sent } = setUp();
    deliver('a', 1, more);
    deliver('b', 1);
    await settle();
    expect(sent.flatMap(({ failures }) => failures)).toMatchObject([
      { id: 'a', attempt: 1, failure: { kind: 'invalid' } },
    ]);
    expect(acks).toEqual(['ack a/1']);
    expect([worker.size, sources.length]).toEqual([1, 1]);
  });

  it('keeps nothing of which no sequence is wanted', () => {
    const { worker, deliver, acks, sources } = setUp();
    deliver('a', 1, { known: [0, 0], ended: [0, 1] });
    expect([worker.size, acks]).toEqual([0, ['ack a/1']]);
    expect(sources.map(({ hasLeft }) => hasLeft)).toEqual([true, true]);
  });

  it('is not kept busy by the end of a sequence that a request does not have', () => {
    const { worker, deliver } = setUp();
    deliver('a', 1, { known: [0, 0] });
    worker.stop({ kind: 'stop', id: 'a', attempt: 1, sequence: 1e9 });
    worker.stop({ kind: 'stop', id: 'a', attempt: 1, sequence: 0 });
    expect(worker.size).toBe(1);
    worker.stop({ kind: 'stop', id: 'a', attempt: 1, sequence: 1 });
    expect(worker.size).toBe(0);
  });

  it('gives back what comes when it is to end', () => {
    const { worker, deliver, acks } = setUp();
    worker.leave();
    deliver('a', 1);
    expect(acks).toEqual(['back a/1']);
  });
});

/** Hand-overs that the test plays. */
function played() {
  const released: string[] = [];
  let finish = () => {};
  const handOvers = {
    keep: async () => ({ bytes: 20, numBlocks: 2 }),
    bring: () =>
      new Promise<void>((resolve) => {
        finish = resolve;
      }),
    release: (id: string) => released.push(id),
    expire: () => {},
  };
  return { handOvers: handOvers as unknown as HandOvers, released, finish: () => finish() };
}

describe('a worker that hands prompts over', () => {
  it('computes the prompt alone, and says what it keeps of it', async () => {
    const { handOvers, released } = played();
    const { worker, deliver, sources, sent } = setUp([], handOvers);
    deliver('a', 1, { isPrefill: true, known: [0, 0, 0] });
    expect(sources).toHaveLength(1);
    sources[0]!.push([7], 'length');
    await settle();
    expect(frames(sent)).toEqual([]);
    expect(sent[0]!.prefilled).toEqual([{ id: 'a', attempt: 1, cachedTokens: 0, bytes: 20, numBlocks: 2 }]);
    expect(worker.size).toBe(0);
    worker.stop({ kind: 'stop', id: 'a', attempt: 1, sequence: null });
    expect(released).toEqual(['a']);
  });

  it('computes a prompt of which one sequence is wanted no more', async () => {
    const { handOvers } = played();
    const { worker, deliver, sources, sent } = setUp([], handOvers);
    const request = { promptTokens: Int32Array.of(1), maxNewTokens: 4, numSequences: 2 };
    deliver('a', 1, { isPrefill: true, known: [0, 0], ended: [0], request });
    sources[0]!.push([7], 'length');
    await settle();
    expect(sent[0]!.prefilled).toMatchObject([{ id: 'a', numBlocks: 2 }]);
    expect(worker.size).toBe(0);
  });

  it('says that it has a request, and begins it when its blocks are there', async () => {
    const { handOvers, finish } = played();
    const { worker, deliver, sources, holds, sent } = setUp([], handOvers);
    const handOver = { worker: 'p', attempt: 1, layout: 'l', bytes: 20, numBlocks: 2 };
    deliver('a', 2, { handOver, known: [0, 0], ended: [1] });
    await settle();
    expect([worker.size, sources.length]).toEqual([1, 0]);
    expect(holds[0]!.held).toEqual([['a', 2]]);
    finish();
    await settle();
    expect(sources.map(({ hasLeft }) => hasLeft)).toEqual([false, true]);
    sources[0]!.push([7], 'length');
    await settle();
    expect(frames(sent)).toEqual([['a', 2, 0, 0, [7]]]);
    expect(worker.size).toBe(0);
  });

  it('does not begin what nobody waits for any more when the blocks are there', async () => {
    const { handOvers, finish } = played();
    const { worker, deliver, sources } = setUp([], handOvers);
    const handOver = { worker: 'p', attempt: 1, layout: 'l', bytes: 20, numBlocks: 2 };
    deliver('a', 2, { handOver, known: [0] });
    worker.stop({ kind: 'stop', id: 'a', attempt: 2, sequence: null });
    finish();
    await settle();
    expect([worker.size, sources.length]).toEqual([0, 0]);
  });
});
