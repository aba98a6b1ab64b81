import type { Checkpoint, TensorLocation } from '../../models/checkpoints/checkpoint.js';
import { bytesOf } from '../../models/checkpoints/raw-tensor.js';
import type { NetworkPlan } from '../../network/plan.js';
import type { ConvertJob } from '../directory/convert-job.js';
import { type EngineTensor, tensorsByWeight } from '../directory/engine-directory.js';
import { storedBytes } from '../directory/weight-blocks.js';

/** A job, and the tensor whose rows it makes. */
export interface TensorJob {
  tensor: EngineTensor;
  job: ConvertJob;
}

/**
 * Makes one job per source, or several of one whose columns are interleaved or come by turns: the sources of a stacked weight follow one another in the rows of its tensors, and no source has rows
 * in two of them.
 */
export function convertJobs(
  checkpoint: Pick<Checkpoint, 'tensors'>,
  plan: NetworkPlan,
  tensors: readonly EngineTensor[],
): TensorJob[] {
  const ofWeight = tensorsByWeight(tensors);
  return plan.weights.flatMap((weight) => {
    const parts = ofWeight.get(weight.name)!.values();
    let part = parts.next().value!;
    let done = 0;
    return weight.sources.flatMap(({ name, rows, columns, factor = 1 }): TensorJob[] => {
      if (done === part.rows && weight.kind === 'matrix') {
        part = parts.next().value!;
        done = 0;
      }
      const { dtype, offset } = part;
      const tensor = checkpoint.tensors.get(name)!;
      // In the bias of interleaved heads, each element counts as a row.
      const asColumn = weight.kind === 'vector' && tensor.interleavedHeads !== undefined;
      const before =
        weight.kind === 'vector' ? storedBytes(dtype, 1, done) : storedBytes(dtype, done, columns);
      done += weight.kind === 'vector' ? columns : rows;
      const job = {
        source: tensor.file,
        sourceOffset: tensor.offset,
        sourceByteLength: tensor.byteLength,
        type: tensor.type,
        rows: asColumn ? columns : rows,
        columns: asColumn ? 1 : columns,
        interleavedHeads: tensor.interleavedHeads ?? 0,
        transposed: tensor.transposed ?? false,
        addend: tensor.addend ?? 0,
        factor,
        ...(tensor.quantized && { quantized: tensor.quantized }),
        targetOffset: offset + before,
        targetType: dtype,
      };
      const jobs = tensor.byTurns === undefined ? rowsInOrder(job, tensor) : jobsByTurns(job, tensor.byTurns);
      return jobs.map((one) => ({ tensor: part, job: one }));
    });
  });
}

/** The job itself, or one for each row whose columns are interleaved: the row is a matrix that is turned. */
function rowsInOrder(job: ConvertJob, { interleavedColumns: count }: TensorLocation): ConvertJob[] {
  if (count === undefined) return [job];
  const sourceBytes = job.sourceByteLength / job.rows;
  const targetBytes = storedBytes(job.targetType, 1, job.columns);
  return Array.from({ length: job.rows }, (_, row): ConvertJob => {
    const place = {
      sourceOffset: job.sourceOffset + row * sourceBytes,
      sourceByteLength: sourceBytes,
      targetOffset: job.targetOffset + row * targetBytes,
    };
    return { ...job, ...place, rows: count, columns: job.columns / count, transposed: true };
  });
}

/** One job for each piece of a matrix whose numbers several tensors have by turns. */
function jobsByTurns(job: ConvertJob, { run, others }: NonNullable<TensorLocation['byTurns']>): ConvertJob[] {
  const { rows, columns, type, source, sourceOffset, targetOffset, targetType } = job;
  const parts = [{ file: source, offset: sourceOffset }, ...others];
  const pieceBytes = bytesOf(source, '', type, [1, run]);
  return Array.from({ length: (rows * columns) / run }, (_, piece): ConvertJob => {
    const { file, offset } = parts[piece % parts.length]!;
    return {
      ...job,
      source: file,
      sourceOffset: offset + Math.floor(piece / parts.length) * pieceBytes,
      sourceByteLength: pieceBytes,
      rows: 1,
      columns: run,
      targetOffset: targetOffset + piece * storedBytes(targetType, 1, run),
    };
  });
}
