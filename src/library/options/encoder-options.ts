import type { Rules } from '../../options/option-faults.js';
import { ENCODER_OPTIONS, type EncoderOptions } from '../../serving/load-encoder-model.js';
import { checkLoading, MODEL_RULES } from './model-options.js';

const RULES = Object.fromEntries(
  ENCODER_OPTIONS.map((name) => [name, MODEL_RULES[name]]),
) as Rules<EncoderOptions>;

/** @throws ParameterError for an unknown option, or a value that an option does not take. */
export function checkEncoderOptions(options: unknown): asserts options is EncoderOptions {
  checkLoading('Encoder.load', "{ model: './all-MiniLM-L6-v2' }", options, RULES);
}
