import type { ConfigFields } from '../checkpoints/config-fields.js';
import { LIMITS } from '../checkpoints/config-fields.js';
import { ModulePattern, type StepBudget } from './module-pattern.js';
import { ModulePatterns } from './module-patterns.js';

/** A module as the settings see it. */
export interface ModulePlace {
  /** Whole name: `model.layers.0.self_attn.q_proj`. */
  name: string;
  /** What stands before the layer's number: `model.layers`. */
  layersName: string;
  layer: number;
}

type Choice = (name: string) => boolean;

/**
 * The modules that an adapter changes by adapter_config.json: target_modules (names, one regular expression for whole
 * names, or all-linear), exclude_modules, layers_to_transform and layers_pattern, as PEFT reads them. The tensors of an
 * adapter are compared with this, so that a file that does not belong to its configuration is noticed.
 */
export class TargetedModules {
  readonly #isTarget: Choice;
  readonly #isExcluded: Choice;
  readonly #hasLayer: (place: ModulePlace) => boolean;

  /** @throws CheckpointError for a setting of another type, or a pattern that cannot be followed. */
  constructor(fields: ConfigFields, budget: StepBudget) {
    const target = fields.raw('target_modules');
    const all = target === undefined || target === 'all-linear';
    this.#isTarget = all ? () => true : choice(fields, 'target_modules', budget);
    this.#isExcluded = fields.raw('exclude_modules')
      ? choice(fields, 'exclude_modules', budget)
      : () => false;
    this.#hasLayer = layerChoice(fields, budget);
  }

  /** The setting that leaves a module out; null where the adapter changes it. */
  leftOutBy(place: ModulePlace): string | null {
    if (this.#isExcluded(place.name)) return 'exclude_modules';
    if (!this.#isTarget(place.name)) return 'target_modules';
    return this.#hasLayer(place) ? null : 'layers_to_transform';
  }
}

function choice(fields: ConfigFields, key: string, budget: StepBudget): Choice {
  const value = fields.raw(key);
  const where = `${fields.where}: ${key}`;
  if (typeof value === 'string') {
    const pattern = new ModulePattern(where, value);
    return (name) => pattern.matchesAll(name, budget);
  }
  if (!Array.isArray(value) || !value.every((item) => typeof item === 'string')) {
    throw fields.error(key, 'a list of names, or a pattern');
  }
  const names = new Set(value as string[]);
  return (name) => {
    const parts = name.split('.');
    return parts.some((_, first) => names.has(parts.slice(first).join('.')));
  };
}

function layerChoice(fields: ConfigFields, budget: StepBudget): (place: ModulePlace) => boolean {
  const value = fields.raw('layers_to_transform');
  const layers = value === undefined ? [] : Array.isArray(value) ? value : [value];
  if (!layers.every((layer) => Number.isInteger(layer) && layer >= 0 && layer < LIMITS.layers)) {
    throw fields.error('layers_to_transform', 'the number of a layer or a list of them');
  }
  const pattern = fields.raw('layers_pattern');
  const names = pattern === undefined || pattern === '' ? [] : Array.isArray(pattern) ? pattern : [pattern];
  if (!names.every((name) => typeof name === 'string')) {
    throw fields.error('layers_pattern', 'a name or a list of names');
  }
  if (layers.length === 0) return () => true;
  const chosen = new Set(layers as number[]);
  const patterns = new ModulePatterns(
    `${fields.where}: layers_pattern`,
    (names as string[]).map((name) => [name, 1]),
    budget,
  );
  return ({ layersName, layer }) =>
    (names.length === 0 || patterns.valueOf(layersName) !== undefined) && chosen.has(layer);
}
