import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Tensor } from '../../callbacks/types.js';
import type { BlockContents } from '../../callbacks/worker-messages.js';
import type { GenerationLoop } from '../../engine/generation-loop.js';
import type { ModelConfig } from '../../models/model-config.js';
import { i32 } from '../../tools/support/loop-harness.js';
import {
  BEST_INSTRUCTION_SET,
  cacheOf,
  engineOptions,
  type Format,
  nativeEngine,
  precisionOf,
  TestEngines,
} from '../../tools/support/test-engine.js';
import { NATIVE, RANKS, type TestExecutor, WASM } from '../support/executors.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { madeModelPath } from '../support/made-models.js';
import { spoilModel } from '../support/spoilt-model.js';
import { type Answer, type RunOptions, type RunResult, runAlone, runLoop, runOptions } from './run-loop.js';
import { type Arrival, randomNumbers, randomScenario } from './scenario.js';

const REQUESTS = 12;
const TOKENS_PER_BLOCK = 16;
const NUM_BLOCKS = 160;

const folder = temporaryFolder('skein-states');
const engines = new TestEngines();
afterAll(() => engines.remove());

interface OpenOptions {
  numStateSlots: number;
  maxSeqLen?: number;
  numBlocks?: number;
  numSecondaryBlocks?: number;
  on?: TestExecutor;
}

const open = (variant: string, format: Format, options: OpenOptions) =>
  openAt(madeModelPath(folder, variant), format, options);

async function openAt(
  path: string,
  format: Format,
  { on = NATIVE, maxSeqLen = 128, ...states }: OpenOptions,
) {
  const engine = await engines.get(path, precisionOf(format));
  const options = engineOptions(engine, {
    ...cacheOf(format),
    ...(on === WASM ? {} : { instructionSet: BEST_INSTRUCTION_SET }),
    threads: 2,
    maxSeqLen,
    tokensPerBlock: TOKENS_PER_BLOCK,
    numBlocks: NUM_BLOCKS + 256 / TOKENS_PER_BLOCK + 2 * REQUESTS,
    maxNumTokens: 256,
    maxNumSequences: 2 * REQUESTS,
    maxLogitRows: REQUESTS,
    ...states,
  });
  const executor = await on.open(nativeEngine(engine), options);
  return { executor, config: engine.manifest.config };
}

const scenario = (config: ModelConfig) =>
  randomScenario({
    ...config,
    requests: REQUESTS,
    maxPrompt: 70,
    maxNew: 30,
    arrivalSpan: 10,
    sharedPrompts: true,
    seed: 3,
  });

function expectSameAnswers(found: RunResult, alone: ReadonlyMap<bigint, Answer>): void {
  expect(found.answers.size).toBe(alone.size);
  for (const [requestId, expected] of alone) {
    const { error, tokens, logProbs } = found.answers.get(requestId)!;
    expect(error, `request ${requestId}`).toBe('');
    expect(expected.tokens.length).toBeGreaterThan(0);
    expect(tokens, `request ${requestId}`).toStrictEqual(expected.tokens);
    expect(logProbs, `request ${requestId}`).toStrictEqual(expected.logProbs);
  }
  expect(found.replayMismatches).toBe(0);
}

/** A request that draws greedily, with nothing but its prompt. */
function request(requestId: number, prompt: Int32Array, maxNew: number, iteration: number): Arrival {
  const inputs: Record<string, Tensor> = {
    input_ids: { shape: [1, prompt.length], data: prompt },
    request_output_len: i32(maxNew),
    random_seed: { shape: [1], data: BigUint64Array.of(1n) },
    return_log_probs: { shape: [1], data: Uint8Array.of(1) },
  };
  return { iteration, request: { requestId: BigInt(requestId), inputs } };
}

function drawPrompt(length: number, seed: number): Int32Array {
  const random = randomNumbers(seed);
  return Int32Array.from({ length }, () => 3 + Math.floor(random() * 40));
}

const MODELS: [string, Format, TestExecutor][] = [
  ['qwen3.5', 'f32', NATIVE],
  ['lfm2', 'int8', NATIVE],
  // Nothing is kept of a token: blocks without bytes.
  ['mamba2', 'f32', NATIVE],
  ['falcon-h1', 'bf16', NATIVE],
  ['granite4-h-moe', 'int8', NATIVE],
  ['nemotron-h', 'int4', NATIVE],
  ['nemotron-h-moe', 'bf16', NATIVE],
  ['qwen3-next', 'f32', WASM],
  // Two stages, each with the states of its layers.
  ['qwen3.5', 'int8', RANKS],
];

describe.each(MODELS.map(([variant, format, on]) => ({ variant, format, on, name: on.name })))(
  '$variant, $format, $name',
  ({ variant, format, on }) => {
    it('has fewer slots for states than requests: all answer as alone', async () => {
      const wide = await open(variant, format, { numStateSlots: 2 * REQUESTS, on });
      const arrivals = scenario(wide.config);
      const alone = runAlone(wide.executor, wide.config, arrivals);
      wide.executor.close();
      const runs: RunOptions[] = [
        runOptions('GUARANTEED_NO_EVICT', NUM_BLOCKS, 256, false),
        { ...runOptions('GUARANTEED_NO_EVICT', NUM_BLOCKS, 48, true), reuse: true },
        runOptions('MAX_UTILIZATION', NUM_BLOCKS, 256, false),
        { ...runOptions('MAX_UTILIZATION', 16, 48, true), reuse: true, overlap: true },
        { ...runOptions('GUARANTEED_NO_EVICT', NUM_BLOCKS, 256, false), modelType: 'V1' },
      ];
      // Half of them are for snapshots. With one for states every schedule runs, with three the two that differ the most.
      for (const [numStateSlots, schedules] of [
        [2, runs],
        [6, [runs[1]!, runs[3]!]],
      ] as const) {
        const { executor, config } = await open(variant, format, { numStateSlots, on });
        for (const options of schedules) {
          const found = runLoop(executor, config, arrivals, options);
          expectSameAnswers(found, alone);
          expect(found.greatestBatch).toBeLessThanOrEqual(numStateSlots / 2);
        }
        executor.close();
      }
    });

    it('answers as alone while the cache is reset', async () => {
      const { executor, config } = await open(variant, format, { numStateSlots: 12, on });
      const arrivals = scenario(config);
      const alone = runAlone(executor, config, arrivals);
      for (const options of [
        { ...runOptions('GUARANTEED_NO_EVICT', NUM_BLOCKS, 48, true), resetsEvery: 5 },
        { ...runOptions('MAX_UTILIZATION', 16, 48, true), overlap: true, resetsEvery: 1 },
      ])
        expectSameAnswers(runLoop(executor, config, arrivals, { ...options, reuse: true }), alone);
      executor.close();
    });

    it('computes what many prompts have in common for the first two of them', async () => {
      const { executor, config } = await open(variant, format, { numStateSlots: 40, on });
      const common = drawPrompt(80, 1);
      // One after the other, then the rest; and all of them at once.
      const at = (iterations: (i: number) => number) =>
        Array.from({ length: 64 }, (_, i) =>
          request(i + 1, Int32Array.of(...common, ...drawPrompt(20 + (i % 9), 2 + i)), 2, iterations(i)),
        );
      const arrivals = at((i) => (i < 2 ? 20 * i : 40));
      const alone = runAlone(executor, config, arrivals);
      const options = { ...runOptions('GUARANTEED_NO_EVICT', NUM_BLOCKS, 256, true), reuse: true };
      for (const all of [arrivals, at(() => 0)]) {
        const found = runLoop(executor, config, all, options);
        expectSameAnswers(found, alone);
        // The second one found the interval's snapshot: every second block has one.
        expect(found.reusedTokens).toBe(64 + 62 * 80);
      }
      executor.close();
    });
  },
);

/** A token whose embedding is not finite in the spoilt model. */
const SPOILT = 77;

/** Every fourth prompt holds the spoilt token in its middle; no other does. */
function withSpoilt(arrivals: readonly Arrival[]): Arrival[] {
  return arrivals.map(({ iteration, request }, index) => {
    const prompt = (request.inputs.input_ids!.data as Int32Array).map((token) =>
      token === SPOILT ? token + 1 : token,
    );
    if (index % 4 === 1) prompt[prompt.length >> 1] = SPOILT;
    const input_ids = { shape: [1, prompt.length], data: prompt };
    return { iteration, request: { ...request, inputs: { ...request.inputs, input_ids } } };
  });
}

describe('a request whose states are not finite', () => {
  it('fails alone, and leaves nothing of them to those that take its slot or begin alike', async () => {
    const intact = await open('qwen3.5', 'f32', { numStateSlots: 6 });
    const arrivals = withSpoilt(scenario(intact.config));
    const alone = runAlone(intact.executor, intact.config, arrivals);
    intact.executor.close();
    const spoil = { tensor: 'model.embed_tokens.weight', row: SPOILT, value: Number.NaN };
    const source = spoilModel(madeModelPath(folder, 'qwen3.5'), join(folder, 'spoilt'), spoil);
    const { executor, config } = await openAt(source, 'f32', { numStateSlots: 6 });
    for (const options of [
      { ...runOptions('GUARANTEED_NO_EVICT', NUM_BLOCKS, 256, false), reuse: true },
      { ...runOptions('MAX_UTILIZATION', 16, 48, true), reuse: true },
      { ...runOptions('GUARANTEED_NO_EVICT', NUM_BLOCKS, 256, false), modelType: 'V1' as const },
    ]) {
      const found = runLoop(executor, config, arrivals, options);
      let untouched = 0;
      for (const [index, { request }] of arrivals.entries()) {
        const { error, tokens, logProbs } = found.answers.get(request.requestId)!;
        const expected = alone.get(request.requestId)!;
        if (index % 4 === 1)
          expect(error).toMatch(/^The logits for token \d+ of this request are not finite/);
        else if (!expected.tokens.includes(SPOILT)) {
          untouched += 1;
          expect(error, `request ${request.requestId}`).toBe('');
          expect(tokens).toStrictEqual(expected.tokens);
          expect(logProbs).toStrictEqual(expected.logProbs);
        }
      }
      expect(untouched).toBeGreaterThan(4);
    }
    executor.close();
  });
});

it.each(['conv1d.weight', 'A_log'])(
  'a weight that is not finite fails each request, and the loop goes on: %s',
  async (part) => {
    const spoil = { tensor: `model.layers.1.linear_attn.${part}`, row: 3, value: Number.NaN };
    const source = spoilModel(madeModelPath(folder, 'qwen3.5'), join(folder, part), spoil);
    const { executor, config } = await openAt(source, 'f32', { numStateSlots: 6 });
    const options = { ...runOptions('MAX_UTILIZATION', 16, 48, true), reuse: true };
    const { answers } = runLoop(executor, config, scenario(config), options);
    executor.close();
    expect(answers.size).toBe(REQUESTS);
    for (const { error } of answers.values())
      expect(error).toMatch(/^The logits for token \d+ of this request are not finite/);
  },
);

describe('what another engine has computed', () => {
  const options = { ...runOptions('GUARANTEED_NO_EVICT', NUM_BLOCKS, 256, true), reuse: true };
  const prompt = drawPrompt(100, 4);
  const blocks = { tokens: prompt, salt: 0n };
  /** Full blocks before the prompt's last token, after which there is a snapshot. */
  const NUM_SHARED = 6;

  interface Parts {
    ofBlocks: Uint8Array;
    each: number;
    state: Uint8Array;
  }
  type Give = (loop: GenerationLoop, parts: Parts) => void;
  const spoilt = (bytes: Uint8Array) => bytes.slice().fill(255);
  const write = (
    loop: GenerationLoop,
    first: number,
    numBlocks: number,
    bytes: Uint8Array,
    state: Uint8Array | null,
  ) => loop.writeBlocks(blocks, { first, numBlocks, bytes, state });
  const GIVEN: [string, Give, number][] = [
    ['whole', (loop, { ofBlocks, state }) => write(loop, 0, NUM_SHARED, ofBlocks, state), NUM_SHARED],
    [
      'in parts, the states with the last one',
      (loop, { ofBlocks, each, state }) => {
        write(loop, 0, 4, ofBlocks.slice(0, 4 * each), null);
        write(loop, 4, NUM_SHARED - 4, ofBlocks.slice(4 * each), state);
      },
      NUM_SHARED,
    ],
    ['without its states', (loop, { ofBlocks }) => write(loop, 0, NUM_SHARED, ofBlocks, null), 0],
    [
      'with states that are not finite',
      (loop, { ofBlocks, state }) => write(loop, 0, NUM_SHARED, ofBlocks, spoilt(state)),
      0,
    ],
    [
      'with too few states',
      (loop, { ofBlocks, state }) => write(loop, 0, NUM_SHARED, ofBlocks, state.slice(4)),
      0,
    ],
    [
      'with blocks that are not finite',
      (loop, { ofBlocks, state }) => write(loop, 0, NUM_SHARED, spoilt(ofBlocks), state),
      0,
    ],
  ];

  describe.each([NATIVE, WASM])('on $name', (on) => {
    it('are the states alone where no layer attends', async () => {
      const { executor: from, config } = await open('mamba2', 'f32', { numStateSlots: 6, on });
      const { executor: to } = await open('mamba2', 'f32', { numStateSlots: 6, on });
      const { bytesPerSlot } = to.blockAccess!.states!;
      const arrivals = [request(1, prompt, 8, 0)];
      let read: BlockContents | null = null;
      const after = (loop: GenerationLoop) => {
        read = loop.readBlocks(blocks, bytesPerSlot);
        expect(loop.readBlocks(blocks, bytesPerSlot - 1).numBlocks).toBe(0);
      };
      const { answers: alone } = runLoop(from, config, arrivals, { ...options, after });
      from.close();
      const { numBlocks, bytes } = read!;
      expect([numBlocks, bytes.length]).toEqual([NUM_SHARED, bytesPerSlot]);
      const before = (loop: GenerationLoop) => {
        write(loop, 0, numBlocks, new Uint8Array(0), spoilt(bytes));
        expect(loop.countBlocks(blocks)).toBe(0);
        write(loop, 0, numBlocks, new Uint8Array(0), bytes);
        expect(loop.countBlocks(blocks)).toBe(NUM_SHARED);
      };
      const found = runLoop(to, config, arrivals, { ...options, before });
      to.close();
      expectSameAnswers(found, alone);
      expect(found.reusedTokens).toBe(NUM_SHARED * TOKENS_PER_BLOCK);
    });

    it.each(GIVEN)('is taken over %s: the answer is the same', async (_, give, numUsed) => {
      const { executor: from, config } = await open('qwen3.5', 'f32', { numStateSlots: 6, on });
      const { executor: to } = await open('qwen3.5', 'f32', { numStateSlots: 6, on });
      const { bytesPerBlock: each, states } = to.blockAccess!;
      const arrivals = [request(1, prompt, 8, 0)];
      let bytes = new Uint8Array(0);
      const after = (loop: GenerationLoop) => {
        bytes = loop.readBlocks(blocks, 1e9).bytes;
        // Nothing is of use without the states.
        expect(loop.readBlocks(blocks, bytes.length - 1).bytes).toHaveLength(4 * each + states!.bytesPerSlot);
        expect(loop.readBlocks(blocks, states!.bytesPerSlot + each).bytes).toHaveLength(0);
      };
      const { answers: alone } = runLoop(from, config, arrivals, { ...options, after });
      from.close();
      expect(bytes).toHaveLength(NUM_SHARED * each + states!.bytesPerSlot);
      const end = NUM_SHARED * each;
      const before = (loop: GenerationLoop) => {
        give(loop, { ofBlocks: bytes.subarray(0, end), each, state: bytes.subarray(end) });
        expect(loop.countBlocks(blocks)).toBe(numUsed);
      };
      const found = runLoop(to, config, arrivals, { ...options, before });
      to.close();
      expectSameAnswers(found, alone);
      expect(found.reusedTokens).toBe(numUsed * TOKENS_PER_BLOCK);
    });
  });
});

describe('blocks that are swapped out', () => {
  it('keep the states behind them', async () => {
    const { executor, config } = await open('qwen3.5', 'f32', { numStateSlots: 40, numSecondaryBlocks: 40 });
    const first = request(1, drawPrompt(100, 1), 4, 0);
    // Others take the whole pool meanwhile.
    const others = [2, 3, 4].map((id) => request(id, drawPrompt(100, id), 20, 10 * id));
    const again = request(
      5,
      Int32Array.of(...(first.request.inputs.input_ids!.data as Int32Array), 7),
      6,
      100,
    );
    const arrivals = [first, ...others, again];
    const alone = runAlone(executor, config, arrivals);
    const options = { ...runOptions('GUARANTEED_NO_EVICT', 9, 256, true), reuse: true };
    const swapped = runLoop(executor, config, arrivals, { ...options, numSecondaryBlocks: 40 });
    const lost = runLoop(executor, config, arrivals, options);
    executor.close();
    expectSameAnswers(swapped, alone);
    expectSameAnswers(lost, alone);
    expect(swapped.swappedInBlocks).toBe(6);
    expect([swapped.reusedTokens, lost.reusedTokens]).toEqual([96, 0]);
  });
});

describe('a long chat', () => {
  it('of 8k tokens computes less than 64 tokens in its second turn', async () => {
    const numBlocks = 600;
    const long = { numStateSlots: 16, maxSeqLen: 8448, numBlocks: numBlocks + 60 };
    const { executor, config } = await open('qwen3.5', 'f32', long);
    const first = request(1, drawPrompt(8192, 1), 20, 0);
    const options = { ...runOptions('GUARANTEED_NO_EVICT', numBlocks, 256, true), reuse: true };
    const answer = runLoop(executor, config, [first], options).answers.get(1n)!;
    const turn = Int32Array.of(
      ...(first.request.inputs.input_ids!.data as Int32Array),
      ...answer.tokens,
      5,
      6,
      7,
    );
    const second = request(2, turn, 6, 100);
    const { answers: alone } = runLoop(executor, config, [second], { ...options, reuse: false });
    const both = runLoop(executor, config, [first, second], options);
    executor.close();
    both.answers.delete(1n);
    expectSameAnswers(both, alone);
    expect(turn.length - both.reusedTokens).toBeLessThan(64);
  });
});
