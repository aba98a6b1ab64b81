import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { longestSequence } from '../../../engine/building/builder.js';
import { layOutWeights, readEngineFacts } from '../../../engine/building/engine.js';
import { automaticOutputPrecision, automaticPrecision } from '../../../engine/building/weight-precision.js';
import {
  type EnginePrecision,
  type EngineTensor,
  weightBytesOf,
} from '../../../engine/directory/engine-directory.js';
import { storedParts } from '../../../engine/directory/stored-precision.js';
import { likelyExecutor } from '../../../engine/kinds/choose-executor.js';
import { kvBytesPerBlock } from '../../../kvcache/kv-cache-size.js';
import { planNetwork } from '../../../models/architectures/index.js';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import type { ModelConfig } from '../../../models/model-config.js';
import type { NetworkPlan } from '../../../network/plan.js';
import { productsOf } from '../../../network/products.js';

/** What a model takes and reads, by its headers alone. */
export interface ModelMeasure {
  /** True where it generates text. */
  generates: boolean;
  /** Bytes of all its weights, as they lie in memory. */
  weightBytes: number;
  /** Bytes of weights that are read for a token of one sequence: of experts those that a token goes to. */
  readBytes: number;
  /** Bytes of its KV cache for a token; 0: no layer attends. */
  cacheBytesPerToken: number;
  /** Tokens of its longest sequence. */
  contextTokens: number;
}

interface LaidOut {
  config: ModelConfig;
  plan: NetworkPlan;
  precision: EnginePrecision;
  tensors: readonly EngineTensor[];
  weightBytes: number;
}

/**
 * Measures a model that is not loaded. Reads its headers, which takes up to a second of this thread with a large vocabulary.
 * @param path a Hugging Face folder, a GGUF file or a folder with one, or an engine @throws CheckpointError, EngineError
 */
export async function measureModel(path: string): Promise<ModelMeasure> {
  const { config, plan, precision, tensors, weightBytes } = laidOut(path);
  const generates = config.encoder === undefined;
  const { kind } = await likelyExecutor({}, plan);
  const attends = generates && plan.caches.length > 0;
  return {
    generates,
    weightBytes,
    readBytes: readBytesOf(plan, tensors),
    cacheBytesPerToken: attends ? kvBytesPerBlock(plan.caches, 1, kind.kvDtypeFor(precision)) : 0,
    contextTokens: longestSequence(config),
  };
}

function laidOut(path: string): LaidOut {
  if (existsSync(join(path, 'engine.json'))) {
    const { manifest, plan } = readEngineFacts(path);
    const { config, precision, tensors } = manifest;
    return { config, plan, precision, tensors, weightBytes: weightBytesOf(manifest) };
  }
  const checkpoint = openCheckpoint(path);
  const plan = planNetwork(checkpoint.config);
  const precision = automaticPrecision(checkpoint, plan);
  const output = automaticOutputPrecision(precision, checkpoint, plan);
  const { tensors, byteLength } = layOutWeights(plan, precision, output, (one) =>
    storedParts(checkpoint, one),
  );
  return { config: checkpoint.config, plan, precision, tensors, weightBytes: byteLength };
}

/**
 * Bytes of the matrices that a token is multiplied with. Of a table of embeddings one row is read, which is nothing.
 *
 *   linear    all of its matrix
 *   experts   used / count of the experts' matrices
 */
function readBytesOf({ ops }: NetworkPlan, tensors: readonly EngineTensor[]): number {
  const bytes = new Map<string, number>();
  for (const { name, byteLength } of tensors) bytes.set(name, (bytes.get(name) ?? 0) + byteLength);
  const share = new Map<string, number>();
  for (const op of ops) {
    const part = op.op === 'experts' ? Math.min(1, op.used / op.gateUp.length) : 1;
    for (const { weight } of productsOf(op)) share.set(weight, Math.max(part, share.get(weight) ?? 0));
  }
  let sum = 0;
  for (const [weight, part] of share) sum += part * (bytes.get(weight) ?? 0);
  return Math.round(sum);
}
