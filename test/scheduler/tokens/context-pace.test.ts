import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ContextPace, contextTokensWithin } from '../../../scheduler/tokens/context-pace.js';
import { contextPairs } from '../../../scheduler/tokens/iteration-cost.js';
import { CHUNKING_POLICIES, type SchedulableRequest } from '../../../scheduler/tokens/types.js';
import {
  bool,
  type HarnessOptions,
  LoopHarness,
  makeRequest,
  runAlone,
} from '../../../tools/support/loop-harness.js';
import { contextRequest as context, generationRequest as generation } from '../../support/schedulable.js';

const COST = {
  fixedMs: 20,
  rowMs: 0.5,
  tokenMs: 0.25,
  pairMs: 0,
  returnedMs: 0,
  spread: 0,
  tokensSeen: 1000,
  pairsSeen: 1e6,
  returnedSeen: 0,
};

describe('contextTokensWithin', () => {
  it.each([
    { what: 'what is left of the bound', bound: 50, cost: COST, rows: 20, position: 0, tokens: 80 },
    {
      what: 'nothing where generation takes it all',
      bound: 30,
      cost: COST,
      rows: 20,
      position: 0,
      tokens: 0,
    },
    {
      what: 'less by two usual errors',
      bound: 60,
      cost: { ...COST, spread: 0.1 },
      rows: 20,
      position: 0,
      tokens: 80,
    },
    // 0.25 t + 0.01 (100 t + t^2 / 2) = 20
    {
      what: 'fewer tokens that attend to more',
      bound: 50,
      cost: { ...COST, pairMs: 0.01 },
      rows: 20,
      position: 100,
      tokens: 15,
    },
    {
      what: 'none where they cost nothing and generation takes it all',
      bound: 30,
      cost: { ...COST, tokenMs: 0 },
      rows: 20,
      position: 0,
      tokens: 0,
    },
    {
      what: 'any number where they cost nothing',
      bound: 50,
      cost: { ...COST, tokenMs: 0 },
      rows: 0,
      position: 0,
      tokens: Number.POSITIVE_INFINITY,
    },
  ])('gives $what', ({ bound, cost, rows, position, tokens }) => {
    expect(contextTokensWithin(bound, cost, { generationRows: rows, position })).toBe(tokens);
  });

  it('gives the most tokens whose predicted time is within the bound', () => {
    const part = (max: number) => fc.nat(1000).map((share) => (share / 1000) * max);
    const costs = fc.record({
      fixedMs: part(100),
      rowMs: part(2),
      tokenMs: part(1),
      pairMs: part(0.01),
      spread: part(1),
      returnedMs: fc.constant(0),
      tokensSeen: fc.constant(1000),
      pairsSeen: fc.constant(1e6),
      returnedSeen: fc.constant(0),
    });
    fc.assert(
      fc.property(costs, fc.nat(64), fc.nat(8192), part(500), (cost, generationRows, position, bound) => {
        const tokens = contextTokensWithin(bound, cost, { generationRows, position });
        const { fixedMs, rowMs, tokenMs, pairMs, spread } = cost;
        const predicted = (count: number) =>
          (1 + 2 * spread) *
          (fixedMs + rowMs * generationRows + tokenMs * count + pairMs * contextPairs(position, count));
        fc.pre(Number.isFinite(tokens));
        if (tokens > 0) expect(predicted(tokens)).toBeLessThanOrEqual(bound * (1 + 1e-9) + 1e-9);
        expect(predicted(tokens + 1)).toBeGreaterThan(bound * (1 - 1e-9) - 1e-9);
      }),
    );
  });
});

describe('a context pace', () => {
  /** Knows that an iteration takes 10 ms and 0.5 ms a row and 0.25 ms a context token. */
  function knowing(boundMs: number): ContextPace {
    const pace = new ContextPace({ maxInterTokenLatencyMs: boundMs }, 8);
    for (let i = 0; i < 64; i++) {
      const generationRows = (i * 7) % 32;
      const contextTokens = i % 2 === 0 ? 0 : 8 * ((i * 5) % 23);
      const work = { generationRows, contextTokens, contextPairs: contextPairs(0, contextTokens) };
      pace.note(work, 10 + 0.5 * generationRows + 0.25 * contextTokens);
    }
    return pace;
  }

  it('limits nothing while nothing generates', () => {
    const requests = [context(1n, 100, 5), context(2n, 100, 5, { contextPosition: 8 })];
    expect(knowing(1).mostContextTokens(requests, requests, 1)).toBe(Number.POSITIVE_INFINITY);
  });

  it('gives whole units of what there is time for beside those that generate', () => {
    const requests = [context(1n, 1000, 5), generation(2n, 10, 5, 1), generation(3n, 10, 5, 1)];
    // 40 ms - 10 - 2 * 0.5 = 29 ms: 116 tokens; a little less for what the fit is off.
    expect(knowing(40).mostContextTokens(requests, requests, 1)).toBe(112);
    // With micro-batches in turns 20 ms: 36 tokens.
    expect(knowing(40).mostContextTokens(requests, requests, 2)).toBe(32);
    const drafts = [context(1n, 1000, 5), generation(2n, 10, 50, 1, { beamWidth: 4, draftLength: 6 })];
    // 25 ms: 100 tokens.
    expect(knowing(40).mostContextTokens(drafts, drafts, 1)).toBe(96);
  });

  it('gives fewer tokens to contexts of which one attends to more', () => {
    const pace = new ContextPace({ maxInterTokenLatencyMs: 40 }, 8);
    for (let i = 0; i < 64; i++) {
      const contextTokens = i % 3 === 0 ? 0 : 8 * ((i * 5) % 23);
      const pairs = contextPairs(100 * ((i * 3) % 17), contextTokens);
      pace.note(
        { generationRows: 0, contextTokens, contextPairs: pairs },
        10 + 0.25 * contextTokens + 0.001 * pairs,
      );
    }
    const tokensAt = (...positions: number[]) => {
      const contexts = positions.map((contextPosition, i) =>
        context(BigInt(i), 5000, 5, { contextPosition }),
      );
      const requests = [generation(9n, 10, 5, 1), ...contexts];
      return pace.mostContextTokens(requests, requests, 1);
    };
    // 30 ms: 0.25 t + 0.001 (750 t + t^2 / 2) after 750 tokens, without the second term's t at the beginning.
    expect([tokensAt(0), tokensAt(750), tokensAt(0, 750), tokensAt(750, 0)]).toEqual([96, 24, 24, 24]);
  });

  it('counts a generating request that waits or is in flight as one that waits for tokens', () => {
    const scheduled = [context(1n, 1000, 5)];
    const others = [generation(2n, 10, 5, 1, { inFlight: true })];
    expect(knowing(40).mostContextTokens([...scheduled, ...others], scheduled, 1)).toBeLessThan(130);
  });

  it('grows chunks by no more than double what it has seen', () => {
    const pace = new ContextPace({ maxInterTokenLatencyMs: 1000 }, 8);
    pace.note({ generationRows: 1, contextTokens: 16, contextPairs: 128 }, 10);
    const requests = [context(1n, 1000, 5), generation(2n, 10, 5, 1)];
    expect(pace.mostContextTokens(requests, requests, 1)).toBe(32);
  });

  it('gives one unit where nothing is known yet, and where there is no time', () => {
    const requests = [context(1n, 1000, 5), generation(2n, 10, 5, 1)];
    expect(
      new ContextPace({ maxInterTokenLatencyMs: 1000 }, 8).mostContextTokens(requests, requests, 1),
    ).toBe(8);
    expect(knowing(5).mostContextTokens(requests, requests, 1)).toBe(8);
  });
});

describe('the longest chunk of a context pace', () => {
  /** Knows that an iteration takes 10 ms, 0.25 ms a context token and 0.001 ms a pair. */
  function knowing(maxChunkMs: number, unit = 32): ContextPace {
    const pace = new ContextPace({ chunkMs: { least: maxChunkMs, most: maxChunkMs } }, unit);
    for (let i = 0; i < 64; i++) {
      const contextTokens = i % 3 === 0 ? 0 : 32 * ((i * 5) % 23);
      const pairs = contextPairs(100 * ((i * 3) % 17), contextTokens);
      const work = { generationRows: 0, contextTokens, contextPairs: pairs };
      pace.note(work, 10 + 0.25 * contextTokens + 0.001 * pairs);
    }
    return pace;
  }
  const at = (contextPosition: number) => context(1n, 200_000, 5, { contextPosition });
  /** The longest chunk of a request that runs with others. */
  function longest(
    pace: ContextPace,
    request: SchedulableRequest,
    turns = 1,
    others = [context(99n, 10, 5)],
  ): number {
    const active = [request, ...others];
    return pace.longestChunk(request, pace.chunkMs(active, active, turns));
  }

  it('is not bounded where no bound was asked for', () => {
    const pace = new ContextPace({ maxInterTokenLatencyMs: 10 }, 32);
    expect(longest(pace, at(0))).toBe(Number.POSITIVE_INFINITY);
  });

  it.each([
    // 0.25 t + 0.0005 t^2 = 40: 124, less what the fit is off.
    { position: 0, ms: 40, turns: 1, tokens: 96 },
    { position: 0, ms: 40, turns: 2, tokens: 64 },
    // 1.25 t: 31 or so
    { position: 1000, ms: 50, turns: 1, tokens: 32 },
    { position: 1000, ms: 30, turns: 1, tokens: 16 },
    { position: 100_000, ms: 50, turns: 1, tokens: 8 },
  ] as const)('at $position in $ms ms / $turns is $tokens', ({ position, ms, turns, tokens }) => {
    expect(longest(knowing(ms), at(position), turns)).toBe(tokens);
  });

  it('is one unit where nothing is known yet, and a unit below 8 stays whole', () => {
    expect(longest(new ContextPace({ chunkMs: { least: 50, most: 50 } }, 32), at(0))).toBe(32);
    expect(longest(knowing(10), at(5000), 1, [])).toBe(longest(knowing(40), at(5000)));
    expect(longest(knowing(50, 4), at(100_000))).toBe(4);
  });

  it('grows to twice what was seen at most, unless that is little', () => {
    const pace = new ContextPace({ chunkMs: { least: 1000, most: 1000 } }, 32);
    pace.note({ generationRows: 0, contextTokens: 32, contextPairs: contextPairs(0, 32) }, 0.1);
    expect(longest(pace, at(0))).toBe(256);
    // 2^20 pairs
    expect(longest(pace, at(2 ** 15))).toBe(32);
    pace.note({ generationRows: 0, contextTokens: 256, contextPairs: contextPairs(0, 256) }, 0.8);
    expect(longest(pace, at(0))).toBe(512);
  });

  it('begins small where logits of the prompt are returned, and learns what they cost', () => {
    const pace = new ContextPace({ chunkMs: { least: 50, most: 50 } }, 32);
    const returning = { ...at(0), returnsContextRows: true };
    const note = (contextTokens: number, returnedRows: number) => {
      const pairs = contextPairs(0, contextTokens);
      const work = { generationRows: 0, contextTokens, contextPairs: pairs, returnedRows };
      pace.note(work, 0.1 * contextTokens + 0.4 * returnedRows);
    };
    for (const tokens of [64, 128, 256]) note(tokens, 0);
    expect(longest(pace, returning)).toBe(16);
    note(16, 16);
    expect(longest(pace, returning)).toBe(32);
    for (const tokens of [32, 64]) note(tokens, tokens);
    // 50 ms at 0.5 ms each.
    expect(longest(pace, returning)).toBe(96);
    expect(longest(pace, at(0))).toBeGreaterThan(400);
  });
});

/** Iterations on a clock that only the executor moves: 5 ms, 0.5 ms a row that generates, 0.25 ms a context token. */
function run(
  options: HarnessOptions,
  stepMs = (rows: number, tokens: number) => 5 + 0.5 * rows + 0.25 * tokens,
) {
  const harness = new LoopHarness({
    chunkingPolicy: 'FIRST_COME_FIRST_SERVED',
    maxSeqLen: 512,
    maxNumTokens: 512,
    numBlocks: 512,
    ...options,
  });
  const step = harness.executor.step.bind(harness.executor);
  const works: { rows: number; tokens: number }[] = [];
  harness.executor.step = (batch, sampling, output) => {
    let rows = 0;
    for (let s = 0; s < batch.numSequences; s++) {
      if (batch.queryStart[s + 1]! - batch.queryStart[s]! === 1) rows++;
    }
    works.push({ rows, tokens: batch.numTokens - rows });
    harness.nowMs += stepMs(rows, batch.numTokens - rows);
    step(batch, sampling, output);
  };
  const requests = Array.from({ length: 8 }, (_, i) => {
    const prompt = Array.from({ length: i % 2 === 0 ? 10 : 300 }, (_, p) => (i * 31 + p * 7) % 90);
    return makeRequest(BigInt(i + 1), prompt, 100);
  });
  for (const request of requests) {
    harness.waiting.push(request);
    for (let i = 0; i < 6; i++) harness.loop.iterate();
  }
  harness.runToEnd();
  return { harness, requests, works };
}

describe('the time of a chunk', () => {
  /** Knows that an iteration takes 2 ms, 0.5 ms a row that generates and 0.25 ms a context token. */
  function knowing(chunkMs: { least: number; most: number }): ContextPace {
    const pace = new ContextPace({ chunkMs }, 32);
    for (let i = 0; i < 64; i++) {
      const generationRows = (i * 7) % 32;
      const contextTokens = i % 2 === 0 ? 0 : 32 * ((i * 5) % 23);
      const work = { generationRows, contextTokens, contextPairs: 0 };
      pace.note(work, 2 + 0.5 * generationRows + 0.25 * contextTokens);
    }
    return pace;
  }
  const generating = (count: number) =>
    Array.from({ length: count }, (_, i) => generation(BigInt(2 + i), 10, 5, 1));
  const beside = (count: number, turns = 1, pace = knowing({ least: 30, most: 50 })) => {
    const active = [context(1n, 1000, 5), context(99n, 1000, 5), ...generating(count)];
    return pace.chunkMs(active, active, turns);
  };

  it('is three times that of the sequences that generate, within its bounds', () => {
    expect(beside(1)).toBe(30);
    // 3 * (2 + 24 * 0.5)
    expect(beside(24)).toBeCloseTo(42, 0);
    expect(beside(40)).toBe(50);
    expect(beside(24, 2)).toBeCloseTo(21, 0);
  });

  it('is the most where nothing generates, nothing is known, or one bound was given', () => {
    expect(beside(0)).toBe(50);
    expect(beside(1, 1, new ContextPace({ chunkMs: { least: 30, most: 50 } }, 32))).toBe(50);
    expect(beside(1, 1, knowing({ least: 45, most: 45 }))).toBe(45);
    expect(beside(1, 1, new ContextPace({ maxInterTokenLatencyMs: 5 }, 32))).toBe(Number.POSITIVE_INFINITY);
  });

  it('is four times the most for a request that runs alone', () => {
    const alone = [context(1n, 1000, 5)];
    expect(knowing({ least: 30, most: 50 }).chunkMs(alone, alone, 1)).toBe(200);
  });

  it('is as long as what an iteration takes without it, where that is longer than the most', () => {
    const pace = knowing({ least: 1, most: 10 });
    // 2 + 60 * 0.5
    expect(beside(60, 1, pace)).toBeCloseTo(32, 0);
    expect(beside(60, 2, pace)).toBeCloseTo(16, 0);
    // Where a user gave the bound, it is the bound.
    expect(beside(60, 1, knowing({ least: 10, most: 10 }))).toBe(10);
    const slow = new ContextPace({ chunkMs: { least: 1, most: 10 } }, 32);
    for (let i = 0; i < 64; i++) {
      const generationRows = (i * 7) % 32;
      const contextTokens = i % 2 === 0 ? 0 : 32 * ((i * 5) % 23);
      const work = { generationRows, contextTokens, contextPairs: 0 };
      slow.note(work, 40 + 0.5 * generationRows + 0.25 * contextTokens);
    }
    expect(beside(0, 1, slow)).toBeCloseTo(40, 0);
    const alone = [context(1n, 1000, 5)];
    expect(slow.chunkMs(alone, alone, 1)).toBeCloseTo(160, 0);
  });
});

describe('maxChunkMs in the loop', () => {
  it.each(CHUNKING_POLICIES)(
    'keeps the chunks of long prompts short under %s, and changes no answer',
    (chunkingPolicy) => {
      const { harness, requests, works } = run({ maxChunkMs: 15, chunkingPolicy });
      // 15 ms: 60 tokens.
      const long = works.filter(({ tokens }) => tokens > 10);
      expect(Math.max(...long.map(({ tokens }) => tokens))).toBeLessThanOrEqual(60 + 4 * 10);
      expect(long.length).toBeGreaterThan(4 * 5);
      for (const request of requests) {
        const { tokens, error, logProbs } = harness.resultOf(request.requestId);
        const alone = runAlone(request, { maxSeqLen: 512, maxNumTokens: 512 });
        expect(error).toBe('');
        expect(tokens).toEqual(alone.tokens);
        expect(logProbs).toEqual(alone.logProbs);
      }
    },
  );
});

describe('prompts whose log-probs are returned', () => {
  it.each([{ maxChunkMs: 25 }, { maxInterTokenLatencyMs: 30 }])(
    'run in chunks that their logits have time in: %o',
    (bounds) => {
      const harness = new LoopHarness({
        chunkingPolicy: 'FIRST_COME_FIRST_SERVED',
        maxSeqLen: 512,
        maxNumTokens: 512,
        numBlocks: 512,
        ...bounds,
      });
      const step = harness.executor.step.bind(harness.executor);
      const took: number[] = [];
      harness.executor.step = (batch, sampling, output) => {
        const returned = (batch.returnedRows ?? []).reduce((sum, { count }) => sum + count, 0);
        took.push(1 + 0.05 * batch.numTokens + returned);
        harness.nowMs += took.at(-1)!;
        step(batch, sampling, output);
      };
      const prompt = Array.from({ length: 300 }, (_, p) => (p * 7) % 90);
      harness.waiting.push(makeRequest(1n, [1, 2], 400));
      for (let i = 0; i < 4; i++) harness.loop.iterate();
      harness.waiting.push(makeRequest(2n, prompt, 1));
      for (let i = 0; i < 4; i++) harness.loop.iterate();
      harness.run(makeRequest(3n, prompt, 1, { return_context_log_probs: bool(true) }));
      expect(harness.resultOf(3n).error).toBe('');
      // 300 rows at 1 ms: in one iteration they would take 316.
      expect(Math.max(...took)).toBeLessThan(40);
      expect(took.filter((ms) => ms > 12).length).toBeGreaterThan(8);
    },
  );
});

describe('maxInterTokenLatencyMs in the loop', () => {
  const generating = (works: { rows: number; tokens: number }[]) =>
    works.filter(({ rows, tokens }) => rows > 0 && tokens > 0);

  it('keeps iterations within the bound while prompts come in beside generation', () => {
    const BOUND_MS = 30;
    const unbounded = generating(run({}).works);
    expect(Math.max(...unbounded.map(({ tokens }) => tokens))).toBe(300);
    const bounded = generating(run({ maxInterTokenLatencyMs: BOUND_MS }).works);
    expect(bounded.length).toBeGreaterThan(unbounded.length);
    for (const { rows, tokens } of bounded) {
      expect(tokens <= 8 || 5 + 0.5 * rows + 0.25 * tokens <= BOUND_MS).toBe(true);
    }
    // Not by starving the prompts: most of the time that there is goes to them.
    expect(Math.max(...bounded.map(({ tokens }) => tokens))).toBeGreaterThan(60);
  });

  it.each([
    { what: 'fused', more: {} },
    { what: 'contexts and generation apart', more: { modelType: 'InflightBatching' as const } },
    { what: 'equal progress', more: { chunkingPolicy: 'EQUAL_PROGRESS' as const } },
    { what: 'micro-batches in turns', more: { enableTrtOverlap: true, minMicroBatchSize: 1 } },
    {
      what: 'maximal use of a small pool',
      more: { schedulerPolicy: 'MAX_UTILIZATION' as const, numBlocks: 80 },
    },
    { what: 'a bound that generation alone exceeds', more: { maxInterTokenLatencyMs: 1 } },
    { what: 'block reuse', more: { enableBlockReuse: true } },
  ])('changes no answer and starves nobody: $what', ({ more }) => {
    const { harness, requests } = run({ maxInterTokenLatencyMs: 30, ...more });
    for (const request of requests) {
      const { tokens, error, logProbs } = harness.resultOf(request.requestId);
      const alone = runAlone(request, { maxSeqLen: 512, maxNumTokens: 512 });
      expect(error).toBe('');
      expect(tokens).toEqual(alone.tokens);
      expect(logProbs).toEqual(alone.logProbs);
    }
  });

  it('follows a machine whose speed changes', () => {
    let step = 0;
    const slowness = () => (step++ < 12 ? 1 : 4);
    const { works } = run(
      { maxInterTokenLatencyMs: 60 },
      (rows, tokens) => slowness() * (5 + 0.5 * rows + 0.25 * tokens),
    );
    const late = generating(works.slice(16));
    expect(late.length).toBeGreaterThan(5);
    const over = late.filter(({ rows, tokens }) => tokens > 8 && 4 * (5 + 0.5 * rows + 0.25 * tokens) > 60);
    expect(over.length).toBeLessThan(late.length / 4);
  });
});
