/**
 * What codes stand for. u4, u8: whole numbers; i8: whole numbers with a sign; e4m3: FP8; e2m1: FP4. Codes of 4 bits lie two in a byte, the
 * lower bits first.
 */
export type CodeType = 'u4' | 'u8' | 'i8' | 'e4m3' | 'e2m1';

/**
 * Where the code of a row and a column lies:
 *
 *   rows   [rows, columns]: rows of whole bytes, which may be filled up
 *   gptq   [columns / n, rows] words of 32 bits, each with n columns of a row, the lowest bits first
 *   awq    [columns, rows / 8] words of 32 bits, each with 8 rows of a column in the order 0 2 4 6 1 3 5 7
 */
export type CodeOrder = 'rows' | 'gptq' | 'awq';

export type ScaleType = 'F32' | 'F16' | 'BF16' | 'F8_E4M3' | 'F8_E8M0';

/** Bytes of a file. */
export interface FilePart {
  file: string;
  offset: number;
  byteLength: number;
}

/** Scales, one for each block of rows and columns. */
export interface Scales extends FilePart {
  type: ScaleType;
  /** True: [blocks of columns, rows]; false: [blocks of rows, blocks of columns]. */
  byColumns: boolean;
}

/**
 * Zero points, as many as scales, with as many bits as the codes:
 *
 *   bytes        like the scales, a signed byte each
 *   packedRows   [rows / n, blocks of columns] words of 32 bits, each with n rows, the lowest bits first
 *   gptq         [blocks of columns, rows / n] words of 32 bits, the same
 *   awq          [blocks of columns, rows / 8] words of 32 bits in the order of CodeOrder
 */
export interface Zeros extends FilePart {
  order: 'bytes' | 'packedRows' | 'gptq' | 'awq';
  /** Number added to the zeros of a word, each with a carry into the next, as GPTQModel does it for the first format of GPTQ; 0 or 1. */
  add: number;
}

/**
 * A quantised matrix of safetensors, whose numbers lie in several tensors:
 *
 *   weight[row, column] = (code - zero) * scale / divisor
 *
 * The place of the codes is that of the tensor itself. Each number is found in float32 as the library that wrote it does: the scale by the
 * divisor first, then the product. Its own kernels for GPUs round that to the type of the scales, which is left out here.
 */
export interface QuantizedSource {
  /** The matrix's name, for errors. */
  name: string;
  codes: CodeType;
  order: CodeOrder;
  /** Number that all codes are less, where there are no zero points. */
  zero: number;
  /** Rows and columns that share a scale. */
  rowsEach: number;
  columnsEach: number;
  scales: Scales;
  zeros?: Zeros;
  /** The block of columns that each column is in, I32, where they are not in order (act-order). */
  groups?: FilePart;
  /** One F32. */
  divisor?: FilePart;
}

/** Bits of a code. */
export const codeBits = (codes: CodeType): 4 | 8 => (codes === 'u4' || codes === 'e2m1' ? 4 : 8);

/** One of the equal matrices that lie in a tensor one after another. */
export function sliceOf(source: QuantizedSource, index: number, count: number): QuantizedSource {
  const sliced = <T extends FilePart>(part: T): T => {
    const byteLength = part.byteLength / count;
    return { ...part, offset: part.offset + index * byteLength, byteLength };
  };
  return { ...source, scales: sliced(source.scales), ...(source.zeros && { zeros: sliced(source.zeros) }) };
}
