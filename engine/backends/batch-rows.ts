import { elementsIn } from '../../callbacks/infer/datatypes.js';
import type { InferTensor } from '../../callbacks/infer/infer-types.js';
import type { ModelConfig } from '../../models/repository/model-config.js';
import type { InstanceRequest } from './backend.js';
import { BackendError } from './backend-error.js';
import { gatherRows, splitRows } from './gather.js';
import { thrownText } from './thrown.js';

/** Runs rows: outputs of these names for inputs of all of them. */
type RunRows = (
  inputs: readonly InferTensor[],
  wanted: readonly string[],
) => readonly InferTensor[] | Promise<readonly InferTensor[]>;

/**
 * Runs a batch as one, for a backend that takes one tensor of each input, and gives each request its rows of the outputs. Where that fails, each
 * request is run alone, so that those which can be answered are.
 *
 *   a: INPUT0 [2, 16]  --+                                       +--> a: OUTPUT0 [2, 16]
 *   b: INPUT0 [1, 16]  --+--> INPUT0 [3, 16] --run--> OUTPUT0 [3, 16] +--> b: OUTPUT0 [1, 16]
 *
 * @throws what `run` throws for a request that is alone, and BackendError for outputs that do not fit
 */
export async function runRows(
  config: ModelConfig,
  requests: readonly InstanceRequest[],
  run: RunRows,
): Promise<void> {
  let outputs: readonly InferTensor[];
  try {
    outputs = await run(batchInputs(config, requests), wantedOutputs(config, requests));
  } catch (error) {
    if (requests.length === 1) throw error;
    for (const request of requests) {
      try {
        await runRows(config, [request], run);
      } catch (own) {
        request.fail(`the model '${config.name}' failed: ${thrownText(own)}`);
      }
    }
    return;
  }
  sendRows(config, requests, outputs);
}

/**
 * The inputs of a batch, each with the rows of all requests, in the shape that the model itself has. An optional one that nobody gave is left
 * out. @throws BackendError for rows that are no tensor together
 */
function batchInputs(config: ModelConfig, requests: readonly InstanceRequest[]): InferTensor[] {
  return config.input.flatMap(({ name, reshape }) => {
    const parts = requests.map(({ inputs }) => inputs.find((input) => input.name === name));
    const given = parts.filter((part) => part !== undefined);
    if (given.length === 0) return [];
    if (given.length < parts.length) {
      throw new BackendError(`Input '${name}' is not in every request of the batch.`);
    }
    const whole = gatherRows(given);
    return [reshape === undefined ? whole : reshaped(config, whole, reshape.shape)];
  });
}

/** Outputs that some request wants, in the configuration's order: no other has to be computed. */
function wantedOutputs(
  { output }: ModelConfig,
  requests: readonly Pick<InstanceRequest, 'outputs'>[],
): string[] {
  const names = output.map(({ name }) => name);
  if (requests.some(({ outputs }) => outputs === null)) return names;
  const asked = new Set(requests.flatMap(({ outputs }) => outputs!));
  return names.filter((name) => asked.has(name));
}

/**
 * Sends each request its rows of the outputs that it wants, in the shapes that the configuration shows to clients.
 * @throws BackendError for an output that has not as many rows as the batch
 */
function sendRows(
  config: ModelConfig,
  requests: readonly InstanceRequest[],
  outputs: readonly InferTensor[],
): void {
  const sizes = requests.map(({ batchSize }) => batchSize);
  const rows = outputs.map((output) => rowsOf(config, output, sizes));
  for (const [i, request] of requests.entries()) {
    const own = rows.map((parts) => parts[i]!);
    const { outputs: names } = request;
    request.send(names === null ? own : own.filter(({ name }) => names.includes(name)));
  }
}

function rowsOf(config: ModelConfig, tensor: InferTensor, sizes: readonly number[]): readonly InferTensor[] {
  const output = config.output.find(({ name }) => name === tensor.name)!;
  const shown = output.reshape === undefined ? tensor : reshaped(config, tensor, output.dims);
  return config.max_batch_size > 0 ? splitRows(shown, sizes) : [shown];
}

function reshaped(
  { max_batch_size: maxBatchSize }: ModelConfig,
  tensor: InferTensor,
  dims: readonly number[],
): InferTensor {
  const rows = maxBatchSize > 0 ? tensor.shape.slice(0, 1) : [];
  const known = [...rows, ...dims];
  const elements = elementsIn(tensor.shape);
  const others = elementsIn(known.filter((size) => size !== -1));
  return { ...tensor, shape: known.map((size) => (size === -1 ? elements / others : size)) };
}
