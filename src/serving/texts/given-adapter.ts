import { createHmac, randomBytes } from 'node:crypto';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { EngineFields } from '../../generation/text-generation.js';
import type { AdapterSet } from '../adapters/model-adapters.js';
import type { GivenInputs } from './given-inputs.js';
import type { TextInputName } from './text-inputs.js';

/** Each sender of adapters by the network has task ids of its own. @throws InferError, ParameterError */
export function adapterFields(given: GivenInputs, adapters: AdapterSet | null, caller: string): EngineFields {
  const names = (['lora_task_id', 'lora_weights', 'lora_config'] as const).filter(
    (name) => given.has(name) && (name === 'lora_task_id' || given.get(name)!.data.length > 0),
  );
  if (names.length === 0) return {};
  if (adapters === null) {
    throw new InferError(
      `'${names[0]}' is refused: the model takes no LoRA adapters (--lora, or --allow-runtime-lora, lets it)`,
      'invalid',
    );
  }
  const tensorOf = (name: Extract<TextInputName, 'lora_weights' | 'lora_config'>) => {
    const values = name === 'lora_weights' ? given.floats(name) : given.integers(name);
    return values === undefined ? {} : { [name]: { shape: [...given.get(name)!.shape], data: values } };
  };
  const taskId = given.big('lora_task_id');
  const read = adapters.fromTensors({
    ...(taskId === undefined ? {} : { lora_task_id: { shape: [1], data: BigUint64Array.of(taskId) } }),
    ...tensorOf('lora_weights'),
    ...tensorOf('lora_config'),
  });
  if (read === null) return {};
  return {
    loraTaskId: networkTaskId(caller, read.taskId),
    ...(read.weights === null ? {} : { adapter: read.weights }),
  };
}

/** New in each process, like the caches of adapters. */
const SECRET = randomBytes(32);
const HIGHEST_BIT = 1n << 63n;

/**
 * The number by which the engine knows the adapter that a client calls `taskId`. No client finds, or replaces, an adapter that another
 * API key has sent, or one that has a name: those have small numbers.
 */
function networkTaskId(caller: string, taskId: bigint): bigint {
  const digest = createHmac('sha256', SECRET).update(`${taskId}\0${caller}`).digest();
  return digest.readBigUInt64LE() | HIGHEST_BIT;
}
