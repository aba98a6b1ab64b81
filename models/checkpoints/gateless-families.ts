import type { DecoderFamily } from './decoder-family.js';
import { ropeOfHuggingFace } from './rope-config.js';

/** Families whose MLP has no gate, by ModelConfig.architecture. */
export const GATELESS_FAMILIES: Readonly<Record<string, DecoderFamily>> = {
  arcee: {
    activation: ['hidden_act', 'relu2'],
    epsilon: ['rms_norm_eps', 1e-5],
    read: (config, { headDim, maxPositions }) => ({
      slidingWindow: null,
      rope: ropeOfHuggingFace(config, headDim, maxPositions),
    }),
  },
  nemotron: {
    activation: ['hidden_act', 'relu2'],
    epsilon: ['norm_eps', 1e-5],
    read: (config, { headDim, maxPositions }) => ({
      slidingWindow: null,
      rope: ropeOfHuggingFace(config, headDim, maxPositions, { partial: 0.5 }),
    }),
  },
};

/** Activations of these families in a GGUF, which has no key for them. */
export const GATELESS_ACTIVATIONS: ReadonlyMap<string, 'reluSquared'> = new Map([
  ['arcee', 'reluSquared'],
  ['nemotron', 'reluSquared'],
]);
