/** What a table of models says of a family besides what can be computed, by ModelConfig.architecture. */
interface FamilyFacts {
  /** Published models and what is particular about them, in Markdown. */
  models: string;
  /** Name in GGUF files that are of this family without another name of their own. */
  gguf?: string;
  /** First version of Skein that runs it. */
  since: string;
}

const FIRST = '0.1.0';
const since = (models: string): FamilyFacts => ({ models, since: FIRST });

const EXPERTS = '[with experts](#mixtures-of-experts)';

/** In the order of the table. Encoders have a page of their own. */
export const FAMILY_FACTS: Readonly<Record<string, FamilyFacts>> = {
  llama: since('Llama 2 and 3, SmolLM2, TinyLlama and many more'),
  mistral: {
    ...since('Mistral 7B; its sliding window bounds the KV cache of a sequence, which a GGUF does not name'),
    gguf: 'llama',
  },
  mixtral: since(`Mixtral 8x7B and 8x22B, ${EXPERTS}`),
  qwen2: since('Qwen2, Qwen2.5, DeepSeek-R1-Distill-Qwen'),
  qwen3: since('Qwen3, dense'),
  qwen35: since(
    'Qwen3.5 and 3.6, dense, [with states](#models-with-a-state); also inside the model that sees',
  ),
  qwen35moe: since(
    `Qwen3.5 and 3.6 with experts, [with states](#models-with-a-state), ${EXPERTS}; also inside the model that sees`,
  ),
  qwen3next: since(`Qwen3-Next, [with states](#models-with-a-state), ${EXPERTS}`),
  lfm2: since('LFM2, dense, [with states](#models-with-a-state)'),
  lfm2moe: since(`LFM2 with experts, [with states](#models-with-a-state), ${EXPERTS}`),
  mamba2: since('Mamba2 and Mamba-Codestral, [with states](#models-with-a-state) alone: no layer attends'),
  falconh1: since('Falcon-H1, [with states](#models-with-a-state) next to attention in each layer'),
  nemotronh: since(
    `Nemotron-H, Nemotron Nano 2 and Nemotron 3 Nano, [with states](#models-with-a-state), the last one ${EXPERTS}`,
  ),
  qwen3moe: since(`Qwen3-30B-A3B, Qwen3-235B-A22B and Qwen3-Coder of these sizes, ${EXPERTS}`),
  qwen2moe: since(`Qwen1.5-MoE-A2.7B and Qwen2-57B-A14B, ${EXPERTS}`),
  olmoe: since(`OLMoE, ${EXPERTS}`),
  phimoe: since(
    `Phi-3.5-MoE, ${EXPERTS}, two that are chosen one after the other; in a GGUF its factor on RoPE is the one that llama.cpp's converter finds`,
  ),
  glm4moe: since(`GLM-4.5, 4.6 and Air, ${EXPERTS}; layers that guess further tokens are left aside`),
  gptoss: since(
    `gpt-oss-20b and 120b, ${EXPERTS} in MXFP4, which stay as they are; scores without values in the softmax, on every executor`,
  ),
  phi3: since('Phi-3, Phi-3.5, Phi-4 and their mini models, LongRoPE included'),
  gemma2: since('Gemma 2'),
  gemma3: since('Gemma 3, also [inside a model that sees](#models-that-also-see)'),
  gemma: since('Gemma 1'),
  smollm3: since('SmolLM3'),
  olmo2: since('OLMo 2'),
  olmo3: since('OLMo 3'),
  exaone4: since('EXAONE 4'),
  granite: since('Granite 3, dense; Granite 4 where its class is this one'),
  granite4: {
    ...since(
      `Granite 4: where layers have [states](#models-with-a-state), on the native and the wasm executor, also ${EXPERTS}; where all attend, its GGUF is a granite`,
    ),
    gguf: 'granite',
  },
  cohere: since('Command R and R+'),
  cohere2: since('Command R7B and A'),
  glm: since("GLM-4 9B, dense; its GGUF as llama.cpp's converter writes it, in both forms of its code"),
  glm4: since('GLM-4-0414 and Z1, dense'),
  ministral: since('Ministral with windows in some layers'),
  ministral3: since(
    'Ministral 3 up to its original context of 16,384 tokens, beyond which queries would be scaled',
  ),
  seed_oss: since('Seed-OSS 36B'),
  ernie4_5: since('ERNIE 4.5, dense'),
  arcee: since('AFM'),
  nemotron: since('Nemotron and Minitron, dense'),
  apertus: since('Apertus'),
  gemma4: since(
    'Gemma 4, also [inside a model that sees](#models-that-also-see) and [with experts](#mixtures-of-experts); E2B and E4B with the inputs of their layers',
  ),
  openelm: since('OpenELM, whose layers have heads and widths of their own'),
  hunyuan: since('Hunyuan, dense'),
  minicpm: since(
    'MiniCPM 1, 2 and 4, up to the context where attention becomes sparse; compared as the Granite with its factors',
  ),
  gpt2: since('GPT-2, DistilGPT-2'),
};
