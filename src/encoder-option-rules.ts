import { ParameterError } from '../callbacks/sampling-params.js';
import type { EncoderOptions } from './load-encoder-model.js';
import { MODEL_OPTION_RULES } from './model-option-rules.js';
import { optionFault, type Rules } from './option-rules.js';

const {
  model,
  revision,
  weights,
  outputWeights,
  executor,
  threads,
  computeWeight,
  cacheDir,
  maxNumSequences,
  maxNumTokens,
} = MODEL_OPTION_RULES;
const { maxSeqLen, maxQueueSize, watchdogTimeout, workerRestart, onDownload, onProgress, onDamaged, signal } =
  MODEL_OPTION_RULES;

const RULES = {
  model,
  revision,
  weights,
  outputWeights,
  executor,
  threads,
  computeWeight,
  cacheDir,
  maxNumSequences,
  maxNumTokens,
  maxSeqLen,
  maxQueueSize,
  watchdogTimeout,
  workerRestart,
  onDownload,
  onProgress,
  onDamaged,
  signal,
} satisfies Rules<EncoderOptions>;

/** @throws ParameterError for an option that there is not, or a value that it does not take. */
export function checkEncoderOptions(options: unknown): asserts options is EncoderOptions {
  const example = "{ model: './all-MiniLM-L6-v2' }";
  const fault = optionFault<EncoderOptions>('Encoder.load', example, options, RULES);
  if (fault !== null) throw new ParameterError(fault.option ?? 'options', fault.message);
  if ((options as EncoderOptions).model === undefined) {
    throw new ParameterError('model', `Encoder.load needs the option model, such as ${example}.`);
  }
}
