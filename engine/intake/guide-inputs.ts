import { input, type NamedText, says } from '../../base/named-text.js';
import { GUIDE_TYPES, type Guide, type GuideType, MAX_GUIDE_LENGTH } from '../../callbacks/guide.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import type { Tensor } from '../../callbacks/types.js';
import { readText } from './tensor-values.js';

const TYPE = 'guided_decoding_guide_type';
const GUIDE = 'guided_decoding_guide';

/**
 * The form that the answer must have, by TensorRT-LLM's names of the tensors; null if none is given. Whether the guide
 * itself can be followed is checked when it is compiled.
 */
export function readGuide(
  inputs: Record<string, Tensor>,
  { isAvailable, endingTokens }: { isAvailable: boolean; endingTokens: Int32Array },
): Guide | null {
  const type = readText(inputs, TYPE);
  const guide = readText(inputs, GUIDE);
  if (type === null && guide === null) return null;
  if (!isAvailable) throw refused(TYPE, 'this engine has no tokenizer for guides to be followed with');
  if (type === null)
    throw new ParameterError(TYPE, says`${input(TYPE)} is missing; ${input(GUIDE)} is of no use without it.`);
  if (!GUIDE_TYPES.includes(type as GuideType)) {
    throw new ParameterError(
      TYPE,
      says`${input(TYPE)} is ${JSON.stringify(type.slice(0, 64))}; one of ${GUIDE_TYPES.join(', ')} is expected.`,
    );
  }
  if (guide === null && type !== 'json') {
    throw new ParameterError(GUIDE, says`${input(GUIDE)} is missing; the type ${type} needs one.`);
  }
  if (guide !== null && guide.length > MAX_GUIDE_LENGTH) {
    throw new ParameterError(
      GUIDE,
      says`${input(GUIDE)} is ${guide.length} characters long; at most ${MAX_GUIDE_LENGTH} are supported.`,
    );
  }
  if (endingTokens.length === 0)
    throw refused(
      TYPE,
      says`without ${input('end_id')} the end of an answer that is complete could not be told`,
    );
  return { type: type as GuideType, guide: guide ?? '' };
}

function refused(field: string, reason: NamedText): ParameterError {
  return new ParameterError(field, says`${input(field)} is refused: ${reason}.`, 'unsupported');
}
