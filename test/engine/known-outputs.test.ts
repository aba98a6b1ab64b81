import { describe, expect, it } from 'vitest';
import {
  FINISH_CANCELLED,
  FINISH_END_ID,
  FINISH_LENGTH,
  FINISH_STOP_WORDS,
} from '../../callbacks/response-batch.js';
import { encodeWordList } from '../../callbacks/stop-words.js';
import type { Tensor } from '../../callbacks/types.js';
import {
  bool,
  f32,
  type HarnessOptions,
  i32,
  LoopHarness,
  makeRequest,
  type RequestResult,
  tensorOf,
  text,
  u64,
} from '../../tools/support/loop-harness.js';
import { InlineGuideThread } from '../support/inline-guide-thread.js';
import { knownOutputs } from '../support/known-outputs.js';

const END = 99;
const PROMPT = Array.from({ length: 20 }, (_, i) => 1 + ((7 * i) % 90));
const NEW = 12;
const SAMPLED: Record<string, Tensor> = {
  temperature: f32(0.8),
  random_seed: u64(5n),
  return_log_probs: bool(true),
};
const several = (count: number) => ({ ...SAMPLED, num_return_sequences: i32(count) });

function run(inputs: Record<string, Tensor>, options: HarnessOptions = {}): LoopHarness {
  const harness = new LoopHarness(options).run(makeRequest(1n, PROMPT, NEW, inputs));
  expect(harness.kvCache.freeBlocks).toBe(harness.kvCache.numBlocks);
  return harness;
}

const sequencesOf = (harness: LoopHarness, count: number): RequestResult[] =>
  Array.from({ length: count }, (_, index) => harness.sequenceOf(1n, index));
const whole = run(SAMPLED).resultOf(1n);
const four = sequencesOf(run(several(4)), 4);

describe('a request that has generated tokens elsewhere', () => {
  it('computes them with its prompt, and sends what is new', () => {
    const harness = run({ ...SAMPLED, ...knownOutputs([whole.tokens.slice(0, 5)]) });
    const found = harness.resultOf(1n);
    expect(found.tokens).toEqual(whole.tokens.slice(5));
    expect(found.logProbs).toEqual(whole.logProbs.slice(5));
    expect(found).toMatchObject({ finishReason: FINISH_LENGTH, sequenceLength: PROMPT.length + NEW });
    expect(found.numResponses).toBe(NEW - 5);
    expect(harness.stats[0]).toMatchObject({ contextTokens: PROMPT.length + 5 });
    expect(harness.stats).toHaveLength(NEW - 5);
    const first = harness.responses[0]!.outputs;
    expect(tensorOf(first, 'sequence_length')!.data[0]).toBe(PROMPT.length + 6);
    expect(tensorOf(harness.responses.at(-1)!.outputs, 'num_pauses')!.data[0]).toBe(0);
  });

  it('has, where it does not stream, the whole sequence, and log-probs of what is new', () => {
    const streaming = bool(false);
    const harness = run({ ...SAMPLED, streaming, ...knownOutputs([whole.tokens.slice(0, 5)]) });
    const { outputs } = harness.responses[0]!;
    const ids = [...(tensorOf(outputs, 'output_ids')!.data as Int32Array)];
    expect(ids.slice(0, PROMPT.length + NEW)).toEqual([...PROMPT, ...whole.tokens]);
    const logProbs = tensorOf(outputs, 'output_log_probs')!;
    expect(logProbs.shape).toEqual([1, 1, NEW - 5]);
    expect([...logProbs.data]).toEqual(whole.logProbs.slice(5));
    const sum = whole.logProbs.slice(5).reduce((total, value) => total + value, 0);
    expect(tensorOf(outputs, 'cum_log_probs')!.data[0]).toBe(Math.fround(sum));
  });

  it('generates again what is beyond the longest prompt, and does not send it', () => {
    const harness = run(
      { ...SAMPLED, ...knownOutputs([whole.tokens.slice(0, 8)]) },
      { maxInputLen: PROMPT.length + 3 },
    );
    expect(harness.stats[0]).toMatchObject({ contextTokens: PROMPT.length + 3 });
    expect(harness.stats).toHaveLength(NEW - 3);
    expect(harness.resultOf(1n).tokens).toEqual(whole.tokens.slice(8));
    expect(harness.stats.at(-1)!.totalReplayMismatches).toBe(0);
  });

  it('takes tokens that this engine would not have drawn, and goes on behind them', () => {
    const known = Array.from({ length: 8 }, (_, i) => 3 + i);
    const inText = new LoopHarness().run(makeRequest(1n, [...PROMPT, ...known], NEW - 8, SAMPLED));
    const harness = run({ ...SAMPLED, ...knownOutputs([known]) }, { maxInputLen: PROMPT.length + 3 });
    expect(harness.resultOf(1n).tokens).toEqual(inText.resultOf(1n).tokens);
    expect(harness.stats.at(-1)!.totalReplayMismatches).toBe(0);
  });

  it('finds in the cache what a request like it has left, and counts of it what is of the prompt', () => {
    const harness = new LoopHarness({ enableBlockReuse: true, tokensPerBlock: 4 }).run(
      makeRequest(1n, PROMPT, NEW, SAMPLED),
    );
    const known = knownOutputs([whole.tokens.slice(0, 9)]);
    harness.run(makeRequest(2n, PROMPT, NEW, { ...SAMPLED, ...known }));
    const own = harness.responses.filter(({ requestId }) => requestId === 2n);
    expect(tensorOf(own[0]!.outputs, 'cached_tokens')!.data[0]).toBe(PROMPT.length);
    expect(tensorOf(own.at(-1)!.outputs, 'reused_blocks')!.data[0]).toBe((PROMPT.length + 8) / 4);
    expect(harness.resultOf(2n).tokens).toEqual(whole.tokens.slice(9));
  });

  it('is not told of its prompt again, nor computes it for that', () => {
    const asked = { return_context_logits: bool(true), top_context_log_probs: i32(2) };
    const told = run({ ...SAMPLED, ...asked, ...knownOutputs([[], []].slice(1)) }).responses[0]!.outputs;
    expect(tensorOf(told, 'context_logits')!.shape).toEqual([1, PROMPT.length, 100]);
    const harness = new LoopHarness({ enableBlockReuse: true }).run(makeRequest(2n, PROMPT, NEW, SAMPLED));
    const known = knownOutputs([whole.tokens.slice(0, 1)]);
    harness.run(makeRequest(1n, PROMPT, NEW, { ...SAMPLED, ...asked, ...known }));
    const { outputs } = harness.responses.find(({ requestId }) => requestId === 1n)!;
    expect(tensorOf(outputs, 'context_logits')!.shape).toEqual([1, 1, 1]);
    expect(tensorOf(outputs, 'context_log_probs')).toBeUndefined();
    expect(tensorOf(outputs, 'cached_tokens')!.data[0]).toBe(PROMPT.length);
    expect(harness.resultOf(1n).tokens).toEqual(whole.tokens.slice(1));
  });

  it('can be cancelled', () => {
    const harness = new LoopHarness();
    harness.waiting.push(makeRequest(1n, PROMPT, NEW, knownOutputs([whole.tokens.slice(0, 5)])));
    harness.stops.add(1n);
    harness.runToEnd();
    expect(harness.resultOf(1n)).toMatchObject({ finishReason: FINISH_CANCELLED, error: '' });
  });
});

const DONE: [string, Record<string, Tensor>, number[], number][] = [
  ['end_id', { end_id: i32(END) }, [4, 5, END], FINISH_END_ID],
  ['nothing but end_id', { end_id: i32(END) }, [END], FINISH_END_ID],
  [
    'a stop word',
    {
      stop_words_list: encodeWordList([
        [8, 9],
        [5, 6, 7],
      ]),
    },
    [4, 5, 6, 7],
    FINISH_STOP_WORDS,
  ],
  ['as many tokens as there may be', {}, Array.from({ length: NEW }, (_, i) => i), FINISH_LENGTH],
  [
    'a stop word that is the last token there may be',
    { stop_words_list: encodeWordList([[10, 11]]) },
    Array.from({ length: NEW }, (_, i) => i),
    FINISH_STOP_WORDS,
  ],
];

describe('tokens that a request has ended with', () => {
  for (const streaming of [true, false]) {
    for (const modelType of ['InflightFusedBatching', 'V1'] as const) {
      const how = `${streaming ? 'streaming' : 'whole'}, ${modelType}`;
      it.each(DONE)(`%s: are answered at once, without a step, ${how}`, (_, inputs, known, finishReason) => {
        const own = { ...inputs, ...knownOutputs([known]), streaming: bool(streaming) };
        const harness = run(own, { modelType });
        expect(harness.responses).toHaveLength(1);
        const { outputs, final, error } = harness.responses[0]!;
        expect([final, error]).toEqual([true, '']);
        expect(tensorOf(outputs, 'finish_reasons')!.data[0]).toBe(finishReason);
        const shown = known.filter((token) => token !== END);
        const length = PROMPT.length + shown.length;
        expect(tensorOf(outputs, 'sequence_length')!.data[0]).toBe(length);
        const ids = [...(tensorOf(outputs, 'output_ids')!.data as Int32Array)];
        if (streaming) expect(ids).toEqual([]);
        else expect(ids.slice(0, length)).toEqual([...PROMPT, ...shown]);
        expect(harness.executor.numSteps).toBe(0);
      });
    }
  }

  it('leave those beside them in peace', () => {
    const harness = new LoopHarness();
    const ended = { end_id: i32(END), ...knownOutputs([[4, END]]) };
    for (const id of [1n, 3n, 5n]) harness.waiting.push(makeRequest(id, PROMPT, NEW, ended));
    for (const id of [2n, 4n]) harness.waiting.push(makeRequest(id, PROMPT, NEW, SAMPLED));
    harness.runToEnd();
    for (const id of [2n, 4n]) expect(harness.resultOf(id).tokens).toEqual(whole.tokens);
    for (const id of [1n, 3n, 5n]) expect(harness.resultOf(id).finishReason).toBe(FINISH_END_ID);
    expect(harness.stats[0]).toMatchObject({ contextTokens: 2 * PROMPT.length });
  });

  it('are no end below min_length, nor where a stop word lies further in front', () => {
    const stopWords = { stop_words_list: encodeWordList([[5, 6]]), min_length: i32(4) };
    for (const known of [
      [4, 5, 6],
      [4, 4, 5, 6, 7],
    ]) {
      const found = run({ ...SAMPLED, ...stopWords, ...knownOutputs([known]) }).resultOf(1n);
      expect(found.tokens.length).toBe(NEW - known.length);
      expect(found.finishReason).toBe(FINISH_LENGTH);
    }
  });
});

describe('several sequences that have generated tokens elsewhere', () => {
  it.each([
    [4, 4, 4, 4],
    [0, 5, 3, 11],
    [6, 0, 0, 0],
  ])('go on each behind its own, %i %i %i %i', (...cuts) => {
    const known = knownOutputs(cuts.map((cut, i) => four[i]!.tokens.slice(0, cut)));
    const harness = run({ ...several(4), ...known });
    for (const [i, found] of sequencesOf(harness, 4).entries()) {
      expect(found.tokens).toEqual(four[i]!.tokens.slice(cuts[i]));
      expect(found.logProbs).toEqual(four[i]!.logProbs.slice(cuts[i]));
    }
    expect(harness.stats[0]).toMatchObject({ contextTokens: PROMPT.length });
    expect(harness.stats).toHaveLength(NEW);
  });

  it('begin anew where they have no list', () => {
    const found = sequencesOf(run({ ...several(4), ...knownOutputs([four[0]!.tokens.slice(0, 7)]) }), 4);
    expect(found.map(({ tokens }) => tokens)).toEqual([
      four[0]!.tokens.slice(7),
      ...four.slice(1).map(({ tokens }) => tokens),
    ]);
  });

  it('are told of at once where they have ended, and take no blocks; one that is left computes its tokens with the prompt', () => {
    const lists = [[4, END], [5, 6, END], four[2]!.tokens.slice(0, 6), [END]];
    const harness = run({ ...several(4), end_id: i32(END), ...knownOutputs(lists) });
    const found = sequencesOf(harness, 4);
    expect(found.map(({ finishReason }) => finishReason)).toEqual([
      FINISH_END_ID,
      FINISH_END_ID,
      FINISH_LENGTH,
      FINISH_END_ID,
    ]);
    expect(found[2]!.tokens).toEqual(four[2]!.tokens.slice(6));
    for (const i of [0, 1, 3]) expect(found[i]!.tokens).toEqual([]);
    expect(harness.stats[0]).toMatchObject({ contextTokens: PROMPT.length + 6, heldBlocks: 4 });
    expect(harness.stats).toHaveLength(NEW - 6);
    const first = harness.responses
      .slice(0, 4)
      .map(({ outputs }) => tensorOf(outputs, 'sequence_index')!.data[0]);
    expect(first.sort()).toEqual([0, 1, 2, 3]);
  });

  it('are answered at once where all have ended', () => {
    const lists = [[4, END], [END], Array.from({ length: NEW }, () => 7)];
    const harness = run({ ...several(3), end_id: i32(END), ...knownOutputs(lists) });
    expect(sequencesOf(harness, 3).map(({ finishReason }) => finishReason)).toEqual([
      FINISH_END_ID,
      FINISH_END_ID,
      FINISH_LENGTH,
    ]);
    expect(harness.responses.map(({ final }) => final)).toEqual([false, false, true]);
    expect(harness.executor.numSteps).toBe(0);
  });

  it('leave no empty slot in a padded batch where they have ended before it', () => {
    const harness = new LoopHarness({
      modelType: 'V1',
      maxBatchSize: 2,
      maxNumSequences: 4,
      maxBeamWidth: 2,
    });
    const known = knownOutputs([[4, END], four[1]!.tokens.slice(0, 3)]);
    const ids = [1n, 2n, 3n, 4n];
    for (const id of ids) {
      harness.waiting.push(makeRequest(id, PROMPT, NEW, { ...several(2), end_id: i32(END), ...known }));
    }
    harness.runToEnd();
    for (const id of ids) expect(harness.sequenceOf(id, 1).tokens).toEqual(four[1]!.tokens.slice(3));
    for (const stats of harness.stats) expect(stats.emptyGenerationSlots).toBe(0);
  });
});

const ALPHABET = 'abcdefghij0123456789';
const BYTES = Array.from({ length: 100 }, (_, token) =>
  ALPHABET[token] === undefined ? null : Buffer.from(ALPHABET[token]),
);
const guide: Record<string, Tensor> = {
  guided_decoding_guide_type: text('regex'),
  guided_decoding_guide: text('[a-j]{3}[0-9]{6,9}'),
  end_id: i32(END),
};

function guided(inputs: Record<string, Tensor>): LoopHarness {
  return run({ ...guide, ...inputs }, { guideThread: new InlineGuideThread(BYTES) });
}

describe('a guided request that has generated tokens elsewhere', () => {
  const uncut = guided(SAMPLED).resultOf(1n);

  it('goes on in its guide where it was', () => {
    expect(uncut.tokens.slice(0, 3).every((token) => token < 10)).toBe(true);
    for (let cut = 0; cut <= uncut.tokens.length; cut++) {
      const found = guided({ ...SAMPLED, ...knownOutputs([uncut.tokens.slice(0, cut)]) }).resultOf(1n);
      expect(found.tokens).toEqual(uncut.tokens.slice(cut));
      expect(found.finishReason).toBe(uncut.finishReason);
    }
  });

  it('draws the end of one that is complete, in one step', () => {
    const known = [0, 1, 2, 10, 11, 12, 13, 14, 15, 16, 17, 18];
    const harness = guided({ ...knownOutputs([known]), request_output_len: i32(20) });
    expect(harness.resultOf(1n)).toMatchObject({ tokens: [], finishReason: FINISH_END_ID, error: '' });
    expect(harness.stats).toHaveLength(1);
  });

  it.each([
    [[[0, 1, 10, 11]], 'known_output_ids holds 10 at [0, 2], which does not follow the guide.'],
    [[[50]], 'known_output_ids holds 50 at [0, 0], which does not follow the guide.'],
    [
      [
        [0, 1, 2, 10],
        [0, 1, 2, 3, 4],
      ],
      'known_output_ids holds 3 at [1, 3], which does not follow the guide.',
    ],
  ])('fails alone where they are not of its guide, %j', (lists, error) => {
    const harness = new LoopHarness({ guideThread: new InlineGuideThread(BYTES) });
    const own = { ...guide, ...several(lists.length), ...knownOutputs(lists) };
    harness.run(makeRequest(1n, PROMPT, NEW, own), makeRequest(2n, PROMPT, NEW, SAMPLED));
    const last = harness.responses.filter(({ requestId }) => requestId === 1n).at(-1)!;
    expect([last.final, last.error]).toEqual([true, error]);
    expect(tensorOf(last.outputs, 'invalid_request')!.data[0]).toBe(1);
    expect(harness.resultOf(2n).tokens).toEqual(whole.tokens);
  });
});

describe('what cannot be known of a request', () => {
  const REFUSED: [string, Record<string, Tensor>, string][] = [
    [
      'lists without a place, more than any request has',
      {
        known_output_ids: { shape: [1e7, 0], data: new Int32Array(0) },
        num_return_sequences: i32(2 ** 31 - 1),
      },
      'known_output_ids has 10000000 rows; the request generates 2147483647 sequences in all, and each has one row at most.',
    ],
    [
      'more lists than sequences',
      { ...knownOutputs([[1], [2], [3]]), num_return_sequences: i32(2) },
      'known_output_ids has 3 rows; the request generates 2 sequences in all, and each has one row at most.',
    ],
    [
      'a token outside the vocabulary',
      knownOutputs([[1, 100]]),
      'known_output_ids holds 100 at [0, 1]; tokens are from 0 to 99, and -1 after the last one of a row.',
    ],
    [
      'more tokens than the request generates',
      knownOutputs([Array.from({ length: NEW + 1 }, () => 1)]),
      `known_output_ids has ${NEW + 1} tokens in row 0; request_output_len is ${NEW}, and they count in it.`,
    ],
    [
      'tokens behind the end',
      { ...knownOutputs([[1, END, 2]]), end_id: i32(END) },
      `known_output_ids goes on after end_id = ${END} at [0, 1]; with end_id a sequence has ended.`,
    ],
    [
      'tokens behind the padding',
      knownOutputs([[1, -1, 2]]),
      'known_output_ids holds 2 at [0, 2]; after the first -1 of a row there is nothing else.',
    ],
    [
      'rows wider than any answer',
      { known_output_ids: { shape: [1, 5000], data: new Int32Array(5000).fill(-1) } },
      'known_output_ids has rows of 5000 places, of which no more than request_output_len = 12 can be tokens; at most 4096 are taken.',
    ],
    [
      'lists of too many sizes',
      { known_output_ids: { shape: Array(1000).fill(1), data: Int32Array.of(1) } },
      'known_output_ids has the shape [1, 1, 1, 1, 1, 1, 1, 1, ... 1000 sizes in all]; [s, n] is expected.',
    ],
    [
      'lists of no shape',
      { known_output_ids: { shape: [2], data: Int32Array.of(1, 2) } },
      'known_output_ids has the shape [2]; [s, n] is expected.',
    ],
    [
      'beams',
      { ...knownOutputs([[1]]), beam_width: i32(2) },
      'known_output_ids is refused together with beam_width: which beams go on is not known from their tokens; leave it out, and the search begins again.',
    ],
    [
      'the best of several',
      { ...knownOutputs([[1]]), best_of: i32(2), streaming: bool(false) },
      'best_of is refused together with known_output_ids: which sequences are the best is told by the log-probs of all their tokens, and those of known ones are not.',
    ],
    [
      'a sequence beyond the longest',
      { ...knownOutputs([[1]]), request_output_len: i32(60) },
      'The prompt of 20 tokens and 60 new tokens make 80, more than maxSeqLen = 64.',
    ],
  ];

  it.each(REFUSED)(
    '%s: the request is refused with one sentence, and those beside it go on',
    (_, inputs, error) => {
      const harness = new LoopHarness({ maxBeamWidth: 2 }).run(
        makeRequest(1n, PROMPT, NEW, inputs),
        makeRequest(2n, PROMPT, NEW, SAMPLED),
      );
      const [refusal] = harness.responses.filter(({ requestId }) => requestId === 1n);
      expect(refusal).toMatchObject({ final: true, error });
      expect(tensorOf(refusal!.outputs, 'invalid_request')!.data[0]).toBe(1);
      expect(harness.resultOf(2n).tokens).toEqual(whole.tokens);
    },
  );

  it('is nothing where no list has a token, with beams and the best of several as well', () => {
    const nothing = { known_output_ids: { shape: [1, 2], data: Int32Array.of(-1, -1) } };
    expect(run({ ...SAMPLED, ...nothing }).resultOf(1n)).toEqual(whole);
    const beams = run({ ...nothing, beam_width: i32(2) }, { maxBeamWidth: 2 });
    expect(beams.responses.at(-1)!.error).toBe('');
  });
});
