import { describe, expect, it } from 'vitest';
import type {
  LogitsPostProcessor,
  LogitsPostProcessorBatched,
} from '../../callbacks/logits-post-processor.js';
import { PostProcessors } from '../../engine/decoding/post-processors.js';
import {
  type HarnessOptions,
  LoopHarness,
  makeRequest,
  runAlone,
  text,
  u64,
} from '../../tools/support/loop-harness.js';

const named = (name: string) => ({ logits_post_processor_name: text(name) });

/** Two neighbours without a post-processor, and between them one with the one under test. */
function runBetween(
  processor: LogitsPostProcessor,
  options: HarnessOptions = {},
  batched: LogitsPostProcessorBatched | null = null,
) {
  const postProcessors = new PostProcessors(new Map([['own', processor]]), batched);
  const harness = new LoopHarness({ ...options, postProcessors });
  const neighbours = [makeRequest(1n, [1, 2, 3], 12), makeRequest(3n, [7, 8], 12)];
  harness.run(neighbours[0]!, makeRequest(2n, [4, 5, 6], 8, named('own')), neighbours[1]!);
  for (const neighbour of neighbours) {
    expect(harness.resultOf(neighbour.requestId)).toEqual(runAlone(neighbour));
  }
  return { harness, result: harness.resultOf(2n) };
}

const only =
  (token: number): LogitsPostProcessor =>
  (_, logits) => {
    logits.fill(-Infinity);
    logits[token] = 1;
  };

describe('a logits post-processor', () => {
  it.each<[string, HarnessOptions]>([
    ['the usual loop', {}],
    ['contexts and generation apart', { modelType: 'InflightBatching' }],
    ['two micro-batches', { enableTrtOverlap: true, minMicroBatchSize: 1 }],
  ])('decides what is drawn, for its request only: %s', (_, options) => {
    expect(runBetween(only(42), options).result).toMatchObject({ tokens: Array(8).fill(42), error: '' });
  });

  it('is called once a token with id, view, tokens so far, stream and client id', () => {
    const calls: unknown[][] = [];
    const record: LogitsPostProcessor = (requestId, logits, tokensPerBeam, stream, clientId) => {
      expect(stream.synchronize()).toBeUndefined();
      calls.push([requestId, logits.length, tokensPerBeam.map((tokens) => [...tokens]), clientId]);
    };
    const postProcessors = new PostProcessors(new Map([['record', record]]));
    const harness = new LoopHarness({ postProcessors });
    const request = makeRequest(9n, [4, 5], 3, { ...named('record'), client_id: u64(77n) });
    const other = makeRequest(8n, [4, 5], 1, named('record'));
    harness.run(request, other);
    const { tokens } = harness.resultOf(9n);
    expect(harness.resultOf(9n)).toEqual(runAlone(makeRequest(9n, [4, 5], 3)));
    expect(calls.filter(([id]) => id === 9n)).toEqual(
      [0, 1, 2].map((n) => [9n, 100, [[4, 5, ...tokens.slice(0, n)]], 77n]),
    );
    expect(calls.filter(([id]) => id === 8n)).toEqual([[8n, 100, [[4, 5]], null]]);
  });

  it('may return another array in the place of the view', () => {
    const { result } = runBetween((_, logits) =>
      Float32Array.from(logits, (__, t) => (t === 17 ? 0 : -Infinity)),
    );
    expect(result.tokens).toEqual(Array(8).fill(17));
  });

  it('is given copies of the tokens', () => {
    const { result } = runBetween((_, __, [tokens]) => {
      tokens!.fill(0);
    });
    expect(result).toEqual(runAlone(makeRequest(2n, [4, 5, 6], 8)));
  });

  it('is called in the iterations that draw, and no batch without one is split', () => {
    const harness = new LoopHarness({ postProcessors: new PostProcessors(new Map([['own', only(3)]])) });
    let forwards = 0;
    const { forward, step } = harness.executor;
    harness.executor.forward = (batch) => {
      forwards++;
      return forward.call(harness.executor, batch);
    };
    let steps = 0;
    harness.executor.step = (...args) => {
      steps++;
      step.apply(harness.executor, args);
    };
    harness.run(makeRequest(1n, [1], 10), makeRequest(2n, [2], 4, named('own')));
    expect([forwards, steps]).toEqual([4, 6]);
  });
});

describe('a post-processor that fails ends its request and no other', () => {
  it.each<[string, LogitsPostProcessor, RegExp]>([
    [
      'throws',
      () => {
        throw new Error('no idea');
      },
      /^The logits post-processor own failed: no idea\.$/,
    ],
    ['leaves NaN', (_, l) => l.set([Number.NaN], 5), /are not finite after the logits post-processor own/],
    ['leaves +infinity', (_, l) => l.set([Infinity], 5), /not finite after the logits post-processor own/],
    ['leaves nothing', (_, l) => void l.fill(-Infinity), /not finite after the logits post-processor own/],
    ['returns too few', (_, l) => l.slice(1), /it returned Float32Array of 99 values; a Float32Array of 100/],
    ['is asynchronous', (async () => {}) as never, /it returned a promise; a post-processor is synchronous/],
  ])('%s', (_, processor, message) => {
    const { result } = runBetween(processor);
    expect(result.error).toMatch(message);
    expect(result.tokens).toEqual([]);
  });

  it('fails in the middle: what was drawn before has been sent', () => {
    let calls = 0;
    const { result } = runBetween((_, logits) => {
      if (++calls === 4) throw new Error('enough');
      only(9)(0n, logits, [], { synchronize() {} }, null);
    });
    expect(result).toMatchObject({ tokens: [9, 9, 9], error: expect.stringMatching(/enough/) });
    expect(calls).toBe(4);
  });

  it('is slower than its time limit', () => {
    const taking = (ms: number): LogitsPostProcessor => {
      return () => {
        harness.nowMs += ms;
      };
    };
    const postProcessors = new PostProcessors(
      new Map([
        ['slow', taking(60)],
        ['quick', taking(40)],
      ]),
    );
    const harness = new LoopHarness({ postProcessors, logitsPostProcessorTimeoutMs: 50 });
    harness.run(makeRequest(1n, [1], 5, named('slow')), makeRequest(2n, [2], 5, named('quick')));
    expect(harness.resultOf(1n).error).toBe(
      'The logits post-processor slow took 60 ms; its time limit is 50 ms.',
    );
    expect(harness.resultOf(2n)).toEqual(runAlone(makeRequest(2n, [2], 5)));
  });
});

describe('the batched post-processor', () => {
  const unused: LogitsPostProcessor = () => {
    throw new Error('not asked for');
  };

  it('sees all requests of an iteration that ask for it, in one call', () => {
    const calls: unknown[] = [];
    const batched: LogitsPostProcessorBatched = (ids, logits, tokens, stream, clientIds) => {
      stream.synchronize();
      calls.push([[...ids], logits.length, tokens.map(([own]) => [...own!]), [...clientIds]]);
      return ids.map((id, i) => (id === 5n ? logits[i]!.map((_, t) => (t === 50 ? 0 : -Infinity)) : null));
    };
    const postProcessors = new PostProcessors(new Map([['own', unused]]), batched);
    const harness = new LoopHarness({ postProcessors }).run(
      makeRequest(5n, [1], 2, { ...named('batched'), client_id: u64(1n) }),
      makeRequest(6n, [2], 2),
      makeRequest(7n, [3], 1, named('batched')),
    );
    expect(calls).toEqual([
      [[5n, 7n], 2, [[1], [3]], [1n, null]],
      [[5n], 1, [[1, 50]], [1n]],
    ]);
    expect(harness.resultOf(5n).tokens).toEqual([50, 50]);
    expect(harness.resultOf(7n)).toEqual(runAlone(makeRequest(7n, [3], 1)));
  });

  it.each<[string, LogitsPostProcessorBatched, RegExp]>([
    [
      'throws',
      () => {
        throw new Error('all of it');
      },
      /batched failed: all of it/,
    ],
    ['returns one array too few', () => [], /it returned Array of 0 values; a list of 1 arrays/],
  ])('%s: all that asked for it fail, and nobody else', (_, batched, message) => {
    const harness = new LoopHarness({ postProcessors: new PostProcessors(new Map(), batched) });
    const neighbour = makeRequest(2n, [2], 6);
    harness.run(makeRequest(1n, [1], 6, named('batched')), neighbour);
    expect(harness.resultOf(1n).error).toMatch(message);
    expect(harness.resultOf(2n)).toEqual(runAlone(neighbour));
  });
});

describe('a name', () => {
  const refusal = (name: string, options: HarnessOptions) => {
    const harness = new LoopHarness(options).run(makeRequest(1n, [1], 2, named(name)));
    return harness.resultOf(1n).error;
  };
  const postProcessors = new PostProcessors(new Map([['own', only(1)]]), () => {});

  it('that is empty asks for nothing', () => {
    expect(refusal('', {})).toBe('');
  });

  it('that nobody registered is refused with those that there are', () => {
    expect(refusal('onw', { postProcessors })).toBe(
      'logits_post_processor_name is "onw", which is no registered logits post-processor; there are own, batched.',
    );
    expect(refusal('own', {})).toMatch(/none are registered; give the manager .*logitsPostProcessorModule/);
  });

  it('is refused with V1', () => {
    expect(refusal('own', { postProcessors, modelType: 'V1' })).toBe(
      'logits_post_processor_name is refused: V1 has no logits post-processors.',
    );
  });

  it('that is no text is refused', () => {
    const harness = new LoopHarness({ postProcessors });
    const bytes = { shape: [2], data: Uint8Array.of(0xff, 0xfe) };
    harness.run(makeRequest(1n, [1], 2, { logits_post_processor_name: bytes }));
    expect(harness.resultOf(1n).error).toMatch(/logits_post_processor_name is not UTF-8/);
  });
});
