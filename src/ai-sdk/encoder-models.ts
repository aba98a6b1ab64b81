import type {
  EmbeddingModelV3,
  EmbeddingModelV3CallOptions,
  EmbeddingModelV3Result,
  RerankingModelV3,
  RerankingModelV3CallOptions,
} from '@ai-sdk/provider';
import type { Encoder } from '../library/encoder.js';

/**
 * A loaded encoder as an embedding model of the AI SDK: for embed and embedMany, in calls of any length. `providerOptions.skein` takes the options of
 * `Encoder.embed`, such as `dimensions` or `inputType`.
 */
export function embeddingModel(encoder: Encoder): EmbeddingModelV3 {
  return new SkeinEmbeddingModel(encoder);
}

/**
 * A loaded encoder as a reranking model of the AI SDK. Documents that are objects are read as JSON. `providerOptions.skein` takes the options of
 * `Encoder.rerank`, such as `instruction`.
 */
export function rerankingModel(encoder: Encoder): RerankingModelV3 {
  return new SkeinRerankingModel(encoder);
}

class EncoderModel {
  readonly specificationVersion = 'v3';
  readonly provider = 'skein';
  readonly modelId: string;
  protected readonly encoder: Encoder;

  constructor(encoder: Encoder) {
    this.encoder = encoder;
    this.modelId = encoder.info.name;
  }
}

class SkeinEmbeddingModel extends EncoderModel implements EmbeddingModelV3 {
  readonly maxEmbeddingsPerCall = undefined;
  readonly supportsParallelCalls = true;

  async doEmbed({
    values,
    abortSignal,
    providerOptions,
  }: EmbeddingModelV3CallOptions): Promise<EmbeddingModelV3Result> {
    let tokens = 0;
    const onTokens = (counted: number) => {
      tokens = counted;
    };
    const rows = await this.encoder.embed(values, {
      ...providerOptions?.skein,
      onTokens,
      ...(abortSignal && { signal: abortSignal }),
    });
    return { embeddings: rows.map((row) => Array.from(row)), usage: { tokens }, warnings: [] };
  }
}

class SkeinRerankingModel extends EncoderModel implements RerankingModelV3 {
  async doRerank({
    documents,
    query,
    topN,
    abortSignal,
    providerOptions,
  }: RerankingModelV3CallOptions): Promise<Awaited<ReturnType<RerankingModelV3['doRerank']>>> {
    const texts =
      documents.type === 'text' ? documents.values : documents.values.map((value) => JSON.stringify(value));
    const ranked = await this.encoder.rerank(query, texts, {
      ...providerOptions?.skein,
      ...(topN !== undefined && { top: topN }),
      ...(abortSignal && { signal: abortSignal }),
    });
    return { ranking: ranked.map(({ index, score }) => ({ index, relevanceScore: score })) };
  }
}
