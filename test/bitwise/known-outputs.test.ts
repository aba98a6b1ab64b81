import { afterAll, describe, expect, it } from 'vitest';
import { encodeWordList } from '../../callbacks/stop-words.js';
import type { InferenceRequest, Tensor } from '../../callbacks/types.js';
import type { Executor } from '../../engine/executors/executor.js';
import { Speculation } from '../../engine/speculation/speculation.js';
import type { ModelConfig } from '../../models/model-config.js';
import { bool, f32, i32, text, u64 } from '../../tools/support/loop-harness.js';
import { engineOptions, nativeEngine, TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';
import { describeExecutors } from '../support/executors.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { InlineGuideThread } from '../support/inline-guide-thread.js';
import { type Cut, cutOf, firstDifference, outputOf, type Uncut, uncutOf } from '../support/known-outputs.js';
import { madeModelPath } from '../support/made-models.js';
import { everything, postProcessors } from './everything.js';
import { type RunOptions, type RunResult, runLoop } from './run-loop.js';
import { type Arrival, randomNumbers } from './scenario.js';

const SEQUENCES = 4;
const BATCH = 16;
const MAX_SEQ_LEN = 160;
const POOL = 260;
const SMALL_POOL = 20;
const DRAFT_ROWS = 20;
/** After the pool: what V1 pads with. */
const PADDING_BLOCKS = 256 / 16 + 2 * (BATCH * SEQUENCES + DRAFT_ROWS);
/** Token of the first character; of small vocabularies a lower one, so that there is a token for each. */
const firstCharacter = (vocabSize: number) => Math.min(40, vocabSize - 95);
const END_ID = 2;

const folder = temporaryFolder('skein-known-outputs');
const engines = new TestEngines();
afterAll(() => engines.remove());

const bytesOf = (vocabSize: number) =>
  Array.from({ length: vocabSize }, (_, token) =>
    token < firstCharacter(vocabSize) ? null : Uint8Array.of(32 + ((token - firstCharacter(vocabSize)) % 95)),
  );

const several = (count: number): Record<string, Tensor> => ({ num_return_sequences: i32(count) });
const guided = (type: string, guide: string): Record<string, Tensor> => ({
  end_id: i32(END_ID),
  guided_decoding_guide_type: text(type),
  guided_decoding_guide: text(guide),
});
const SCHEMA = '{"type":"array","items":{"enum":[1,22,"x"]},"minItems":2,"maxItems":5}';

/** Settings that matter to what is known, one request for each. */
const SETTINGS: Readonly<Record<string, Record<string, Tensor>>> = {
  greedy: {},
  'temperature, top-p': { temperature: f32(0.9), runtime_top_p: f32(0.9) },
  'penalties and n-grams': {
    temperature: f32(1.2),
    repetition_penalty: f32(1.2),
    presence_penalty: f32(0.5),
    frequency_penalty: f32(0.3),
    no_repeat_ngram_size: i32(2),
  },
  'min length, ends often': {
    temperature: f32(1),
    min_length: i32(6),
    end_id: i32(END_ID),
    logit_bias_tokens: { shape: [1, 1], data: Int32Array.of(END_ID) },
    logit_bias: { shape: [1, 1], data: Float32Array.of(6) },
  },
  'bad words': { temperature: f32(1), bad_words_list: encodeWordList([[50], [51, 52], [60, 61, 62]]) },
  'top log-probs': { temperature: f32(1), top_log_probs: i32(3), return_generation_logits: bool(true) },
  'log-probs of the prompt': { return_context_logits: bool(true), top_context_log_probs: i32(2) },
  'a draft of its own': { draft_input_ids: { shape: [4], data: Int32Array.of(5, 6, 7, 8) } },
  'not streamed': { streaming: bool(false), temperature: f32(1) },
  'a regular expression': { temperature: f32(1), ...guided('regex', '[a-f]{1,3}(-[0-9]{2}){2,9}') },
  'a schema': { temperature: f32(1), ...guided('json_schema', SCHEMA) },
  'several sequences': { temperature: f32(1), ...several(SEQUENCES) },
  'several that end by themselves': {
    temperature: f32(1),
    ...several(SEQUENCES),
    end_id: i32(END_ID),
    logit_bias_tokens: { shape: [1, 1], data: Int32Array.of(END_ID) },
    logit_bias: { shape: [1, 1], data: Float32Array.of(5) },
  },
  'several, guided': { temperature: f32(1), ...several(3), ...guided('regex', '([0-9a-z]{2},){1,6}') },
  'several, not streamed': { temperature: f32(1), ...several(2), streaming: bool(false) },
};
const NEW_TOKENS = 14;

function settings({ vocabSize }: ModelConfig): Arrival[] {
  const ids = Math.min(200, vocabSize - 3);
  return Object.values(SETTINGS).map((own, i) => {
    const prompt = Int32Array.from({ length: 9 + 5 * i }, (_, place) => 3 + ((place * 31 + i * 17) % ids));
    const inputs: Record<string, Tensor> = {
      input_ids: { shape: [1, prompt.length], data: prompt },
      request_output_len: i32(NEW_TOKENS),
      random_seed: u64(BigInt(70 + i)),
      return_log_probs: bool(true),
      streaming: bool(true),
      ...own,
    };
    return { iteration: 0, request: { requestId: BigInt(i + 1), inputs } };
  });
}

interface World {
  executor: Executor;
  config: ModelConfig;
}

/** The requests, and what they answer without a break in an engine of their own. */
function uncutIn({ executor, config }: World, arrivals: readonly Arrival[]): Uncut[] {
  const { answers, finishReasons } = runLoop(executor, config, arrivals, optionsOf({ config }, {}));
  expect([...answers.values()].filter(({ error }) => error !== '')).toEqual([]);
  return arrivals.map(({ request }) => uncutOf(request, answers, finishReasons));
}

/** A stop word of the two tokens that stand at 7 and 8 of a greedy answer. */
function withStopWord(greedy: Uncut): InferenceRequest {
  const word = greedy.answers[0]!.tokens.slice(7, 9);
  const inputs = { ...greedy.request.inputs, stop_words_list: encodeWordList([word]) };
  return { requestId: 900n, inputs };
}

function optionsOf({ config }: Pick<World, 'config'>, options: Partial<RunOptions>): RunOptions {
  return {
    schedulerPolicy: 'GUARANTEED_NO_EVICT',
    numBlocks: POOL,
    maxNumTokens: 256,
    chunked: false,
    maxBeamWidth: SEQUENCES,
    guideThread: new InlineGuideThread(bytesOf(config.vocabSize)),
    ...options,
  };
}

/**
 * Every request cut at every place, or at every `every`th one, and its several sequences at places of their
 * own.
 */
function everyCut(uncuts: readonly Uncut[], every: number): Cut[] {
  const cuts: Cut[] = [];
  for (const uncut of uncuts) {
    for (let place = 0; place <= NEW_TOKENS; place += every) {
      const places = uncut.answers.map((_, i) =>
        i % 2 === 0 ? place : (place * (i + 2)) % (NEW_TOKENS + 1),
      );
      const own = places.map((at, i) => Math.min(at, outputOf(uncut, i).length));
      cuts.push(cutOf(uncut, uncut.request.requestId * 100n + BigInt(place), own, place % 4 < 2));
    }
  }
  return cuts;
}

const arrivalsOf = (cuts: readonly Cut[]) =>
  cuts.map(({ request }, i): Arrival => ({ iteration: i >> 2, request }));

const drafts = () => ({
  policy: new Speculation({ usesNgrams: true, maxDraftLen: 5, maxRows: BATCH * SEQUENCES + DRAFT_ROWS }),
  rows: DRAFT_ROWS,
});
const PAUSED = { schedulerPolicy: 'MAX_UTILIZATION', numBlocks: SMALL_POOL } as const;
const RUNS: [string, () => Partial<RunOptions>, (result: RunResult) => void][] = [
  ['together', () => ({}), ({ greatestBatch }) => expect(greatestBatch).toBeGreaterThan(8)],
  ['in chunks', () => ({ maxNumTokens: 64, chunked: true }), ({ pauses }) => expect(pauses).toBe(0)],
  [
    'paused on top, in chunks, from reused blocks',
    () => ({ ...PAUSED, maxNumTokens: 64, chunked: true, reuse: true }),
    ({ pauses, reusedTokens }) => {
      expect(pauses).toBeGreaterThan(10);
      expect(reusedTokens).toBeGreaterThan(100);
    },
  ],
  [
    'contexts and generation apart, paused',
    () => ({ ...PAUSED, modelType: 'InflightBatching' }),
    ({ pauses }) => expect(pauses).toBeGreaterThan(10),
  ],
  [
    'two micro-batches in turns',
    () => ({ overlap: true }),
    ({ overlapped }) => expect(overlapped).toBeGreaterThan(10),
  ],
  ['drafted', () => ({ drafts: drafts(), reuse: true }), () => {}],
  [
    'drafted and paused',
    () => ({ ...PAUSED, drafts: drafts() }),
    ({ pauses }) => expect(pauses).toBeGreaterThan(10),
  ],
  [
    'padded, in lockstep',
    () => ({ modelType: 'V1' }),
    ({ emptyGenerationSlots }) => expect(emptyGenerationSlots).toBeGreaterThan(20),
  ],
];

/**
 * Cuts each request at every `every`th place, and lets another engine continue after the cuts: each answers
 * as without a break.
 */
function cutAndGoOn(first: World, elsewhere: World, options: Partial<RunOptions>, every: number): RunResult {
  const { config } = first;
  const v1 = options.modelType === 'V1';
  const arrivals = settings(config).filter(({ request }) => !v1 || !request.inputs.draft_input_ids);
  const uncuts = uncutIn(first, arrivals);
  uncuts.push(...uncutIn(first, [{ iteration: 0, request: withStopWord(uncuts[0]!) }]));
  first.executor.close();
  // Every place in one run: what a schedule adds does not depend on the place.
  const cuts = everyCut(uncuts, every);
  const result = runLoop(elsewhere.executor, config, arrivalsOf(cuts), optionsOf(elsewhere, options));
  elsewhere.executor.close();
  const differences = cuts.map((cut) => firstDifference(cut, result, config.vocabSize));
  expect(differences.filter((difference) => difference !== null)).toEqual([]);
  expect(result.replayMismatches).toBe(0);
  return result;
}

describeExecutors((on) => {
  async function open(threads: number, model = tinyModelPath('gqa')): Promise<World> {
    const engine = await engines.get(model, 'f32');
    const executor = await on.open(
      nativeEngine(engine),
      engineOptions(engine, {
        threads,
        tokensPerBlock: 16,
        maxSeqLen: MAX_SEQ_LEN,
        numBlocks: POOL + PADDING_BLOCKS,
        maxNumTokens: 256,
        maxNumSequences: 2 * (BATCH * SEQUENCES + DRAFT_ROWS),
        maxLogitRows: BATCH * SEQUENCES + DRAFT_ROWS,
      }),
    );
    return { executor, config: engine.manifest.config };
  }
  const isNative = on.name === 'native';

  describe('a request that goes on elsewhere, behind any of its tokens', () => {
    it.each(isNative ? RUNS : [RUNS[2]!])(
      'answers what it would have without a break, %s',
      async (name, options, shows) => {
        const first = await open(1);
        const every = isNative ? (name === 'together' ? 1 : 2) : 4;
        shows(cutAndGoOn(first, await open(2), options(), every));
      },
    );

    if (!isNative) return;
    it.each([RUNS[2]!, RUNS[4]!])(
      'answers what it would have without a break, of a model with states, %s',
      async (_, options, shows) => {
        const model = madeModelPath(folder, 'qwen3.5');
        // Every place: a layer with states keeps fewer blocks, so half of the cuts hardly pauses.
        shows(cutAndGoOn(await open(1, model), await open(2, model), options(), 1));
      },
    );
  });

  if (!isNative) return;
  describe('a crowd of every parameter there is, which goes on elsewhere at random places', () => {
    it.each(RUNS)('answers what it would have without a break, %s', async (name, options) => {
      const first = await open(2);
      const processes = options().modelType !== 'V1';
      const crowd = everything(first.config, { requests: 32, processes });
      const alone = optionsOf(first, { postProcessors });
      const { answers, finishReasons } = runLoop(first.executor, first.config, crowd, alone);
      first.executor.close();
      const random = randomNumbers(name.length);
      const cuts = crowd.map(({ request }) => {
        const uncut = uncutOf(request, answers, finishReasons);
        const place = Math.floor(random() * (outputOf(uncut, 0).length + 1));
        return cutOf(uncut, request.requestId, [place], random() < 0.5);
      });
      const elsewhere = await open(1);
      const { config } = elsewhere;
      const own = optionsOf(elsewhere, { ...options(), ...(processes ? { postProcessors } : {}) });
      const result = runLoop(elsewhere.executor, config, arrivalsOf(cuts), own);
      elsewhere.executor.close();
      const differences = cuts.map((cut) => firstDifference(cut, result, config.vocabSize));
      expect(differences.filter((difference) => difference !== null)).toEqual([]);
    });
  });
});
