import { afterAll, describe, expect, it } from 'vitest';
import type { ModelType, OptionalParams } from '../../callbacks/gpt-manager-options.js';
import type { LogitsPostProcessor } from '../../callbacks/logits-post-processor.js';
import { encodeWordList } from '../../callbacks/stop-words.js';
import type { InferenceRequest, Tensor } from '../../callbacks/types.js';
import { PostProcessors } from '../../engine/decoding/post-processors.js';
import { checkOptionalParams } from '../../engine/options/engine-limits.js';
import { Speculation } from '../../engine/speculation/speculation.js';
import type { ModelConfig } from '../../models/model-config.js';
import { bool, f32, i32, text } from '../../tools/support/loop-harness.js';
import { openExecutor, TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';
import { type Answer, type RunOptions, runLoop, sequenceKey } from '../bitwise/run-loop.js';
import { InlineGuideThread } from '../support/inline-guide-thread.js';

const PROMPT = 30;
const NEW_TOKENS = 12;
const END_ID = 2;
const FIRST_CHARACTER = 40;
const WIDTH = 3;
const BATCH = 24;
const DRAFT_ROWS = 24;
const POOL = 800;

const engines = new TestEngines();
afterAll(() => engines.remove());

/** Odd tokens are out. */
const even: LogitsPostProcessor = (_, logits) => {
  for (let token = 1; token < logits.length; token += 2) logits[token] = -Infinity;
};
const postProcessors = new PostProcessors(new Map(Object.entries({ even })));

/** Answer to a request: the whole one, and that of each of its sequences where it has several. */
interface Outcome {
  whole: Answer;
  sequences: Answer[];
}

type Shows = (outcome: Outcome, config: ModelConfig) => void;

interface Feature {
  /** The tensors that ask for it; a refusal of it names one of them. */
  inputs: (config: ModelConfig) => Record<string, Tensor>;
  /** Fails where an answer does not show it. */
  shows?: Shows;
  /** It changes nothing of the answer: no token is another one than without it. */
  changesNothing?: true;
}

const row = (values: readonly number[]): Tensor => ({
  shape: [1, values.length],
  data: Int32Array.from(values),
});
const tokensOf = (count: number, seed: number) =>
  Array.from({ length: count }, (_, i) => 3 + ((i * 7919 + seed * 31) % 200));
const prompt = tokensOf(PROMPT, 1);
/** Tokens of letters, as the guide has them. */
const KNOWN = [...'abc'].map((letter) => FIRST_CHARACTER + letter.charCodeAt(0) - 32);
const everySequence =
  (check: (answer: Answer) => void): Shows =>
  ({ sequences }) => {
    for (const answer of sequences) check(answer);
  };
const everyToken = (holds: (token: number) => boolean): Shows =>
  everySequence(({ tokens }) => expect(tokens.filter((token) => !holds(token))).toEqual([]));
const characterOf = (token: number) => String.fromCharCode(32 + ((token - FIRST_CHARACTER) % 95));

/** Everything that a request can ask for, by the name of the tensor that asks for it. */
const FEATURES: Readonly<Record<string, Feature>> = {
  temperature: { inputs: () => ({ temperature: f32(0.8) }) },
  runtime_top_k: { inputs: () => ({ runtime_top_k: i32(40) }) },
  runtime_top_p: { inputs: () => ({ runtime_top_p: f32(0.9) }) },
  runtime_min_p: { inputs: () => ({ runtime_min_p: f32(0.02) }) },
  runtime_typical_p: { inputs: () => ({ runtime_typical_p: f32(0.6) }) },
  top_n_sigma: { inputs: () => ({ top_n_sigma: f32(1.5) }) },
  xtc_probability: { inputs: () => ({ xtc_probability: f32(0.7), xtc_threshold: f32(0.002) }) },
  dynatemp_range: { inputs: () => ({ dynatemp_range: f32(0.5) }) },
  mirostat: { inputs: () => ({ mirostat: i32(2), mirostat_tau: f32(3) }) },
  dry_multiplier: { inputs: () => ({ dry_multiplier: f32(0.9), dry_allowed_length: i32(1) }) },
  allowed_token_ids: {
    inputs: () => ({ allowed_token_ids: row(Array.from({ length: 160 }, (_, i) => 40 + i)) }),
    shows: everyToken((token) => token >= 40 && token < 200),
  },
  reasoning_budget: {
    // The end of reasoning is a letter, so that guides of letters take it.
    inputs: () => ({ reasoning_budget: row([4, 108, -1]) }),
    // Whatever else is asked for, the fifth token ends reasoning, unless one before it does.
    shows: everySequence(({ tokens }) => {
      if (tokens.length > 4) expect(tokens.slice(0, 5)).toContain(108);
    }),
  },
  penalty_last_n: { inputs: () => ({ repetition_penalty: f32(1.3), penalty_last_n: i32(5) }) },
  repetition_penalty: { inputs: () => ({ repetition_penalty: f32(1.3) }) },
  presence_penalty: { inputs: () => ({ presence_penalty: f32(0.5) }) },
  frequency_penalty: { inputs: () => ({ frequency_penalty: f32(0.5) }) },
  random_seed: { inputs: () => ({ random_seed: { shape: [1], data: BigUint64Array.of(99n) } }) },
  min_length: {
    inputs: () => ({ min_length: i32(8) }),
    shows: everySequence(({ tokens }) => expect(tokens.length).toBeGreaterThanOrEqual(8)),
  },
  no_repeat_ngram_size: {
    inputs: () => ({ no_repeat_ngram_size: i32(2) }),
    shows: everySequence(({ tokens }) => {
      const pairs = tokens.slice(1).map((token, i) => `${tokens[i]} ${token}`);
      expect(new Set(pairs).size).toBe(pairs.length);
    }),
  },
  embedding_bias: {
    inputs: ({ vocabSize }) => ({
      embedding_bias: { shape: [1, vocabSize], data: new Float32Array(vocabSize).fill(-Infinity, 3, 40) },
    }),
    shows: everyToken((token) => token < 3 || token >= 40),
  },
  logit_bias: {
    inputs: () => ({
      logit_bias_tokens: row([50, 51, 52]),
      logit_bias: { shape: [1, 3], data: new Float32Array(3).fill(-Infinity) },
    }),
    shows: everyToken((token) => token < 50 || token > 52),
  },
  bad_words_list: {
    inputs: () => ({ bad_words_list: encodeWordList([[60], [61], [62, 63]]) }),
    shows: everyToken((token) => token !== 60 && token !== 61),
  },
  stop_words_list: { inputs: () => ({ stop_words_list: encodeWordList([[70], [71, 72]]) }) },
  beam_width: {
    inputs: () => ({ beam_width: i32(WIDTH), len_penalty: f32(1), early_stopping: i32(2) }),
    shows: ({ sequences }) => expect(sequences).toHaveLength(WIDTH),
  },
  num_return_sequences: {
    inputs: () => ({ num_return_sequences: i32(2) }),
    shows: ({ sequences }) => expect(sequences.length).toBeGreaterThanOrEqual(2),
  },
  best_of: { inputs: () => ({ best_of: i32(3) }) },
  first_sequence_index: { inputs: () => ({ first_sequence_index: i32(4) }) },
  known_output_ids: {
    inputs: () => ({ known_output_ids: row(KNOWN), streaming: bool(true) }),
    shows: ({ sequences: [first] }) => {
      expect(first!.tokens.length).toBeLessThanOrEqual(NEW_TOKENS - KNOWN.length);
      expect(first!.logProbs).toHaveLength(first!.tokens.length);
    },
  },
  guided_decoding_guide_type: {
    inputs: () => ({
      guided_decoding_guide_type: text('regex'),
      guided_decoding_guide: text('[a-z ]{10,60}'),
    }),
    shows: everySequence(({ tokens }) => expect(tokens.map(characterOf).join('')).toMatch(/^[a-z ]+$/)),
  },
  draft_input_ids: {
    inputs: () => ({ draft_input_ids: { shape: [6], data: Int32Array.from(tokensOf(6, 3)) } }),
    changesNothing: true,
  },
  draft_logits: {
    inputs: ({ vocabSize }) => ({
      draft_input_ids: { shape: [2], data: Int32Array.of(5, 6) },
      draft_logits: { shape: [2, vocabSize], data: new Float32Array(2 * vocabSize) },
    }),
  },
  max_draft_len: { inputs: () => ({ max_draft_len: i32(0) }), changesNothing: true },
  prompt_embedding_table: {
    inputs: ({ vocabSize, hiddenSize }) => ({
      input_ids: row([vocabSize, vocabSize + 1, ...prompt.slice(2)]),
      prompt_embedding_table: {
        shape: [2, hiddenSize],
        data: Float32Array.from({ length: 2 * hiddenSize }, (_, i) => Math.sin(i)),
      },
    }),
    shows: (outcome, { vocabSize }) => everyToken((token) => token < vocabSize)(outcome, {} as ModelConfig),
  },
  position_ids: { inputs: () => ({ position_ids: row(prompt.map((_, i) => i + (i > 10 ? 5 : 0))) }) },
  logits_post_processor_name: {
    inputs: () => ({ logits_post_processor_name: text('even') }),
    shows: everyToken((token) => token % 2 === 0),
  },
  return_context_logits: {
    inputs: () => ({ return_context_logits: bool(true) }),
    shows: ({ whole }, { vocabSize }) => expect(whole.contextLogits).toHaveLength(PROMPT * vocabSize),
    changesNothing: true,
  },
  return_context_log_probs: {
    inputs: () => ({ return_context_log_probs: bool(true) }),
    shows: ({ whole }) => expect(whole.contextLogProbs).toHaveLength(PROMPT - 1),
    changesNothing: true,
  },
  top_context_log_probs: {
    inputs: () => ({ top_context_log_probs: i32(3) }),
    shows: ({ whole }) => expect(whole.contextTopTokens).toHaveLength(3 * (PROMPT - 1)),
    changesNothing: true,
  },
  return_generation_logits: {
    inputs: () => ({ return_generation_logits: bool(true) }),
    shows: ({ whole, sequences }, { vocabSize }) =>
      expect(whole.generationLogits).toHaveLength(
        sequences.length * Math.max(...sequences.map(({ tokens }) => tokens.length)) * vocabSize,
      ),
    changesNothing: true,
  },
  top_log_probs: {
    inputs: () => ({ top_log_probs: i32(4) }),
    shows: everySequence(({ tokens, topTokens }) => expect(topTokens).toHaveLength(4 * tokens.length)),
    changesNothing: true,
  },
  return_context_progress: {
    inputs: () => ({ return_context_progress: bool(true) }),
    changesNothing: true,
  },
  streaming: { inputs: () => ({ streaming: bool(true) }), changesNothing: true },
  time_limit_ms: { inputs: () => ({ time_limit_ms: i32(600_000) }), changesNothing: true },
  cache_salt: {
    inputs: () => ({ cache_salt: { shape: [1], data: BigUint64Array.of(7n) } }),
    changesNothing: true,
  },
  retention_ranges: {
    inputs: () => ({ retention_ranges: { shape: [1, 1, 4], data: Int32Array.of(0, 16, 80, 0) } }),
    changesNothing: true,
  },
  pad_id: { inputs: () => ({ pad_id: i32(1) }), changesNothing: true },
};
const NAMES = Object.keys(FEATURES);
/**
 * Checks that differ where some output is known: known tokens count, and what belongs to the prompt was
 * reported before.
 */
const BESIDE_KNOWN: Readonly<Record<string, Shows>> = {
  min_length: ({ whole }) => expect(whole.tokens.length + KNOWN.length).toBeGreaterThanOrEqual(8),
  return_context_logits: ({ whole }) => expect(whole.contextLogits).toBeNull(),
  return_context_log_probs: ({ whole }) => expect(whole.contextLogProbs).toBeNull(),
  top_context_log_probs: ({ whole }) => expect(whole.contextTopTokens).toBeNull(),
};

const DRAFTS = ['draft_input_ids', 'draft_logits'];
const SEVERAL = ['beam_width', 'num_return_sequences', 'best_of'];
/** Features that exclude each other: each of the first list with each of the second. */
const REFUSED: readonly (readonly [string[], string[]])[] = [
  [['temperature', 'runtime_top_k', 'runtime_top_p', 'runtime_min_p'], ['beam_width']],
  [['runtime_typical_p', 'top_n_sigma', 'xtc_probability', 'dynatemp_range', 'mirostat'], ['beam_width']],
  [['mirostat'], ['known_output_ids']],
  [['penalty_last_n'], ['no_repeat_ngram_size']],
  [['num_return_sequences', 'best_of', 'guided_decoding_guide_type'], ['beam_width']],
  [['return_generation_logits'], ['num_return_sequences', 'best_of']],
  [['best_of'], ['streaming']],
  [['known_output_ids'], ['beam_width', 'best_of']],
  [
    DRAFTS,
    [
      ...SEVERAL,
      'guided_decoding_guide_type',
      'logits_post_processor_name',
      'prompt_embedding_table',
      'return_generation_logits',
    ],
  ],
];

function isRefused(a: string, b: string): boolean {
  return REFUSED.some(
    ([some, others]) => (some.includes(a) && others.includes(b)) || (some.includes(b) && others.includes(a)),
  );
}

function requestOf(id: number, names: readonly string[], config: ModelConfig): InferenceRequest {
  const inputs: Record<string, Tensor> = {
    input_ids: row(prompt),
    request_output_len: i32(NEW_TOKENS),
    end_id: i32(END_ID),
    random_seed: { shape: [1], data: BigUint64Array.of(5n) },
    return_log_probs: bool(true),
  };
  for (const name of names) Object.assign(inputs, FEATURES[name]!.inputs(config));
  return { requestId: BigInt(id), inputs };
}

function outcomeOf(answers: ReadonlyMap<bigint, Answer>, id: number): Outcome {
  const sequences = [];
  for (let index = 0; index < WIDTH; index++) {
    const answer = answers.get(sequenceKey(BigInt(id), index));
    if (answer) sequences.push(answer);
  }
  const whole = answers.get(BigInt(id)) ?? sequences[0]!;
  return { whole, sequences: sequences.length > 0 ? sequences : [whole] };
}

const tokensIn = ({ sequences }: Outcome) => sequences.map(({ tokens }) => tokens);

async function openTiny(executorOptions: { maxAttentionWindow?: number } = {}) {
  const engine = await engines.get(tinyModelPath('gqa'), 'bf16');
  const executor = openExecutor(engine, {
    threads: 2,
    maxSeqLen: 160,
    tokensPerBlock: 16,
    numBlocks: POOL,
    maxNumTokens: 512,
    maxNumSequences: 2 * BATCH * WIDTH,
    maxLogitRows: BATCH * WIDTH + DRAFT_ROWS,
    ...executorOptions,
  });
  return { executor, config: engine.manifest.config };
}

/** Runs one request for each list of features in one crowd. */
async function runAll(
  lists: readonly (readonly string[])[],
  options: Partial<RunOptions> = {},
  executorOptions: { maxAttentionWindow?: number } = {},
) {
  const { executor, config } = await openTiny(executorOptions);
  const bytesOf = Array.from({ length: config.vocabSize }, (_, token) =>
    token < FIRST_CHARACTER ? null : Uint8Array.of(characterOf(token).charCodeAt(0)),
  );
  const { answers } = runLoop(
    executor,
    config,
    lists.map((names, i) => ({ iteration: 0, request: requestOf(i + 1, names, config) })),
    {
      schedulerPolicy: 'GUARANTEED_NO_EVICT',
      numBlocks: 400,
      maxNumTokens: 512,
      chunked: false,
      maxBeamWidth: WIDTH,
      postProcessors,
      guideThread: new InlineGuideThread(bytesOf),
      ...options,
    },
  );
  executor.close();
  return { outcomes: lists.map((_, i) => outcomeOf(answers, i + 1)), config };
}

/** Name that a refusal of the feature must contain. */
const namesOf = (feature: string) => (DRAFTS.includes(feature) ? 'draft_input_ids' : feature);

describe('two features of one request', () => {
  it('work together, or are refused with a sentence that names both', async () => {
    const pairs = NAMES.flatMap((a, i) => NAMES.slice(i + 1).map((b) => [a, b]));
    const lists = [...NAMES.map((name) => [name]), ...pairs];
    const { outcomes, config } = await runAll(lists);
    const single = (name: string) => outcomes[NAMES.indexOf(name)]!;
    for (const [i, names] of lists.entries()) {
      const place = names.join(' and ');
      const outcome = outcomes[i]!;
      const { error } = outcome.whole;
      const [a, b] = names as [string, string?];
      if (b !== undefined && isRefused(a, b)) {
        expect(error, place).toMatch(/^\S+ is refused together with \S+: [^.]+\.$/);
        for (const name of names) expect(error, place).toContain(namesOf(name));
        continue;
      }
      expect(error, place).toBe('');
      for (const { tokens } of outcome.sequences) expect(tokens.length, place).toBeGreaterThan(0);
      const besideKnown = names.includes('known_output_ids') ? BESIDE_KNOWN : {};
      for (const name of names) (besideKnown[name] ?? FEATURES[name]!.shows)?.(outcome, config);
      if (b === undefined) continue;
      for (const [name, other] of [
        [a, b],
        [b, a],
      ] as const) {
        if (FEATURES[name]!.changesNothing) expect(tokensIn(outcome), place).toEqual(tokensIn(single(other)));
      }
    }
  });
});

interface Setting {
  options: Partial<RunOptions>;
  executor?: { maxAttentionWindow: number };
  /** Features that cannot work there, and what their refusal names of it. */
  refused?: [string[], RegExp];
  /** Answers are others there. */
  changesAnswers?: true;
}
const SETTINGS: Readonly<Record<string, () => Setting>> = {
  InflightBatching: () => ({ options: { modelType: 'InflightBatching' } }),
  V1: () => ({
    options: { modelType: 'V1' },
    refused: [[...DRAFTS, 'logits_post_processor_name'], /V1/],
  }),
  enableTrtOverlap: () => ({ options: { overlap: true } }),
  'block reuse, chunked contexts and pauses': () => ({
    options: {
      schedulerPolicy: 'MAX_UTILIZATION',
      numBlocks: 24,
      maxNumTokens: 64,
      chunked: true,
      reuse: true,
    },
  }),
  'speculate ngram': () => {
    const policy = new Speculation({ usesNgrams: true, maxDraftLen: 8, maxRows: BATCH * WIDTH + DRAFT_ROWS });
    return { options: { drafts: { policy, rows: DRAFT_ROWS } } };
  },
  maxAttentionWindow: () => ({
    options: {},
    executor: { maxAttentionWindow: 24 },
    refused: [[...SEVERAL, 'position_ids'], /attention window \(maxAttentionWindow\)/],
    changesAnswers: true,
  }),
};

describe('a feature of a request and a setting of the engine', () => {
  it.each(Object.keys(SETTINGS))('%s: works as without it, or is refused by name', async (name) => {
    const {
      options,
      executor,
      refused: [features, reason] = [[], /never/],
      changesAnswers,
    } = SETTINGS[name]!();
    const lists = NAMES.map((feature) => [feature]);
    const { outcomes: plain, config } = await runAll(lists);
    const { outcomes } = await runAll(lists, options, executor);
    for (const [i, feature] of NAMES.entries()) {
      const outcome = outcomes[i]!;
      if (features.includes(feature)) {
        expect(outcome.whole.error, feature).toContain(namesOf(feature));
        expect(outcome.whole.error, feature).toMatch(reason);
        continue;
      }
      expect(outcome.whole.error, feature).toBe('');
      FEATURES[feature]!.shows?.(outcome, config);
      if (!changesAnswers) expect(tokensIn(outcome), feature).toEqual(tokensIn(plain[i]!));
    }
  });
});

/** Options of the engine that a request does not know of, each with what it needs itself. */
const OPTIONS: Readonly<Record<string, OptionalParams>> = {
  enableChunkedContext: { enableChunkedContext: true },
  'kvCacheConfig.enableBlockReuse': { kvCacheConfig: { enableBlockReuse: true } },
  'kvCacheConfig.hostCacheSize': { kvCacheConfig: { enableBlockReuse: true, hostCacheSize: 2 ** 24 } },
  'kvCacheConfig.maxAttentionWindow': { kvCacheConfig: { maxAttentionWindow: 64 } },
  'kvCacheConfig.sinkTokenLength': { kvCacheConfig: { maxAttentionWindow: 64, sinkTokenLength: 4 } },
  enableTrtOverlap: { enableTrtOverlap: true },
  logitsPostProcessorModule: { logitsPostProcessorModule: 'file:///some/module.js' },
  speculate: { speculate: 'ngram' },
  draftEnginePath: { draftEnginePath: '/some/engine' },
  executor: { executor: 'native' },
  executorModule: { executorModule: 'file:///some/executor.js' },
  maxInterTokenLatencyMs: { enableChunkedContext: true, maxInterTokenLatencyMs: 50 },
  maxChunkMs: { enableChunkedContext: true, maxChunkMs: 50 },
  chunkingPolicy: { enableChunkedContext: true, chunkingPolicy: 'SHORTEST_FIRST' },
};
const WITHOUT_V1 = [
  'enableChunkedContext',
  'kvCacheConfig.enableBlockReuse',
  'kvCacheConfig.hostCacheSize',
  'enableTrtOverlap',
  'logitsPostProcessorModule',
  'speculate',
  'draftEnginePath',
  'maxInterTokenLatencyMs',
  'maxChunkMs',
  'chunkingPolicy',
];
const REFUSED_OPTIONS = new Set([
  'enableTrtOverlap draftEnginePath',
  'draftEnginePath executorModule',
  'executor executorModule',
]);
/** Features that need another, which is refused first: the refusal names that other. */
const BROUGHT: Readonly<Record<string, string>> = {
  'kvCacheConfig.hostCacheSize': 'kvCacheConfig.enableBlockReuse',
  maxInterTokenLatencyMs: 'enableChunkedContext',
  maxChunkMs: 'enableChunkedContext',
  chunkingPolicy: 'enableChunkedContext',
};

function refusalOf(modelType: ModelType, ...names: string[]): string {
  const params: OptionalParams = {};
  for (const name of names) {
    const { kvCacheConfig, ...own } = OPTIONS[name]!;
    Object.assign(params, own, { kvCacheConfig: { ...params.kvCacheConfig, ...kvCacheConfig } });
  }
  try {
    checkOptionalParams(params, modelType);
    return '';
  } catch (error) {
    return (error as Error).message;
  }
}

describe('two options of an engine', () => {
  const names = Object.keys(OPTIONS);
  it.each(names.flatMap((a, i) => names.slice(i + 1).map((b) => [a, b] as const)))('%s and %s', (a, b) => {
    const refusal = refusalOf('InflightFusedBatching', a, b);
    if (!REFUSED_OPTIONS.has(`${a} ${b}`)) return expect(refusal).toBe('');
    expect(refusal).toContain('is refused');
    for (const name of [a, b]) expect(refusal).toContain(name);
  });

  it.each(names)('V1 and %s', (name) => {
    const refusal = refusalOf('V1', name);
    if (!WITHOUT_V1.includes(name)) return expect(refusal).toBe('');
    expect(refusal).toContain(BROUGHT[name] ?? name);
    expect(refusal).toContain('V1');
  });

  it.each([
    [{ kvCacheConfig: { hostCacheSize: 2 ** 24 } }, 'kvCacheConfig.hostCacheSize', 'enableBlockReuse'],
    [{ maxInterTokenLatencyMs: 50 }, 'maxInterTokenLatencyMs', 'enableChunkedContext'],
    [{ maxChunkMs: 50 }, 'maxChunkMs', 'enableChunkedContext'],
    [{ chunkingPolicy: 'SHORTEST_FIRST' }, 'chunkingPolicy', 'enableChunkedContext'],
  ])('%o is refused for what it needs', (params, name, needed) => {
    const check = () => checkOptionalParams(params as OptionalParams, 'InflightFusedBatching');
    expect(check).toThrow(`${name} is refused`);
    expect(check).toThrow(needed);
  });
});
