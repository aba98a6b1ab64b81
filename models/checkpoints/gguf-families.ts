import type { ModelConfig } from '../model-config.js';
import { LIMITS } from './config-fields.js';
import type { GgufKeys } from './gguf-keys.js';
import { windowFields } from './layer-windows.js';

/** Every how many layers one has no window, where the file does not say: llama.cpp's defaults. It is the last of them. */
const PATTERNS = new Map([
  ['gemma2', 2],
  ['gemma3', 6],
]);
/** What llama.cpp takes for gemma2 where the key is missing. */
const GEMMA2_WINDOW = 4096;

/** Windows of the layers; 0 stands for none. */
export function windowsOfGguf(
  keys: GgufKeys,
  architecture: string,
  numLayers: number,
): Pick<ModelConfig, 'slidingWindow' | 'layerWindows'> {
  const usual = architecture === 'gemma2' ? GEMMA2_WINDOW : 0;
  const window = keys.integer('attention.sliding_window', 0, LIMITS.positions, usual) || null;
  if (window === null) return { slidingWindow: null };
  const isSliding = slidingLayers(keys, PATTERNS.get(architecture) ?? 0, numLayers);
  const windows = Array.from({ length: numLayers }, (_, layer) => (isSliding(layer) ? window : null));
  const fields = windowFields(windows);
  return architecture === 'gemma3' && fields.slidingWindow !== null
    ? { ...fields, layerWindows: windows }
    : fields;
}

/** attention.sliding_window_pattern is a list with an entry for each layer, or a number as in PATTERNS; 0: all slide. */
function slidingLayers(keys: GgufKeys, usual: number, numLayers: number): (layer: number) => boolean {
  const list = keys.list('attention.sliding_window_pattern');
  if (list !== undefined) {
    if (list.length < numLayers)
      throw keys.error('attention.sliding_window_pattern', `a list of ${numLayers}`, list.length);
    return (layer) => Boolean(list[layer]);
  }
  const pattern = keys.integer('attention.sliding_window_pattern', 0, LIMITS.layers, usual);
  return (layer) => pattern === 0 || layer % pattern < pattern - 1;
}

/** The largest Gemma 2 and 3 scale their attention by another width than that of a head; GGUF has no key for it. */
const LAYERS_OF_27B = new Map([
  ['gemma2', 46],
  ['gemma3', 62],
]);

/** What only Gemma's files say, and what they leave to the reader, as llama.cpp reads them. */
export function ggufGemmaFields(
  keys: GgufKeys,
  architecture: string,
  sizes: { hiddenSize: number; numHeads: number; numLayers: number; headDim: number },
): Partial<ModelConfig> {
  if (!architecture.startsWith('gemma')) return {};
  const { hiddenSize, numHeads, numLayers, headDim } = sizes;
  const is27b = numLayers === LAYERS_OF_27B.get(architecture);
  const fields: Partial<ModelConfig> = {
    attentionScale: 1 / Math.sqrt(is27b ? Math.floor(hiddenSize / numHeads) : headDim),
  };
  if (architecture === 'gemma2') fields.attentionSoftCap = keys.positive('attn_logit_softcapping', 50);
  if (architecture === 'gemma3') fields.localRopeTheta = keys.positive('rope.freq_base_swa', 10_000);
  const cap = keys.number('final_logit_softcapping') ?? (architecture === 'gemma2' ? 30 : 0);
  if (cap !== 0) fields.outputSoftCap = keys.positive('final_logit_softcapping', cap);
  return fields;
}
