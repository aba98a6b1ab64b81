import type { NetworkPlan } from '../../engine/network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { bert } from './bert.js';
import { llama } from './llama.js';

/** Writes a model's network in the op set. */
export type Architecture = (config: ModelConfig) => NetworkPlan;

/** By ModelConfig.architecture. */
const ARCHITECTURES = new Map<string, Architecture>([
  ['llama', llama],
  ['bert', bert],
]);

/** What config.json calls them in "architectures", and what GGUF calls them in general.architecture. */
const HUGGING_FACE_NAMES = new Map([
  ['LlamaForCausalLM', 'llama'],
  // The same network; Mistral's sliding window is the engine's attention window.
  ['MistralForCausalLM', 'llama'],
  ['BertModel', 'bert'],
  ['BertForSequenceClassification', 'bert'],
  // BERT with its positions behind the padding's; XLM-RoBERTa is RoBERTa with another tokenizer.
  ['RobertaModel', 'bert'],
  ['RobertaForSequenceClassification', 'bert'],
  ['XLMRobertaModel', 'bert'],
  ['XLMRobertaForSequenceClassification', 'bert'],
]);
const GGUF_NAMES = new Map([['llama', 'llama']]);

export const supportedHuggingFaceArchitectures: readonly string[] = [...HUGGING_FACE_NAMES.keys()];
export const supportedGgufArchitectures: readonly string[] = [...GGUF_NAMES.keys()];

/** The architecture of a name from config.json; undefined where there is none. */
export function architectureOfHuggingFace(name: string): string | undefined {
  return HUGGING_FACE_NAMES.get(name);
}

/** The architecture of GGUF's general.architecture; undefined where there is none. */
export function architectureOfGguf(name: string): string | undefined {
  return GGUF_NAMES.get(name);
}

/** The network of a model. The same config always gives the same plan. */
export function planNetwork(config: ModelConfig): NetworkPlan {
  const architecture = ARCHITECTURES.get(config.architecture);
  if (!architecture) {
    const known = [...ARCHITECTURES.keys()].join(', ');
    throw new Error(`Architecture "${config.architecture}" is not known; known: ${known}.`);
  }
  return architecture(config);
}
