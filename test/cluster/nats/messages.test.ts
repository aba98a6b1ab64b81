import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { WholeBeat } from '../../../cluster/nats/beat.js';
import {
  type CacheAsk,
  type CacheChange,
  type CachePart,
  MAX_CACHE_BLOCKS,
  MAX_MESSAGE_BLOCKS,
} from '../../../cluster/nats/cache-messages.js';
import {
  type FramesMessage,
  packMessage,
  type QueueMessage,
  unpackMessage,
  type WorkItem,
} from '../../../cluster/nats/messages.js';
import { type Packable, PacketError, pack } from '../../../cluster/nats/packet.js';
import { RunWriter } from '../../../cluster/nats/token-runs.js';
import { draws } from '../../support/scale.js';

const writer = new RunWriter();
writer.add(3, 1, 0, 4, Int32Array.of(7));
const frames: FramesMessage = {
  ...{ kind: 'frames', worker: 'w1', runs: writer.words },
  frames: [
    {
      ...{ id: 'g-1', attempt: 1, sequence: 0, index: 0 },
      piece: {
        ...{ tokens: Int32Array.of(1, 2), logProbs: Float32Array.of(-1, -2), cachedTokens: 0, seed: 3n },
        ...{ topTokens: Int32Array.of(1, 2, 3, 4), topLogProbs: new Float32Array(4), finishReason: 'stop' },
        contextProgress: { done: 3, cached: 0, ms: 1 },
      },
    },
  ],
  failures: [{ id: 'g-2', attempt: 1, failure: { kind: 'internal', field: null, text: 'broken' } }],
  prefilled: [{ id: 'g-3', attempt: 1, cachedTokens: 0, bytes: 20, numBlocks: 2 }],
};
const work: WorkItem = {
  ...{ kind: 'work', gateway: 'g', id: 'g-1', number: 1, attempt: 1, known: [0], ended: [] },
  request: { promptTokens: Int32Array.of(1), maxNewTokens: 4 },
  handOver: { worker: 'w', attempt: 1, layout: 'l', bytes: 4, numBlocks: 2 },
  pictures: [{ digest: Uint8Array.of(1, 2), width: 4, height: 3, numBytes: 36 }],
};
const beat: WholeBeat = {
  ...{ kind: 'beat', worker: 'w', pool: 'p', places: 1, held: 0, maxBlocks: 9, usedBlocks: 0 },
  ...{ isLeaving: false, isGone: false },
  model: {
    ...{ name: 'm', aliases: [], text: 't', fileName: 'm', info: {}, adapterRoom: null },
    files: [{ name: 'engine.json', bytes: 3, digest: 'd' }],
    adapters: [{ name: 'a', rank: 1, modules: [], bytes: 1, digest: 'd' }],
    engine: {
      ...{ vocabSize: 100, endTokenIds: [99], maxInputLen: 64, maxSeqLen: 64, maxSequences: 8 },
      ...{ maxNumTokens: 64, maxBeamWidth: 1, maxAttentionWindow: null, tokensPerBlock: 4 },
    },
  },
};
const change: CacheChange = {
  ...{ kind: 'cacheChange', worker: 'w', from: 3, next: 5, isAnew: false },
  ...{ stored: Float64Array.of(1, 2 ** 53 - 1), removed: Float64Array.of(2) },
  withState: Float64Array.of(1),
};
const ask: CacheAsk = { kind: 'cacheAsk', from: 3, whole: { next: 4, offset: 2 } };
const part: CachePart = { kind: 'cachePart', next: 4, offset: 2, total: 5, blocks: Float64Array.of(7, 8) };
const MESSAGES: QueueMessage[] = [
  ...[frames, work, beat],
  { kind: 'hold', worker: 'w', held: [['g-1', 1]] },
  { kind: 'picture', id: 'g-1', attempt: 1, index: 0, offset: 0, length: 4 },
  { kind: 'held', stale: [['g-1', 1]] },
  { kind: 'stop', id: 'g-1', attempt: 1, sequence: null },
  { kind: 'probe' },
  { kind: 'file', pool: 'p', name: 'engine.json', offset: 0 },
  { kind: 'blocks', id: 'g-1', attempt: 1, offset: 0, length: 4 },
  { kind: 'blocksPart', bytes: Uint8Array.of(1), sum: 4 },
  ...[change, ask, part],
  { kind: 'taken', isTaken: true },
];
const KINDS = MESSAGES.map(({ kind }) => kind);
const read = (message: unknown) => unpackMessage(pack(message as Packable), ...KINDS);

const withKey: WholeBeat = {
  ...beat,
  model: {
    ...beat.model,
    adapters: [{ ...beat.model.adapters[0]!, blockKey: { taskId: 1, fingerprint: 'f' } }],
  },
};

/** The message with another value at a place in it. */
function changed(message: unknown, path: readonly (string | number)[], value: unknown): unknown {
  const [first, ...rest] = path;
  if (first === undefined) return value;
  if (Array.isArray(message)) return message.map((one, i) => (i === first ? changed(one, rest, value) : one));
  const fields = message as Record<string, unknown>;
  return { ...fields, [first]: changed(fields[first], rest, value) };
}

/** All places in a message. */
function placesIn(message: unknown): (string | number)[][] {
  if (typeof message !== 'object' || message === null || ArrayBuffer.isView(message)) return [[]];
  const entries = Array.isArray(message) ? [...message.entries()] : Object.entries(message);
  return [[], ...entries.flatMap(([name, value]) => placesIn(value).map((path) => [name, ...path]))];
}

describe('messages of the queue', () => {
  it.each(MESSAGES)('cross as they are: $kind', (message) => {
    expect(unpackMessage(packMessage(message), message.kind)).toEqual(message);
    expect(() => unpackMessage(packMessage(message), message.kind === 'probe' ? 'beat' : 'probe')).toThrow(
      PacketError,
    );
  });

  it.each<[string, QueueMessage, (string | number)[], unknown]>([
    ['a worker of two words', frames, ['worker'], 'w.x'],
    ['a worker that is another command', beat, ['worker'], 'w 0\r\nPUB a 0\r\n'],
    ['every pool', beat, ['pool'], '>'],
    ['every gateway', work, ['gateway'], '*'],
    ['a hand-over from anywhere', work, ['handOver', 'worker'], 'a.b'],
    ['more sequences than there are', work, ['known'], Array.from({ length: 4097 }, () => 0)],
    ['more tokens than there are', work, ['known', 0], 2 ** 31],
    [
      'more pictures than a conversation has',
      work,
      ['pictures'],
      Array.from({ length: 65 }, () => work.pictures![0]),
    ],
    ['a picture without what it is known by', work, ['pictures', 0, 'digest'], 'x'],
    ['a picture of half a pixel', work, ['pictures', 0, 'width'], 0.5],
    [
      'a tower without a name',
      { ...beat, model: { ...beat.model, sight: { tower: 't', maxPatches: 8 } } },
      ['model', 'sight'],
      {},
    ],
    ['runs that are cut', frames, ['runs'], Int32Array.of(1, 2)],
    ['runs with a count below zero', frames, ['runs'], Int32Array.of(1, 0, 1, 0, 0, -6)],
    ['values that are none', frames, ['frames', 0, 'piece', 'logProbs'], 5],
    ['fewer values than tokens', frames, ['frames', 0, 'piece', 'logProbs'], new Float32Array(1)],
    [
      'top tokens without their log-probs',
      frames,
      ['frames', 0, 'piece', 'topLogProbs'],
      new Float32Array(2),
    ],
    ['another end', frames, ['frames', 0, 'piece', 'finishReason'], 'tired'],
    ['a seed that is no key', frames, ['frames', 0, 'piece', 'seed'], 'x'],
    ['a failure of no kind', frames, ['failures', 0, 'failure', 'kind'], 'constructor'],
    ['a failure without words', frames, ['failures', 0, 'failure', 'text'], [7]],
    ['a name without an end', beat, ['model', 'name'], 'm'.repeat(2000)],
    [
      'adapters without an end',
      beat,
      ['model', 'adapters'],
      Array.from({ length: 5000 }, () => beat.model.adapters[0]),
    ],
    ["a cache of another worker's name", change, ['worker'], 'w.>'],
    ['a change that goes back', change, ['next'], 2],
    ['a block that is none', change, ['stored'], Float64Array.of(0.5)],
    ['a block that is not a number', part, ['blocks'], Float64Array.of(Number.NaN)],
    ['blocks in a list', change, ['removed'], [1, 2]],
    ['more blocks than a message has', change, ['stored'], new Float64Array(MAX_MESSAGE_BLOCKS + 1)],
    ['a part behind the end of the whole', part, ['total'], 3],
    ['a whole without an end', part, ['total'], MAX_CACHE_BLOCKS + 1],
    ['an ask for a part of nothing', ask, ['whole'], {}],
    ['a number of a cache that is none', { ...beat, cacheNumber: 1 }, ['cacheNumber'], -1],
    ['an adapter whose blocks have no key', withKey, ['model', 'adapters', 0, 'blockKey'], { taskId: 'x' }],
  ])('are refused with %s', (_, message, path, value) => {
    expect(() => read(changed(message, path, value))).toThrow(PacketError);
  });

  it('are read, or refused, whatever is in one of their fields', () => {
    const any = fc.oneof(
      fc.jsonValue({ maxDepth: 2 }).filter((value) => !JSON.stringify(value).includes('"$"')),
      fc.constantFrom(-1, 2 ** 53, 1e300, 0.5, undefined),
      fc.int32Array({ maxLength: 9 }),
      fc.float32Array({ maxLength: 3 }),
      fc.bigInt({ min: 0n, max: 9n }),
    );
    const mutated = fc
      .constantFrom(...MESSAGES)
      .chain((message) => fc.tuple(fc.constant(message), fc.constantFrom(...placesIn(message)), any));
    fc.assert(
      fc.property(mutated, ([message, path, value]) => {
        try {
          read(changed(message, path, value));
        } catch (error) {
          expect(error).toBeInstanceOf(PacketError);
        }
      }),
      { numRuns: draws(100) },
    );
  });
});
