import { afterAll, describe, expect, it } from 'vitest';
import type { Tensor } from '../../callbacks/types.js';
import type { ModelConfig } from '../../models/model-config.js';
import { bool, f32, i32, text } from '../../tools/support/loop-harness.js';
import { openExecutor, TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';
import { InlineGuideThread } from '../support/inline-guide-thread.js';
import { RandomDrafts } from '../support/random-drafts.js';
import { everything, postProcessors } from './everything.js';
import { digestOf, type RunOptions, runAlone, runLoop } from './run-loop.js';
import type { Arrival } from './scenario.js';

/** Kinds of requests, in equal numbers: with all inputs but those of the others, beams, several sequences, guided, drafted. */
const KINDS = 5;
const REQUESTS = 40;
const MAX_BEAM_WIDTH = 3;
const DRAFT_ROWS = 30;
const MAX_SEQ_LEN = 160;
const WIDE_POOL = 500;
const SMALL_POOL = 40;

const engines = new TestEngines();
afterAll(() => engines.remove());

/** Inputs left out of each kind: beams and guides refuse them, several sequences do not return them. */
const WITHOUT = {
  beams: ['temperature', 'runtime_top_k', 'runtime_top_p', 'runtime_min_p', 'return_generation_logits'],
  several: ['return_generation_logits'],
  drafted: ['return_generation_logits', 'logits_post_processor_name'],
  guided: [
    'bad_words_list',
    'logit_bias',
    'logit_bias_tokens',
    'min_length',
    'no_repeat_ngram_size',
    'stop_words_list',
  ],
};
const GUIDES = ['[a-f]{1,3}(-[0-9]{2}){3,9}', '(yes|no|maybe) indeed( and (on|so)){2,12}', '[0-9]{30,60}'];

function scenario(config: ModelConfig): Arrival[] {
  return everything(config, { requests: REQUESTS, processes: true }).map(({ iteration, request }, i) => {
    const kind = i % KINDS;
    const dropped = [[], WITHOUT.beams, WITHOUT.several, WITHOUT.guided, WITHOUT.drafted][kind]!;
    const inputs: Record<string, Tensor> = Object.fromEntries(
      Object.entries(request.inputs).filter(([name]) => !dropped.includes(name)),
    );
    if (kind === 1) {
      inputs.beam_width = i32(2 + (i % 2));
      inputs.len_penalty = f32((i % 3) / 2);
      inputs.early_stopping = i32(i % 3);
    } else if (kind === 2) {
      inputs.num_return_sequences = i32(2 + (i % 2));
      if (i % 3 === 0) {
        inputs.best_of = i32(3);
        inputs.streaming = bool(false);
      }
    } else if (kind === 3) {
      inputs.end_id = i32(2);
      inputs.guided_decoding_guide_type = text('regex');
      inputs.guided_decoding_guide = text(GUIDES[i % GUIDES.length]!);
    }
    return { iteration, request: { ...request, inputs } };
  });
}

/** The bytes of a vocabulary in which the tokens from 40 on are characters of ASCII, in turns, and the others special. */
function bytesOf(vocabSize: number): (Uint8Array | null)[] {
  return Array.from({ length: vocabSize }, (_, token) =>
    token < 40 ? null : Uint8Array.of(32 + ((token - 40) % 95)),
  );
}

function run(options: Partial<RunOptions>): RunOptions {
  const usual = { numBlocks: WIDE_POOL, maxNumTokens: 512, chunked: false, maxBeamWidth: MAX_BEAM_WIDTH };
  return { schedulerPolicy: 'GUARANTEED_NO_EVICT', ...usual, postProcessors, ...options };
}
const PAUSED = { schedulerPolicy: 'MAX_UTILIZATION', numBlocks: SMALL_POOL } as const;
const RUNS: [string, RunOptions][] = [
  ['together', run({})],
  ['paused', run(PAUSED)],
  ['paused, chunked, with block reuse', run({ ...PAUSED, maxNumTokens: 64, chunked: true, reuse: true })],
  ['paused, contexts and generation apart', run({ ...PAUSED, modelType: 'InflightBatching', reuse: true })],
];

describe('beams, several sequences, guides, drafts and every parameter in one crowd', () => {
  /** What each gets alone, which does not depend on the schedule. */
  let alone: ReturnType<typeof runAlone> | null = null;

  it.each(RUNS)('%s: each answers as alone, bit for bit', async (_, options) => {
    const engine = await engines.get(tinyModelPath('gqa'), 'bf16');
    const { config } = engine.manifest;
    const executor = openExecutor(engine, {
      threads: 2,
      maxSeqLen: MAX_SEQ_LEN,
      tokensPerBlock: 16,
      numBlocks: WIDE_POOL,
      maxNumTokens: 512,
      maxNumSequences: REQUESTS * MAX_BEAM_WIDTH,
      maxLogitRows: REQUESTS * MAX_BEAM_WIDTH + DRAFT_ROWS,
    });
    const arrivals = scenario(config);
    const guideThread = () => new InlineGuideThread(bytesOf(config.vocabSize));
    const environment = { postProcessors, maxBeamWidth: MAX_BEAM_WIDTH };
    alone ??= runAlone(executor, config, arrivals, { ...environment, guideThread: guideThread() });
    const answersAlone = alone;
    const promptOf = new Map(
      arrivals.map(({ request }) => [request.requestId, request.inputs.input_ids!.data as Int32Array]),
    );
    const answerOf = (id: bigint) => [...promptOf.get(id)!, ...(answersAlone.get(id)?.tokens ?? [])];
    const policy = new RandomDrafts(3, config.vocabSize, answerOf);
    const drafts = { policy, rows: DRAFT_ROWS };
    const found = runLoop(executor, config, arrivals, { ...options, guideThread: guideThread(), drafts });
    executor.close();
    expect(found.answers.size).toBe(alone.size);
    expect(alone.size).toBeGreaterThan(REQUESTS);
    for (const [key, expected] of alone) {
      expect(expected.error, `answer ${key}`).toBe('');
      expect(digestOf(found.answers.get(key)!), `answer ${key}`).toStrictEqual(digestOf(expected));
    }
    expect(found.replayMismatches).toBe(0);
    expect(policy.accepted).toBeGreaterThan(20);
    if (options.schedulerPolicy === 'MAX_UTILIZATION') expect(found.pauses).toBeGreaterThan(3);
  });
});
