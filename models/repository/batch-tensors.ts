import type { Told } from './complete-config.js';
import type { BatchInput, ModelConfig, ModelInput, ModelOutput } from './model-config.js';
import { type FieldPath, fieldError, type WrittenConfig } from './written-config.js';

/**
 * Tensors that a model's file has as lists of elements over the whole batch: ragged inputs, targets of batch inputs, and outputs that are
 * scattered. Where a file does not say how many dimensions they have, it is one.
 */
export function listTensors({ input, batch_input, batch_output }: Partial<ModelConfig>): ReadonlySet<string> {
  return new Set([
    ...(input ?? []).filter((one) => one.allow_ragged_batch).map(({ name }) => name),
    ...[...(batch_input ?? []), ...(batch_output ?? [])].flatMap((one) => one.target_name ?? []),
  ]);
}

/**
 * What a model's file says of its inputs and outputs as clients see them: without batch inputs, which they do
 * not send; ragged inputs and scattered outputs, which the file has as lists of elements, in the sizes that
 * the author wrote.
 * @throws ModelConfigError where the author and the file contradict each other
 */
export function withoutBatchTensors(told: Told, maxBatchSize: number, config: WrittenConfig): Told {
  const { batch_input: inputs = [], batch_output: outputs = [] } = config.fields;
  if (told.input === undefined) return told;
  // Without batches all of these fields are refused once the configuration is complete.
  if (maxBatchSize > 0) {
    for (const [i, input] of inputs.entries()) checkTargets(input, i, told.input, config);
  }
  const made = new Set(inputs.flatMap((one) => one.target_name ?? []));
  const scattered = new Set(outputs.flatMap((one) => one.target_name ?? []));
  const written = config.fields.input ?? [];
  return {
    ...told,
    input: told.input
      .filter(({ name }) => !made.has(name))
      .map((known): ModelInput => {
        const index = written.findIndex(({ name }) => name === known.name);
        if (written[index]?.allow_ragged_batch !== true) return known;
        if (maxBatchSize > 0) checkRagged(known, index, config);
        return asWritten(known, written[index]!);
      }),
    ...(told.output && {
      output: told.output.map((known): ModelOutput => {
        const author = config.fields.output?.find(({ name }) => name === known.name);
        return author !== undefined && scattered.has(known.name) ? asWritten(known, author) : known;
      }),
    }),
  };
}

function checkTargets(
  { kind, target_name: targets = [], data_type: type }: Partial<BatchInput>,
  index: number,
  told: readonly ModelInput[],
  config: WrittenConfig,
): void {
  for (const [i, target] of targets.entries()) {
    const at: FieldPath = ['batch_input', index, 'target_name', i];
    const known = told.find(({ name }) => name === target);
    if (known === undefined) {
      const names = told.map(({ name }) => `'${name}'`).join(', ');
      throw fieldError(config, at, `is '${target}', which the model's file does not have; it has ${names}.`);
    }
    if (type !== undefined && type !== known.data_type) {
      throw fieldError(config, at, `is '${target}' of ${type}; the model's file has ${known.data_type}.`);
    }
    const own = known.reshape?.shape ?? known.dims;
    const expected = kind === 'BATCH_ITEM_SHAPE' ? 1 : 0;
    if (own.length === expected) continue;
    throw fieldError(
      config,
      at,
      `is '${target}', which has ${own.length + 1} dimensions in the model's file; ${kind ?? 'BATCH_ELEMENT_COUNT'} has ${expected + 1}.`,
    );
  }
}

function checkRagged({ name, reshape, dims }: ModelInput, index: number, config: WrittenConfig): void {
  const own = reshape?.shape ?? dims;
  if (own.length === 0) return;
  throw fieldError(
    config,
    ['input', index, 'allow_ragged_batch'],
    `is true for '${name}', which has the shape [-1,${own}] in the model's file; [-1], a list of the elements of all requests, is expected.`,
  );
}

/** A tensor of the file in the author's sizes. */
function asWritten<Tensor extends ModelInput | ModelOutput>(
  { reshape: _, ...known }: Tensor,
  { dims = [], reshape }: Partial<Tensor>,
): Tensor {
  return { ...known, dims, ...(reshape && { reshape }) } as Tensor;
}
