import { statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isSupportedType } from '../../models/checkpoints/raw-tensor.js';
import type { NetworkPlan } from '../../network/plan.js';
import { multipliedWeights, networksOf, productsOf } from '../../network/products.js';
import type { ConvertJob } from '../directory/convert-job.js';
import type {
  EngineManifest,
  EngineTensor,
  SourceFile,
  SourcePart,
  SourcePiece,
} from './engine-directory.js';

/** A tensor with what reads its rows out of the model's file; without `jobs` it lies in weights.bin. */
export interface LoadableTensor extends EngineTensor {
  jobs?: ConvertJob[];
  /** The file that they read, as it was when the engine was made. */
  sourceFile?: SourceFile;
}

/** Most places of a model's file that are kept. */
const MAX_PLACES = 8;

/** The model's file at a place, followed by the other ones. */
export function placedAt({ path, otherPaths = [], ...facts }: SourceFile, place: string): SourceFile {
  const others = [path, ...otherPaths].filter((one) => one !== place).slice(0, MAX_PLACES - 1);
  return { path: place, ...(others.length === 0 ? {} : { otherPaths: others }), ...facts };
}

/** The model's file where it is present, of all places that it is known to have had; without one as it is. */
export function presentSource(file: SourceFile): SourceFile {
  const places = [file.path, ...(file.otherPaths ?? [])];
  const found = places.length === 1 ? undefined : places.find((place) => isSame(file, place));
  return found === undefined ? file : placedAt(file, found);
}

/** The parts of the model's file where its first one is at a place; one where it is not split. */
function partsAt({ path, byteLength, modifiedMs, otherParts = [] }: SourceFile, place = path) {
  const others = otherParts.map((part) => ({ ...part, path: join(dirname(place), part.name) }));
  return [{ path: place, byteLength, modifiedMs }, ...others];
}

function isSame(file: SourceFile, place: string): boolean {
  return partsAt(file, place).every(({ path, byteLength, modifiedMs }) => {
    const now = statSync(path, { throwIfNoEntry: false });
    return now?.size === byteLength && now.mtimeMs === modifiedMs;
  });
}

/** What engine.json says of a model's file. @param files its parts, or the only one */
export function sourceFileOf(files: readonly string[]): SourceFile {
  const [first, ...others] = files.map((path) => {
    const { size, mtimeMs } = statSync(path);
    return { path, byteLength: size, modifiedMs: mtimeMs };
  });
  const otherParts = others.map(({ path, ...facts }) => ({ name: basename(path), ...facts }));
  return { ...first!, ...(otherParts.length === 0 ? {} : { otherParts }) };
}

/** True if the model's file is another one than the engine was made of, as far as its length and time tell, or is gone. */
export function hasSourceChanged(tensors: readonly LoadableTensor[]): boolean {
  const file = tensors.find(({ sourceFile }) => sourceFile !== undefined)?.sourceFile;
  return file !== undefined && !isSame(file, file.path);
}

/** The tensors of an engine with the jobs of those that lie in the model's file. */
export function loadableTensors({ tensors, sourceFile }: EngineManifest): LoadableTensor[] {
  const parts = sourceFile === undefined ? [] : partsAt(sourceFile);
  return tensors.map((tensor) => {
    const { pieces, dtype, columns } = tensor;
    if (pieces === undefined || sourceFile === undefined) return tensor;
    const jobs = pieces.map(
      ({ type, part = 0, offset, byteLength, rows, interleavedHeads = 0 }): ConvertJob => ({
        source: parts[part]!.path,
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
export function areWholePieces(
  { tensors, sourceFile }: Pick<EngineManifest, 'tensors' | 'sourceFile'>,
  plan: NetworkPlan,
): boolean {
  const inSource = tensors.filter((tensor) => tensor?.pieces !== undefined);
  if (inSource.length === 0) return true;
  if (!isSourceFile(sourceFile)) return false;
  const parts = partsAt(sourceFile);
  const multiplied = onlyMultiplied(plan);
  const isRight = (piece: SourcePiece) =>
    isSupportedType(piece?.type) &&
    [piece.part ?? 0, piece.offset, piece.byteLength, piece.interleavedHeads ?? 0].every(
      (number) => Number.isSafeInteger(number) && number >= 0,
    ) &&
    Number.isSafeInteger(piece.rows) &&
    piece.rows > 0 &&
    piece.offset + piece.byteLength <= (parts[piece.part ?? 0]?.byteLength ?? -1);
  return inSource.every(
    ({ name, rows, pieces }) =>
      multiplied.has(name) &&
      Array.isArray(pieces) &&
      pieces.every(isRight) &&
      pieces.reduce((sum, piece) => sum + piece.rows, 0) === rows,
  );
}

function isSourceFile(file: SourceFile | undefined): file is SourceFile {
  const { path, otherPaths = [], otherParts = [] } = file ?? ({} as Partial<SourceFile>);
  const isPlace = (one: unknown) => typeof one === 'string';
  if (!isPlace(path) || !Array.isArray(otherPaths) || !otherPaths.every(isPlace)) return false;
  // A part lies next to the first: its name leads nowhere else.
  const isPart = (one: Partial<SourcePart> | null) =>
    isPlace(one?.name) && basename(one!.name!) === one!.name;
  if (!Array.isArray(otherParts) || !otherParts.every(isPart)) return false;
  return partsAt(file!).every(
    ({ byteLength, modifiedMs }) => Number.isSafeInteger(byteLength) && byteLength > 0 && modifiedMs > 0,
  );
}

/** Names of the matrices of which steps read only panels. */
export function onlyMultiplied(plan: NetworkPlan): Set<string> {
  const names = multipliedWeights(plan);
  for (const op of networksOf(plan).flatMap(({ ops }) => ops)) {
    if ('bias' in op && op.bias !== null) names.delete(op.bias);
    if ('weight' in op && op.weight !== null && productsOf(op).length === 0) names.delete(op.weight);
  }
  return names;
}
