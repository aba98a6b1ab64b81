import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Checkpoint } from '../../../models/checkpoints/checkpoint.js';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import { readSafetensors } from '../../../models/checkpoints/safetensors.js';
import type { TestTensor } from '../../../tools/support/gguf-writer.js';
import { safetensorsBytes } from '../../../tools/support/safetensors-writer.js';
import { tinyModelPath } from '../../../tools/support/test-engine.js';
import { freshFolders } from '../../support/fresh-folders.js';

const fresh = freshFolders('skein-experts');

/** The tensors of a tiny model's file. */
function tensorsOf(model: string): TestTensor[] {
  const file = join(tinyModelPath(model), 'model.safetensors');
  const bytes = readFileSync(file);
  return readSafetensors(file).map(({ name, shape, type, offset, byteLength }) => ({
    name,
    shape,
    type,
    data: bytes.subarray(offset, offset + byteLength!),
  }));
}

/** The same as transformers 5 has them in memory, and writes them if it is asked to. */
function stackedTensors(model: string): TestTensor[] {
  const plain = tensorsOf(model);
  const experts = /^(model\.layers\.\d+)\.(?:mlp|block_sparse_moe)\.experts\.(\d+)\.(\w+)\.weight$/;
  const stacks = new Map<string, TestTensor[]>();
  const others: TestTensor[] = [];
  for (const tensor of plain) {
    const [, layer, , matrix] = experts.exec(tensor.name) ?? [];
    if (layer === undefined) {
      others.push({ ...tensor, name: tensor.name.replace('.block_sparse_moe.', '.mlp.') });
      continue;
    }
    const isDown = matrix === 'down_proj' || matrix === 'w2';
    const name = `${layer}.mlp.experts.${isDown ? 'down_proj' : 'gate_up_proj'}`;
    stacks.set(name, [...(stacks.get(name) ?? []), tensor]);
  }
  const placeOf = ({ name }: TestTensor) => {
    const [, , expert, matrix] = experts.exec(name)!;
    return 2 * Number(expert) + (matrix === 'up_proj' || matrix === 'w3' ? 1 : 0);
  };
  for (const [name, parts] of stacks) {
    parts.sort((a, b) => placeOf(a) - placeOf(b));
    const [rows, columns] = parts[0]!.shape as [number, number];
    const inExpert = name.endsWith('gate_up_proj') ? 2 : 1;
    const shape = [parts.length / inExpert, inExpert * rows, columns];
    others.push({ name, shape, type: parts[0]!.type!, data: Buffer.concat(parts.map(({ data }) => data)) });
  }
  return others;
}

function write(model: string, tensors: readonly TestTensor[]): string {
  const folder = fresh();
  cpSync(tinyModelPath(model), folder, { recursive: true });
  writeFileSync(join(folder, 'model.safetensors'), safetensorsBytes(tensors));
  return folder;
}

function contents({ tensors }: Checkpoint): Map<string, string> {
  return new Map(
    [...tensors].sort().map(([name, { file, type, shape, offset, byteLength }]) => {
      const bytes = readFileSync(file).subarray(offset, offset + byteLength);
      return [name, `${type} ${shape} ${bytes.toString('base64')}`];
    }),
  );
}

describe('safetensors with all experts of a layer in one tensor', () => {
  it.each(['qwen3moe', 'mixtral'])('have the weights of those with a tensor for each: tiny %s', (model) => {
    const stacked = stackedTensors(model);
    expect(stacked.map(({ name }) => name)).toContain('model.layers.1.mlp.experts.gate_up_proj');
    const found = contents(openCheckpoint(write(model, stacked)));
    expect(found).toEqual(contents(openCheckpoint(tinyModelPath(model))));
  });

  it.each<[string, (tensors: TestTensor[]) => TestTensor[], RegExp]>([
    [
      'whose columns come first',
      (tensors) =>
        tensors.map((one) =>
          one.name.endsWith('0.mlp.experts.down_proj') ? { ...one, shape: [8, 32, 64] } : one,
        ),
      /tensor model\.layers\.0\.mlp\.experts\.down_proj should have the shape \[8, 64, 32\], found \[8, 32, 64\]\.$/,
    ],
    [
      'of a type that is not read',
      (tensors) =>
        tensors.map((one) =>
          one.name.endsWith('1.mlp.experts.gate_up_proj') ? { ...one, type: 'I16' } : one,
        ),
      /tensor model\.layers\.1\.mlp\.experts\.gate_up_proj has type I16; supported/,
    ],
    [
      'beside a tensor of one expert',
      (tensors) => [
        ...tensors,
        ...tensorsOf('qwen3moe').filter(({ name }) => name.endsWith('1.mlp.experts.3.up_proj.weight')),
      ],
      /tensor model\.layers\.1\.mlp\.experts\.3\.up_proj\.weight is there twice/,
    ],
    [
      'that are missing',
      (tensors) => tensors.filter(({ name }) => !name.endsWith('1.mlp.experts.down_proj')),
      /tensor model\.layers\.1\.mlp\.experts\.0\.down_proj\.weight and 7 more that/,
    ],
  ])('%s are refused by name', (_, change, message) => {
    const path = write('qwen3moe', change(stackedTensors('qwen3moe')));
    expect(() => openCheckpoint(path)).toThrow(message);
  });
});
