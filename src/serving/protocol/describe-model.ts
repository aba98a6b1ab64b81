import { type Datatype, datatypeOf } from '../../../callbacks/infer/datatypes.js';
import type { ModelInput, ModelOutput } from '../../../models/repository/model-config.js';
import { malformed } from '../infer-failure.js';
import type { InferModel, VersionStatistics } from '../infer-model.js';
import type { ModelRepository } from '../model-repository.js';

/** An input or an output of a model. */
export interface TensorMetadata {
  name: string;
  datatype: Datatype;
  /** The batch dimension first, where the model has one; -1: any size. */
  shape: readonly number[];
}

/** What a model takes and gives. */
export interface ModelMetadata {
  name: string;
  /** Those that answer. */
  versions: readonly string[];
  platform: string;
  inputs: readonly TensorMetadata[];
  outputs: readonly TensorMetadata[];
}

/** Counts and times of a version of a model, with every field of the protocol's extension; nanoseconds are whole numbers. */
export interface ModelStatistics extends VersionStatistics {
  name: string;
  version: string;
  response_stats: object;
  memory_usage: readonly object[];
}

/** GET /v2/models/M. @param versions those that answer */
export function metadataOf({ config }: InferModel, versions: readonly string[]): ModelMetadata {
  const { name, platform, backend, input, output, max_batch_size } = config;
  const described = ({ name: tensor, data_type, dims }: ModelInput | ModelOutput) => ({
    name: tensor,
    datatype: datatypeOf(data_type),
    shape: [...(max_batch_size > 0 ? [-1] : []), ...dims],
  });
  return {
    name,
    versions,
    platform: platform || backend,
    inputs: input.map(described),
    outputs: output.map(described),
  };
}

/** Models whose statistics are asked for. @param name '': all @param version '': all of the model's @throws InferError */
export function modelsCounted(
  repository: ModelRepository,
  name: string,
  version: string,
): readonly InferModel[] {
  const all = repository.loaded();
  if (name === '') return all;
  const found = all.filter(({ config }) => config.name === name);
  const asked = version === '' ? found : found.filter((model) => model.version === version);
  if (asked.length > 0) return asked;
  throw malformed(
    found.length === 0
      ? `requested model '${name}' is not available`
      : `requested model version is not available for model '${name}'`,
  );
}

/** One of GET /v2/models/M/stats, with every field of the protocol's extension. */
export function statisticsOf(model: InferModel): ModelStatistics {
  const { inference_stats, batch_stats, ...counts } = model.statistics();
  return {
    name: model.config.name,
    version: model.version,
    ...counts,
    inference_stats: rounded(inference_stats),
    response_stats: {},
    batch_stats: batch_stats.map(rounded),
    memory_usage: [],
  };
}

/** Nanoseconds are whole numbers. */
function rounded<T extends object>(durations: T): T {
  return Object.fromEntries(
    Object.entries(durations).map(([name, value]) => [
      name,
      typeof value === 'object' ? { count: value.count, ns: Math.round(value.ns) } : value,
    ]),
  ) as T;
}
