import { checkBatchTensors } from './check-batch-tensors.js';
import { checkEnsemble } from './check-ensemble.js';
import { checkSequenceBatching } from './check-sequence-batching.js';
import type { DynamicBatching, InstanceGroup, ModelConfig, ModelInput, ModelOutput } from './model-config.js';
import { checkWarmups } from './warmup.js';
import { type FieldPath, fieldError, sentenceError, type WrittenConfig } from './written-config.js';

const MAX_BATCH_SIZE = 65_536;
const MAX_INSTANCES = 64;
const MAX_LEVELS = 64;
const MAX_PARAMETER = 64 * 1024;
const MAX_DIMS = 32;
/** Resources of a group, of which each turn of the rate limiter looks at all. */
const MAX_RESOURCES = 64;
/** Characters of a resource's name, which metrics have as a label. */
const LONGEST_RESOURCE = 128;

/** Calls for each rule: where it is broken, with the rest of a sentence that begins with the field. */
type Refuse = (path: FieldPath, rest: string) => never;

/**
 * Holds a whole configuration against the rules across its fields. @param written where its errors are found
 * @throws ModelConfigError
 */
export function checkConfig(config: ModelConfig, written: WrittenConfig): void {
  const refuse: Refuse = (path, rest) => {
    throw fieldError(written, path, rest);
  };
  checkNumber(config.max_batch_size, 0, MAX_BATCH_SIZE, ['max_batch_size'], refuse);
  checkTensors(config.input, 'input', refuse);
  checkTensors(config.output, 'output', refuse);
  checkScheduling(config, refuse);
  checkBatchTensors(config, refuse);
  checkEnsemble(config, (path, sentence) => {
    throw sentenceError(written, path, sentence);
  });
  checkInstances(config, refuse);
  checkCache(config, refuse);
  checkWarmups(config, refuse);
  checkModelFilename(config, written);
  for (const [name, { string_value: value }] of Object.entries(config.parameters)) {
    if (value === undefined) refuse(['parameters', name], 'has no string_value.');
    if (value.length > MAX_PARAMETER) {
      refuse(['parameters', name], `has ${value.length} characters; at most ${MAX_PARAMETER} are taken.`);
    }
  }
  const { version_policy: policy } = config;
  if ('latest' in policy && !((policy.latest.num_versions ?? 0) >= 1)) {
    refuse(['version_policy', 'latest', 'num_versions'], 'must be at least 1.');
  }
  if ('specific' in policy && !((policy.specific.versions?.length ?? 0) >= 1)) {
    refuse(['version_policy', 'specific', 'versions'], 'names no version.');
  }
}

function checkNumber(value: number, least: number, most: number, path: FieldPath, refuse: Refuse): void {
  if (value < least || value > most)
    refuse(path, `is ${value}; a whole number from ${least} to ${most} is expected.`);
}

function checkTensors(
  tensors: readonly (ModelInput | ModelOutput)[],
  kind: 'input' | 'output',
  refuse: Refuse,
): void {
  const names = new Set<string>();
  if (tensors.length === 0) refuse([kind], `is missing: the model has to have at least one ${kind}.`);
  for (const [i, tensor] of tensors.entries()) {
    const { name, data_type, dims, reshape } = tensor;
    if (name === '') refuse([kind, i, 'name'], 'is missing.');
    if (names.has(name)) refuse([kind, i, 'name'], `is '${name}', the name of another ${kind} too.`);
    names.add(name);
    if (data_type === ('TYPE_INVALID' as string)) refuse([kind, i, 'data_type'], 'is missing.');
    if (dims.length === 0) refuse([kind, i, 'dims'], 'is missing; at least one dimension is expected.');
    checkDims(dims, [kind, i, 'dims'], refuse);
    if (tensor.is_shape_tensor)
      refuse([kind, i, 'is_shape_tensor'], 'is true; no backend here has shape tensors.');
    const format = 'format' in tensor ? tensor.format : undefined;
    if (format !== undefined && format !== 'FORMAT_NONE' && dims.length !== 3)
      refuse([kind, i, 'format'], `is ${format}, which has 3 dims; it has ${dims.length}.`);
    if (reshape !== undefined) checkReshape(dims, reshape.shape, [kind, i, 'reshape', 'shape'], refuse);
    if ('label_filename' in tensor && tensor.label_filename !== '') {
      checkFilename(tensor.label_filename, [kind, i, 'label_filename'], refuse);
    }
  }
}

function checkDims(dims: readonly number[], path: FieldPath, refuse: Refuse): void {
  if (dims.length > MAX_DIMS) refuse(path, `has ${dims.length} dimensions; at most ${MAX_DIMS} are taken.`);
  const wrong = dims.find((size) => size < 1 && size !== -1);
  if (wrong !== undefined) refuse(path, `has ${wrong}; sizes from 1 are expected, or -1 for any.`);
}

function checkReshape(
  dims: readonly number[],
  shape: readonly number[],
  path: FieldPath,
  refuse: Refuse,
): void {
  checkDims(shape, path, refuse);
  const elements = (sizes: readonly number[]) =>
    sizes.filter((size) => size !== -1).reduce((product, size) => product * size, 1);
  const free = (sizes: readonly number[]) => sizes.filter((size) => size === -1).length;
  if (free(dims) !== free(shape)) {
    refuse(path, `is [${shape}] and dims is [${dims}]: they must have as many sizes of -1.`);
  }
  if (free(dims) > 1) refuse(path, `has ${free(dims)} sizes of -1; at most one is taken with reshape.`);
  if (elements(dims) !== elements(shape)) {
    refuse(path, `is [${shape}] and dims is [${dims}]: they must have as many elements.`);
  }
}

function checkScheduling(config: ModelConfig, refuse: Refuse): void {
  const kinds = ['dynamic_batching', 'sequence_batching', 'ensemble_scheduling'] as const;
  const given = kinds.filter((kind) => config[kind] !== undefined);
  if (given.length > 1) refuse([given[1]!], `and ${given[0]} exclude each other; one of them is expected.`);
  const { dynamic_batching: batching, sequence_batching: sequences } = config;
  if (sequences !== undefined) {
    checkSequenceBatching(config, sequences, {
      refuse,
      checkNumber: (value, least, most, path) => checkNumber(value, least, most, path, refuse),
      checkDims: (dims, path) => checkDims(dims, path, refuse),
    });
  }
  if (batching === undefined) return;
  if (config.max_batch_size < 1) {
    refuse(['dynamic_batching'], 'needs a max_batch_size of at least 1: this model takes no batches.');
  }
  checkBatching(batching, config.max_batch_size, refuse);
}

function checkBatching(batching: DynamicBatching, maxBatchSize: number, refuse: Refuse): void {
  const at = (...path: FieldPath): FieldPath => ['dynamic_batching', ...path];
  for (const [i, size] of batching.preferred_batch_size.entries()) {
    checkNumber(size, 1, maxBatchSize, at('preferred_batch_size', i), refuse);
  }
  const { priority_levels: levels, default_priority_level: level } = batching;
  checkNumber(levels, 0, MAX_LEVELS, at('priority_levels'), refuse);
  if (levels > 0) checkNumber(level, 1, levels, at('default_priority_level'), refuse);
  else if (level !== 0)
    refuse(at('default_priority_level'), `is ${level}, but priority_levels is not given.`);
  for (const key of Object.keys(batching.priority_queue_policy)) {
    const number = Number(key);
    if (!Number.isInteger(number) || number < 1 || number > levels) {
      refuse(at('priority_queue_policy', key), `is of no level; there are ${levels} levels, from 1 on.`);
    }
  }
  if (batching.preserve_ordering && levels > 1) {
    refuse(at('preserve_ordering'), 'excludes priority_levels above 1: a higher level overtakes.');
  }
}

function checkInstances(config: ModelConfig, refuse: Refuse): void {
  let count = 0;
  for (const [i, group] of config.instance_group.entries()) {
    const kind: string = group.kind;
    if (kind !== 'KIND_CPU' && kind !== 'KIND_AUTO') {
      refuse(
        ['instance_group', i, 'kind'],
        `is ${kind}; backends run on the processor here: KIND_CPU or KIND_AUTO is expected.`,
      );
    }
    checkNumber(group.count, 1, MAX_INSTANCES, ['instance_group', i, 'count'], refuse);
    checkRateLimiter(group, ['instance_group', i, 'rate_limiter', 'resources'], refuse);
    count += group.count;
  }
  if (count > MAX_INSTANCES) {
    refuse(['instance_group'], `asks for ${count} instances; at most ${MAX_INSTANCES} are taken.`);
  }
}

function checkRateLimiter({ rate_limiter: limiter }: InstanceGroup, at: FieldPath, refuse: Refuse): void {
  const { resources = [] } = limiter ?? {};
  if (resources.length > MAX_RESOURCES)
    refuse(at, `names ${resources.length} resources; at most ${MAX_RESOURCES} are taken.`);
  for (const [i, { name, count }] of resources.entries()) {
    if (name === '') refuse([...at, i, 'name'], 'is missing.');
    if (name.length > LONGEST_RESOURCE)
      refuse([...at, i, 'name'], `has ${name.length} characters; at most ${LONGEST_RESOURCE} are taken.`);
    if (resources.findIndex((one) => one.name === name) < i)
      refuse([...at, i, 'name'], `is '${name}', which the group names twice.`);
    if (count === 0) refuse([...at, i, 'count'], 'is missing; a whole number from 1 is expected.');
  }
}

/** Of any configuration, before the file is looked at. @throws ModelConfigError */
export function checkModelFilename(
  { default_model_filename: name = '' }: Partial<ModelConfig>,
  written: WrittenConfig,
): void {
  checkFilename(name, ['default_model_filename'], (path, rest) => {
    throw fieldError(written, path, rest);
  });
}

/** A name within a folder: no way leads out of it. */
function checkFilename(name: string, path: FieldPath, refuse: Refuse): void {
  if (name === '.' || name === '..' || /[/\\\0]/.test(name)) {
    refuse(path, `is ${JSON.stringify(name)}; the name of a file in the model's folder is expected.`);
  }
}

/**
 * Models whose answers do not follow from one request keep none. Words are Triton's.
 * @param refuse for a field, with the rest of a sentence that begins with it
 */
export function checkCache(config: ModelConfig, refuse: (path: FieldPath, rest: string) => never): void {
  if (config.response_cache?.enable !== true) return;
  const why =
    config.sequence_batching !== undefined
      ? 'sequence batching scheduler'
      : config.model_transaction_policy.decoupled
        ? "'decoupled' transaction policy"
        : null;
  if (why === null) return;
  refuse(
    ['response_cache'],
    `is enabled: Response Cache does not currently support model ${config.name} with ${why}. Please disable the response cache.`,
  );
}
