import type { ModelConfig } from '../model-config.js';
import { CheckpointError } from './checkpoint.js';
import { TOKEN_SCORES } from './decoder-encoder.js';
import { refuseUnsupportedType } from './raw-tensor.js';
import { denseTensors } from './sentence-modules.js';
import type { NamedTensor } from './tensor-layout.js';

const OUTPUT = 'lm_head.weight';
const EMBEDDING = 'model.embed_tokens.weight';

/**
 * Adds the tensors of an encoder's head that are not among the model's own: those of Dense modules, which lie in files of their own, and
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
  for (const tensor of head.kind === 'embedding' ? denseTensors(directory, head.layers) : [])
    tensors.set(tensor.name, tensor);
  if (head.kind !== 'score' || head.tokens === undefined) return;
  const output = tensors.get(tieWordEmbeddings && !hasOwnOutput ? EMBEDDING : OUTPUT);
  for (const [i, token] of head.tokens.entries()) {
    if (token !== null && output !== undefined)
      tensors.set(`${TOKEN_SCORES[i]}.weight`, rowOf(output, token));
  }
}

/** One row of a matrix. */
export function rowOf(matrix: NamedTensor, row: number): NamedTensor {
  const { file, name, shape, quantized, byteLength, offset } = matrix;
  refuseUnsupportedType(matrix);
  const [rows = 0, columns = 0] = shape;
  if (quantized !== undefined || shape.length !== 2 || row >= rows) {
    throw new CheckpointError(
      `${file}: tensor ${name} should be a matrix of numbers with a row for token ${row}, which makes the score.`,
    );
  }
  const bytes = byteLength! / rows;
  return { ...matrix, shape: [1, columns], offset: offset + row * bytes, byteLength: bytes };
}
