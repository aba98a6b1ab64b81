import { CheckpointError } from '../../checkpoints/checkpoint.js';
import { ConfigFields } from '../../checkpoints/config-fields.js';
import { clipPictures, llavaPictures, siglipPictures } from './fixed-size.js';
import { gemma3Pictures } from './gemma3.js';
import { gemma4Pictures } from './gemma4.js';
import { idefics3Pictures } from './idefics3.js';
import { internVlPictures } from './internvl.js';
import { type PictureFamily, type PictureFiles, PicturePreprocessor } from './picture-preprocessor.js';
import { pixtralPictures } from './pixtral.js';
import { qwenPictures } from './qwen.js';

/** Image processors by their classes in transformers, without the endings of its former versions. */
const PREPROCESSORS = new Map<string, (fields: ConfigFields, files: PictureFiles) => PictureFamily>([
  ['CLIPFeatureExtractor', clipPictures],
  ['CLIPImageProcessor', clipPictures],
  ['Gemma3ImageProcessor', gemma3Pictures],
  ['Gemma4ImageProcessor', gemma4Pictures],
  ['GotOcr2ImageProcessor', internVlPictures],
  ['Idefics3ImageProcessor', idefics3Pictures],
  ['LlavaImageProcessor', llavaPictures],
  ['PixtralImageProcessor', pixtralPictures],
  ['Qwen2VLImageProcessor', qwenPictures],
  ['SiglipImageProcessor', siglipPictures],
  ['SmolVLMImageProcessor', idefics3Pictures],
]);

/** How a checkpoint's pictures are prepared. @throws CheckpointError for an image processor that is not known, or settings that it cannot have */
export function picturePreprocessor(files: PictureFiles): PicturePreprocessor {
  const fields = new ConfigFields('preprocessor_config.json', files.imageProcessor);
  const type = fields.string('image_processor_type') ?? fields.string('feature_extractor_type') ?? '';
  const name = type.replace(/(Fast|Pil)$/, '');
  const isLlava = files.config.model_type === 'llava' && name.startsWith('CLIP');
  const make = isLlava ? llavaPictures : PREPROCESSORS.get(name);
  if (make === undefined) {
    throw new CheckpointError(
      `${fields.where}: image_processor_type should be one of ${[...PREPROCESSORS.keys()].join(', ')}, found '${type}'.`,
    );
  }
  return new PicturePreprocessor(make(fields, files));
}
