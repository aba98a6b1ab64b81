import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { madeTower, writeMadeTower } from './made-towers.js';

const CHARACTERS = ' abcdefghijklmnopqrstuvwxyz:;?.\n';
const IMAGE = { id: 100, content: '<|image_pad|>', special: true };

const TEMPLATE = `{% for message in messages %}{{ message.role[0] }}:
{%- if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}
{%- if part.type == 'image' %}<|image_pad|>{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %};
{%- endfor %}{% if add_generation_prompt %}a:{% endif %}`;

/** Writes the made Qwen3-VL with a tokenizer of letters, a chat template and an image processor. */
export function writeSeeingModel(folder: string): string {
  const made = madeTower('qwen3-vl');
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
    size: { shortest_edge: 64, longest_edge: 400 },
    patch_size: 2,
    merge_size: 2,
    temporal_patch_size: 2,
  });
  return directory;
}
