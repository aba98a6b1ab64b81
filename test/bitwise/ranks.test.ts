import { afterAll, afterEach, expect, it } from 'vitest';
import { NativeExecutor } from '../../engine/executors/native/native-executor.js';
import type { GroupShape } from '../../engine/sharding/rank-shape.js';
import { readGolden } from '../../tools/support/goldens.js';
import {
  cacheOf,
  engineOptions,
  type Format,
  INT8_CACHE,
  nativeEngine,
  precisionOf,
  TestEngines,
  type TestExecutorOptions,
  tinyModelPath,
} from '../../tools/support/test-engine.js';
import { type BeamGolden, compareBeams, MAX_BEAM_WIDTH } from '../reference/beam-goldens.js';
import { TestGroups } from '../support/rank-groups.js';
import { everything, postProcessors } from './everything.js';
import { digestOf, type RunOptions, runAlone, runLoop } from './run-loop.js';

const REQUESTS = 16;
const MAX_SEQ_LEN = 160;
const SMALL_POOL = 24;
const WIDE_POOL = 160;
const SECONDARY_BLOCKS = 20;
/** After the pool: what V1 pads with. */
const PADDING_BLOCKS = 256 / 16 + 2 * REQUESTS;

const engines = new TestEngines();
const groups = new TestGroups();
afterEach(() => groups.close());
afterAll(() => engines.remove());

async function open(format: Format, shape: Partial<GroupShape>, changes: TestExecutorOptions = {}) {
  const engine = await engines.get(tinyModelPath('gqa'), precisionOf(format));
  const options = engineOptions(engine, {
    threads: 1,
    maxSeqLen: MAX_SEQ_LEN,
    tokensPerBlock: 16,
    numBlocks: WIDE_POOL + PADDING_BLOCKS,
    numSecondaryBlocks: SECONDARY_BLOCKS,
    maxNumTokens: 256,
    maxNumSequences: 2 * REQUESTS,
    maxLogitRows: REQUESTS,
    ...cacheOf(format),
    ...changes,
  });
  const { executor } = await groups.open(nativeEngine(engine), shape, options);
  const alone = new NativeExecutor(nativeEngine(engine), options);
  return { executor, alone, config: engine.manifest.config };
}

function run(options: Partial<RunOptions>): RunOptions {
  const usual = { numBlocks: WIDE_POOL, maxNumTokens: 256, chunked: false, postProcessors };
  return { schedulerPolicy: 'GUARANTEED_NO_EVICT', ...usual, ...options };
}
const PAUSED = {
  schedulerPolicy: 'MAX_UTILIZATION',
  numBlocks: SMALL_POOL,
  maxNumTokens: 64,
  chunked: true,
} as const;
const TWO = { tensorParallelSize: 2 };
const STAGES = { pipelineParallelSize: 2 };

const RUNS: [string, Format, Partial<GroupShape>, RunOptions][] = [
  ['together', 'f32', { tensorParallelSize: 3 }, run({})],
  ['paused, with block reuse', 'int8', TWO, run({ ...PAUSED, reuse: true })],
  ['paused, with block reuse', 'bf16', { ...TWO, ...STAGES }, run({ ...PAUSED, reuse: true })],
  [
    'with blocks that are swapped out',
    INT8_CACHE,
    STAGES,
    run({ numBlocks: SMALL_POOL, reuse: true, numSecondaryBlocks: SECONDARY_BLOCKS }),
  ],
  ['in micro-batches in turns, paused', 'int4', TWO, run({ ...PAUSED, overlap: true, reuse: true })],
  ['in micro-batches in turns', 'f32', STAGES, run({ overlap: true })],
  ['padded', 'int8', { ...TWO, ...STAGES }, run({ modelType: 'V1' })],
];

it.each(RUNS)(
  'a crowd of every parameter %s, in %s on %o, answers as one process does',
  async (...[name, format, shape, options]) => {
    const { executor, alone, config } = await open(format, shape);
    const arrivals = everything(config, { requests: REQUESTS, processes: options.modelType !== 'V1' });
    const expected = runAlone(alone, config, arrivals, { postProcessors });
    const { answers, pauses, replayMismatches, reusedTokens, swappedInBlocks, overlapped } = runLoop(
      executor,
      config,
      arrivals,
      options,
    );
    alone.close();
    for (const { requestId } of arrivals.map(({ request }) => request)) {
      expect(answers.get(requestId)!.error, `request ${requestId}`).toBe('');
      const found = digestOf(answers.get(requestId)!);
      expect(found, `request ${requestId}`).toStrictEqual(digestOf(expected.get(requestId)!));
    }
    expect(replayMismatches).toBe(0);
    if (name.includes('paused')) expect(pauses).toBeGreaterThan(1);
    if (name.includes('reuse')) expect(reusedTokens).toBeGreaterThan(10);
    if (name.includes('swapped')) expect(swappedInBlocks).toBeGreaterThan(0);
    if (options.overlap) expect(overlapped).toBeGreaterThan(10);
  },
);

it.each([TWO, { tensorParallelSize: 3 }, STAGES, { ...TWO, ...STAGES }])(
  'beams on %o are those of Hugging Face transformers',
  async (shape) => {
    const goldens = readGolden<BeamGolden>('beams').filter(({ model }) => model === 'tiny-gqa');
    const { executor, alone, config } = await open('f32', shape, {
      maxLogitRows: 4 * MAX_BEAM_WIDTH,
      maxNumSequences: 4 * MAX_BEAM_WIDTH,
      maxSeqLen: 80,
      numBlocks: 120,
    });
    compareBeams(executor, config, goldens.slice(0, 8));
    alone.close();
  },
);
