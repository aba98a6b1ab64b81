import { CheckpointError } from '../checkpoints/checkpoint.js';
import { ConfigFields } from '../checkpoints/config-fields.js';
import { isObject, readJsonObject } from '../checkpoints/file-reading.js';
import type { StepBudget } from './module-pattern.js';
import { ModulePatterns } from './module-patterns.js';
import { TargetedModules } from './targeted-modules.js';

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
export interface PeftConfig {
  file: string;
  /** Name or path of the base model; null where it is not told. */
  baseModel: string | null;
  targets: TargetedModules;
  /** Rank of a module by its whole name, such as `model.layers.0.self_attn.q_proj`. */
  rankOf(module: string): number;
  /** Factor of a module's B * A: alpha / rank, with use_rslora alpha / sqrt(rank). */
  scaleOf(module: string): number;
}

/** Reads adapter_config.json. @throws CheckpointError that names file, setting, expected and found. */
export function readPeftConfig(file: string): PeftConfig {
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
