import { checkWorkerRestart, type WorkerRestartOptions } from '../callbacks/restart-policy.js';
import { ParameterError } from '../callbacks/sampling-params.js';
import { CHUNKING_POLICIES } from '../scheduler/types.js';
import type { ModelOptions } from './load-model.js';
import { MAX_COUNT, TOKENS_PER_BLOCK } from './option-ranges.js';
import {
  CALLBACK,
  NAME,
  oneOf,
  optionFault,
  type Rules,
  rule,
  SIGNAL,
  SWITCH,
  wholeNumber,
} from './option-rules.js';

const MODULE_URL = rule(
  'the URL of a module',
  (value) => (typeof value === 'string' && value !== '') || value instanceof URL,
);

/** The flags of the same names take the same values: a test compares them. */
export const MODEL_OPTION_RULES = {
  model: NAME,
  weights: oneOf('auto', 'f32', 'bf16', 'int8', 'int4'),
  outputWeights: oneOf('auto', 'f32', 'bf16', 'int8'),
  kvDtype: oneOf('auto', 'f32', 'bf16', 'int8'),
  executor: oneOf('auto', 'native', 'tensorflow', 'wasm'),
  threads: wholeNumber(1, 1024),
  revision: NAME,
  computeWeight: wholeNumber(1, 1000),
  cacheDir: NAME,
  modelType: oneOf('InflightFusedBatching', 'InflightBatching', 'V1'),
  schedulerPolicy: oneOf('GUARANTEED_NO_EVICT', 'MAX_UTILIZATION'),
  maxNumSequences: wholeNumber(1, 65536),
  maxBatchSize: wholeNumber(1, 65536),
  maxNumTokens: wholeNumber(1, MAX_COUNT),
  maxBeamWidth: wholeNumber(1, 1024),
  maxWaitIterations: wholeNumber(1, MAX_COUNT),
  startHorizon: wholeNumber(1, MAX_COUNT),
  maxInterTokenLatencyMs: wholeNumber(1, MAX_COUNT),
  chunkingPolicy: oneOf(...CHUNKING_POLICIES),
  maxChunkMs: wholeNumber(1, MAX_COUNT),
  speculate: oneOf('none', 'ngram'),
  draftModel: NAME,
  maxDraftLen: wholeNumber(1, MAX_COUNT),
  maxQueueSize: wholeNumber(1, 1_000_000),
  maxQueueSizePerKey: wholeNumber(1, 1_000_000),
  fairQueueing: SWITCH,
  enableChunkedContext: SWITCH,
  enableBlockReuse: SWITCH,
  enableTrtOverlap: SWITCH,
  maxInputLen: wholeNumber(1, MAX_COUNT),
  maxSeqLen: wholeNumber(2, MAX_COUNT),
  maxTokens: wholeNumber(1, MAX_COUNT),
  freeGpuMemoryFraction: rule(
    'a number above 0 and at most 1',
    (value) => typeof value === 'number' && value > 0 && value <= 1,
  ),
  hostCacheSize: wholeNumber(0, Number.MAX_SAFE_INTEGER),
  secondaryOffloadMinPriority: wholeNumber(0, 100),
  maxReturnedLogitsBytes: wholeNumber(0, Number.MAX_SAFE_INTEGER),
  maxAttentionWindow: wholeNumber(1, MAX_COUNT),
  sinkTokenLength: wholeNumber(0, MAX_COUNT),
  tokensPerBlock: rule(`one of ${TOKENS_PER_BLOCK.join(', ')}`, (value) =>
    TOKENS_PER_BLOCK.includes(value as number),
  ),
  watchdogTimeout: wholeNumber(0, 86_400),
  workerRestart: rule('false or an object of waits and limits', isWorkerRestart),
  executorModule: MODULE_URL,
  logitsPostProcessorModule: MODULE_URL,
  onDownload: CALLBACK,
  onProgress: CALLBACK,
  onDamaged: CALLBACK,
  signal: SIGNAL,
} satisfies Rules<ModelOptions>;

function isWorkerRestart(value: unknown): boolean {
  try {
    checkWorkerRestart(value as WorkerRestartOptions);
    return true;
  } catch {
    return false;
  }
}

/** @throws ParameterError for an option that there is not, or a value that it does not take. */
export function checkModelOptions(options: unknown): asserts options is ModelOptions {
  const example = "{ model: './smollm2-135m-instruct' }";
  const fault = optionFault<ModelOptions>('Skein.load', example, options, MODEL_OPTION_RULES);
  if (fault !== null) throw new ParameterError(fault.option ?? 'options', fault.message);
  if ((options as ModelOptions).model === undefined) {
    throw new ParameterError('model', `Skein.load needs the option model, such as ${example}.`);
  }
}
