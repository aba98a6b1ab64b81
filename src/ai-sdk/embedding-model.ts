import type { EmbeddingModelV3, EmbeddingModelV3CallOptions, EmbeddingModelV3Result } from '@ai-sdk/provider';
import type { Encoder } from '../library/encoder.js';

/**
 * A loaded encoder as an embedding model of the AI SDK: for embed and embedMany, in calls of any length. `providerOptions.skein` takes the options of
 * `Encoder.embed`, such as `dimensions` or `inputType`.
 */
export function embeddingModel(encoder: Encoder): EmbeddingModelV3 {
  return new SkeinEmbeddingModel(encoder);
}

class SkeinEmbeddingModel implements EmbeddingModelV3 {
  readonly specificationVersion = 'v3';
  readonly provider = 'skein';
  readonly modelId: string;
  readonly maxEmbeddingsPerCall = undefined;
  readonly supportsParallelCalls = true;
  readonly #encoder: Encoder;

  constructor(encoder: Encoder) {
    this.#encoder = encoder;
    this.modelId = encoder.info.name;
  }

  async doEmbed({
    values,
    abortSignal,
    providerOptions,
  }: EmbeddingModelV3CallOptions): Promise<EmbeddingModelV3Result> {
    let tokens = 0;
    const onTokens = (counted: number) => {
      tokens = counted;
    };
    const rows = await this.#encoder.embed(values, {
      ...providerOptions?.skein,
      onTokens,
      ...(abortSignal && { signal: abortSignal }),
    });
    return { embeddings: rows.map((row) => Array.from(row)), usage: { tokens }, warnings: [] };
  }
}
