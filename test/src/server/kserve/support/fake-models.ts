import { InferError } from '../../../../../callbacks/infer/infer-error.js';
import type { InferListener, InferRequest, InferTensor } from '../../../../../callbacks/infer/infer-types.js';
import type { DataType, ModelConfig } from '../../../../../models/repository/model-config.js';
import { checkedRequest } from '../../../../../src/serving/check-request.js';
import type {
  FailureReason,
  InferModel,
  ModelActivity,
  VersionStatistics,
} from '../../../../../src/serving/infer-model.js';
import { InferenceCounters } from '../../../../../src/serving/inference-counters.js';
import type {
  IndexRow,
  LoadParameters,
  ModelRepository,
} from '../../../../../src/serving/model-repository.js';

export interface FakeConfig {
  name: string;
  type: DataType;
  dims: readonly number[];
  batch?: number;
  labelFile?: string;
  decoupled?: boolean;
}

/** What answers a request: its outputs, or an error. */
export type Compute = (inputs: readonly InferTensor[]) => readonly InferTensor[];

/** INPUT0 is answered as OUTPUT0. */
export const identity: Compute = ([input]) => [{ ...input!, name: 'OUTPUT0' }];

export function fakeConfig({ name, type, dims, batch = 0, labelFile = '', decoupled = false }: FakeConfig) {
  const tensor = { data_type: type, dims: [...dims] };
  return {
    name,
    platform: '',
    backend: 'fake',
    version_policy: { latest: { num_versions: 1 } },
    max_batch_size: batch,
    input: [
      { name: 'INPUT0', ...tensor, is_shape_tensor: false, allow_ragged_batch: false, optional: false },
    ],
    output: [{ name: 'OUTPUT0', ...tensor, label_filename: labelFile, is_shape_tensor: false }],
    instance_group: [],
    default_model_filename: '',
    parameters: {},
    model_transaction_policy: { decoupled },
  } satisfies ModelConfig;
}

/** A model that computes at once, on the thread that asks it. */
export class FakeModel implements InferModel {
  readonly kind = 'tensors';
  readonly config: ModelConfig;
  readonly version: string;
  readonly modelDirectory: string | null;
  /** Requests as they came. */
  readonly requests: InferRequest[] = [];
  readonly #compute: Compute;
  readonly #counters = new InferenceCounters();

  constructor(
    config: ModelConfig,
    compute: Compute = identity,
    { version = '1', modelDirectory = null as string | null } = {},
  ) {
    this.config = config;
    this.version = version;
    this.modelDirectory = modelDirectory;
    this.#compute = compute;
  }

  statistics(): VersionStatistics {
    return this.#counters.read();
  }

  activity(): ModelActivity {
    return {
      waiting: 0,
      running: 0,
      instances: ['idle'],
      restarts: 0,
      lastInference: this.#counters.lastInference,
    };
  }

  failures(): Readonly<Record<FailureReason, number>> {
    return this.#counters.failures();
  }

  infer(request: InferRequest, on: InferListener): void {
    const { inputs, batchSize } = checkedRequest(this.config, request);
    this.requests.push(request);
    queueMicrotask(() => {
      const times = { inputNs: 1000, inferNs: 2000, outputNs: 3000 };
      try {
        const outputs = this.#compute(inputs);
        this.#counters.noteExecution(batchSize, times);
        this.#counters.noteSuccess(batchSize, 10_000, 4000, times);
        on.response({ outputs });
      } catch (error) {
        this.#counters.noteFailure('BACKEND', 5000);
        on.fail(error as Error);
        return;
      }
      on.end();
    });
  }
}

export const failing: Compute = () => {
  throw new InferError('this model always fails', 'internal');
};

/** Models that are there from the start, one version each. */
export class FakeRepository implements ModelRepository {
  /** What was loaded and unloaded, in order. */
  readonly commands: unknown[] = [];
  readonly #models: Map<string, FakeModel>;

  constructor(models: readonly FakeModel[]) {
    this.#models = new Map(models.map((model) => [model.config.name, model]));
  }

  add(model: FakeModel): void {
    this.#models.set(model.config.name, model);
  }

  find(name: string, version: string): FakeModel {
    const model = this.#models.get(name);
    if (model === undefined) {
      throw new InferError(`Request for unknown model: '${name}' is not found`, 'notFound');
    }
    if (version === '' || version === model.version) return model;
    throw new InferError(`Request for unknown model: '${name}' version ${version} is not found`, 'notFound');
  }

  versions(name: string): readonly FakeModel[] {
    return [this.find(name, '')];
  }

  isReady(name: string, version: string): boolean {
    const model = this.#models.get(name);
    return model !== undefined && (version === '' || version === model.version);
  }

  holds(name: string): boolean {
    return this.#models.has(name);
  }

  loaded(): readonly FakeModel[] {
    return [...this.#models.values()];
  }

  async index(): Promise<readonly IndexRow[]> {
    return this.rows();
  }

  rows(): readonly IndexRow[] {
    return this.loaded().map(({ config: { name }, version }) => ({ name, version, state: 'READY' }));
  }

  async load(name: string, parameters?: LoadParameters): Promise<string> {
    this.commands.push(['load', name, parameters]);
    return name;
  }

  async unload(name: string, options?: { unloadDependents?: boolean }): Promise<void> {
    this.commands.push(['unload', name, options]);
    this.#models.delete(name);
  }
}
