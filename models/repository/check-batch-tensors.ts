import type { BatchInput, BatchOutput, ModelConfig, ModelInput } from './model-config.js';
import type { FieldPath } from './written-config.js';

/** Names of all targets of one model: each is an input that is made for every batch. */
const MAX_TARGETS = 64;

/** Calls for each rule: where it is broken, with the rest of a sentence that begins with the field. */
type Refuse = (path: FieldPath, rest: string) => never;

/**
 * Holds ragged inputs, batch inputs and batch outputs against the rules that need no look at the model's file.
 * Source: ValidateBatchIO of github.com/triton-inference-server/core, src/model_config_utils.cc; what Triton would find in a batch only, such as
 * a name that is taken twice, is refused here too.
 */
export function checkBatchTensors(config: ModelConfig, refuse: Refuse): void {
  const { batch_input: inputs = [], batch_output: outputs = [] } = config;
  requireBatches(config, refuse);
  checkCount('batch_input', inputs, refuse);
  checkCount('batch_output', outputs, refuse);
  const taken = takenInputs(config);
  for (const [i, input] of inputs.entries()) checkBatchInput(config, input, i, taken, refuse);
  const split = new Set<string>();
  for (const [i, output] of outputs.entries()) checkBatchOutput(config, output, i, split, refuse);
}

function requireBatches(config: ModelConfig, refuse: Refuse): void {
  const given = (['batch_input', 'batch_output'] as const).find((field) => (config[field] ?? []).length > 0);
  if (given !== undefined && config.ensemble_scheduling !== undefined)
    refuse([given], 'is given: an ensemble forms no batches; its steps do.');
  if (config.max_batch_size >= 1) return;
  const ragged = config.input.findIndex((input) => input.allow_ragged_batch);
  const path = given === undefined ? ['input', ragged, 'allow_ragged_batch'] : [given];
  if (given !== undefined || ragged >= 0)
    refuse(path, 'needs a max_batch_size of at least 1: this model takes no batches.');
}

function checkCount(
  field: 'batch_input' | 'batch_output',
  list: readonly (BatchInput | BatchOutput)[],
  refuse: Refuse,
): void {
  const count = list.reduce((sum, { target_name: targets }) => sum + targets.length, 0);
  if (Math.max(count, list.length) > MAX_TARGETS)
    refuse([field], `names ${Math.max(count, list.length)} tensors; at most ${MAX_TARGETS} are taken.`);
}

/** Inputs of the model with what each is, as the end of a sentence. */
function takenInputs({ input, sequence_batching: batching }: ModelConfig): Map<string, string> {
  return new Map([
    ...input.map(({ name }) => [name, 'an input'] as const),
    ...(batching?.control_input ?? []).map(({ name }) => [name, 'a control input'] as const),
    ...(batching?.state ?? []).map(({ input_name: name }) => [name, 'a state'] as const),
  ]);
}

function checkBatchInput(
  config: ModelConfig,
  { kind, target_name: targets, data_type: type, source_input: sources }: BatchInput,
  index: number,
  taken: Map<string, string>,
  refuse: Refuse,
): void {
  const at = (...path: FieldPath): FieldPath => ['batch_input', index, ...path];
  if (targets.length === 0) refuse(at('target_name'), 'is missing: it names the input that is made.');
  for (const [i, target] of targets.entries()) {
    if (target === '') refuse(at('target_name', i), "is ''; the name of an input is expected.");
    const other = taken.get(target);
    if (other !== undefined) refuse(at('target_name', i), `is '${target}', the name of ${other} too.`);
    taken.set(target, 'another batch input');
  }
  if (type !== 'TYPE_INT32' && type !== 'TYPE_FP32')
    refuse(at('data_type'), `is ${type}; TYPE_INT32 or TYPE_FP32 is expected.`);
  sourceOf(config, `kind ${kind}`, sources, at('source_input'), refuse);
}

function checkBatchOutput(
  config: ModelConfig,
  { kind, target_name: targets, source_input: sources }: BatchOutput,
  index: number,
  split: Set<string>,
  refuse: Refuse,
): void {
  const at = (...path: FieldPath): FieldPath => ['batch_output', index, ...path];
  if (targets.length === 0) refuse(at('target_name'), 'is missing: it names the output that is split.');
  const source = sourceOf(config, `kind ${kind}`, sources, at('source_input'), refuse);
  const sizes = source.reshape?.shape ?? source.dims;
  for (const [i, target] of targets.entries()) {
    const output = config.output.find(({ name }) => name === target);
    if (output === undefined)
      refuse(
        at('target_name', i),
        `is '${target}', which is no output; ${namesOf(config.output)} is expected.`,
      );
    if (split.has(target)) refuse(at('target_name', i), `is '${target}', which is split already.`);
    split.add(target);
    const dims = output.reshape?.shape ?? output.dims;
    if (dims.lastIndexOf(-1) < sizes.length) continue;
    refuse(
      at('target_name', i),
      `is '${target}' with the dims [${dims}]; its source_input '${source.name}' has ${sizes.length} sizes, which is too few for the -1 at the end.`,
    );
  }
}

/** The only source. A request that may leave it out would have nothing to be described by. */
function sourceOf(
  { input }: ModelConfig,
  what: string,
  sources: readonly string[],
  path: FieldPath,
  refuse: Refuse,
): ModelInput {
  if (sources.length !== 1) refuse(path, `names ${sources.length} inputs; ${what} takes 1.`);
  const found = input.find(({ name }) => name === sources[0]);
  if (found === undefined)
    refuse([...path, 0], `is '${sources[0]}', which is no input; ${namesOf(input)} is expected.`);
  if (found.optional)
    refuse([...path, 0], `is '${found.name}', which is optional: each request has to have it.`);
  return found;
}

const namesOf = (tensors: readonly { name: string }[]) => tensors.map(({ name }) => `'${name}'`).join(' or ');
