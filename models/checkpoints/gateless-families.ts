import type { DecoderFamily } from './decoder-family.js';
import { givenRope, ropeOfHuggingFace } from './rope-config.js';

/** RoPE of Apertus where its config has none. */
const APERTUS_ROPE = {
  rope_type: 'llama3',
  rope_theta: 12e6,
  factor: 8,
  original_max_position_embeddings: 8192,
  low_freq_factor: 1,
  high_freq_factor: 4,
};

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
  apertus: {
    activation: ['hidden_act', 'xielu'],
    ownActivation: 'xielu',
    epsilon: ['rms_norm_eps', 1e-5],
    read: (config, { headDim, maxPositions }) => {
      const isGiven = givenRope(config) !== undefined;
      const parameters = isGiven ? {} : { parameters: APERTUS_ROPE };
      return {
        slidingWindow: null,
        rope: ropeOfHuggingFace(config, headDim, maxPositions, {
          theta: APERTUS_ROPE.rope_theta,
          ...parameters,
        }),
      };
    },
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
export const GATELESS_ACTIVATIONS: ReadonlyMap<string, 'reluSquared' | 'none'> = new Map<
  string,
  'reluSquared' | 'none'
>([
  ['apertus', 'none'],
  ['arcee', 'reluSquared'],
  ['nemotron', 'reluSquared'],
  ['nemotronh', 'reluSquared'],
]);
