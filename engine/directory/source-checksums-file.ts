import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type EngineTensor, replaceFile } from './engine-directory.js';

/**
 * Checksums of tensors that lie in the model's file, where an engine was made without them: the first executor that packs the tensors
 * finds them, since it reads every byte anyway. One entry for each tensor of engine.json, null for those that it has itself.
 */
const FILE = 'source-checksums.json';
/** More than a number and its comma take. */
const MAX_ENTRY_BYTES = 16;

/** True for a tensor of the model's file whose checksum is still unknown. */
export const lacksChecksum = ({ pieces, checksum }: EngineTensor): boolean =>
  pieces !== undefined && checksum === undefined;

/** The tensors of engine.json with the checksums that were found since. A file that is none is as good as absent: it is written again. */
export function withFoundChecksums(directory: string, tensors: EngineTensor[]): EngineTensor[] {
  if (!tensors.some(lacksChecksum)) return tensors;
  const found = readChecksums(join(directory, FILE), tensors.length);
  if (found === null) return tensors;
  return tensors.map((tensor, i) => {
    const checksum = found[i];
    return lacksChecksum(tensor) && isChecksum(checksum) ? { ...tensor, checksum } : tensor;
  });
}

function readChecksums(file: string, count: number): unknown[] | null {
  const size = statSync(file, { throwIfNoEntry: false })?.size;
  if (size === undefined || size > MAX_ENTRY_BYTES * (count + 1)) return null;
  try {
    const found: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return Array.isArray(found) && found.length === count ? found : null;
  } catch {
    return null;
  }
}

const isChecksum = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 0xffff_ffff;

/**
 * Keeps the checksums that were found of an engine's tensors, by their numbers. A folder that cannot be written to has none: then what
 * is packed again is not compared.
 */
export function keepChecksums(
  directory: string,
  tensors: readonly EngineTensor[],
  found: readonly { tensor: number; checksum: number }[],
): void {
  const byTensor = new Map(found.map(({ tensor, checksum }) => [tensor, checksum]));
  const all = tensors.map((tensor, i) => (tensor.pieces === undefined ? null : (byTensor.get(i) ?? null)));
  replaceFile(join(directory, FILE), JSON.stringify(all));
}
