import { join } from 'node:path';
import { buildEngine, GptManager, type InferenceRequest, type ModelType, type NamedTensor } from 'skein';
import { expect, it } from 'vitest';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { type Answer, digestOf, noAnswer } from './run-loop.js';
import { expectAllowedLength, randomScenario } from './scenario.js';

const folder = temporaryFolder('skein-manager');

/**
 * Sends `requests` through a manager with its real worker, `inFlight` at a time in random arrival, and shuts it down.
 * Non-streaming responses hold prompt and output; streaming ones what is new.
 */
async function runManager(
  enginePath: string,
  requests: InferenceRequest[],
  inFlight: number,
  small: boolean,
  modelType: ModelType = 'InflightFusedBatching',
  overlap = false,
  draftEnginePath?: string,
  isolate = false,
) {
  const answers = new Map<bigint, Answer>();
  const waiting = [...requests];
  let active = 0;
  let pauses = 0;
  let emptySlots = 0;
  let overlapped = 0;
  let finished = 0;
  let resolve = () => {};
  const done = new Promise<void>((settle) => {
    resolve = settle;
  });
  const manager = new GptManager({
    enginePath,
    modelType,
    maxBeamWidth: 1,
    schedulerPolicy: small ? 'MAX_UTILIZATION' : 'GUARANTEED_NO_EVICT',
    getInferenceRequests: (max) => {
      const count = Math.min(max < 0 ? inFlight : max, inFlight - active, small ? 3 : inFlight);
      active += Math.min(count, waiting.length);
      return waiting.splice(0, count);
    },
    sendResponse: (requestId, outputs, final, error) => {
      const answer = answers.get(requestId) ?? noAnswer();
      answers.set(requestId, answer);
      answer.error += error;
      addOutputs(answer, requests.find((request) => request.requestId === requestId)!, outputs);
      if (!final) return;
      active--;
      if (++finished === requests.length) resolve();
    },
    onIterationStats: (stats) => {
      pauses = stats.totalPauses;
      emptySlots += stats.emptyGenerationSlots;
      overlapped += stats.microBatchId;
    },
    optionalParams: {
      threads: small ? 2 : 1,
      tokensPerBlock: 16,
      maxSeqLen: 160,
      maxNumSequences: 32,
      enableChunkedContext: small,
      kvCacheConfig: { maxTokens: small ? 24 * 16 : 32 * 160 },
      ...(small ? { maxNumTokens: 64 } : {}),
      checkIntegrity: true,
      isolate,
      enableTrtOverlap: overlap,
      minMicroBatchSize: 2,
      ...(draftEnginePath === undefined ? {} : { draftEnginePath }),
    },
  });
  await manager.ready;
  await done;
  await manager.shutdown();
  return { answers, pauses, emptySlots, overlapped };
}

function addOutputs(answer: Answer, request: InferenceRequest, outputs: NamedTensor[]): void {
  const data = (name: string) => outputs.find((output) => output.name === name)?.data;
  const tokens = data('output_ids') as Int32Array | undefined;
  const length = data('sequence_length') as Int32Array | undefined;
  if (!tokens || !length) return;
  const streaming = (request.inputs.streaming!.data as Uint8Array)[0] === 1;
  const promptLength = request.inputs.input_ids!.data.length;
  answer.tokens.push(...(streaming ? tokens : tokens.subarray(promptLength, length[0]!)));
  const logProbs = data('output_log_probs') as Float32Array | undefined;
  addReturned(answer, outputs);
  if (logProbs) answer.logProbs.push(...logProbs.subarray(0, answer.tokens.length - answer.logProbs.length));
}

/** A last dimension of 1 marks a dummy. */
function addReturned(answer: Answer, outputs: NamedTensor[]): void {
  for (const { name, shape, data } of outputs) {
    if (name === 'context_log_probs') answer.contextLogProbs = data as Float32Array;
    if (shape.at(-1) === 1) continue;
    if (name === 'context_logits') answer.contextLogits = data as Float32Array;
    if (name !== 'generation_logits') continue;
    for (const logit of data as Float32Array) answer.generationLogits.push(logit);
  }
}

it('a manager with its worker answers 24 requests together as one after the other, with every scheme, with overlap and in a process of its own', async () => {
  const enginePath = join(folder, 'engine');
  const engine = await buildEngine({
    model: tinyModelPath('gqa'),
    outputDirectory: enginePath,
    precision: 'bf16',
  });
  const { vocabSize } = engine.manifest.config;
  const limits = { vocabSize, requests: 24, maxPrompt: 40, maxNew: 90, arrivalSpan: 0, seed: 11 };
  const requests = randomScenario({ ...limits, returnsLogits: true }).map(({ request }) => request);
  const alone = await runManager(enginePath, requests, 1, false);
  const together = await runManager(enginePath, requests, 24, true);
  const apart = await runManager(enginePath, requests, 24, true, 'InflightBatching');
  const inTurns = await runManager(enginePath, requests, 24, true, 'InflightFusedBatching', true);
  const lockstep = await runManager(enginePath, requests, 24, false, 'V1');
  const isolated = await runManager(
    enginePath,
    requests,
    24,
    true,
    'InflightFusedBatching',
    true,
    undefined,
    true,
  );
  expect(alone.pauses).toBe(0);
  expect(together.pauses).toBeGreaterThan(10);
  expect(apart.pauses).toBeGreaterThan(10);
  expect([together.overlapped, apart.overlapped]).toEqual([0, 0]);
  expect(inTurns.pauses).toBeGreaterThan(10);
  expect(inTurns.overlapped).toBeGreaterThan(30);
  expect(lockstep.pauses).toBe(0);
  expect(isolated.pauses).toBeGreaterThan(10);
  expect(lockstep.emptySlots).toBeGreaterThan(100);
  for (const request of requests) {
    const { requestId } = request;
    const expected = alone.answers.get(requestId)!;
    expectAllowedLength(request, expected.tokens.length);
    expect(expected.logProbs.length).toBe(expected.tokens.length);
    const { return_generation_logits: generation, return_context_logits: context } = request.inputs;
    expect(expected.generationLogits.length).toBe(generation ? expected.tokens.length * vocabSize : 0);
    const promptLength = request.inputs.input_ids!.data.length;
    expect(expected.contextLogits?.length ?? 0).toBe(context ? promptLength * vocabSize : 0);
    const digest = digestOf(expected);
    for (const { answers } of [together, apart, inTurns, lockstep, isolated]) {
      expect(digestOf(answers.get(requestId)!), `request ${requestId}`).toStrictEqual(digest);
    }
  }
});

it('a manager with a draft model answers as one without, and refuses one of another vocabulary', async () => {
  const [enginePath, draftPath, otherPath] = ['target', 'draft', 'other'].map((name) =>
    join(folder, name),
  ) as [string, string, string];
  const engine = await buildEngine({
    model: tinyModelPath('gqa'),
    outputDirectory: enginePath,
    precision: 'f32',
  });
  await buildEngine({ model: tinyModelPath('gqa'), outputDirectory: draftPath, precision: 'int4' });
  await buildEngine({ model: tinyModelPath('wide-head'), outputDirectory: otherPath, precision: 'int4' });
  const { vocabSize } = engine.manifest.config;
  const limits = { vocabSize, requests: 12, maxPrompt: 40, maxNew: 60, arrivalSpan: 0, seed: 12 };
  const requests = randomScenario(limits).map(({ request }) => request);
  const plain = await runManager(enginePath, requests, 1, false);
  for (const [inFlight, isolate] of [
    [1, false],
    [12, true],
  ] as const) {
    const small = inFlight > 1;
    const drafted = await runManager(
      enginePath,
      requests,
      inFlight,
      small,
      'InflightFusedBatching',
      false,
      draftPath,
      isolate,
    );
    expect(drafted.answers).toStrictEqual(plain.answers);
  }
  await expect(
    runManager(enginePath, requests, 1, false, 'InflightFusedBatching', false, otherPath),
  ).rejects.toThrow(/its vocabulary has 323 tokens and that of the model 320/);
});
