import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Engine, openEngine } from '../../engine/building/engine.js';
import { weightBytesOf } from '../../engine/directory/engine-directory.js';
import { planNetwork } from '../../models/architectures/index.js';
import { openCheckpoint } from '../../models/checkpoints/open-checkpoint.js';
import type { ModelConfig } from '../../models/model-config.js';
import type { NetworkPlan } from '../../network/plan.js';

/** What a model's files say of it, without loading it. */
export interface ModelFacts {
  format: 'safetensors' | 'gguf' | 'engine';
  config: ModelConfig;
  /** Number of weights. */
  parameters: number;
  /** Precision of most of the weights, as their file names it: Q4_K, BF16, int8. */
  precision: string;
  /** Source of the chat template; null where it has none, or that is not known. */
  chatTemplate: string | null;
  /** Bytes of the weights as they are stored. */
  weightBytes: number;
  /** Hash that changes with the files, 64 hexadecimal digits. */
  digest: string;
}

/** Reads the headers of a model. @param path as describeModel has it. @throws CheckpointError, EngineError */
export function readModelFacts(path: string): ModelFacts {
  if (existsSync(join(path, 'engine.json'))) return factsOfEngine(openEngine(path));
  const { format, config, tensors, tokenizer, sourceHash } = openCheckpoint(path);
  const bytes = new Map<string, number>();
  for (const { type, byteLength } of tensors.values()) bytes.set(type, (bytes.get(type) ?? 0) + byteLength);
  const [most] = [...bytes].sort(([, a], [, b]) => b - a);
  return {
    format,
    config,
    parameters: parametersOf(planNetwork(config)),
    precision: most?.[0] ?? '',
    chatTemplate: tokenizer.chatTemplate,
    weightBytes: [...bytes.values()].reduce((sum, one) => sum + one, 0),
    digest: digestOf(sourceHash),
  };
}

/** The same of an engine directory, whose weights have the precision that they were built in. */
export function factsOfEngine({ manifest, plan }: Pick<Engine, 'manifest' | 'plan'>): ModelFacts {
  const { config, precision, source } = manifest;
  return {
    format: 'engine',
    config,
    parameters: parametersOf(plan),
    precision,
    chatTemplate: null,
    weightBytes: weightBytesOf(manifest),
    digest: digestOf(source.hash),
  };
}

const digestOf = (hash: string) => createHash('sha256').update(hash).digest('hex');

const parametersOf = ({ weights }: NetworkPlan) =>
  weights.reduce((sum, { rows, columns }) => sum + rows * columns, 0);
