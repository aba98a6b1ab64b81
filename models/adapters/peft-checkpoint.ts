import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { CheckpointError } from '../checkpoints/checkpoint.js';
import { fileSystemErrors, withFile } from '../checkpoints/file-reading.js';
import { elementsOf, type RawTensor } from '../checkpoints/raw-tensor.js';
import { readSafetensors } from '../checkpoints/safetensors.js';
import type { ModelConfig } from '../model-config.js';
import {
  type AdapterLimits,
  type AdapterWeights,
  adapterOf,
  DEFAULT_MAX_ADAPTER_BYTES,
  type ModuleLayer,
} from './adapter-weights.js';
import { type BaseModules, baseModules } from './base-modules.js';
import { checkFloatType, readFloats } from './float-tensor.js';
import { type PeftConfig, readPeftConfig } from './peft-config.js';
import { type AdapterTensorPlace, placeOfTensor } from './peft-tensor-names.js';

const CONFIG = 'adapter_config.json';
const WEIGHTS = 'adapter_model.safetensors';
const PICKLED = 'adapter_model.bin';

/** Both tensors of a module of a layer, as they are found. */
interface TensorPair {
  place: AdapterTensorPlace;
  A?: RawTensor;
  B?: RawTensor;
}

/**
 * Reads a LoRA adapter as Hugging Face's PEFT saves it: a folder with adapter_config.json and adapter_model.safetensors,
 * checked against the base model's dimensions. All names and shapes are checked before any weight is read, so that the
 * memory taken is bounded by `limits` and the base.
 *
 * @throws CheckpointError that names file, tensor or setting, expected and found.
 */
export function readPeftCheckpoint(
  directory: string,
  config: ModelConfig,
  limits: AdapterLimits,
): AdapterWeights {
  const file = weightsFile(directory);
  const peft = readPeftConfig(join(directory, CONFIG));
  const base = baseModules(config);
  if (base.names.size === 0) {
    throw new CheckpointError(`${directory}: an encoder (${config.architecture}) cannot have adapters.`);
  }
  const pairs = pairsOf(file, readSafetensors(file), base);
  const checked = pairs.map((pair) => checkedPair(file, pair, config, base, peft, limits));
  const bytes = checked.reduce((sum, { a, b }) => sum + 4 * (elements(a) + elements(b)), 0);
  const maxBytes = limits.maxBytes ?? DEFAULT_MAX_ADAPTER_BYTES;
  if (bytes > maxBytes) {
    throw new CheckpointError(`${file}: takes ${bytes} bytes in float32; at most ${maxBytes} are accepted.`);
  }
  const moduleLayers = withFile(file, (fd) =>
    checked.map(({ place: { layer, module, name }, rank, a, b }): ModuleLayer => {
      const scaled = readFloats(fd, b, peft.scaleOf(name));
      return { layer, module, rank, a: readFloats(fd, a, 1), b: scaled };
    }),
  );
  return adapterOf(moduleLayers, peft.baseModel);
}

function weightsFile(directory: string): string {
  return fileSystemErrors(directory, () => {
    const status = statSync(directory, { throwIfNoEntry: false });
    if (!status) throw new CheckpointError(`${directory}: no such folder.`);
    if (!status.isDirectory()) throw new CheckpointError(`${directory}: an adapter of PEFT is a folder.`);
    const file = join(directory, WEIGHTS);
    if (existsSync(file)) return file;
    const hint = existsSync(join(directory, PICKLED))
      ? `${PICKLED} may run code when it is read: save the adapter as ${WEIGHTS}`
      : `an adapter of PEFT has its weights there`;
    throw new CheckpointError(`${directory}: holds no ${WEIGHTS}; ${hint}.`);
  });
}

/** Tensors by module and layer. Errors: unknown names, a tensor that is there twice, several adapters, none at all. */
function pairsOf(file: string, tensors: readonly RawTensor[], base: BaseModules): Required<TensorPair>[] {
  const pairs = new Map<string, TensorPair>();
  let first: AdapterTensorPlace | null = null;
  for (const tensor of tensors) {
    const place = placeOfTensor(tensor.name, base);
    if (typeof place === 'string')
      throw new CheckpointError(`${file}: tensor ${shown(tensor.name)} ${place}.`);
    first ??= place;
    if (place.adapterName !== first.adapterName) {
      const [one, other] = [first, place].map(({ adapterName }) => adapterName ?? 'one without a name');
      throw new CheckpointError(
        `${file}: tensor ${tensor.name} belongs to another adapter than those before it (${other}, ${one}).`,
      );
    }
    const key = `${place.layer} ${place.module}`;
    const pair: TensorPair = pairs.get(key) ?? { place };
    pairs.set(key, pair);
    const twin = pair[place.part];
    if (twin)
      throw new CheckpointError(`${file}: tensor ${tensor.name} is there twice, also as ${twin.name}.`);
    pair[place.part] = tensor;
  }
  if (pairs.size === 0) throw new CheckpointError(`${file}: holds no tensors.`);
  return [...pairs.values()].map((pair) => complete(file, pair));
}

function complete(file: string, pair: TensorPair): Required<TensorPair> {
  if (pair.A && pair.B) return pair as Required<TensorPair>;
  const [found, missing] = pair.A ? [pair.A, 'lora_B'] : [pair.B!, 'lora_A'];
  throw new CheckpointError(`${file}: tensor ${found.name} has no ${missing} beside it.`);
}

interface CheckedPair {
  place: AdapterTensorPlace;
  rank: number;
  a: RawTensor;
  b: RawTensor;
}

function checkedPair(
  file: string,
  { place, A: a, B: b }: Required<TensorPair>,
  config: ModelConfig,
  base: BaseModules,
  peft: PeftConfig,
  limits: AdapterLimits,
): CheckedPair {
  const fail = (tensor: RawTensor, what: string) =>
    new CheckpointError(`${file}: tensor ${tensor.name} ${what}.`);
  if (place.layer >= config.numLayers) {
    throw fail(
      a,
      `belongs to layer ${place.layer}, but the base model has layers 0 to ${config.numLayers - 1}`,
    );
  }
  const setting = peft.targets.leftOutBy(place);
  if (setting !== null) throw fail(a, `belongs to a module that ${setting} of ${peft.file} leaves out`);
  const rank = peft.rankOf(place.name);
  if (rank > limits.maxRank) throw fail(a, `has rank ${rank}; at most ${limits.maxRank} is accepted`);
  const shape = base.shapes.get(place.module)!;
  checkShape(fail, a, [rank, shape.in], 0, peft);
  checkShape(fail, b, [shape.out, rank], 1, peft);
  checkFloatType(a);
  checkFloatType(b);
  return { place, rank, a, b };
}

/** Checks a matrix; `rankAt` is the dimension that is the rank, and the other one is the base model's. */
function checkShape(
  fail: (tensor: RawTensor, what: string) => CheckpointError,
  tensor: RawTensor,
  expected: readonly [number, number],
  rankAt: 0 | 1,
  peft: PeftConfig,
): void {
  const { shape } = tensor;
  const fits = shape.map((dimension, i) => dimension === expected[i]);
  if (shape.length === 2 && fits.every(Boolean)) return;
  const onlyRank = shape.length === 2 && fits[1 - rankAt];
  const reason = onlyRank
    ? `${expected[rankAt]} is its rank by ${peft.file}`
    : `${expected[1 - rankAt]} is the base model's`;
  throw fail(
    tensor,
    `should have the shape [${expected.join(', ')}] (${reason}), found [${shape.join(', ')}]`,
  );
}

function elements({ file, name, shape }: RawTensor): number {
  return elementsOf(file, name, shape);
}

/** A name of any characters, for errors: on one line, and cut where it is unreasonably long. */
function shown(name: string): string {
  const cut = name.length > 200 ? `${name.slice(0, 200)}...` : name;
  return /^[!-~]+$/.test(cut) ? cut : JSON.stringify(cut);
}
