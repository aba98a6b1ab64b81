/** What is known of a published model before anything of it is here; the hub says how large it is. */
export interface OfferedModel {
  /** What is downloaded: ORG/NAME, or ORG/NAME:QUANT. */
  name: string;
  /** Beginning of the names that people give to models of its family; null: another model stands for the family. */
  family: string | null;
  /** Tokens of its longest sequence. */
  contextTokens: number;
  /** Numbers that its KV cache keeps of each token: keys and values of all layers. */
  cachedNumbers: number;
  /** Share of its bytes that is read for each token: without the table of embeddings where no product reads it, and of experts those that a token goes to. */
  readShare: number;
}

const cached = (layers: number, heads: number, width: number) => 2 * layers * heads * width;

/** Models that a server offers to download, the smallest first. */
export const OFFERED: readonly OfferedModel[] = [
  offered('HuggingFaceTB/SmolLM2-135M-Instruct', null, 8192, cached(30, 3, 64), 1),
  offered('Qwen/Qwen3-0.6B-GGUF', 'qwen', 40_960, cached(28, 8, 128), 1),
  offered('bartowski/Llama-3.2-1B-Instruct-GGUF', 'llama', 131_072, cached(16, 8, 64), 1),
  offered('bartowski/DeepSeek-R1-Distill-Qwen-1.5B-GGUF', 'deepseek', 131_072, cached(28, 2, 128), 0.87),
  offered('bartowski/gemma-2-2b-it-GGUF', 'gemma', 8192, cached(26, 4, 256), 1),
  offered('Qwen/Qwen3-4B-GGUF:Q4_K_M', null, 40_960, cached(36, 8, 128), 1),
  offered('bartowski/Phi-3.5-mini-instruct-GGUF', 'phi', 131_072, cached(32, 32, 96), 0.97),
  offered('bartowski/Mistral-7B-Instruct-v0.3-GGUF', 'mistral', 32_768, cached(32, 8, 128), 0.98),
  offered('ggml-org/gpt-oss-20b-GGUF', null, 131_072, cached(24, 8, 64), 0.21),
  offered('Qwen/Qwen3-30B-A3B-GGUF:Q4_K_M', null, 40_960, cached(48, 4, 128), 0.1),
  offered('mistralai/Mixtral-8x7B-Instruct-v0.1', 'mixtral', 32_768, cached(32, 8, 128), 0.27),
];

function offered(
  name: string,
  family: string | null,
  contextTokens: number,
  cachedNumbers: number,
  readShare: number,
): OfferedModel {
  return { name, family, contextTokens, cachedNumbers, readShare };
}
