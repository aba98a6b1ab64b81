import { input, says } from '../../base/named-text.js';
import { type InParts, runToEnd } from '../../base/run-to-end.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import type { Tensor } from '../../callbacks/types.js';
import type { AdapterWeights } from '../../models/adapters/adapter-weights.js';
import { LoraTensorsError, loraTensorsInParts } from '../../models/adapters/lora-tensors.js';
import type { ModelConfig } from '../../models/model-config.js';

/** A request's adapter as its tensors have it. */
export interface AdapterInputs {
  taskId: bigint;
  /** null: only the task is named. */
  weights: AdapterWeights | null;
}

/** The base model of the adapters, and what is accepted of one. */
export interface AdapterBase {
  model: ModelConfig;
  maxRank: number;
  maxBytes: number;
}

/**
 *   lora_task_id   [1]               names the adapter; later requests give this alone
 *   lora_weights   [rows, width]     the adapter, with the first request of the task: see loraTensorsInParts
 *   lora_config    [rows, 3]
 *
 * Weights and configuration without elements count as not given. null: the request has no adapter.
 * @throws ParameterError that names the tensor
 */
export function readAdapterInputs(inputs: Record<string, Tensor>, base: AdapterBase): AdapterInputs | null {
  return runToEnd(adapterInputsInParts(inputs, base));
}

/** The same in parts, which yield the number of values that they have read. */
export function* adapterInputsInParts(
  inputs: Record<string, Tensor>,
  base: AdapterBase,
): InParts<AdapterInputs | null> {
  const { lora_task_id: task, lora_weights: weights, lora_config: config } = inputs;
  const hasWeights = weights !== undefined && weights.data.length > 0;
  const hasConfig = config !== undefined && config.data.length > 0;
  if (hasWeights !== hasConfig) {
    const [given, missing] = hasWeights ? ['lora_weights', 'lora_config'] : ['lora_config', 'lora_weights'];
    throw new ParameterError(
      missing!,
      says`${input(missing!)} is missing; ${input(given!)} is given, and an adapter is both.`,
    );
  }
  if (task === undefined) {
    if (!hasWeights) return null;
    throw new ParameterError(
      'lora_task_id',
      says`${input('lora_task_id')} is missing; ${input('lora_weights')} is given, and the id names the adapter.`,
    );
  }
  const taskId = task.data[0] as bigint;
  return { taskId, weights: hasWeights && hasConfig ? yield* weightsInParts(weights, config, base) : null };
}

function* weightsInParts(
  weights: Tensor,
  config: Tensor,
  { model, ...limits }: AdapterBase,
): InParts<AdapterWeights> {
  try {
    return yield* loraTensorsInParts(
      {
        weights: weights.data as Float32Array,
        weightsShape: weights.shape,
        config: config.data as Int32Array,
        configShape: config.shape,
      },
      model,
      limits,
    );
  } catch (error) {
    if (!(error instanceof LoraTensorsError)) throw error;
    throw new ParameterError(error.tensor, error.text);
  }
}
