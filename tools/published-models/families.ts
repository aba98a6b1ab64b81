/** What a table of models says of a family besides what can be computed, by ModelConfig.architecture. */
interface FamilyFacts {
  /** Published models, and links to what is special about them, in Markdown. */
  models: string;
  /** Name in GGUF files that are of this family without another name of their own. */
  gguf?: string;
  /** First version of Skein that runs it. */
  since: string;
}

const FIRST = '0.1.0';
const since = (models: string): FamilyFacts => ({ models, since: FIRST });

const EXPERTS = '[experts](#mixtures-of-experts)';
const STATE = '[state](#models-with-recurrent-state)';
const VISION = '[multimodal](#multimodal-models)';

/** In the order of the table. Encoders have a page of their own. */
export const FAMILY_FACTS: Readonly<Record<string, FamilyFacts>> = {
  llama: since('Llama 2 and 3, SmolLM2, TinyLlama and many more'),
  mistral: {
    ...since('Mistral 7B; a sliding window, absent from GGUFs, bounds its KV cache'),
    gguf: 'llama',
  },
  mixtral: since(`Mixtral 8x7B and 8x22B; ${EXPERTS}`),
  qwen2: since('Qwen2, Qwen2.5, DeepSeek-R1-Distill-Qwen'),
  qwen3: since('Qwen3, dense'),
  qwen35: since(`Qwen3.5 and 3.6, dense; ${STATE}, ${VISION}`),
  qwen35moe: since(`Qwen3.5 and 3.6; ${STATE}, ${EXPERTS}, ${VISION}`),
  qwen3next: since(`Qwen3-Next; ${STATE}, ${EXPERTS}`),
  lfm2: since(`LFM2, dense; ${STATE}`),
  lfm2moe: since(`LFM2; ${STATE}, ${EXPERTS}`),
  mamba2: since(`Mamba2, Mamba-Codestral; ${STATE}, no attention`),
  falconh1: since(`Falcon-H1; ${STATE}`),
  nemotronh: since(`Nemotron-H, Nemotron Nano 2, Nemotron 3 Nano; ${STATE}, in 3 Nano ${EXPERTS}`),
  qwen3moe: since(`Qwen3-30B-A3B, Qwen3-235B-A22B and Qwen3-Coder of these sizes; ${EXPERTS}`),
  qwen2moe: since(`Qwen1.5-MoE-A2.7B, Qwen2-57B-A14B; ${EXPERTS}`),
  olmoe: since(`OLMoE; ${EXPERTS}`),
  phimoe: since(`Phi-3.5-MoE; ${EXPERTS}`),
  glm4moe: since(`GLM-4.5, 4.6, Air, without their MTP layers; ${EXPERTS}`),
  gptoss: since(`gpt-oss-20b and 120b; ${EXPERTS} in MXFP4`),
  phi3: since('Phi-3, Phi-3.5, Phi-4 and mini models, with LongRoPE'),
  gemma2: since('Gemma 2'),
  gemma3: since(`Gemma 3; ${VISION}`),
  gemma: since('Gemma 1'),
  smollm3: since('SmolLM3'),
  olmo2: since('OLMo 2'),
  olmo3: since('OLMo 3'),
  exaone4: since('EXAONE 4'),
  granite: since('Granite 3, dense; Granite 4 of this class'),
  granite4: {
    ...since(`Granite 4; ${EXPERTS}; if with ${STATE}: native, wasm`),
    gguf: 'granite',
  },
  cohere: since('Command R and R+'),
  cohere2: since('Command R7B and A'),
  glm: since('GLM-4 9B, dense'),
  glm4: since('GLM-4-0414 and Z1, dense'),
  ministral: since('Ministral, windows in some layers'),
  ministral3: since('Ministral 3, up to 16,384 tokens of context'),
  seed_oss: since('Seed-OSS 36B'),
  ernie4_5: since('ERNIE 4.5, dense'),
  arcee: since('AFM'),
  nemotron: since('Nemotron and Minitron, dense'),
  apertus: since('Apertus'),
  gemma4: since(`Gemma 4, E2B and E4B too; ${EXPERTS}, ${VISION}`),
  openelm: since('OpenELM'),
  hunyuan: since('Hunyuan, dense'),
  minicpm: since('MiniCPM 1, 2 and 4, below the context where attention becomes sparse'),
  gpt2: since('GPT-2, DistilGPT-2'),
};
