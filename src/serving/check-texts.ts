import { elementsIn } from '../../callbacks/infer/datatypes.js';
import { InferError } from '../../callbacks/infer/infer-error.js';
import type { InferTensor } from '../../callbacks/infer/infer-types.js';

const LENGTH_BYTES = 4;

/**
 * Holds the data of a tensor of BYTES against its shape: a length and as many bytes for each element, and nothing behind them. Words are
 * Triton's. @param refused makes a refusal that names the request @throws InferError
 */
export function checkTexts(
  { name, shape, data }: InferTensor,
  model: string,
  refused: (message: string) => InferError,
): void {
  const elements = elementsIn(shape);
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  let found = 0;
  for (let offset = 0; offset < data.length; found++) {
    const left = data.length - offset - LENGTH_BYTES;
    if (found === elements) {
      throw refused(
        `unexpected number of string elements ${found + 1} for inference input '${name}' for model '${model}', expecting ${elements}`,
      );
    }
    if (left < 0) {
      throw refused(
        `incomplete string length indicator for inference input '${name}' for model '${model}', expecting ${LENGTH_BYTES} bytes but only ${data.length - offset} bytes available. Please make sure the string length indicator is in one buffer.`,
      );
    }
    const length = view.getUint32(offset, true);
    if (length > left) {
      throw new InferError(
        `incomplete string data for inference input '${name}', expecting string of length ${length} but only ${left} bytes available`,
        'invalid',
      );
    }
    offset += LENGTH_BYTES + length;
  }
  if (found === elements) return;
  throw refused(
    `expected ${elements} string elements for inference input '${name}' for model '${model}', got ${found}`,
  );
}
