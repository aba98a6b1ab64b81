import { closestName } from '../../base/did-you-mean.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import type { InferenceRequest, Tensor } from '../../callbacks/types.js';
import { readBool } from './tensor-values.js';

const FIELDS = Object.keys({
  requestId: true,
  inputs: true,
  priority: true,
  arrivalTimeMs: true,
  isStreaming: true,
} satisfies Record<keyof InferenceRequest, true>);

/** Refuses a field that a request does not have: it would be left out without a word. @throws ParameterError */
export function checkFields(request: InferenceRequest): void {
  for (const name of Object.keys(request)) {
    if (FIELDS.includes(name)) continue;
    const meant = closestName(name, FIELDS);
    const hint = meant === null ? `known are ${FIELDS.join(', ')}` : `did you mean ${meant}?`;
    const shown = name.slice(0, 64);
    throw new ParameterError(
      shown,
      `${shown} is not a field of a request; ${hint}${meant === null ? '; tensors belong into inputs.' : ''}`,
    );
  }
}

/** Whether responses are streamed, as the request or its tensor says. @throws ParameterError where they say different things */
export function readStreaming(
  { isStreaming }: Pick<InferenceRequest, 'isStreaming'>,
  inputs: Record<string, Tensor>,
): boolean {
  const ofTensor = readBool(inputs, 'streaming');
  if (isStreaming === undefined) return ofTensor;
  if (typeof isStreaming !== 'boolean') {
    throw new ParameterError(
      'isStreaming',
      `isStreaming is ${String(isStreaming)}; true or false is expected.`,
    );
  }
  if (inputs.streaming === undefined || ofTensor === isStreaming) return isStreaming;
  throw new ParameterError(
    'isStreaming',
    `isStreaming is ${isStreaming} and the tensor streaming says ${ofTensor}; one of them is enough.`,
  );
}
