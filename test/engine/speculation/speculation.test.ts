import { describe, expect, it } from 'vitest';
import { Speculation } from '../../../engine/speculation/speculation.js';
import {
  bool,
  type HarnessOptions,
  i32,
  LoopHarness,
  makeRequest,
  runAlone,
} from '../../../tools/support/loop-harness.js';

const PROMPT = [3, 1, 4, 1, 5];
const DRAFT_ROWS = 16;

const speculating = (usesNgrams: boolean, options: HarnessOptions = {}): LoopHarness =>
  new LoopHarness({
    maxDraftRows: DRAFT_ROWS,
    drafts: new Speculation({ usesNgrams, maxDraftLen: 8, maxRows: 64 }),
    ...options,
  });

function run(harness: LoopHarness, ...requests: ReturnType<typeof makeRequest>[]): LoopHarness {
  return harness.run(...requests);
}

const tensor = (tokens: readonly number[]) => ({ shape: [tokens.length], data: Int32Array.from(tokens) });
const sum = (
  harness: LoopHarness,
  count: 'draftedTokens' | 'acceptedDraftTokens' | 'drafts' | 'generatedTokens',
) => harness.stats.reduce((total, stats) => total + stats[count], 0);

describe('draft_input_ids', () => {
  const plain = makeRequest(1n, PROMPT, 20);
  const { numResponses: _, ...alone } = runAlone(plain);

  it('that are right save steps, and change nothing else', () => {
    const request = makeRequest(1n, PROMPT, 20, { draft_input_ids: tensor(alone.tokens) });
    const harness = run(speculating(false), request);
    expect(harness.resultOf(1n)).toMatchObject(alone);
    expect(harness.stats.length).toBeLessThan(8);
    expect(sum(harness, 'acceptedDraftTokens')).toBe(sum(harness, 'draftedTokens'));
    expect(sum(harness, 'generatedTokens')).toBe(20);
    const json = harness.statsJson.map((text) => JSON.parse(text));
    expect(json.length).toBe(harness.stats.length);
  });

  it('that are wrong from some token on are given up there', () => {
    const draft = alone.tokens.map((token, i) => (i < 6 ? token : (token + 1) % 100));
    const harness = run(speculating(false), makeRequest(1n, PROMPT, 20, { draft_input_ids: tensor(draft) }));
    expect(harness.resultOf(1n)).toMatchObject(alone);
    expect(sum(harness, 'acceptedDraftTokens')).toBe(5);
    // A draft counts at each of its tokens: 1 up to the wrong one, then 0.
    for (const { draftedTokens, acceptedDraftTokens, acceptedByPosition } of harness.stats) {
      const places = Array.from({ length: draftedTokens }, (_, place) =>
        place < acceptedDraftTokens ? 1 : 0,
      );
      expect(acceptedByPosition).toEqual(places);
    }
    expect(harness.stats.length).toBe(15);
  });

  it('whose first token is wrong are not verified', () => {
    const draft = alone.tokens.map((token) => (token + 1) % 100);
    const harness = run(speculating(false), makeRequest(1n, PROMPT, 20, { draft_input_ids: tensor(draft) }));
    expect(harness.resultOf(1n)).toMatchObject(alone);
    expect(sum(harness, 'draftedTokens')).toBe(0);
  });

  it('may be longer than the answer, end with its end token, and come with log-probs', () => {
    const inputs = { end_id: i32(alone.tokens[9]!), return_log_probs: bool(true) };
    const expected = runAlone(makeRequest(1n, PROMPT, 20, inputs));
    const draft = tensor([...alone.tokens, 1, 2, 3]);
    const harness = run(
      speculating(false),
      makeRequest(1n, PROMPT, 20, { ...inputs, draft_input_ids: draft }),
    );
    const { numResponses, ...found } = harness.resultOf(1n);
    expect(found).toEqual({ ...expected, numResponses: undefined });
    expect(numResponses).toBeLessThan(expected.numResponses);
  });

  it.each([
    ['V1', { modelType: 'V1' as const }, {}, ': V1 draws one token a step for each slot of its batch.'],
    [
      'generation logits',
      {},
      { return_generation_logits: bool(true) },
      ' together with return_generation_logits: generation logits are returned one row a step.',
    ],
    [
      'embeddings of the prompt',
      {},
      { prompt_embedding_table: { shape: [1, 4], data: new Float32Array(4) } },
      ' together with prompt_embedding_table: requests with embeddings of their own have no drafts.',
    ],
  ])('are refused with %s', (_name, options, inputs, why) => {
    const harness = run(
      new LoopHarness(options),
      makeRequest(1n, PROMPT, 4, { ...inputs, draft_input_ids: tensor([1]) }),
    );
    expect(harness.resultOf(1n).error).toBe(`draft_input_ids is refused${why}`);
  });
});

describe('prompt lookup', () => {
  // The fake executor draws hashes, so that nothing ever repeats of itself: these requests ban all tokens but two.
  const repeating = (id: bigint, inputs = {}) =>
    makeRequest(id, PROMPT, 50, {
      bad_words_list: {
        shape: [1, 2, 98],
        data: Int32Array.from([
          ...Array.from({ length: 98 }, (_, i) => i + 2),
          ...Array.from({ length: 98 }, (_, i) => i + 1),
        ]),
      },
      ...inputs,
    });

  it('finds drafts in what stood there before, and never changes an answer', () => {
    const { numResponses: _, ...alone } = runAlone(repeating(1n));
    const harness = run(speculating(true), repeating(1n));
    expect(harness.resultOf(1n)).toMatchObject(alone);
    expect(sum(harness, 'acceptedDraftTokens')).toBeGreaterThan(5);
    expect(harness.stats.length).toBe(50 - sum(harness, 'acceptedDraftTokens'));
  });

  it('counts accepted tokens by their place in the drafts of all requests', () => {
    const harness = run(speculating(true), repeating(1n), repeating(2n, { max_draft_len: i32(2) }));
    const together = harness.stats.filter(({ drafts }) => drafts === 2);
    expect(together.length).toBeGreaterThan(0);
    for (const { acceptedByPosition, acceptedDraftTokens, drafts } of harness.stats) {
      expect(acceptedByPosition.reduce((total, count) => total + count, 0)).toBe(acceptedDraftTokens);
      // A token is accepted only where all before it were.
      expect(acceptedByPosition).toEqual([...acceptedByPosition].sort((a, b) => b - a));
      expect(acceptedByPosition[0] ?? 0).toBeLessThanOrEqual(drafts);
    }
    expect(together.some(({ acceptedByPosition }) => acceptedByPosition[0] === 2)).toBe(true);
  });

  it('is left out where a request asks for no draft, or for short ones', () => {
    const none = run(speculating(true), repeating(1n, { max_draft_len: i32(0) }));
    expect(sum(none, 'draftedTokens')).toBe(0);
    const short = run(speculating(true), repeating(1n, { max_draft_len: i32(1) }));
    expect(sum(short, 'draftedTokens')).toBe(sum(short, 'drafts'));
    expect(sum(short, 'drafts')).toBeGreaterThan(5);
  });

  it('is left out beside contexts, and where the batch has as many rows as are worth it', () => {
    const requests = Array.from({ length: 8 }, (_, i) => repeating(BigInt(i + 1)));
    const harness = run(
      speculating(true, { maxNumTokens: 8, chunkingPolicy: 'FIRST_COME_FIRST_SERVED' }),
      ...requests,
    );
    for (const { contextTokens, draftedTokens } of harness.stats) {
      if (contextTokens > 0) expect(draftedTokens).toBe(0);
    }
  });

  /**
   * 32 sequences that repeat themselves, where `msOf` gives the milliseconds of a step by its number of rows.
   */
  function fullBatch(msOf: (rows: number) => number): LoopHarness {
    class Timed extends Speculation {
      override draft(...[candidates, room]: Parameters<Speculation['draft']>): void {
        super.draft(candidates, room);
        const drafted = candidates.reduce((total, { request }) => total + request.draftLength, 0);
        this.noteStep(room.rows + drafted, room.contextTokens, msOf(room.rows + drafted));
      }
    }
    const drafts = new Timed({ usesNgrams: true, maxDraftLen: 8, maxRows: 160 });
    const sizes = { maxNumSequences: 32, maxNumTokens: 512, numBlocks: 512, maxSeqLen: 128 };
    const requests = Array.from({ length: 32 }, (_, i) =>
      repeating(BigInt(i + 1), { request_output_len: i32(100) }),
    );
    return run(new LoopHarness({ maxDraftRows: 128, drafts, ...sizes }), ...requests);
  }

  it('finds out by a trial that a full batch has cheap rows, as with long contexts', () => {
    const harness = fullBatch((rows) => 100 + rows / 4);
    const withDrafts = harness.stats.filter(
      ({ generationRequests, draftedTokens }) => generationRequests === 32 && draftedTokens > 0,
    );
    expect(withDrafts.length).toBeGreaterThan(20);
    expect(sum(harness, 'acceptedDraftTokens')).toBeGreaterThan(200);
  });

  it('drafts in few steps of a full batch whose rows cost their full share', () => {
    const full = fullBatch((rows) => rows).stats.filter(
      ({ generationRequests }) => generationRequests === 32,
    );
    const trials = full.filter(({ draftedTokens }) => draftedTokens > 0);
    expect(trials.length).toBeGreaterThan(0);
    expect(trials.length).toBeLessThanOrEqual(3);
  });

  it('is reported', () => {
    const harness = run(speculating(true, { statsFormat: 'IterationStats' }), repeating(1n));
    const json = harness.statsJson.map((text) => JSON.parse(text));
    const withDraft = harness.stats.findIndex(({ acceptedDraftTokens }) => acceptedDraftTokens > 0);
    const { draftedTokens, acceptedDraftTokens } = harness.stats[withDraft]!;
    expect(json[withDraft]).toMatchObject({
      specDecodingStats: {
        numDraftTokens: draftedTokens,
        numAcceptedTokens: acceptedDraftTokens,
        numRequestsWithDraftTokens: 1,
        acceptanceLength: 1 + acceptedDraftTokens,
      },
      inflightBatchingStats: { avgNumDecodedTokensPerIter: 1 + acceptedDraftTokens },
    });
  });
});

describe('tokens that a pause made unknown to the cache', () => {
  it('come back as drafts, and are sent once', () => {
    const options: HarnessOptions = {
      schedulerPolicy: 'MAX_UTILIZATION',
      numBlocks: 8,
      maxNumSequences: 4,
      maxInputLen: 12,
    };
    const requests = [0, 1, 2, 3].map((i) => makeRequest(BigInt(i), [i + 1, 2, 3, 4], 40));
    const harness = run(speculating(false, options), ...requests);
    expect(harness.stats.at(-1)!.totalPauses).toBeGreaterThan(0);
    expect(sum(harness, 'acceptedDraftTokens')).toBeGreaterThan(10);
    expect(sum(harness, 'acceptedDraftTokens')).toBe(sum(harness, 'draftedTokens'));
    for (const request of requests) {
      const { numResponses: _, ...alone } = runAlone(request);
      expect(harness.resultOf(request.requestId)).toMatchObject(alone);
    }
  });
});
