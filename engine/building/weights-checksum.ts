import { readdirSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import zlib from 'node:zlib';
import { defaultThreads } from '../../base/topology.js';
import { multipliedWeights } from '../../network/products.js';
import { type EngineTensor, PACKED_FILE } from '../directory/engine-directory.js';
import { type LoadableTensor, loadableTensors } from '../directory/source-tensors.js';
import { loadAddon, nativeAddonAvailable } from '../executors/native/load-addon.js';
import { sourceChecksum, withSourceHint } from '../executors/source-checksum.js';
import { type Engine, EngineError } from './engine.js';

/** Number of bytes read at a time: they hold up this thread for a millisecond. */
const READ_BYTES = 4 * 1024 * 1024;

/** False in Node.js 22.0 and 22.1, which have no CRC-32: then only the addon sums up. */
export const CAN_SUM = typeof zlib.crc32 === 'function';

/** Returns the tensors with the CRC-32 of their bytes in a weights.bin that has just been written. */
export async function withChecksums(
  weightsFile: string,
  tensors: readonly EngineTensor[],
  threads: number,
): Promise<EngineTensor[]> {
  if (nativeAddonAvailable()) {
    const sums = loadAddon().checksums(weightsFile, [...tensors], threads);
    return tensors.map((tensor, i) => ({ ...tensor, checksum: sums[i]! }));
  }
  if (!CAN_SUM) return [...tensors];
  return withTensors(weightsFile, async (checksum) => {
    const summed: EngineTensor[] = [];
    for (const tensor of tensors) summed.push({ ...tensor, checksum: await checksum(tensor) });
    return summed;
  });
}

/** @throws EngineError that names the file and the tensor if weightsDamage finds something */
export async function checkWeights(engine: Engine, executor?: string): Promise<void> {
  const damage = await weightsDamage(engine, executor);
  if (damage !== null) throw new EngineError(`${damage}; build the engine again.`);
}

/**
 * Checks that the bytes of weights.bin, and of matrices in the model's file, are those that were built: a flipped bit would show as
 * nonsense in the answers. If the
 * matrices are in a packed file, which has its own checksum, only the tensors that every step reads from weights.bin are
 * checked; if the packed file is damaged, the matrices are checked before they are packed again. So a model's file may be gone where
 * there is a packed file. Engines of versions that wrote
 * no checksums are taken as they are.
 *
 * @param executor that the user asked for: only native, the default, has packed files
 * @returns the damage without a full stop, with the file and the tensor; null if there is none
 * @throws EngineError if the model's file is to be read and cannot be
 */
export async function weightsDamage(
  { directory, manifest, plan, weightsFile }: Engine,
  executor = 'auto',
): Promise<string | null> {
  const isPacked =
    ['auto', 'native'].includes(executor) && readdirSync(directory).some((name) => PACKED_FILE.test(name));
  const inPackedFile = isPacked ? multipliedWeights(plan) : new Set<string>();
  // A matrix used in both ways is looked up here, in weights.bin, by its rows.
  for (const op of plan.ops) {
    if (op.op === 'embedding' || op.op === 'addEmbedding') inPackedFile.delete(op.weight);
  }
  const tensors = loadableTensors(manifest).filter(
    (one) => one.checksum !== undefined && !inPackedFile.has(one.name),
  );
  if (tensors.length === 0 || !CAN_SUM) return null;
  return withTensors(weightsFile, async (checksum) => {
    for (const tensor of tensors) {
      const { name, jobs } = tensor;
      const sum = jobs === undefined ? await checksum(tensor) : await checksumInSource(jobs, directory);
      if (sum === tensor.checksum) continue;
      const file = jobs?.[0]?.source ?? weightsFile;
      return `${file}: the bytes of ${name} are not those that were built, the disk or a program has changed them`;
    }
    return null;
  });
}

async function checksumInSource(
  jobs: NonNullable<LoadableTensor['jobs']>,
  directory: string,
): Promise<number> {
  try {
    return await sourceChecksum(jobs, defaultThreads());
  } catch (error) {
    throw new EngineError(withSourceHint(error, directory), { cause: error });
  }
}

async function withTensors<T>(
  weightsFile: string,
  use: (checksum: (tensor: EngineTensor) => Promise<number>) => Promise<T>,
): Promise<T> {
  const file = await open(weightsFile, 'r');
  const buffer = Buffer.allocUnsafe(READ_BYTES);
  try {
    return await use((tensor) => checksumOf(file, buffer, tensor));
  } finally {
    await file.close();
  }
}

async function checksumOf(file: FileHandle, buffer: Buffer, tensor: EngineTensor): Promise<number> {
  let sum = 0;
  for (let done = 0; done < tensor.byteLength; ) {
    const wanted = Math.min(READ_BYTES, tensor.byteLength - done);
    const { bytesRead } = await file.read(buffer, 0, wanted, tensor.offset + done);
    if (bytesRead === 0) break;
    sum = zlib.crc32(buffer.subarray(0, bytesRead), sum);
    done += bytesRead;
  }
  return sum;
}
