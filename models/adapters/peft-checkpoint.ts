import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { CheckpointError } from '../checkpoints/checkpoint.js';
import { ConfigFields } from '../checkpoints/config-fields.js';
import { fileSystemErrors, isObject, readJsonObject } from '../checkpoints/file-reading.js';
import type { RawTensor } from '../checkpoints/raw-tensor.js';
import { readSafetensors } from '../checkpoints/safetensors.js';
import type { ModelConfig } from '../model-config.js';
import { checkedPair, type PlacedTensor, pairsOf, readPairs, shownName } from './adapter-tensors.js';
import { type AdapterLimits, type AdapterWeights, adapterOf } from './adapter-weights.js';
import { type BaseModules, baseModules } from './base-modules.js';
import type { StepBudget } from './module-pattern.js';
import { ModulePatterns } from './module-patterns.js';
import { PEFT_CONFIG, PEFT_WEIGHTS } from './peft-files.js';
import { type AdapterTensorPlace, placeOfTensor } from './peft-tensor-names.js';
import { TargetedModules } from './targeted-modules.js';

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

const MAX_CONFIG_BYTES = 16 * 1024 * 1024;
/** Greatest rank that a config may name; what a model takes is a limit of its own. */
const MAX_RANK = 2 ** 20;
/** Default of PEFT's LoraConfig for r and for lora_alpha. */
const USUAL = 8;
/** Steps of matching names with patterns, over a whole adapter: about a second. */
const MAX_PATTERN_STEPS = 20_000_000;

/** Ways to begin a training that leave the base model's weights as they are. PEFT writes true for most adapters. */
const HARMLESS_INITIALISATIONS: readonly unknown[] = [
  undefined,
  true,
  false,
  'gaussian',
  'eva',
  'orthogonal',
];

/** Settings that change what is computed, each with its meaning. They are refused unless they are off. */
const REFUSED: readonly (readonly [key: string, meaning: string])[] = [
  ['use_dora', 'DoRA'],
  ['use_qalora', 'QA-LoRA'],
  ['use_bdlora', 'BD-LoRA'],
  ['lora_bias', 'a bias of lora_B'],
  ['modules_to_save', 'training of whole modules'],
  ['trainable_token_indices', "training of tokens' embeddings"],
  ['target_parameters', 'adapters of parameters'],
  ['layer_replication', 'repetition of layers'],
  ['alora_invocation_tokens', 'an adapter that tokens switch on (aLoRA)'],
  ['arrow_config', 'a mixture of adapters (Arrow)'],
  ['monteclora_config', 'MonteCLoRA'],
  ['kasa_config', 'KaSA'],
];

/** What the adapter_config.json of a LoRA adapter says. */
interface PeftConfig {
  file: string;
  /** Name or path of the base model; null if unknown. */
  baseModel: string | null;
  targets: TargetedModules;
  /** Rank of a module by its whole name, such as `model.layers.0.self_attn.q_proj`. */
  rankOf(module: string): number;
  /** Factor of a module's B * A: alpha / rank, with use_rslora alpha / sqrt(rank). */
  scaleOf(module: string): number;
}

/** Reads adapter_config.json. @throws CheckpointError that names file, setting, expected and found. */
function readPeftConfig(file: string): PeftConfig {
  const json = readJsonObject(file, MAX_CONFIG_BYTES);
  if (!json) throw new CheckpointError(`${file}: no such file; every adapter of PEFT has one.`);
  const fields = new ConfigFields(file, json);
  if (fields.raw('peft_type') !== 'LORA') throw fields.error('peft_type', '"LORA"');
  refuseUnsupported(fields);
  // Says how the base stores its matrices. Those of an adapter are [rank, in] and [out, rank] either way.
  fields.boolean('fan_in_fan_out', false);

  const budget: StepBudget = { left: MAX_PATTERN_STEPS };
  const rank = fields.integer('r', 1, MAX_RANK, USUAL);
  const alpha = finite(fields, 'lora_alpha', fields.raw('lora_alpha') ?? USUAL);
  const rankPattern = patterns(fields, 'rank_pattern', budget, (value) => {
    if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_RANK)
      return value as number;
    throw fields.error('rank_pattern', `an object with whole numbers from 1 to ${MAX_RANK}`);
  });
  const alphaPattern = patterns(fields, 'alpha_pattern', budget, (value) =>
    finite(fields, 'alpha_pattern', value),
  );
  const usesRslora = fields.boolean('use_rslora', false);

  const rankOf = (module: string) => rankPattern.valueOf(module) ?? rank;
  return {
    file,
    baseModel: fields.string('base_model_name_or_path') ?? null,
    targets: new TargetedModules(fields, budget),
    rankOf,
    scaleOf: (module) => {
      const divisor = usesRslora ? Math.sqrt(rankOf(module)) : rankOf(module);
      return (alphaPattern.valueOf(module) ?? alpha) / divisor;
    },
  };
}

function patterns(
  fields: ConfigFields,
  key: string,
  budget: StepBudget,
  checked: (value: unknown) => number,
): ModulePatterns {
  const value = fields.raw(key) ?? {};
  if (!isObject(value)) throw fields.error(key, 'an object');
  const entries = Object.entries(value).map(([pattern, item]) => [pattern, checked(item)] as const);
  return new ModulePatterns(`${fields.where}: ${key}`, entries, budget);
}

function finite(fields: ConfigFields, key: string, value: unknown): number {
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw fields.error(key, key === 'lora_alpha' ? 'a number' : 'an object with numbers');
}

/** Refuses settings that would be computed wrongly, without an error, if they were ignored. */
function refuseUnsupported(fields: ConfigFields): void {
  for (const [key, meaning] of REFUSED) {
    const value = fields.raw(key);
    const isOff = value === undefined || value === false || (Array.isArray(value) && value.length === 0);
    if (!isOff) throw fields.error(key, `absent or off: ${meaning} is not supported`);
  }
  const bias = fields.raw('bias');
  if (bias !== undefined && bias !== 'none')
    throw fields.error('bias', '"none": trained biases are not supported');
  if (!HARMLESS_INITIALISATIONS.includes(fields.raw('init_lora_weights'))) {
    throw fields.error(
      'init_lora_weights',
      `true, false, "gaussian", "eva" or "orthogonal": others change the base model's weights, so that the adapter has to be converted to a plain one`,
    );
  }
}
