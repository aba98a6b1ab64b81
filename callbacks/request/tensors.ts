import { NAMED_FIELDS, tensorsOfField } from './fields.js';
import { TENSOR_TYPES } from './parameter.js';
import { NAMED_PARAMETERS } from './parameters.js';
import type { TensorRule } from './tensor-rule.js';

const ONE: TensorRule = { type: 'i32', shape: 'one' };

/** Tensors of TensorRT-LLM's contract that no field of TokenRequest stands for. */
const OF_THE_CONTRACT: Readonly<Record<string, TensorRule>> = {
  input_lengths: ONE,
  best_of: ONE,
  noRepeatNgramSize: ONE,
  pad_id: ONE,
  prompt_vocab_size: ONE,
};

/** All input tensors of a request: those of TensorRT-LLM's contract, and our own. */
export const INPUT_TENSORS: Readonly<Record<string, TensorRule>> = {
  ...Object.fromEntries(NAMED_FIELDS.flatMap(([, field]) => tensorsOfField(field))),
  ...Object.fromEntries(
    NAMED_PARAMETERS.map(({ tensor, parameter }) => [
      tensor,
      { type: TENSOR_TYPES[parameter.kind], shape: 'one' } satisfies TensorRule,
    ]),
  ),
  ...OF_THE_CONTRACT,
};

/** Name in TokenRequest of what the first tensor of a field, or the tensor of a parameter, carries. */
export const FIELD_OF_TENSOR: ReadonlyMap<string, string> = new Map([
  ...NAMED_FIELDS.flatMap(([name, field]) => {
    const [first] = tensorsOfField(field);
    return first === undefined ? [] : [[first[0], name] as const];
  }),
  ...NAMED_PARAMETERS.map(({ name, tensor }) => [tensor, name] as const),
]);
