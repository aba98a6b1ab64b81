import { afterAll, expect, it } from 'vitest';
import { encodeWordList } from '../../callbacks/stop-words.js';
import type { Tensor } from '../../callbacks/types.js';
import { vocabularyBytes } from '../../engine/guided/vocabulary.js';
import { Speculation } from '../../engine/speculation/speculation.js';
import { f32, i32, text } from '../../tools/support/loop-harness.js';
import { openExecutor, TestEngines } from '../../tools/support/test-engine.js';
import { InlineGuideThread } from '../support/inline-guide-thread.js';
import { type Cut, cutOf, firstDifference, outputOf, uncutOf } from '../support/known-outputs.js';
import { describeWithTestModel, testModelPath } from '../support/test-model.js';
import { type RunOptions, runLoop } from './run-loop.js';
import { type Arrival, randomNumbers, randomScenario } from './scenario.js';

const REQUESTS = 10;
const DRAFT_ROWS = 8;
const END_ID = 2;
const SCHEMA = JSON.stringify({
  type: 'object',
  properties: { name: { type: 'string', maxLength: 12 }, age: { type: 'integer', minimum: 0, maximum: 120 } },
  required: ['name', 'age'],
  additionalProperties: false,
});

const engines = new TestEngines();
afterAll(() => engines.remove());

/** Every third with several sequences, and every fourth with a guide: some have both. */
function crowd(vocabSize: number): Arrival[] {
  const limits = { requests: REQUESTS, maxPrompt: 24, maxNew: 30, arrivalSpan: 0, seed: 8 };
  return randomScenario({ vocabSize, ...limits }).map((arrival, i) => {
    const several: Record<string, Tensor> =
      i % 3 === 0 ? { num_return_sequences: i32(3), temperature: f32(0.9) } : {};
    const guide: Record<string, Tensor> =
      i % 4 === 0
        ? {
            guided_decoding_guide_type: text('json_schema'),
            guided_decoding_guide: text(SCHEMA),
            end_id: i32(END_ID),
            min_length: i32(0),
            stop_words_list: encodeWordList([]),
          }
        : {};
    const { request } = arrival;
    return { ...arrival, request: { ...request, inputs: { ...request.inputs, ...several, ...guide } } };
  });
}

describeWithTestModel('SmolLM2', () => {
  it('goes on with every request in another engine behind any of its tokens', async () => {
    const engine = await engines.get(testModelPath!, 'bf16');
    const { config } = engine.manifest;
    const bytes = await vocabularyBytes(engine.directory, config.vocabSize);
    const guideThread = new InlineGuideThread(bytes);
    const open = (threads: number) =>
      openExecutor(engine, {
        threads,
        maxSeqLen: 64,
        tokensPerBlock: 16,
        numBlocks: 200,
        maxNumTokens: 256,
        maxNumSequences: 48,
        maxLogitRows: 48 + DRAFT_ROWS,
      });
    const options = { maxBeamWidth: 3, guideThread };
    const wide: RunOptions = {
      schedulerPolicy: 'GUARANTEED_NO_EVICT',
      numBlocks: 200,
      maxNumTokens: 256,
      chunked: false,
      ...options,
    };
    const arrivals = crowd(config.vocabSize);
    const first = open(1);
    const { answers, finishReasons } = runLoop(first, config, arrivals, wide);
    first.close();
    expect([...answers.values()].filter(({ error }) => error !== '')).toEqual([]);
    const policy = new Speculation({ usesNgrams: true, maxDraftLen: 4, maxRows: 48 + DRAFT_ROWS });
    const paused: RunOptions = {
      ...wide,
      schedulerPolicy: 'MAX_UTILIZATION',
      numBlocks: 13,
      maxNumTokens: 48,
      chunked: true,
      reuse: true,
      drafts: { policy, rows: DRAFT_ROWS },
    };
    const random = randomNumbers(3);
    const elsewhere = open(2);
    for (const run of [wide, paused]) {
      const cuts = arrivals.map(({ request }): Cut => {
        const uncut = uncutOf(request, answers, finishReasons);
        const places = uncut.answers.map((_, i) => Math.floor(random() * (outputOf(uncut, i).length + 1)));
        return cutOf(uncut, request.requestId, places, random() < 0.5);
      });
      const again = cuts.map(({ request }) => ({ iteration: 0, request }));
      const result = runLoop(elsewhere, config, again, run);
      const differences = cuts.map((cut) => firstDifference(cut, result, config.vocabSize));
      expect(differences.filter((difference) => difference !== null)).toEqual([]);
      expect(result.replayMismatches).toBe(0);
      if (run === paused) expect(result.pauses).toBeGreaterThan(2);
    }
    elsewhere.close();
  });
});
