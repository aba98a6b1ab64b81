import type { ModelConfig } from '../model-config.js';
import { CheckpointError } from './checkpoint.js';
import { TOKEN_SCORES } from './decoder-encoder.js';
import { refuseUnsupportedType } from './raw-tensor.js';
import { denseTensors } from './sentence-modules.js';
import type { NamedTensor } from './tensor-layout.js';
import { tokenLayerTensors } from './token-layers.js';

const OUTPUT = 'lm_head.weight';
const EMBEDDING = 'model.embed_tokens.weight';

/**
 * Adds the tensors of an encoder's head that are not among the model's own: those of Dense modules and of layers over tokens, which lie in files of their own, and
 * rows of the output layer by which tokens make a score.
 *
 * @param hasOwnOutput whether the output layer is another one than the embedding, whatever the config says
 */
export function addHeadTensors(
  tensors: Map<string, NamedTensor>,
  { encoder, tieWordEmbeddings }: ModelConfig,
  hasOwnOutput: boolean,
  directory: string,
): void {
  if (encoder === undefined) return;
  const { head } = encoder;
  if (head.kind === 'embedding') {
    const tokens = head.tokens === undefined ? [] : tokenLayerTensors(directory);
    for (const tensor of [...denseTensors(directory, head.layers), ...tokens])
      tensors.set(tensor.name, tensor);
  }
  if (head.kind !== 'score' || head.tokens === undefined) return;
  const output = tensors.get(tieWordEmbeddings && !hasOwnOutput ? EMBEDDING : OUTPUT);
  for (const [i, token] of head.tokens.entries()) {
    if (token !== null && output !== undefined)
      tensors.set(`${TOKEN_SCORES[i]}.weight`, rowOf(output, token));
  }
}

/** One row of a matrix, for a token whose logit makes a score. */
export function rowOf(matrix: NamedTensor, row: number): NamedTensor {
  return rowsOf(matrix, row, 1);
}

/** Some rows of a matrix. @throws CheckpointError for one that has no such rows, or whose rows lie apart */
export function rowsOf<T extends NamedTensor>(matrix: T, first: number, count: number): T {
  const { file, name, shape, quantized, byteLength, offset } = matrix;
  refuseUnsupportedType(matrix);
  const [rows = 0, columns = 0] = shape;
  if (quantized !== undefined || shape.length !== 2 || count < 1 || first + count > rows) {
    const asked = count === 1 ? `row ${first}` : `rows ${first} to ${first + count - 1}`;
    throw new CheckpointError(`${file}: tensor ${name} should be a matrix of numbers with ${asked}.`);
  }
  const bytes = byteLength! / rows;
  return { ...matrix, shape: [count, columns], offset: offset + first * bytes, byteLength: count * bytes };
}
