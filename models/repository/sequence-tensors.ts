import type { Told } from './complete-config.js';
import type { ControlInput, DataType, SequenceBatching, SequenceControl } from './model-config.js';
import { type FieldPath, fieldError, type WrittenConfig } from './written-config.js';

/** An input that the server fills in for each row of a batch. */
export interface ControlTensor {
  readonly name: string;
  readonly kind: SequenceControl;
  readonly dataType: DataType;
  /** What stands for false and for true; null: it is the sequence's id. */
  readonly values: readonly [no: number, yes: number] | null;
}

/** Types of a flag by the field that lists its two values. */
const FLAGS = [
  ['int32_false_true', 'TYPE_INT32'],
  ['fp32_false_true', 'TYPE_FP32'],
  ['bool_false_true', 'TYPE_BOOL'],
] as const;

/** The control inputs of a checked configuration. */
export function controlTensors({ control_input: inputs }: SequenceBatching): ControlTensor[] {
  return inputs.map(({ name, control }) => {
    const { kind, data_type: dataType, ...flags } = control[0]!;
    if (kind === 'CONTROL_SEQUENCE_CORRID')
      return { name, kind, dataType: dataType as DataType, values: null };
    const [field, type] = FLAGS.find(([one]) => flags[one].length > 0)!;
    return { name, kind, dataType: type, values: [Number(flags[field][0]), Number(flags[field][1])] };
  });
}

/** The type that a control says it has; null: it says none, or several. */
export function typeOfControl(control: ControlInput['control'][number]): DataType | null {
  const types = FLAGS.filter(([field]) => control[field].length > 0).map(([, type]) => type);
  if (types.length > 0) return types.length === 1 ? types[0]! : null;
  return control.data_type === 'TYPE_INVALID' ? null : control.data_type;
}

/**
 * What a model's file says of its inputs and outputs without those that belong to sequences, which clients
 * neither send nor are given: control inputs and states. Their types have to be what the file says.
 * @throws ModelConfigError where the author and the file contradict each other
 */
export function withoutSequenceTensors(told: Told, batching: SequenceBatching, config: WrittenConfig): Told {
  const { input, output } = told;
  const { control_input: controls, state: states } = batching;
  const check = (kind: 'input' | 'output', name: string, type: DataType | null, path: FieldPath): void => {
    const list = told[kind];
    if (list === undefined || name === '') return;
    const known = list.find((one) => one.name === name);
    const at: FieldPath = ['sequence_batching', ...path];
    if (known === undefined) {
      const names = list.map((one) => `'${one.name}'`).join(', ');
      throw fieldError(config, at, `is '${name}', which the model's file does not have; it has ${names}.`);
    }
    if (type === null || type === known.data_type) return;
    throw fieldError(config, at, `is '${name}' of ${type}; the model's file has ${known.data_type}.`);
  };
  for (const [i, { name, control }] of controls.entries()) {
    const type = control.length === 1 ? typeOfControl(control[0]!) : null;
    check('input', name, type, ['control_input', i, 'name']);
  }
  for (const [i, { input_name, output_name, data_type }] of states.entries()) {
    const type = data_type === ('TYPE_INVALID' as string) ? null : data_type;
    check('input', input_name, type, ['state', i, 'input_name']);
    check('output', output_name, type, ['state', i, 'output_name']);
  }
  const inputs = new Set([...controls.map(({ name }) => name), ...states.map((one) => one.input_name)]);
  const outputs = new Set(states.map((one) => one.output_name));
  return {
    ...told,
    ...(input && { input: input.filter(({ name }) => !inputs.has(name)) }),
    ...(output && { output: output.filter(({ name }) => !outputs.has(name)) }),
  };
}
