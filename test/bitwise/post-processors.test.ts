import { afterAll, describe, expect, it } from 'vitest';
import type { LogitsPostProcessor } from '../../callbacks/logits-post-processor.js';
import { PostProcessors } from '../../engine/decoding/post-processors.js';
import { text } from '../../tools/support/loop-harness.js';
import { openExecutor, TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';
import { type Answer, digestOf, type RunOptions, runAlone, runLoop } from './run-loop.js';
import { type Arrival, randomScenario } from './scenario.js';

const REQUESTS = 24;
const MAX_SEQ_LEN = 160;

const engines = new TestEngines();
afterAll(() => engines.remove());

/** Writes to the view: what was generated last becomes less likely. */
const dampen: LogitsPostProcessor = (_, logits, [tokens]) => {
  for (const token of tokens!.subarray(-8)) logits[token]! -= 1.5;
};
/** Returns another array: every other token is out, which ones depends on the length so far. */
const halve: LogitsPostProcessor = (_, logits, [tokens]) =>
  logits.map((logit, token) => (token % 2 === tokens!.length % 2 ? logit : -Infinity));

const postProcessors = new PostProcessors(new Map(Object.entries({ dampen, halve })), (ids, logits) => {
  for (const [i, view] of logits.entries()) view[Number(ids[i]) % view.length]! += 4;
});
const NAMES = ['dampen', 'halve', 'batched'];

async function openTiny(threads: number) {
  const engine = await engines.get(tinyModelPath('gqa'), 'bf16');
  const executor = openExecutor(engine, {
    threads,
    maxSeqLen: MAX_SEQ_LEN,
    tokensPerBlock: 16,
    numBlocks: 256,
    maxNumTokens: 512,
    maxNumSequences: REQUESTS,
    maxLogitRows: REQUESTS,
  });
  return { executor, config: engine.manifest.config };
}

function scenario(vocabSize: number): Arrival[] {
  const limits = { requests: REQUESTS, maxPrompt: 40, maxNew: 100, arrivalSpan: 30, seed: 11 };
  return randomScenario({ vocabSize, returnsLogits: true, ...limits });
}

/** Every second request names one of the post-processors. */
function withNames(arrivals: readonly Arrival[]): Arrival[] {
  return arrivals.map((arrival, index) => {
    if (index % 2 === 0) return arrival;
    const { requestId, inputs } = arrival.request;
    const name = text(NAMES[(index >> 1) % NAMES.length]!);
    return { ...arrival, request: { requestId, inputs: { ...inputs, logits_post_processor_name: name } } };
  });
}

const RUNS: [string, number, RunOptions][] = [
  ['together', 2, run({ numBlocks: 256 })],
  ['paused and chunked', 1, run({ schedulerPolicy: 'MAX_UTILIZATION', maxNumTokens: 64, chunked: true })],
  ['contexts and generation apart', 2, run({ modelType: 'InflightBatching', numBlocks: 256 })],
  ['two micro-batches in turns, paused', 2, run({ schedulerPolicy: 'MAX_UTILIZATION', overlap: true })],
];

function run(options: Partial<RunOptions>): RunOptions {
  const usual = { numBlocks: 24, maxNumTokens: 512, chunked: false, postProcessors };
  return { schedulerPolicy: 'GUARANTEED_NO_EVICT', ...usual, ...options };
}

function expectSame(found: Map<bigint, Answer>, expected: Map<bigint, Answer>, ids: readonly bigint[]): void {
  for (const id of ids)
    expect(digestOf(found.get(id)!), `request ${id}`).toStrictEqual(digestOf(expected.get(id)!));
}

describe('requests with and without logits post-processors in one batch', () => {
  /** What each gets alone, which does not depend on the schedule. */
  let expected: Record<'alone' | 'unprocessed', Map<bigint, Answer>> | null = null;

  it.each(RUNS)(
    '%s: each answers as alone, and the others as if there were none',
    async (_, threads, options) => {
      const { executor, config } = await openTiny(threads);
      const plain = scenario(config.vocabSize);
      const arrivals = withNames(plain);
      const ids = arrivals.map(({ request }) => request.requestId);
      expected ??= {
        alone: runAlone(executor, config, arrivals, { postProcessors }),
        unprocessed: runAlone(executor, config, plain),
      };
      const { alone, unprocessed } = expected;
      const { answers, replayMismatches, pauses, overlapped } = runLoop(executor, config, arrivals, options);
      executor.close();
      expect([...answers.values()].map(({ error }) => error)).toEqual(ids.map(() => ''));
      expectSame(answers, alone, ids);
      expectSame(
        answers,
        unprocessed,
        ids.filter((_, index) => index % 2 === 0),
      );
      const changed = ids.filter((id) => `${answers.get(id)!.tokens}` !== `${unprocessed.get(id)!.tokens}`);
      expect(changed.length).toBeGreaterThan(8);
      expect(replayMismatches).toBe(0);
      if (options.schedulerPolicy === 'MAX_UTILIZATION') expect(pauses).toBeGreaterThan(3);
      if (options.overlap) expect(overlapped).toBeGreaterThan(20);
    },
  );

  it('see the raw logits in place: what they write is neither returned nor seen by the next step', async () => {
    const { executor, config } = await openTiny(1);
    const seen: Float32Array[] = [];
    const spoil: LogitsPostProcessor = (_, logits) => {
      seen.push(logits.slice());
      expect(logits.length).toBe(config.vocabSize);
      logits.fill(-Infinity);
      logits[7] = 0;
    };
    const [arrival] = scenario(config.vocabSize);
    const { requestId, inputs } = arrival!.request;
    const asked = { ...inputs, return_generation_logits: { shape: [1], data: Uint8Array.of(1) } };
    const request = { requestId, inputs: { ...asked, logits_post_processor_name: text('spoil') } };
    const options = run({ numBlocks: 256, postProcessors: new PostProcessors(new Map([['spoil', spoil]])) });
    const { answers } = runLoop(executor, config, [{ iteration: 0, request }], options);
    executor.close();
    const { tokens, generationLogits, logProbs } = answers.get(requestId)!;
    expect(new Set(tokens)).toEqual(new Set([7]));
    expect(new Set(logProbs)).toEqual(new Set([0]));
    expect(generationLogits).toEqual(seen.flatMap((row) => [...row]));
  });
});
