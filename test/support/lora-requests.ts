import type { InferenceRequest, Tensor } from '../../callbacks/types.js';
import { FAKE_MODEL } from '../../engine/executors/fake/fake-adapters.js';
import { type AdapterWeights, adapterOf } from '../../models/adapters/adapter-weights.js';
import { baseModules } from '../../models/adapters/base-modules.js';
import { writeLoraTensors } from '../../models/adapters/lora-tensors.js';
import { makeRequest, u64 } from '../../tools/support/loop-harness.js';

const { shapes, names } = baseModules(FAKE_MODEL);

/**
 * An adapter of the fake's model, on all modules of all layers; `seed` distinguishes its values from
 * another's.
 */
export function fakeAdapter(seed: number, rank = 2): AdapterWeights {
  const values = (length: number, from: number) =>
    Float32Array.from({ length }, (_, i) => from + seed + i / 8);
  const moduleLayers = [...new Set(names.values())].flatMap((module) =>
    Array.from({ length: FAKE_MODEL.numLayers }, (_, layer) => {
      const shape = shapes.get(module)!;
      return { layer, module, rank, a: values(rank * shape.in, layer), b: values(shape.out * rank, -layer) };
    }),
  );
  return adapterOf(moduleLayers, null);
}

/** Tensors of a request that brings the adapter of a task. */
export function bringing(taskId: bigint, adapter: AdapterWeights): Record<string, Tensor> {
  const { weights, weightsShape, config, configShape } = writeLoraTensors(adapter);
  return {
    ...naming(taskId),
    lora_weights: { shape: [...weightsShape], data: weights },
    lora_config: { shape: [...configShape], data: config },
  };
}

/** Tensors of a request that names a task alone. */
export function naming(taskId: bigint): Record<string, Tensor> {
  return { lora_task_id: u64(taskId) };
}

export interface LoraRequests {
  /** As a client sends them: the first of a task brings its weights. */
  sent: InferenceRequest[];
  /** The same, each with its weights, so that it can run alone. */
  alone: InferenceRequest[];
}

/**
 * Requests over tasks 1 to `numTasks`, in turns; every seventh has no adapter. Every fifth adapter takes twice the pages.
 * @param more further tensors of a request
 */
export function loraCrowd(
  count: number,
  numTasks: number,
  more: (index: number) => Record<string, Tensor> = () => ({}),
): LoraRequests {
  const known = new Set<number>();
  const sent: InferenceRequest[] = [];
  const alone: InferenceRequest[] = [];
  for (let i = 0; i < count; i++) {
    // Half of the prompts are equal, so that only their adapters distinguish them.
    const prompt = Array.from(
      { length: 3 + (i % 19) },
      (_, place) => (i % 2 === 0 ? place + 1 : 2 * i + place) % 100,
    );
    const make = (inputs: Record<string, Tensor>) =>
      makeRequest(BigInt(i), prompt, 4 + (i % 23), { ...inputs, ...more(i) });
    if (i % 7 === 6) {
      sent.push(make({}));
      alone.push(make({}));
      continue;
    }
    const task = 1 + ((7 * i) % numTasks);
    const taskId = BigInt(task);
    const brought = bringing(taskId, fakeAdapter(task, task % 5 === 0 ? 4 : 2));
    sent.push(make(known.has(task) ? naming(taskId) : brought));
    alone.push(make(brought));
    known.add(task);
  }
  return { sent, alone };
}
