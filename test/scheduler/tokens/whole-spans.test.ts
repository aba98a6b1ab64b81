import { describe, expect, it } from 'vitest';
import { worded } from '../../../base/named-text.js';
import { whyItCanNeverRun } from '../../../scheduler/tokens/admission.js';
import { scheduleMicroBatch } from '../../../scheduler/tokens/micro-batch-scheduler.js';
import {
  CHUNKING_POLICIES,
  type Chunking,
  type ChunkingPolicy,
  type SchedulableRequest,
} from '../../../scheduler/tokens/types.js';
import { uncutLength } from '../../../scheduler/tokens/whole-spans.js';

const SPAN = { start: 10, end: 30 };

function context(changes: Partial<SchedulableRequest> = {}): SchedulableRequest {
  return {
    ...{ requestId: 1n, phase: 'context', promptLength: 60, generatedLength: 0, maxNewTokens: 4 },
    ...{ contextPosition: 0, blocksHeld: 0, beamWidth: 1, draftLength: 0, wholeSpans: [SPAN] },
    ...changes,
  };
}

function sizes(
  requests: readonly SchedulableRequest[],
  maxNumTokens: number,
  changes: Partial<Chunking> = {},
): number[] {
  const chunking = { policy: 'FIRST_COME_FIRST_SERVED' as ChunkingPolicy, unit: 8, ...changes };
  const chunks = scheduleMicroBatch(requests, { maxBatchSize: 8, maxNumTokens, chunking });
  return requests.map((one) => chunks.find(({ request }) => request === one)?.contextTokens ?? 0);
}

describe('a chunk', () => {
  it.each([
    ['ends before a span', 0, 16, 10],
    ['ends where a span begins', 0, 10, 10],
    ['has all of a span that it holds', 0, 40, 40],
    ['ends where a span ends', 4, 26, 26],
    ['begins with a span and is as long', 10, 1, 20],
    ['begins with a span, though there is room for no token', 10, 0, 20],
    ['has no token where no span begins', 4, 0, 0],
    ['lies after the span', 30, 8, 8],
  ])('%s', (_, contextPosition, size, expected) => {
    expect(uncutLength({ contextPosition, wholeSpans: [SPAN] }, 0, size)).toBe(expected);
  });

  it.each(CHUNKING_POLICIES)('never cuts a span, whatever its limits (%s)', (policy) => {
    for (const limits of [{}, { maxContextTokens: 8 }, { maxContextLength: 8 }, { longestChunk: () => 2 }]) {
      const ends: number[] = [];
      for (let position = 0; position < 60; ) {
        const [size] = sizes([context({ contextPosition: position })], 30, { policy, ...limits }) as [number];
        expect(size).toBeGreaterThan(0);
        expect(size).toBeLessThanOrEqual(30);
        position += size;
        ends.push(position);
      }
      expect(ends.filter((end) => end > SPAN.start && end < SPAN.end)).toEqual([]);
    }
  });

  it('takes a span beyond the limits only as the first of an iteration', () => {
    const other = context({ requestId: 2n, wholeSpans: [] });
    const spans = context({ contextPosition: 10 });
    expect(sizes([spans, other], 100, { maxContextTokens: 16 })).toEqual([20, 0]);
    expect(sizes([other, spans], 100, { maxContextTokens: 16 })).toEqual([16, 0]);
    expect(sizes([other, spans], 40, { maxContextLength: 16 })).toEqual([16, 0]);
    // Within the limits it runs together with others.
    expect(sizes([other, spans], 40, { maxContextTokens: 38, maxContextLength: 16 })).toEqual([16, 0]);
    expect(sizes([{ ...other, promptLength: 16 }, spans], 40)).toEqual([16, 24]);
  });

  it('waits for tokens that others generate', () => {
    const generating = Array.from({ length: 4 }, (_, i) =>
      context({ requestId: BigInt(i + 2), phase: 'generation', wholeSpans: [] }),
    );
    const spans = context({ contextPosition: 10 });
    expect(sizes([...generating, spans], 23).at(-1)).toBe(0);
    expect(sizes([...generating, spans], 24).at(-1)).toBe(20);
  });
});

describe('a span that no iteration takes', () => {
  const limits = (maxNumTokens: number, chunked = true) => ({
    ...{ maxInputLen: 100, maxSeqLen: 100, numBlocks: 100, tokensPerBlock: 8, maxAttentionWindow: Infinity },
    microBatch: {
      ...{ maxBatchSize: 4, maxNumTokens },
      ...(chunked && { chunking: { policy: 'FIRST_COME_FIRST_SERVED' as const, unit: 8 } }),
    },
  });

  it('is refused with the numbers', () => {
    const why = whyItCanNeverRun(context(), limits(22));
    expect(why?.field).toBe('input_ids');
    expect(worded(why!.text)).toBe(
      'The picture at place 10 has 20 tokens, which attend to one another and so run in one iteration; of maxNumTokens = 22 there are 19 for them where 3 other sequences generate.',
    );
  });

  it('runs with a token more, or whole where contexts are not cut', () => {
    expect(whyItCanNeverRun(context(), limits(23))).toBeNull();
    expect(whyItCanNeverRun(context(), limits(60, false))).toBeNull();
  });
});
