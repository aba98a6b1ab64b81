import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferRequest, InferResponse } from '../../../callbacks/infer/infer-types.js';
import type { InferModel } from '../infer-model.js';

/**
 * The one response of a model to a request. A decoupled model, which may give any number, is to be refused before.
 * @throws InferError; rejects with one where the model ends without a response
 */
export function askOnce(model: InferModel, request: InferRequest): Promise<InferResponse> {
  return new Promise((resolve, reject) => {
    let first: InferResponse | null = null;
    model.infer(
      { ...request, takesOne: true },
      {
        response: (response) => {
          first ??= response;
        },
        end: () => {
          if (first !== null) resolve(first);
          else {
            const message = `the model '${model.config.name}' ended the request without an answer`;
            reject(new InferError(message, 'internal'));
          }
        },
        fail: reject,
      },
    );
  });
}
