import { input, says } from '../../base/named-text.js';
import type { InParts } from '../../base/run-to-end.js';
import { SkeinError } from '../../base/skein-error.js';
import type { ModelConfig } from '../model-config.js';
import {
  type AdapterLimits,
  type AdapterWeights,
  adapterOf,
  DEFAULT_MAX_ADAPTER_BYTES,
  type ModuleLayer,
} from './adapter-weights.js';
import { baseModules, isInLayer, type ModuleShape } from './base-modules.js';
import { isModuleId, MODULE_IDS, type ModuleId, moduleName } from './module-ids.js';

/** An adapter as a request of the batch manager brings it: one row of both tensors for each module-layer. */
export interface LoraTensors {
  /** `lora_weights`, row-major: each row is A [rank x in], then B [out x rank], then zeros up to the width. */
  weights: Float32Array;
  /** [number of module-layers, width], or with a batch of 1 before it. */
  weightsShape: readonly number[];
  /** `lora_config`, row-major: each row is module id, number of the layer, rank. */
  config: Int32Array;
  /** [number of module-layers, 3], or with a batch of 1 before it. */
  configShape: readonly number[];
}

/** The tensors of an adapter do not fit together, or not the model. `tensor` is the one that is wrong. */
export class LoraTensorsError extends SkeinError {
  override name = 'LoraTensorsError';
  override readonly code = 'SKEIN_LORA_TENSORS';
  readonly tensor: 'lora_weights' | 'lora_config';

  constructor(tensor: 'lora_weights' | 'lora_config', what: string) {
    super(says`${input(tensor)} ${what}.`);
    this.tensor = tensor;
  }
}

/**
 * Reads an adapter from the two tensors of a request (TensorRT-LLM's LoRA page has their layout), in parts: a module-layer each, which yield
 * the number of their values. The scaling must be in B already.
 *
 *   lora_config   [module, layer, D]        lora_weights   | A: D x in | B: out x D | 0 ... |
 *                 [module, layer, D]                       | A: D x in | B: out x D         |
 *
 * The arrays are copied, unless they lie in shared memory, which its sender must not change.
 * @throws LoraTensorsError that names tensor, row, expected and found.
 */
export function* loraTensorsInParts(
  tensors: LoraTensors,
  model: ModelConfig,
  { maxRank, maxBytes = DEFAULT_MAX_ADAPTER_BYTES }: AdapterLimits,
): InParts<AdapterWeights> {
  const [rows, width] = sizes(tensors);
  const { shapes } = baseModules(model);
  const places = Array.from({ length: rows }, (_, row) =>
    checkedRow(row, tensors.config.subarray(3 * row, 3 * row + 3), model, shapes, maxRank),
  );
  refuseOverlaps(places);
  let bytes = 0;
  for (const [row, { rank, shape }] of places.entries()) {
    const needed = rank * (shape.in + shape.out);
    bytes += 4 * needed;
    if (needed > width) {
      throw new LoraTensorsError(
        'lora_weights',
        `should have at least ${needed} columns for row ${row} (rank ${rank} times ${shape.in} + ${shape.out}), found ${width}`,
      );
    }
  }
  if (bytes > maxBytes) {
    throw new LoraTensorsError('lora_weights', `takes ${bytes} bytes; at most ${maxBytes} are accepted`);
  }
  const moduleLayers: ModuleLayer[] = [];
  for (const [row, place] of places.entries()) {
    moduleLayers.push(moduleLayer(row, place, tensors.weights.subarray(row * width, (row + 1) * width)));
    yield width;
  }
  return adapterOf(moduleLayers, null);
}

/**
 * The same tensors as a client has to send for an adapter; rows in the order of its module-layers. @param allocate memory for the
 * weights, all 0
 */
export function writeLoraTensors(
  { moduleLayers }: Pick<AdapterWeights, 'moduleLayers'>,
  allocate: (length: number) => Float32Array = (length) => new Float32Array(length),
): LoraTensors {
  const rows = moduleLayers.length;
  const width = moduleLayers.reduce((most, { a, b }) => Math.max(most, a.length + b.length), 0);
  const weights = allocate(rows * width);
  const config = new Int32Array(rows * 3);
  for (const [row, { layer, module, rank, a, b }] of moduleLayers.entries()) {
    weights.set(a, row * width);
    weights.set(b, row * width + a.length);
    config.set([module, layer, rank], 3 * row);
  }
  return { weights, weightsShape: [rows, width], config, configShape: [rows, 3] };
}

interface Place {
  module: ModuleId;
  layer: number;
  rank: number;
  shape: ModuleShape;
}

/** Number of rows, and the width of a row of lora_weights. */
function sizes({ weights, weightsShape, config, configShape }: LoraTensors): [rows: number, width: number] {
  const [rows, three] = matrix('lora_config', configShape, config.length, '[number of module-layers, 3]');
  if (three !== 3) {
    throw new LoraTensorsError(
      'lora_config',
      `should have 3 columns (module id, layer, rank), found ${three}`,
    );
  }
  if (rows === 0) throw new LoraTensorsError('lora_config', 'should have at least one row, found none');
  const expected = `[${rows}, columns], a row for each of lora_config`;
  const [others, width] = matrix('lora_weights', weightsShape, weights.length, expected);
  if (others !== rows) {
    throw new LoraTensorsError('lora_weights', `should have the shape ${expected}, found ${others} rows`);
  }
  return [rows, width];
}

function matrix(
  tensor: 'lora_weights' | 'lora_config',
  shape: readonly number[],
  length: number,
  expected: string,
): [number, number] {
  const two = shape.length === 3 && shape[0] === 1 ? shape.slice(1) : shape;
  const [rows, columns] = two;
  if (two.length !== 2 || rows! * columns! !== length) {
    throw new LoraTensorsError(
      tensor,
      `should have the shape ${expected}, found [${shape.join(', ')}] with ${length} elements`,
    );
  }
  return [rows!, columns!];
}

function checkedRow(
  row: number,
  values: Int32Array,
  model: ModelConfig,
  shapes: ReadonlyMap<ModuleId, ModuleShape>,
  maxRank: number,
): Place {
  const [module, layer, rank] = values as unknown as [number, number, number];
  const fail = (what: string) => new LoraTensorsError('lora_config', `row ${row}: ${what}`);
  const shape = isModuleId(module) ? shapes.get(module) : undefined;
  if (!isModuleId(module) || shape === undefined) {
    const known = [...shapes.keys()].map((id) => `${id} (${moduleName(id)})`).join(', ');
    const found = isModuleId(module) ? `${module} (${moduleName(module)})` : module;
    throw fail(`the module should be one that the model has, ${known || 'which are none'}, found ${found}`);
  }
  if (layer < 0 || layer >= model.numLayers) {
    throw fail(`the layer should be from 0 to ${model.numLayers - 1}, found ${layer}`);
  }
  if (!isInLayer(model, layer, module)) {
    throw fail(
      `the layer should be one that attends, for ${module} (${moduleName(module)}), but layer ${layer} keeps a state in place of attention`,
    );
  }
  if (rank < 1 || rank > maxRank) throw fail(`the rank should be from 1 to ${maxRank}, found ${rank}`);
  return { module, layer, rank, shape };
}

/** Modules whose rows a stacked module has. */
const PARTS = new Map<ModuleId, readonly ModuleId[]>([
  [MODULE_IDS.attn_qkv, [MODULE_IDS.attn_q, MODULE_IDS.attn_k, MODULE_IDS.attn_v]],
  [MODULE_IDS.mlp_gate_up, [MODULE_IDS.mlp_h_to_4h, MODULE_IDS.mlp_gate]],
]);

/**
 * Refuses rows that change the same rows of a weight: a module twice, or a stacked module and a part of it.
 */
function refuseOverlaps(places: readonly Place[]): void {
  const rowOf = new Map<string, number>();
  for (const [row, { module, layer }] of places.entries()) {
    for (const part of [module, ...(PARTS.get(module) ?? [])]) {
      const key = `${layer} ${part}`;
      const other = rowOf.get(key);
      if (other !== undefined) {
        const name = moduleName(places[other]!.module);
        throw new LoraTensorsError(
          'lora_config',
          `row ${row}: ${moduleName(module)} of layer ${layer} overlaps row ${other}, ${name} of the same layer`,
        );
      }
      rowOf.set(key, row);
    }
  }
}

function moduleLayer(row: number, { module, layer, rank, shape }: Place, values: Float32Array): ModuleLayer {
  const endOfA = rank * shape.in;
  const endOfB = endOfA + rank * shape.out;
  const refuse = (i: number, expected: string) =>
    new LoraTensorsError('lora_weights', `row ${row}: column ${i} should be ${expected}, found ${values[i]}`);
  let zero = 0;
  // A product with 0 is NaN for what is not finite. There may be millions of values, and almost never a wrong one.
  for (let i = 0; i < endOfB; i++) zero += values[i]! * 0;
  if (zero !== 0) {
    const wrong = values.subarray(0, endOfB).findIndex((value) => !Number.isFinite(value));
    throw refuse(wrong, 'a finite number');
  }
  for (let i = endOfB; i < values.length; i++) {
    if (values[i] === 0) continue;
    throw refuse(i, `0 after the ${endOfB} elements of ${moduleName(module)} at rank ${rank}`);
  }
  const part = (begin: number, end: number) =>
    values.buffer instanceof SharedArrayBuffer ? values.subarray(begin, end) : values.slice(begin, end);
  return { layer, module, rank, a: part(0, endOfA), b: part(endOfA, endOfB) };
}
