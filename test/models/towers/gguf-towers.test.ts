import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { writeTower } from '../../../engine/building/tower-engine.js';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import { picturePreprocessor } from '../../../models/images/preprocess/index.js';
import type { PictureFiles } from '../../../models/images/preprocess/picture-preprocessor.js';
import type { TextCheckpoint } from '../../../models/towers/gguf/open-gguf-tower.js';
import { shortest } from '../../../models/towers/gguf/projector-fields.js';
import { PROJECTORS } from '../../../models/towers/gguf/projectors.js';
import { openTower } from '../../../models/towers/open-tower.js';
import type { TestTensor } from '../../../tools/support/gguf-writer.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import {
  MADE_MMPROJ,
  type MadeMmproj,
  madeMmproj,
  roundedAs,
  writeMadeMmproj,
} from '../../support/made-mmproj.js';
import { writeMadeModel } from '../../support/made-models.js';
import { madeTower } from '../../support/made-towers.js';

const folder = temporaryFolder('skein-gguf-towers');
let made = 0;
const fresh = () => join(folder, `${made++}`);

const keyOf = ({ tower }: MadeMmproj, name: string) => tower.keys.find(([key]) => key === name)?.[2];
const projectorOf = (gguf: MadeMmproj) =>
  PROJECTORS.get(
    (keyOf(gguf, 'clip.projector_type') ?? keyOf(gguf, 'clip.vision.projector_type')) as string,
  )!;

/** The text model of the golden, as a GGUF whose tower is `file`. */
function textOf(name: string, file: string, change: Partial<TextCheckpoint['config']> = {}): TextCheckpoint {
  const directory = join(folder, name);
  const checkpoint = openCheckpoint(writeMadeModel(directory, madeTower(name)));
  const { token } = projectorOf(madeMmproj(name));
  const tokenizerJson = { added_tokens: [{ id: 100, content: token }] };
  const tokenizer = { ...checkpoint.tokenizer, tokenizerJson };
  const config = { ...checkpoint.config, ...change };
  return { ...checkpoint, path: file, format: 'gguf', config, tokenizer, mmproj: [file] };
}

/** What an engine's folder has of a tower. */
async function written(text: TextCheckpoint) {
  const directory = fresh();
  mkdirSync(directory);
  const options = { isDurable: false, leavesMatrices: false, sumsWhenPacked: false, threads: 1 };
  await writeTower({ directory, target: directory }, text, {
    ...options,
    model: text.path,
    precision: 'f32',
  });
  const read = (name: string) => readFileSync(join(directory, 'tower', name));
  return { weights: read('weights.bin'), ...JSON.parse(read('tower.json').toString()) };
}

type Keys = MadeMmproj['tower']['keys'];
const POOLED_BY_2: Keys = [['clip.vision.projector.scale_factor', 'UINT32', 2]];
/** Keys that the converter does not write, as what they say is alike in all published models. */
const UNWRITTEN: Record<string, Keys> = {
  'qwen2.5-vl': [['clip.vision.window_size', 'UINT32', 8]],
  gemma4: POOLED_BY_2,
  'gemma4-vision': POOLED_BY_2,
};
const keysOf = ({ name, tower }: MadeMmproj): Keys => [...tower.keys, ...(UNWRITTEN[name] ?? [])];

describe.each(MADE_MMPROJ)("$name's tower as llama.cpp's converter writes it", (gguf) => {
  it.each(Object.keys(gguf.types))('has the weights of the model, byte for byte: %s', async (type) => {
    const stored: TestTensor[] = [];
    const file = writeMadeMmproj(`${fresh()}.gguf`, gguf, type, { keys: keysOf(gguf) }, (tensor) =>
      stored.push(tensor),
    );
    const inOrder = stored.sort((a, b) => (a.name < b.name ? -1 : 1));
    const sum = inOrder.reduce((before, { data }) => crc32(data, before), 0);
    expect(sum).toBe(gguf.sums[type]);
    const types = new Map(gguf.tower.tensors.map(([, , source], i) => [source, gguf.types[type]![i]!]));
    const rounded = (tensor: TestTensor) => roundedAs(tensor, types.get(tensor.name) ?? 'F32');
    const folderOfModel = writeMadeModel(fresh(), madeTower(gguf.name), [], rounded);
    const fromHub = await written(openCheckpoint(folderOfModel));
    const fromGguf = await written(textOf(gguf.name, file));
    const { model: _, ...network } = fromHub.config;
    expect(fromGguf.config).toMatchObject(network);
    expect(fromGguf.weights.equals(fromHub.weights)).toBe(true);
  });
});

/**
 * What transformers' image processor would receive in a folder with preprocessor_config.json, without its
 * defaults.
 */
const PREPARED: Record<string, object> = {
  'qwen3-vl': {
    image_processor_type: 'Qwen2VLImageProcessorFast',
    patch_size: 2,
    size: { shortest_edge: 65_536, longest_edge: 16_777_216 },
  },
  smolvlm: {
    image_processor_type: 'SmolVLMImageProcessor',
    size: { longest_edge: 48 },
    max_image_size: { longest_edge: 12 },
  },
  pixtral: { image_processor_type: 'PixtralImageProcessor', size: { longest_edge: 12 } },
  llava: { image_processor_type: 'CLIPImageProcessor', size: { shortest_edge: 6 }, crop_size: 6 },
  gemma3: { image_processor_type: 'Gemma3ImageProcessor', size: { height: 8, width: 8 } },
  gemma4: { image_processor_type: 'Gemma4ImageProcessor', patch_size: 2, pooling_kernel_size: 2 },
  internvl: { image_processor_type: 'GotOcr2ImageProcessor', size: { height: 8, width: 8 } },
};
/** Texts of tokens that a tower's file does not have. */
const AROUND: Record<string, object> = { gemma4: { boi_token: '<|image>', eoi_token: '<image|>' } };
const COLOURS = { image_mean: [0.48, 0.45, 0.41], image_std: [0.26, 0.25, 0.28] };

describe('the settings by which pictures are prepared', () => {
  const settingsOf = (pictures: PictureFiles) => picturePreprocessor(pictures).settings;

  it.each(Object.keys(PREPARED))(
    "are those of %s's image processor, by its keys and the family's defaults",
    (name) => {
      const made = madeMmproj(name);
      const file = writeMadeMmproj(`${fresh()}.gguf`, made, 'F32', { keys: keysOf(made) });
      const { pictures } = openTower(textOf(name, file))!;
      const { config } = madeTower(name);
      const imageProcessor = { ...PREPARED[name], ...COLOURS };
      const own = settingsOf({ imageProcessor, processor: {}, config, tokenizer: { ...AROUND[name] } });
      expect(settingsOf(pictures!)).toEqual(own);
      expect(pictures!.config.image_token_id).toBe(100);
    },
  );

  it('are those of a preprocessor_config.json that lies next to the file', () => {
    const directory = fresh();
    mkdirSync(directory);
    const file = writeMadeMmproj(join(directory, 'mmproj.gguf'), madeMmproj('pixtral'));
    const own = { image_processor_type: 'PixtralImageProcessor', size: { longest_edge: 20 } };
    writeFileSync(join(directory, 'preprocessor_config.json'), JSON.stringify(own));
    expect(openTower(textOf('pixtral', file))!.pictures!.imageProcessor).toEqual(own);
  });

  it('are the shortest decimals of numbers that are f32', () => {
    expect([0.48145466, 0.5, 1e-6, 1 / 3].map((number) => shortest(Math.fround(number)))).toEqual([
      0.48145467, 0.5, 1e-6, 0.33333334,
    ]);
  });
});

describe('a file of another model', () => {
  const changed = (name: string, key: string, value: number | string | boolean | boolean[] | undefined) => {
    const gguf = madeMmproj(name);
    const keys = gguf.tower.keys.flatMap((entry): MadeMmproj['tower']['keys'] => {
      if (entry[0] !== key) return [entry];
      return value === undefined ? [] : [[key, entry[1], value]];
    });
    return writeMadeMmproj(`${fresh()}.gguf`, gguf, 'F32', { keys });
  };

  it.each([
    ['clip.vision.projection_dim', 48, /vision\.projection_dim should be 32, the width of .*, found 48\.$/],
    [
      'clip.projector_type',
      'resampler',
      /projector_type should be one of qwen3vl_merger, .*, found resampler\.$/,
    ],
    ['clip.projector_type', undefined, /projector_type should be one of .*, found nothing\.$/],
    [
      'general.architecture',
      'llama',
      /general\.architecture should be clip, as that of a tower, found llama\.$/,
    ],
    ['clip.has_vision_encoder', false, /sees no pictures: clip\.has_vision_encoder is not true\.$/],
    ['clip.vision.is_deepstack_layers', [true, false, false], /makes 1 levels of a picture .* adds 2\.$/],
    [
      'clip.vision.block_count',
      4,
      /tensor tower\.blocks\.3\.\S+ and 11 more that the configuration calls for is missing/,
    ],
    [
      'clip.vision.patch_size',
      4,
      /tensor v\.patch_embd\.weight should have the shape \[16, 96\], found \[16, 24\]/,
    ],
    ['clip.vision.patch_size', 0, /vision\.patch_size should be a whole number from 1 to 16384, found 0/],
    ['clip.vision.image_mean', undefined, /vision\.image_mean should be a list of 3 numbers, found nothing/],
  ])('is refused by one sentence: %s %j', (key, value, message) => {
    const text = textOf('qwen3-vl', changed('qwen3-vl', key, value));
    expect(() => openTower(text)).toThrow(message);
  });

  it('is refused where it belongs to other text models, and where the vocabulary has no token for pictures', () => {
    const file = writeMadeMmproj(`${fresh()}.gguf`, madeMmproj('qwen3-vl'));
    const text = textOf('qwen3-vl', file);
    expect(() => openTower({ ...text, config: { ...text.config, architecture: 'llama' } })).toThrow(
      /belongs to a text model of qwen3, qwen3moe, qwen35, qwen35moe; .* is llama\.$/,
    );
    const tokenizer = { ...text.tokenizer, tokenizerJson: { added_tokens: [] } };
    expect(() => openTower({ ...text, tokenizer })).toThrow(/has no token <\|image_pad\|>, which stands for/);
  });

  it('is refused where it is damaged', () => {
    const file = writeMadeMmproj(`${fresh()}.gguf`, madeMmproj('qwen3-vl'));
    const text = textOf('qwen3-vl', file);
    const bytes = readFileSync(file);
    writeFileSync(file, bytes.subarray(0, bytes.length - 4000));
    expect(() => openTower(text)).toThrow(/mmproj|\.gguf: tensor \S+ .*end/);
  });

  it('is not chosen among several', () => {
    const text = textOf('qwen3-vl', writeMadeMmproj(`${fresh()}.gguf`, madeMmproj('qwen3-vl')));
    const mmproj = [join(folder, 'mmproj-f16.gguf'), join(folder, 'mmproj-f32.gguf')];
    expect(() => openTower({ ...text, mmproj })).toThrow(
      /holds 2 GGUF files of towers \(mmproj-f16\.gguf, mmproj-f32\.gguf\); name the one you mean with --mmproj\.$/,
    );
  });
});
