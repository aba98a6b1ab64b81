import { statSync } from 'node:fs';
import { isSupportedType } from '../../models/checkpoints/raw-tensor.js';
import type { NetworkPlan } from '../../network/plan.js';
import type { ConvertJob } from '../executors/native/addon.js';
import type { EngineManifest, EngineTensor, SourceFile, SourcePiece } from './engine-directory.js';

/** A tensor with what reads its rows out of the model's file; without `jobs` it lies in weights.bin. */
export interface LoadableTensor extends EngineTensor {
  jobs?: ConvertJob[];
  /** The file that they read, as it was when the engine was made. */
  sourceFile?: SourceFile;
}

/** True if the model's file is another one than the engine was made of, as far as its length and time tell, or is gone. */
export function hasSourceChanged(tensors: readonly LoadableTensor[]): boolean {
  const file = tensors.find(({ sourceFile }) => sourceFile !== undefined)?.sourceFile;
  if (file === undefined) return false;
  const now = statSync(file.path, { throwIfNoEntry: false });
  return now?.size !== file.byteLength || now.mtimeMs !== file.modifiedMs;
}

/** The tensors of an engine with the jobs of those that lie in the model's file. */
export function loadableTensors({ tensors, sourceFile }: EngineManifest): LoadableTensor[] {
  return tensors.map((tensor) => {
    const { pieces, dtype, columns } = tensor;
    if (pieces === undefined || sourceFile === undefined) return tensor;
    const jobs = pieces.map(
      ({ type, offset, byteLength, rows, interleavedHeads = 0 }): ConvertJob => ({
        source: sourceFile.path,
        sourceOffset: offset,
        sourceByteLength: byteLength,
        type,
        rows,
        columns,
        interleavedHeads,
        targetOffset: 0,
        targetType: dtype,
      }),
    );
    return { ...tensor, jobs, sourceFile };
  });
}

/** True if what engine.json says of the model's file can be so: each such tensor has its rows there, and only products read it. */
export function areWholePieces({ tensors, sourceFile }: EngineManifest, plan: NetworkPlan): boolean {
  const inSource = tensors.filter((tensor) => tensor?.pieces !== undefined);
  if (inSource.length === 0) return true;
  const length = sourceFile?.byteLength;
  if (typeof sourceFile?.path !== 'string' || !(Number.isSafeInteger(length) && length! > 0)) return false;
  if (!(sourceFile.modifiedMs > 0)) return false;
  const multiplied = onlyMultiplied(plan);
  const isRight = (piece: SourcePiece) =>
    isSupportedType(piece?.type) &&
    [piece.offset, piece.byteLength, piece.interleavedHeads ?? 0].every(
      (number) => Number.isSafeInteger(number) && number >= 0,
    ) &&
    Number.isSafeInteger(piece.rows) &&
    piece.rows > 0 &&
    piece.offset + piece.byteLength <= length!;
  return inSource.every(
    ({ name, rows, pieces }) =>
      multiplied.has(name) &&
      Array.isArray(pieces) &&
      pieces.every(isRight) &&
      pieces.reduce((sum, piece) => sum + piece.rows, 0) === rows,
  );
}

/** Names of the matrices of which steps read only panels. */
export function onlyMultiplied({ ops }: NetworkPlan): Set<string> {
  const names = new Set<string>();
  for (const op of ops) if (op.op === 'linear' || op.op === 'gatedLinear') names.add(op.weight);
  for (const op of ops) {
    if (op.op !== 'linear' && op.op !== 'gatedLinear') {
      if ('weight' in op) names.delete(op.weight);
    } else if (op.bias !== null) names.delete(op.bias);
  }
  return names;
}
