import type {
  DataType,
  ModelConfig,
  ModelInput,
  ModelOutput,
} from '../../../models/repository/model-config.js';

/** An input of one element that a request may leave out, or must not. */
export function inputOf(name: string, data_type: DataType, optional: boolean, dims = [1]): ModelInput {
  return { name, data_type, dims, is_shape_tensor: false, allow_ragged_batch: false, optional };
}

export function outputOf(name: string, data_type: DataType, dims: number[]): ModelOutput {
  return { name, data_type, dims, label_filename: '', is_shape_tensor: false };
}

/** The configuration of a text model: it comes from the model and not from a file. */
export function textConfig(
  name: string,
  parts: Pick<ModelConfig, 'input' | 'output' | 'max_batch_size'>,
  facts: Readonly<Record<string, string | number>>,
): ModelConfig {
  const parameters = Object.entries(facts).map(([key, value]) => [key, { string_value: String(value) }]);
  return {
    name,
    platform: '',
    backend: 'skein',
    version_policy: { latest: { num_versions: 1 } },
    instance_group: [{ name: `${name}_0`, kind: 'KIND_CPU', count: 1 }],
    default_model_filename: '',
    parameters: Object.fromEntries(parameters),
    model_transaction_policy: { decoupled: false },
    ...parts,
  };
}
