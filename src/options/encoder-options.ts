import type { EncoderOptions } from '../serving/load-encoder-model.js';
import { checkLoading, MODEL_RULES } from './model-options.js';
import type { Rules } from './option-faults.js';

/** Options of Skein.load that an encoder uses. */
export const ENCODER_OPTIONS = [
  'model',
  'revision',
  'weights',
  'outputWeights',
  'executor',
  'threads',
  'computeWeight',
  'isolate',
  'pinThreads',
  'tensorParallelSize',
  'pipelineParallelSize',
  'rankTimeoutSeconds',
  'ranksAddress',
  'ranksSecretFile',
  'joinTimeoutSeconds',
  'cacheDir',
  'maxActiveRequests',
  'maxBatchTokens',
  'maxContextTokens',
  'maxQueuedRequests',
  'watchdogTimeoutSeconds',
  'workerRestart',
  'onDownload',
  'onProgress',
  'onDamaged',
  'onMissingRanks',
  'signal',
] as const;

const RULES = Object.fromEntries(
  ENCODER_OPTIONS.map((name) => [name, MODEL_RULES[name]]),
) as Rules<EncoderOptions>;

/** @throws ParameterError for an unknown option, or a value that an option does not take. */
export function checkEncoderOptions(options: unknown): asserts options is EncoderOptions {
  checkLoading('Encoder.load', "{ model: './all-MiniLM-L6-v2' }", options, RULES);
}
