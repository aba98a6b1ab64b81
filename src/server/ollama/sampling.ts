import type { SamplingDefaults } from '../../generation/sampling-defaults.js';
import type { TextRequest } from '../../generation/text-generation.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import { chatMaxTokens } from '../answering/text-request.js';
import { parametersOf } from './parameter-options.js';
import type { OllamaOptions } from './schemas.js';

/** The part of a request that Ollama's options say. What the model recommends goes before Ollama's own values. */
export function samplingOf(
  options: OllamaOptions = {} as OllamaOptions,
  recommended: SamplingDefaults = {},
): Partial<TextRequest> {
  return { ...parametersOf(options, recommended), stop: options.stop };
}

/**
 * Most tokens of an answer: an answer that the context cannot hold ends there, where OpenAI's routes refuse the request.
 */
export function maxTokensOf(
  model: ServedGenerator,
  { num_predict: asked = -1 }: Pick<OllamaOptions, 'num_predict'>,
  promptTokens: number,
): number {
  if (asked <= 0) return chatMaxTokens(model, undefined, promptTokens);
  return Math.max(1, Math.min(asked, model.maxSeqLen - promptTokens));
}
