import { CheckpointError } from './checkpoint.js';
import { isObject, parseJsonObject, readExactly, withFile } from './file-reading.js';
import { elementsOf, type RawTensor } from './raw-tensor.js';

/** Most bytes of a safetensors header: about 250 000 tensors. */
const MAX_SAFETENSORS_HEADER_BYTES = 32 * 1024 * 1024;
const MAX_DIMENSIONS = 32;

/** Bytes of an element of each type that safetensors defines. */
const ELEMENT_BYTES = new Map<unknown, number>([
  ['BOOL', 1],
  ['U8', 1],
  ['I8', 1],
  ['F8_E5M2', 1],
  ['F8_E4M3', 1],
  ['F8_E8M0', 1],
  ['I16', 2],
  ['U16', 2],
  ['F16', 2],
  ['BF16', 2],
  ['I32', 4],
  ['U32', 4],
  ['F32', 4],
  ['F64', 8],
  ['I64', 8],
  ['U64', 8],
]);

/**
 * Reads the header of a safetensors file.
 *
 *   0          8                     8 + N
 *   | N: u64 | JSON header, N bytes | data ...     data_offsets count from 8 + N
 *
 * Throws a CheckpointError for a header that violates the format: tensors must cover the data without gap or overlap.
 */
export function readSafetensors(file: string): RawTensor[] {
  return withFile(file, (fd, size) => {
    if (size < 8)
      throw new CheckpointError(`${file}: is ${size} bytes long, too short for a safetensors file.`);
    const prefix = Buffer.alloc(8);
    readExactly(file, fd, prefix, 0);
    const headerLength = prefix.readUInt32LE(0) + prefix.readUInt32LE(4) * 2 ** 32;
    if (headerLength > size - 8) {
      throw new CheckpointError(
        `${file}: the header claims ${headerLength} bytes, but only ${size - 8} follow; the file may be cut off.`,
      );
    }
    if (headerLength > MAX_SAFETENSORS_HEADER_BYTES) {
      throw new CheckpointError(
        `${file}: the header is ${headerLength} bytes long; at most ${MAX_SAFETENSORS_HEADER_BYTES} are read.`,
      );
    }
    const header = Buffer.alloc(headerLength);
    readExactly(file, fd, header, 8);
    return tensorsOf(file, header.toString('utf8'), 8 + headerLength, size);
  });
}

function tensorsOf(file: string, text: string, dataStart: number, fileSize: number): RawTensor[] {
  const header = parseJsonObject(`${file}: the header`, text);
  const names = outermostKeys(text);
  if (names.length !== Object.keys(header).length) {
    const seen = new Set<string>();
    const repeated = names.find((name) => seen.size === seen.add(name).size);
    throw new CheckpointError(`${file}: tensor ${repeated} is there twice.`);
  }
  const tensors = names
    .filter((name) => name !== '__metadata__')
    .map((name) => tensorOf(file, name, header[name], dataStart, fileSize));
  checkCoverage(file, tensors, dataStart, fileSize);
  return tensors;
}

function tensorOf(
  file: string,
  name: string,
  entry: unknown,
  dataStart: number,
  fileSize: number,
): RawTensor {
  const fail = (what: string) => new CheckpointError(`${file}: tensor ${name} ${what}.`);
  if (!isObject(entry)) throw fail('should be described by an object');
  const { dtype, shape, data_offsets: offsets } = entry;
  const elementBytes = ELEMENT_BYTES.get(dtype);
  if (typeof dtype !== 'string')
    throw fail(`should have a dtype, found ${JSON.stringify(dtype)?.slice(0, 50)}`);
  if (!isSizes(shape) || shape.length > MAX_DIMENSIONS) throw fail('should have a shape of whole numbers');
  if (!isSizes(offsets) || offsets.length !== 2) throw fail('should have two data_offsets');
  const [begin, end] = offsets as [number, number];
  if (begin > end) throw fail(`has data_offsets [${begin}, ${end}], which run backwards`);
  if (end > fileSize - dataStart) {
    throw fail(
      `ends at byte ${end} of the data, but the file has only ${fileSize - dataStart}; the file may be cut off`,
    );
  }
  const elements = elementsOf(file, name, shape);
  if (elementBytes !== undefined && elements * elementBytes !== end - begin) {
    throw fail(
      `of type ${dtype} and shape [${shape.join(', ')}] takes ${elements * elementBytes} bytes, but its data_offsets span ${end - begin}`,
    );
  }
  return { name, type: dtype, shape, file, offset: dataStart + begin, byteLength: end - begin };
}

function isSizes(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && (item as number) >= 0);
}

/** Checks that every byte of the data belongs to exactly one tensor, as the format requires. */
function checkCoverage(
  file: string,
  tensors: readonly RawTensor[],
  dataStart: number,
  fileSize: number,
): void {
  const placed = [...tensors].sort((a, b) => a.offset - b.offset || a.byteLength! - b.byteLength!);
  let expected = dataStart;
  for (const { name, offset, byteLength } of placed) {
    if (offset !== expected) {
      const problem = offset < expected ? 'overlaps the tensor before it' : 'leaves a gap before it';
      throw new CheckpointError(
        `${file}: tensor ${name} ${problem}: it begins at byte ${offset}, expected ${expected}.`,
      );
    }
    expected = offset + byteLength!;
  }
  if (expected !== fileSize) {
    throw new CheckpointError(
      `${file}: the tensors end at byte ${expected}, but the file is ${fileSize} bytes long.`,
    );
  }
}

/**
 * Keys of a JSON object's outermost level, including repeated ones, which JSON.parse drops. `text` must be valid JSON.
 */
export function outermostKeys(text: string): string[] {
  const keys: string[] = [];
  let depth = 0;
  let mayBeKey = false;
  const token = /"(?:[^"\\]|\\.)*"|[{}[\],]/g;
  for (let match = token.exec(text); match !== null; match = token.exec(text)) {
    const [found] = match;
    if (found === '{' || found === '[') depth++;
    else if (found === '}' || found === ']') depth--;
    else if (found !== ',' && mayBeKey && depth === 1) keys.push(JSON.parse(found) as string);
    mayBeKey = depth === 1 && (found === '{' || found === ',');
  }
  return keys;
}
