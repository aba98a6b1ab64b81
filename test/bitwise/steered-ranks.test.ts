import { afterAll, afterEach, expect, it } from 'vitest';
import type { Tensor } from '../../callbacks/types.js';
import { NativeExecutor } from '../../engine/executors/native/native-executor.js';
import type { GroupShape } from '../../engine/sharding/rank-shape.js';
import { f32, i32, text } from '../../tools/support/loop-harness.js';
import { engineOptions, nativeEngine, TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';
import { InlineGuideThread } from '../support/inline-guide-thread.js';
import { RandomDrafts } from '../support/random-drafts.js';
import { TestGroups } from '../support/rank-groups.js';
import { type RunOptions, runAlone, runLoop } from './run-loop.js';
import { type Arrival, randomScenario } from './scenario.js';

const REQUESTS = 12;
const DRAFT_ROWS = 24;
const POOL = 160;
const SEQUENCES = 2;

const engines = new TestEngines();
const groups = new TestGroups();
afterEach(() => groups.close());
afterAll(() => engines.remove());

const SHAPES: Partial<GroupShape>[] = [
  { tensorParallelSize: 2 },
  { pipelineParallelSize: 2 },
  { tensorParallelSize: 2, pipelineParallelSize: 2 },
];
const RUN: RunOptions = {
  schedulerPolicy: 'MAX_UTILIZATION',
  numBlocks: 30,
  maxNumTokens: 64,
  chunked: true,
  reuse: true,
  maxBeamWidth: SEQUENCES,
};

async function open(shape: Partial<GroupShape>) {
  const engine = await engines.get(tinyModelPath('gqa'), 'bf16');
  const options = engineOptions(engine, {
    threads: 1,
    maxSeqLen: 160,
    tokensPerBlock: 16,
    numBlocks: POOL,
    maxNumTokens: 256,
    maxNumSequences: 2 * REQUESTS,
    maxLogitRows: 2 * REQUESTS + DRAFT_ROWS,
  });
  const { executor } = await groups.open(nativeEngine(engine), shape, options);
  return {
    executor,
    alone: new NativeExecutor(nativeEngine(engine), options),
    config: engine.manifest.config,
  };
}

const crowd = (vocabSize: number): Arrival[] =>
  randomScenario({
    vocabSize,
    requests: REQUESTS,
    maxPrompt: 60,
    maxNew: 40,
    arrivalSpan: 10,
    sharedPrompts: true,
    seed: 6,
  });

it.each(SHAPES)('drafts, right and wrong ones, change no bit on %o', async (shape) => {
  const { executor, alone, config } = await open(shape);
  const arrivals = crowd(config.vocabSize);
  const expected = runAlone(alone, config, arrivals);
  const promptOf = (id: bigint) => arrivals[Number(id) - 1]!.request.inputs.input_ids!.data as Int32Array;
  const policy = new RandomDrafts(17, config.vocabSize, (id) => [
    ...promptOf(id),
    ...expected.get(id)!.tokens,
  ]);
  const { answers } = runLoop(executor, config, arrivals, { ...RUN, drafts: { policy, rows: DRAFT_ROWS } });
  expect(answers).toEqual(expected);
  expect(policy.accepted).toBeGreaterThan(20);
  expect(policy.drafted - policy.accepted).toBeGreaterThan(20);
  alone.close();
});

const FIRST_CHARACTER = 40;
const bytesOf = (vocabSize: number) =>
  Array.from({ length: vocabSize }, (_, token) =>
    token < FIRST_CHARACTER ? null : Uint8Array.of(32 + ((token - FIRST_CHARACTER) % 95)),
  );

function guided(id: number, type: string, guide: string, more: Record<string, Tensor> = {}): Arrival {
  const inputs = {
    input_ids: { shape: [1, 3], data: Int32Array.of(5 + id, 6, 7) },
    request_output_len: i32(40),
    end_id: i32(2),
    temperature: f32(1),
    random_seed: { shape: [1], data: BigUint64Array.of(BigInt(id)) },
    guided_decoding_guide_type: text(type),
    guided_decoding_guide: text(guide),
    ...more,
  };
  return { iteration: 3, request: { requestId: BigInt(id), inputs } };
}

it.each(SHAPES)('guides read the same logits on %o', async (shape) => {
  const { executor, alone, config } = await open(shape);
  const arrivals = [
    ...crowd(config.vocabSize),
    guided(201, 'regex', '[0-9]{20,40}'),
    guided(202, 'choice', '["yes indeed", "no"]', { num_return_sequences: i32(SEQUENCES) }),
    guided(203, 'ebnf_grammar', 'root ::= "a" root "b" | "c"'),
  ];
  const guideThread = () => new InlineGuideThread(bytesOf(config.vocabSize));
  const expected = runAlone(alone, config, arrivals, {
    guideThread: guideThread(),
    maxBeamWidth: SEQUENCES,
  });
  const { answers } = runLoop(executor, config, arrivals, { ...RUN, guideThread: guideThread() });
  expect(answers).toEqual(expected);
  expect(expected.get(201n)!.tokens.length).toBeGreaterThan(15);
  for (const { error } of expected.values()) expect(error).toBe('');
  alone.close();
});
