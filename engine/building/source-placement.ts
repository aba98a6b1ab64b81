import type { Checkpoint, TensorType } from '../../models/checkpoints/checkpoint.js';
import type { NetworkPlan, PlanWeight } from '../../network/plan.js';
import type { ConvertJob } from '../directory/convert-job.js';
import type { SourcePiece, TensorPrecision } from '../directory/engine-directory.js';
import { onlyMultiplied } from '../directory/source-tensors.js';
import type { WeightPart } from '../directory/stored-precision.js';
import { exactConversion } from '../executors/portable/convert/exact-conversion.js';

/**
 * Matrices that an engine of the cache leaves in the GGUF that it is made of: a copy in weights.bin would only be as large again.
 *
 *   GGUF      | blk.0.attn_q | blk.0.attn_k | ... | token_embd | norms |
 *                   |  rows, in the order and the format of weights.bin          '- copied: weights.bin
 *                   '---------------> panels of an instruction set
 *
 * A matrix stays if only products read it, whose panels are packed once, and if it is made of the file quickly each time that
 * it is read: not if weights are to be found for int8 or int4, or if its rows lie in two parts of a split
 * file. What a step reads by its rows lies in weights.bin, so that a file that is cut off while a server runs
 * cannot harm that server.
 */
export function staysInSource(
  { format, tensors }: Pick<Checkpoint, 'format' | 'tensors'>,
  plan: NetworkPlan,
): (weight: PlanWeight, part: WeightPart, firstRow: number) => boolean {
  const multiplied = onlyMultiplied(plan);
  return (weight, { dtype, rows }, firstRow) => {
    if (format !== 'gguf' || !multiplied.has(weight.name)) return false;
    let row = 0;
    const files = new Set<string>();
    return weight.sources.every(({ name, rows: own }) => {
      const first = row;
      row += own;
      const { file, type, transposed = false, addend = 0 } = tensors.get(name)!;
      if (first >= firstRow + rows || row <= firstRow) return true;
      files.add(file);
      return files.size === 1 && !transposed && addend === 0 && isQuick(type, dtype);
    });
  };
}

const isQuick = (type: TensorType, dtype: TensorPrecision) =>
  dtype === 'f32' || dtype === 'bf16' || exactConversion(type, dtype) !== undefined;

/** The places of a tensor's rows in the model's file, of the jobs that would convert them. @param files its parts, or the only one */
export function piecesOf(jobs: readonly ConvertJob[], files: readonly string[]): SourcePiece[] {
  return jobs.map(({ type, source, sourceOffset, sourceByteLength, rows, interleavedHeads }) => ({
    type,
    ...(files.indexOf(source) > 0 ? { part: files.indexOf(source) } : {}),
    offset: sourceOffset,
    byteLength: sourceByteLength,
    rows,
    ...(interleavedHeads === 0 ? {} : { interleavedHeads }),
  }));
}
