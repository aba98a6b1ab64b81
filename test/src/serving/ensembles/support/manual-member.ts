import { InferError } from '../../../../../callbacks/infer/infer-error.js';
import type {
  InferListener,
  InferParameters,
  InferRequest,
  InferTensor,
} from '../../../../../callbacks/infer/infer-types.js';
import type { ModelConfig } from '../../../../../models/repository/model-config.js';
import { planEnsemble } from '../../../../../scheduler/tensors/ensemble-plan.js';
import { EnsembleModel } from '../../../../../src/serving/ensembles/ensemble-model.js';
import type { InferModel, ModelActivity } from '../../../../../src/serving/infer-model.js';
import { InferenceCounters } from '../../../../../src/serving/inference-counters.js';

/** `A B? -> C`: names of inputs, optional ones with a question mark, and of outputs, all of them of one number. */
export function configOf(name: string, signature: string, fields: Partial<ModelConfig> = {}): ModelConfig {
  const [inputs = '', outputs = ''] = signature.split('->').map((side) => side.trim());
  const named = (list: string) => list.split(' ').filter((one) => one !== '');
  const tensor = { data_type: 'TYPE_INT32' as const, dims: [1], is_shape_tensor: false };
  return {
    name,
    platform: '',
    backend: 'manual',
    version_policy: { latest: { num_versions: 1 } },
    max_batch_size: 0,
    input: named(inputs).map((input) => ({
      ...tensor,
      name: input.replace('?', ''),
      optional: input.endsWith('?'),
      allow_ragged_batch: false,
    })),
    output: named(outputs).map((output) => ({ ...tensor, name: output, label_filename: '' })),
    instance_group: [],
    default_model_filename: '',
    parameters: {},
    model_transaction_policy: { decoupled: false },
    ...fields,
  };
}

export function tensorOf(name: string, ...values: number[]): InferTensor {
  const data = new Uint8Array(Int32Array.from(values).buffer);
  return { name, datatype: 'INT32', shape: [values.length], data };
}

export const valuesOf = ({ data }: InferTensor) => [...new Int32Array(data.slice().buffer)];

/** A request that a member has and answers when the test says so. */
export interface AskedMember {
  readonly request: InferRequest;
  /** By name. */
  readonly inputs: Readonly<Record<string, number[]>>;
  respond(outputs: readonly InferTensor[], parameters?: InferParameters, release?: () => void): void;
  end(): void;
  fail(error: Error): void;
}

/** A model whose requests a test answers by hand. */
export class ManualMember implements InferModel {
  readonly kind = 'tensors';
  readonly version = '1';
  readonly modelDirectory = null;
  readonly asked: AskedMember[] = [];
  /** Thrown by `infer` at once. */
  refusal: Error | null = null;
  readonly #counters = new InferenceCounters();

  constructor(readonly config: ModelConfig) {}

  infer(request: InferRequest, on: InferListener): void {
    if (this.refusal !== null) throw this.refusal;
    this.asked.push({
      request,
      inputs: Object.fromEntries(request.inputs.map((input) => [input.name, valuesOf(input)])),
      respond: (outputs, parameters, release) =>
        on.response({ outputs, ...(parameters === undefined ? {} : { parameters }), release }),
      end: () => {
        request.onTimes?.({ inputNs: 1, inferNs: 10, outputNs: 100 });
        on.end();
      },
      fail: (error) => on.fail(error),
    });
  }

  /** Answers its n-th request with numbers for its outputs, in their order, and ends it. */
  answer(n: number, ...values: number[]): void {
    this.asked[n]!.respond(this.config.output.map(({ name }, i) => tensorOf(name, values[i]!)));
    this.asked[n]!.end();
  }

  statistics() {
    return this.#counters.read();
  }

  failures() {
    return this.#counters.failures();
  }

  activity(): ModelActivity {
    return { waiting: 0, running: 0, instances: ['idle'], restarts: 0, lastInference: 0 };
  }
}

/** Everything that came of a request. */
export interface Outcome {
  responses: {
    outputs: Record<string, number[]>;
    parameters: InferParameters | undefined;
    release?: (() => void) | undefined;
  }[];
  /** What it ended with; undefined: it has not ended. */
  end: 'ended' | InferError | undefined;
}

export function asked(
  model: InferModel,
  inputs: readonly InferTensor[],
  fields: Partial<InferRequest> = {},
): Outcome {
  const outcome: Outcome = { responses: [], end: undefined };
  const finish = (end: 'ended' | InferError) => {
    if (outcome.end !== undefined) throw new Error('It has ended twice.');
    outcome.end = end;
  };
  const request = {
    id: '',
    inputs,
    outputs: null,
    parameters: {},
    sequence: null,
    priority: 0,
    timeoutUs: 0,
  };
  model.infer(
    { ...request, ...fields },
    {
      response: ({ outputs, parameters, release }) => {
        if (outcome.end !== undefined) throw new Error('A response came behind the end.');
        const values = Object.fromEntries(outputs.map((output) => [output.name, valuesOf(output)]));
        outcome.responses.push({ outputs: values, parameters, release });
      },
      end: () => finish('ended'),
      fail: (error) => finish(error as InferError),
    },
  );
  return outcome;
}

/** A step: `model A=X B=Y -> C=Z`, names of the model and tensors of the ensemble. */
function stepOf(text: string) {
  const [left = '', right = ''] = text.split('->').map((side) => side.trim());
  const [model_name = '', ...inputs] = left.split(' ');
  const mapOf = (pairs: readonly string[]) =>
    Object.fromEntries(
      pairs.filter((pair) => pair !== '').map((pair) => pair.split('=') as [string, string]),
    );
  return {
    model_name,
    model_version: -1,
    input_map: mapOf(inputs),
    output_map: mapOf(right.split(' ')),
    model_namespace: '',
  };
}

/** An ensemble whose members are found in `members` at each request. */
export function ensembleOf(
  members: ReadonlyMap<string, InferModel>,
  signature: string,
  steps: readonly string[],
  { maxInflight = 0, name = 'e', ...fields }: Partial<ModelConfig> & { maxInflight?: number } = {},
): EnsembleModel {
  const scheduling = { step: steps.map(stepOf), max_inflight_requests: maxInflight };
  const config = configOf(name, signature, {
    platform: 'ensemble',
    ensemble_scheduling: scheduling,
    ...fields,
  });
  const plan = planEnsemble(
    config,
    scheduling.step.map(({ model_name }) => members.get(model_name)!.config),
  );
  return new EnsembleModel({
    config: { ...config, model_transaction_policy: { decoupled: plan.isDecoupled } },
    plan,
    version: '1',
    modelDirectory: '/nowhere',
    find: (model) => {
      const found = members.get(model);
      if (found !== undefined) return found;
      throw new InferError(`Request for unknown model: '${model}' has no available versions`, 'notFound');
    },
  });
}
