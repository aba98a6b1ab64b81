import { CheckpointError } from '../checkpoint.js';
import type { RawTensor } from '../raw-tensor.js';
import type { Scales, ScaleType } from './quantized-source.js';

/** Rows and columns that share a scale. */
export interface ScaleBlocks {
  rowsEach: number;
  columnsEach: number;
}

/** Types of scales as safetensors name them. A byte is the exponent of a power of 2, whichever name it has. */
const SCALE_TYPES = new Map<string, ScaleType>([
  ['F32', 'F32'],
  ['F16', 'F16'],
  ['BF16', 'BF16'],
  ['F8_E8M0', 'F8_E8M0'],
  ['U8', 'F8_E8M0'],
]);

/**
 * The scales of a matrix [rows, columns] in the order of rows, and what they are for: the first of `choices` whose shape the tensor has.
 * A scale for all is a tensor of one number; those of rows may leave out the second dimension.
 *
 * @throws CheckpointError for a tensor of another type or shape
 */
export function scalesOf(
  tensor: RawTensor,
  [rows, columns]: readonly [number, number],
  choices: readonly ScaleBlocks[],
): ScaleBlocks & { scales: Scales } {
  const { file, name, shape } = tensor;
  const scales = allScales(tensor);
  const shapes = choices.map(({ rowsEach, columnsEach }): [number, number] => [
    Math.ceil(rows / rowsEach),
    Math.ceil(columns / columnsEach),
  ]);
  const found = shapes.findIndex((expected) => hasShape(shape, expected));
  if (found === -1) {
    const expected = [...new Set(shapes.map((one) => `[${one.join(', ')}]`))].join(' or ');
    throw new CheckpointError(
      `${file}: tensor ${name} should have the shape ${expected}, for weights of shape [${rows}, ${columns}], found [${shape.join(', ')}].`,
    );
  }
  return { ...choices[found]!, scales };
}

/**
 * As scalesOf, of the matrices of experts: [experts, rows of scales, columns of scales], where each expert has the rows of its `halves`
 * matrices one after another, and no scale is for rows of two.
 */
export function stackedScales(
  tensor: RawTensor,
  [experts, halves, rows, columns]: readonly [number, number, number, number],
  choices: readonly ScaleBlocks[],
): ScaleBlocks & { scales: Scales } {
  const { file, name, shape } = tensor;
  const scales = allScales(tensor);
  const grid = ({ rowsEach, columnsEach }: ScaleBlocks) => [
    experts,
    halves * Math.ceil(rows / rowsEach),
    Math.ceil(columns / columnsEach),
  ];
  const found = choices.find((choice) => grid(choice).join() === shape.join());
  if (found === undefined) {
    const expected = [...new Set(choices.map((choice) => `[${grid(choice).join(', ')}]`))].join(' or ');
    throw new CheckpointError(
      `${file}: tensor ${name} should have the shape ${expected}, for ${experts} times weights of shape [${halves * rows}, ${columns}], found [${shape.join(', ')}].`,
    );
  }
  return { ...found, scales };
}

/** A tensor of scales in the order of rows. @throws CheckpointError for one of another type */
function allScales({ file, name, type, offset, byteLength }: RawTensor): Scales {
  const own = SCALE_TYPES.get(type);
  if (own === undefined) {
    throw new CheckpointError(
      `${file}: tensor ${name} should have a type of scales (${[...SCALE_TYPES.keys()].join(', ')}), found ${type}.`,
    );
  }
  return { file, offset, byteLength: byteLength!, type: own, byColumns: false };
}

/** True for a grid of these sizes, whether or not its last dimensions of 1 are there. */
function hasShape(shape: readonly number[], [rows, columns]: readonly [number, number]): boolean {
  if (shape.length > 2) return false;
  const [ownRows = 1, ownColumns = 1] = shape;
  return ownRows === rows && ownColumns === columns;
}
