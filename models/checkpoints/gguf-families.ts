import type { LayerShape, ModelConfig } from '../model-config.js';
import { LIMITS } from './config-fields.js';
import { shapesOfGemma4 } from './gguf-gemma4.js';
import type { GgufKeys } from './gguf-keys.js';
import { windowFields, windowsOfEach } from './layer-windows.js';
import { dimensionsOfLayers } from './openelm-config.js';

/**
 * Period of layers without a window where the file does not say, as in llama.cpp: the last layer of each period has
 * none.
 */
const PATTERNS = new Map([
  ['gemma2', 2],
  ['gptoss', 2],
  ['gemma3', 6],
  ['gemma4', 6],
  ['olmo3', 4],
  ['exaone4', 4],
  ['cohere2', 4],
  ['modernbert', 3],
]);
/** Those in which it is the first layer of each period. */
const FIRST_IS_FULL: ReadonlySet<string> = new Set(['modernbert']);
/** Window of gemma2 where the key is missing, as in llama.cpp. */
const GEMMA2_WINDOW = 4096;

/** Families whose files always say it, as llama.cpp asks for it. */
const NEED_WINDOW: ReadonlySet<string> = new Set(['gptoss', 'gemma4']);

/** Windows of the layers; a window of 0 in the file means none. */
export function windowsOfGguf(
  keys: GgufKeys,
  architecture: string,
  numLayers: number,
): Pick<ModelConfig, 'slidingWindow' | 'layerWindows'> {
  const usual = NEED_WINDOW.has(architecture) ? undefined : architecture === 'gemma2' ? GEMMA2_WINDOW : 0;
  const given = keys.integer('attention.sliding_window', 0, LIMITS.positions, usual) || null;
  if (given === null) return { slidingWindow: null };
  // Where tokens attend both ways, it counts those of both sides.
  const window = keys.bothWays ? Math.floor(given / 2) + 1 : given;
  const isSliding = slidingLayers(keys, architecture, numLayers);
  const windows = Array.from({ length: numLayers }, (_, layer) => (isSliding(layer) ? window : null));
  const fields = windowFields(windows);
  return HAS_LOCAL_ROPE.has(architecture) && fields.slidingWindow !== null
    ? { ...fields, layerWindows: windows }
    : fields;
}

/** Families whose layers with a window have a RoPE of their own. */
const HAS_LOCAL_ROPE: ReadonlySet<string> = new Set(['gemma3', 'gemma4', 'olmo3', 'modernbert']);

/** Dimensions of a file whose keys have a list of them, a number for each layer; undefined for any other. */
export function ggufLayerShapes(
  keys: GgufKeys,
  architecture: string,
  numLayers: number,
): ReturnType<typeof dimensionsOfLayers> | undefined {
  if (architecture === 'gemma4') {
    const windows = windowsOfEach(windowsOfGguf(keys, architecture, numLayers), numLayers);
    return dimensionsOfLayers(shapesOfGemma4(keys, numLayers, windows));
  }
  if (architecture !== 'openelm') return undefined;
  const heads = keys.listOfLayers('attention.head_count', numLayers, LIMITS.heads);
  const kvHeads = keys.listOfLayers('attention.head_count_kv', numLayers, LIMITS.heads);
  const widths = keys.listOfLayers('feed_forward_length', numLayers, LIMITS.width);
  const headDim = keys.integer('attention.key_length', 2, LIMITS.heads);
  const shapes = Array.from({ length: numLayers }, (_, layer): LayerShape => {
    return {
      numHeads: heads[layer]!,
      numKvHeads: kvHeads[layer]!,
      headDim,
      intermediateSize: widths[layer]!,
    };
  });
  return dimensionsOfLayers(shapes);
}

/** SmolLM3 has no RoPE in the last layer of each group of this size, as in llama.cpp. */
const SMOLLM3_INTERVAL = 4;

/** Fields that the families of more-families.ts have, from a file's keys or as llama.cpp has them. */
export function ggufFamilyFields(
  keys: GgufKeys,
  architecture: string,
  numLayers: number,
  maxPositions: number,
): Partial<ModelConfig> {
  switch (architecture) {
    case 'qwen3':
    case 'qwen3moe': {
      // Of files of Qwen3-VL: what its first layers add of pictures.
      const levels = keys.integer('n_deepstack_layers', 0, 64, 0);
      return levels === 0 ? {} : { promptLevels: levels };
    }
    case 'gemma3':
      // The file does not say whether it sees; texts are the same either way.
      return { bothWaysInPictures: 'all' };
    case 'smollm3':
      return {
        layersWithoutRope: Array.from(
          { length: numLayers },
          (_, layer) => (layer + 1) % SMOLLM3_INTERVAL === 0,
        ),
      };
    case 'olmo3':
    case 'modernbert':
      return {
        localRopeTheta: keys.positive('rope.freq_base_swa', keys.positive('rope.freq_base', 10_000)),
      };
    case 'granite':
    case 'granite4':
      return {
        embeddingScale: keys.positive('embedding_scale', 1),
        residualScale: keys.positive('residual_scale', 1),
        attentionScale: keys.positive('attention.scale'),
        logitScale: 1 / keys.positive('logit_scale', 1),
        // llama.cpp has no RoPE for such a file.
        ...(keys.boolean('rope.scaling.finetuned') === false && {
          layersWithoutRope: new Array<boolean>(numLayers).fill(true),
        }),
      };
    case 'minicpm':
      return {
        embeddingScale: keys.positive('embedding_scale', 1),
        residualScale: keys.positive('residual_scale', 1),
        logitScale: 1 / keys.positive('logit_scale', 1),
      };
    case 'gptoss':
      return { sinkLogits: true };
    case 'cohere':
      return { logitScale: keys.positive('logit_scale', 1) };
    case 'cohere2': {
      const windows = windowsOfEach(windowsOfGguf(keys, architecture, numLayers), numLayers);
      return {
        logitScale: keys.positive('logit_scale', 1),
        layersWithoutRope: windows.map((window) => window === null),
      };
    }
    case 'exaone4': {
      const { layerWindows } = windowsOfGguf(keys, architecture, numLayers);
      return layerWindows === undefined
        ? {}
        : { layersWithoutRope: layerWindows.map((window) => window === null) };
    }
    case 'ministral3': {
      const isScaled = (keys.number('attention.temperature_scale') ?? 0) !== 0;
      const original = keys.integer(
        'rope.scaling.original_context_length',
        1,
        LIMITS.positions,
        maxPositions,
      );
      return isScaled ? { maxPositions: Math.min(maxPositions, original) } : {};
    }
    default:
      return {};
  }
}

/**
 * Returns which layers slide. attention.sliding_window_pattern is a list with an entry for each layer, or a
 * number as in PATTERNS; 0: all slide.
 */
function slidingLayers(keys: GgufKeys, architecture: string, numLayers: number): (layer: number) => boolean {
  const list = keys.list('attention.sliding_window_pattern');
  if (list !== undefined) {
    if (list.length < numLayers)
      throw keys.error('attention.sliding_window_pattern', `a list of ${numLayers}`, list.length);
    return (layer) => Boolean(list[layer]);
  }
  const usual = PATTERNS.get(architecture) ?? 0;
  const pattern = keys.integer('attention.sliding_window_pattern', 0, LIMITS.layers, usual);
  const full = FIRST_IS_FULL.has(architecture) ? 0 : pattern - 1;
  return (layer) => pattern === 0 || layer % pattern !== full;
}

/**
 * Numbers of layers of the 27B models, which scale attention by another width than a head's; GGUF has no key for it.
 */
const LAYERS_OF_27B = new Map([
  ['gemma2', 46],
  ['gemma3', 62],
]);

/** Fields of Gemma's files, with the defaults that llama.cpp uses for those left out. */
export function ggufGemmaFields(
  keys: GgufKeys,
  architecture: string,
  sizes: { hiddenSize: number; numHeads: number; numLayers: number; headDim: number },
): Partial<ModelConfig> {
  if (!architecture.startsWith('gemma')) return {};
  const { hiddenSize, numHeads, numLayers, headDim } = sizes;
  const is27b = numLayers === LAYERS_OF_27B.get(architecture);
  const usual = 1 / Math.sqrt(is27b ? Math.floor(hiddenSize / numHeads) : headDim);
  const fields: Partial<ModelConfig> = { attentionScale: architecture === 'gemma4' ? 1 : usual };
  if (architecture === 'gemma2') fields.attentionSoftCap = keys.positive('attn_logit_softcapping', 50);
  if (HAS_LOCAL_ROPE.has(architecture)) fields.localRopeTheta = keys.positive('rope.freq_base_swa', 10_000);
  const cap = keys.number('final_logit_softcapping') ?? (architecture === 'gemma2' ? 30 : 0);
  if (cap !== 0) fields.outputSoftCap = keys.positive('final_logit_softcapping', cap);
  return fields;
}
