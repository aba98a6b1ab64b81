import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

interface TensorHeader {
  dtype: string;
  shape: number[];
  data_offsets: [number, number];
}

/** Copies a model's folder, with one value in the middle of one row of one of its tensors replaced. */
export function spoilModel(
  source: string,
  target: string,
  { tensor, row, value }: { tensor: string; row: number; value: number },
): string {
  cpSync(source, target, { recursive: true });
  const file = join(target, 'model.safetensors');
  const bytes = readFileSync(file);
  const headerEnd = 8 + Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.toString('utf8', 8, headerEnd)) as Record<string, TensorHeader>;
  const { dtype, shape, data_offsets } = header[tensor]!;
  const columns = shape[1] ?? 1;
  const element = row * columns + (columns >> 1);
  const view = new DataView(bytes.buffer, bytes.byteOffset + headerEnd + data_offsets[0]);
  if (dtype === 'F32') view.setFloat32(4 * element, value, true);
  else if (dtype === 'BF16') view.setUint16(2 * element, bf16(value), true);
  else throw new Error(`${tensor} is ${dtype}.`);
  writeFileSync(file, bytes);
  return target;
}

/** The bits in bf16 of a value that bf16 holds exactly. */
function bf16(value: number): number {
  return new Uint32Array(Float32Array.of(value).buffer)[0]! >>> 16;
}
