import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { llama } from './llama.js';

/**
 * Granite 3 and 4, dense: Llama's layers with factors on embeddings, on what each half of a layer adds, on attention scores and on
 * logits. No op is needed for the second. With x = m * y the sum x + m * f(norm(x)) is m * (y + f(norm(y))), where the norm's epsilon
 * is divided by m^2 as the mean square is: so the network adds without a factor, to embeddings that are divided by m.
 */
export function granite(given: ModelConfig): NetworkPlan {
  const { config, embeddingScale } = withoutResidualScale(given);
  return llama(config, embeddingScale);
}

/** The config of the network that adds without a factor, and the factor on its embeddings. */
export function withoutResidualScale(config: ModelConfig): { config: ModelConfig; embeddingScale: number } {
  const { embeddingScale = 1, residualScale = 1, rmsNormEpsilon } = config;
  const scaled = { ...config, rmsNormEpsilon: rmsNormEpsilon / residualScale ** 2 };
  return { config: scaled, embeddingScale: embeddingScale / residualScale };
}
