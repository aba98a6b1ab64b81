import { CheckpointError } from '../checkpoint.js';
import { refuseShape } from '../raw-tensor.js';
import { ofType, partOf } from './module-tensors.js';
import type { QuantizationMethod } from './quantization-method.js';
import type { QuantizedSource } from './quantized-source.js';

/** Columns that share a scale, and bytes of their codes. */
const GROUP = 32;
const GROUP_BYTES = 16;

/**
 * MXFP4 as gpt-oss stores the experts of a layer: `NAME_blocks` [..., rows, groups, 16] with two codes in a byte, the first one in the lower
 * bits, and `NAME_scales` [..., rows, groups], exponents of 2. transformers' convert_moe_packed_tensors is the reference.
 */
export const mxfp4Method: QuantizationMethod = {
  label: 'MXFP4',
  codes: ['blocks'],
  needed: ['scales'],
  unread: [],
  separator: '_',
  matrix: (module) => {
    const blocks = ofType(module.get('blocks')!, ['U8']);
    const scales = module.need('scales', ['U8', 'F8_E8M0']);
    const outer = blocks.shape.slice(0, -2);
    const [groups = 0] = blocks.shape.slice(-2);
    if (outer.length < 1 || outer.length > 2 || blocks.shape.some((size) => size < 1)) {
      throw new CheckpointError(
        `${blocks.file}: tensor ${blocks.name} should have the shape [experts, rows, groups, ${GROUP_BYTES}], found [${blocks.shape.join(', ')}].`,
      );
    }
    refuseShape(blocks, [...outer, groups, GROUP_BYTES]);
    const quantized: QuantizedSource = {
      name: blocks.name,
      codes: 'e2m1',
      order: 'rows',
      zero: 0,
      rowsEach: 1,
      columnsEach: GROUP,
      scales: { ...partOf(scales, [...outer, groups]), type: 'F8_E8M0', byColumns: false },
    };
    return { ...blocks, name: module.name, shape: [...outer, groups * GROUP], type: 'MXFP4', quantized };
  },
};
