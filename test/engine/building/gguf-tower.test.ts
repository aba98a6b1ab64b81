import { copyFileSync, cpSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { buildEngine } from '../../../engine/building/builder.js';
import { cachedEngine } from '../../../engine/building/engine-cache.js';
import { openTowerEngine } from '../../../engine/building/tower-engine.js';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { madeMmproj, writeMadeGgufs, writeMadeMmproj } from '../../support/made-mmproj.js';
import { madeTower, writeMadeTower } from '../../support/made-towers.js';

const folder = temporaryFolder('skein-gguf-tower');
const TEMPLATE =
  "{% for part in messages[0].content %}{% if part.type == 'image' %}<image>{% endif %}{% endfor %}";

const model = writeMadeGgufs(folder, 'smolvlm', '<image>', TEMPLATE);
const tower = join(dirname(model), 'mmproj-model.gguf');
const alone = join(temporaryFolder('skein-gguf-alone'), 'model.gguf');
copyFileSync(model, alone);

let built = 0;
const build = async (path: string, mmproj?: string) => {
  const options = { outputDirectory: join(folder, `engine-${built++}`), precision: 'f32', threads: 1 };
  const { directory } = await buildEngine({ ...options, model: path, ...(mmproj && { mmproj }) });
  return directory;
};

it('takes the tower that lies next to a GGUF, and one that is named', async () => {
  const [found, named] = [await build(model), await build(alone, tower)];
  const weights = (directory: string) => readFileSync(join(directory, 'tower', 'weights.bin'));
  expect(openTowerEngine(found).config.kind).toBe('siglip');
  expect(weights(named).equals(weights(found))).toBe(true);
});

it('is a text model without a tower, and says why it does not see', async () => {
  const directory = await build(alone);
  expect(() => openTowerEngine(directory)).toThrow(
    /no GGUF of its tower, with mmproj in its name, lies next to it, and none is named with --mmproj\.$/,
  );
});

it('says nothing of pictures of a model whose template knows none', async () => {
  const plain = writeMadeGgufs(temporaryFolder('skein-gguf-plain'), 'pixtral', '[IMG]', '{{ messages }}');
  const other = join(temporaryFolder('skein-gguf-other'), 'model.gguf');
  copyFileSync(plain, other);
  const directory = await build(other);
  expect(() => openTowerEngine(directory)).toThrow(/this model reads texts alone/);
});

it('runs as a text model next to the tower of another model, or several; one that is named has to fit', async () => {
  const others = join(folder, 'others');
  cpSync(dirname(model), others, { recursive: true });
  const other = writeMadeMmproj(join(others, 'mmproj-model.gguf'), madeMmproj('qwen3-vl'));
  const directory = await build(join(others, 'model.gguf'));
  expect(() => openTowerEngine(directory)).toThrow(/belongs to a text model of qwen3, .* is llama\.$/);
  await expect(build(alone, other)).rejects.toThrow(/belongs to a text model of qwen3/);
  copyFileSync(tower, join(others, 'second-mmproj.gguf'));
  const undecided = await build(others);
  expect(() => openTowerEngine(undecided)).toThrow(
    /holds 2 GGUF files of towers \(mmproj-model\.gguf, second-mmproj\.gguf\); name the one you mean/,
  );
});

it('is another engine of the cache with a tower that comes later', async () => {
  const place = join(folder, 'later');
  cpSync(dirname(alone), place, { recursive: true });
  const options = { model: place, precision: 'f32', threads: 1, cacheDirectory: join(folder, 'cache') };
  const before = await cachedEngine(options);
  copyFileSync(tower, join(place, 'mmproj-model.gguf'));
  const after = await cachedEngine(options);
  expect(after.directory).not.toBe(before.directory);
  expect(openTowerEngine(after.directory).config.numLayers).toBe(2);
});

it('belongs to a GGUF, and is a file that is there', () => {
  const safetensors = writeMadeTower(folder, madeTower('smolvlm'));
  expect(() => openCheckpoint(safetensors, { mmproj: tower })).toThrow(
    /holds safetensors; mmproj belongs to a GGUF/,
  );
  expect(() => openCheckpoint(alone, { mmproj: join(folder, 'none.gguf') })).toThrow(/none\.gguf/);
});
