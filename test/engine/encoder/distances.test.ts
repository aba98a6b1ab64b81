import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { EncoderSequence } from '../../../callbacks/encoder-messages.js';
import { encodeBatch } from '../../../engine/encoder/encode-batch.js';
import { loadEncoder } from '../../../engine/encoder/load-encoder.js';
import { TestEngines } from '../../../tools/support/test-engine.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { madeEmbedder, writeMadeEmbedder } from '../../support/made-embedders.js';

const folder = temporaryFolder('skein-distances');
const engines = new TestEngines();
afterAll(() => engines.remove());

/** Writes NaN over one number of a tensor. */
function spoil(file: string, tensor: string, index: number): void {
  const bytes = readFileSync(file);
  const headerBytes = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, 8 + headerBytes).toString());
  const at = 8 + headerBytes + header[tensor].data_offsets[0] + 4 * index;
  bytes.writeFloatLE(Number.NaN, at);
  writeFileSync(file, bytes);
}

const sequenceOf = (length: number): EncoderSequence => ({
  tokenIds: Int32Array.from({ length }, (_, i) => 4 + ((i * 31) % 100)),
  tokenTypes: null,
});

/** Distances of at least 30, or 64, share the bucket, so that shorter texts never meet the number that is none. */
it.each([
  ['deberta-v3', 'encoder.rel_embeddings.weight', 32, 30],
  ['mpnet', 'encoder.relative_attention_bias.weight', 4 * 14, 64],
])(
  'a distance whose numbers of %s are none is the error of texts that have it',
  async (name, tensor, index, shortest) => {
    const made = madeEmbedder(name);
    const whole = await engines.get(writeMadeEmbedder(join(folder, name), made), 'f32');
    const path = writeMadeEmbedder(join(folder, `${name}-spoilt`), made);
    spoil(join(path, 'model.safetensors'), tensor, index);
    const spoilt = await engines.get(path, 'f32');
    const lengths = [shortest, 79, 3];
    for (const executor of ['native', 'wasm'] as const) {
      const right = await loadEncoder(whole.directory, { executor, threads: 1 });
      const wrong = await loadEncoder(spoilt.directory, { executor, threads: 1 });
      const expected = encodeBatch(right, lengths.map(sequenceOf));
      const { errors, rows } = encodeBatch(wrong, lengths.map(sequenceOf));
      expect(expected.errors, executor).toEqual([null, null, null]);
      const message = 'The network gave values that are not finite for this input.';
      expect(errors, executor).toEqual([null, message, null]);
      for (const row of [0, 2]) expect(rows[row], executor).toEqual(expected.rows[row]);
      right.close();
      wrong.close();
    }
  },
);
