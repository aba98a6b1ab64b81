import type { ModelConfig } from '../model-config.js';
import { type ConfigFields, LIMITS } from './config-fields.js';
import { attendsBothWays } from './decoder-encoder.js';
import type { DecoderFamily } from './decoder-family.js';
import { EXPERT_FAMILIES } from './expert-families.js';
import { GATELESS_FAMILIES } from './gateless-families.js';
import { GEMMA4 } from './gemma4-config.js';
import { slidingWindow, windowFields, windowsByType } from './layer-windows.js';
import { MORE_FAMILIES } from './more-families.js';
import { ropeOfHuggingFace } from './rope-config.js';
import { ropesByType } from './ropes-by-type.js';
import { SCAN_FAMILIES } from './scan-families.js';
import { STATE_FAMILIES } from './state-families.js';

/** Default of transformers' MistralConfig where config.json has no such field. */
const MISTRAL_SLIDING_WINDOW = 4096;
const GEMMA_ACTIVATION: [string, string] = ['hidden_activation', 'gelu_pytorch_tanh'];

const QWEN: DecoderFamily = {
  read: (config, { numLayers, headDim, maxPositions }) => {
    if (config.raw('use_mrope') === true) throw config.error('use_mrope', 'false');
    const window = config.boolean('use_sliding_window', false) ? slidingWindow(config, 4096) : null;
    const firstLayer = config.integer('max_window_layers', 0, LIMITS.layers, 28);
    return {
      ...windowFields(windowsByType(config, numLayers, window, (layer) => layer >= firstLayer)),
      rope: ropeOfHuggingFace(config, headDim, maxPositions),
    };
  },
};

/** Families by ModelConfig.architecture. */
const FAMILIES: Readonly<Record<string, DecoderFamily>> = {
  llama: {
    read: (config, { name, headDim, maxPositions }) => {
      if (config.raw('use_sliding_window') !== false && config.raw('sliding_window') !== undefined) {
        throw config.error('sliding_window', `absent: ${name} has no attention window`);
      }
      return { slidingWindow: null, rope: ropeOfHuggingFace(config, headDim, maxPositions) };
    },
  },
  mistral: {
    read: (config, { headDim, maxPositions }) => {
      const layerTypes = config.raw('layer_types');
      if (Array.isArray(layerTypes) && layerTypes.some((type) => type !== 'sliding_attention')) {
        throw config.error('layer_types', 'sliding_attention for each layer: mixed layers are not supported');
      }
      const off = config.raw('use_sliding_window') === false;
      return {
        slidingWindow: off ? null : slidingWindow(config, MISTRAL_SLIDING_WINDOW),
        rope: ropeOfHuggingFace(config, headDim, maxPositions),
      };
    },
  },
  qwen2: QWEN,
  qwen3: { ...QWEN, headDim: 128 },
  phi3: {
    read: (config, { headDim, maxPositions }) => {
      const rope = ropeOfHuggingFace(config, headDim, maxPositions, { partial: 1 });
      if (rope.scaling.type !== 'none' && rope.scaling.type !== 'longrope') {
        throw config.error('rope_scaling', 'absent or of the type longrope or su');
      }
      return { slidingWindow: slidingWindow(config, null), rope };
    },
  },
  gemma: {
    headDim: 256,
    tied: true,
    activation: ['hidden_act', 'gelu_pytorch_tanh'],
    read: (config, { headDim, maxPositions }) => ({
      slidingWindow: null,
      // The first configs say gelu and mean its approximation.
      activation: 'geluTanh',
      rope: ropeOfHuggingFace(config, headDim, maxPositions),
    }),
  },
  gemma2: {
    headDim: 256,
    tied: true,
    activation: GEMMA_ACTIVATION,
    read: (config, { numLayers, headDim, maxPositions }) => {
      const isSliding = (layer: number) => layer % 2 === 0;
      return {
        ...windowFields(windowsByType(config, numLayers, slidingWindow(config, 4096), isSliding)),
        rope: ropeOfHuggingFace(config, headDim, maxPositions),
        ...gemmaFields(config),
        ...capOf('attentionSoftCap', config, 'attn_logit_softcapping', 50),
        ...capOf('outputSoftCap', config, 'final_logit_softcapping', 30),
      };
    },
  },
  gemma3: {
    headDim: 256,
    tied: true,
    activation: GEMMA_ACTIVATION,
    read: (config, { numLayers, headDim, maxPositions }) => {
      if (config.raw('attn_logit_softcapping') !== undefined) {
        throw config.error('attn_logit_softcapping', 'absent: Gemma 3 caps no attention scores');
      }
      const pattern = config.integer('sliding_window_pattern', 1, LIMITS.layers, 6);
      const isSliding = (layer: number) => (layer + 1) % pattern !== 0;
      const windows = windowsByType(config, numLayers, gemma3Window(config), isSliding);
      return {
        ...windowFields(windows),
        // Layers with a window have another RoPE, even where all layers have one.
        ...(windows.some((window) => window !== null) ? { layerWindows: windows } : {}),
        ...ropesByType(config, headDim, maxPositions, { theta: 1_000_000, localTheta: 10_000 }),
        ...gemmaFields(config),
        ...capOf('outputSoftCap', config, 'final_logit_softcapping', null),
      };
    },
  },
  gemma4: GEMMA4,
};

/** Undefined for GPT-2, whose fields have names of their own. */
export function decoderFamily(architecture: string): DecoderFamily | undefined {
  return (
    FAMILIES[architecture] ??
    EXPERT_FAMILIES[architecture] ??
    MORE_FAMILIES[architecture] ??
    GATELESS_FAMILIES[architecture] ??
    STATE_FAMILIES[architecture] ??
    SCAN_FAMILIES[architecture]
  );
}

/** The window of a Gemma 3, which counts the tokens of both sides where tokens attend both ways. */
function gemma3Window(config: ConfigFields): number | null {
  const window = slidingWindow(config, 4096);
  return window !== null && attendsBothWays(config) ? Math.floor(window / 2) + 1 : window;
}

function gemmaFields(config: ConfigFields): Partial<ModelConfig> {
  return {
    attentionScale: 1 / Math.sqrt(config.positive('query_pre_attn_scalar', 256)),
  };
}

/** A cap of the config; null means none, and a missing field means `fallback`. */
function capOf(
  name: 'attentionSoftCap' | 'outputSoftCap',
  config: ConfigFields,
  key: string,
  fallback: number | null,
): Partial<ModelConfig> {
  const cap = config.has(key) ? config.positiveOrNull(key) : fallback;
  return cap === null ? {} : { [name]: cap };
}
