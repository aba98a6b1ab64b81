import type { ModelInput, ModelOutput } from '../../../models/repository/model-config.js';
import { type Generating, Generations } from '../texts/generations.js';
import { TEXT_PARAMETERS } from '../texts/parameter-inputs.js';
import { outputOf } from '../texts/text-config.js';
import { textInputs, tokenOutputs } from '../texts/text-inputs.js';
import type { PartWork } from './part-model.js';

/** Tensors of the engine, without what a tokenizer has to do first. */
export function enginePartTensors(): { input: ModelInput[]; output: ModelOutput[] } {
  const isOfText = ['text_input', 'bad_words', 'embedding_bias_words', 'embedding_bias_weights'];
  return {
    input: textInputs(true, (name) => isOfText.includes(name)),
    output: [...tokenOutputs(true), outputOf('stop_words', 'TYPE_STRING', [-1])],
  };
}

/**
 * Tokens in, tokens out: requests share the engine's iterations with those of every other protocol.
 * @param find the model as it is now @throws InferError where there is none
 */
export function engineWork(name: string, find: () => Generating, excludesInput: boolean): PartWork {
  const generations = new Generations(find, { isBatched: true, excludesInput, endsByItself: true });
  return {
    endsWhenStopped: true,
    parameters: TEXT_PARAMETERS,
    answer: (request, inputs, on, onOver) => generations.infer(name, request, inputs, on, onOver),
  };
}
