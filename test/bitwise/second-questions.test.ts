import { afterAll, describe, expect, it } from 'vitest';
import type { InferenceRequest } from '../../callbacks/types.js';
import type { Executor } from '../../engine/executors/executor.js';
import { engineOptions, nativeEngine, TestEngines } from '../../tools/support/test-engine.js';
import { NATIVE, type TestExecutor, WASM } from '../support/executors.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { madeTower, writeMadeTower } from '../support/made-towers.js';
import { runAlone, runLoop, runOptions } from './run-loop.js';
import { type Arrival, randomNumbers } from './scenario.js';

const VOCABULARY = 128;
const TOKENS_PER_BLOCK = 8;
const BEFORE = [3, 5, 7, 9, 11];
const PICTURE = 24;
/** Where the picture ends: within the fourth block. */
const END = BEFORE.length + PICTURE;
const NUM_BLOCKS = 64;

const engines = new TestEngines();
const folder = temporaryFolder('skein-second-questions');
afterAll(() => engines.remove());

/** A question on a picture, whose ids are those of a hash, and its rows. */
function question(
  requestId: bigint,
  picture: number,
  text: readonly number[],
  newTokens: number,
  width: number,
): Arrival {
  const random = randomNumbers(picture);
  const ids = Array.from({ length: PICTURE }, () => VOCABULARY + Math.floor(random() * 2 ** 30));
  const prompt = [...BEFORE, ...ids, ...text];
  const rows = Float32Array.from({ length: PICTURE * width }, () => 4 * random() - 2);
  const inputs: InferenceRequest['inputs'] = {
    input_ids: { shape: [1, prompt.length], data: Int32Array.from(prompt) },
    request_output_len: { shape: [1], data: Int32Array.of(newTokens) },
    random_seed: { shape: [1], data: BigUint64Array.of(requestId) },
    return_log_probs: { shape: [1], data: Uint8Array.of(1) },
    prompt_embedding_table: { shape: [PICTURE, width], data: rows },
    image_grids: { shape: [1, 3], data: Int32Array.of(BEFORE.length, 4, PICTURE / 4) },
  };
  return { iteration: 10 * Number(requestId), request: { requestId, inputs } };
}

/**
 * The tokens that the second of these questions finds in the cache, which has the first one's. Its answer is the one that it has
 * alone.
 */
async function foundBySecond(
  name: string,
  on: TestExecutor,
  ask: (width: number) => [first: Arrival, second: Arrival],
): Promise<number> {
  const engine = await engines.get(writeMadeTower(folder, madeTower(name)), 'f32');
  const { config } = engine.manifest;
  const executor: Executor = await on.open(
    nativeEngine(engine),
    engineOptions(engine, {
      ...{ threads: 1, maxSeqLen: 64, tokensPerBlock: TOKENS_PER_BLOCK, numBlocks: NUM_BLOCKS },
      ...{ maxNumTokens: 128, maxNumSequences: 4, maxLogitRows: 4 },
      ...(engine.plan.states && { numStateSlots: 32 }),
    }),
  );
  const questions = ask(executor.promptRowWidth);
  const options = { ...runOptions('GUARANTEED_NO_EVICT', NUM_BLOCKS, 128, true), reuse: true };
  const { answers, reusedTokens } = runLoop(executor, config, questions, options);
  const alone = runAlone(executor, config, questions);
  executor.close();
  for (const { error } of alone.values()) expect(error).toBe('');
  expect(answers).toEqual(alone);
  return reusedTokens;
}

const SHORT = [20];
const LONG = [20, 21, 22, 23, 24, 25, 26, 27, 28, 29];
const OTHER = [30, 31, 32, 33];

describe.each([
  { name: 'qwen3-vl', on: NATIVE },
  { name: 'smolvlm', on: NATIVE },
  { name: 'qwen3.5', on: NATIVE },
  { name: 'qwen3-vl', on: WASM },
  { name: 'qwen3.5', on: WASM },
])('on $on.name, of $name a second question on a picture', ({ name, on }) => {
  it('finds the full blocks of it where the first one was short', async () => {
    const found = await foundBySecond(name, on, (width) => [
      question(1n, 7, SHORT, 1, width),
      question(2n, 7, OTHER, 6, width),
    ]);
    expect(found).toBe(24);
  });

  it('finds all of it where the first one filled its last block', async () => {
    const found = await foundBySecond(name, on, (width) => [
      question(1n, 7, LONG, 6, width),
      question(2n, 7, OTHER, 6, width),
    ]);
    // States are known only after full blocks.
    expect(found).toBe(name === 'qwen3.5' ? 24 : END);
  });

  it('finds nothing of another picture', async () => {
    const found = await foundBySecond(name, on, (width) => [
      question(1n, 7, LONG, 6, width),
      question(2n, 8, LONG, 6, width),
    ]);
    expect(found).toBe(name === 'qwen3.5' ? 0 : BEFORE.length);
  });
});

describe('of a model whose pictures attend both ways a second question on a picture', () => {
  it('finds it whole or not at all', async () => {
    const short = await foundBySecond('gemma3', NATIVE, (width) => [
      question(1n, 7, SHORT, 1, width),
      question(2n, 7, OTHER, 6, width),
    ]);
    expect(short).toBe(BEFORE.length);
    const long = await foundBySecond('gemma3', NATIVE, (width) => [
      question(1n, 7, LONG, 6, width),
      question(2n, 7, OTHER, 6, width),
    ]);
    expect(long).toBe(END);
  });
});
