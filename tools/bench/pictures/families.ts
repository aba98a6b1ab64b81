import type { PictureFiles } from '../../../models/images/preprocess/picture-preprocessor.js';

const HALF = { image_mean: [0.5, 0.5, 0.5], image_std: [0.5, 0.5, 0.5] };
const tower = (patchSize: number) => ({ vision_config: { patch_size: patchSize } });

function files(
  type: string,
  fields: Record<string, unknown>,
  config: Record<string, unknown> = {},
  processor: Record<string, unknown> = {},
): PictureFiles {
  const tokenizer = { boi_token: '<begin>', eoi_token: '<end>' };
  return { imageProcessor: { image_processor_type: type, ...fields }, config, processor, tokenizer };
}

/** Settings of published models. */
export const FAMILIES: Readonly<Record<string, PictureFiles>> = {
  'Qwen2.5-VL': files('Qwen2VLImageProcessor', { min_pixels: 3136, max_pixels: 12_845_056 }),
  'Qwen2-VL, a million pixels': files('Qwen2VLImageProcessor', { min_pixels: 3136, max_pixels: 1_003_520 }),
  'Qwen3-VL': files('Qwen2VLImageProcessor', {
    ...{ patch_size: 16, size: { shortest_edge: 65_536, longest_edge: 16_777_216 } },
    ...HALF,
  }),
  SmolVLM2: files(
    'SmolVLMImageProcessor',
    { size: { longest_edge: 2048 }, max_image_size: { longest_edge: 512 } },
    { ...tower(16), scale_factor: 4 },
  ),
  'Gemma 3': files('Gemma3ImageProcessor', { size: { height: 896, width: 896 } }, tower(14)),
  'Gemma 4': files('Gemma4ImageProcessor', {}),
  'SigLIP, 384': files('SiglipImageProcessor', { size: { height: 384, width: 384 } }, tower(14)),
  'CLIP, 336': files(
    'CLIPImageProcessor',
    { size: { shortest_edge: 336 }, crop_size: { height: 336, width: 336 } },
    tower(14),
  ),
  'LLaVA 1.5': files(
    'LlavaImageProcessor',
    { do_pad: true, size: { shortest_edge: 336 }, crop_size: { height: 336, width: 336 } },
    tower(14),
  ),
  'Mistral Small 3': files('PixtralImageProcessor', { size: { longest_edge: 1540 } }, tower(14), {
    spatial_merge_size: 2,
  }),
};
