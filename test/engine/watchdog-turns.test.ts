import { afterAll, expect, it } from 'vitest';
import { NativeExecutor } from '../../engine/executors/native/native-executor.js';
import { collectResult, makeRequest } from '../../tools/support/loop-harness.js';
import { makeSamplingBatch, makeSamplingOutput } from '../../tools/support/sampling-rows.js';
import { makeStepBatch } from '../../tools/support/step-batch.js';
import { TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';
import { makeTinyNetwork } from '../../tools/support/tiny-network.js';
import { ManagerClient } from '../support/manager-client.js';
import { executorOptions } from '../support/native-options.js';

/** Longer than a busy machine leaves the worker without a processor when 256 threads run. */
const WATCHDOG_MS = 500;
/** A prompt whose attention is one op of seconds, which cannot be split. */
const LONG = 46_080;

const engines = new TestEngines();
const tiny = makeTinyNetwork({ numLayers: 1 });
afterAll(() => {
  engines.remove();
  tiny.remove();
});

function longPrompt() {
  // More threads than any machine has processors left for, so that it shares its turn with no other engine.
  const options = { threads: 256, maxNumTokens: LONG, maxSeqLen: LONG, numBlocks: LONG / 16 };
  const executor = new NativeExecutor(tiny, executorOptions(options));
  const tokens = Array.from({ length: LONG }, (_, i) => i % 131);
  const blocks = Array.from({ length: LONG / 16 }, (_, i) => i);
  const { inverseFrequencies } = tiny;
  const batch = makeStepBatch([{ tokens, cached: 0, blocks }], { tokensPerBlock: 16, inverseFrequencies });
  return { executor, batch };
}

it('an engine that waits for its turn longer than the watchdog is patient is not taken for stuck', async () => {
  const engine = await engines.get(tinyModelPath('gqa'), 'f32');
  const states: string[] = [];
  let longestWaitMs = 0;
  const client = new ManagerClient({
    enginePath: engine.directory,
    modelType: 'InflightFusedBatching',
    maxBeamWidth: 1,
    schedulerPolicy: 'GUARANTEED_NO_EVICT',
    optionalParams: { threads: 1, watchdogTimeoutMs: WATCHDOG_MS },
    onStateChange: (state) => states.push(state),
    onIterationStats: ({ waitedMs }) => {
      longestWaitMs = Math.max(longestWaitMs, waitedMs);
    },
  });
  await client.manager.ready;
  const { executor, batch } = longPrompt();
  // On a thread of its own, as the engine's: this thread continues to look after the watchdog.
  executor.begin(
    batch,
    makeSamplingBatch([{ temperature: 1, seed: 7n, numTopLogProbs: 0 }]),
    makeSamplingOutput(1, 0),
  );
  let id = 0n;
  while (longestWaitMs <= WATCHDOG_MS && id < 2000n) {
    await client.submit(makeRequest(++id, [5, 6, 7], 20));
    expect(collectResult(client.responses.get(id) ?? []).error).toBe('');
  }
  executor.finish();
  executor.close();
  await client.manager.terminate();
  expect(longestWaitMs, 'it had to wait').toBeGreaterThan(WATCHDOG_MS);
  expect(states).not.toContain('restarting');
});
