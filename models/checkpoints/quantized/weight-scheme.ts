import { ConfigFields, LIMITS } from '../config-fields.js';
import { isObject } from '../file-reading.js';

const STRATEGIES = ['tensor', 'channel', 'group', 'tensor_group', 'block'] as const;

/** How a group of compressed-tensors quantises weights. */
export interface WeightScheme {
  type: 'int' | 'float';
  bits: 4 | 8;
  strategy: (typeof STRATEGIES)[number];
  /** Columns that share a scale, for strategies of groups. */
  groupSize: number | null;
  /** Rows and columns that share a scale, for blocks. */
  block: readonly [number, number] | null;
  isSymmetric: boolean;
}

/** Reads the weights of a group. @throws CheckpointError */
export function readWeightScheme(group: ConfigFields): WeightScheme {
  const given = group.raw('weights');
  if (!isObject(given)) throw group.error('weights', 'an object');
  const fields = new ConfigFields(`${group.where}: weights`, given);
  const type = fields.string('type') ?? 'int';
  if (type !== 'int' && type !== 'float') throw fields.error('type', '"int" or "float"');
  const bits = fields.raw('num_bits') ?? 8;
  if (bits !== 4 && bits !== 8) throw fields.error('num_bits', '4 or 8');
  const groupSize = fields.raw('group_size') === -1 ? null : groupSizeOf(fields);
  const name = fields.string('strategy') ?? (groupSize === null ? 'tensor' : 'group');
  const strategy = STRATEGIES.find((one) => one === name);
  if (strategy === undefined) throw fields.error('strategy', `one of ${STRATEGIES.join(', ')}`);
  if (groupSize === null && (strategy === 'group' || strategy === 'tensor_group'))
    throw fields.error('group_size', 'a whole number greater than 0');
  const block = strategy === 'block' ? fields.positives('block_structure', 2) : null;
  if (block?.some((size) => !Number.isInteger(size)))
    throw fields.error('block_structure', 'two whole numbers');
  return {
    type,
    bits,
    strategy,
    groupSize,
    block: block as [number, number] | null,
    isSymmetric: fields.boolean('symmetric', true),
  };
}

const groupSizeOf = (fields: ConfigFields): number | null =>
  fields.raw('group_size') === undefined ? null : fields.integer('group_size', 1, LIMITS.width);

/** For people: "4 bits, groups of 128, with zero points". */
export function schemeText({ type, bits, strategy, groupSize, block, isSymmetric }: WeightScheme): string {
  const numbers =
    type === 'int' ? `int${bits}` : bits === 8 ? 'FP8' : strategy === 'tensor_group' ? 'NVFP4' : 'MXFP4';
  const shared = {
    tensor: 'a scale for each matrix',
    channel: 'a scale for each row',
    group: `groups of ${groupSize}`,
    tensor_group: `groups of ${groupSize}`,
    block: `blocks of ${block?.join(' x ')}`,
  }[strategy];
  return `${numbers}, ${shared}${isSymmetric ? '' : ', zero points'}`;
}
