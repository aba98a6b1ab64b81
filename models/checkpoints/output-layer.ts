import type { ModelConfig } from '../model-config.js';
import { readExactly, withFile } from './file-reading.js';
import type { NamedTensor } from './tensor-layout.js';

/** Bytes that are compared at a time. */
const PIECE_BYTES = 1024 * 1024;
const OUTPUT = 'lm_head.weight';

/**
 * True where a config ties the output layer to the embedding, but the file has another matrix for it. transformers then
 * believes the file, and so do we. Two matrices that are the same are one: some programs write tied weights twice.
 */
export function hasOwnOutput(tensors: ReadonlyMap<string, NamedTensor>, config: ModelConfig): boolean {
  const output = tensors.get(OUTPUT);
  const embedding = tensors.get(config.architecture === 'gpt2' ? 'wte.weight' : 'model.embed_tokens.weight');
  if (!config.tieWordEmbeddings || output === undefined || embedding === undefined) return false;
  return !sameBytes(output, embedding);
}

function sameBytes(one: NamedTensor, other: NamedTensor): boolean {
  const { byteLength } = one;
  if (byteLength === null || one.type !== other.type || other.byteLength !== byteLength) return false;
  return withFile(one.file, (oneFd) =>
    withFile(other.file, (otherFd) => {
      const [left, right] = [Buffer.alloc(PIECE_BYTES), Buffer.alloc(PIECE_BYTES)];
      for (let done = 0; done < byteLength; done += PIECE_BYTES) {
        const count = Math.min(PIECE_BYTES, byteLength - done);
        readExactly(one.file, oneFd, left.subarray(0, count), one.offset + done);
        readExactly(other.file, otherFd, right.subarray(0, count), other.offset + done);
        if (!left.subarray(0, count).equals(right.subarray(0, count))) return false;
      }
      return true;
    }),
  );
}
