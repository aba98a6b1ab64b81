import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { ModelConfig, ModelInput, ModelOutput } from '../../../models/repository/model-config.js';
import { ModelConfigError } from '../../../models/repository/model-config-error.js';
import type { WrittenConfig } from '../../../models/repository/written-config.js';
import type { MemberDirectory } from '../ensembles/load-ensemble.js';
import type { InferModel } from '../infer-model.js';
import { type Generating, Generations } from '../texts/generations.js';
import { GeneratorInfer } from '../texts/generator-infer.js';
import { TEXT_PARAMETERS } from '../texts/parameter-inputs.js';
import { outputOf } from '../texts/text-config.js';
import { textInputs, tokenOutputs } from '../texts/text-inputs.js';
import { Detokenizing, detokenizerPartTensors } from './detokenizer-part.js';
import { type PartKind, type PartTerms, partConfig, partTerms } from './part-config.js';
import type { PartWork } from './part-model.js';
import { tokenizerPartTensors, tokenizerWork } from './tokenizer-part.js';

/** A part that can be served: its model is there. */
export interface PlannedPart {
  config: ModelConfig;
  work: PartWork;
}

const TENSORS: Readonly<Record<PartKind, () => Pick<ModelConfig, 'input' | 'output'>>> = {
  tokenizer: tokenizerPartTensors,
  engine: enginePartTensors,
  detokenizer: detokenizerPartTensors,
};

/** @throws ModelConfigError where the configuration is wrong, or the model of texts is not there, or is none */
export function plannedPart(
  name: string,
  folder: string,
  written: WrittenConfig,
  directory: Pick<MemberDirectory, 'find' | 'isReady'>,
): PlannedPart {
  const terms = partTerms(written);
  const config = partConfig(written, { name, folder }, TENSORS[terms.kind]());
  const { decoupled } = config.model_transaction_policy;
  if (decoupled && terms.kind === 'tokenizer')
    throw new ModelConfigError(`the tokenizer '${name}' has one answer to a request, and is not decoupled`);
  if (!directory.isReady(terms.of, ''))
    throw new ModelConfigError(`'${name}' is a part of '${terms.of}', which is not loaded`);
  const find = () => generatingOf(name, directory.find(terms.of, ''));
  find();
  return { config, work: workOf(name, terms, find, decoupled) };
}

function workOf(name: string, terms: PartTerms, find: () => Generating, isDecoupled: boolean): PartWork {
  if (terms.kind === 'engine') return engineWork(name, find, terms.excludesInput);
  const model = () => find().model;
  return terms.kind === 'tokenizer' ? tokenizerWork(model) : new Detokenizing(model, isDecoupled);
}

function generatingOf(name: string, model: InferModel): Generating {
  if (model instanceof GeneratorInfer) return model.generating;
  throw new InferError(`'${name}' is a part of '${model.config.name}', which generates no text`, 'invalid');
}

/** Tensors of the engine, without what a tokenizer has to do first. */
function enginePartTensors(): { input: ModelInput[]; output: ModelOutput[] } {
  const isOfText = ['text_input', 'image', 'bad_words', 'embedding_bias_words', 'embedding_bias_weights'];
  return {
    input: textInputs(true, (name) => isOfText.includes(name)),
    output: [...tokenOutputs(true), outputOf('stop_words', 'TYPE_STRING', [-1])],
  };
}

/**
 * Tokens in, tokens out: requests share the engine's iterations with those of every other protocol.
 * @param find the model as it is now @throws InferError where there is none
 */
function engineWork(name: string, find: () => Generating, excludesInput: boolean): PartWork {
  const generations = new Generations(find, { isBatched: true, excludesInput, endsByItself: true });
  return {
    endsWhenStopped: true,
    parameters: TEXT_PARAMETERS,
    answer: (request, inputs, on, onOver) => generations.infer(name, request, inputs, on, onOver),
  };
}
