import { halfToBits, load16 } from '../../base/half.js';
import { field, type NamedText, says } from '../../base/named-text.js';
import { CheckpointError } from '../checkpoints/checkpoint.js';
import { readExactly, withFile } from '../checkpoints/file-reading.js';
import { elementsOf, type RawTensor } from '../checkpoints/raw-tensor.js';
import type { ModelConfig } from '../model-config.js';
import { type AdapterLimits, DEFAULT_MAX_ADAPTER_BYTES, type ModuleLayer } from './adapter-weights.js';
import { type BaseModules, isInLayer } from './base-modules.js';
import type { ModuleId } from './module-ids.js';

/** Module of a layer to which a tensor of an adapter's file belongs, and which of its two matrices it is. */
export interface TensorPlace {
  layer: number;
  module: ModuleId;
  part: 'A' | 'B';
}

/** A tensor of an adapter's file with its place. */
export interface PlacedTensor<Place extends TensorPlace> {
  place: Place;
  tensor: RawTensor;
}

/** Both tensors of a module of a layer. */
export interface TensorPair<Place extends TensorPlace> {
  /** That of the tensor that was found first. */
  place: Place;
  A: RawTensor;
  B: RawTensor;
}

/** A pair whose shapes are those of the base model. */
export interface CheckedPair<Place extends TensorPlace> extends TensorPair<Place> {
  rank: number;
}

/** What an adapter's file says of a pair, besides its tensors. */
export interface PairSettings {
  rank: number;
  /** Says where the rank comes from: 'adapter_config.json'. */
  rankSource: string;
}

/**
 * Tensors by module and layer.
 * @param parts what the file calls both matrices
 * @throws CheckpointError for a tensor that is there twice or lacks its counterpart, and for none at all
 */
export function pairsOf<Place extends TensorPlace>(
  file: string,
  tensors: readonly PlacedTensor<Place>[],
  parts: Readonly<Record<'A' | 'B', string>>,
): TensorPair<Place>[] {
  const pairs = new Map<string, Partial<TensorPair<Place>> & { place: Place }>();
  for (const { place, tensor } of tensors) {
    const key = `${place.layer} ${place.module}`;
    const pair = pairs.get(key) ?? { place };
    pairs.set(key, pair);
    const twin = pair[place.part];
    if (twin)
      throw new CheckpointError(`${file}: tensor ${tensor.name} is there twice, also as ${twin.name}.`);
    pair[place.part] = tensor;
  }
  if (pairs.size === 0) throw new CheckpointError(`${file}: holds no tensors.`);
  return [...pairs.values()].map(({ place, A, B }) => {
    if (A !== undefined && B !== undefined) return { place, A, B };
    const [found, missing] = A !== undefined ? [A, parts.B] : [B!, parts.A];
    throw new CheckpointError(`${file}: tensor ${found.name} has no ${missing} to go with it.`);
  });
}

/** @throws CheckpointError where the base model has no such layer, or a matrix has another shape or type */
export function checkedPair<Place extends TensorPlace>(
  file: string,
  pair: TensorPair<Place>,
  { rank, rankSource }: PairSettings,
  { config, base, maxRank }: { config: ModelConfig; base: BaseModules; maxRank: number },
): CheckedPair<Place> {
  const { place, A, B } = pair;
  const fail = (tensor: RawTensor, what: NamedText) =>
    new CheckpointError(says`${file}: tensor ${tensor.name} ${what}.`);
  const { numLayers } = config;
  if (place.layer >= numLayers) {
    throw fail(A, `belongs to layer ${place.layer}, but the base model has layers 0 to ${numLayers - 1}`);
  }
  if (!isInLayer(config, place.layer, place.module)) {
    throw fail(A, `belongs to the attention of layer ${place.layer}, which keeps a state in its place`);
  }
  if (rank > maxRank) {
    throw fail(A, says`has rank ${rank}; at most ${maxRank} is accepted (${field('maxRank')})`);
  }
  const shape = base.shapes.get(place.module)!;
  checkShape(fail, A, [rank, shape.in], 0, rankSource);
  checkShape(fail, B, [shape.out, rank], 1, rankSource);
  checkFloatType(A);
  checkFloatType(B);
  return { ...pair, rank };
}

/** Checks a matrix; `rankAt` is the dimension that is the rank, and the other one is the base model's. */
function checkShape(
  fail: (tensor: RawTensor, what: NamedText) => CheckpointError,
  tensor: RawTensor,
  expected: readonly [number, number],
  rankAt: 0 | 1,
  rankSource: string,
): void {
  const { shape } = tensor;
  const fits = shape.map((dimension, i) => dimension === expected[i]);
  if (shape.length === 2 && fits.every(Boolean)) return;
  const onlyRank = shape.length === 2 && fits[1 - rankAt];
  const reason = onlyRank
    ? `${expected[rankAt]} is its rank by ${rankSource}`
    : `${expected[1 - rankAt]} is the base model's`;
  throw fail(
    tensor,
    `should have the shape [${expected.join(', ')}] (${reason}), found [${shape.join(', ')}]`,
  );
}

/**
 * Reads the weights of checked pairs, once it is known that they are not too many.
 * @param scaleOf by which B of a pair is multiplied
 * @throws CheckpointError for more bytes than are accepted, or a number that is not finite
 */
export function readPairs<Place extends TensorPlace>(
  file: string,
  pairs: readonly CheckedPair<Place>[],
  scaleOf: (pair: CheckedPair<Place>) => number,
  { maxBytes = DEFAULT_MAX_ADAPTER_BYTES }: AdapterLimits,
): ModuleLayer[] {
  const bytes = pairs.reduce((sum, { A, B }) => sum + 4 * (elements(A) + elements(B)), 0);
  if (bytes > maxBytes) {
    throw new CheckpointError(
      says`${file}: takes ${bytes} bytes in float32; at most ${maxBytes} are accepted (${field('maxBytes')}).`,
    );
  }
  return withFile(file, (fd) =>
    pairs.map((pair): ModuleLayer => {
      const { place, rank, A, B } = pair;
      const scaled = readFloats(fd, B, scaleOf(pair));
      return { layer: place.layer, module: place.module, rank, a: readFloats(fd, A, 1), b: scaled };
    }),
  );
}

function elements({ file, name, shape }: RawTensor): number {
  return elementsOf(file, name, shape);
}

/** A name of any characters, for errors: on one line, and cut where it is unreasonably long. */
export function shownName(name: string): string {
  const cut = name.length > 200 ? `${name.slice(0, 200)}...` : name;
  return /^[!-~]+$/.test(cut) ? cut : JSON.stringify(cut);
}

/** The elements' float32 bits, from little-endian bytes of a type. */
const READERS: Readonly<Record<string, (bytes: Uint8Array, bits: Uint32Array) => void>> = {
  F32: (bytes, bits) => new Uint8Array(bits.buffer).set(bytes),
  F16: (bytes, bits) => {
    for (let i = 0; i < bits.length; i++) bits[i] = halfToBits(load16(bytes, 2 * i));
  },
  BF16: (bytes, bits) => {
    for (let i = 0; i < bits.length; i++) bits[i] = load16(bytes, 2 * i) << 16;
  },
};

/** Throws unless the tensor has one of the types that are read. */
function checkFloatType({ file, name, type }: RawTensor): void {
  if (!Object.hasOwn(READERS, type)) {
    throw new CheckpointError(
      `${file}: tensor ${name} should have one of the types ${Object.keys(READERS).join(', ')}, found ${type}.`,
    );
  }
}

/**
 * A tensor's elements as float32, each times `scale` and rounded once. `fd` is its open file.
 * @throws CheckpointError for an element that is not finite, before or after the scaling.
 */
export function readFloats(fd: number, tensor: RawTensor, scale: number): Float32Array {
  const { file, name, type, offset, byteLength } = tensor;
  const bytes = new Uint8Array(byteLength!);
  readExactly(file, fd, bytes, offset);
  const floats = new Float32Array(byteLength! / (type === 'F32' ? 4 : 2));
  READERS[type]!(bytes, new Uint32Array(floats.buffer));
  for (let i = 0; i < floats.length; i++) {
    const value = floats[i]!;
    floats[i] = value * scale;
    if (!Number.isFinite(floats[i]!)) {
      const scaled = Number.isFinite(value) ? `, ${value} times its scaling ${scale}` : '';
      throw new CheckpointError(
        `${file}: tensor ${name} should hold finite numbers, found ${floats[i]}${scaled} at element ${i}.`,
      );
    }
  }
  return floats;
}
