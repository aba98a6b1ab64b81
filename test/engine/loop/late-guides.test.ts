import { describe, expect, it } from 'vitest';
import type { Tensor } from '../../../callbacks/types.js';
import {
  f32,
  type HarnessOptions,
  i32,
  LoopHarness,
  makeRequest,
  text,
  u64,
} from '../../../tools/support/loop-harness.js';
import { InlineGuideThread } from '../../support/inline-guide-thread.js';

const END = 99;
const ALPHABET = [...'0123456789abcdefghijklmnopqrstuvwxyz'];
const BYTES = Array.from({ length: 100 }, (_, token) =>
  ALPHABET[token] ? Buffer.from(ALPHABET[token]) : null,
);
const NEVER = 1_000_000;

function guided(guide: string, inputs: Record<string, Tensor> = {}): Record<string, Tensor> {
  return {
    guided_decoding_guide_type: text('regex'),
    guided_decoding_guide: text(guide),
    end_id: i32(END),
    temperature: f32(1.5),
    random_seed: u64(5n),
    ...inputs,
  };
}

function newHarness(options: HarnessOptions = {}) {
  const thread = new InlineGuideThread(BYTES);
  return { harness: new LoopHarness({ maxNumSequences: 24, ...options, guideThread: thread }), thread };
}

/** Tokens of a request so far. */
function tokensOf(harness: LoopHarness, id: bigint): number {
  return harness.responses
    .filter(({ requestId }) => requestId === id)
    .flatMap(({ outputs }) => outputs.filter(({ name }) => name === 'output_ids'))
    .reduce((sum, { data }) => sum + data.length, 0);
}

describe.each<HarnessOptions>([
  {},
  { modelType: 'InflightBatching' },
  { enableTrtOverlap: true, minMicroBatchSize: 1 },
  { schedulerPolicy: 'MAX_UTILIZATION' },
])('masks that never come: %j', (options) => {
  it('leave a neighbour its token in each iteration, and are waited for by their own request alone', () => {
    const { harness, thread } = newHarness(options);
    // Eight sequences whose masks are there at first, and then are not.
    harness.waiting.push(makeRequest(1n, [50], 40, guided('[0-9]{30}', { num_return_sequences: i32(8) })));
    harness.waiting.push(makeRequest(2n, [51], 40), makeRequest(3n, [52], 40, guided('[a-z]{35}')));
    for (let i = 0; i < 6; i++) harness.loop.iterate();
    thread.delayOf = (reply) =>
      reply.type === 'masked' && reply.done.some((value, k) => k % 2 === 1 && value < 8) ? NEVER : 0;
    // With overlap micro-batches take turns.
    const perIteration = options.enableTrtOverlap ? 2 : 1;
    const before = [2n, 3n].map((id) => tokensOf(harness, id));
    for (let i = 0; i < 10 * perIteration; i++) harness.loop.iterate();
    const after = [2n, 3n].map((id) => tokensOf(harness, id));
    expect(after[0]! - before[0]!).toBeGreaterThanOrEqual(9);
    expect(after[1]! - before[1]!).toBeGreaterThanOrEqual(8);
    const stuck = tokensOf(harness, 1n);
    for (let i = 0; i < 10; i++) harness.loop.iterate();
    expect(tokensOf(harness, 1n)).toBe(stuck);
    harness.stops.add(1n);
    harness.runToEnd();
    expect(harness.resultOf(2n)).toMatchObject({ error: '' });
    expect(harness.resultOf(3n)).toMatchObject({ error: '' });
    expect(harness.kvCache.stats().usedBlocks).toBe(0);
  });
});

describe('a guide that goes beyond its budget', () => {
  /** Texts of a alone, and with each the ways to read them are several times as many. */
  const HOSTILE =
    'root ::= s* \ns ::= "a" s "a" | "a" t "a" "a" | "a" \n' +
    't ::= "a" s "a" "a" "a" | "a" t "a" | "a" s "a" "a" "a" "a" | "a"';

  function run(delays: boolean) {
    const { harness, thread } = newHarness({ numBlocks: 256, maxSeqLen: 256 });
    let count = 0;
    if (delays) thread.delayOf = ({ type }) => (type === 'masked' ? ++count % 4 : 0);
    const inputs = guided(HOSTILE, {
      guided_decoding_guide_type: text('ebnf_grammar'),
      min_length: i32(200),
    });
    harness.run(makeRequest(1n, [50], 240, inputs));
    const { tokens, error } = harness.resultOf(1n);
    const isInvalid = harness.responses.some(({ outputs }) => outputs[0]?.name === 'invalid_request');
    return { tokens, error, isInvalid };
  }

  it('fails as its own fault, with the same words behind the same token at any load', () => {
    const alone = run(false);
    expect(alone.error).toMatch(/^The guide is too ambiguous/);
    expect(alone.isInvalid).toBe(true);
    expect(alone.tokens.length).toBeGreaterThan(3);
    expect(run(true)).toEqual(alone);
  });
});
