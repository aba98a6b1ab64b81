import { closestName } from '../../base/did-you-mean.js';
import { input, type NamedText, says } from '../../base/named-text.js';
import type { ShapeRule, TensorRule, TensorType } from '../../callbacks/request/tensor-rule.js';
import { INPUT_TENSORS } from '../../callbacks/request/tensors.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import type { Tensor, TensorData } from '../../callbacks/types.js';

const TYPES = {
  i32: Int32Array,
  f32: Float32Array,
  u64: BigUint64Array,
  bool: Uint8Array,
  /** Bytes of UTF-8. */
  text: Uint8Array,
} as const satisfies Record<TensorType, unknown>;

/** Something that not every engine has. */
interface Need {
  of: 'adapters';
  /** True for values that change nothing, so that clients which always send the tensor are served. */
  isNeutral: (tensor: Tensor) => boolean;
}

const isEmpty = ({ data }: Tensor) => data.length === 0;

/** What an engine needs to serve a tensor, where some engines lack it. */
const NEEDS: Readonly<Record<string, Need>> = {
  lora_task_id: { of: 'adapters', isNeutral: () => false },
  lora_weights: { of: 'adapters', isNeutral: isEmpty },
  lora_config: { of: 'adapters', isNeutral: isEmpty },
};

/** Sizes of the model, and what its engine lacks. */
export interface TensorSizes {
  vocabSize: number;
  /** Width of a prompt's own rows. */
  promptRowWidth: number;
  /** Reason why this engine takes no adapters; null or absent: it takes them. */
  whyNoAdapters?: NamedText | null | undefined;
}

const REQUIRED = ['input_ids', 'request_output_len'];

/**
 * Checks names, types and shapes, and refuses tensors that this engine cannot serve. Throws a ParameterError that names the
 * tensor, what was found and what is expected. Ranges of values are checked where they are read.
 */
export function checkInputTensors(inputs: unknown, sizes: TensorSizes): Record<string, Tensor> {
  if (typeof inputs !== 'object' || inputs === null) {
    throw new ParameterError('inputs', 'inputs is missing; it must map names of tensors to tensors.');
  }
  for (const [name, tensor] of Object.entries(inputs)) {
    const rule = Object.hasOwn(INPUT_TENSORS, name) ? INPUT_TENSORS[name] : undefined;
    if (rule === undefined) throw new ParameterError(name, unknownName(name));
    checkTensor(name, tensor, rule, sizes);
    const { whyNoAdapters } = sizes;
    const needs = NEEDS[name];
    if (needs?.of === 'adapters' && whyNoAdapters != null && !needs.isNeutral(tensor as Tensor)) {
      throw new ParameterError(name, says`${input(name)} is refused: ${whyNoAdapters}.`, 'unsupported');
    }
  }
  for (const name of REQUIRED) {
    if (!Object.hasOwn(inputs, name))
      throw new ParameterError(name, says`${input(name)} is missing; it is required.`);
  }
  return inputs as Record<string, Tensor>;
}

function unknownName(name: string): string {
  const known = Object.keys(INPUT_TENSORS);
  const meant = closestName(name, known);
  const hint = meant === null ? `known are ${known.join(', ')}.` : `did you mean ${meant}?`;
  return `${name.slice(0, 64)} is not the name of an input tensor; ${hint}`;
}

function checkTensor(name: string, tensor: unknown, rule: TensorRule, sizes: TensorSizes): void {
  const { shape, data } = (tensor ?? {}) as { shape?: unknown; data?: unknown };
  if (!Array.isArray(shape) || !shape.every((size) => Number.isInteger(size) && size >= 0)) {
    throw new ParameterError(name, says`${input(name)} has no shape; it must be an array of whole numbers.`);
  }
  const Type = TYPES[rule.type];
  if (!(data instanceof Type)) {
    const found = typeof data === 'object' && data !== null ? data.constructor.name : typeof data;
    throw new ParameterError(
      name,
      says`${input(name)} holds ${found}; ${Type.name} (${rule.type}) is expected for its data.`,
    );
  }
  const given = says`${input(name)} has the shape ${shapeText(shape)}`;
  const bare = rule.mayHaveBatch && shape.length === 3 && shape[0] === 1 ? shape.slice(1) : shape;
  if (!fitsRule(bare, rule.shape, sizes)) {
    throw new ParameterError(name, says`${given}; ${shownRule(rule.shape, sizes)} is expected.`);
  }
  const size = shape.reduce((product: number, dimension: number) => product * dimension, 1);
  const { length } = data as TensorData;
  if (size !== length) {
    throw new ParameterError(name, says`${given}, which is ${size} values; its data has ${length}.`);
  }
}

function shownRule(rule: ShapeRule, { vocabSize, promptRowWidth }: TensorSizes): string {
  if (rule === 'one') return '[1]';
  return rule.replace('V', String(vocabSize)).replace('P', String(promptRowWidth));
}

/** True if the shape fits the rule; a dimension that is a small letter takes any size. */
function fitsRule(
  shape: readonly number[],
  rule: ShapeRule,
  { vocabSize, promptRowWidth }: TensorSizes,
): boolean {
  if (rule === 'one') return shape.length >= 1 && shape.length <= 2 && shape.every((size) => size === 1);
  const expected = rule.slice(1, -1).split(', ');
  if (expected.length !== shape.length) return false;
  return expected.every((dimension, i) => {
    if (dimension === 'V') return shape[i] === vocabSize;
    if (dimension === 'P') return shape[i] === promptRowWidth;
    return /^[a-z]$/.test(dimension) || shape[i] === Number(dimension);
  });
}

/** Most sizes of a shape that an error message shows. */
const SHOWN_SIZES = 8;

function shapeText(shape: readonly number[]): string {
  const more = shape.length > SHOWN_SIZES ? `, ... ${shape.length} sizes in all` : '';
  return `[${shape.slice(0, SHOWN_SIZES).join(', ')}${more}]`;
}
