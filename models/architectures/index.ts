import type { NetworkPlan } from '../../network/plan.js';
import { withHead } from '../../network/shared-weights.js';
import type { ModelConfig } from '../model-config.js';
import { apertus } from './apertus.js';
import { arcee } from './arcee.js';
import { bert } from './bert.js';
import { clipText } from './clip-text.js';
import { cohere } from './cohere.js';
import { deberta } from './deberta.js';
import { exaone4 } from './exaone4.js';
import { falconH1 } from './falconh1.js';
import { gemma } from './gemma.js';
import { gemma2 } from './gemma2.js';
import { gemma3 } from './gemma3.js';
import { gemma4 } from './gemma4.js';
import { glm, glm4 } from './glm.js';
import { gpt2 } from './gpt2.js';
import { gptOss } from './gptoss.js';
import { granite } from './granite.js';
import { granite4 } from './granite4.js';
import { hunyuan } from './hunyuan.js';
import { lfm2 } from './lfm2.js';
import { llama } from './llama.js';
import { mamba2 } from './mamba2.js';
import { mistral } from './mistral.js';
import { mixtral } from './mixtral.js';
import { modernbert } from './modernbert.js';
import { nemotron } from './nemotron.js';
import { nemotronH } from './nemotronh.js';
import { olmo2 } from './olmo2.js';
import { olmoe } from './olmoe.js';
import { openelm } from './openelm.js';
import { phi3 } from './phi3.js';
import { phiMoe } from './phimoe.js';
import { qwen2 } from './qwen2.js';
import { qwen2moe } from './qwen2moe.js';
import { qwen3 } from './qwen3.js';
import { qwen35 } from './qwen35.js';
import { qwen35Head } from './qwen35-head.js';
import { ropebert } from './ropebert.js';

/** Writes a model's network in the op set. */
export type Architecture = (config: ModelConfig) => NetworkPlan;

/** Architectures by ModelConfig.architecture. */
const ARCHITECTURES = new Map<string, Architecture>([
  ['llama', llama],
  ['mistral', mistral],
  ['mixtral', mixtral],
  ['qwen2', qwen2],
  ['qwen3', qwen3],
  ['qwen3moe', qwen3],
  ['qwen2moe', qwen2moe],
  ['olmoe', olmoe],
  ['phimoe', phiMoe],
  ['glm4moe', qwen2moe],
  ['gptoss', gptOss],
  ['qwen35', qwen35],
  ['qwen35moe', qwen35],
  ['qwen3next', qwen35],
  ['lfm2', lfm2],
  ['lfm2moe', lfm2],
  ['mamba2', mamba2],
  ['falconh1', falconH1],
  ['nemotronh', nemotronH],
  ['phi3', phi3],
  ['gemma', gemma],
  ['gemma2', gemma2],
  ['gemma3', gemma3],
  ['gemma4', gemma4],
  ['olmo2', olmo2],
  ['olmo3', olmo2],
  ['exaone4', exaone4],
  ['granite', granite],
  ['granite4', granite4],
  ['cohere', cohere],
  ['cohere2', cohere],
  ['arcee', arcee],
  ['nemotron', nemotron],
  ['apertus', apertus],
  ['openelm', openelm],
  ['hunyuan', hunyuan],
  ['minicpm', granite],
  ['glm', glm],
  ['glm4', glm4],
  // Llama's network: what differs is in the config (windows, layers without RoPE, biases) or in the order of rows.
  ['smollm3', llama],
  ['ministral', llama],
  ['ministral3', llama],
  ['seed_oss', llama],
  ['ernie4_5', llama],
  ['gpt2', gpt2],
  ['bert', bert],
  ['deberta', deberta],
  ['modernbert', modernbert],
  ['ropebert', ropebert],
  ['clip', clipText],
  ['siglip', clipText],
]);

/** Architectures by their names in config.json's "architectures", and in GGUF's general.architecture. */
const HUGGING_FACE_NAMES = new Map([
  ['LlamaForCausalLM', 'llama'],
  ['MistralForCausalLM', 'mistral'],
  ['MixtralForCausalLM', 'mixtral'],
  ['Qwen2ForCausalLM', 'qwen2'],
  ['Qwen3ForCausalLM', 'qwen3'],
  ['Qwen3MoeForCausalLM', 'qwen3moe'],
  ['Qwen2MoeForCausalLM', 'qwen2moe'],
  ['OlmoeForCausalLM', 'olmoe'],
  // The model's own code calls itself by the first name, transformers by the second.
  ['PhiMoEForCausalLM', 'phimoe'],
  ['PhimoeForCausalLM', 'phimoe'],
  ['Glm4MoeForCausalLM', 'glm4moe'],
  ['GptOssForCausalLM', 'gptoss'],
  ['Qwen3_5ForCausalLM', 'qwen35'],
  ['Qwen3_5MoeForCausalLM', 'qwen35moe'],
  ['Qwen3NextForCausalLM', 'qwen3next'],
  ['Lfm2ForCausalLM', 'lfm2'],
  ['Lfm2MoeForCausalLM', 'lfm2moe'],
  ['Mamba2ForCausalLM', 'mamba2'],
  ['FalconH1ForCausalLM', 'falconh1'],
  ['NemotronHForCausalLM', 'nemotronh'],
  ['Phi3ForCausalLM', 'phi3'],
  ['GemmaForCausalLM', 'gemma'],
  ['Gemma2ForCausalLM', 'gemma2'],
  ['Gemma3ForCausalLM', 'gemma3'],
  ['Gemma4ForCausalLM', 'gemma4'],
  ['Gemma4UnifiedForCausalLM', 'gemma4'],
  ['SmolLM3ForCausalLM', 'smollm3'],
  ['Olmo2ForCausalLM', 'olmo2'],
  ['Olmo3ForCausalLM', 'olmo3'],
  ['MinistralForCausalLM', 'ministral'],
  ['Ministral3ForCausalLM', 'ministral3'],
  ['Exaone4ForCausalLM', 'exaone4'],
  ['GraniteForCausalLM', 'granite'],
  ['GraniteMoeHybridForCausalLM', 'granite4'],
  ['CohereForCausalLM', 'cohere'],
  ['Cohere2ForCausalLM', 'cohere2'],
  ['ArceeForCausalLM', 'arcee'],
  ['NemotronForCausalLM', 'nemotron'],
  ['ApertusForCausalLM', 'apertus'],
  ['OpenELMForCausalLM', 'openelm'],
  ['HunYuanDenseV1ForCausalLM', 'hunyuan'],
  ['MiniCPMForCausalLM', 'minicpm'],
  ['GlmForCausalLM', 'glm'],
  ['Glm4ForCausalLM', 'glm4'],
  ['SeedOssForCausalLM', 'seed_oss'],
  ['Ernie4_5ForCausalLM', 'ernie4_5'],
  ['GPT2LMHeadModel', 'gpt2'],
  ['BertModel', 'bert'],
  ['BertForSequenceClassification', 'bert'],
  // RobertaModel is BERT with positions that begin after those of padding; XLM-RoBERTa is RoBERTa with
  // another tokenizer.
  ['RobertaModel', 'bert'],
  ['RobertaForSequenceClassification', 'bert'],
  ['XLMRobertaModel', 'bert'],
  ['XLMRobertaForSequenceClassification', 'bert'],
  ['DistilBertModel', 'bert'],
  ['DistilBertForSequenceClassification', 'bert'],
  ['ElectraModel', 'bert'],
  ['ElectraForSequenceClassification', 'bert'],
  ['AlbertModel', 'bert'],
  ['AlbertForSequenceClassification', 'bert'],
  ['MPNetModel', 'bert'],
  ['MPNetForMaskedLM', 'bert'],
  ['MPNetForSequenceClassification', 'bert'],
  ['DebertaV2Model', 'deberta'],
  ['DebertaV2ForMaskedLM', 'deberta'],
  ['DebertaV2ForSequenceClassification', 'deberta'],
  ['ModernBertModel', 'modernbert'],
  ['ModernBertForMaskedLM', 'modernbert'],
  ['ModernBertForSequenceClassification', 'modernbert'],
  ['NomicBertModel', 'ropebert'],
  ['NewModel', 'ropebert'],
  ['NewForSequenceClassification', 'ropebert'],
  ['GteModel', 'ropebert'],
  ['GteForSequenceClassification', 'ropebert'],
  ['CLIPModel', 'clip'],
  ['SiglipModel', 'siglip'],
]);
/**
 * Mistral's and Mixtral's files call their architecture llama; those of Mixtral have experts. The text model of a Qwen-VL is that of
 * Qwen, with its tower in a file of its own.
 */
const GGUF_NAMES = new Map([
  ['llama', 'llama'],
  ['qwen2', 'qwen2'],
  ['qwen2vl', 'qwen2'],
  ['qwen3', 'qwen3'],
  ['qwen3vl', 'qwen3'],
  ['qwen3moe', 'qwen3moe'],
  ['qwen2moe', 'qwen2moe'],
  ['olmoe', 'olmoe'],
  ['phimoe', 'phimoe'],
  ['glm4moe', 'glm4moe'],
  ['gpt-oss', 'gptoss'],
  ['qwen35', 'qwen35'],
  ['qwen35moe', 'qwen35moe'],
  ['qwen3next', 'qwen3next'],
  ['lfm2', 'lfm2'],
  ['lfm2moe', 'lfm2moe'],
  ['mamba2', 'mamba2'],
  ['falcon-h1', 'falconh1'],
  ['nemotron_h', 'nemotronh'],
  ['nemotron_h_moe', 'nemotronh'],
  ['granitehybrid', 'granite4'],
  ['phi3', 'phi3'],
  ['gemma', 'gemma'],
  ['gemma2', 'gemma2'],
  ['gemma3', 'gemma3'],
  ['gemma4', 'gemma4'],
  ['smollm3', 'smollm3'],
  ['olmo2', 'olmo2'],
  ['exaone4', 'exaone4'],
  ['granite', 'granite'],
  ['command-r', 'cohere'],
  ['cohere2', 'cohere2'],
  ['arcee', 'arcee'],
  ['nemotron', 'nemotron'],
  ['apertus', 'apertus'],
  ['openelm', 'openelm'],
  ['hunyuan-dense', 'hunyuan'],
  ['minicpm', 'minicpm'],
  ['chatglm', 'glm'],
  ['glm4', 'glm4'],
  ['mistral3', 'ministral3'],
  ['seed_oss', 'seed_oss'],
  ['ernie4_5', 'ernie4_5'],
  ['gpt2', 'gpt2'],
  ['bert', 'bert'],
  ['modern-bert', 'modernbert'],
  ['nomic-bert', 'ropebert'],
  ['nomic-bert-moe', 'ropebert'],
  ['gemma-embedding', 'gemma3'],
]);
/** Architectures that share a name in GGUF with another one, distinguished by the file's contents. */
const GGUF_KINDS = new Map([
  ['llama', { experts: 'mixtral' }],
  ['olmo2', { windows: 'olmo3' }],
]);

/** Heads that guess tokens, by the architecture that they belong to. */
const HEADS = new Map<string, Architecture>([
  ['qwen35', qwen35Head],
  ['qwen35moe', qwen35Head],
  ['qwen3next', qwen35Head],
]);

/** True for an architecture whose models may have a head that guesses tokens. */
export const mayHaveHead = (architecture: string): boolean => HEADS.has(architecture);

/** All architectures of this version by ModelConfig.architecture. */
export const architectures: readonly string[] = [...ARCHITECTURES.keys()];
/** Those that only embed or score; others may do so too (decoder-encoder.ts). */
export const encoderArchitectures: ReadonlySet<string> = new Set([
  'bert',
  'deberta',
  'modernbert',
  'ropebert',
  'clip',
  'siglip',
]);
export const supportedHuggingFaceArchitectures: readonly string[] = [...HUGGING_FACE_NAMES.keys()];
export const supportedGgufArchitectures: readonly string[] = [...GGUF_NAMES.keys()];

/** Architecture of a name in config.json; undefined for an unknown one. */
export function architectureOfHuggingFace(name: string): string | undefined {
  return HUGGING_FACE_NAMES.get(name) ?? HUGGING_FACE_NAMES.get(name.replace(WITHOUT_LOGITS, 'ForCausalLM'));
}

/** Ends of the names of a decoder's classes that embed texts or score pairs: Qwen3Model, Gemma3TextModel. */
const WITHOUT_LOGITS = /(?:Text)?(?:Model|ForSequenceClassification)$/;

/** Architecture of GGUF's general.architecture; undefined for an unknown one. @param has whether its layers have experts, and windows */
export function architectureOfGguf(
  name: string,
  has: { experts: boolean; windows: boolean },
): string | undefined {
  const kinds: { experts?: string; windows?: string } = GGUF_KINDS.get(name) ?? {};
  const other = (has.experts ? kinds.experts : undefined) ?? (has.windows ? kinds.windows : undefined);
  return other ?? GGUF_NAMES.get(name);
}

/** Names of an architecture in config.json and in GGUF. */
export function namesOfArchitecture(architecture: string): { huggingFace: string[]; gguf: string[] } {
  const namesIn = (names: ReadonlyMap<string, string>) =>
    [...names].flatMap(([name, own]) => (own === architecture ? [name] : []));
  const shared = [...GGUF_KINDS].filter(([, kinds]) => Object.values(kinds).includes(architecture));
  return {
    huggingFace: namesIn(HUGGING_FACE_NAMES),
    gguf: [...namesIn(GGUF_NAMES), ...shared.map(([name]) => name)],
  };
}

/** The network of a model. The same config always gives the same plan. */
export function planNetwork(config: ModelConfig): NetworkPlan {
  const architecture = ARCHITECTURES.get(config.architecture);
  if (!architecture) {
    const known = [...ARCHITECTURES.keys()].join(', ');
    throw new Error(`Architecture "${config.architecture}" is not known; known: ${known}.`);
  }
  const head = config.draftHead ? HEADS.get(config.architecture) : undefined;
  return head === undefined ? architecture(config) : withHead(architecture(config), head(config));
}
