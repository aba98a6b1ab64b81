import { withoutBatchTensors } from './batch-tensors.js';
import { ENSEMBLE_PLATFORM } from './check-ensemble.js';
import { sequencesWithAll } from './complete-sequence-batching.js';
import type {
  BatchInput,
  BatchOutput,
  DynamicBatching,
  EnsembleScheduling,
  InstanceGroup,
  ModelConfig,
  ModelInput,
  ModelOutput,
  ModelRateLimiter,
  QueuePolicy,
} from './model-config.js';
import { withoutSequenceTensors } from './sequence-tensors.js';
import { completeWarmups } from './warmup.js';
import { type FieldPath, fieldError, type WrittenConfig } from './written-config.js';

/** Parts of a configuration that a backend has read from the model's files. */
export type Told = Partial<
  Pick<ModelConfig, 'input' | 'output' | 'max_batch_size' | 'model_transaction_policy'>
>;

/** What is known of a model besides what its author wrote. */
export interface ConfigFacts {
  /** The name under which it is served. */
  name: string;
  /** The folder's name, which `name` of the file must be where it is written. */
  folder: string;
  backend: string;
  /** The platform that its backend's models are of; absent or '': it has no name for one. */
  platform?: string | undefined;
  defaultFilename: string;
  told: Told;
}

const NOTHING: WrittenConfig = { fields: {}, origin: 'the configuration', lineOf: () => null };

/**
 * A configuration with everything in it: what its author wrote, else what the backend read, else Triton's
 * default.
 * @throws ModelConfigError where the author and the files contradict each other
 */
export function completeConfig(written: WrittenConfig | null, facts: ConfigFacts): ModelConfig {
  const config = written ?? NOTHING;
  const { fields } = config;
  const { name, folder } = facts;
  if (fields.name !== undefined && fields.name !== '' && fields.name !== folder) {
    throw fieldError(
      config,
      ['name'],
      `is '${fields.name}'; '${folder}', the name of the folder, is expected.`,
    );
  }
  const maxBatchSize = fields.max_batch_size ?? facts.told.max_batch_size ?? 0;
  const sequences = fields.sequence_batching && sequencesWithAll(fields.sequence_batching, maxBatchSize);
  const clients = withoutBatchTensors(facts.told, maxBatchSize, config);
  const told = sequences === undefined ? clients : withoutSequenceTensors(clients, sequences, config);
  checkAgainst(config, 'input', told.input);
  // A state may be listed, and is returned then.
  checkAgainst(config, 'output', clients.output);
  const isScheduled = fields.sequence_batching !== undefined || fields.ensemble_scheduling !== undefined;
  // A model that takes batches, by what its files say, and of whose batches nothing is written, is batched.
  const byItself = fields.max_batch_size === undefined && maxBatchSize > 1 && !isScheduled ? {} : undefined;
  const batching = fields.dynamic_batching ?? byItself;
  const isEnsemble = fields.ensemble_scheduling !== undefined;
  return {
    ...fields,
    name,
    platform: fields.platform || (isEnsemble ? ENSEMBLE_PLATFORM : facts.platform) || '',
    backend: facts.backend,
    runtime: fields.runtime ?? '',
    version_policy: fields.version_policy ?? { latest: { num_versions: 1 } },
    max_batch_size: maxBatchSize,
    input: (fields.input ?? told.input ?? []).map(withReshape).map(inputWithAll),
    output: (fields.output ?? told.output ?? []).map(withReshape).map(outputWithAll),
    batch_input: (fields.batch_input ?? []).map(batchInputWithAll),
    batch_output: (fields.batch_output ?? []).map(batchOutputWithAll),
    instance_group: isEnsemble ? (fields.instance_group ?? []) : groupsWithAll(fields.instance_group, name),
    default_model_filename: fields.default_model_filename || facts.defaultFilename,
    cc_model_filenames: fields.cc_model_filenames ?? {},
    metric_tags: fields.metric_tags ?? {},
    parameters: fields.parameters ?? {},
    model_warmup: completeWarmups(fields.model_warmup),
    model_transaction_policy: {
      decoupled:
        fields.model_transaction_policy?.decoupled ?? told.model_transaction_policy?.decoupled ?? false,
    },
    ...(batching === undefined ? {} : { dynamic_batching: batchingWithAll(batching, maxBatchSize) }),
    ...(isEnsemble ? { ensemble_scheduling: ensembleWithAll(fields.ensemble_scheduling!) } : {}),
    ...(sequences === undefined ? {} : { sequence_batching: sequences }),
  };
}

function ensembleWithAll({ step: steps = [], ...more }: Partial<EnsembleScheduling>): EnsembleScheduling {
  const all = { model_name: '', model_version: -1, input_map: {}, output_map: {}, model_namespace: '' };
  return { step: steps.map((step) => ({ ...all, ...step })), ...more };
}

/** The text format has no field for a list that is empty: `reshape: { shape: [ ] }` is a reshape to a single number. */
function withReshape<Tensor extends Partial<ModelInput | ModelOutput>>(tensor: Tensor): Tensor {
  const { reshape } = tensor;
  return reshape === undefined ? tensor : { ...tensor, reshape: { shape: reshape.shape ?? [] } };
}

function inputWithAll(input: Partial<ModelInput>): ModelInput {
  return {
    name: '',
    data_type: 'TYPE_INVALID' as ModelInput['data_type'],
    format: 'FORMAT_NONE',
    dims: [],
    is_shape_tensor: false,
    allow_ragged_batch: false,
    optional: false,
    ...input,
  } as ModelInput;
}

function outputWithAll(output: Partial<ModelOutput>): ModelOutput {
  return {
    name: '',
    data_type: 'TYPE_INVALID' as ModelOutput['data_type'],
    dims: [],
    label_filename: '',
    is_shape_tensor: false,
    ...output,
  };
}

function batchInputWithAll(input: Partial<BatchInput>): BatchInput {
  return {
    kind: 'BATCH_ELEMENT_COUNT',
    target_name: [],
    data_type: 'TYPE_INVALID' as BatchInput['data_type'],
    source_input: [],
    ...input,
  };
}

function batchOutputWithAll(output: Partial<BatchOutput>): BatchOutput {
  return { target_name: [], kind: 'BATCH_SCATTER_WITH_INPUT_SHAPE', source_input: [], ...output };
}

function groupsWithAll(groups: readonly Partial<InstanceGroup>[] | undefined, name: string): InstanceGroup[] {
  const written = groups === undefined || groups.length === 0 ? [{}] : groups;
  return written.map(({ rate_limiter: limiter, ...group }, i) => ({
    ...group,
    ...(limiter && { rate_limiter: limiterWithAll(limiter) }),
    name: group.name || `${name}_${i}`,
    kind: group.kind === undefined || group.kind === 'KIND_AUTO' ? 'KIND_CPU' : group.kind,
    count: group.count || 1,
  }));
}

function limiterWithAll({ resources = [], priority = 0 }: Partial<ModelRateLimiter>): ModelRateLimiter {
  return { resources: resources.map((one) => ({ ...RESOURCE, ...one })), priority };
}

const RESOURCE = { name: '', global: false, count: 0 };

const QUEUE_POLICY: QueuePolicy = {
  timeout_action: 'REJECT',
  default_timeout_microseconds: 0,
  allow_timeout_override: false,
  max_queue_size: 0,
};

function batchingWithAll(batching: Partial<DynamicBatching>, maxBatchSize: number): DynamicBatching {
  const { preferred_batch_size: preferred = [], priority_levels: levels = 0 } = batching;
  const policies = Object.entries(batching.priority_queue_policy ?? {});
  return {
    preferred_batch_size: preferred.length === 0 && maxBatchSize > 0 ? [maxBatchSize] : preferred,
    max_queue_delay_microseconds: batching.max_queue_delay_microseconds ?? 0,
    preserve_ordering: batching.preserve_ordering ?? false,
    priority_levels: levels,
    default_priority_level: batching.default_priority_level ?? 0,
    default_queue_policy: { ...QUEUE_POLICY, ...batching.default_queue_policy },
    priority_queue_policy: Object.fromEntries(
      policies.map(([level, policy]) => [level, { ...QUEUE_POLICY, ...policy }]),
    ),
  };
}

/** What is written of inputs or outputs has to be what the files say. */
function checkAgainst(
  config: WrittenConfig,
  kind: 'input' | 'output',
  told: readonly (ModelInput | ModelOutput)[] | undefined,
): void {
  const written = config.fields[kind];
  if (told === undefined || written === undefined) return;
  for (const [i, { name, data_type, dims, reshape }] of written.entries()) {
    const path: FieldPath = [kind, i];
    const known = told.find((one) => one.name === name);
    if (known === undefined) {
      const names = told.map((one) => `'${one.name}'`).join(', ');
      throw fieldError(config, path, `is '${name}', which the model's file does not have; it has ${names}.`);
    }
    if (data_type !== known.data_type) {
      throw fieldError(
        config,
        [...path, 'data_type'],
        `is ${data_type}; the model's file has ${known.data_type}.`,
      );
    }
    const shape = (reshape === undefined ? dims : reshape.shape) ?? [];
    const own = known.reshape?.shape ?? known.dims;
    const fits =
      shape.length === own.length &&
      shape.every((size, at) => size === -1 || own[at] === -1 || size === own[at]);
    if (!fits) {
      throw fieldError(config, [...path, 'dims'], `is [${shape}]; the model's file has [${own}].`);
    }
  }
  if (kind === 'output') return;
  const missing = told.find((one) => !written.some(({ name }) => name === one.name));
  if (missing !== undefined) {
    throw fieldError(config, [kind], `lacks '${missing.name}', which the model's file needs.`);
  }
}
