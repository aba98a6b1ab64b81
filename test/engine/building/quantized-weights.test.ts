import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  type ConvertWeights,
  convertPortably,
  weightConverter,
} from '../../../engine/building/weight-converter.js';
import { automaticPrecision } from '../../../engine/building/weight-precision.js';
import type { ConvertJob } from '../../../engine/directory/convert-job.js';
import type { TensorPrecision } from '../../../engine/directory/engine-directory.js';
import { storedParts } from '../../../engine/directory/stored-precision.js';
import { storedBytes } from '../../../engine/directory/weight-blocks.js';
import { dequantizeRows } from '../../../engine/executors/portable/weights/dequantize.js';
import { planNetwork } from '../../../models/architectures/index.js';
import type { TensorLocation } from '../../../models/checkpoints/checkpoint.js';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import { freshFolders } from '../../support/fresh-folders.js';
import { QUANTIZED_MODELS, quantizedNames, writeQuantizedModel } from '../../support/quantized-models.js';

const fresh = freshFolders('skein-quantized');

/** What each form runs as, by its golden's name. */
const RUNS_AS: Readonly<Record<string, TensorPrecision>> = {
  'fp8-blocks': 'bf16',
  'fp8-tensor': 'bf16',
  'fp8-experts': 'bf16',
  'fp8-powers': 'bf16',
  'ct-fp8-channel': 'bf16',
  'ct-int8': 'int8',
  'ct-int4': 'int4',
  'ct-int4-zeros': 'q5_0',
  'ct-int8-zeros': 'bf16',
  'ct-nvfp4': 'int8',
  'ct-mxfp4': 'mxfp4',
  mxfp4: 'mxfp4',
  gptq: 'int4',
  'gptq-order': 'bf16',
  'gptq-v2': 'q5_0',
  'gptq-8': 'int8',
  awq: 'q5_0',
};
/** Forms whose numbers stay as they are, and those that are powers of 2 times 4 bits, which bf16 has. */
const ROUNDED = new Set([
  'fp8-blocks',
  'fp8-experts',
  'fp8-tensor',
  'ct-fp8-channel',
  'ct-int8-zeros',
  'ct-nvfp4',
  'gptq-order',
]);

async function converted(
  convert: ConvertWeights,
  folder: string,
  tensor: TensorLocation,
  dtype: TensorPrecision,
): Promise<Buffer> {
  const [rows, columns] = tensor.shape as [number, number];
  const target = join(folder, 'converted.bin');
  writeFileSync(target, Buffer.alloc(storedBytes(dtype, rows, columns)));
  const job: ConvertJob = {
    source: tensor.file,
    sourceOffset: tensor.offset,
    sourceByteLength: tensor.byteLength,
    type: tensor.type,
    rows,
    columns,
    interleavedHeads: tensor.interleavedHeads ?? 0,
    ...(tensor.quantized && { quantized: tensor.quantized }),
    targetOffset: 0,
    targetType: dtype,
  };
  await convert(target, [job], { threads: 2 });
  return readFileSync(target);
}

/** Numbers as float32, -0 as 0: zeros have no sign in some forms. */
function valuesOf(bytes: Buffer, dtype: TensorPrecision, [rows, columns]: [number, number]): Float32Array {
  const values = new Float32Array(rows * columns);
  dequantizeRows(dtype, new Uint8Array(bytes), columns, values);
  return values.map((value) => value + 0);
}

describe('the fixtures', () => {
  it('have a golden each', () => {
    expect(QUANTIZED_MODELS.map(({ name }) => name).sort()).toEqual(quantizedNames());
  });
});

describe.each(QUANTIZED_MODELS)('$name', ({ name, matrices }) => {
  const folder = writeQuantizedModel(fresh(), name);
  const checkpoint = openCheckpoint(folder);
  const plan = planNetwork(checkpoint.config);
  const tensors = matrices.map((matrix) => ({ matrix, tensor: checkpoint.tensors.get(matrix.name)! }));

  it('has the numbers that its own library finds, by both converters', async () => {
    expect(tensors.length).toBeGreaterThanOrEqual(7);
    for (const { matrix, tensor } of tensors) {
      for (const convert of [convertPortably, weightConverter()]) {
        const values = valuesOf(await converted(convert, folder, tensor, 'f32'), 'f32', matrix.shape);
        expect([...values.subarray(0, 4)], matrix.name).toEqual(matrix.first.map(Math.fround));
        expect(createHash('sha256').update(values).digest('hex'), matrix.name).toBe(matrix.sha256);
      }
    }
  });

  it('runs in the form that keeps most of them', async () => {
    const dtype = RUNS_AS[name]!;
    expect(automaticPrecision(checkpoint, plan)).toBe('stored');
    const quantized = new Set(matrices.map((matrix) => matrix.name));
    for (const weight of plan.weights) {
      if (!weight.sources.every((source) => quantized.has(source.name))) continue;
      expect(storedParts(checkpoint, weight), weight.name).toEqual([{ dtype, rows: weight.rows }]);
    }
    let greatest = 0;
    for (const { matrix, tensor } of tensors) {
      const exact = valuesOf(await converted(convertPortably, folder, tensor, 'f32'), 'f32', matrix.shape);
      const kept = await converted(convertPortably, folder, tensor, dtype);
      expect(kept.equals(await converted(weightConverter(), folder, tensor, dtype))).toBe(true);
      const values = valuesOf(kept, dtype, matrix.shape);
      const scale = exact.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
      for (const [i, value] of values.entries())
        greatest = Math.max(greatest, Math.abs(value - exact[i]!) / scale);
    }
    if (ROUNDED.has(name)) expect(greatest).toBeGreaterThan(0);
    expect(greatest).toBeLessThanOrEqual(ROUNDED.has(name) ? (dtype === 'int8' ? 1 / 254 : 1 / 256) : 0);
  });
});
