import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type MadeTower, madeTower, writeMadeTower } from './made-towers.js';

const CHARACTERS = ' abcdefghijklmnopqrstuvwxyz:;?.\n';
const IMAGE = { id: 100, content: '<|image_pad|>', special: true };

const TEMPLATE = `{% for message in messages %}{{ message.role[0] }}:
{%- if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}
{%- if part.type == 'image' %}<|image_pad|>{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %};
{%- endfor %}{% if add_generation_prompt %}a:{% endif %}`;

export interface SeeingModelOptions {
  /** Pixels of a patch's side; default 2. */
  patchSize?: number;
  /** Most pixels that a picture is shown with; default 400. */
  maxPixels?: number;
  /** Most tokens of a sequence; default 256. */
  maxTokens?: number;
}

/** Writes the made Qwen3-VL with a tokenizer of letters, a chat template and an image processor. */
export function writeSeeingModel(
  folder: string,
  { patchSize = 2, maxPixels = 400, maxTokens = 256 }: SeeingModelOptions = {},
): string {
  const made = withPatches(madeTower('qwen3-vl'), patchSize, maxTokens);
  const directory = writeMadeTower(folder, made);
  const write = (name: string, value: object) => writeFileSync(join(directory, name), JSON.stringify(value));
  const vocab = Object.fromEntries(
    Array.from({ length: 100 }, (_, id) => [CHARACTERS[id - 3] ?? `<${id}>`, id]),
  );
  write('tokenizer.json', {
    version: '1.0',
    added_tokens: [IMAGE],
    model: { type: 'BPE', vocab, merges: [] },
  });
  write('tokenizer_config.json', { chat_template: TEMPLATE });
  write('preprocessor_config.json', {
    image_processor_type: 'Qwen2VLImageProcessor',
    size: { shortest_edge: 64, longest_edge: maxPixels },
    patch_size: patchSize,
    merge_size: 2,
    temporal_patch_size: 2,
  });
  return directory;
}

/** The model with patches and sequences of other sizes. */
function withPatches(made: MadeTower, patch: number, maxTokens: number): MadeTower {
  const { vision_config: vision, text_config: text } = made.config as Record<string, object>;
  return {
    ...made,
    config: {
      ...made.config,
      vision_config: { ...vision, patch_size: patch },
      text_config: { ...text, max_position_embeddings: maxTokens },
    },
    tensors: made.tensors.map(([name, shape, mean, spread]) =>
      name.endsWith('patch_embed.proj.weight')
        ? [name, [...shape.slice(0, -2), patch, patch], mean, (spread * 2) / patch]
        : [name, shape, mean, spread],
    ),
  };
}
