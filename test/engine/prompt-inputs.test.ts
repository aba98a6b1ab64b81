import { describe, expect, it } from 'vitest';
import type { Tensor } from '../../callbacks/types.js';
import {
  bool,
  f32,
  i32,
  LoopHarness,
  makeRequest,
  runAlone,
  tensorOf,
  u64,
} from '../../tools/support/loop-harness.js';
import { collectReturned } from '../support/returned-tensors.js';

const VOCAB = 100;
const REST = Array.from({ length: 30 }, (_, i) => (7 * i + 3) % VOCAB);
/** Two embeddings of the request's own in front, the second one again in the middle. */
const PROMPT = [VOCAB, VOCAB + 1, ...REST.slice(0, 12), VOCAB + 1, ...REST.slice(12)];

const tableOf = (...values: number[]): Record<string, Tensor> => ({
  prompt_embedding_table: { shape: [values.length / 4, 4], data: Float32Array.from(values) },
});
const A = tableOf(1, 2, 3, 4, 5, 6, 7, 8);
const B = tableOf(1, 2, 3, 4, 5, 6, 7, 9);
const positions = (...values: number[]): Record<string, Tensor> => ({
  position_ids: { shape: [1, values.length], data: Int32Array.from(values) },
});
const SHIFTED = positions(...PROMPT.map((_, i) => i + 3));

const answerOf = (inputs: Record<string, Tensor>, prompt = PROMPT) =>
  runAlone(makeRequest(1n, prompt, 12, inputs));

describe('embeddings of a request', () => {
  it('stand for ids behind the vocabulary, which are never generated', () => {
    const { tokens, error } = answerOf(A);
    expect(error).toBe('');
    expect(tokens).toHaveLength(12);
    expect(Math.max(...tokens)).toBeLessThan(VOCAB);
    expect(answerOf(B).tokens).not.toEqual(tokens);
  });

  it('are refused where an id has none', () => {
    expect(answerOf({}).error).toContain(`input_ids holds ${VOCAB} at place 0; tokens are from 0 to 99.`);
    expect(answerOf(tableOf(1, 2, 3, 4)).error).toContain(`input_ids holds ${VOCAB + 1} at place 1`);
  });

  it('change nothing in how the answer comes: chunks, pauses and neighbours', () => {
    const harness = new LoopHarness({
      schedulerPolicy: 'MAX_UTILIZATION',
      chunkingPolicy: 'FIRST_COME_FIRST_SERVED',
      numBlocks: 11,
      maxNumTokens: 16,
    });
    const requests = [A, B, SHIFTED, { ...B, ...SHIFTED }].map((inputs) => ({ ...A, ...inputs }));
    for (const [i, inputs] of requests.entries())
      harness.waiting.push(makeRequest(BigInt(i), PROMPT, 12, inputs));
    harness.runToEnd();
    expect(harness.stats.reduce((sum, { pausedRequests }) => sum + pausedRequests, 0)).toBeGreaterThan(0);
    for (const [i, inputs] of requests.entries()) {
      expect(harness.resultOf(BigInt(i)).tokens).toEqual(answerOf(inputs).tokens);
    }
  });

  it('are nothing to penalties, n-grams and bad words', () => {
    const penalties = {
      repetition_penalty: f32(1.5),
      no_repeat_ngram_size: i32(2),
      temperature: f32(1),
      random_seed: u64(3n),
    };
    const harness = new LoopHarness();
    const histories: number[][] = [];
    const sample = harness.executor.sample.bind(harness.executor);
    harness.executor.sample = (sampling, output) => {
      histories.push([...sampling.history.subarray(0, sampling.historyStart[sampling.numRows]!)]);
      sample(sampling, output);
    };
    harness.run(makeRequest(1n, PROMPT, 3, { ...A, ...penalties }));
    expect(histories.at(-1)!.slice(0, PROMPT.length)).toEqual(PROMPT.map((t) => (t < VOCAB ? t : -1)));
  });

  it('have no log-prob, all others of the prompt have', () => {
    const harness = new LoopHarness().run(
      makeRequest(1n, PROMPT, 2, { ...A, top_context_log_probs: i32(2) }),
    );
    const { contextLogProbs, contextTopTokens } = collectReturned(harness.responses);
    expect(contextLogProbs.map(Number.isNaN)).toEqual(PROMPT.slice(1).map((token) => token >= VOCAB));
    expect(contextTopTokens).toHaveLength(2 * (PROMPT.length - 1));
  });

  it('come back in output_ids as they were given', () => {
    const harness = new LoopHarness().run(makeRequest(1n, PROMPT, 2, { ...A, streaming: bool(false) }));
    const ids = tensorOf(harness.responses[0]!.outputs, 'output_ids')!.data as Int32Array;
    expect([...ids.subarray(0, PROMPT.length)]).toEqual(PROMPT);
  });
});

describe('positions of a request', () => {
  it('are those of its prompt; what is generated counts on from the last', () => {
    const harness = new LoopHarness();
    const seen: number[][] = [];
    const step = harness.executor.step.bind(harness.executor);
    harness.executor.step = (batch, ...rest) => {
      seen.push([...batch.positions.subarray(0, batch.numTokens)]);
      step(batch, ...rest);
    };
    harness.run(makeRequest(1n, [5, 6, 7], 4, positions(2, 9, 20)));
    expect(seen).toEqual([[2, 9, 20], [21], [22], [23]]);
  });

  it('change the answer', () => {
    const prompt = REST.slice(0, 10);
    const own = positions(...prompt.map((_, i) => i + 5));
    expect(answerOf(own, prompt).tokens).not.toEqual(answerOf({}, prompt).tokens);
  });

  it('are refused in an attention window', () => {
    const request = makeRequest(1n, REST, 4, positions(...REST.map((_, i) => i + 1)));
    expect(runAlone(request, { maxAttentionWindow: 16 }).error).toContain('position_ids is refused: with an');
  });
});

describe('block reuse', () => {
  /** Prompt tokens that the second of two equal prompts found in the cache. */
  function cachedAfter(first: Record<string, Tensor>, second: Record<string, Tensor>) {
    const harness = new LoopHarness({ enableBlockReuse: true }).run(makeRequest(1n, PROMPT, 4, first));
    harness.run(makeRequest(2n, PROMPT, 12, second));
    const [response] = harness.responses.filter(({ requestId }) => requestId === 2n);
    expect(harness.resultOf(2n).tokens).toEqual(answerOf(second).tokens);
    return tensorOf(response!.outputs, 'cached_tokens')!.data[0];
  }

  it('is for requests of the same table and positions', () => {
    expect(cachedAfter(A, A)).toBe(32);
    expect(cachedAfter(A, B)).toBe(0);
    expect(cachedAfter({ ...A, ...SHIFTED }, { ...A, ...SHIFTED })).toBe(32);
    expect(cachedAfter(A, { ...A, ...SHIFTED })).toBe(0);
    expect(cachedAfter({ ...A, ...SHIFTED }, { ...B, ...SHIFTED })).toBe(0);
    expect(cachedAfter({ ...A, cache_salt: u64(1n) }, A)).toBe(0);
  });
});
