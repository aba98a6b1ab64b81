import type { SamplingDefaults } from '../../generation/sampling-defaults.js';
import type { TextRequest } from '../../generation/text-generation.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import { chatMaxTokens } from '../openai/text-request.js';
import type { OllamaOptions } from './schemas.js';

/** Values of Ollama's options where a request has none. Source: DefaultOptions in Ollama's api/types.go. */
const DEFAULTS = { temperature: 0.8, topK: 40, topP: 0.9, repetitionPenalty: 1.1, penaltyLastN: 64 };

/** The part of a request that Ollama's options say. What the model recommends goes before Ollama's own values. */
export function samplingOf(
  options: OllamaOptions = {} as OllamaOptions,
  recommended: SamplingDefaults = {},
): Partial<TextRequest> {
  const { temperature, topK, topP, repetitionPenalty, penaltyLastN } = { ...DEFAULTS, ...recommended };
  const { seed } = options;
  return {
    temperature: options.temperature ?? temperature,
    topK: Math.max(0, options.top_k ?? topK),
    topP: options.top_p ?? topP,
    minP: options.min_p,
    repetitionPenalty: options.repeat_penalty ?? repetitionPenalty,
    penaltyLastN: options.repeat_last_n ?? penaltyLastN,
    typicalP: options.typical_p,
    mirostat: options.mirostat,
    mirostatTau: options.mirostat_tau,
    mirostatEta: options.mirostat_eta,
    presencePenalty: options.presence_penalty,
    frequencyPenalty: options.frequency_penalty,
    seed: seed === undefined || seed < 0 ? undefined : seed,
    stop: options.stop,
  };
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
