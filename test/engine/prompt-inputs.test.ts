import { describe, expect, it } from 'vitest';
import type { Tensor } from '../../callbacks/types.js';
import { Speculation } from '../../engine/speculation/speculation.js';
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

it.each([Number.NaN, Infinity, -Infinity])('refuses an embedding with %s by its row', (value) => {
  const rows = [1, 2, 3, 4, 5, value, 7, 8];
  const { error } = answerOf(tableOf(...rows));
  expect(error).toBe(`prompt_embedding_table holds ${value} in row 1; finite numbers are expected.`);
});

describe('pictures', () => {
  const GRIDS = { fake: { turnsByGrid: true }, maxSeqLen: 128, maxNumTokens: 128 };
  /** Ids that spell a picture of this name. */
  const idsOf = (name: number, count: number) =>
    Array.from({ length: count }, (_, i) => VOCAB + ((name * 7919 + i * 104_729) % 2 ** 30));
  interface Picture {
    name: number;
    rows: number;
    columns: number;
  }
  const CAT: Picture = { name: 1, rows: 2, columns: 10 };
  const DOG: Picture = { name: 2, rows: 2, columns: 10 };
  const BIRD: Picture = { name: 3, rows: 3, columns: 5 };

  /** A prompt of texts and pictures, and its tensors. */
  function promptOf(...parts: (number[] | Picture)[]) {
    const prompt: number[] = [];
    const grids: number[] = [];
    const values: number[] = [];
    for (const part of parts) {
      if (Array.isArray(part)) prompt.push(...part);
      else {
        const { name, rows, columns } = part;
        grids.push(prompt.length, rows, columns);
        for (const id of idsOf(name, rows * columns)) {
          prompt.push(id);
          values.push(Math.sin(id), Math.cos(id), name, 1);
        }
      }
    }
    const image_grids = { shape: [grids.length / 3, 3], data: Int32Array.from(grids) };
    return { prompt, inputs: { ...tableOf(...values), image_grids } };
  }
  const ask = (
    id: bigint,
    { prompt, inputs }: ReturnType<typeof promptOf>,
    more: Record<string, Tensor> = {},
  ) => makeRequest(id, prompt, 12, { ...inputs, ...more });
  const alone = (of: ReturnType<typeof promptOf>) => runAlone(ask(1n, of), GRIDS).tokens;

  const OFTEN = promptOf(REST.slice(0, 10), CAT, REST.slice(10, 20), BIRD, CAT, REST.slice(20));

  it('turn by their grids: what follows one begins behind its longer side', () => {
    const harness = new LoopHarness(GRIDS);
    const seen: number[][][] = [];
    const step = harness.executor.step.bind(harness.executor);
    harness.executor.step = (batch, ...rest) => {
      const { positions, gridPositions, numTokens } = batch;
      seen.push([
        [...positions.subarray(0, numTokens)],
        [...(gridPositions?.subarray(0, 2 * numTokens) ?? [])],
      ]);
      step(batch, ...rest);
    };
    const { prompt, inputs } = promptOf([5, 6], { name: 1, rows: 2, columns: 3 }, [7]);
    harness.run(makeRequest(1n, prompt, 2, inputs));
    expect(seen).toEqual([
      [
        [0, 1, 2, 2, 2, 2, 2, 2, 5],
        [0, 0, 1, 1, 2, 2, 2, 3, 2, 4, 3, 2, 3, 3, 3, 4, 5, 5],
      ],
      [[6], []],
    ]);
  });

  it('are never drafted by prompt lookup, which goes on beside them', () => {
    const drafting = () => new Speculation({ usesNgrams: true, maxDraftLen: 8, maxRows: 64 });
    const options = { fake: GRIDS.fake, maxSeqLen: 320, maxNumTokens: 320 };
    // Each token of the vocabulary stands before a picture once, so that a picture follows whatever is looked up.
    const pairs = Array.from({ length: VOCAB }, (_, token) => [
      [token],
      { name: token, rows: 1, columns: 1 },
    ]);
    for (const of of [promptOf(...pairs.flat()), OFTEN]) {
      const harness = new LoopHarness({ ...options, maxDraftRows: 16, drafts: drafting() });
      harness.run(ask(1n, of));
      expect(harness.resultOf(1n).tokens).toEqual(runAlone(ask(1n, of), options).tokens);
      const drafted = harness.stats.reduce((sum, { draftedTokens }) => sum + draftedTokens, 0);
      if (of === OFTEN) expect(drafted).toBeGreaterThan(0);
    }
  });

  it('change nothing in how the answer comes: chunks, pauses, neighbours and reuse', () => {
    const harness = new LoopHarness({
      ...GRIDS,
      schedulerPolicy: 'MAX_UTILIZATION',
      chunkingPolicy: 'FIRST_COME_FIRST_SERVED',
      enableBlockReuse: true,
      numBlocks: 20,
      maxNumTokens: 16,
    });
    const prompts = [
      OFTEN,
      promptOf(REST.slice(0, 10), DOG, REST.slice(10, 20), BIRD, CAT, REST.slice(20)),
      promptOf(REST.slice(0, 10), CAT, REST.slice(10, 20), CAT, REST.slice(20)),
      promptOf(CAT, REST),
      promptOf(REST, BIRD),
    ];
    for (const [i, of] of prompts.entries()) harness.waiting.push(ask(BigInt(i), of));
    harness.waiting.push(makeRequest(9n, REST, 12));
    harness.runToEnd();
    expect(harness.stats.reduce((sum, { pausedRequests }) => sum + pausedRequests, 0)).toBeGreaterThan(0);
    for (const [i, of] of prompts.entries()) expect(harness.resultOf(BigInt(i)).tokens).toEqual(alone(of));
    expect(harness.resultOf(9n).tokens).toEqual(runAlone(makeRequest(9n, REST, 12), GRIDS).tokens);
  });

  /** Prompt tokens that the second prompt found in the cache after the first. */
  function cachedAfter(first: ReturnType<typeof promptOf>, second: ReturnType<typeof promptOf>, salt = 0n) {
    const harness = new LoopHarness({ ...GRIDS, enableBlockReuse: true }).run(ask(1n, first));
    harness.run(ask(2n, second, { cache_salt: u64(salt) }));
    const [response] = harness.responses.filter(({ requestId }) => requestId === 2n);
    expect(harness.resultOf(2n).tokens).toEqual(alone(second));
    return tensorOf(response!.outputs, 'cached_tokens')!.data[0];
  }

  it('are found again by as many of their ids as spell a hash, and never under another salt', () => {
    expect(cachedAfter(OFTEN, OFTEN)).toBe(OFTEN.prompt.length - 1);
    expect(cachedAfter(OFTEN, OFTEN, 1n)).toBe(0);
    const other = promptOf(REST.slice(0, 10), DOG, REST.slice(10, 20));
    expect(cachedAfter(OFTEN, other)).toBe(10);
    // The first tokens of both pictures are the same: fewer than have all bits of a hash.
    const twin = promptOf(REST.slice(0, 10), DOG, REST.slice(10, 20));
    for (let place = 10; place < 15; place++) twin.prompt[place] = OFTEN.prompt[place]!;
    expect(cachedAfter(OFTEN, twin)).toBe(10);
    // A second question on the same picture.
    const begin = [REST.slice(0, 10), CAT] as const;
    expect(cachedAfter(promptOf(...begin, [1, 2, 3]), promptOf(...begin, [4, 5, 6]))).toBe(30);
    // The last token of a prompt is computed in any case.
    const last = promptOf(REST.slice(0, 10), CAT);
    expect(cachedAfter(last, last)).toBe(29);
  });

  it.each<[string, Record<string, Tensor>, string]>([
    ['a grid without tokens', { image_grids: grids(0, 0, 3) }, 'image_grids has a grid of 0 x 3 in row 0'],
    [
      'a picture beyond the prompt',
      { image_grids: grids(5, 2, 3) },
      'image_grids puts 2 x 3 tokens at place 5',
    ],
    ['pictures that overlap', { image_grids: grids(2, 2, 3, 4, 1, 1) }, 'places 8 to 8 are left'],
    ['rows that are missing', tableOf(1, 2, 3, 4), 'prompt_embedding_table has 1 rows; the pictures of'],
    [
      'a token where a picture is',
      { input_ids: ids(1, 2, 3, 100, 100, 100, 100, 100, 4) },
      'holds 3 at place 2',
    ],
    [
      'an id where none is',
      { input_ids: ids(1, 100, 100, 100, 100, 100, 100, 100, 4) },
      'holds 100 at place 1',
    ],
    [
      'positions beside grids',
      positions(0, 1, 2, 3, 4, 5, 6, 7, 9),
      'position_ids is given together with image_grids',
    ],
  ])('are refused with %s', (_, wrong, sentence) => {
    const { prompt, inputs } = promptOf([5, 6], { name: 1, rows: 2, columns: 3 }, [7]);
    expect(runAlone(makeRequest(1n, prompt, 2, { ...inputs, ...wrong }), GRIDS).error).toContain(sentence);
  });
});

function grids(...numbers: number[]): Tensor {
  return { shape: [numbers.length / 3, 3], data: Int32Array.from(numbers) };
}

function ids(...numbers: number[]): Tensor {
  return { shape: [1, numbers.length], data: Int32Array.from(numbers) };
}
