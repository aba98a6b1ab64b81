import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Executor } from '../../../../engine/executors/executor.js';
import { PortableExecutor } from '../../../../engine/executors/portable/portable-executor.js';
import { loadTensorFlow } from '../../../../engine/executors/tensorflow/load-tensorflow.js';
import { openTensorFlowRunner } from '../../../../engine/executors/tensorflow/open-tensorflow-runner.js';
import {
  engineOptions,
  nativeEngine,
  TestEngines,
  tinyModelPath,
} from '../../../../tools/support/test-engine.js';
import { type RunOptions, runLoop, runOptions } from '../../../bitwise/run-loop.js';
import { randomScenario } from '../../../bitwise/scenario.js';
import { describeWithTensorFlow } from '../../../support/test-tensorflow.js';

/**
 * Iterations of the loop. More than are run each time, with what the process holds printed on the way:
 *
 *     SKEIN_TENSORFLOW_ITERATIONS=10000 npx vitest run test/engine/executors/tensorflow/leaks.test.ts --disable-console-intercept
 */
const ITERATIONS = Number(process.env.SKEIN_TENSORFLOW_ITERATIONS ?? 300);
const REPORT_EVERY = 1000;
/**
 * Greatest growth of resident memory less JavaScript's heap over the second half of a long run, in which no shape is new.
 */
const MAX_GROWTH_BYTES = 32 << 20;

const MIXES: RunOptions[] = [
  runOptions('GUARANTEED_NO_EVICT', 100, 160, false),
  runOptions('MAX_UTILIZATION', 8, 48, true),
  { ...runOptions('GUARANTEED_NO_EVICT', 40, 160, true), reuse: true },
  { ...runOptions('GUARANTEED_NO_EVICT', 8, 160, false), reuse: true, numSecondaryBlocks: 20 },
];

describeWithTensorFlow('the engine’s loop on TensorFlow', () => {
  const engines = new TestEngines();
  let executor: Executor;
  let vocabSize: number;
  let config: Parameters<typeof runLoop>[1];
  let iterations = 0;

  beforeAll(async () => {
    const engine = await engines.get(tinyModelPath('gqa'), 'f32');
    config = engine.manifest.config;
    vocabSize = config.vocabSize;
    const options = engineOptions(engine, {
      tokensPerBlock: 16,
      maxSeqLen: 96,
      numBlocks: 140,
      numSecondaryBlocks: 20,
      maxNumTokens: 160,
      maxNumSequences: 28,
      maxLogitRows: 14,
    });
    executor = counting(await PortableExecutor.open(nativeEngine(engine), options, openTensorFlowRunner));
  });
  afterAll(() => {
    executor.close();
    engines.remove();
  });

  /** Every iteration comes by one of these. */
  function counting(of: Executor): Executor {
    return new Proxy(of, {
      get: (target, name) => {
        const value = Reflect.get(target, name, target) as unknown;
        if (typeof value !== 'function') return value;
        return (...given: unknown[]) => {
          if (name === 'step' || name === 'forward' || name === 'finish') iterations++;
          return (value as (...all: unknown[]) => unknown).apply(target, given);
        };
      },
    });
  }

  function run(seed: number): void {
    const lengths = { requests: 14, maxPrompt: 60, maxNew: 30, arrivalSpan: 20 };
    const arrivals = randomScenario({
      vocabSize,
      ...lengths,
      sharedPrompts: true,
      returnsLogits: true,
      seed,
    });
    const { answers } = runLoop(executor, config, arrivals, MIXES[seed % MIXES.length]!);
    expect([...answers.values()].filter(({ error }) => error !== '')).toEqual([]);
  }

  const held = () => {
    const tensorflow = loadTensorFlow();
    const { numTensors, numDataBuffers, numBytes } = tensorflow.memory();
    return {
      numTensors,
      numDataBuffers,
      numBytes,
      inTensorFlow: tensorflow.backend().binding.getNumOfTensors(),
    };
  };

  it(`holds no tensor more after ${ITERATIONS} iterations over mixed batches`, {
    timeout: 60_000 + 100 * ITERATIONS,
  }, () => {
    const before = held();
    const resident: number[] = [];
    for (let seed = 0; iterations < ITERATIONS; seed++) {
      run(seed);
      expect(held()).toEqual(before);
      if (iterations < (resident.length + 1) * REPORT_EVERY) continue;
      const mebibytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(0)} MiB`;
      const { rss, heapTotal } = process.memoryUsage();
      resident.push(rss - heapTotal);
      console.log(
        `${iterations} iterations: ${JSON.stringify(held())}, ${mebibytes(rss)} resident, ${mebibytes(heapTotal)} of it JavaScript's`,
      );
    }
    expect(before).toMatchObject({ numTensors: 0, numBytes: 0, inTensorFlow: 0 });
    const half = resident[Math.floor(resident.length / 2)];
    if (half === undefined || resident.length < 4) return;
    expect(resident.at(-1)! - half).toBeLessThan(MAX_GROWTH_BYTES);
  });
});
