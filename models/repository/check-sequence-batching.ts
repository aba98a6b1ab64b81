import type { ControlInput, DataType, ModelConfig, SequenceBatching, SequenceState } from './model-config.js';
import { typeOfControl } from './sequence-tensors.js';
import type { FieldPath } from './written-config.js';

/** Candidate sequences of an instance; the slots of `direct` are max_batch_size. */
const MAX_CANDIDATES = 65_536;
/** Sequences that all instances of a model have at once: some hundred bytes each. */
const MAX_SEQUENCES = 262_144;
const MAX_STATES = 256;
const ID_TYPES: readonly string[] = ['TYPE_UINT64', 'TYPE_INT64', 'TYPE_UINT32', 'TYPE_INT32', 'TYPE_STRING'];

/** What is called where a rule is broken, and the rules of other parts of a configuration. */
export interface SequenceRules {
  refuse(path: FieldPath, rest: string): never;
  checkNumber(value: number, least: number, most: number, path: FieldPath): void;
  checkDims(dims: readonly number[], path: FieldPath): void;
}

const at = (...path: FieldPath): FieldPath => ['sequence_batching', ...path];

/** Holds `sequence_batching` against the rules. Source: model_config_utils.cc and sequence_batch_scheduler.cc of Triton's core. */
export function checkSequenceBatching(
  config: ModelConfig,
  batching: SequenceBatching,
  rules: SequenceRules,
): void {
  checkStrategy(config, batching, rules);
  if (config.response_cache?.enable) {
    rules.refuse(['response_cache'], 'excludes sequence_batching: an answer depends on those before it.');
  }
  const { control_input: controls, state: states } = batching;
  const names = new Map(config.input.map(({ name }, i): [string, string] => [name, `input[${i}]`]));
  const checkName = (name: string, path: FieldPath, what: string) => {
    if (name === '') rules.refuse(path, 'is missing.');
    const other = names.get(name);
    if (other !== undefined) rules.refuse(path, `is '${name}', the name of ${other} too.`);
    names.set(name, what);
  };
  const kinds = new Map<string, string>();
  for (const [i, control] of controls.entries()) {
    checkName(control.name, at('control_input', i, 'name'), `control_input[${i}]`);
    checkControl(control, i, kinds, rules);
  }
  if (states.length > MAX_STATES)
    rules.refuse(at('state'), `has ${states.length} states; at most ${MAX_STATES} are taken.`);
  const outputs = new Map<string, number>();
  for (const [i, state] of states.entries()) {
    checkName(state.input_name, at('state', i, 'input_name'), `state[${i}].input_name`);
    const { output_name: output } = state;
    const path = at('state', i, 'output_name');
    if (output === '') rules.refuse(path, 'is missing.');
    const other = outputs.get(output);
    if (other !== undefined)
      rules.refuse(path, `is '${output}', the name of state[${other}].output_name too.`);
    outputs.set(output, i);
    checkState(config, state, at('state', i), rules);
  }
}

function checkStrategy(
  config: ModelConfig,
  { direct, oldest }: SequenceBatching,
  rules: SequenceRules,
): void {
  const { max_batch_size: maxBatchSize, instance_group: groups } = config;
  if (direct !== undefined) {
    const { minimum_slot_utilization: share } = direct;
    if (!(share >= 0 && share <= 1)) {
      const path = at('direct', 'minimum_slot_utilization');
      rules.refuse(path, `is ${share}; a number from 0 to 1 is expected.`);
    }
  }
  let slots = Math.max(1, maxBatchSize);
  if (oldest !== undefined) {
    const { max_candidate_sequences: candidates, preferred_batch_size: preferred } = oldest;
    rules.checkNumber(candidates, 0, MAX_CANDIDATES, at('oldest', 'max_candidate_sequences'));
    slots = candidates || slots;
    for (const [i, size] of preferred.entries())
      rules.checkNumber(size, 1, maxBatchSize, at('oldest', 'preferred_batch_size', i));
  }
  const sequences = slots * groups.reduce((sum, { count }) => sum + count, 0);
  if (sequences > MAX_SEQUENCES)
    rules.refuse(at(), `means ${sequences} sequences at once; at most ${MAX_SEQUENCES} are taken.`);
}

function checkControl(
  { control: controls }: ControlInput,
  i: number,
  kinds: Map<string, string>,
  { refuse }: SequenceRules,
): void {
  const path = at('control_input', i, 'control');
  if (controls.length !== 1) refuse(path, `has ${controls.length} elements; one is expected.`);
  const control = controls[0]!;
  const { kind, data_type: type } = control;
  const other = kinds.get(kind);
  if (other !== undefined) refuse([...path, 0, 'kind'], `is ${kind}, as that of ${other} is.`);
  kinds.set(kind, `control_input[${i}]`);
  const fields = ['int32_false_true', 'fp32_false_true', 'bool_false_true'] as const;
  const given = fields.filter((field) => control[field].length > 0);
  if (kind === 'CONTROL_SEQUENCE_CORRID') {
    if (given.length > 0)
      refuse([...path, 0, given[0]!], `is of no use to ${kind}: data_type says what its id is given as.`);
    if (!ID_TYPES.includes(type))
      refuse([...path, 0, 'data_type'], `is ${type}; one of ${ID_TYPES.join(', ')} is expected for ${kind}.`);
    return;
  }
  if (given.length !== 1)
    refuse(
      [...path, 0],
      `has ${given.join(' and ') || 'no values'}; one of ${fields.join(', ')} is expected.`,
    );
  const values = control[given[0]!];
  if (values.length !== 2)
    refuse([...path, 0, given[0]!], `has ${values.length} values; two are expected, for false and for true.`);
  if (type !== 'TYPE_INVALID' && type !== typeOfControl(control))
    refuse([...path, 0, 'data_type'], `is ${type}, but ${given[0]} says ${typeOfControl(control)}.`);
}

function checkState(config: ModelConfig, state: SequenceState, path: FieldPath, rules: SequenceRules): void {
  const { output_name: name, data_type: type, dims, initial_state: initial } = state;
  checkType(type, [...path, 'data_type'], rules);
  if (dims.length === 0) rules.refuse([...path, 'dims'], 'is missing; at least one dimension is expected.');
  rules.checkDims(dims, [...path, 'dims']);
  const listed = config.output.find((one) => one.name === name);
  if (listed !== undefined && listed.data_type !== type) {
    const output = `the output '${name}' has ${listed.data_type}`;
    rules.refuse([...path, 'data_type'], `is ${type}; ${output}.`);
  }
  if (state.use_growable_memory && !state.use_same_buffer_for_input_output) {
    rules.refuse([...path, 'use_growable_memory'], 'needs use_same_buffer_for_input_output.');
  }
  if (initial.length > 1)
    rules.refuse([...path, 'initial_state'], `has ${initial.length} elements; at most one is expected.`);
  if (initial[0] !== undefined) checkInitial(state, initial[0], [...path, 'initial_state', 0], rules);
}

function checkInitial(
  { data_type: type, dims }: SequenceState,
  initial: SequenceState['initial_state'][number],
  path: FieldPath,
  { refuse, checkDims }: SequenceRules,
): void {
  if (initial.name === '') refuse([...path, 'name'], 'is missing.');
  if (initial.data_type !== type)
    refuse([...path, 'data_type'], `is ${initial.data_type}; ${type}, the type of the state, is expected.`);
  checkDims(initial.dims, [...path, 'dims']);
  const fits =
    initial.dims.length === dims.length &&
    initial.dims.every((size, i) => size !== -1 && (dims[i] === -1 || dims[i] === size));
  if (!fits) {
    refuse(
      [...path, 'dims'],
      `is [${initial.dims}]; sizes as those of the state, [${dims}], are expected, and none of -1.`,
    );
  }
  const { zero_data: zero, data_file: file } = initial;
  if (zero === undefined && file === undefined)
    refuse(path, 'has no data: zero_data or data_file is expected.');
  if (file === undefined) return;
  const isInside = file.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
  if (!isInside || /[\\\0]/.test(file)) {
    refuse(
      [...path, 'data_file'],
      `is ${JSON.stringify(file)}; a file below initial_state/ in the model's folder is expected.`,
    );
  }
}

function checkType(type: DataType, path: FieldPath, { refuse }: SequenceRules): void {
  if (type === ('TYPE_INVALID' as string)) refuse(path, 'is missing.');
}
