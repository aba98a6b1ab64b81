import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { CheckpointError } from '../checkpoints/checkpoint.js';
import { fileSystemErrors } from '../checkpoints/file-reading.js';
import type { RawTensor } from '../checkpoints/raw-tensor.js';
import { readSafetensors } from '../checkpoints/safetensors.js';
import type { ModelConfig } from '../model-config.js';
import { checkedPair, type PlacedTensor, pairsOf, readPairs, shownName } from './adapter-tensors.js';
import { type AdapterLimits, type AdapterWeights, adapterOf } from './adapter-weights.js';
import { type BaseModules, baseModules } from './base-modules.js';
import { readPeftConfig } from './peft-config.js';
import { PEFT_CONFIG, PEFT_WEIGHTS } from './peft-files.js';
import { type AdapterTensorPlace, placeOfTensor } from './peft-tensor-names.js';

const PARTS = { A: 'lora_A', B: 'lora_B' };
const PICKLED = 'adapter_model.bin';
/** Most names of folders in an error. */
const MAX_SHOWN = 10;

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
  const peft = readPeftConfig(join(directory, PEFT_CONFIG));
  const base = baseModules(config);
  if (base.names.size === 0) {
    throw new CheckpointError(`${directory}: an encoder (${config.architecture}) cannot have adapters.`);
  }
  const pairs = pairsOf(file, placedTensors(file, readSafetensors(file), base), PARTS);
  const rankSource = peft.file;
  const checked = pairs.map((pair) => {
    const setting = peft.targets.leftOutBy(pair.place);
    if (setting !== null) {
      const left = `belongs to a module that ${setting} of ${peft.file} leaves out`;
      throw new CheckpointError(`${file}: tensor ${pair.A.name} ${left}.`);
    }
    const settings = { rank: peft.rankOf(pair.place.name), rankSource };
    return checkedPair(file, pair, settings, { config, base, maxRank: limits.maxRank });
  });
  const moduleLayers = readPairs(file, checked, ({ place }) => peft.scaleOf(place.name), limits);
  return adapterOf(moduleLayers, peft.baseModel);
}

function weightsFile(directory: string): string {
  return fileSystemErrors(directory, () => {
    const status = statSync(directory, { throwIfNoEntry: false });
    if (!status) throw new CheckpointError(`${directory}: no such folder.`);
    if (!status.isDirectory()) throw new CheckpointError(`${directory}: an adapter of PEFT is a folder.`);
    const file = join(directory, PEFT_WEIGHTS);
    if (existsSync(file)) return file;
    const hint = existsSync(join(directory, PICKLED))
      ? `${PICKLED} may run code when it is read: save the adapter as ${PEFT_WEIGHTS}`
      : (adaptersIn(directory) ?? `an adapter of PEFT has its weights there`);
    throw new CheckpointError(`${directory}: holds no ${PEFT_WEIGHTS}; ${hint}.`);
  });
}

/** Says which folders in this one are adapters: PEFT saves one that has a name into a folder of that name. Null: none is. */
function adaptersIn(directory: string): string | null {
  const names = readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(join(directory, entry.name, PEFT_WEIGHTS)))
    .map(({ name }) => shownName(name))
    .sort();
  if (names.length === 0) return null;
  if (names.length === 1) return `its folder ${names[0]} does, and is the one to name`;
  const shown = names.length <= MAX_SHOWN ? names : [...names.slice(0, MAX_SHOWN), '...'];
  return `${names.length} folders in it do (${shown.join(', ')}), of which one is to be named`;
}

/** @throws CheckpointError for unknown names, and for tensors of several adapters */
function placedTensors(
  file: string,
  tensors: readonly RawTensor[],
  base: BaseModules,
): PlacedTensor<AdapterTensorPlace>[] {
  let first: AdapterTensorPlace | null = null;
  return tensors.map((tensor) => {
    const place = placeOfTensor(tensor.name, base);
    if (typeof place === 'string')
      throw new CheckpointError(`${file}: tensor ${shownName(tensor.name)} ${place}.`);
    first ??= place;
    if (place.adapterName === first.adapterName) return { place, tensor };
    const [one, other] = [first, place].map(({ adapterName }) => adapterName ?? 'one without a name');
    throw new CheckpointError(
      `${file}: tensor ${tensor.name} belongs to another adapter than those before it (${other}, ${one}).`,
    );
  });
}
