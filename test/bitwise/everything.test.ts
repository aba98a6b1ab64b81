import { afterAll, describe, expect, it } from 'vitest';
import { openExecutor, TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';
import { everything, postProcessors } from './everything.js';
import { type Answer, digestOf, type RunOptions, runAlone, runLoop } from './run-loop.js';

const REQUESTS = 32;
const MAX_SEQ_LEN = 160;
const SMALL_POOL = 24;
const WIDE_POOL = 256;
/** After the pool: what V1 pads with. */
const PADDING_BLOCKS = 512 / 16 + 2 * REQUESTS;

const engines = new TestEngines();
afterAll(() => engines.remove());

async function openTiny(threads: number) {
  const engine = await engines.get(tinyModelPath('gqa'), 'bf16');
  const executor = openExecutor(engine, {
    threads,
    maxSeqLen: MAX_SEQ_LEN,
    tokensPerBlock: 16,
    numBlocks: WIDE_POOL + PADDING_BLOCKS,
    maxNumTokens: 512,
    maxNumSequences: 2 * REQUESTS,
    maxLogitRows: REQUESTS,
  });
  return { executor, config: engine.manifest.config };
}

function run(options: Partial<RunOptions>): RunOptions {
  const usual = { numBlocks: WIDE_POOL, maxNumTokens: 512, chunked: false, postProcessors };
  return { schedulerPolicy: 'GUARANTEED_NO_EVICT', ...usual, ...options };
}
const PAUSED = { schedulerPolicy: 'MAX_UTILIZATION', numBlocks: SMALL_POOL } as const;

const RUNS: [string, number, RunOptions][] = [
  ['together', 1, run({})],
  ['paused and chunked', 2, run({ ...PAUSED, maxNumTokens: 64, chunked: true })],
  [
    'paused and chunked, with block reuse',
    2,
    run({ ...PAUSED, maxNumTokens: 64, chunked: true, reuse: true }),
  ],
  ['contexts and generation apart, with block reuse', 8, run({ modelType: 'InflightBatching', reuse: true })],
  ['two micro-batches in turns, paused, with block reuse', 2, run({ ...PAUSED, overlap: true, reuse: true })],
  ['padded batches in lockstep', 2, run({ modelType: 'V1' })],
];

/** What each gets alone, with post-processors and without: it depends neither on threads nor on schedules. */
const aloneOf = new Map<string, Map<bigint, Answer>>();

describe('a crowd of every parameter there is', () => {
  it.each(RUNS)('%s: each answers as alone, bit for bit', async (_, threads, options) => {
    const { executor, config } = await openTiny(threads);
    const arrivals = everything(config, { requests: REQUESTS, processes: options.modelType !== 'V1' });
    const key = String(options.modelType !== 'V1');
    const alone = aloneOf.get(key) ?? runAlone(executor, config, arrivals, { postProcessors });
    aloneOf.set(key, alone);
    const { answers, pauses, replayMismatches, reusedTokens, overlapped } = runLoop(
      executor,
      config,
      arrivals,
      options,
    );
    executor.close();
    for (const { request } of arrivals) {
      const { requestId } = request;
      const found = answers.get(requestId)!;
      expect(found.error, `request ${requestId}`).toBe('');
      expect(digestOf(found), `request ${requestId}`).toStrictEqual(digestOf(alone.get(requestId)!));
      expect(found.tokens.every((token) => token < config.vocabSize)).toBe(true);
      const numTop = Number(request.inputs.top_log_probs?.data[0] ?? 0);
      expect(found.topTokens).toHaveLength(numTop * found.tokens.length);
    }
    expect(replayMismatches).toBe(0);
    if (options.schedulerPolicy === 'MAX_UTILIZATION') expect(pauses).toBeGreaterThan(5);
    if (options.reuse) expect(reusedTokens).toBeGreaterThan(50);
    if (options.overlap) expect(overlapped).toBeGreaterThan(20);
  });
});
