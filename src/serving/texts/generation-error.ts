import { worded } from '../../../base/named-text.js';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import { ParameterError } from '../../../callbacks/sampling-params.js';
import { RequestError } from '../../../callbacks/token-request.js';
import { GuideError } from '../../../engine/guided/guide-error.js';
import { HelperBusyError, HelperClosedError } from '../../../models/helper-pool.js';
import { PicturesBusyError } from '../../../models/images/picture-error.js';
import {
  PromptTimeError,
  TokenizerBusyError,
  TokenizerClosedError,
} from '../../../models/tokenizer/tokenizer-pool.js';
import { GuideCheckTimeError } from '../../errors/request-errors.js';
import { flagOfOption } from '../../options/flag-names.js';
import { AdapterError } from '../adapters/adapter-error.js';
import { asInferError } from '../infer-failure.js';
import type { GivenInputs } from './given-inputs.js';
import { inputOfField } from './text-inputs.js';

/** Errors of a part that is busy or has ended: the same request may be answered later. */
const NOT_NOW = [
  TokenizerBusyError,
  TokenizerClosedError,
  HelperBusyError,
  HelperClosedError,
  GuideCheckTimeError,
  PicturesBusyError,
];

/** Why a request for text has no answer, with its inputs by the names under which the client sent them. */
export function generationError(error: unknown, given: GivenInputs): InferError {
  if (error instanceof ParameterError || error instanceof RequestError) {
    const message = inClientsWords(error, given);
    return new InferError(message, kindOf(error), { cause: error });
  }
  if (error instanceof GuideError)
    return new InferError(`'${given.nameOf('guided_decoding_guide')}': ${error.message}`, 'invalid');
  if (error instanceof PromptTimeError || error instanceof AdapterError)
    return new InferError(error.message, 'invalid', { cause: error });
  if (NOT_NOW.some((kind) => error instanceof kind))
    return new InferError((error as Error).message, 'unavailable', { cause: error });
  return asInferError(error);
}

function kindOf(error: ParameterError | RequestError): 'invalid' | 'unavailable' | 'internal' {
  if (error.kind === 'overloaded' || error.kind === 'ended') return 'unavailable';
  if (error instanceof ParameterError) return 'invalid';
  return error.isInvalid ? 'invalid' : 'internal';
}

function inClientsWords({ text }: ParameterError | RequestError, given: GivenInputs): string {
  return worded(text, ({ of, name }) => {
    if (of === 'option') return flagOfOption(name) ?? name;
    const input = of === 'input' ? inputOfField(name) : undefined;
    return input === undefined ? name : given.nameOf(input);
  });
}
