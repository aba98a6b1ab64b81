import type { TestTensor } from './gguf-writer.js';

/** A file of safetensors. @param change of its header, for files that are wrong */
export function safetensorsBytes(
  tensors: readonly TestTensor[],
  change: (header: Record<string, unknown>) => void = () => {},
): Buffer {
  let offset = 0;
  const header: Record<string, unknown> = { __metadata__: { format: 'pt' } };
  for (const { name, shape, type = 'F32', data } of tensors) {
    header[name] = { dtype: type, shape, data_offsets: [offset, offset + data.length] };
    offset += data.length;
  }
  change(header);
  return safetensorsOf(JSON.stringify(header), Buffer.concat(tensors.map(({ data }) => data)));
}

/** A file of this header text, whatever it says. */
export function safetensorsOf(header: string, data: Uint8Array): Buffer {
  const text = Buffer.from(header);
  const prefix = Buffer.alloc(8);
  prefix.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([prefix, text, data]);
}
