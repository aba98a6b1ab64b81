import type protobuf from 'protobufjs';

/** Why a field of a message is refused if it asks for anything, as the rest of a sentence that begins with the field. */
type Reasons = Readonly<Record<string, string>>;

const ON_PROCESSOR = 'backends run on the processor here';
const NO_OPTIMIZER = 'a backend here runs a model as its file has it';

/**
 * Fields of Triton's configuration that nothing reads here. A value that asks for nothing (the default of its type, as
 * Triton's own answers write it) is accepted.
 */
export const REFUSED_FIELDS: Readonly<Record<string, Reasons>> = {
  ModelInstanceGroup: {
    gpus: `is given: ${ON_PROCESSOR}`,
    secondary_devices: `is given: ${ON_PROCESSOR}`,
    profile: 'is given: profiles are of TensorRT, which does not run here',
    passive: 'is true: each instance takes requests here',
    host_policy: 'is given: instances run wherever the operating system puts them',
  },
  ModelInput: {
    is_non_linear_format_io: 'is true: it is of TensorRT, which does not run here',
  },
  ModelOutput: {
    is_non_linear_format_io: 'is true: it is of TensorRT, which does not run here',
  },
  ModelOptimizationPolicy: {
    graph: `is given: ${NO_OPTIMIZER}`,
    priority:
      'is given: models take turns on the processor without priorities; requests have them (dynamic_batching)',
    cuda: `is given: ${ON_PROCESSOR}`,
    execution_accelerators: `is given: ${NO_OPTIMIZER}`,
    gather_kernel_buffer_threshold: `is given: ${ON_PROCESSOR}`,
    eager_batching: 'is true: a batch is put together when it goes to an instance',
  },
  ModelConfig: {
    runtime: 'is given: a backend has one runtime here; leave it out',
    cc_model_filenames: `is given: ${ON_PROCESSOR}, and default_model_filename names the model's file`,
    metric_tags: 'is given: metrics have the labels model and version',
    model_operations: 'is given: libraries of operations cannot be loaded',
    model_repository_agents: 'is given: no agent can change the files of a model',
    model_metrics: 'is given: buckets of histograms are the same for all models',
  },
  Step: { model_namespace: 'is given: names of models are unique here' },
};

/** Why the field is refused with this value; null: it is not. */
export function whyFieldIsRefused(type: protobuf.Type, field: string, value: unknown): string | null {
  const reason = REFUSED_FIELDS[type.name]?.[field];
  return reason === undefined || asksForNothing(value, type.fields[field]!.resolve()) ? null : reason;
}

/** The value is the default of its type, as far down as it goes. @param value as readMessage has read it */
function asksForNothing(value: unknown, field: protobuf.Field): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (typeof value === 'object' && value !== null) {
    if (field.map) return Object.keys(value).length === 0;
    const { fields } = field.resolvedType as protobuf.Type;
    return Object.entries(value).every(([name, one]) => asksForNothing(one, fields[name]!.resolve()));
  }
  const { resolvedType } = field;
  if (resolvedType !== null && 'valuesById' in resolvedType) return value === resolvedType.valuesById[0];
  return value === 0 || value === '' || value === false;
}
